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
    return network.build().eval()


def compile_module(model, inputs):
    import torch
    if hasattr(torch, "compile"):
        return torch.compile(model)
    return torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(model, inputs, check_trace=False)))


def load(onnx, program, way):
    """The module of an ONNX file, and inputs for it."""
    import torch
    inputs = [torch.zeros(shape, dtype=getattr(torch, kind)) for shape, kind in inputs_of(onnx)]
    with tempfile.TemporaryDirectory() as folder:
        model = write_module(onnx, program, pathlib.Path(folder))
    return compile_module(model, inputs) if way == "compiled" else model, inputs


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
    return way, {"protocol": 1, "name": processor()[:120], "native": ["f32"],
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
    if (request["precision"], request["mode"]) != ("f32", "hot"):
        raise Unsupported("torch measures in f32, one run after the other")
    send(PHASE, b"loading PyTorch")
    import torch
    torch.set_num_threads(threads)
    send(PHASE, b"compiling")
    start = time.perf_counter()
    with torch.inference_mode():
        model, inputs = load(onnx, program, way)
        compiled = time.perf_counter()
        model(*inputs)
        first = time.perf_counter()
        for _ in range(WARM_UP):
            send(PHASE, b"warming up")
            model(*inputs)
        sample(lambda: model(*inputs), 3 * request["max_seconds"] + 1)
    return {"compile_seconds": compiled - start, "first_run_seconds": first - compiled}


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
