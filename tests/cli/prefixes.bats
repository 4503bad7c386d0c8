# A search that dies at any moment and is continued proposes and hears what it would have (prefixes.py).
load helpers

@test "after any prefix of a search, of every strategy, --resume goes on as if nothing had happened" {
    local here=${HWNAS%/*}/tests/cli
    /usr/bin/python3 "$HWNAS_SRC/tests/cli/prefixes.py" "$here/mortal" "$here/still_runner" "$HWNAS_SRC" >&3
}
