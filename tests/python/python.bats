# python/hwnas.py over the library of the build tree.
bats_require_minimum_version 1.5.0
load ../cli/modules

TABLE=$HWNAS_SRC/tests/data/nas_bench_macro.csv

setup() {
    PYTHON=/usr/bin/python3
    [ -x $PYTHON ] || skip "there is no /usr/bin/python3"
    export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache PYTHONPATH=$HWNAS_SRC/python PYTHONDONTWRITEBYTECODE=1
    export HWNAS_LIBRARY=${HWNAS%/*}/libhwnas.so.0
    unset HWNAS_RUNNER
    cd "$BATS_TEST_TMPDIR" || exit
}

# py: runs a program that stands in the standard input, with the modules that it begins with.
py() {
    cat - >test.py
    $PYTHON -W error::ResourceWarning test.py
}

@test "structs, enumerators and functions are those of the headers" {
    command -v cc >/dev/null || skip "there is no compiler"
    run $PYTHON "$HWNAS_SRC/tests/python/layouts.py" "$HWNAS_SRC/include" "${HWNAS%/*}/include"
    echo "$output"
    [ "$status" -eq 0 ]
    # It would tell: one field that is another, one missing, one function that takes an int for a size.
    sed -E 's/\("seconds", ctypes.c_double\), \("timeout"/("seconds", ctypes.c_float), ("timeout"/
        s/, \("best", ctypes.c_char_p\)\]/]/
        s/"hwnas_space_mutate": \(_Status, _P, _P, _S, _D/"hwnas_space_mutate": (_Status, _P, _P, _S, _I/
        /"best", ctypes.c_char_p/d; s/("SLOWER", SlowerError)/("SLOWEST", SlowerError)/' \
        "$PYTHONPATH/hwnas.py" >hwnas.py
    sed -i 's/("trials_per_minute", ctypes.c_double),$/("trials_per_minute", ctypes.c_double)]/' hwnas.py
    PYTHONPATH=$PWD run $PYTHON "$HWNAS_SRC/tests/python/layouts.py" "$HWNAS_SRC/include" "${HWNAS%/*}/include"
    echo "$output"
    [ "$status" -ne 0 ]
}

@test "types hold" {
    need mypy
    $PYTHON -m mypy --strict --ignore-missing-imports --follow-imports=skip --cache-dir mypy "$HWNAS_SRC/python/hwnas.py"
    $PYTHON -m pyflakes "$HWNAS_SRC/python/hwnas.py" "$HWNAS_SRC"/examples/python/*.py
}

@test "every function of the module is in docs/python.md" {
    py <<END
import hwnas
page = open("$HWNAS_SRC/docs/python.md").read()
missing = [name for name in hwnas.__all__ if f"\`{name}" not in page and f"hwnas.{name}" not in page]
assert not missing, missing
END
}

@test "spaces say what the program says" {
    "$HWNAS" space show accel_nasbench --json >space.json
    "$HWNAS" space show accel_nasbench --arch e=1466666,k=5355555,l=2133141,se=0001011 --json >network.json
    py <<'END'
import itertools, json, hwnas
said, shown = json.load(open("space.json")), json.load(open("network.json"))
with hwnas.Space("accel_nasbench") as space:
    assert space.count == int(said["encodings_exact"]) and space.about == said["about"]
    assert space.choices == {c["name"]: c["positions"] for c in said["choices"]}
    code = "e=1466666,k=5355555,l=2133141,se=0001011"
    network = space.network(code, batch=2)
    assert network.params == shown["params"] and network.macs == 2 * shown["macs"]
    assert network.inputs[0].shape == (2, 3, 224, 224), network.inputs
    assert network.code == code and len(network.digest) == 32
    assert network.costs["peak_bytes"] == network.costs["weight_bytes"] + network.costs["activation_bytes"]
    samples = space.sample(20, seed=3)
    assert samples == space.sample(20, seed=3) and len(set(samples)) > 10
    assert space.mutate(code, 0.1, 1, 0) != code
    labels = {"e": "1466666", "k": "5355555", "l": "2133141", "se": "0001011"}
    assert space.join({name: list(text) for name, text in labels.items()}) == code
# Labels of more than a character are parted in a code.
with hwnas.Space("ofa_mobilenet_v3") as space:
    code = space.sample(1)[0]
    texts = dict(part.split("=") for part in code.split(","))
    labels = {n: texts[n].replace(":", ".").split(".") if max(map(len, p[0])) > 1 and len(p) > 1 else
              [texts[n]] if len(p) == 1 else list(texts[n]) for n, p in space.choices.items()}
    assert space.join(labels) == code, (code, labels)
with hwnas.Space("nas_bench_macro") as space:
    codes = list(space)
    assert len(codes) == len(set(codes)) == space.count == 6561
    assert [space.check(c) for c in codes[:5]] == codes[:5]
END
}

@test "what is wrong is an exception with message, hint and place" {
    printf 'space: nas_bench_macro\ndevice: null\nobjectives: [latancy.p50]\n' >job.yaml
    py <<'END'
import hwnas
def raised(kind, function, *arguments, **keys):
    try:
        function(*arguments, **keys)
    except kind as e:
        assert type(e) is kind, type(e)
        return e
    raise AssertionError("nothing was raised")
e = raised(hwnas.NotFoundError, hwnas.Space, "resnet5")
assert "resnet5" in e.message and "did you mean 'resnet50'" in e.hint and e.status == "not_found", e
assert isinstance(e, LookupError) and isinstance(e, hwnas.Error)
e = raised(hwnas.InputError, hwnas.search, "job.yaml", study="s.db")
assert (e.file, e.line) == ("job.yaml", 3) and "latancy" in e.message, vars(e)
assert str(e).startswith("job.yaml:3:") and "hint: did you mean" in str(e), str(e)
e = raised(hwnas.UsageError, hwnas.search, space="nas_bench_macro", objectivs=["macs"])
assert "objectivs" in e.message and "'objectives'" in e.hint, e
e = raised(hwnas.InputError, hwnas.Measurer, precision="f33")
assert "f33" in e.message
raised(hwnas.InputError, hwnas.Space, "a\0b")
# None is no text, where one is needed.
raised(TypeError, hwnas.Space, None)
raised(TypeError, hwnas.Network, None)
raised(TypeError, hwnas.Network.of_trial, None)
raised(TypeError, hwnas.Study.read, None)
raised(TypeError, hwnas.save_page, None, "x.html")
raised(TypeError, hwnas.compare_baseline, None)
with hwnas.Space("nas_bench_macro") as space:
    raised(TypeError, space.check, None)
    raised(TypeError, space.mutate, None)
    raised(TypeError, hwnas.Predictor, None, space)
    raised(TypeError, hwnas.Predictor("nas_bench_macro_cifar10", space).score, [None])
space = hwnas.Space("nas_bench_macro")
raised(hwnas.InputError, space.network, "222122209")
network = space.network("22212220")
space.close()
raised(hwnas.UsageError, lambda: network.macs) # closed with its space
raised(hwnas.UsageError, lambda: space.count)
space.close()
e = raised(hwnas.IOFailure, hwnas.Network("mnist_mlp").export, "no/such/folder/x.onnx")
assert isinstance(e, OSError)
raised(hwnas.UsageError, hwnas.Network("mnist_mlp").export, "x.pt")
raised(hwnas.NotFoundError, hwnas.Study.read, "no.db")
END
}

@test "networks are exported, and run on arrays as the program runs them" {
    need numpy
    py <<'END'
import hwnas, numpy
network = hwnas.Network("mnist_mlp", batch=2)
assert network.export("net.onnx") is None
with hwnas.Network("net.onnx", batch=2) as same:
    x = numpy.random.default_rng(1).random(same.inputs[0].shape, dtype=numpy.float32)
    numpy.save("x.npy", x)
    y, = same.compile(threads=1)(x)
    by_reference, = same.compile("ref")(x)
    assert numpy.allclose(y, by_reference, atol=1e-5)
    numpy.save("y.npy", y)
    for wrong in ((), (x, x)):
        try:
            same.compile(threads=1)(*wrong)
        except hwnas.UsageError:
            continue
        raise AssertionError(wrong)
    try:
        same.compile(threads=1)(x[:1])
    except hwnas.InputError as e:
        assert "(2," in str(e)
END
    "$HWNAS" run net.onnx --batch 2 --input x.npy --output z.npy
    $PYTHON -c 'import numpy; assert numpy.allclose(numpy.load("y.npy"), numpy.load("z.npy"), atol=1e-6)'
}

@test "a measurer measures in a process of its own, and tells what it does" {
    py <<'END'
import hwnas
phases = []
with hwnas.Measurer(threads=1, seconds=0.05, timeout=600, progress=phases.append) as measurer:
    for code in ("22212220", "00000000"):
        with hwnas.Space("nas_bench_macro") as space:
            m = measurer.measure(space.network(code))
        v = m["latency.p50"]
        assert v.unit == "s" and v.source == "measured" and v.low <= v.value <= v.high, v
        assert float(m) == m.p50 == m.details["p50_seconds"] and m.details["arch"] == code
        assert "--dtype f32 --interval" in m.details["command"], m.details["command"]
        assert f"{1e3 * m.p50:.4g} ms" in repr(m), repr(m)
assert "compiling" in phases and "sampling" in phases, phases
assert hwnas.Network("mnist_mlp").measure(seconds=0.01, interval=1).p50 > 0
END
}

@test "an exception in a callback ends a measurement, and is raised" {
    py <<'END'
import hwnas
def stop(phase):
    raise ZeroDivisionError(phase)
with hwnas.Measurer(threads=1, mode="sustained=600", timeout=600, progress=stop) as measurer:
    try:
        measurer.measure(hwnas.Network("mnist_mlp"))
    except ZeroDivisionError:
        print("raised")
    else:
        raise AssertionError
END
}

@test "Ctrl-C ends what is measured, profiled and searched soon" {
    cat >long.py <<'END'
import sys, hwnas
print("begun", flush=True)
try:
    if sys.argv[1] == "measure":
        hwnas.Network("mnist_mlp").measure(mode="sustained=600", timeout=600)
    elif sys.argv[1] == "profile":
        hwnas.profile("mnist_mlp", mode="sustained=600")
    else:
        hwnas.search(space="nas_bench_macro", accuracy="nas_bench_macro_cifar10", device="null",
                     objectives=["accuracy", "latency.p50"], minutes=60, interval=1e-4, study="s.db")
except KeyboardInterrupt:
    print("interrupted")
END
    local what pid
    for what in measure profile search; do
        # A shell's background jobs ignore the signal; the program is to have Python's own handler.
        $PYTHON -c 'import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)
sys.argv = sys.argv[1:]; exec(open("long.py").read())' long.py $what >said 3>&- &
        pid=$!
        until grep -q begun said; do kill -0 $pid; sleep 0.1; done
        # A runner has begun, and of a search a trial is finished.
        until [ "$(cat /proc/$pid/task/*/children)" ]; do kill -0 $pid; sleep 0.1; done
        until [ $what != search ] || "$HWNAS" study show s.db >/dev/null 2>&1; do kill -0 $pid; sleep 0.1; done
        kill -INT $pid
        timeout 60 tail --pid=$pid -f /dev/null
        wait $pid
        grep interrupted said
    done
    "$HWNAS" study show s.db >/dev/null # what was finished is there
}

@test "profiles of spaces' networks and of ONNX files are rows" {
    py <<'END'
import hwnas, json
hwnas.Network("mnist_mlp").export("net.onnx")
told = []
made = hwnas.profile(["mnist_mlp", "net.onnx"], batches=[1, 4], threads=1, seconds=0.02, layers=True, save="here.json",
                     progress=told.append)
rows = made.rows
assert [(r["model"], r["batch"]) for r in rows] == [("mnist_mlp", 1), ("mnist_mlp", 4), ("net.onnx", 1), ("net.onnx", 4)]
assert all(r["p50_seconds"] > 0 and r["layers"]["list"] for r in rows[:3])
assert rows[3]["status"] == "input" and "batch of 1" in rows[3]["message"], rows[3] # as the file fixes it
assert json.load(open("here.json"))["rows"][0]["p50_seconds"] == rows[0]["p50_seconds"]
assert told[:2] == [f"measuring mnist_mlp, cpu, batch {b}, 1 thread, f32: {i} of up to 4" for i, b in ((1, 1), (2, 4))], told
with hwnas.compare("mnist_mlp", batches=1, threads=1, streams=1, seconds=0.02, progress=told.append):
    assert told[-1] == "measuring mnist_mlp, cpu, batch 1, 1 thread, f32: 1 of up to 1", told
with hwnas.compare_baseline("here.json", "mnist_mlp", seconds=0.02, progress=told.append):
    assert told[-1] == "measuring mnist_mlp, cpu, batch 4, 1 thread, f32: 2 of 2", told
class Enough(Exception):
    pass
def stop(words):
    raise Enough
try:
    hwnas.profile("mnist_mlp", seconds=0.02, progress=stop)
    raise AssertionError
except Enough:
    pass
assert "mnist_mlp" in str(made) and made.csv().startswith("model,")
one, = hwnas.profile("nas_bench_macro", code="22212220", precisions="f32", streams="fill", seconds=0.02).rows
assert one["arch"] == "22212220" and one["streams"] >= 1
try:
    hwnas.profile("net.onnx", shape="ids=1x1")
except hwnas.Error as e:
    assert e.hint or e.message
else:
    raise AssertionError
END
}

@test "profile and compare choose precisions by samples" {
    py <<'END'
import gzip, hwnas, os
folder = os.path.join(os.environ["HWNAS_SRC"], "tests/data")
model, images, labels = (os.path.join(folder, name) for name in ("fashion_tiny.onnx", "fashion_images.gz", "fashion_labels.gz"))
how = dict(scale=1 / 255, mean=[0.286], std=[0.353])
settings = dict(precisions="mixed", threads=1, seconds=0.02, max_loss=100, calibrate=8, limit=64, labels=labels, **how)
row, = hwnas.profile(model, data=images, save="here.json", **settings).rows
assert (row["choice_samples"], row["held_out_samples"], row["accuracy_metric"], row["max_loss"]) == (32, 32, "top1", 100), row
assert row["layers_in_s8"] >= 0 and row["accuracy_low"] <= row["accuracy"] <= row["accuracy_high"]
# The samples that were held out by themselves.
for name, source, begin, size in (("images", images, 16, 28 * 28), ("labels", labels, 8, 1)):
    with gzip.open(source) as file:
        raw = file.read()
    with open(name, "wb") as file:
        file.write(raw[:4] + (32).to_bytes(4, "big") + raw[8:begin])
        file.write(b"".join(raw[begin + size * i:][:size] for i in range(1, 64, 2)))
with hwnas.Network(model) as network:
    assert network.evaluate("images", labels="labels", **how)["top1"].value == row["f32_accuracy"]
with hwnas.compare(model, batches=1, streams=1, percentile=0.5, data={"image": images}, **settings) as report:
    choice, = report.data()["networks"][0]["choices"]
    assert choice["measured"]["f32_accuracy"] == row["f32_accuracy"] and choice["measured"]["choice_samples"] == 32
for wrong in (dict(labels=labels), dict(scale=2), dict(max_loss=1), dict(data=images, precisions="f32", **how),
              dict(data=images, max_loss=1, **how)):
    try:
        hwnas.profile(model, **{"precisions": "mixed", "seconds": 0.02, **wrong})
        raise AssertionError(wrong)
    except hwnas.UsageError:
        pass
for wrong in (dict(data="absent.npz"), dict(data=labels), dict(data=images, labels=images, **how)):
    try:
        hwnas.profile(model, precisions="mixed", seconds=0.02, **wrong)
        raise AssertionError(wrong)
    except (hwnas.InputError, hwnas.NotFoundError, hwnas.IOFailure):
        pass
END
}

@test "a network without inputs is reported" {
    need onnx
    /usr/bin/python3 - <<'END'
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

graph = helper.make_graph([helper.make_node("Concat", ["x", "c"], ["z"], axis=0), helper.make_node("Relu", ["z"], ["y"])], "g",
                          [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
                          [numpy_helper.from_array(np.ones([2, 4], np.float32), "c")])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), "net.onnx")
END
    py <<'END'
import hwnas
with hwnas.Network("net.onnx", shape="n=0") as network:
    with network.report() as report:
        found = report.data()
        assert (found["input"], found["inputs"]) == (None, []), found
        assert [o["shape"] for o in found["outputs"]] == [[2, 4]], found
        assert "relu" in str(report)
with hwnas.Network("net.onnx", shape="n=3") as network, network.report() as report:
    assert report.data()["input"] == [3, 4]
END
}

@test "what two networks compute is compared as the program does" {
    "$HWNAS" compare --outputs mnist_cnn --device ref,cpu --json >differences.json
    py <<'END'
import json

import hwnas

with hwnas.Network("mnist_cnn") as network, hwnas.Network("cifar10_cnn") as other:
    with network.compare_outputs() as report:
        report.conclude()
        with open("differences.json") as file:
            assert report.data() == json.load(file)
    with network.compare_outputs(network, precisions=("f32", "s8"), tolerance=1e-9) as report:
        assert "beyond_tolerance" in report.csv() and "against mnist_cnn (cpu, f32)" in str(report)
        try:
            report.conclude()
            raise SystemExit("they are alike")
        except hwnas.WrongResultError as e:
            assert "differs by" in str(e)
    try:
        network.compare_outputs(other)
        raise SystemExit("other inputs fit")
    except hwnas.InputError as e:
        assert "is 1x3x32x32" in str(e), e
END
}

@test "comparisons, forecasts and evaluations are the program's" {
    need numpy
    cp "$HWNAS_SRC/tests/data/profile_layers.json" here.json
    "$HWNAS" compare --profile here=here.json --percentile p50 --latency-target 50ms --json >compare.json
    "$HWNAS" forecast mnist_cnn --device cuda-dry:l4 --batch 8 --json >forecast.json 2>said || skip "no GPU is described: $(<said)"
    "$HWNAS" export --space mnist_mlp --format onnx --out net.onnx
    $PYTHON -c 'import numpy
r = numpy.random.default_rng(1)
numpy.savez("data.npz", x=r.normal(size=(200, 1, 28, 28)).astype("f4"), y=r.integers(0, 10, 200))'
    "$HWNAS" evaluate net.onnx --data data.npz --json >evaluate.json
    py <<'END'
import json
import pathlib
import hwnas

def told(name):
    with open(name) as file:
        return json.load(file)

with hwnas.compare(recorded={"here": "here.json"}, percentile=0.5, target=0.05) as report:
    assert report.data() == told("compare.json"), "compare"
    report.conclude()
with hwnas.compare(recorded="here.json", percentile=0.5, target=1e-9) as report:
    try:
        report.conclude()
        assert False
    except hwnas.InfeasibleError:
        pass
with hwnas.Network("mnist_cnn", batch=8) as network:
    mine, other = network.forecast("cuda-dry:l4").data(), told("forecast.json")
    assert mine.pop("cache_hits") >= other.pop("cache_hits"), "plans that the program had made"
    assert mine == other, "forecast"
with hwnas.Network("net.onnx") as network:
    seen = []
    found = network.evaluate("data.npz", progress=lambda done, samples: seen.append((done, samples)))
    assert seen[-1] == (200, 200) and found.samples == 200 and found.task == "classify"
    for name, value in told("evaluate.json")["values"].items():
        assert abs(found[name].value - value["value"]) < 1e-4 * abs(value["value"]) + 1e-9, name
    with hwnas.Network("net.onnx") as same:
        assert network.evaluate("data.npz", against=same)["agreement"].value == 100
    class Stop(Exception):
        pass
    def stop(done, samples):
        raise Stop
    try:
        network.evaluate({network.inputs[0].name: "data.npz"}, progress=stop)
        assert False
    except Stop:
        pass
try:
    hwnas.optimize("net.onnx", "none.npz", minutes=0.1)
    assert False
except hwnas.Error as e:
    assert "none.npz" in e.message or e.file == "none.npz", e
hwnas.save_page("here.json", "here.html")
assert pathlib.Path("here.html").read_text().startswith("<!doctype html>")
hwnas.save_picture("here.json", "roofline", "roof.svg")
assert pathlib.Path("roof.svg").read_text().startswith("<svg")
END
}

@test "the table of latencies is taught, and a profile measured again" {
    py <<'END'
import hwnas

words = []
with hwnas.Space("nas_bench_macro") as space, space.calibrate(seconds=1, progress=words.append) as report:
    assert report.data()["format"] == "hwnas.calibration" and words
hwnas.profile("mnist_mlp", seconds=0.1, save="here.json")
with hwnas.compare_baseline("here.json", tolerance=0.9, seconds=0.1) as report:
    rows = report.data()["rows"]
    assert len(rows) == 1 and rows[0]["verdict"] in ("same", "faster", "slower", "ambiguous")
END
}

@test "a search gives the front of the program, and is the same with a dict, a file and keys" {
    cat >job.yaml <<END
space: nas_bench_macro
accuracy: table:$TABLE#acc_top1_pct_mean
device: replay:$TABLE#macs_count
objectives: [accuracy, macs]
constraints: params < 1.2 M
strategy: nsga2
budget: {trials: 120}
seed: 1
END
    "$HWNAS" search job.yaml --study program.db --json >program.json
    py <<END
import json, hwnas
table = "$TABLE"
job = dict(space="nas_bench_macro", accuracy=f"table:{table}#acc_top1_pct_mean", device=f"replay:{table}#macs_count",
           objectives=["accuracy", "macs"], constraints="params < 1.2 M", strategy="nsga2", seed=1)
told = []
by_file = hwnas.search("job.yaml", study="file.db", progress=told.append)
by_dict = hwnas.search({**job, "budget": {"trials": 120}}, study="dict.db")
by_keys = hwnas.search(**job, trials=120, study="keys.db")
wanted = [t["arch"] for t in json.load(open("program.json"))["front"]]
assert len(wanted) > 5
for study in (by_file, by_dict, by_keys):
    assert [row["code"] for row in study.front()] == wanted
assert told[-1].done == 120 and told[-1].front == len(wanted) and told[-1].winner == wanted[0], told[-1]
# All trials have the same values as those of the front, in SI.
front, trials = by_file.front(), by_file.trials()
assert len(trials) == 120 and front[0]["macs"] > 1e6
for row in front:
    same = trials[row["trial"]]
    assert same["on_front"] and same["status"] == "ok" and same["feasible"], same
    for key, value in row.items():
        assert key in ("digest", "batch", "threads", "precision") or same[key] == value or \
            abs(same[key] - value) < 1e-9 * abs(value), (key, same, row)
assert "winner" in str(by_file) and by_file.objectives() == ["accuracy", "macs"]
assert by_file.explain().data()["trial"]["arch"] == wanted[0]
measured = by_file.explain(measure=True).data()
assert measured["measured"] and measured["trial"]["arch"] == wanted[0] and measured["unmeasured"]
ranges = [p.seconds_left_range for p in told if 10 < p.done < 120]
assert len(ranges) > 100 and all(0 <= low <= high for low, high in ranges), ranges
assert told[-1].n_measured == told[-1].n_disturbed == 0 and told[-1].measured is None
chart = by_file.chart()
assert chart.startswith(f"Pareto front: {len(front)} networks of 120 trials") and "* winner" in chart, chart
assert by_file._repr_svg_().startswith("<svg") and by_file.picture("curve") != by_file.picture("front")
by_file.save_page("page.html")
assert wanted[0] in open("page.html").read()
assert hwnas.Network.of_trial("file.db").code == wanted[0]
assert hwnas.plan("job.yaml").data()["trials"] == 120
# What no network keeps is told with the study's file.
try:
    hwnas.search("job.yaml", constraints="params < 0.4 M and accuracy > 90", study="none.db")
except hwnas.InfeasibleError as e:
    assert e.study.endswith("none.db") and hwnas.Study.read(e.study).front() == []
else:
    raise AssertionError
# An exception in a callback ends it; what was finished is kept, and it goes on.
def stop(p):
    if p.done == 50:
        raise StopIteration("enough")
try:
    hwnas.search("job.yaml", study="stopped.db", progress=stop)
except StopIteration:
    pass
with hwnas.Study.read("stopped.db") as stopped:
    assert 50 <= len(stopped.trials()) < 120
assert [r["code"] for r in hwnas.search("job.yaml", study="stopped.db", resume=True).front()] == wanted
END
}

@test "a study by ask and tell proposes what the C library proposes, and goes on after a kill" {
    cat >asked.py <<END
import csv, os, sys, hwnas
cost = {row["arch_code" if "arch_code" in row else next(iter(row))]: float(row["macs_count"])
        for row in csv.DictReader(line for line in open("$TABLE") if not line.startswith("#"))}
study = hwnas.Study(dict(space="nas_bench_macro", accuracy="table:$TABLE#acc_top1_pct_mean", device="external",
                         objectives=["accuracy", "latency.p50"], strategy="nsga2", seed=1, trials=40),
                    study=sys.argv[1], resume=True)
for n, trial in enumerate(study):
    if n == int(sys.argv[2]):
        os.kill(os.getpid(), 9)
    if trial.number == 7:
        study.fail(trial, "the board burnt", hwnas.TimedOutError)
    else:
        seconds = cost[trial.code] / 1e10
        study.tell(trial, {"latency.p50": (seconds, 0.99 * seconds, 1.01 * seconds)})
    assert trial.values["accuracy"].unit == "%"
print(*(f"{r['trial']} {r['code']} {r['latency.p50 low']:.6g}" for r in study.front()), sep="\n")
try:
    study.tell(0, {"latency.p50": 1})
except hwnas.InputError:
    pass
else:
    raise AssertionError("told twice")
END
    $PYTHON asked.py whole.db -1 >whole
    run $PYTHON asked.py killed.db 15
    [ "$status" -eq 137 ]
    $PYTHON asked.py killed.db -1 >killed
    cat whole
    [ "$(wc -l <whole)" -gt 3 ]
    diff whole killed
    "$HWNAS" study export whole.db --format csv | grep -F 'the board burnt' | grep -F timeout
}

@test "logs come to a function, and versions are the program's" {
    py <<'END'
import hwnas, json, os, subprocess
program = json.loads(subprocess.check_output([os.environ["HWNAS"], "version", "--json"]))
assert hwnas.versions() == program, (hwnas.versions(), program)
assert hwnas.version() == program["hwnas"]
lines = []
hwnas.set_log(lambda level, line: lines.append((level, line)))
hwnas.Network("mnist_mlp").measure(seconds=0.01, interval=1)
hwnas.set_log(None)
assert any(level in ("info", "debug") for level, _ in lines), lines
END
}

@test "rows become a data frame, and a front a plot" {
    need pandas matplotlib
    cp "$HWNAS_SRC/examples/replay-nb-macro.yaml" .
    sed -i "s|\.\./tests|$HWNAS_SRC/tests|" replay-nb-macro.yaml
    MPLBACKEND=svg py <<'END'
import hwnas
study = hwnas.search("replay-nb-macro.yaml", study="s.db")
frame = study.front().to_frame()
assert list(frame["code"]) == [r["code"] for r in study.front()] and frame["macs"].dtype == float
assert len(study.trials().to_frame()) == 300
axes = study.plot(x="macs")
assert axes.get_xlabel() == "macs" and axes.get_ylabel() == "accuracy (%)"
drawn = axes.get_lines()
assert any(len(line.get_xdata()) == len(frame) for line in drawn)
axes.figure.savefig("front.svg")
END
    grep -q 'Pareto\|<path' front.svg
}

@test "a PyTorch module is measured, and is left as it was" {
    need torch onnx
    py <<'END'
import hwnas, torch
module = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU())
module.train()
m = hwnas.latency(module, torch.zeros(2, 3, 16, 16), seconds=0.05)
assert module.training and m.p50 > 0 and m.details["batch"] == 2, m.details
class Two(torch.nn.Module):
    def forward(self, a, b):
        return a @ b
assert hwnas.latency(Two(), (torch.zeros(1, 4, 4), torch.zeros(1, 4, 4)), seconds=0.05).p50 > 0
END
    $PYTHON "$HWNAS_SRC/examples/python/torch_latency.py" >out
    [ "$(grep -c '^width .*latency.p50' out)" -eq 2 ]
}

@test "Optuna proposes, hwnas predicts and measures" {
    need optuna
    $PYTHON "$HWNAS_SRC/examples/python/optuna_search.py" 12 >out
    cat out
    [ "$(grep -c '^[012]\{8\}  .* %  .* ms$' out)" -ge 1 ]
    # A code that a constraint of the space forbids is pruned, not run.
    cat >even.yaml <<'END'
hwnas: 1
name: even
input: {features: [8]}
choices: {a: {values: [1, 2, 3]}, b: {values: [1, 2, 3]}}
constraints: ["a + b == 4"]
network:
  - linear: {out: a * b}
END
    "$HWNAS" space check even.yaml
    py <<'END'
import hwnas, optuna
space = hwnas.Space("even.yaml")
study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
study.optimize(lambda trial: space.network(space.suggest(trial)).macs, n_trials=20)
states = {t.state.name for t in study.trials}
assert states == {"COMPLETE", "PRUNED"}, states
assert all(t.params["a[0]"] != t.params["b[0]"] or t.params["a[0]"] == "2" for t in study.get_trials(states=(
    optuna.trial.TrialState.COMPLETE,)))
END
}

@test "the examples run: a board that is a program, and a notebook" {
    cat >board <<'END'
#!/bin/sh
[ -s "$1" ] && wc -c <"$1" | awk '{ print $1 / 1e9 }'
END
    chmod +x board
    $PYTHON "$HWNAS_SRC/examples/python/ask_tell.py" ./board >front
    cat front
    [ "$(grep -c ' % .* ms$' front)" -ge 3 ]
    [ -s board.db ]
    NAS_BENCH_MACRO=$TABLE MPLBACKEND=svg $PYTHON "$HWNAS_SRC/tests/python/notebook.py" \
        "$HWNAS_SRC/examples/python/front.ipynb" >shown
    grep -q '<svg' shown
    grep '^300 trials, 22 networks' shown
    [ -s winner.onnx ]
}

# notebook NAME: runs one of the examples; what its cells show is in the file shown.
notebook() {
    MPLBACKEND=svg $PYTHON "$HWNAS_SRC/tests/python/notebook.py" "$HWNAS_SRC/examples/python/$1.ipynb" >shown
    cat shown
}

@test "the notebook of a search whose networks you run: its front keeps the limit, by the board's own numbers" {
    notebook ask_tell
    grep -q '^Pareto front: [0-9]* networks of 40 trials' shown
    grep -q ': latency.p50 <= 2.5 ms' shown
    [ "$(grep -cE '^[012]{8}  [0-9.]+ %  [0-9.]+ ms$' shown)" -ge 3 ]
    awk '/^[012]+  .* ms$/ { if ($4 * 1.02 > 2.5) exit 1 }' shown
    grep -q '^It is the winner' shown
    [ -s board.db ]
}

@test "the notebook with Optuna: fronts of measured and of counted networks" {
    need optuna
    notebook optuna
    [ "$(grep -cE '^[012]{8}  [0-9.]+ %  [0-9.]+ ms$' shown)" -ge 1 ]
    grep -qE '^[0-9]+ networks on the front$' shown
}

@test "the notebook with PyTorch: modules are measured, and a network comes back as one with as many parameters" {
    need torch onnx
    notebook torch
    [ "$(grep -c '^width .*latency.p50' shown)" -eq 2 ]
    grep -qE '^([0-9]+) parameters, hwnas counts \1$' shown
    grep -qx '(2, 10)' shown
}

@test "the examples of docs/python.md run" {
    need torch
    awk '/^```python$/ { file = sprintf("page%d.py", ++n); next } /^```/ { file = "" } file { print > file }' \
        "$HWNAS_SRC/docs/python.md"
    mkdir tree tree/examples
    ln -s "$HWNAS_SRC/tests" tree/tests
    cp "$HWNAS_SRC/examples/replay-nb-macro.yaml" tree/examples
    cp page*.py tree/examples
    cd tree/examples
    local page n=0
    for page in page*.py; do
        $PYTHON "$page" >out || { cat "$page" out; return 1; }
        n=$((n + 1))
    done
    [ $n -ge 3 ]
}

@test "a warm start from another device: its latencies say what is measured, are nowhere taken for this one's, and a search that stopped goes on the same" {
    py <<'END'
import csv, os, sqlite3
import hwnas
DATA = os.environ["HWNAS_SRC"] + "/tests/data/"
def read(name):
    with open(DATA + name) as file:
        return {row["arch"]: row for row in csv.DictReader(file)}
rows = read("nas_bench_201_latency.csv")
accuracy = {code: float(row["c10_test_top1_pct"]) for code, row in read("nas_bench_201.csv").items()}

def search(column, path, trials, resume=False, stop_at=None, **keys):
    codes = []
    with hwnas.Study(device="external", space="nas_bench_201", objectives=["accuracy", "latency.p50"], trials=trials,
                     seed=3, study=path, resume=resume, runs_again=True, **keys) as study:
        for trial in study:
            codes.append(trial.code)
            study.tell(trial, {"accuracy": accuracy[trial.code], "latency.p50": float(rows[trial.code][column]) / 1e3})
            if len(codes) == stop_at:
                break
    return codes

old = search("pixel3_ms", "old.db", 80)
warm = search("1080ti_1_ms", "warm.db", 45, warm_start="old.db")
# First those that tell most, then those of the old study that are on its front by this device's latencies.
assert set(warm[:10]) <= set(old) and len(set(warm)) == len(warm)
point = {code: (accuracy[code], -float(rows[code]["1080ti_1_ms"])) for code in old}
front = [a for a in old if not any(point[b] != point[a] and point[b][0] >= point[a][0] and point[b][1] >= point[a][1] for b in old)]
found = set(front) & set(warm[:34])
print(len(front), len(found))
assert len(found) > 0.7 * len(front), (front, warm[:34])
db = sqlite3.connect("warm.db")
for code, value, source in db.execute("SELECT code, value, source FROM trial JOIN value ON trial = number WHERE metric = 'latency.p50'"):
    assert source == "told" and abs(value - float(rows[code]["1080ti_1_ms"]) / 1e3) < 1e-12, (code, value, source)
assert db.execute("SELECT count(*) FROM trial").fetchone()[0] == 45
db.close()
# In the middle of the first ones, between two rounds, and behind them.
for stop in 4, 10, 21, 40:
    name = f"part{stop}.db"
    part = search("1080ti_1_ms", name, 45, stop_at=stop, warm_start="old.db")
    part += search("1080ti_1_ms", name, 45, resume=True, warm_start="old.db")
    assert part == warm, (stop, part, warm)
# The device that it is of needs no such thing; few trials tell nothing.
few = search("1080ti_1_ms", "few.db", 20, warm_start=(search("pixel3_ms", "short.db", 12) and "short.db"))
assert len(few) == 20
END
}

@test "a trial says which of its layers are in which precision" {
    py <<'END'
import hwnas
hwnas.search(space="nas_bench_macro", device="cpu", objectives="latency", seconds=0.02, strategy="random", trials=2, confirm=0,
             verify="none", estimate="off", dtype="mixed", max_error=2, study="s.db")
with hwnas.Study.read("s.db") as study:
    rows = study.trials()
    front = study.front()
assert len(rows) == 2 and front
for row in rows:
    mix = row["mixes"]["cpu"]
    assert mix.floats == "f32" and len(mix.layers) == mix.n_layers and mix.layers.count("s") == mix.n_s8
    assert 0 <= mix.error <= mix.max_error == 0.02
for row in front:
    assert row["precision"] == "mixed"
    assert row["mixes"] == [r["mixes"] for r in rows if r["trial"] == row["trial"]][0]
END
}
