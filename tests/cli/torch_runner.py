#!/usr/bin/python3
"""What runners/torch_runner.py runs is the network: its module's outputs are those of the reference in plain C.

torch_runner.py HWNAS RUNNER MODEL.onnx...
"""
import importlib.util
import subprocess
import sys

import numpy
import torch

program, runner, *models = sys.argv[1:]
spec = importlib.util.spec_from_file_location("torch_runner", runner)
torch_runner = importlib.util.module_from_spec(spec)
spec.loader.exec_module(torch_runner)
for path in models:
    onnx = open(path, "rb").read()
    for way in torch_runner.WAYS:
        module, zeros = torch_runner.load(onnx, program, way)
        assert all(z.dtype == torch.float32 for z in zeros), zeros
        torch.manual_seed(2026)
        inputs = [torch.rand(z.shape) for z in zeros]
        numpy.save("input.npy", inputs[0].numpy())
        subprocess.run([program, "run", path, "--device", "ref", "--input", "input.npy", "--output", "want.npy"],
                       check=True, stdout=subprocess.DEVNULL)
        want = numpy.load("want.npy")
        with torch.inference_mode():
            for _ in range(3):  # TorchScript's compiler comes in after two runs
                got = module(*inputs).numpy()
                error = abs(got.reshape(want.shape) - want).max() / abs(want).max()
                assert error < 1e-5, (path, way, error)
        print(path, way, "off by", error)
