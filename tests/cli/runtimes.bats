# The device ort: networks run by ONNX Runtime, as they may be deployed with it. Its results are compared with
# those of ONNX Runtime's own interface for JavaScript.

load helpers

setup_file() {
    find_ort
}

# needs_ort: skips where the program or the machine has none.
needs_ort() {
    "$HWNAS" profile mnist_mlp --device ort --seconds 0.01 >out 2>err && return
    [[ $(<err) != *"was built without"* && $(<err) != *"there is no ONNX Runtime"* ]] ||
        skip "needs ONNX Runtime: $(<err)"
    cat err
    return 1
}

ort() {
    node "$HWNAS_SRC/tests/peers/ort_run.mjs" "$@"
}

@test "ort: a network has the outputs that ONNX Runtime gives" {
    local name
    needs_ort
    ort version >/dev/null 2>&1 || skip "needs onnxruntime-node: scripts/install-deps --check"
    for name in mnist_cnn imdb_fasttext lstm_text_generation resnet32_cifar; do # fasttext reads whole numbers
        "$HWNAS" export --space "$name" --format onnx --out "$name.onnx"
        ort input "$name.onnx" in
        "$HWNAS" run "$name.onnx" --device ort --input in --output out
        ort compare "$name.onnx" in out 1e-6
    done
}

@test "ort: profile measures it, and verifies it against ref" {
    needs_ort
    "$HWNAS" profile mnist_cnn resnet32_cifar --device ort --dtype f32,s8 --threads 1 --seconds 0.05 --verify --json >out
    [[ $(json out "d['device']['library']") == "ONNX Runtime 1."* ]]
    [ "$(json out "[(r['dtype'], r['status'], r['verified_against'], r['p50_seconds'] > 0) for r in d['rows']]")" = \
        "[('f32', 'ok', 'ref', True), ('s8', 'ok', 'ref', True), ('f32', 'ok', 'ref', True), ('s8', 'ok', 'ref', True)]" ] ||
        { cat out; false; }
}

@test "ort: compare sets the runtimes of one machine side by side" {
    needs_ort
    "$HWNAS" compare mnist_cnn --device cpu,ort --batch 1 --threads 1 --seconds 0.05 --json >out
    [ "$(json out "sorted(c['device'] for c in d['networks'][0]['choices'])")" = "['cpu', 'ort']" ] || { cat out; false; }
}

@test "ort: a search measures with it, and goes on" {
    needs_ort
    ends 0 search --space mnist_cnn --device ort --objectives macs,latency --trials 1 --study s.db --seconds 0.02
    says out ort
}

@test "ort: what is missing is said" {
    "$HWNAS" profile mnist_mlp --device ort --seconds 0.01 >out 2>err ||
        [[ $(<err) != *"was built without"* ]] || skip "built without ONNX Runtime's header"
    HWNAS_ORT_LIBRARY=/nowhere/libonnxruntime.so ends 1 profile mnist_mlp --device ort
    says err "there is no ONNX Runtime: */nowhere/*hint: install libonnxruntime"
    share_rooflines
    HWNAS_ORT_LIBRARY=/nowhere/libonnxruntime.so ends 0 devices
    says out 'does not work here: there is no ONNX Runtime: */nowhere/*; install libonnxruntime'
    HWNAS_ORT_LIBRARY=libm.so.6 ends 1 profile mnist_mlp --device ort
    says err "this is no ONNX Runtime 1.16 or newer"
    "$HWNAS" export --space mnist_mlp --format onnx --out net.onnx
    head -c $((784 * 4)) /dev/zero >x
    HWNAS_ORT_LIBRARY=/nowhere/libonnxruntime.so refuses 1 "there is no ONNX Runtime*HWNAS_ORT_LIBRARY" \
        run net.onnx --device ort --input x --output y
    needs_ort
    ends 2 profile mnist_mlp --device ort:gpu
    says err "device 'ort' takes no 'gpu'*hint: write 'ort'"
    ends 1 profile mnist_mlp --device ort --dtype bf16
    says err "does not compute in bf16"
    # The library that npm has was built without it.
    "$HWNAS" profile mnist_mlp --device ort:xnnpack --seconds 0.01 >out 2>err || says err "use the provider 'XNNPACK'"
}

@test "ort: what an input's type cannot hold becomes its nearest value, and what is no number 0" {
    local type bounds
    needs_ort
    while read -r type bounds; do
        /usr/bin/python3 - "$type" <<'END'
import sys
import numpy as np
import onnx
from onnx import TensorProto, helper

graph = helper.make_graph(
    [helper.make_node("Cast", ["x"], ["c"], to=TensorProto.FLOAT), helper.make_node("Neg", ["c"], ["y"])], "casts",
    [helper.make_tensor_value_info("x", getattr(TensorProto, sys.argv[1]), [1, 6])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 6])])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.save(model, "net.onnx")
np.array([1e30, -1e30, float("nan"), 300, -300, 7], np.float32).tofile("x")
END
        ends 0 run net.onnx --device ort --input x --output y
        /usr/bin/python3 - $bounds <<'END'
import sys
import numpy as np

got, (low, high) = -np.fromfile("y", np.float32), map(float, sys.argv[1:])
wanted = np.array([high, low, 0, min(300, high), max(-300, low), 7], np.float32)
assert (got == wanted).all(), (got, wanted)
END
    done <<END
INT8 -128 127
UINT8 0 255
INT16 -32768 32767
INT32 -2147483648 2147483647
INT64 -9223372036854775808 9223372036854775807
END
}

# Casts to BFLOAT16 and back before both operands; each layer of its own, so that no rounding is near a tie by
# what was computed before it.
@test "ort: layers in bf16 have the values that ONNX Runtime gives" {
    needs_ort
    need onnx
    /usr/bin/python3 - <<'END'
import numpy as np, onnx
from onnx import TensorProto as T, helper as h, numpy_helper as nh
rng = np.random.default_rng(0)
nodes, weights = [], []
def low(x):
    nodes.append(h.make_node("Cast", [x], [x + "_low"], to=T.BFLOAT16))
    nodes.append(h.make_node("Cast", [x + "_low"], [x + "_rounded"], to=T.FLOAT))
    return x + "_rounded"
def weight(name, *shape):
    weights.append(nh.from_array((rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype("f4"), name))
    return name
nodes.append(h.make_node("Conv", [low("image"), low(weight("kernel", 32, 16, 3, 3)), weight("bias", 32)], ["conv"], pads=[1] * 4))
nodes.append(h.make_node("Relu", ["conv"], ["relu"]))
for name in "qv":
    nodes.append(h.make_node("MatMul", [low("rows"), low(weight("w" + name, 48, 33))], [name]))
    nodes = [n for i, n in enumerate(nodes) if n not in nodes[:i]]  # both read one rounding
nodes.append(h.make_node("Gemm", [low("rows"), low(weight("wg", 9, 48)), weight("bg", 9)], ["gemm"], transB=1))
nodes = [n for i, n in enumerate(nodes) if n not in nodes[:i]]
value = lambda name, *shape: h.make_tensor_value_info(name, T.FLOAT, shape)
graph = h.make_graph(nodes, "low", [value("image", 2, 16, 7, 7), value("rows", 5, 48)],
                     [value("relu", 2, 32, 7, 7), value("q", 5, 33), value("v", 5, 33), value("gemm", 5, 9)], weights)
model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model)
onnx.save(model, "low.onnx")
END
    "$HWNAS" compare --outputs low.onnx --device ort,cpu --json >out
    is out 'len(d["outputs"]) == 4 and all(o["largest_error"] < 1e-5 for o in d["outputs"])'
    # And in f32 the same layers differ by far more.
    /usr/bin/python3 - <<'END'
import onnx
m = onnx.load("low.onnx")
for n in m.graph.node:
    if n.op_type == "Cast":
        n.attribute[0].i = onnx.TensorProto.FLOAT
onnx.save(m, "plain.onnx")
END
    "$HWNAS" compare --outputs plain.onnx low.onnx --tolerance 0.05 --json >out
    is out 'all(o["largest_error"] > 1e-4 for o in d["outputs"])'
}
