#!/usr/bin/python3
"""Are operands repeated along the right dimensions?

    repeated.py HWNAS DEVICE DTYPE...    fails where a device computes another thing than numpy

For each of some shapes one file of ONNX: the shape meets operands that are 1 in each set of its dimensions, weights
(times and plus) and what was computed (minus a sum). cuDNN 9.19 was seen to read elsewhere in some of them."""
import concurrent.futures
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

SHAPES = [(2, 3, 4, 5), (2, 16, 7, 7), (2, 3, 20), (2, 8, 49), (2, 70), (2, 5, 1), (2, 1, 6)]
LIMIT = {"f32": 1e-5, "tf32": 1e-2, "f16": 1e-2, "bf16": 5e-2}


class File:
    """One input, and outputs with their names and values."""

    def __init__(self, shape):
        self.rng = np.random.default_rng(1)
        self.x = self.rng.uniform(-1, 1, shape).astype(np.float32)
        self.nodes, self.weights, self.wanted = [], [], {}
        for some in range(1, 1 << len(shape)):
            operand = tuple(d if some >> i & 1 else 1 for i, d in enumerate(shape))
            self.add_weights(operand)
            repeated = tuple(i for i in range(len(shape)) if not some >> i & 1)
            if repeated:
                self.add_computed(operand, repeated)

    def add(self, op, inputs, output, **attributes):
        self.nodes.append(helper.make_node(op, inputs, [output], **attributes))

    def weight(self, values):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(values, name))
        return name

    def drawn(self, shape):
        return self.rng.uniform(0.5, 1.5, shape).astype(np.float32)

    def add_weights(self, operand):
        a, b, y = self.drawn(operand), self.drawn(operand), f"weights_{'x'.join(map(str, operand))}_{len(self.wanted)}"
        self.add("Mul", ["x", self.weight(a)], y + "_times")
        self.add("Add", [y + "_times", self.weight(b)], y)
        self.wanted[y] = self.x * a + b

    def add_computed(self, operand, repeated):
        a, y = self.drawn(operand), f"computed_{'x'.join(map(str, operand))}_{len(self.wanted)}"
        self.add("Mul", ["x", self.weight(a)], y + "_times")
        self.add("ReduceSum", [y + "_times", self.weight(np.array(repeated, np.int64))], y + "_sum", keepdims=1)
        self.add("Sub", ["x", y + "_sum"], y)
        self.wanted[y] = self.x - (self.x * a).sum(axis=repeated, keepdims=True)

    def write(self, path):
        value = lambda name, array: helper.make_tensor_value_info(name, TensorProto.FLOAT, array.shape)
        graph = helper.make_graph(self.nodes, "repeated", [value("x", self.x)],
                                  [value(*item) for item in self.wanted.items()], self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
        model.ir_version = 8
        onnx.save(model, path)


def judge(file, hwnas, device, dtype, folder):
    """What is wrong, a line each."""
    file.write(folder / "m.onnx")
    file.x.tofile(folder / "in")
    done = subprocess.run([hwnas, "run", folder / "m.onnx", "--device", device, "--dtype", dtype, "--input",
                           folder / "in", "--output", folder / "out"], capture_output=True, text=True)
    what = f"{device} {dtype} {'x'.join(map(str, file.x.shape))}"
    if done.returncode:
        return [f"{what}: {done.stderr.strip()}"]
    got, at, wrong = np.fromfile(folder / "out", np.float32), 0, []
    for name, wanted in file.wanted.items():
        error = np.abs(got[at:at + wanted.size].reshape(wanted.shape) - wanted).max() / np.abs(wanted).max()
        at += wanted.size
        if not error <= LIMIT[dtype]:
            wrong.append(f"{what}: {name}: a relative error of {error:.2g}")
    return wrong if at == got.size else [*wrong, f"{what}: {got.size} values, not {at}"]


def judge_case(case, hwnas, device):
    """(results, what is wrong)"""
    shape, dtype = case
    file = File(shape)
    with tempfile.TemporaryDirectory() as folder:
        return len(file.wanted), judge(file, hwnas, device, dtype, pathlib.Path(folder))


def main(hwnas, device, *dtypes):
    """As many at once as there are processors: what takes time is compiling for the device."""
    cases = list(itertools.product(SHAPES, dtypes))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = list(pool.map(lambda case: judge_case(case, hwnas, device), cases))
    wrong = [line for _, lines in found for line in lines]
    print(*wrong, f"{sum(n for n, _ in found)} results, {len(wrong)} wrong", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
