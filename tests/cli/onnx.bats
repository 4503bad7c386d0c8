# What hwnas writes, as other programs see it: onnx's own checker, and ONNX Runtime's numbers.
load modules

MACRO="00000000 11111111 22222222 22212220 01201201 10210012"
ACCEL="e=1666666,k=3353553,l=1223341,se=1111111
    e=1111111,k=3333333,l=1111111,se=0000000
    e=4444444,k=5555555,l=1111111,se=1111111
    e=1464146,k=3535353,l=2121212,se=0101010
    e=6141414,k=5333335,l=1112111,se=1000001
    e=4114114,k=3553355,l=1311141,se=0011100
    e=1616161,k=5353535,l=3113113,se=1101011"

setup_file() {
    export MODELS=$BATS_FILE_TMPDIR
    local code
    for code in $MACRO; do
        "$HWNAS" export --space nas_bench_macro --arch "$code" --format onnx \
            --out "$MODELS/macro-$code.onnx"
    done
    for code in $ACCEL; do
        "$HWNAS" export --space accel_nasbench --arch "$code" --format onnx \
            --out "$MODELS/accel-$code.onnx"
    done
    for code in sigmoid hard_sigmoid tanh softmax; do
        "$HWNAS" export --space "$HWNAS_SRC/tests/data/every_operator.yaml" --batch 3 \
            --arch "c=8,gate=$code" --format onnx --out "$MODELS/operators-$code.onnx"
    done
    for code in groups=1,kernel=2,act=silu groups=4,kernel=3,act=prelu groups=16,kernel=4,act=relu6; do
        "$HWNAS" export --space "$HWNAS_SRC/tests/data/more_layers.yaml" --batch 2 \
            --arch "$code" --format onnx --out "$MODELS/layers-$code.onnx"
    done
    "$HWNAS" export --space "$HWNAS_SRC/tests/data/volumes.yaml" --batch 2 --arch kernel=3,stride=2 \
        --format onnx --out "$MODELS/layers-volumes.onnx"
    for code in hidden=12,heads=2,directions=1 hidden=16,heads=4,directions=2; do
        "$HWNAS" export --space "$HWNAS_SRC/tests/data/sequences.yaml" --batch 2 \
            --arch "$code" --format onnx --out "$MODELS/whole-$code.onnx"
        "$HWNAS" export --space "$HWNAS_SRC/tests/data/sequences.yaml:phase=step,positions=2" \
            --arch "$code" --format onnx --out "$MODELS/step-$code.onnx"
    done
    "$HWNAS" export --space nas_bench_macro --arch 12021021 --batch 3 --format onnx \
        --out "$MODELS/batch-3.onnx"
}

need_python() {
    need onnx
}

need_ort() {
    command -v node >/dev/null || skip "needs node"
    ort version >/dev/null 2>&1 || skip "needs onnxruntime-node: scripts/install-deps --check"
}

ort() {
    node "$HWNAS_SRC/tests/peers/ort_run.mjs" "$@"
}

# Both compute the same from the same random input.
agrees_with_ort() {
    local model=$1 base=$BATS_TEST_TMPDIR/$(basename "$1" .onnx)
    ort input "$model" "$base.in"
    "$HWNAS" run "$model" --device ref --input "$base.in" --output "$base.out"
    ort compare "$model" "$base.in" "$base.out"
}

@test "onnx.checker accepts every export, with shape inference" {
    need_python
    [ "$(ls "$MODELS"/*.onnx | wc -l)" -eq 26 ]
    /usr/bin/python3 - "$MODELS"/*.onnx <<'EOF'
import sys
import onnx

for path in sys.argv[1:]:
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert model.ir_version == 8 and model.opset_import[0].version == 17, path
    assert model.producer_name == "hwnas", path
    # Viewers show the shapes in between; they must be what ONNX infers.
    def shapes(m):
        return {v.name: [d.dim_value for d in v.type.tensor_type.shape.dim]
                for v in list(m.graph.value_info) + list(m.graph.output)}
    ours = shapes(model)
    assert len(ours) == len(model.graph.node), path
    del model.graph.value_info[:]
    assert shapes(onnx.shape_inference.infer_shapes(model, strict_mode=True)) == ours, path
EOF
}

@test "ONNX Runtime computes what ref computes: nas_bench_macro" {
    need_ort
    for code in $MACRO; do
        agrees_with_ort "$MODELS/macro-$code.onnx"
    done
}

@test "ONNX Runtime computes what ref computes: accel_nasbench" {
    need_ort
    for code in $ACCEL; do
        agrees_with_ort "$MODELS/accel-$code.onnx"
    done
}

@test "ONNX Runtime computes what ref computes: every operator" {
    need_ort
    local model
    for model in "$MODELS"/operators-*.onnx "$MODELS"/layers-*.onnx; do
        agrees_with_ort "$model"
    done
}

@test "ONNX Runtime computes what ref computes: sequences, tokens, several inputs and outputs" {
    need_ort
    local model
    for model in "$MODELS"/whole-*.onnx "$MODELS"/step-*.onnx; do
        agrees_with_ort "$model"
    done
}

@test "ONNX Runtime computes what ref computes: the spaces of sequences" {
    need_ort
    local gpt=vocabulary=60,length=8 space code model=$BATS_TEST_TMPDIR/model.onnx
    while read -r space code; do
        echo "$space"
        "$HWNAS" export --space "$space" --arch "$code" --format onnx --out "$model"
        agrees_with_ort "$model"
    done <<EOT
bert:length=10,vocabulary=50 layers=2,hidden=128,heads=4,ffn=42
gpt:$gpt,phase=decode embed=192,layers=10,heads=4.8.4.4.4.4.4.4.4.4,ratio=2322222222,bias=1
gpt:$gpt,positions=learned,blocks=serial,ffn=plain,head=tied \
embed=192,layers=10,heads=4.8.4.4.4.4.4.4.4.4,ratio=2322222222,bias=0
vit:resolution=64 patch=32,embed=192,depth=8,heads=3.4.3.3.6.3.3.3,ratio=4:3:3.5:4:4:3:3:4
lstm_text:length=12,vocabulary=30 embed=32,layers=2,cell=lstm,units=48.64,both=1,read=last
lstm_text:length=12,vocabulary=30 embed=32,layers=3,cell=gru,units=48.64.32,both=0,read=mean
lstm_text:length=12,vocabulary=30 embed=50,layers=0
EOT
}

@test "ONNX Runtime computes what ref computes: a batch of 3" {
    need_ort
    agrees_with_ort "$MODELS/batch-3.onnx"
}

@test "the same architecture gives the same file" {
    "$HWNAS" export --space nas_bench_macro --arch 22212220 --format onnx \
        --out "$BATS_TEST_TMPDIR/again.onnx"
    cmp "$BATS_TEST_TMPDIR/again.onnx" "$MODELS/macro-22212220.onnx"
}

@test "a model of another tool is read: defaults, Identity, float_data, open batch" {
    need_python
    need_ort
    /usr/bin/python3 - "$BATS_TEST_TMPDIR/other.onnx" <<'EOF'
import random
import sys
import onnx
from onnx import TensorProto, helper

random.seed(1)
constants = []
def constant(name, *dims):
    n = 1
    for dim in dims:
        n *= dim
    values = [random.uniform(0.1, 0.5) for _ in range(n)]
    constants.append(helper.make_tensor(name, TensorProto.FLOAT, dims, values))
    return name

nodes = [
    helper.make_node("Conv", ["x", constant("w", 6, 3, 3, 3), constant("b", 6)], ["c"]),
    helper.make_node("BatchNormalization",
                     ["c"] + [constant(s, 6) for s in ("scale", "shift", "mean", "var")], ["n"]),
    helper.make_node("Identity", ["n"], ["i"]),
    helper.make_node("HardSigmoid", ["i"], ["h"], name="gate"),
    helper.make_node("Mul", ["i", "h"], ["m"]),
    helper.make_node("Conv", ["m", constant("w2", 6, 2, 3, 2)], ["c2"], group=3, strides=[2, 1],
                     pads=[1, 0, 2, 1], dilations=[1, 2]),
    helper.make_node("GlobalAveragePool", ["c2"], ["g"]),
    helper.make_node("Flatten", ["g"], ["f"]),
    helper.make_node("Gemm", ["f", constant("w3", 4, 6), constant("b3", 4)], ["y"], transB=1),
]
graph = helper.make_graph(
    nodes, "other",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, 9, 8])] +
    [helper.make_tensor_value_info(c.name, TensorProto.FLOAT, c.dims) for c in constants],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4]),
     helper.make_tensor_value_info("m", TensorProto.FLOAT, ["N", 6, 7, 6])],
    constants)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=3)
onnx.checker.check_model(model)
onnx.save(model, sys.argv[1])
EOF
    agrees_with_ort "$BATS_TEST_TMPDIR/other.onnx"
}

@test "what cannot be read is refused with exit code and reason" {
    echo garbage >"$BATS_TEST_TMPDIR/garbage.onnx"
    run "$HWNAS" run "$BATS_TEST_TMPDIR/garbage.onnx" --device ref \
        --input /dev/null --output "$BATS_TEST_TMPDIR/out.bin"
    [ "$status" -eq 2 ]
    [[ $output == *garbage.onnx*"not an ONNX model"* ]]
    [ ! -e "$BATS_TEST_TMPDIR/out.bin" ]
}
