#!/usr/bin/python3
"""ONNX files as PyTorch: torch_run.py HWNAS MODEL.onnx...

Exports each file, loads the module with its weights, gives it the inputs in MODEL.in (raw fp32, all of them
in order) and writes the outputs to MODEL.out, as `hwnas run` does. Where there is no MODEL.in, it makes one
of random numbers, and compares the outputs with those of `hwnas run --device ref`.
"""

import pathlib
import subprocess
import sys

import numpy as np
import onnx
import onnx.mapping
import torch

import torch_node

LIMIT = 1e-4
LIMIT_S8 = 1e-2  # another order of a sum may round a value to the next of 255


def shapes_of(model):
    graph = onnx.load(model, load_external_data=False).graph
    constants = {c.name for c in graph.initializer}
    for i in graph.input:
        if i.name not in constants:
            kind = i.type.tensor_type
            yield [d.dim_value or 1 for d in kind.shape.dim], onnx.mapping.TENSOR_TYPE_TO_NP_TYPE[kind.elem_type]


def read_inputs(model):
    values = np.fromfile(model.with_suffix(".in"), np.float32)
    for dims, dtype in shapes_of(model):
        n = int(np.prod(dims))
        yield torch_node.tensor(values[:n].reshape(dims).astype(dtype))
        values = values[n:]


def make_inputs(model):
    torch.manual_seed(1)
    with open(model.with_suffix(".in"), "wb") as file:
        for dims, dtype in shapes_of(model):
            value = torch.randn(dims) if dtype.kind == "f" else torch.randint(2, dims)
            file.write(value.float().numpy().tobytes())


def compare(hwnas, model, got):
    command = [hwnas, "run", model, "--device", "ref", "--input", model.with_suffix(".in")]
    subprocess.run([*command, "--output", model.with_suffix(".ref")], check=True)
    wanted = np.fromfile(model.with_suffix(".ref"), np.float32)
    error = np.abs(got - wanted).max() / max(np.abs(wanted).max(), 1e-30)
    print(f"{model.name}: {got.size} values, {error:.2g} apart", flush=True)
    is_s8 = any(n.op_type == "QuantizeLinear" for n in onnx.load(model, load_external_data=False).graph.node)
    return got.shape == wanted.shape and error <= (LIMIT_S8 if is_s8 else LIMIT)


def main(hwnas, *models):
    wrong = []
    for model in map(pathlib.Path, models):
        is_given = model.with_suffix(".in").exists()
        if not is_given:
            make_inputs(model)
        module = model.with_suffix(".py")
        subprocess.run([hwnas, "export", model, "--format", "pytorch", "--out", module],
                       check=True, stderr=subprocess.DEVNULL)
        network = torch_node.load(module)
        with torch.no_grad():
            outputs = network(*read_inputs(model))
        outputs = outputs if isinstance(outputs, tuple) else [outputs]
        got = np.concatenate([o.float().numpy().ravel() for o in outputs])
        got.tofile(model.with_suffix(".out"))
        if not is_given and not compare(hwnas, model, got):
            wrong.append(model.name)
    print(f"{len(models)} files as PyTorch; wrong: {wrong or 'none'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
