#!/usr/bin/python3
"""Stands for the programs that examples/runners/printed_numbers.sh drives, by the name that it is called by: OpenVINO's
benchmark_app, TensorRT's trtexec, and adb with a program on a phone. Their answers have the form of the real ones; a run
takes 2 ms for each node of a file that the ONNX library finds valid.
"""
import json
import os
import shutil
import sys

import onnx

PHONE = "/data/local/tmp/"


def milliseconds(path):
    model = onnx.load(path)
    onnx.checker.check_model(model)
    return 2 * len(model.graph.node)


def value(name, words):
    return next(word.split("=", 1)[1] for word in words if word.startswith(name + "="))


def benchmark_app(words):
    time = milliseconds(words[words.index("-m") + 1])
    assert int(words[words.index("-t") + 1]) >= 1
    print("[ INFO ] Latency:", f"[ INFO ]    Median:        {time:.2f} ms", "[ INFO ]    Average:       99.00 ms", sep="\n")


def trtexec(words):
    time = milliseconds(value("--onnx", words))
    assert int(value("--duration", words)) >= 1
    print("[I] === Performance summary ===")
    with open(value("--exportTimes", words), "w") as file:
        runs = [{"startComputeMs": 9 * i, "computeMs": time / 2, "d2hMs": time / 2, "latencyMs": time} for i in range(20)]
        json.dump(runs, file, separators=(", ", " : "))


def adb(words):
    phone = os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "phone.onnx")
    if words[0] == "push":
        assert words[2].startswith(PHONE)
        shutil.copy(words[1], phone)
        print("1 file pushed")
    else:
        assert words[0] == "shell" and PHONE in value("--model", words[1].split())
        print(*[f"latency_ms: {milliseconds(phone)}\r" for _ in range(20)], sep="\n")


{"benchmark_app": benchmark_app, "trtexec": trtexec, "adb": adb}[os.path.basename(sys.argv[0])](sys.argv[1:])
