"""Judges of supernets (hwnas export SPACE --supernet), in PyTorch.

    supernet.py params net.py CODES.json SHAPE [...]
                                               networks have as many parameters as `hwnas space sample --json` says
    supernet.py score net.py PREFIX CODES.csv STATISTICS
                                               what networks reach with slices of PREFIX.npz on PREFIX-samples.npz, in
                                               percent, a line for each: BatchNorm's statistics are of the first samples
"""
import csv
import importlib.util
import json
import sys

import numpy as np
import torch


def load(path):
    spec = importlib.util.spec_from_file_location("supernet", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.build().eval(), module


def params(path, codes, shape):
    net, module = load(path)
    taken, take = {}, net.take

    def note(name, *sizes):
        taken[name] = take(name, *sizes).numel()
        return take(name, *sizes)
    net.take = note
    with open(codes, encoding="utf-8") as file:
        archs = json.load(file)["archs"]
    first = next(iter(net.parameters()))
    shape = [int(size) for size in shape.split("x")]
    assert len(archs) > 4 and first.numel()
    for arch in archs:
        taken.clear()
        choices = net.read_code(arch["arch"])
        assert net.allowed(choices), arch
        with torch.no_grad():
            net(torch.zeros(2, *shape), choices)
        assert sum(taken.values()) == arch["params"], (arch, sum(taken.values()))
    code = archs[0]["arch"]
    for wrong in (code + "?", code[:-1] + "~", "nowhere=1"):  # told by the choice, not by Python's list
        try:
            net.read_code(wrong)
        except ValueError as error:
            assert f"the code '{wrong}'" in str(error), error
        else:
            raise AssertionError(f"{wrong} was read")
    for _ in range(20):  # what is drawn is allowed, and the smallest is within the largest
        net(torch.zeros(1, *shape), net.random())
    print(f"{path}: {len(archs)} networks")


def score(path, prefix, codes, n):
    net, _ = load(path)
    weights = np.load(prefix + ".npz")
    assert sorted(weights) == sorted(name for name, _ in net.named_parameters())
    net.load_state_dict({name: torch.from_numpy(weights[name]) for name in weights})
    samples = np.load(prefix + "-samples.npz")
    x, y = torch.from_numpy(samples["x"]), torch.from_numpy(samples["y"]).long()
    with open(codes, encoding="utf-8") as file:
        rows = [row["arch"] for row in csv.DictReader(file)]
    for code in rows:
        choices = net.read_code(code)
        net.statistics = {}
        with torch.no_grad():
            net(x[:n], choices)
            right = (net(x[n:], choices).argmax(1) == y[n:]).float().mean().item()
        print(f"{100 * right:.4f}")


if sys.argv[1] == "params":
    for first in range(2, len(sys.argv), 3):  # in one process: to load PyTorch takes longer
        params(*sys.argv[first:first + 3])
else:
    score(*sys.argv[2:5], int(sys.argv[5]))
