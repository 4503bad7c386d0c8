# Files that others wrote: PyTorch's exporter, and values beside the file.
bats_require_minimum_version 1.5.0
load helpers

@test "ref computes what PyTorch exports: CNNs, transformers, recurrent networks, detectors" {
    need torch
    /usr/bin/python3 "$HWNAS_SRC/tests/peers/torch_export.py" "$HWNAS" ref
}

@test "cpu computes what PyTorch exports" {
    need torch
    /usr/bin/python3 "$HWNAS_SRC/tests/peers/torch_export.py" "$HWNAS" cpu
}

@test "external data lies beside the model; a file that lacks it is refused by its name" {
    need onnx
    mkdir "$BATS_TEST_TMPDIR/models"
    /usr/bin/python3 - "$BATS_TEST_TMPDIR" <<'END'
import sys
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

weight = np.arange(2048, dtype=np.float32).reshape(2, 1024) / 1024
graph = helper.make_graph(
    [helper.make_node("Gemm", ["x", "w"], ["y"], transB=1)], "g",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 1024])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 2])],
    [numpy_helper.from_array(weight, "w")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
onnx.save_model(model, sys.argv[1] + "/models/big.onnx", save_as_external_data=True, location="big.bin")
np.ones(1024, np.float32).tofile(sys.argv[1] + "/in.bin")
weight.sum(1).tofile(sys.argv[1] + "/want.bin")
END
    cd "$BATS_TEST_TMPDIR"
    "$HWNAS" run models/big.onnx --device ref --input in.bin --output out.bin
    cmp out.bin want.bin
    rm models/big.bin
    run "$HWNAS" run models/big.onnx --device ref --input in.bin --output out.bin
    [ "$status" -ne 0 ]
    [[ $output == *"values of 'w'"*big.bin* ]]
}

@test "--skip-unsupported measures the rest and names what is left out" {
    need onnx
    /usr/bin/python3 - "$BATS_TEST_TMPDIR/detector.onnx" <<'END'
import sys
import onnx
from onnx import TensorProto, helper

graph = helper.make_graph(
    [helper.make_node("Relu", ["boxes"], ["b"]),
     helper.make_node("Sigmoid", ["scores"], ["s"]),
     helper.make_node("NonMaxSuppression", ["b", "s"], ["chosen"], name="nms"),
     helper.make_node("Cast", ["chosen"], ["y"], to=TensorProto.FLOAT)], "g",
    [helper.make_tensor_value_info("boxes", TensorProto.FLOAT, [1, 6, 4]),
     helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 2, 6])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), sys.argv[1])
END
    cd "$BATS_TEST_TMPDIR"
    run "$HWNAS" profile detector.onnx --seconds 0.05
    [ "$status" -ne 0 ]
    [[ $output == *"node 'nms' (NonMaxSuppression) cannot be in a network here"* ]]
    [[ $output == *"'hwnas profile FILE --skip-unsupported' measures the rest"* ]]
    run --separate-stderr "$HWNAS" profile detector.onnx --seconds 0.05 --skip-unsupported
    [ "$status" -eq 0 ]
    [[ $stderr == *"left out"*"node 'nms' (NonMaxSuppression)"* ]]
    [[ $stderr != *Cast* ]]
    [[ $stderr == *"2 of 4 nodes (50 %) are in no time, MACs or params"* ]]
    "$HWNAS" profile detector.onnx --device null --seconds 0.05 --skip-unsupported --json >skipped.json 2>/dev/null
    is skipped.json '"2 of 4 nodes (50 %)" in d["left_out"]'
    # Against what was recorded so, it is measured so again.
    "$HWNAS" profile detector.onnx --device null --seconds 0.05 --skip-unsupported --save then.json
    "$HWNAS" compare --baseline then.json --seconds 0.05 --json >again.json 2>/dev/null || true
    [[ $(<again.json) == *'"now_p50_seconds"'* ]]
}

# ONNX defines it so since opset 22, and says it of older ones too.
@test "LpNormalization of zeros is zeros, and of what is no number none" {
    need onnx
    /usr/bin/python3 - "$BATS_TEST_TMPDIR" <<'END'
import sys
import numpy as np
import onnx
from onnx import TensorProto, helper

graph = helper.make_graph(
    [helper.make_node("LpNormalization", ["x"], ["one"], p=1),
     helper.make_node("LpNormalization", ["x"], ["two"])], "g",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 2])],
    [helper.make_tensor_value_info(name, TensorProto.FLOAT, [3, 2]) for name in ("one", "two")])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), sys.argv[1] + "/norms.onnx")
np.array([0, 0, 3, -4, np.nan, 1], np.float32).tofile(sys.argv[1] + "/in.bin")
END
    cd "$BATS_TEST_TMPDIR"
    local where
    for where in "ref f32" "cpu f32" "cpu f16"; do
        [[ $where == ref* ]] || computes "${where#* }" || continue
        "$HWNAS" run norms.onnx --device "${where% *}" --dtype "${where#* }" --input in.bin --output out.bin
        /usr/bin/python3 -c "import numpy as np
nan, got = np.nan, np.fromfile('out.bin', np.float32)
wanted = [0, 0, 3 / 7, -4 / 7, nan, nan, 0, 0, 0.6, -0.8, nan, nan]
assert np.allclose(got, wanted, rtol=2e-3, equal_nan=True), ('$where', got)"
    done
}

# What ONNX Runtime does; ONNX's text divides zeros by a scale of 0.
@test "DynamicQuantizeLinear of zeros has the scale 1 and the zero point 0" {
    need onnx
    /usr/bin/python3 - "$BATS_TEST_TMPDIR" <<'END'
import sys
import numpy as np
import onnx
from onnx import TensorProto, helper

outputs = {"quantised": [4], "scale": [], "point": []}
graph = helper.make_graph(
    [helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "scale", "z"]),
     helper.make_node("Cast", ["q"], ["quantised"], to=TensorProto.FLOAT),
     helper.make_node("Cast", ["z"], ["point"], to=TensorProto.FLOAT)], "g",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
    [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in outputs.items()])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
onnx.save(model, sys.argv[1] + "/zeros.onnx")
np.zeros(4, np.float32).tofile(sys.argv[1] + "/in.bin")
np.array([0, 0, 0, 0, 1, 0], np.float32).tofile(sys.argv[1] + "/want.bin")
END
    cd "$BATS_TEST_TMPDIR"
    local device
    for device in ref cpu; do
        "$HWNAS" run zeros.onnx --device $device --input in.bin --output out.bin
        cmp out.bin want.bin
    done
}

@test "outputs have the file's names, also where one is an input, another output or a form's" {
    need onnx
    cd "$BATS_TEST_TMPDIR"
    /usr/bin/python3 - <<'END'
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

nodes = [
    helper.make_node("Relu", ["x"], ["y"]),
    helper.make_node("Identity", ["y"], ["same"]),
    helper.make_node("Identity", ["x"], ["passed"]),
    helper.make_node("Tanh", ["y"], ["hidden"]),
    helper.make_node("Identity", ["hidden"], ["renamed"]),
    helper.make_node("Identity", ["hidden"], ["again"]),
    helper.make_node("TopK", ["x", "k"], ["most", "places"], name="chosen"),
]
types = {"same": 1, "y": 1, "passed": 1, "renamed": 1, "again": 1, "most": 1, "places": 7}
graph = helper.make_graph(
    nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
    [helper.make_tensor_value_info(name, type, [2, 2 if type == 7 or name == "most" else 3]) for name, type in types.items()],
    [numpy_helper.from_array(np.array([2]), "k")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
onnx.checker.check_model(model, full_check=True)
onnx.save(model, "names.onnx")
np.save("x.npy", np.array([[-1, 2, 3], [5, -4, 0.5]], np.float32))
END
    "$HWNAS" export names.onnx --format onnx --dtype w8 --out again.onnx
    local device devices=(ref cpu)
    find_ort
    [ -z "${HWNAS_ORT_LIBRARY:-}" ] || devices+=(ort)
    for device in "${devices[@]}"; do
        "$HWNAS" run names.onnx --device "$device" --input x.npy --output "$device.npz"
        "$HWNAS" run again.onnx --device "$device" --input x.npy --output "again-$device.npz"
    done
    /usr/bin/python3 - ./*.npz <<'END'
import sys
import numpy as np
import onnx

names = ["same", "y", "passed", "renamed", "again", "most", "places"]
model = onnx.load("again.onnx")
onnx.checker.check_model(model, full_check=True)
assert [o.name for o in model.graph.output] == names, model.graph.output
x = np.load("x.npy")
y = np.maximum(x, 0)
want = [y, y, x, np.tanh(y), np.tanh(y), -np.sort(-x)[:, :2], np.argsort(-x)[:, :2]]
for path in sys.argv[1:]:
    got = np.load(path)
    assert list(got) == names, (path, list(got))
    for name, values in zip(names, want):
        assert np.allclose(got[name], values, atol=1e-6), (path, name)
END
}

@test "floats of 16 and 64 bits are written as the floats that they are computed in" {
    need onnx
    cd "$BATS_TEST_TMPDIR"
    /usr/bin/python3 - <<'END'
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

for type in np.float16, np.float64:
    number = helper.np_dtype_to_tensor_dtype(np.dtype(type)) if hasattr(helper, "np_dtype_to_tensor_dtype") else \
        onnx.mapping.NP_TYPE_TO_TENSOR_TYPE[np.dtype(type)]
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w"], ["h"], transB=1), helper.make_node("Less", ["h", "x"], ["less"]),
         helper.make_node("Cast", ["less"], ["mask"], to=number), helper.make_node("Mul", ["mask", "h"], ["y"])], "g",
        [helper.make_tensor_value_info("x", number, [2, 32])], [helper.make_tensor_value_info("y", number, [2, 32])],
        [numpy_helper.from_array(np.linspace(-1, 1, 1024).reshape(32, 32).astype(type), "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), np.dtype(type).name + ".onnx")
np.save("x.npy", np.linspace(-1, 1, 64, dtype=np.float32).reshape(2, 32))
END
    local type
    find_ort
    for type in float16 float64; do
        "$HWNAS" export "$type.onnx" --format onnx --dtype w8 --out "$type-w8.onnx"
        /usr/bin/python3 -c 'import sys, onnx
assert {v.type.tensor_type.elem_type for part in ("input", "output") for v in getattr(onnx.load(sys.argv[1]).graph, part)} == {1}' \
            "$type-w8.onnx"
        [ "${HWNAS_ORT_LIBRARY:-}" ] || continue
        "$HWNAS" run "$type.onnx" --device ref --input x.npy --output ref.npy
        "$HWNAS" run "$type.onnx" --device ort --input x.npy --output ort.npy
        /usr/bin/python3 -c 'import numpy
assert numpy.abs(numpy.load("ref.npy") - numpy.load("ort.npy")).max() < 1e-3'
    done
}

@test "a shape that is an input of the network is refused by the input's name" {
    need onnx
    cd "$BATS_TEST_TMPDIR"
    /usr/bin/python3 - <<'END'
import onnx
from onnx import TensorProto, helper

graph = helper.make_graph(
    [helper.make_node("Reshape", ["x", "s"], ["y"])], "g",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 6]), helper.make_tensor_value_info("s", TensorProto.INT64, [2])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), "given.onnx")
END
    run -1 "$HWNAS" profile given.onnx --device null
    [[ $output == *"input 's', its shape, must be a constant"* ]]
}

# PyTorch names all three outputs of an LSTM, also those that nobody reads.
@test "an LSTM whose last cell nobody reads stays one layer, from a state of zeros as well" {
    need torch
    /usr/bin/python3 - "$BATS_TEST_TMPDIR/lstm.onnx" <<'END'
import sys
import torch

class Tagger(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = torch.nn.LSTM(6, 5, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, x):
        return self.rnn(x)[0]

torch.onnx.export(Tagger().eval(), torch.zeros(1, 4, 6), sys.argv[1], input_names=["x"], dynamic_axes={"x": {1: "t"}})
END
    cd "$BATS_TEST_TMPDIR"
    "$HWNAS" export lstm.onnx --shape t=300 --format pytorch --out back.py
    [ "$(grep -c 'nn.LSTM(' back.py)" -eq 2 ]
    [ "$(grep -c . back.py)" -lt 100 ]
}

# Both directions of four dimensions were joined by oneDNN's graph, which took a minute for 200 steps.
@test "an LSTM in both directions whose cells are read is compiled without oneDNN's partitions" {
    need torch
    /usr/bin/python3 - "$BATS_TEST_TMPDIR/cells.onnx" 2>/dev/null <<'END'
import sys
import torch

class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = torch.nn.LSTM(6, 5, bidirectional=True)

    def forward(self, x):
        y, (h, c) = self.rnn(x)
        return y, h, c

torch.onnx.export(Encoder().eval(), torch.zeros(7, 1, 6), sys.argv[1])
END
    cd "$BATS_TEST_TMPDIR"
    "$HWNAS" profile cells.onnx --layers --seconds 0.05 --json >layers.json
    is layers.json 'len(d["rows"][0]["layers"]["list"]) > 20 and not any(l["how"] == "partition" for l in d["rows"][0]["layers"]["list"])'
}

@test "a network that was exported while it trains is refused with what to export instead" {
    need torch
    /usr/bin/python3 - "$BATS_TEST_TMPDIR/trains.onnx" 2>/dev/null <<'END'
import sys
import torch

block = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
torch.onnx.export(block.train(), torch.zeros(2, 3, 8, 8), sys.argv[1], training=torch.onnx.TrainingMode.TRAINING, opset_version=14)
END
    run "$HWNAS" profile "$BATS_TEST_TMPDIR/trains.onnx" --device null --seconds 0.05
    [ "$status" -ne 0 ]
    [[ $output == *"(BatchNormalization): attribute 'training_mode'"*"call model.eval() before the export, and leave its training=... out"* ]]
}

@test "an Einsum that makes a letter of nothing is refused by that, of one tensor and of several" {
    need onnx
    cd "$BATS_TEST_TMPDIR"
    /usr/bin/python3 - <<'END'
import onnx
from onnx import TensorProto, helper

for name, equation, n in ("one", "ij->ik", 1), ("three", "ij,ij,ij->im", 3):
    names = [f"x{i}" for i in range(n)]
    graph = helper.make_graph(
        [helper.make_node("Einsum", names, ["y"], equation=equation)], "g",
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, [2, 3]) for x in names],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), name + ".onnx")
END
    for name in one three; do
        run "$HWNAS" profile $name.onnx --device null
        [ "$status" -ne 0 ]
        [[ $output == *"'equation' makes a letter that no input has"* ]]
    done
}

# Moments of 10,000 draws, within six of their deviations.
@test "values that are drawn at random are constants, the same each time, and it is said" {
    need onnx
    cd "$BATS_TEST_TMPDIR"
    /usr/bin/python3 - <<'END'
import numpy as np
import onnx
from onnx import TensorProto, helper

n = [100, 100]
nodes = [helper.make_node("RandomNormalLike", ["x"], ["a"], "draw", mean=3.0, scale=2.0),
         helper.make_node("RandomNormal", [], ["b"], shape=n),
         helper.make_node("RandomUniform", [], ["c"], low=-1.0, high=5.0, shape=n),
         helper.make_node("RandomUniformLike", ["x"], ["d"], seed=7.0),
         helper.make_node("RandomUniformLike", ["x"], ["e"], seed=7.0),
         helper.make_node("Bernoulli", ["x"], ["f"]),
         *(helper.make_node("Mul", ["x", i], ["x" + i]) for i in "abcdef")]
graph = helper.make_graph(
    nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, n)],
    [helper.make_tensor_value_info("x" + i, TensorProto.FLOAT, n) for i in "abcdef"])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 15)]), "random.onnx")
np.full(n, 0.5, np.float32).tofile("in.bin")
END
    run "$HWNAS" run random.onnx --device cpu --input in.bin --output out.bin
    [ "$status" -eq 0 ]
    [[ $output == *"node 'draw' (RandomNormalLike) and 5 more draw values at random"* ]]
    "$HWNAS" run random.onnx --device ref --input in.bin --output again.bin
    cmp out.bin again.bin
    /usr/bin/python3 - <<'END'
import numpy as np

drawn = 2 * np.fromfile("out.bin", np.float32).reshape(6, -1).astype(float)
wanted = [(3, 2), (0, 1), (2, 6 / 12**0.5), (0.5, 12**-0.5), (0.5, 12**-0.5), (0.5, 0.5)]
for values, (mean, deviation) in zip(drawn, wanted):
    assert abs(values.mean() - mean) < 6 * deviation / 100, values.mean()
    assert abs(values.std() / deviation - 1) < 0.06, values.std()
assert (drawn[3] == drawn[4]).all() and not np.isin(drawn[0], drawn[1]).any()
assert set(drawn[5]) == {0, 1} and -1 <= drawn[2].min() and drawn[2].max() < 5
END
}

@test "an operator that no plan can hold: why, the node, and what to try" {
    need onnx
    cd "$BATS_TEST_TMPDIR"
    /usr/bin/python3 - <<'END'
import onnx
from onnx import TensorProto, helper

def save(kind, inputs, outputs, **attributes):
    nodes = [helper.make_node("Relu", ["x"], ["features"]), helper.make_node("Relu", ["x"], ["scores"]),
             helper.make_node(kind, inputs, outputs, "chosen", **attributes)]
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 4])],
                              [helper.make_tensor_value_info(outputs[0], TensorProto.FLOAT, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), kind + ".onnx")

save("NonZero", ["features"], ["y"])
save("NonMaxSuppression", ["features", "scores"], ["y"])
save("Unique", ["features"], ["y"])
save("If", ["features"], ["y"], then_branch=helper.make_graph([], "t", [], []), else_branch=helper.make_graph([], "e", [], []))
END
    for kind in NonZero NonMaxSuppression Unique; do
        run "$HWNAS" profile $kind.onnx --device cpu
        [ "$status" -ne 0 ]
        [[ $output == *"node 'chosen' ($kind) cannot be in a network here: how many "*"depends on the input"* ]]
        [[ $output == *"without what follows 'features'"*"--skip-unsupported"* ]]
    done
    run "$HWNAS" profile If.onnx --device cpu
    [ "$status" -ne 0 ]
    [[ $output == *"node 'chosen' (If): the condition depends on the input"*"--skip-unsupported"* ]]
}

# PyTorch writes a Cast to the bytes that they are behind every QuantizeLinear of a converted network.
@test "a network that PyTorch converted to bytes stays of bytes" {
    need torch
    cd "$BATS_TEST_TMPDIR"
    /usr/bin/python3 - 2>/dev/null <<'END'
import numpy as np
import torch
from torch.ao import quantization

torch.manual_seed(1)
torch.backends.quantized.engine = "qnnpack"
net = torch.nn.Sequential(quantization.QuantStub(), torch.nn.Conv2d(3, 16, 3, 2, 1), torch.nn.ReLU(), torch.nn.Conv2d(16, 16, 3),
                          torch.nn.MaxPool2d(2), quantization.DeQuantStub())
net.train().qconfig = quantization.get_default_qat_qconfig("qnnpack")
net = quantization.prepare_qat(net)
x = torch.randn(2, 3, 16, 16)
net(x)
torch.onnx.export(quantization.convert(net.eval()), x, "bytes.onnx", opset_version=13, input_names=["x"], output_names=["y"])
np.save("x.npy", x.numpy())
END
    [ "$(grep -a -c Cast bytes.onnx)" -gt 0 ]
    "$HWNAS" profile bytes.onnx --layers --seconds 0.05 --json >layers.json
    is layers.json 'not any("cast" in l["operators"].split() for l in d["rows"][0]["layers"]["list"])'
    is layers.json '["quantize_linear" in l["operators"].split() for l in d["rows"][0]["layers"]["list"] if "conv" in l["operators"].split()] == [True, True]'
    "$HWNAS" run bytes.onnx --device ref --input x.npy --output ref.npy
    "$HWNAS" run bytes.onnx --device cpu --input x.npy --output cpu.npy
    find_ort
    [ "${HWNAS_ORT_LIBRARY:-}" ] || return 0
    "$HWNAS" run bytes.onnx --device ort --input x.npy --output ort.npy
    # Where a value lies between two bytes either is right.
    /usr/bin/python3 -c 'import numpy
want = numpy.load("ort.npy")
for name in "ref", "cpu":
    off = numpy.abs(numpy.load(name + ".npy") - want)
    assert (off > 1e-5).mean() < 0.01 and off.max() < 0.1, (name, off.max())'
}
