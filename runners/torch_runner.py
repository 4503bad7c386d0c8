#!/usr/bin/env python3
"""The device `torch`: runs networks as the PyTorch modules that hwnas writes of them.

torch_runner.py HWNAS: a runner (docs/runner-protocol.md) that has HWNAS, the program, write the modules.
hwnas starts it by itself.
"""
import importlib.util
import json
import os
import pathlib
import platform
import re
import select
import struct
import subprocess
import sys
import tempfile
import time

OPEN, MEASURE, GRAPH, PHASE, ANSWER, SAMPLES = 1, 2, 3, 4, 5, 7
WAYS = ("eager", "compiled")
WARM_UP = 5  # runs: the compiler of TorchScript looks at two before it begins
KINDS = {1: "float32", 2: "uint8", 3: "int8", 6: "int32", 7: "int64", 9: "bool", 10: "float16", 11: "float64"}


class Unsupported(Exception):
    """A message, and perhaps what to try."""


# ---- The network ----


def number_at(data, at):
    """A varint of Protocol Buffers, and where it ends."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """The fields of a message of Protocol Buffers: numbers, and values as int or memoryview."""
    at = 0
    while at < len(data):
        key, at = number_at(data, at)
        if key & 7 == 0:
            value, at = number_at(data, at)
        else:
            n, at = {1: (8, at), 5: (4, at)}.get(key & 7) or number_at(data, at)
            value, at = data[at:at + n], at + n
        yield key >> 3, value


def find(data, *path):
    """All values at a path of field numbers."""
    if not path:
        return [data]
    return [v for number, value in fields(data) if number == path[0] for v in find(value, *path[1:])]


def inputs_of(onnx):
    """The shape and the type of each input, from an ONNX file (onnx.proto: ModelProto.graph is 7, ...)."""
    graph = find(memoryview(onnx), 7)[0]
    constants = {bytes(name) for name in find(graph, 5, 8)}
    for info in find(graph, 11):
        tensor = find(info, 2, 1)[0]
        if bytes(find(info, 1)[0]) not in constants:
            shape = [next(iter(find(dim, 1)), 1) for dim in find(tensor, 2, 1)]
            yield shape, KINDS[find(tensor, 1)[0]]


def write_module(onnx, program, folder):
    """Has hwnas write the network as a module with its weights; the module, ready to run."""
    (folder / "network.onnx").write_bytes(onnx)
    run = subprocess.run([program, "export", folder / "network.onnx", "--format", "pytorch", "--out",
                          folder / "network.py"], capture_output=True, text=True)
    if run.returncode:
        raise Unsupported(run.stderr.strip().splitlines()[0] if run.stderr.strip() else "hwnas export failed")
    spec = importlib.util.spec_from_file_location("network", folder / "network.py")
    network = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(network)
    return network.build()


def compile_module(model, inputs):
    import torch
    if hasattr(torch, "compile"):
        return torch.compile(model)
    if model.training:
        return torch.jit.trace(model, inputs, check_trace=False)
    return torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(model, inputs, check_trace=False)))


def make_input(shape, kind, below):
    """Zeros; random where `below` says so, and whole numbers are below it."""
    import torch
    if not below:
        return torch.zeros(shape, dtype=getattr(torch, kind))
    if kind.startswith("float"):
        return torch.rand(shape, dtype=getattr(torch, kind)) * 2 - 1
    return torch.randint(below, shape).to(getattr(torch, kind))


def load(onnx, program, way, trains=False):
    """The module of an ONNX file, and inputs for it."""
    import torch
    with tempfile.TemporaryDirectory() as folder:
        model = write_module(onnx, program, pathlib.Path(folder)).train(trains)
    below = trains and min((m.num_embeddings for m in model.modules() if isinstance(m, torch.nn.Embedding)), default=1)
    inputs = [make_input(shape, kind, below) for shape, kind in inputs_of(onnx)]
    return compile_module(model, inputs) if way == "compiled" else model, inputs


# ---- Training steps ----


def target_of(output, loss):
    """Classes, or values: what they are does not matter for the time."""
    import torch
    if loss == "cross-entropy":
        return torch.randint(output.shape[-1], (output.numel() // output.shape[-1],))
    return torch.rand(output.shape)


def loss_of(output, target, loss):
    import torch.nn.functional as F
    if loss == "cross-entropy":
        return F.cross_entropy(output.float().reshape(-1, output.shape[-1]), target)
    return F.mse_loss(output.float(), target)


def training_step(model, inputs, request):
    """A function that does one step: forward, loss, backward, update."""
    import torch
    # Rates are so small that no weight changes by much, however many steps are measured.
    optimizer = (torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9) if request["training"] == "sgd"
                 else torch.optim.AdamW(model.parameters(), lr=1e-6))
    losses = request["losses"]

    def forward():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=request["precision"] == "bf16"):
            outputs = model(*inputs)
        return outputs if isinstance(outputs, (tuple, list)) else [outputs]

    with torch.no_grad():
        targets = [target_of(output, loss) for output, loss in zip(forward(), losses)]

    def step():
        optimizer.zero_grad()
        sum(map(loss_of, forward(), targets, losses)).backward()
        optimizer.step()

    return step


def held_bytes(key):
    """VmRSS, what this process holds; VmHWM, the most that it has held."""
    return int(re.search(rf"{key}:\s*(\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]) << 10


def forget_peak():
    try:
        pathlib.Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass  # the peak of earlier networks counts as well


# ---- The protocol ----


def send(kind, payload):
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    data = struct.pack("<4sIQ", b"hwn1", kind, len(data)) + data
    while data:
        data = data[sink.write(data):]


def read(n):
    data = bytearray()
    while len(data) < n:
        piece = source.read(min(n - len(data), 1 << 20))
        if not piece:
            sys.exit()  # the search has ended
        data += piece
    return bytes(data)


def receive():
    magic, kind, n = struct.unpack("<4sIQ", read(16))
    if magic != b"hwn1" or n > (2**31 if kind == GRAPH else 8 << 20):
        sys.exit("this is no frame of hwnas")
    return kind, read(n)


def find_torch():
    """PyTorch's version. It is loaded with the first network, as that takes seconds."""
    spec = importlib.util.find_spec("torch")
    if not spec or not spec.origin:
        raise Unsupported(f"{sys.executable} has no PyTorch",
                          "install python3-torch, or name another Python: HWNAS_TORCH_PYTHON=/path/python3")
    text = (pathlib.Path(spec.origin).parent / "version.py").read_text()
    return re.search(r"""__version__ *= *['"]([^'"]+)""", text)[1]


def processor():
    names = re.findall("^model name.*: (.*)", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return names[0] if names else platform.machine()


def hello(request):
    way = request.get("device") or "eager"
    if way not in WAYS:
        raise Unsupported(f"torch does not run networks '{way}'", "write torch, torch:eager or torch:compiled")
    version = find_torch()
    by = "torch.compile" if int(version.split(".")[0]) > 1 else "torch.jit.freeze"
    return way, {"protocol": 1, "name": processor()[:120], "native": ["f32"], "abilities": ["train"],
                 "library": f"PyTorch {version[:20]}, " + (f"compiled by {by}" if way == "compiled" else way),
                 "threads": request.get("threads") or len(os.sched_getaffinity(0))}


def sample(run, seconds_most):
    """Sends times until the search says that there are enough; that is all it can say here."""
    most = time.perf_counter() + seconds_most
    while time.perf_counter() < most and not select.select([source], [], [], 0)[0]:
        end, seconds = time.perf_counter() + 0.05, []
        while not seconds or time.perf_counter() < end:
            before = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - before)
        send(SAMPLES, {"seconds": seconds})


def measure(request, onnx, program, way, threads):
    trains = request.get("training", "none") != "none"
    if request["mode"] != "hot" or request["precision"] not in ("f32", "bf16")[:1 + trains]:
        raise Unsupported("torch trains in f32 and bf16, one step after the other" if trains
                          else "torch measures in f32, one run after the other")
    send(PHASE, b"loading PyTorch")
    import torch
    torch.set_num_threads(threads)
    send(PHASE, b"compiling")
    start = time.perf_counter()
    before = held_bytes("VmRSS")
    forget_peak()
    with torch.inference_mode(not trains):
        model, inputs = load(onnx, program, way, trains)
        run = training_step(model, inputs, request) if trains else lambda: model(*inputs)
        compiled = time.perf_counter()
        run()
        first = time.perf_counter()
        for _ in range(WARM_UP):
            send(PHASE, b"warming up")
            run()
        sample(run, 3 * request["max_seconds"] + 1)
    memory = {"memory_bytes": max(held_bytes("VmHWM") - before, 0)} if trains else {}
    return {"compile_seconds": compiled - start, "first_run_seconds": first - compiled, **memory}


def answer(function, *arguments):
    """Answers with what the function returns, or with why it failed: the search goes on with others."""
    try:
        send(ANSWER, {"status": "ok", **function(*arguments)})
    except Unsupported as error:
        send(ANSWER, {"status": "unsupported", **dict(zip(("message", "hint"), error.args))})
    except Exception as error:
        send(ANSWER, {"status": "unsupported", "message": f"{type(error).__name__}: {error}"[:900]})


def main(program):
    state = {}

    def open_device(request):
        state["way"], info = hello(request)
        state["threads"] = info["threads"]
        return {"info": info}

    while True:
        kind, payload = receive()
        if kind == OPEN:
            answer(open_device, json.loads(payload))
        elif kind == MEASURE:
            answer(measure, json.loads(payload), receive()[1], program, state["way"], state["threads"])
        # A STOP that comes behind the last sample is nothing to answer.


if __name__ == "__main__":
    # Frames go over copies of the streams: what a library prints goes to standard error.
    source = os.fdopen(os.dup(0), "rb", buffering=0)
    sink = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    main(sys.argv[1])
