#!/usr/bin/env python3
"""A runner for hwnas in Python: it times networks with ONNX Runtime.

    hwnas search --space ... --device 'runner:python3 onnxruntime_runner.py'

For another runtime only load() has to change. docs/runner-protocol.md tells the protocol.
"""
import json
import os
import platform
import select
import struct
import sys
import time

OPEN, MEASURE, GRAPH, PHASE, ANSWER, SAMPLES, STOP = 1, 2, 3, 4, 5, 7, 8

# Frames go over copies of the streams: what a library prints goes to standard error.
source = os.fdopen(os.dup(0), "rb", buffering=0)
sink = os.fdopen(os.dup(1), "wb", buffering=0)
os.dup2(2, 1)


def load(onnx, threads):
    """The network as a function that runs it once, and what runs it."""
    import numpy
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(onnx, options, providers=["CPUExecutionProvider"])
    kinds = {"tensor(float)": numpy.float32, "tensor(int64)": numpy.int64}
    inputs = {i.name: numpy.zeros(i.shape, kinds[i.type]) for i in session.get_inputs()}
    return lambda: session.run(None, inputs)


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


def measure(request, onnx, threads):
    send(PHASE, b"compiling")
    start = time.perf_counter()
    run = load(onnx, threads)
    compiled = time.perf_counter()
    run()
    first = time.perf_counter()
    most = first + 3 * request["max_seconds"] + 1  # should the search never say STOP
    # What the search says meanwhile can be STOP alone.
    while time.perf_counter() < most and not select.select([source], [], [], 0)[0]:
        end = time.perf_counter() + 0.05
        seconds = []
        while time.perf_counter() < end:
            before = time.perf_counter()
            run()
            seconds.append(time.perf_counter() - before)
        send(SAMPLES, {"seconds": seconds})
    send(ANSWER, {"status": "ok", "compile_seconds": compiled - start,
                  "first_run_seconds": first - compiled})


threads = 1
while True:
    kind, payload = receive()
    if kind == OPEN:
        request = json.loads(payload)
        threads = request["threads"] or len(os.sched_getaffinity(0))
        send(ANSWER, {"status": "ok", "info": {
            "protocol": 1, "name": f"{platform.machine()}, {platform.node()}",
            "library": "ONNX Runtime in Python", "threads": threads, "native": ["f32"]}})
    elif kind == MEASURE:
        request, (_, onnx) = json.loads(payload), receive()
        try:
            if (request["precision"], request["mode"]) != ("f32", "hot"):
                raise NotImplementedError("this runner measures in f32, one run after the other")
            measure(request, onnx, threads)
        except Exception as error:  # the network cannot be run: the search goes on with others
            send(ANSWER, {"status": "unsupported", "message": str(error)[:900]})
    # A STOP that comes behind the last sample is nothing to answer.
