# The device cpu against ONNX Runtime, in fp32: the same file, the same input, within 1e-4 of the largest
# value. `make check-long` takes the large networks of the zoo and every opset as well.

bats_require_minimum_version 1.5.0
load modules

CHEAP="mnist_mlp mnist_cnn cifar10_cnn imdb_fasttext imdb_bilstm lstm_text_generation resnet32_cifar
    mobilenet_v3_large deit_tiny"
# nasnet_large and vgg16 would take minutes for nothing new: theirs are nasnet_mobile's and cifar10_cnn's operators.
LONG="mobilenet_v2 efficientnet_b0 efficientnet_b2 ssd_mobilenet nasnet_mobile resnet50 resnet152 yolov5s
    yolov7_tiny vit_b16 bert_base:length=64 gpt2_small:length=64 gpt2_small:phase=decode"

setup() {
    command -v node >/dev/null || skip "needs node"
    ort version >/dev/null 2>&1 || skip "needs onnxruntime-node: scripts/install-deps --check"
}

ort() {
    node "$HWNAS_SRC/tests/peers/ort_run.mjs" "$@"
}

@test "what PyTorch exports" {
    need torch
    local opset=(--opset 17)
    [ -z "${HWNAS_LONG:-}" ] || opset=()
    /usr/bin/python3 "$HWNAS_SRC/tests/peers/torch_export.py" "$HWNAS" cpu \
        --keep "$BATS_TEST_TMPDIR" "${opset[@]}"
    ort compare-all "$BATS_TEST_TMPDIR"
}

@test "the zoo" {
    local name base names=$CHEAP
    [ -z "${HWNAS_LONG:-}" ] || names="$CHEAP $LONG"
    for name in $names; do
        base=$BATS_TEST_TMPDIR/model
        "$HWNAS" export --space "$name" --format onnx --out "$base.onnx"
        ort input "$base.onnx" "$base.in"
        "$HWNAS" run "$base.onnx" --device cpu --input "$base.in" --output "$base.out"
        echo "$name: $(ort compare "$base.onnx" "$base.in" "$base.out")" >>"$BATS_TEST_TMPDIR/said"
    done
    cat "$BATS_TEST_TMPDIR/said"
}

# Where a value lies between two bytes the engines may take different ones, and what follows differs a little.
@test "quantised networks, from our files" {
    local name base
    for name in mnist_mlp mnist_cnn resnet32_cifar mobilenet_v2; do
        base=$BATS_TEST_TMPDIR/$name
        "$HWNAS" export --space "$name" --format onnx --dtype s8 --out "$base.onnx"
        ort input "$base.onnx" "$base.in"
        "$HWNAS" run "$base.onnx" --device cpu --input "$base.in" --output "$base.out"
        ort compare "$base.onnx" "$base.in" "$base.out" 0.05
    done
}

# ONNX Runtime reads the weights as we write them, and multiplies with them in loops of its own.
@test "weights of 4 and 8 bits, from our files" {
    local base dtype
    for dtype in w4 w8; do
        base=$BATS_TEST_TMPDIR/mlp_$dtype
        "$HWNAS" export --space mnist_mlp --format onnx --dtype "$dtype" --out "$base.onnx"
        ort input "$base.onnx" "$base.in"
        "$HWNAS" run "$base.onnx" --device cpu --input "$base.in" --output "$base.out"
        ort compare "$base.onnx" "$base.in" "$base.out"
    done
}

@test "weights of 4 and 8 bits, from files of others" {
    local model
    need onnx
    cd "$BATS_TEST_TMPDIR"
    /usr/bin/python3 "$HWNAS_SRC/tests/peers/packed_models.py" .
    for model in *.onnx; do
        ort input "$model" "${model%.onnx}.in"
        "$HWNAS" run "$model" --device cpu --input "${model%.onnx}.in" --output "${model%.onnx}.out"
    done
    ort compare-all .
}

@test "weights of 4 and 8 bits that are said wrongly: the node, and what is wrong" {
    local what
    need onnx
    cd "$BATS_TEST_TMPDIR"
    /usr/bin/python3 "$HWNAS_SRC/tests/peers/packed_models.py" . broken
    for what in bits block_size B K N scales g_idx; do
        run "$HWNAS" profile "$what.onnx" --device cpu --seconds 0.01
        [[ "$status" != 0 && "$output" == *"'y' (MatMulNBits)"*"$what"* ]] || { echo "$what: $output" && return 1; }
    done
    run -2 "$HWNAS" profile bias.onnx --device cpu --seconds 0.01
    [[ "$output" == *"'y' (MatMulNBits)"* ]]
}

# same_as_ort SCRIPT: models that it makes, with inputs, on `ref` and on `cpu`.
same_as_ort() {
    local model device
    need onnx
    cd "$BATS_TEST_TMPDIR"
    /usr/bin/python3 "$HWNAS_SRC/tests/peers/$1" .
    for device in ref cpu; do
        for model in *.onnx; do
            "$HWNAS" run "$model" --device "$device" --input "${model%.onnx}.in" --output "${model%.onnx}.out"
        done
        ort compare-all .
    done
}

@test "operators that ONNX Runtime's optimiser writes" { same_as_ort contrib_models.py; }

@test "images sampled by a grid, or made smaller with antialias; tiles; sequences of other lengths" {
    same_as_ort newer_models.py
}

@test "files that ONNX Runtime's optimiser has rewritten" {
    local name base=$BATS_TEST_TMPDIR/net
    for name in resnet32_cifar deit_tiny imdb_bilstm; do
        "$HWNAS" export --space "$name" --format onnx --out "$base.onnx"
        ort optimize "$base.onnx" "$base.fast.onnx"
        grep -q com.microsoft "$base.fast.onnx"
        ort input "$base.onnx" "$base.in"
        "$HWNAS" run "$base.fast.onnx" --device cpu --input "$base.in" --output "$base.out"
        ort compare "$base.onnx" "$base.in" "$base.out"
    done
}

# On the CPU some instructions of oneDNN's make a number of NaN.
@test "the reference makes NaN of NaN where ONNX Runtime does" {
    local model
    need onnx
    cd "$BATS_TEST_TMPDIR"
    /usr/bin/python3 - <<'END'
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

def save(name, *inputs, **constants):
    graph = helper.make_graph(
        [helper.make_node("Div", ["x", "x"], ["q"]), helper.make_node(name, list(inputs), ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [6])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [6])],
        [numpy_helper.from_array(np.array(v), k) for k, v in constants.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    onnx.save(model, f"{name}_{inputs[0]}.onnx")

one = np.full(6, 0.5, np.float32)
for name in "Relu HardSigmoid HardSwish Sign Elu LeakyRelu Sigmoid Softplus Abs".split():
    save(name, "q")
save("Clip", "q", "low", "high", low=np.float32(-1), high=np.float32(0.5))
for name in ("Max", "Min"):
    save(name, "q", "c", c=one)
    save(name, "c", "q", c=one)
np.array([1, 0, -2, 3, 0, 0], np.float32).tofile("in.bin")
END
    for model in *.onnx; do
        ort run "$model" in.bin theirs.bin
        "$HWNAS" run "$model" --device ref --input in.bin --output ours.bin
        /usr/bin/python3 -c "import numpy as np
ours, theirs = (np.fromfile(name, np.float32) for name in ('ours.bin', 'theirs.bin'))
assert np.isnan(theirs).sum() == 3 and np.allclose(ours, theirs, rtol=1e-5, equal_nan=True), ('$model', ours, theirs)"
    done
}

# What our device makes of the networks as they are written is what ONNX Runtime makes of the folded files.
@test "folded networks, from our files" {
    local space arch base=$BATS_TEST_TMPDIR/net
    while read -r space arch; do
        "$HWNAS" export --space "$space" --arch "$arch" --format onnx --out "$base.onnx"
        "$HWNAS" export --space "$space" --arch "$arch" --format onnx --fold --out "$base.folded"
        ort input "$base.onnx" "$base.in"
        "$HWNAS" run "$base.onnx" --device cpu --input "$base.in" --output "$base.out"
        ort compare "$base.folded" "$base.in" "$base.out"
    done <<'END'
nas_bench_201 310101
nas_bench_201 203013
nas_bench_macro 22212220
END
}
