#!/usr/bin/env python3
"""torchvision_derive.py: spaces derived from torchvision's networks: the first network is the model.

    torchvision_derive.py HWNAS FOLDER [NAME...]

Exports each network (of random weights and random statistics of BatchNorm), derives a space, and
writes the space's first network and the one with the last value of every choice. The first has to give what PyTorch gives,
within 1e-5 of the largest value; the last has to run. Prints a line for each; fails when one differs. Needs Debian's
python3-torchvision and python3-onnx.
"""

import json
import os
import re
import subprocess
import sys

import numpy as np
import torch
import torchvision

LIMIT = 1e-5
# Name: height and width.
NETWORKS = {
    "alexnet": 224, "vgg11_bn": 224, "resnet18": 64, "resnet50": 64, "resnext50_32x4d": 64, "wide_resnet50_2": 64,
    "squeezenet1_1": 64, "densenet121": 64, "googlenet": 96, "inception_v3": 128, "shufflenet_v2_x1_0": 64,
    "mobilenet_v2": 64, "mobilenet_v3_small": 64, "mobilenet_v3_large": 64, "mnasnet1_0": 64, "efficientnet_b0": 64,
    "efficientnet_v2_s": 64, "regnet_x_400mf": 64, "regnet_y_400mf": 64, "convnext_tiny": 64, "vit_b_16": 224, "swin_t": 224,
}


def make(name):
    torch.manual_seed(1)
    more = {"aux_logits": False, "init_weights": True} if name in ("googlenet", "inception_v3") else {}
    net = getattr(torchvision.models, name)(weights=None, **more).eval()
    for module in net.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.uniform_(-0.1, 0.1)
            module.running_var.uniform_(0.5, 1.5)
    for values in net.parameters():
        if not values.any():  # ViT begins with a head of zeros
            torch.nn.init.normal_(values, std=0.02)
    return net


# torchvision 0.14 drops in Swin's attention when it does not train, too: nothing, with a rate of 0.
torch.nn.functional.dropout = lambda x, *_, **__: x


def hwnas(*args):
    done = subprocess.run([HWNAS, *args], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"hwnas {args[0]}: {done.stderr.strip()[:300]}")
    return done.stdout


def code_of(space, which):
    choices = re.findall(r"^  (\w+): \{values: \[(.*)\]\}", open(space).read(), re.M)
    return ",".join(f"{name}={values.split(', ')[which]}" for name, values in choices), len(choices)


def check(name):
    net, size = make(name), NETWORKS[name]
    x = torch.randn(1, 3, size, size)
    with torch.no_grad():
        theirs = net(x).numpy()
        if name == "vit_b_16":  # in training attention is exported as what it consists of; nothing is dropped
            net.train()
        torch.onnx.export(net, x, "net.onnx", opset_version=14, input_names=["x"], output_names=["y"],
                          training=torch.onnx.TrainingMode.PRESERVE)
    np.save("x.npy", x.numpy())
    hwnas("space", "derive", "net.onnx", "--out", "net.yaml")
    first, n = code_of("net.yaml", 0)
    last, _ = code_of("net.yaml", -1)
    for code, out in ((first, "first"), (last, "last")):
        hwnas("export", "--space", "net.yaml", "--arch", code, "--format", "onnx", "--out", f"{out}.onnx")
        hwnas("run", f"{out}.onnx", "--input", "x.npy", "--output", f"{out}.npy")
    ours = np.load("first.npy")
    share = os.path.getsize("last.onnx") / os.path.getsize("net.onnx")
    return abs(ours - theirs).max() / abs(theirs).max(), n, share


HWNAS = os.path.abspath(sys.argv[1])
os.makedirs(sys.argv[2], exist_ok=True)
os.chdir(sys.argv[2])
wrong = 0
for name in sys.argv[3:] or NETWORKS:
    try:
        error, n, share = check(name)
        wrong += not error <= LIMIT
        print(f"{name:20} {error:8.1e} of the largest value, {n:3} choices, smallest {share:.3f} of the file", flush=True)
    except Exception as problem:  # the others are of interest as well
        wrong += 1
        print(f"{name:20} {type(problem).__name__}: {problem}", flush=True)
print(json.dumps({"networks": len(sys.argv[3:] or NETWORKS), "wrong": wrong}))
sys.exit(wrong > 0)
