"""What the benchmarks in Python share: the program, published tables, and the lines they end with."""
import csv
import glob
import os
import platform
import shutil
import subprocess

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HWNAS = os.environ.get("HWNAS", "./hwnas")
DATA = os.path.join(SOURCE, "tests", "data")


def hwnas(*arguments):
    """What the program prints; ends the benchmark when it fails."""
    done = subprocess.run([HWNAS, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"hwnas {' '.join(map(str, arguments))}: {done.stderr}")
    return done.stdout


def ort_library():
    home = os.environ.get("HWNAS_ORT", os.path.join(SOURCE, ".deps", "node"))
    found = glob.glob(os.path.join(home, "node_modules/onnxruntime-node/bin/napi-v*/linux",
                                   {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), ""),
                                   "libonnxruntime.so*"))
    return os.environ.get("HWNAS_ORT_LIBRARY", found[0] if found else "")


def read(path):
    with open(path) as file:
        return list(csv.DictReader(file))


def write(path, rows, columns):
    with open(path, "w") as file:
        writer = csv.DictWriter(file, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def tau(a, b):
    """Kendall's tau-b, by all pairs."""
    both = x_ties = y_ties = total = 0
    for i in range(len(a)):
        for j in range(i):
            x, y = (a[i] > a[j]) - (a[i] < a[j]), (b[i] > b[j]) - (b[i] < b[j])
            both += x * y
            x_ties += x == 0
            y_ties += y == 0
            total += 1
    bottom = ((total - x_ties) * (total - y_ties)) ** 0.5
    return both / bottom if bottom else 0.0


def ranks(values):
    """Ranks from 0; equal values share the mean of theirs."""
    order = sorted(range(len(values)), key=values.__getitem__)
    out = [0.0] * len(values)
    first = 0
    while first < len(order):
        last = first
        while last + 1 < len(order) and values[order[last + 1]] == values[order[first]]:
            last += 1
        for k in order[first:last + 1]:
            out[k] = (first + last) / 2
        first = last + 1
    return out


def spearman(a, b):
    x, y = ranks(a), ranks(b)
    mx, my = sum(x) / len(x), sum(y) / len(y)
    top = sum((p - mx) * (q - my) for p, q in zip(x, y))
    bottom = (sum((p - mx) ** 2 for p in x) * sum((q - my) ** 2 for q in y)) ** 0.5
    return top / bottom if bottom else 0.0


def figure(name, value, unit, goal, is_most=False):
    """One of which more is better; less, where the goal is the most that it may be."""
    is_met = value <= goal if is_most else value >= goal
    print(f"figure {name} {value:.3f} {unit} goal {goal:.3f} {'met' if is_met else 'short'}", flush=True)


def realtime():
    """What gives a program the processor as ours gives it to its runner; empty where that is not allowed. Only a program
    that starts no other may have it: one that waits for its children at this priority can keep the kernel from ending them."""
    line = ["chrt", "-f", "50"]
    allowed = shutil.which("chrt") and subprocess.run(line + ["true"], capture_output=True).returncode == 0
    return line if allowed else []
