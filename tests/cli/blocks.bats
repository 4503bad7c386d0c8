# Blocks that people build networks of, on cpu and on ref against ONNX Runtime: tests/peers/blocks.py.

bats_require_minimum_version 1.5.0
load modules

setup() {
    need onnx
    command -v node >/dev/null || skip "needs node"
    node "$HWNAS_SRC/tests/peers/ort_run.mjs" version >/dev/null 2>&1 ||
        skip "needs onnxruntime-node: scripts/install-deps --check"
}

check_on() { # DEVICE
    local model base
    cd "$BATS_TEST_TMPDIR"
    /usr/bin/python3 "$HWNAS_SRC/tests/peers/blocks.py" .
    for model in *.onnx; do
        base=${model%.onnx}
        "$HWNAS" run "$model" --device "$1" --input "$base.in" --output "$base.out"
    done
    node "$HWNAS_SRC/tests/peers/ort_run.mjs" compare-all .
}

@test "cpu computes blocks as ONNX Runtime does" {
    check_on cpu
}

@test "ref computes blocks as ONNX Runtime does" {
    check_on ref
}
