#!/usr/bin/env bats
# The nth allocation and the nth write of a search, a resume and an export fail (faults.py).
load ../cli/helpers

@test "no memory, no room on the disk, a broken disk: nothing half, nothing wrong, nothing lost" {
    run /usr/bin/python3 "$HWNAS_SRC/tests/fault/faults.py" "${HWNAS%/*}/tests/fault/faulty" "$HWNAS_SRC"
    grep '^#' <<<"$output" >&3
    [ "$status" = 0 ] || { echo "$output"; return 1; }
}
