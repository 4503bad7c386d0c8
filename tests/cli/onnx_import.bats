# Files that others wrote: PyTorch's exporter, and values beside the file.
bats_require_minimum_version 1.5.0
load modules

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
    [[ $output == *"node 'nms' (NonMaxSuppression)"* ]]
    run --separate-stderr "$HWNAS" profile detector.onnx --seconds 0.05 --skip-unsupported
    [ "$status" -eq 0 ]
    [[ $stderr == *"left out"*"node 'nms' (NonMaxSuppression)"* ]]
    [[ $stderr != *Cast* ]]
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
