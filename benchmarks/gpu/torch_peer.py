#!/usr/bin/env python3
"""PyTorch's latency of one model on a GPU: fp16, channels_last, as a CUDA graph or by torch.compile.

    torch_peer.py MODEL graph|compile   the last line: {"1": seconds, "32": seconds}
    torch_peer.py --list                models that it can measure here; fails where there is no torch with CUDA

The model is hwnas's own export, so that both run the same network with random weights."""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

import torch

HWNAS = os.environ.get("HWNAS", "./hwnas")
MODELS = """mobilenet_v2 resnet50 mobilenet_v3_large efficientnet_b0 resnet32_cifar vgg16 deit_tiny vit_b16 resnet152
    nasnet_mobile efficientnet_b2 mnist_cnn""".split()
SIZES = {"resnet32_cifar": 32, "mnist_cnn": 28, "efficientnet_b2": 260}


def load(model):
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "net.py")
        subprocess.run([HWNAS, "export", "--space", model, "--format", "pytorch", "--out", path], check=True)
        spec = importlib.util.spec_from_file_location("net", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module.build().eval().half().cuda().to(memory_format=torch.channels_last)


def median_seconds(run):
    """Of replays timed by events, after a warm-up."""
    for _ in range(20):
        run()
    torch.cuda.synchronize()
    times = []
    for _ in range(60):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e-3)
    return sorted(times)[len(times) // 2]


def by_graph(net, x):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            net(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        net(x)
    return median_seconds(graph.replay)


def main(model, way=None):
    if not torch.cuda.is_available():
        sys.exit("this torch has no GPU")
    if model == "--list":
        print(*MODELS)
        return
    torch.backends.cudnn.benchmark = True
    net, out = load(model), {}
    channels = 1 if model.startswith("mnist") else 3
    size = SIZES.get(model, 224)
    with torch.inference_mode():
        for batch in (1, 32):
            x = torch.rand(batch, channels, size, size, device="cuda", dtype=torch.half)
            x = x.to(memory_format=torch.channels_last)
            if way == "graph":
                out[batch] = by_graph(net, x)
            else:
                fast = torch.compile(net, mode="reduce-overhead")
                out[batch] = median_seconds(lambda: fast(x))
    print(json.dumps(out))


main(*sys.argv[1:])
