#!/usr/bin/env bash
# Checks that a name means one thing: no two files of src/ have one name, and no two types; and that a file is about
# one: none of src/ has more than 500 lines. Speaks TAP.
set -eu -o pipefail
cd "$(dirname "$0")/.."

once() { # once NUMBER WHAT: nothing comes twice in standard input
    local twice
    twice=$(sort | uniq -d)
    [ -z "$twice" ] || printf 'not '
    echo "ok $1 - $2"
    [ -z "$twice" ] || sed 's/^/# twice: /' <<<"$twice"
}

echo 1..3
find src -name '*.[ch]' -printf '%f\n' | once 1 'every file of src/ has a name of its own'
grep -rhoE '^\} hwnas_[a-z_0-9]+;' src include --include='*.[ch]' | tr -d '};' | once 2 'every type is defined once'
long=$(find src -name '*.[ch]' -exec awk 'END { if (FNR > 500) print FILENAME ": " FNR " lines" }' {} \;)
[ -z "$long" ] || printf 'not '
echo 'ok 3 - no file of src/ has more than 500 lines'
[ -z "$long" ] || sed 's/^/# /' <<<"$long"
