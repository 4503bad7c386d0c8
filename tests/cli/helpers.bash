# What the tests of the program share. A test starts in an empty directory of its own.
bats_require_minimum_version 1.5.0
. "${BASH_SOURCE[0]%/*}/modules.bash"

TABLE=$HWNAS_SRC/tests/data/nas_bench_macro.csv
REPLAY=$HWNAS_SRC/examples/replay-nb-macro.yaml

ROOFLINES=${HWNAS%/*}/tests/cache/rooflines

# share_rooflines: what the machine can do at most takes minutes to measure where it is busy, in all precisions and
# threads. Tests that list devices take what another one found, also when it is too old for whom a disturbed figure
# would mislead.
share_rooflines() {
    export XDG_CACHE_HOME=$ROOFLINES
    mkdir -p "$XDG_CACHE_HOME/hwnas"
    find "$XDG_CACHE_HOME/hwnas" -name 'roofline-*.json' -exec touch {} +
}

# take_rooflines: the same for a test with a cache of its own; leave_rooflines: the others have what it found.
take_rooflines() {
    mkdir -p "$XDG_CACHE_HOME/hwnas"
    find "$ROOFLINES/hwnas" -name 'roofline-*.json' -exec cp -t "$XDG_CACHE_HOME/hwnas" {} + 2>/dev/null || true
}
leave_rooflines() {
    local file
    mkdir -p "$ROOFLINES/hwnas"
    for file in "$XDG_CACHE_HOME"/hwnas/roofline-*.json; do
        [ ! -e "$file" ] || [ -e "$ROOFLINES/hwnas/${file##*/}" ] ||
            { cp "$file" "$ROOFLINES/$$.json" && mv "$ROOFLINES/$$.json" "$ROOFLINES/hwnas/${file##*/}"; }
    done
}

setup() {
    export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
    mkdir "$BATS_TEST_TMPDIR/work"
    cd "$BATS_TEST_TMPDIR/work" || exit
}

# ends CODE ARGUMENT...: the program ends with this exit code. What it says is in the files out and err.
ends() {
    local want=$1 got=0
    shift
    "$HWNAS" "$@" >out 2>err </dev/null || got=$?
    [ "$got" -eq "$want" ] && return
    echo "hwnas $*: exit code $got, not $want"
    cat out err
    return 1
}

# undisturbed COMMAND...: with measurements from a machine where nothing else ever runs (still_runner.c).
undisturbed() {
    HWNAS_RUNNER=${HWNAS%/*}/tests/cli/still_runner STILL_COUNTS_OWN= "$@"
}

# alone [TIMES]: from now on the program measures as if nothing else ran on the machine: its runners count the time in which
# they compute themselves. For tests that are about other things: no measurement is taken again because the machine is busy.
# All seems to take so many TIMES (1) as long, so that a measurement is over sooner.
alone() {
    export HWNAS_RUNNER=${HWNAS%/*}/tests/cli/still_runner STILL_COUNTS_OWN=${1:-1}
}

# computes DTYPE: this machine's processor does.
computes() {
    local said=$BATS_TEST_TMPDIR/computes
    "$HWNAS" profile mnist_mlp --dtype "$1" --seconds 0.01 >/dev/null 2>"$said" && return
    grep -q "this processor has no $1" "$said" && return 1
    cat "$said"
    return 0 # what follows fails
}

# load_torch: for setup_file. $LOADED_PYTHON is a Python that need not load PyTorch; end_torch, for teardown_file, ends what
# has loaded it. For tests that are about other things than how PyTorch is loaded.
load_torch() {
    export LOADED_PYTHON=$BATS_FILE_TMPDIR/python
    printf '#!/bin/sh\nexec /usr/bin/python3 %q %q "$@"\n' "$HWNAS_SRC/tests/cli/loaded_python.py" "$BATS_FILE_TMPDIR/socket" >"$LOADED_PYTHON"
    chmod +x "$LOADED_PYTHON"
    has_module torch || return 0
    /usr/bin/python3 "$HWNAS_SRC/tests/cli/loaded_python.py" --serve "$BATS_FILE_TMPDIR/socket" >"$BATS_FILE_TMPDIR/loaded" 3>&- &
    echo $! >"$BATS_FILE_TMPDIR/loader"
    until grep -q ready "$BATS_FILE_TMPDIR/loaded"; do kill -0 $! || return; sleep 0.05; done
}
end_torch() {
    [ ! -e "$BATS_FILE_TMPDIR/loader" ] || kill "$(<"$BATS_FILE_TMPDIR/loader")"
}

# find_ort: the device ort finds the library that scripts/install-deps has fetched, if any.
find_ort() {
    local at=$HWNAS_SRC/.deps/node/node_modules/onnxruntime-node/bin found
    [ -z "${HWNAS_ORT_LIBRARY:-}" ] || return 0
    found=$(find "$at" -path '*linux/x64*' -name 'libonnxruntime.so*' 2>/dev/null | head -n 1)
    [ -z "$found" ] || export HWNAS_ORT_LIBRARY=$found
}

# says FILE PATTERN: a file has text that matches the pattern of the shell.
says() {
    # shellcheck disable=SC2053
    [[ $(<"$1") == *$2* ]] && return
    echo "$1 does not match: $2"
    cat "$1"
    return 1
}

# refuses CODE PATTERN ARGUMENT...: the program ends with this exit code, and prints no result but a
# message that matches.
refuses() {
    local code=$1 pattern=$2
    shift 2
    ends "$code" "$@"
    [ ! -s out ] || says out 'nothing, but there is'
    says err "$pattern"
    [[ $(<err) == "hwnas: "* ]]
}

# not COMMAND...: the command fails. A plain ! would not end a test.
not() {
    ! "$@"
}

# json FILE EXPRESSION: prints what Python makes of the expression, where `d` is the object in the file. Without the folders
# of Debian's packages, which take as long to look through as all the rest.
json() {
    /usr/bin/python3 -I -S -c 'import json, math, sys
d = json.load(open(sys.argv[1]))
print(eval(sys.argv[2]))' "$1" "$2"
}

# is FILE EXPRESSION: the expression is true.
is() {
    [ "$(json "$1" "bool($2)")" = True ] && return
    echo "not so in $1: $2"
    return 1
}

# job LINE...: writes job.yaml, a search on the published table that takes no time. A line takes the
# place of the one with its key, and comes last: it is line 5, and line 6 when it is a new key. A lone
# key takes its line away.
job() {
    local line key
    cat >job.yaml <<END
space: nas_bench_macro
accuracy: table:$TABLE#acc_top1_pct_mean
device: replay:$TABLE#macs_count
objectives: [accuracy, macs]
budget: {trials: 30}
END
    for line; do
        key=${line%%:*}
        sed -i "/^$key:/d" job.yaml
        [[ $line != *:* ]] || echo "$line" >>job.yaml
    done
}

# trials STUDY: all that a study says of its trials, but for the time they took.
trials() {
    /usr/bin/python3 - "$1" <<'END'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
for row in db.execute("SELECT number, code, digest, finish_order, status, message, detail, violation"
                      " FROM trial ORDER BY number"):
    print(*row)
for row in db.execute("SELECT * FROM value ORDER BY trial, position"):
    print(*row)
END
}
