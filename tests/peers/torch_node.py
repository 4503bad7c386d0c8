#!/usr/bin/python3
"""Does what hwnas writes as PyTorch compute what ONNX says its operators compute?

    torch_node.py HWNAS [--cases N]    of each operator only so many cases

Exports each node test that ships in the package onnx and that hwnas reads as a PyTorch module, loads it
with its weights, and compares its outputs with those that the test wants. Fails where they differ, where
a file that is read cannot be exported, and where the module's types are not ONNX's.
"""

import collections
import importlib.util
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch

import onnx_node

# PyTorch's types for those that it lacks.
TYPES = {"float64": "float32", "float16": "float32", "uint16": "int32", "uint32": "int64", "uint64": "int64"}


def load(path):
    spec = importlib.util.spec_from_file_location("net", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.build().eval()


def tensor(value):
    value = np.array(value)
    return torch.from_numpy(value.astype(TYPES.get(value.dtype.name, value.dtype.name)))


def compute(hwnas, folder, inputs):
    """The outputs of folder/model.onnx as PyTorch computes them; a string: why it is refused."""
    command = [hwnas, "export", folder / "model.onnx", "--format", "pytorch", "--out", folder / "net.py"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip() or f"died: {done.returncode}"
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        outputs = load(folder / "net.py")(*inputs)
    return list(outputs) if isinstance(outputs, tuple) else [outputs]


def check(case, hwnas, folder, read):
    """What is wrong, or None."""
    try:
        got = compute(hwnas, folder, [tensor(read[1][i.name]) for i in read[0].graph.input])
    except Exception as error:  # of whatever kind: it is the module that raises it
        return f"{type(error).__name__}: {error}"
    if isinstance(got, str):
        return got
    wanted = [np.asarray(o) for o in read[2]]
    for ours, theirs in zip(got, wanted):
        dtype = TYPES.get(theirs.dtype.name, theirs.dtype.name)
        ours = ours.numpy()
        if ours.shape != theirs.shape:
            return f"the shape {ours.shape}, not {theirs.shape}"
        if ours.dtype.name != dtype:
            return f"values of type {ours.dtype.name}, not {dtype}"
        ours, theirs = ours.astype(np.float64), theirs.astype(np.float64)
        limit = 1e-2 if "FLOAT16" in case.name else 1e-5
        same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        error = np.where(same, 0, np.abs(ours - theirs)).max(initial=0)
        largest = np.abs(theirs[np.isfinite(theirs)]).max(initial=0)
        if not error <= limit * max(largest, 1e-30) and not np.allclose(ours, theirs, case.rtol, case.atol):
            return f"a relative error of {error / max(largest, 1e-30):.2g}"
    return None


def main(hwnas, *arguments):
    most = int(arguments[1]) if arguments else sys.maxsize
    refused = onnx_node.by_case(onnx_node.REASONS) | onnx_node.by_case(onnx_node.NEWER)
    counts, met, wrong = collections.Counter(), collections.Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for operator, case in onnx_node.in_turns(onnx_node.collect()):
            met[operator] += 1
            if case.name in refused or met[operator] > most:
                continue
            read = onnx_node.write_case(case, folder)
            error = check(case, hwnas, folder, read)
            counts[operator] += error is None
            if error:
                wrong.append(f"{case.name}: {error}")
    for line in wrong:
        print(line)
    print(f"{sum(counts.values())} of {sum(counts.values()) + len(wrong)} are computed as PyTorch")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
