#!/usr/bin/env python3
"""Makes the files good_* of tests/fuzz/corpus that are not written by hand: what the program writes
and reads, small. They are committed; run this again when a format changes.

    tests/fuzz/make_seeds.py build/hwnas
"""
import gzip
import io
import json
import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile

import numpy as np

HWNAS = os.path.abspath(sys.argv[1])
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CORPUS = os.path.join(ROOT, "tests/fuzz/corpus")
SPACE = os.path.join(ROOT, "tests/fuzz/space.yaml")
WORK = tempfile.mkdtemp()


def write(target, name, data):
    os.makedirs(os.path.join(CORPUS, target), exist_ok=True)
    path = os.path.join(CORPUS, target, name)
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    print(f"{os.path.getsize(path):7d} {target}/{name}")


def read(path):
    with open(os.path.join(ROOT, path)) as file:
        return file.read()


def hwnas(*arguments):
    environment = dict(os.environ, XDG_CACHE_HOME=WORK)
    subprocess.run([HWNAS, *arguments], check=True, cwd=WORK, env=environment,
                   stdout=subprocess.DEVNULL)


# ---- Texts: the first rows of published tables, the examples, the shipped profiles ----

def head(path, rows):
    return "".join(read(path).splitlines(keepends=True)[:rows])


def texts():
    write("csv", "good_nas_bench_201.csv", head("tests/data/nas_bench_201.csv", 4))
    write("csv", "good_gpt_s.csv", head("tests/data/gpt_s.csv", 6))
    for name in ("quickstart", "cpu-and-pi", "replay-nb-macro", "replay-nb201-raspi4"):
        write("job", f"good_{name}.yaml", read(f"examples/{name}.yaml"))
    write("prices", "good_example.yaml", read("examples/prices.yaml"))
    write("profile", "good_v100.json", read("examples/profiles/v100-published.json"))
    xeon = json.loads(read("examples/profiles/xeon-2c.json"))
    write("profile", "good_xeon.json", json.dumps(dict(xeon, rows=xeon["rows"][:2])))


# ---- Arrays: what NumPy and MNIST write, eight samples of 2 x 3 values ----

def arrays():
    values = np.arange(48).reshape(8, 2, 3)

    def save(function, *args, **kwargs):
        file = io.BytesIO()
        function(file, *args, **kwargs)
        return file.getvalue()

    idx = bytes([0, 0, 8, 3, *b"\0\0\0\x08\0\0\0\x02\0\0\0\x03", *values.ravel().tolist()])
    write("arrays", "good_f4.npy", save(np.save, values.astype("f4")))
    write("arrays", "good_big_endian.npy", save(np.save, values.astype(">i2")))
    write("arrays", "good_half_packed.npy", gzip.compress(save(np.save, values.astype("f2")), mtime=0))
    write("arrays", "good_stored.npz", save(np.savez, x=values.astype("f8"), y=np.arange(8)))
    write("arrays", "good_packed.npz", save(np.savez_compressed, x=values.astype("u1"), y=np.arange(8.)))
    write("arrays", "good_idx", idx)
    write("arrays", "good_idx.gz", gzip.compress(idx, mtime=0))


# ---- Predictors: of each kind, of 27 invented accuracies; trees are cut to the first of a bag ----

def cut_trees(value):
    if isinstance(value, dict):
        for key, member in value.items():
            if key == "trees" and isinstance(member, list):
                del member[1:]
            cut_trees(member)
    elif isinstance(value, list):
        for member in value:
            cut_trees(member)


def predictors():
    rows = ["width,kernel,classes,acc_pct"]
    for width in (4, 8, 12):
        for kernel in (1, 3, 5):
            for classes in (2, 5, 10):
                rows.append(f"{width},{kernel},{classes},{60 + width + 3 * kernel - classes * .7}")
    with open(f"{WORK}/rows.csv", "w") as file:
        file.write("\n".join(rows) + "\n")
    for kind in ("gp", "gbdt", "ensemble"):
        hwnas("predictor", "fit", SPACE, "rows.csv", "--target", "acc_pct", "--kind", kind,
              "--folds", "3", "--out", f"{kind}.json")
        with open(f"{WORK}/{kind}.json") as file:
            predictor = json.load(file)
        cut_trees(predictor)
        write("predictor", f"good_{kind}.json", json.dumps(predictor, separators=(",", ":")))


# ---- Databases: of a search of eight networks, in pages of 512 bytes ----

def shrink(path, statements=()):
    db = sqlite3.connect(path, isolation_level=None)
    for statement in ("PRAGMA journal_mode = DELETE", *statements, "PRAGMA page_size = 512",
                      "VACUUM"):
        db.execute(statement)
    db.close()
    with open(path, "rb") as file:
        return file.read()


def databases():
    hwnas("search", "--space", SPACE, "--objectives", "params, latency.p50", "--device", "cpu",
          "--threads", "1", "--constraints", "latency.p50 <= 1 s", "--trials", "8", "--seconds",
          "0.02", "--strategy", "random", "--study", "study.db", "--quiet")
    write("study", "good_search.db", shrink(f"{WORK}/study.db", (
        "DELETE FROM event WHERE trial > 3", "DELETE FROM value WHERE trial > 3",
        "DELETE FROM trial WHERE number > 3",
        "INSERT INTO earlier SELECT position, status, message, detail, seconds, violation,"
        " unstable, stopped_early FROM event JOIN trial ON number = trial WHERE number = 0",
        "INSERT INTO earlier_value SELECT event.position, value.position, metric, value, low, high,"
        " unit, 'estimated' FROM event JOIN value USING (trial) WHERE trial = 0",
        "INSERT INTO event (trial, kind) VALUES (0, 'put off'), (0, 'revised')",
        "INSERT INTO again SELECT trial, metric, value, low, high, 2 FROM value"
        " WHERE trial = 0 AND low IS NOT NULL")))
    write("latency", "good_cache.db", shrink(f"{WORK}/hwnas/latency-3.db", (
        "UPDATE machine SET name = 'machine'",)))


# ---- Frames: requests as the search makes them, and what the runner of the device `null` answered.
# In a corpus a frame is "hwn1", the digit of its type and its payload (tests/fuzz/frames.h) ----

OPEN, MEASURE, GRAPH, PHASE, ANSWER, GO, SAMPLES, STOP = range(1, 9)
OPTIONS = {"precision": "f32", "mode": "hot", "priority": "auto", "idle_seconds": 0.0001, "interval": 0.5,
           "max_seconds": 0.001, "steps_seconds": 0.001, "steps_runs": 0, "min_samples": 6, "fewest": 0,
           "tails": [0.9, 0.99] + 6 * [0], "give_up": 0, "max_attempts": 1, "timeout": 60,
           "memory_limit": 0}
OPENING = {"protocol": 1, "device": "null", "threads": 1, "cores": [0], "allowed": [0, 1]}


def frames():
    hwnas("export", "--space", SPACE, "--arch", "width=4,kernel=1,classes=2", "--format", "onnx",
          "--out", "net.onnx")
    with open(f"{WORK}/net.onnx", "rb") as file:
        graph = (GRAPH, file.read())
    requests = {
        "measure": [(MEASURE, dict(OPTIONS, steps=False)), graph],
        "steps": [(MEASURE, dict(OPTIONS, steps=True)), graph],
        "race": [(MEASURE, dict(OPTIONS, race=2)), graph, graph],
        "window": [(MEASURE, dict(OPTIONS, is_copy=True)), graph,
                   (GO, {"lead": 0.0001, "seconds": 0.001})],
        "ahead": 5 * [(MEASURE, dict(OPTIONS, steps=False)), graph],
    }
    what = {"measure": "0", "steps": "0", "race": "1", "window": "2", "ahead": "3"}
    for name, request in requests.items():
        request = [(OPEN, OPENING), *request]
        request = [(kind, payload if isinstance(payload, bytes) else json.dumps(payload).encode())
                   for kind, payload in request]
        write("runner_in", f"good_{name}.frames",
              b"".join(b"hwn1%d" % kind + payload for kind, payload in request))
        write("runner_out", f"good_{name}.frames", what[name].encode() + serve(request))
    samples = {"seconds": 20 * [0.001, 0.0011]}
    write("runner_out", "good_samples.frames", b"0" + b"".join(
        b"hwn1%d" % kind + json.dumps(payload).encode() for kind, payload in (
            (ANSWER, {"status": "ok", "info": {"protocol": 1, "name": "board", "native": ["f32", "new"]}}),
            (PHASE, "compiling"), (SAMPLES, samples), (SAMPLES, samples),
            (ANSWER, {"status": "ok", "compile_seconds": 0.1, "memory_bytes": 5}))))


def serve(request):
    runner = subprocess.run([HWNAS, "runner"], check=True, env=dict(os.environ, HWNAS_IS_RUNNER="1"), capture_output=True, input=b"".join(
        b"hwn1" + struct.pack("<IQ", kind, len(payload)) + payload for kind, payload in request))
    out, at = b"", 0
    while at < len(runner.stdout):
        kind, length = struct.unpack("<IQ", runner.stdout[at + 4:at + 16])
        payload = runner.stdout[at + 16:at + 16 + length]
        if kind == ANSWER:
            payload = json.dumps(shorten(json.loads(payload))).encode()
        out += b"hwn1%d" % kind + payload
        at += 16 + length
    return out


def shorten(answer):
    if "window" in answer:
        del answer["window"]["samples"][20:]
    if "race" in answer:
        del answer["race"]["blocks"][24:]
    return answer


try:
    texts()
    arrays()
    predictors()
    databases()
    frames()
finally:
    shutil.rmtree(WORK)
