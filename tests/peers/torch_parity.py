#!/usr/bin/python3
"""Does the PyTorch export compute what hwnas computes?

    torch_parity.py HWNAS SPACE CODE [SPACE CODE]...

Exports each architecture as PyTorch and as ONNX, puts the ONNX file's weights into the module in the
order in which it made its own, and compares the outputs for random inputs, the number of parameters
with `space show --json`, and takes a training step. Ends at the first that differs by a relative 1e-4.
"""

import importlib.util
import inspect
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

# ONNX has the gates as input, output, forget, cell and update, reset, hidden; PyTorch as input,
# forget, cell, output and reset, update, hidden.
GATES = {torch.nn.LSTM: [0, 2, 3, 1], torch.nn.GRU: [1, 0, 2]}
CHANNELS = (torch.nn.GroupNorm, torch.nn.PReLU)


def export(hwnas, space, code, form, path):
    command = [hwnas, "export", "--space", space, "--arch", code, "--format", form]
    subprocess.run(command + ["--out", path], check=True)


def build(path):
    """The model, and its tensors with the layers that have them, in the order of assignment:
    state_dict() has a module's own parameters before those of its layers."""
    names = {}
    set_attribute = torch.nn.Module.__setattr__

    def remember(module, name, value):
        if isinstance(value, (torch.nn.Module, torch.nn.Parameter)):
            names.setdefault(id(module), []).append(name)
        set_attribute(module, name, value)

    def walk(module):
        own = {**module._parameters, **module._buffers, **module._modules}
        for name in dict.fromkeys(names.get(id(module), []) + list(own)):
            value = own.get(name)
            if isinstance(value, torch.nn.Module):
                yield from walk(value)
            elif value is not None and name != "num_batches_tracked":
                yield module, name, value

    spec = importlib.util.spec_from_file_location("best", path)
    module = importlib.util.module_from_spec(spec)
    torch.nn.Module.__setattr__ = remember
    try:
        spec.loader.exec_module(module)
        model = module.build().eval()
    finally:
        torch.nn.Module.__setattr__ = set_attribute
    unique = {}
    for owner, name, value in walk(model):  # a tied layer has the table once more
        unique.setdefault(id(value), (owner, name, value))
    return model, list(unique.values())


def read_weights(graph):
    """What is learned or is a running statistic, by name, as our PyTorch layers have it."""
    weights = {}
    for tensor in graph.initializer:
        values = onnx.numpy_helper.to_array(tensor)
        is_learned = tensor.doc_string != "not learned" and values.dtype == np.float32
        is_statistic = tensor.name.endswith((".mean", ".variance"))
        if tensor.dims and (is_learned or is_statistic):
            # A `linear` of sequences is a product from the right.
            weights[tensor.name] = values.T if tensor.name.endswith(".kernel") else values
    return weights


def rnn_tensors(kind, weights, path):
    """weight_ih, weight_hh, bias_ih, bias_hh of one layer, direction by direction."""
    w, r = weights.pop(path + ".weight"), weights.pop(path + ".recurrent")
    b = weights.pop(path + ".bias", None)
    tensors = []
    for d in range(len(w)):
        parts = [w[d], r[d]]
        if b is not None:
            rows = len(w[d])
            parts += [b[d][:rows], b[d][rows:] if len(b[d]) > rows else np.zeros_like(b[d])]
        for part in parts:
            gates = np.split(part, len(GATES[kind]))
            tensors.append(np.concatenate([gates[g] for g in GATES[kind]]))
    return tensors


def volume_kernel(weight, shape, weights):
    """Of a Conv3d: the depth lies in the channels, or a depthwise one has a weight for each slice."""
    if weight.size == np.prod(shape):
        return weight.reshape(shape)
    slices = [weight]
    for _ in range(shape[2] - 1):
        slices.append(weights.pop(next(n for n in weights if n.endswith(".weight"))))
    return np.stack(slices, 2)


def set_weights(made, weights):
    waiting = []
    for owner, name, tensor in made:
        kind = next((k for k in GATES if isinstance(owner, k)), None)
        if not waiting:
            assert weights, f"PyTorch has more tensors than ONNX: {name} {tuple(tensor.shape)}"
            first = next(iter(weights))
            waiting = (
                rnn_tensors(kind, weights, first.rsplit(".", 1)[0])
                if kind
                else [weights.pop(first)]
            )
        weight = waiting.pop(0)
        if isinstance(owner, CHANNELS):  # ours broadcast: channels x 1 x 1
            weight = weight.reshape(-1)
        if isinstance(owner, torch.nn.Conv1d) and weight.ndim == 4:  # of one row
            weight = weight[:, :, 0]
        if isinstance(owner, torch.nn.Conv3d) and weight.ndim == 4:
            weight = volume_kernel(weight, tensor.shape, weights)
        assert tensor.shape == weight.shape, f"{name}: {tuple(tensor.shape)}, not {weight.shape}"
        with torch.no_grad():
            tensor.copy_(torch.from_numpy(weight.copy()))
    assert not weights and not waiting, f"ONNX has more tensors than PyTorch: {list(weights)}"


def random_input(fact):
    if fact["type"] == "int64":
        return torch.randint(fact["below"], fact["shape"])
    return torch.randn(*fact["shape"])


def arguments(model, facts, inputs):
    """As forward() takes them: several of one name as a list."""
    names = list(inspect.signature(model.forward).parameters)
    given = {}
    for fact, tensor in zip(facts, inputs):
        if fact["name"] in names or len(facts) == 1:
            given[fact["name"]] = tensor
        else:  # memory_0, memory_1
            given.setdefault(fact["name"].rsplit("_", 1)[0], []).append(tensor)
    return list(given.values())


def as_tuple(outputs):
    return outputs if isinstance(outputs, tuple) else (outputs,)


def in_double(inputs):
    if isinstance(inputs, list):
        return [in_double(x) for x in inputs]
    return inputs.double() if inputs.is_floating_point() else inputs


def twice(inputs):
    if isinstance(inputs, list):
        return [twice(x) for x in inputs]
    return torch.cat([inputs, inputs.flip(-1)])


def compare(hwnas, space, code):
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        export(hwnas, space, code, "pytorch", path / "best.py")
        export(hwnas, space, code, "onnx", path / "best.onnx")
        weights = read_weights(onnx.load(path / "best.onnx").graph)
        show = [hwnas, "space", "show", space, "--arch", code, "--json"]
        facts = json.loads(subprocess.run(show, check=True, capture_output=True).stdout)
        inputs = [random_input(fact) for fact in facts["inputs"]]
        with open(path / "in.bin", "wb") as file:
            for tensor in inputs:
                file.write(tensor.float().numpy().tobytes())
        run = [hwnas, "run", path / "best.onnx", "--device", "ref"]
        subprocess.run(run + ["--input", path / "in.bin", "--output", path / "out.bin"], check=True)
        expected = torch.from_numpy(np.fromfile(path / "out.bin", np.float32))
        model, made = build(path / "best.py")

    set_weights(made, weights)
    given = arguments(model, facts["inputs"], inputs)
    with torch.no_grad():
        # In double, so that only our own rounding counts: deep networks of random weights amplify it.
        outputs = as_tuple(model.double()(*in_double(given)))
    shapes = [list(y.shape) for y in outputs]
    assert shapes == [y["shape"] for y in facts["outputs"]], f"the outputs' shapes are {shapes}"
    error = 0
    for output in outputs:
        ours, expected = expected[: output.numel()], expected[output.numel() :]
        error = max(error, ((output.flatten() - ours).abs().max() / ours.abs().max()).item())
    assert error <= LIMIT, f"the outputs differ by {error:.2g}"

    learned = [p for p in model.parameters() if p.requires_grad]
    parameters = sum(p.numel() for p in learned)
    assert parameters == facts["params"], f"{parameters} parameters, not {facts['params']}"

    # Training: nothing that the gradient needs was overwritten in place. BatchNorm wants two images.
    model.float().train()
    if any(isinstance(m, torch.nn.modules.batchnorm._BatchNorm) for m in model.modules()):
        given = twice(given)
    sum(y.square().sum() for y in as_tuple(model(*given))).backward()
    for name, p in model.named_parameters():
        if p.requires_grad:
            assert p.grad is not None, f"{name} has no gradient"
            assert p.grad.isfinite().all(), f"{name} has no finite gradient"
    print(f"{code}: {parameters:,} parameters, outputs differ by {error:.2g}")


if __name__ == "__main__":
    if len(sys.argv) < 4 or len(sys.argv) % 2:
        sys.exit("usage: torch_parity.py HWNAS SPACE CODE [SPACE CODE]...")
    for at in range(2, len(sys.argv), 2):
        network = sys.argv[at : at + 2]
        try:
            compare(sys.argv[1], *network)
        except (AssertionError, subprocess.CalledProcessError) as error:
            sys.exit(f"torch_parity.py: {network}: {error}")
