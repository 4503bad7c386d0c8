#!/usr/bin/env python3
"""PyTorch's latency of models on a GPU: fp16, channels_last, as a CUDA graph or by torch.compile.

Reads lines "MODEL graph" or "MODEL compile" and answers each with a line of JSON, {"1": seconds, "32": seconds} or
{"why": message}. The first line, unasked, tells that it is ready; without a torch that has CUDA it ends with 1.

The model is hwnas's own export, so that both run the same network with random weights."""
import importlib.util
import json
import os
import subprocess
import sys
import tempfile

import torch

HWNAS = os.environ.get("HWNAS", "./hwnas")
BATCHES = (1, 32)


def load(model):
    with tempfile.TemporaryDirectory() as work:
        path = os.path.join(work, "net.py")
        subprocess.run([HWNAS, "export", "--space", model, "--format", "pytorch", "--out", path], check=True,
                       stdout=subprocess.DEVNULL)
        spec = importlib.util.spec_from_file_location("net", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return module.build().eval().half().cuda().to(memory_format=torch.channels_last)


def inputs_of(model, batch):
    """Inputs that fit, as the model's page tells them."""
    text = subprocess.run([HWNAS, "space", "show", model, "--json"], check=True, capture_output=True, text=True).stdout
    for given in json.loads(text)["inputs"]:
        shape = [batch, *given["shape"][1:]]
        if given["type"].startswith("int"):
            yield torch.randint(given.get("below", 2), shape, device="cuda", dtype=getattr(torch, given["type"]))
        elif len(shape) == 4:
            x = torch.rand(shape, device="cuda", dtype=torch.half)
            yield x.to(memory_format=torch.channels_last)
        else:
            yield torch.rand(shape, device="cuda", dtype=torch.half)


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


def by_graph(net, inputs):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            net(*inputs)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        net(*inputs)
    return median_seconds(graph.replay)


def by_compiler(net, inputs):
    fast = torch.compile(net, mode="reduce-overhead", dynamic=False)
    return median_seconds(lambda: fast(*inputs))


WAYS = {"graph": by_graph, "compile": by_compiler}


def answer(model, way):
    try:
        net = load(model)
        with torch.inference_mode():
            return {batch: WAYS[way](net, list(inputs_of(model, batch))) for batch in BATCHES}
    except Exception as problem:
        return {"why": f"{type(problem).__name__}: {problem}"[:500]}


def main():
    if not torch.cuda.is_available():
        sys.exit("this torch has no GPU")
    torch.backends.cudnn.benchmark = True
    said = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what compilers print is no answer
    print(json.dumps({"torch": torch.__version__}), file=said, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(*line.split())), file=said, flush=True)
        torch.cuda.empty_cache()


main()
