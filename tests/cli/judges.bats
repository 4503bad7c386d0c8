# Networks as torchvision and PyTorch export them (tests/peers/judge_models.py): each is profiled, and equals
# ONNX Runtime within 1e-4 of its largest value.
load helpers

@test "judge models: all are profiled, and equal ONNX Runtime" {
    local ort=$HWNAS_SRC/tests/peers/ort_run.mjs model n
    need torch torchvision onnx
    command -v node >/dev/null || skip "needs node"
    node "$ort" version >/dev/null 2>&1 || skip "needs onnxruntime-node: scripts/install-deps --check"
    /usr/bin/python3 "$HWNAS_SRC/tests/peers/judge_models.py" .
    for model in *.onnx; do
        "$HWNAS" run "$model" --device cpu --input "${model%.onnx}.in" --output "${model%.onnx}.out"
    done
    node "$ort" compare-all .
    n=$(ls -- *.onnx | wc -l)
    [ "$n" -ge 20 ]
    "$HWNAS" profile ./*.onnx --threads 1 --seconds 0.01 --json >out
    is out "len(d['rows']) == $n and all(r['status'] == 'ok' and r['p50_seconds'] > 0 for r in d['rows'])"
}
