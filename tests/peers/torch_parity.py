#!/usr/bin/python3
"""Does the PyTorch export compute what hwnas computes?

    torch_parity.py HWNAS SPACE [CODE]

Exports one architecture as PyTorch and as ONNX, puts the ONNX file's weights into the module in
the order of its state_dict(), and compares the outputs for a random input, the number of
parameters with `space show --json`, and takes a training step. Fails above a relative 1e-4.
"""

import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.numpy_helper
import torch

LIMIT = 1e-4


def arch_option(code):
    return ["--arch", code] if code else []


def export(hwnas, space, code, form, path):
    command = [hwnas, "export", "--space", space, *arch_option(code), "--format", form]
    subprocess.run(command + ["--out", path], check=True)


def load_module(path):
    spec = importlib.util.spec_from_file_location("best", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def set_weights(model, weights):
    """Parameters and running statistics, in the order of creation."""
    state = {k: v for k, v in model.state_dict().items() if not k.endswith("num_batches_tracked")}
    assert len(state) == len(weights), f"{len(state)} tensors in PyTorch, {len(weights)} in ONNX"
    for (name, tensor), weight in zip(state.items(), weights):
        assert tensor.shape == weight.shape, f"{name}: {tuple(tensor.shape)}, not {weight.shape}"
        tensor.copy_(torch.from_numpy(weight.copy()))


def main(hwnas, space, code=""):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        export(hwnas, space, code, "pytorch", path / "best.py")
        export(hwnas, space, code, "onnx", path / "best.onnx")
        graph = onnx.load(path / "best.onnx").graph
        show = [hwnas, "space", "show", space, *arch_option(code), "--json"]
        facts = json.loads(subprocess.run(show, check=True, capture_output=True).stdout)
        torch.manual_seed(1)
        images = torch.randn(*facts["input"])
        images.numpy().tofile(path / "in.bin")
        run = [hwnas, "run", path / "best.onnx", "--device", "ref"]
        subprocess.run(run + ["--input", path / "in.bin", "--output", path / "out.bin"], check=True)
        expected = torch.from_numpy(np.fromfile(path / "out.bin", np.float32))
        model = load_module(path / "best.py").build().eval()

    # A scalar is an option that ONNX passes as a tensor, such as Dropout's rate; what is not learned
    # is a running statistic, or a constant such as the scale of a BatchNorm without one.
    weights = []
    for tensor in graph.initializer:
        values = onnx.numpy_helper.to_array(tensor)
        is_constant = tensor.doc_string == "not learned" and (
            (values == 0).all() or (values == 1).all()
        )
        if tensor.dims and not is_constant:
            weights.append(values)
    set_weights(model, weights)
    with torch.no_grad():
        # In double, so that only our own rounding counts: deep networks of random weights amplify it.
        output = model.double()(images.double()).flatten()
    error = ((output - expected).abs().max() / expected.abs().max()).item()
    assert error <= LIMIT, f"the outputs differ by {error:.2g}"

    parameters = sum(p.numel() for p in model.parameters())
    assert parameters == facts["params"], f"{parameters} parameters, not {facts['params']}"

    # Training: nothing that the gradient needs was overwritten in place.
    model.float().train()
    model(torch.cat([images, images.flip(-1)])).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
    print(f"{code or space}: {parameters:,} parameters, outputs differ by {error:.2g}")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except (AssertionError, subprocess.CalledProcessError) as error:
        sys.exit(f"torch_parity.py: {sys.argv[2:]}: {error}")
