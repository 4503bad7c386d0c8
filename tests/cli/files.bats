# What a name on the command line may lead to, for every option that reads or writes a file: pipes,
# devices, links, directories, full disks, files of the wrong size or encoding. The program ends, says
# why in one message, and leaves what is there as it is and nothing beside it.
load helpers

# Files that every command below is happy with, each made once.
setup_file() {
    export GOOD=$BATS_FILE_TMPDIR/good
    mkdir "$GOOD"
    cd "$GOOD" || exit
    XDG_CACHE_HOME=$BATS_FILE_TMPDIR/cache
    export XDG_CACHE_HOME
    cp "$HWNAS_SRC/search_spaces/nas_bench_macro.yaml" space.yaml
    head -n 40 "$TABLE" >table.csv
    echo 'hwnas: 1
name: tiny
inputs: {x: [batch, 4]}
choices: {w: [2, 3, 4, 5]}
network: [{linear: {out: w}}]' >tiny.yaml
    job
    sed -i "/^budget/s/.*/budget: {trials: 3}/" job.yaml
    "$HWNAS" search job.yaml --study study.db
    { cat job.yaml && echo "export: {onnx: '@'}"; } >exporting.yaml
    "$HWNAS" export --space nas_bench_macro --arch 00000000 --format onnx --out net.onnx
    "$HWNAS" profile net.onnx --device null --seconds 0.01 --save profile.json
    echo 'currency: USD
devices: {"null": 1}' >prices.yaml
    "$HWNAS" predictor fit nas_bench_macro table.csv --target acc_top1_pct_mean --kind gp --folds 3 --out fitted.json
    head -c 12288 /dev/zero >input.bin
    npy '1, 3, 32, 32' 12288 >samples.npy
    npy '1,' 4 >labels.npy
} >&2

# npy SHAPE BYTES: a file of NumPy, of zeros in fp32.
npy() {
    printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': ($1), }"
    head -c "$2" /dev/zero
}

# inputs FUNCTION: calls it with each option that reads: a good file and the command, where @ is a file.
inputs() {
    local search="search --space nas_bench_macro --objectives accuracy,macs --trials 2 --seconds 0.01 --study new.db"
    while IFS='|' read -r good command; do
        "$1" "$good" $command || return
    done <<END
space.yaml|space check @
space.yaml|space sample @ -n 2
job.yaml|search @ --study new.db --trials 2
table.csv|$search --accuracy table:@#acc_top1_pct_mean --device null
table.csv|$search --accuracy command:/bin/true#cache=@ --device null --dry-run
table.csv|$search --accuracy nas_bench_macro_cifar10 --device replay:@#macs_count --strategy random
fitted.json|$search --accuracy @ --device null --dry-run
study.db|$search --accuracy nas_bench_macro_cifar10 --device null --dry-run --warm-start @
study.db|study show @
study.db|explain @
study.db|report @ --out new.html
study.db|report @ --json
profile.json|report @ --out new.html
study.db|export @ --format yaml --out new.yaml
net.onnx|export @ --format pytorch --out new.py
table.csv|predictor fit nas_bench_macro @ --target acc_top1_pct_mean --kind gp --folds 3 --out new.json
fitted.json|predictor eval @ nas_bench_macro $GOOD/table.csv --target acc_top1_pct_mean
table.csv|predictor eval $GOOD/fitted.json nas_bench_macro @ --target acc_top1_pct_mean
table.csv|predictor suggest nas_bench_macro -n 2 --data @ --target acc_top1_pct_mean
table.csv|predictor import @ --space nas_bench_macro --target acc_top1_pct_mean --into new.csv
net.onnx|profile @ --device null --seconds 0.01
net.onnx|run @ --device ref --input $GOOD/input.bin --output new.bin
input.bin|run $GOOD/net.onnx --device ref --input @ --output new.bin
samples.npy|run $GOOD/net.onnx --device ref --input @ --output new.npy
net.onnx|evaluate @ --data $GOOD/samples.npy --labels $GOOD/labels.npy
samples.npy|evaluate $GOOD/net.onnx --data @ --labels $GOOD/labels.npy
samples.npy|export $GOOD/net.onnx --format onnx --dtype s8 --data @ --out new.onnx
labels.npy|evaluate $GOOD/net.onnx --data $GOOD/samples.npy --labels @
net.onnx|evaluate $GOOD/net.onnx --data $GOOD/samples.npy --against @
profile.json|compare net --profile @
prices.yaml|compare net --profile $GOOD/profile.json --price @
profile.json|compare $GOOD/net.onnx --baseline @ --seconds 0.01
END
}

# outputs FUNCTION: calls it with each option that writes a file, where @ is the file.
outputs() {
    while read -r command; do
        "$1" $command || return
    done <<END
export --space nas_bench_macro --arch 00000000 --format onnx --out @
export --space nas_bench_macro --arch 00000000 --format pytorch --out @
export --space nas_bench_macro --arch 00000000 --format yaml --out @
export $GOOD/study.db --format yaml --out @
export $GOOD/net.onnx --format onnx --dtype s8 --data $GOOD/samples.npy --out @
report $GOOD/study.db --out @
report $GOOD/study.db --csv --out @
report $GOOD/study.db --markdown --out @
report $GOOD/study.db --svg curve --out @
report $GOOD/profile.json --png sweep --out @
search exporting.yaml --study job.db
profile $GOOD/net.onnx --device null --seconds 0.01 --save @
compare $GOOD/net.onnx --device null --batch 1 --threads 1 --seconds 0.01 --save @
predictor fit nas_bench_macro $GOOD/table.csv --target acc_top1_pct_mean --kind gp --folds 3 --out @
run $GOOD/net.onnx --device ref --input $GOOD/input.bin --output @
END
}

# attempt FILE COMMAND...: runs it with FILE for @, there and in exporting.yaml; its exit code is in CODE. A message is one line, with
# one more for the hint; the program ends by itself.
attempt() {
    local file=$1 lines
    shift
    sed "s|@|$file|" "$GOOD/exporting.yaml" >exporting.yaml
    CODE=0
    timeout -k 5 60 "$HWNAS" "${@//@/$file}" >out 2>err </dev/null || CODE=$?
    lines=$(grep -vcE '^(wrote |hwnas: note: )' err || true)
    if [ $CODE -gt 3 ] || { [ $CODE -ne 0 ] && [ "$lines" -gt 2 ]; } ||
        { [ $CODE -ne 0 ] && ! grep -q '^hwnas: ' err; } ||
        grep -qE 'not an error|disk I/O|constraint failed|temporarily unavailable' err; then
        echo "hwnas ${*//@/$file}: exit code $CODE"
        cat err
        return 1
    fi
}

# is_kept FILE KIND: the file is of that kind and mode still, and nothing lies beside it that is not named.
is_kept() {
    [ "$(stat -c '%F %a' "$1")" = "$2" ] && return
    echo "$1 is now $(stat -c '%F %a' "$1"), it was $2"
    return 1
}

# has_litter: a file that is neither the tests' nor what was asked for.
no_litter() {
    local litter
    litter=$(find . -name '.hwnas*' -o -name '*.tmp*' -o -name '*-new*' -o -name '*-lock' -o -name '*-journal')
    [ ! "$litter" ] && return
    echo "left behind: $litter"
    return 1
}

# ---- Reading ----

refuse_input() {
    local good=$1 file=hostile.${1##*.} kind
    shift
    rm -rf new.* "$file"
    "$MAKE_HOSTILE" "$file" "$GOOD/$good"
    kind=$(stat -c '%F %a' "$file")
    attempt "$PWD/$file" "$@" || return
    is_kept "$file" "$kind" && no_litter || return
    [ $CODE -ne 0 ] || [ "${MAY_PASS-}" ] && return
    echo "hwnas $*: took what $MAKE_HOSTILE made"
    return 1
}

@test "a pipe is refused" {
    MAKE_HOSTILE=mkfifo_at inputs refuse_input
}
mkfifo_at() { mkfifo "$1"; }

@test "a directory is refused" {
    MAKE_HOSTILE=mkdir_at inputs refuse_input
}
mkdir_at() { mkdir "$1"; }

@test "an endless device is refused" {
    MAKE_HOSTILE=link_zero inputs refuse_input
}
link_zero() { ln -s /dev/zero "$1"; }

@test "a file that is not there is refused" {
    MAKE_HOSTILE=link_nothing inputs refuse_missing
}
refuse_missing() { [[ $* == *cache=* ]] || refuse_input "$@"; } # a cache is made
link_nothing() { ln -s nowhere "$1"; }

@test "a file of 3 GB is refused before it is read" {
    MAKE_HOSTILE=make_sparse inputs refuse_input
}
make_sparse() { truncate -s 3G "$1"; }

@test "an empty file is refused, or has nothing in it" {
    MAY_PASS=yes MAKE_HOSTILE=make_empty inputs refuse_input
}
make_empty() { : >"$1"; }

@test "half a file ends with a message, or is enough" {
    MAY_PASS=yes MAKE_HOSTILE=make_half inputs refuse_input
}
make_half() { head -c $(($(stat -c %s "$2") / 2)) "$2" >"$1"; }

@test "UTF-16 is refused as what it is" {
    MAKE_HOSTILE=make_wide inputs refuse_wide
}
make_wide() { iconv -f UTF-8 -t UTF-16 "$2" >"$1"; }
refuse_wide() {
    [[ $1 == *.@(yaml|json|csv) && $* != *cache=* ]] || return 0
    refuse_input "$@" && says err "UTF-16*UTF-8"
}

@test "a byte order mark before a text makes no difference" {
    inputs take_mark
}
take_mark() {
    local good=$1 file=marked.${1##*.} with
    [[ $good == *.@(yaml|json|csv) ]] || return 0
    shift
    { printf '\xef\xbb\xbf' && cat "$GOOD/$good"; } >"$file"
    rm -f new.*
    attempt "$PWD/$file" "$@"
    with=$CODE
    rm -f new.*
    attempt "$GOOD/$good" "$@"
    [ $CODE -eq "$with" ] && return
    echo "hwnas $*: exit code $with with a byte order mark, $CODE without"
    return 1
}

@test "standard input is said to be what it is" {
    refuses 2 "/dev/stdin: this is a device" space check /dev/stdin
    local got=0
    echo "hwnas: 1" | "$HWNAS" space check /dev/stdin >out 2>err || got=$?
    [ $got -eq 2 ]
    says err "/dev/stdin: this is a pipe, a regular file was expected*hint: write it to a file first"
    "$HWNAS" space check /dev/stdin <"$GOOD/space.yaml"
}

@test "weights in a pipe beside the model" {
    need onnx
    /usr/bin/python3 - "$GOOD/net.onnx" <<'END'
import sys, onnx
onnx.save(onnx.load(sys.argv[1]), "apart.onnx", save_as_external_data=True, location="apart.bin", size_threshold=0)
END
    rm apart.bin
    mkfifo apart.bin
    attempt apart.onnx profile @ --device null --seconds 0.01
    [ $CODE -ne 0 ]
    says err "apart.bin: this is a pipe"
}

# ---- Writing ----

# write_to COMMAND...: with TARGET for @. Where it ends well, TARGET is $LEADS_TO, or itself, with something in it.
write_to() {
    local kind
    rm -rf job.db target*
    "$MAKE_TARGET" target
    kind=$(stat -c '%F %a' target)
    attempt "$PWD/target" "$@" || return
    is_kept target "$kind" && no_litter || return
    [ $CODE -eq "${WANT_CODE-0}" ] || {
        echo "hwnas $*: exit code $CODE"
        cat err
        return 1
    }
    [ ! "${LEADS_TO-}" ] || [ -s "$LEADS_TO" ]
}

@test "a file keeps its mode" {
    MAKE_TARGET=make_private LEADS_TO=target outputs write_to
}
make_private() { echo old >"$1" && chmod 600 "$1"; }

@test "a symbolic link is followed" {
    MAKE_TARGET=make_link LEADS_TO=target.real outputs write_to
}
make_link() { echo old >"$1.real" && ln -s "$1.real" "$1"; }

@test "a symbolic link to what is not there yet is followed" {
    MAKE_TARGET=make_dangling LEADS_TO=target.real outputs write_to
}
make_dangling() { ln -s "$1.real" "$1"; }

@test "a pipe that nobody reads from is refused" {
    MAKE_TARGET=mkfifo_at WANT_CODE=1 outputs write_to
    says err "nobody reads from this pipe"
}

# A node of our own where we may make one: a mistake would cost the machine its /dev/null.
make_null() { mknod -m 666 "$1" c 1 3 2>/dev/null || ln -s /dev/null "$1"; }
make_full() { mknod -m 666 "$1" c 1 7 2>/dev/null || ln -s /dev/full "$1"; }

@test "a device is written to" {
    MAKE_TARGET=make_null outputs write_to
    [ -c /dev/null ]
}

@test "a device that is full" {
    MAKE_TARGET=make_full WANT_CODE=1 outputs write_to
    says err "No space left on device*hint: make room"
}

# The old file is on a disk that is full, or may only be read.
write_on_disk() {
    rm -rf job.db
    attempt "$PWD/disk/target" "$@" || return
    [ $CODE -eq 1 ] && [ "$(cat disk/target)" = old ] && [ "$(ls -A disk)" = "$ON_DISK" ] && return
    echo "hwnas $*: exit code $CODE"
    ls -lA disk
    return 1
}

@test "an output that cannot be written is refused before the work, not after it" {
    # The input is not there: who reads it first complains of that.
    refuses 1 "/none/out.json: cannot write the file" predictor fit nas_bench_macro none.csv --target a --out /none/out.json
    refuses 1 "/none/out.csv: cannot write the file" calibrate nas_bench_macro --from none.csv --out /none/out.csv
    refuses 1 "/none/out.npy: cannot write the file" run none.onnx --input none.npy --output /none/out.npy
    refuses 1 "/none/out.html: cannot write the file" report none.db --out /none/out.html
    refuses 1 "/none/out.onnx: cannot write the file" export none.db --format onnx --out /none/out.onnx
    refuses 1 "/none/out.yaml: cannot write the file" optimize none.onnx --data none.npz --out /none/out
    refuses 1 "/none/out.json: cannot write the file" profile mnist_mlp --device null --runs 1 --save /none/out.json
}

@test "a disk that is full keeps the old file" {
    mkdir disk
    mount -t tmpfs -o size=16k none disk 2>/dev/null || skip "no file system can be mounted here"
    echo old >disk/target
    head -c 1M /dev/zero >disk/filler 2>/dev/null || true
    ON_DISK=$(printf 'filler\ntarget') outputs write_on_disk || { umount disk && false; }
    umount disk
}

@test "a folder that may not be written keeps the old file" {
    mkdir disk
    echo old >disk/target
    if [ "$(id -u)" = 0 ]; then
        mount -t tmpfs none disk 2>/dev/null || skip "no file system can be mounted here"
        echo old >disk/target
        mount -o remount,ro disk
    else
        chmod 555 disk
    fi
    ON_DISK=target outputs write_on_disk || { umount disk && false; }
    [ "$(id -u)" != 0 ] || umount disk
    chmod 755 disk
}

# ---- One file for two purposes ----

@test "an export does not go over a file of its job" {
    cp "$GOOD/table.csv" t.csv
    cp "$GOOD/space.yaml" s.yaml
    job "space: s.yaml" "accuracy: table:t.csv#acc_top1_pct_mean" "device: replay:t.csv#macs_count" "strategy: random"
    ln s.yaml same.yaml
    ln -s t.csv link.csv
    local before
    before=$(cat s.yaml t.csv | cksum)
    while read -r path what; do
        { cat job.yaml && echo "export: {yaml: $path}"; } >exports.yaml
        refuses 2 "exports.yaml:7:16: the export $path would be written over the $what" \
            search exports.yaml --study job.db
    done <<END
exports.yaml job
./exports.yaml job
s.yaml space
same.yaml space
t.csv file of the accuracy
link.csv file of the accuracy
job.db study
END
    job "export: {yaml: a.txt, onnx: ./a.txt}"
    refuses 2 "would be written over the other export" search job.yaml
    [ "$(cat s.yaml t.csv | cksum)" = "$before" ]
    [ ! -e job.db ]
    refuses 2 "s.yaml: this would be written over what is read" \
        export --space s.yaml --arch 00000000 --format yaml --out s.yaml
    refuses 2 "/t.csv: this would be written over what is read" \
        predictor fit nas_bench_macro t.csv --target acc_top1_pct_mean --out "$PWD/t.csv"
}

@test "a path that is not UTF-8" {
    local folder=$'f\xff'
    mkdir "$folder"
    cp "$GOOD/space.yaml" "$folder/s.yaml"
    ends 2 search --space "$folder/s.yaml" --accuracy "table:$TABLE#acc_top1_pct_mean" \
        --device "replay:$TABLE#macs_count" --objectives accuracy,macs --trials 2 --study new.db
    says err "not UTF-8*hint: "
    [ ! -e new.db ]
    cp "$TABLE" "$folder/t.csv"
    refuses 2 "not UTF-8*hint: " search --space nas_bench_macro --accuracy nas_bench_macro_cifar10 \
        --device "replay:$folder/t.csv#macs_count" --objectives accuracy,macs --trials 2 --study new.db \
        --strategy random
    [ ! -e new.db ]
}

@test "standard output that does not wait" {
    /usr/bin/python3 - "$GOOD/study.db" <<'END'
import os, subprocess, sys, time
r, w = os.pipe()
os.set_blocking(w, False)
try:
    while True:
        os.write(w, b"x" * 4096)
except BlockingIOError:
    pass
p = subprocess.Popen([os.environ["HWNAS"], "study", "show", sys.argv[1]], stdout=w, stderr=subprocess.PIPE)
os.close(w)
time.sleep(0.3)
while os.read(r, 65536):
    pass
err = p.stderr.read()
assert p.wait() == 0, err
END
}

@test "a dry run finds what a search could not write, and threads that take turns, where the job says so" {
    try() { # try LINE...: job.yaml with these
        printf '%s\n' 'space: nas_bench_macro' 'device: cpu' 'objectives: [latency]' 'budget: {trials: 2}' 'measure: {seconds: 0.01}' "$@" >job.yaml
    }
    local how
    for how in "" --dry-run; do
        try 'study: none/s.db'
        refuses 1 "*none/s.db*" search job.yaml $how
        try 'export: {onnx: none/best.onnx}'
        refuses 1 "job.yaml:6:16: none/best.onnx: *" search job.yaml $how
    done
    try 'study: none/s.db'
    refuses 1 "job.yaml:6:8: none/s.db: *" search job.yaml --dry-run
    refuses 1 "--study:1:1: */none/s.db: *" search job.yaml --dry-run --study "$PWD/none/s.db"
    try 'threads: 1000'
    ends 0 search job.yaml --dry-run
    says err "*job.yaml:6:10: 1000 threads on * take turns*"
    [ ! -e job.db ]
}
