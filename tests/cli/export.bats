# `hwnas export`: networks of a study or a space as files.
load helpers

setup_file() {
    export STUDY=$BATS_FILE_TMPDIR/s.db
    "$HWNAS" search "$HWNAS_SRC/examples/replay-nb-macro.yaml" --trials 60 --study "$STUDY" --json \
        >"$BATS_FILE_TMPDIR/s.json"
}

# digest_of FILE: of the network that a YAML file has.
digest_of() {
    "$HWNAS" space show "$1" --json >shown
    json shown "d['digest']"
}

@test "the winner and any trial of a study, in every format" {
    local format digest arch
    for format in onnx pytorch yaml; do
        ends 0 export "$STUDY" --format $format --out winner.$format
        [ ! -s out ]
        [ -s winner.$format ]
        ends 0 export "$STUDY" --best -f $format -o best.$format
        cmp winner.$format best.$format
        ends 0 export "$STUDY" --trial 7 --format $format --out 7.$format
        not cmp -s winner.$format 7.$format
        arch=$(json "$BATS_FILE_TMPDIR/s.json" "d['winner']['arch']")
        ends 0 export --space nas_bench_macro --arch "$arch" --format $format --out direct.$format
        cmp winner.$format direct.$format
    done
    digest=$(json "$BATS_FILE_TMPDIR/s.json" "d['winner']['digest']")
    [ "$(digest_of best.yaml)" = "$digest" ]
    /usr/bin/python3 -m py_compile best.pytorch
}

@test "what was written is told to programs" {
    ends 0 export "$STUDY" --format onnx --out net.onnx --json
    is out "d == {'format': 'hwnas.export', 'version': 1, 'of': '$STUDY', 'file': 'net.onnx', 'as': 'onnx', 'note': None}"
    ends 0 export net.onnx --format pytorch --out net.py --json
    is out "d['of'] == 'net.onnx' and 'net.safetensors' in d['note']"
    refuses 2 "not UTF-8" export net.onnx --format pytorch --out $'net\xff.py' --json
}

@test "a YAML file is the network: count, check, and export agree" {
    local code digest
    while read -r space code; do
        ends 0 export --space "$space" --arch "$code" --format yaml --out net.yaml
        ends 0 space check net.yaml
        ends 0 space count net.yaml --json
        is out "d['encodings'] == d['distinct'] == 1"
        ends 0 space show "$space" --arch "$code" --json
        digest=$(json out "d['digest']")
        [ "$(digest_of net.yaml)" = "$digest" ]
        ends 0 export --space net.yaml --format onnx --out again.onnx
        ends 0 export --space "$space" --arch "$code" --format onnx --out first.onnx
        [ "$(wc -c <again.onnx)" -ge $(($(wc -c <first.onnx) * 99 / 100)) ]
    done <<'END'
nas_bench_macro 00000000
nas_bench_macro 22212220
nas_bench_macro 01201201
accel_nasbench e=1666666,k=3353553,l=1223341,se=1111111
accel_nasbench e=1464146,k=3535353,l=2121212,se=0101010
END
}

# macs_of FILE: of the network that an ONNX file has.
macs_of() {
    "$HWNAS" profile "$1" --device null --json >profiled
    json profiled "d['rows'][0]['macs']"
}

@test "a folded file has no branch that ends in zeros" {
    # The 3x3 convolution of each cell goes to nodes that take none of it.
    ends 0 export --space nas_bench_201 --arch 310101 --format onnx --out raw.onnx
    ends 0 export --space nas_bench_201 --arch 310101 --format onnx --fold --out folded.onnx
    ends 0 export --space nas_bench_201 --arch 110101 --format onnx --out without.onnx
    [ "$(macs_of raw.onnx)" -gt "$(macs_of folded.onnx)" ]
    [ "$(macs_of folded.onnx)" = "$(macs_of without.onnx)" ]
    ends 2 export --space nas_bench_201 --arch 310101 --format pytorch --fold --out net.py
    grep -q -- "--fold goes with --format onnx" err
}

@test "a search writes what its job asks for" {
    job "export: {onnx: a.onnx, pytorch: b.py, yaml: c.yaml}"
    ends 0 search job.yaml --json
    [ "$(<err)" = $'wrote a.onnx\nwrote b.py\nwrote c.yaml' ]
    [ "$(digest_of c.yaml)" = "$(json out "d['winner']['digest']")" ]
    ends 0 export job.db --format pytorch --out d.py
    cmp b.py d.py
}

@test "an unwritable path: exit 1, no partial file" {
    local format
    for format in onnx pytorch yaml; do
        refuses 1 "nowhere/x: cannot write the file: No such file" \
            export "$STUDY" --format $format --out nowhere/x
        refuses 1 "/dev/null/x: cannot write the file: Not a directory" \
            export "$STUDY" --format $format --out /dev/null/x
        mkdir -p directory
        refuses 1 "directory: cannot write the file: Is a directory" \
            export "$STUDY" --format $format --out directory
    done
    [ "$(ls)" = $'directory\nerr\nout' ]
    [ -z "$(ls directory)" ]
    echo old >full.onnx
    # A file system that is full: the old file stays.
    (
        ulimit -f 8
        trap '' XFSZ
        ends 1 export "$STUDY" --format onnx --out full.onnx
    )
    says err "full.onnx: cannot write the file"
    [ "$(<full.onnx)" = old ]
    [ "$(ls full*)" = full.onnx ]
}

@test "what cannot be meant" {
    refuses 2 "no format 'onx'*did you mean 'onnx'" export "$STUDY" --format onx --out x
    refuses 2 "no format 'gguf'*onnx, pytorch, yaml" export "$STUDY" --format gguf --out x
    refuses 2 "--format is missing" export "$STUDY" --out x
    refuses 2 "--out is missing" export "$STUDY" --format onnx
    refuses 2 "--dtype is f32, or s8, w8 or w4 with --format onnx" export "$STUDY" -f pytorch --dtype s8 -o x
    refuses 2 "no precision 'int8'*" export "$STUDY" --format onnx --dtype int8 --out x
    refuses 2 "has 60 trials, none is 60" export "$STUDY" --trial 60 --format onnx --out x
    refuses 2 "nope.db: there is no such study" export nope.db --format onnx --out x
    refuses 2 "which network of nas_bench_macro*--arch" \
        export --space nas_bench_macro --format onnx --out x
    refuses 2 "'3' is not a value of 'op'" \
        export --space nas_bench_macro --arch 30000000 --format onnx --out x
    refuses 2 "one of them" export "$STUDY" --space nas_bench_macro --format onnx --out x
    refuses 2 "--arch goes with --space" export "$STUDY" --arch 00000000 --format onnx --out x
    refuses 2 "exclude each other" export "$STUDY" --best --trial 3 --format onnx --out x
    refuses 2 "--batch must be at most" export "$STUDY" --batch 9999999 --format onnx --out x
    "$HWNAS" export --space mnist_mlp --format onnx --out net.onnx
    refuses 2 "--fold goes with a network of a study or a space, not with an ONNX file" \
        export net.onnx --format onnx --fold --out x
    refuses 2 "an ONNX file is written as pytorch, not as onnx*hint: or as onnx: with --dtype mixed, w8*" \
        export net.onnx --format onnx --out x
    [ ! -e x ]
}

@test "a study without a winner: exit 3; its trials can be exported all the same" {
    job "constraints: [macs <= 7.8 M, accuracy >= 90 %]"
    ends 3 search job.yaml
    refuses 3 "job.db: no trial of the study meets the constraints" \
        export job.db --format onnx --out x.onnx
    [ ! -e x.onnx ]
    ends 0 export job.db --trial 0 --format onnx --out x.onnx
    [ -s x.onnx ]
}

# s8_in FILE: how many nodes of an ONNX file quantize.
s8_in() {
    grep -ac DequantizeLinear "$1" || true
}

@test "a network that was measured in s8 is written in s8, or it is said that it is not" {
    job "device: null" "dtype: s8" "objectives: [accuracy, latency.p50]" "budget: {trials: 4}" \
        "measure: {seconds: 0.05}" "export: {onnx: a.onnx, pytorch: b.py, yaml: c.yaml}"
    ends 0 search job.yaml
    [ "$(s8_in a.onnx)" -gt 0 ]
    says err "wrote a.onnx, which is in s8 (QDQ)"
    says err "wrote b.py, which is in f32, where the network was measured in s8"
    says err "wrote c.yaml, which is in f32"
    ends 0 export job.db --format onnx --out d.onnx
    cmp a.onnx d.onnx
    says err "note: d.onnx is in s8"
    ends 0 export job.db --format onnx --dtype f32 --out e.onnx
    [ "$(s8_in e.onnx)" = 0 ]
    [ ! -s err ]
    ends 0 export job.db --format pytorch --out f.py
    says err "note: f.py is in f32, where the network was measured in s8"
}
