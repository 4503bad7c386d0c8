"""Writes models of one MatMulNBits each, an operator of ONNX Runtime's, into a folder: 4 and 8 bits, with and without
zero points and bias, blocks of several sizes, matrices that fill no block or no byte, one and several vectors.
With `broken` as a second word: such that none can be read, each named after what is wrong with it."""
import sys
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

# name: vectors, K, N, bits, block, zero points ("packed", "float" or none), bias
CASES = {
    "plain": ((1,), 128, 48, 4, 32, None, False),
    "zeros": ((1,), 96, 37, 4, 32, "packed", False),
    "odd_blocks": ((2,), 150, 19, 4, 32, "packed", True),
    "wide_block": ((1, 3), 200, 40, 4, 128, "packed", True),
    "float_zeros": ((1,), 64, 33, 4, 16, "float", False),
    "bytes": ((1,), 128, 48, 8, 64, None, False),
    "byte_zeros": ((4,), 100, 21, 8, 32, "packed", True),
    "many_vectors": ((2, 9), 96, 32, 4, 32, "packed", False),
}


# name: what is said instead of the truth
BROKEN = {
    "bits": {"bits": 3},
    "block_size": {"block_size": 24},
    "B": {"K": 160},
    "K": {"K": 0},
    "N": {"K": 1 << 29, "N": 1 << 29},
    "scales": {"input": ["x", "B"]},
    "g_idx": {"input": ["x", "B", "scales", "", "scales"]},
    "bias": {"input": ["x", "B", "scales", "", "", "scales"]},
}


def model(rng, vectors, k, n, bits, block, zeros, has_bias):
    blocks = -(-k // block)
    row = -(-blocks * bits // 8)
    values = {
        "B": rng.integers(0, 256, (n, blocks, block * bits // 8), dtype=np.uint8),
        "scales": rng.uniform(0.001, 0.02, (n, blocks)).astype(np.float32),
    }
    if zeros == "packed":
        values["zeros"] = rng.integers(0, 256, (n, row), dtype=np.uint8)
    elif zeros == "float":
        values["zeros"] = rng.uniform(4, 12, (n, blocks)).astype(np.float32)
    if has_bias:
        values["bias"] = rng.uniform(-1, 1, n).astype(np.float32)
    inputs = ["x", "B", "scales", "zeros" if zeros else "", "", "bias" if has_bias else ""]
    while not inputs[-1]:
        inputs.pop()
    node = helper.make_node("MatMulNBits", inputs, ["y"], domain="com.microsoft", K=k, N=n, bits=bits, block_size=block)
    graph = helper.make_graph(
        [node], "packed",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [*vectors, k])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [*vectors, n])],
        [numpy_helper.from_array(array, name) for name, array in values.items()])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


folder = Path(sys.argv[1])
if sys.argv[2:] == ["broken"]:
    for name, said in BROKEN.items():
        made = model(np.random.default_rng(1), *CASES["plain"])
        node = made.graph.node[0]
        for key, value in said.items():
            if key == "input":
                del node.input[:]
                node.input.extend(value)
            for attribute in node.attribute:
                if attribute.name == key:
                    attribute.i = value
        (folder / f"{name}.onnx").write_bytes(made.SerializeToString())
    sys.exit()
for name, case in CASES.items():
    made = model(np.random.default_rng(len(name)), *case)
    (folder / f"{name}.onnx").write_bytes(made.SerializeToString())
