# kill -9 of searches and of runners, at any moment: nothing finished is lost, nothing is left (kill_storm.py).
load helpers

@test "a storm of kills: the same study in the end, no process and no file left" {
    local n=10
    [ -z "${HWNAS_LONG:-}" ] || n=500
    /usr/bin/python3 "$HWNAS_SRC/tests/cli/kill_storm.py" "$HWNAS" "${HWNAS%/*}/tests/cli/still_runner" \
        "$HWNAS_SRC" $n >&3
}
