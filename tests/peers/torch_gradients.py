"""Compares the gradients of one training step on the device `cpu` with PyTorch's in double precision.

torch_gradients.py HWNAS TRAIN_STEP TOLERANCE NET.onnx PRECISION [smooth]

The error of a parameter is the largest difference over the largest gradient that PyTorch has there, or over a
hundredth of the largest of all parameters where that is more: the gradient of a bias that a batch norm takes off
again is nothing but rounding. In deep networks roundings grow on their way: an error may be three times that of
PyTorch's own gradients in single precision, where that is more than the tolerance.
"""
import importlib.util
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch


def load(path, shape, kind="float32"):
    return np.fromfile(path, dtype="float32").reshape(shape).astype(kind)


def load_module(hwnas, folder, kind):
    subprocess.run([hwnas, "export", folder / "logits.onnx", "--format", "pytorch", "--out", folder / "network.py"],
                   check=True, capture_output=True)
    spec = importlib.util.spec_from_file_location("network", folder / "network.py")
    network = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(network)
    model = network.build().to(kind).train()
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0
    return model


def read_about(folder):
    about, loss = {"input": [], "weight": [], "squares": [], "cross-entropy": []}, None
    for line in (folder / "about").read_text().splitlines():
        what, *rest = line.split()
        if what == "loss":
            loss = float(rest[0])
        else:
            about[what].append((int(rest[0]), rest[1], [int(n) for n in rest[2:]]))
    return about, loss


def torch_loss(model, about, folder, kind):
    inputs = [torch.from_numpy(load(folder / f"input.{i}", shape)).to(torch.int64 if whole == "int64" else kind)
              for i, whole, shape in about["input"]]
    outputs = model(*inputs)
    outputs = outputs if isinstance(outputs, (tuple, list)) else [outputs]
    loss = 0
    for i, _, shape in about["cross-entropy"]:
        target = torch.from_numpy(load(folder / f"target.{i}", [-1], "int64"))
        loss = loss + torch.nn.functional.cross_entropy(outputs[i].reshape(-1, shape[-1]), target)
    for i, _, shape in about["squares"]:
        target = torch.from_numpy(load(folder / f"target.{i}", shape)).to(kind)
        loss = loss + torch.nn.functional.mse_loss(outputs[i].reshape(shape), target)
    return loss


def align(weight, parameters):
    """PyTorch's gradient in the order of `weight`, and where it is known: parameters are found by their values, which
    are random. Where a parameter lies otherwise, or is several of them, value by value."""
    for p in parameters:
        for turned in (p, p.T if p.dim() == 2 else p):
            mine = turned.detach().numpy().astype("float32")
            if mine.size == weight.size and np.array_equal(mine.ravel(), weight.ravel()):
                gradient = p.grad if turned is p else p.grad.T
                return gradient.numpy().reshape(weight.shape), np.ones(weight.shape, bool)
    values = np.concatenate([p.detach().numpy().astype("float32").ravel() for p in parameters])
    gradients = np.concatenate([p.grad.numpy().ravel() for p in parameters])
    values, first, count = np.unique(values, return_index=True, return_counts=True)
    at = np.clip(np.searchsorted(values, weight), 0, len(values) - 1)
    return gradients[first[at]], (values[at] == weight) & (count[at] == 1)


def differentiate(hwnas, folder, about, kind):
    model = load_module(hwnas, folder, kind)
    loss = torch_loss(model, about, folder, kind)
    loss.backward()
    return loss.item(), [p for p in model.parameters() if p.grad is not None]


def rounding(parameters, largest, hwnas, folder, about):
    """How far PyTorch's own gradients in single precision are from those in double precision."""
    _, single = differentiate(hwnas, folder, about, torch.float32)
    return max(((p.grad - q.grad).abs().max() / max(p.grad.abs().max().item(), largest / 100)).item()
               for p, q in zip(parameters, single))


def main(hwnas, step, tolerance, onnx, *how):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        subprocess.run([step, onnx, folder, *how], check=True)
        about, loss = read_about(folder)
        wanted, parameters = differentiate(hwnas, folder, about, torch.float64)
        largest = max(p.grad.abs().max().item() for p in parameters)
        tolerance = max(float(tolerance), 3 * rounding(parameters, largest, hwnas, folder, about))
        assert abs(loss - wanted) <= tolerance * abs(wanted), (loss, wanted)
        worst, n_known = 0, 0
        for i, _, shape in about["weight"]:
            weight, gradient = load(folder / f"weight.{i}", shape), load(folder / f"gradient.{i}", shape)
            truth, is_known = align(weight, parameters)
            assert is_known.mean() > 0.5, f"weight {i} of shape {shape} is not in the module"
            scale = max(np.abs(truth[is_known]).max(), largest / 100)
            error = np.abs(gradient - truth)[is_known].max() / scale
            if error > tolerance:
                print(f"weight {i} of shape {shape}: error {error:.2g}")
            worst, n_known = max(worst, error), n_known + int(is_known.sum())
    print(f"{pathlib.Path(onnx).name}: loss {loss:.6g}, {len(about['weight'])} parameters of {n_known} values, "
          f"largest error {worst:.2g} of {tolerance:.2g}")
    assert worst <= tolerance


main(*sys.argv[1:])
