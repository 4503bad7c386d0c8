# hwnas profile: what can be asked and what is answered; how long things take is another matter.

bats_require_minimum_version 1.5.0
load modules

@test "memory of which a device does not tell is no 0.0" {
    cd "$BATS_TEST_TMPDIR"
    "$HWNAS" profile mnist_mlp --device null --seconds 0.02 >out
    /usr/bin/python3 - out <<'END'
import sys
lines = open(sys.argv[1]).read().splitlines()
head = next(i for i, line in enumerate(lines) if line.startswith("model "))
assert lines[head + 1].split()[-4] == "-" and lines[head].split()[-4:] == ["MiB", "peak", "compile", "first"], lines
END
}

# The network's weights, 64 MiB in the file, are there twice at most: as they are read, brought into a form and
# laid out for the library. The rest is code, libraries and buffers.
@test "the process's peak memory is told, and weights are never there three times" {
    need onnx
    cd "$BATS_TEST_TMPDIR"
    /usr/bin/python3 - <<'END'
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

weights = np.random.default_rng(1).standard_normal((4096, 4096), np.float32)
graph = helper.make_graph(
    [helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4096])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4096])], [numpy_helper.from_array(weights, "w")])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), "large.onnx")
END
    "$HWNAS" profile large.onnx --threads 1 --seconds 0.05 --json >out.json
    "$HWNAS" profile mnist_mlp --threads 1 --seconds 0.05 --json >small.json
    /usr/bin/python3 - out.json small.json <<'END'
import json, sys
large, small = [json.load(open(name))["rows"][0] for name in sys.argv[1:]]
mib, weights = 2**20, 4096 * 4096 * 4
assert large["memory_bytes"] >= weights, large
peak = large["peak_memory_bytes"] - small["peak_memory_bytes"]
assert weights < peak < 2.5 * weights, (large["peak_memory_bytes"] / mib, small["peak_memory_bytes"] / mib)
END
}

@test "a machine that is too busy for several threads is told of, with what takes it" {
    local n i busy=()
    cd "$BATS_TEST_TMPDIR"
    n=$(nproc)
    [ "$n" -gt 1 ] || skip "one core"
    for ((i = 0; i < n; i++)); do
        timeout 60 sh -c 'while :; do :; done' &
        busy+=($!)
    done
    "$HWNAS" profile mnist_mlp --threads "$n" --priority normal --seconds 0.05 >out 2>err || true
    kill "${busy[@]}"
    [[ $(<err) == *"note: this machine is too busy to measure $n threads: other programs use "*" of its "*" cores ("*"ordinary priority, as asked"* ]] ||
        { cat err; false; }
    [ -s out ]
    # One thread does not wait for others.
    "$HWNAS" profile mnist_mlp --threads 1 --priority normal --seconds 0.05 >out 2>err
    [[ $(<err) != *"too busy"* ]]
}

@test "lists may say all cores, and as many copies as fit" {
    [ "$(nproc)" -ge 2 ] || skip "needs two cores"
    "$HWNAS" profile mnist_mlp --device null --threads 1,all --streams 1,fill --seconds 0.01 --csv >"$BATS_TEST_TMPDIR/out"
    # Threads and copies of each row: with all cores there is room for one copy, which is not measured twice.
    [ "$(/usr/bin/python3 -c 'import csv, sys
print([(r["threads"], r["streams"]) for r in csv.DictReader(open(sys.argv[1]))])' "$BATS_TEST_TMPDIR/out")" = \
        "[('1', '1'), ('1', '$(nproc)'), ('$(nproc)', '1')]" ] || { cat "$BATS_TEST_TMPDIR/out"; false; }
}

@test "models by name, by file and from ONNX, over batches and threads" {
    "$HWNAS" export --space mnist_cnn --format onnx --out "$BATS_TEST_TMPDIR/net.onnx"
    "$HWNAS" profile mnist_cnn "$HWNAS_SRC/search_spaces/zoo/mnist_mlp.yaml" \
        "$BATS_TEST_TMPDIR/net.onnx" --device null --csv >"$BATS_TEST_TMPDIR/one.csv"
    [ "$(wc -l <"$BATS_TEST_TMPDIR/one.csv")" -eq 4 ]
    # One network, whichever way it came: 1,199,882 parameters, as Keras counts them.
    [ "$(cut -d, -f8 "$BATS_TEST_TMPDIR/one.csv" | tr '\n' ' ')" = \
        "params_count 1199882 669706 1199882 " ]
    "$HWNAS" profile mnist_cnn mnist_mlp --device null --batch 1,4 --threads 1,2 --csv |
        cut -d, -f1,3,4,7 >"$BATS_TEST_TMPDIR/sweep.csv"
    [ "$(sort "$BATS_TEST_TMPDIR/sweep.csv" | tr '\n' ' ')" = "mnist_cnn,1,1,ok mnist_cnn,1,2,ok \
mnist_cnn,4,1,ok mnist_cnn,4,2,ok mnist_mlp,1,1,ok mnist_mlp,1,2,ok mnist_mlp,4,1,ok mnist_mlp,4,2,ok \
model,batch,threads,status " ]
}

@test "a network of a space, and settings behind a name" {
    "$HWNAS" profile nas_bench_macro --arch 22212220 --device null --json |
        grep -q '"params": 1985514'
    "$HWNAS" profile "$HWNAS_SRC/tests/data/sequences.yaml:phase=step,positions=2" --device null \
        --arch hidden=12,heads=2,directions=1 --csv | grep -q ',ok,'
}

@test "the cpu measures: an interval around the median, and a reason where it is not sure" {
    "$HWNAS" profile mnist_cnn --seconds 0.1 --json >"$BATS_TEST_TMPDIR/cpu.json"
    /usr/bin/python3 - "$BATS_TEST_TMPDIR/cpu.json" <<'END'
import json, sys
(row,) = json.load(open(sys.argv[1]))["rows"]
assert 0 < row["p50_low_seconds"] <= row["p50_seconds"] <= row["p50_high_seconds"], row
assert row["unstable"] == (row["doubt"] is not None), row
assert row["memory_bytes"] > 4 * row["params"], row
END
}

# Without CAP_SYS_NICE, whoever we are.
ordinary() {
    setpriv --bounding-set=-sys_nice prlimit --rtprio=0 "$@"
}

@test "priority: real-time where the kernel allows it, and told where it does not" {
    cd "$BATS_TEST_TMPDIR"
    [ "$(id -u)" = 0 ] || skip "only root can take the right away"
    ordinary "$HWNAS" profile mnist_cnn --seconds 0.1 --json | grep -q '"realtime": false'
    "$HWNAS" profile mnist_cnn --seconds 0.1 --priority normal --json >normal.json
    grep -q '"realtime": false' normal.json
    grep -q '"command": ".* --priority normal' normal.json
    run ordinary "$HWNAS" profile mnist_cnn --priority realtime
    [ "$status" -eq 1 ]
    [[ "$output" == *"the kernel refuses real-time priority"*"hint: sudo setcap cap_sys_nice+ep"* ]]
    export XDG_CACHE_HOME=${HWNAS%/*}/tests/cache/rooflines # of what lists devices in other files
    ordinary "$HWNAS" devices >devices.txt
    grep -q '^priority normal: the kernel refuses real-time priority' devices.txt
    grep -q 'setcap cap_sys_nice+ep .*hwnas' devices.txt
    ordinary "$HWNAS" devices --json | grep -q '"realtime": false'
    run "$HWNAS" profile mnist_cnn --priority high
    [ "$status" -eq 2 ]
    [[ "$output" == *"there is no priority 'high'"*"realtime, normal, or auto"* ]]
    "$HWNAS" devices --json | grep -q '"realtime": true' || skip "this machine allows it to nobody"
    "$HWNAS" profile mnist_cnn --seconds 0.1 --json | grep -q '"realtime": true'
}

@test "priority of a job's measurements" {
    cd "$BATS_TEST_TMPDIR"
    [ "$(id -u)" = 0 ] || skip "only root can take the right away"
    cat >job.yaml <<'END'
space: nas_bench_macro
device: cpu
objectives: [latency.p50, params]
measure: {priority: realtime, seconds: 0.1, estimate: off, verify: none}
budget: {trials: 2}
END
    run ordinary "$HWNAS" search job.yaml
    [ "$status" -eq 1 ]
    [[ "$output" == *"the kernel refuses real-time priority"* ]]
    [ ! -e job.db ]
    ordinary "$HWNAS" search job.yaml --priority normal --json | grep -q '"realtime": false'
    run "$HWNAS" search job.yaml --priority fast
    [ "$status" -eq 2 ]
    [[ "$output" == *"there is no priority 'fast'"* ]]
}

@test "several devices and precisions; one that a device lacks is a row that says so" {
    run --separate-stderr "$HWNAS" profile mnist_mlp --device ref,null --dtype f32,f16 --seconds 0.05
    [ "$status" -eq 1 ]
    [[ $stderr == *"mnist_mlp: the device 'ref' does not compute in f16"* ]]
    [[ $output == *"ref: "*"null: "*"model"*"device"*"dtype"* ]]
    [[ $output == *"ref "*"f16 "*"unsupported: the device 'ref' does not compute in f16"* ]]
    "$HWNAS" profile mnist_mlp --device ref,null --dtype f32,f16 --seconds 0.05 --csv \
        >"$BATS_TEST_TMPDIR/two.csv" || [ $? -eq 1 ]
    /usr/bin/python3 - "$BATS_TEST_TMPDIR/two.csv" <<'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
found = [(r["device"], r["dtype"], r["status"]) for r in rows]
assert found == [("ref", "f32", "ok"), ("ref", "f16", "unsupported"),
                 ("null", "f32", "ok"), ("null", "f16", "ok")], found
assert rows[1]["message"] and not rows[1]["p50_s"] and float(rows[0]["p50_s"]) > 0, rows
END
    # A plain profile has no column that says nothing.
    run "$HWNAS" profile mnist_mlp --device null
    [[ $output != *dtype* && $output != *"model "*device* && $output != *streams* ]]
}

@test "streams: copies at the same time, as many as there are cores for" {
    cores=$(nproc)
    run --separate-stderr "$HWNAS" profile mnist_mlp --device ref --streams "1,$((cores + 1))" \
        --seconds 0.1
    [ "$status" -eq 1 ]
    [[ $output == *streams*"unsupported: $((cores + 1)) streams of 1 thread each need"*"cores"* ]]
    [[ $stderr == *"need $((cores + 1)) cores"* ]]
    run --separate-stderr "$HWNAS" profile mnist_mlp --device ref --streams 1 --seconds 0.1 --csv
    [ "$status" -eq 0 ]
    [[ $output == *"mnist_mlp,ref,1,1,f32,1,ok,"* ]]
    run --separate-stderr "$HWNAS" profile mnist_mlp --streams 1,0
    [ "$status" -eq 2 ]
    [[ $stderr == *"--streams '1,0' is not a list"* ]]
}

@test "an interval that stayed wider than asked says so" {
    HWNAS_RUNNER=${HWNAS%/*}/tests/cli/still_runner run "$HWNAS" profile mnist_mlp --device null \
        --seconds 0.2
    [[ $output != *"~"* ]]
    HWNAS_RUNNER=${HWNAS%/*}/tests/cli/still_runner run "$HWNAS" profile mnist_mlp --device null \
        --seconds 0.2 --interval 0.00001
    [[ $output == *"] ~"*"~ the time was over before the interval was as narrow as asked"* ]]
}

@test "streams that were disturbed are measured again, and what nobody looked at is null" {
    HWNAS_RUNNER=${HWNAS%/*}/tests/cli/still_runner "$HWNAS" profile mnist_mlp --device null \
        --streams 1 --seconds 0.1 --json >"$BATS_TEST_TMPDIR/still.json"
    STILL_GROWS=1 HWNAS_RUNNER=${HWNAS%/*}/tests/cli/still_runner "$HWNAS" profile mnist_mlp \
        --device null --streams 1 --seconds 0.1 --json >"$BATS_TEST_TMPDIR/grows.json"
    /usr/bin/python3 - "$BATS_TEST_TMPDIR/still.json" "$BATS_TEST_TMPDIR/grows.json" <<'END'
import json, sys
still, grows = (json.load(open(f))["rows"][0] for f in sys.argv[1:])
assert still["attempts"] == 1 and not still["unstable"], still
assert grows["attempts"] == 3 and grows["unstable"], grows
assert still["shared_share"] is None, still
END
}

@test "a copy that nobody hears yet goes on with its load" {
    "$HWNAS" export --space mnist_mlp --format onnx --out "$BATS_TEST_TMPDIR/net.onnx"
    # The parent of several copies hears them one after the other. This one hears nothing for longer than
    # a window, through a socket that is full after some words.
    /usr/bin/python3 - "$HWNAS" "$BATS_TEST_TMPDIR/net.onnx" <<'END'
import json, os, socket, struct, subprocess, sys, time
parent, child = socket.socketpair()
child.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
runner = subprocess.Popen([sys.argv[1], "runner"], stdin=child, stdout=child,
                          env=dict(os.environ, HWNAS_IS_RUNNER="1"))
child.close()

def send(kind, data):
    parent.sendall(b"hwn1" + struct.pack("<IQ", kind, len(data)) + data)

def take(n):
    data = b""
    while len(data) < n:
        data += parent.recv(n - len(data))
    return data

def hear():
    while True:
        _, kind, n = struct.unpack("<4sIQ", take(16))
        text = take(n)
        if kind == 5:
            answer = json.loads(text)
            assert answer["status"] == "ok", answer
            return answer

send(1, json.dumps({"device": "null", "threads": 1, "cores": [], "allowed": []}).encode())
hear()
send(2, json.dumps({"precision": "f32", "mode": "hot", "priority": "auto", "idle_seconds": 0.1, "interval": 0.01, "tails": [0.9, 0.99] + 6 * [0],
                    "max_seconds": 2, "steps_seconds": 0.0, "steps_runs": 0, "min_samples": 30, "fewest": 0, "give_up": 0.0,
                    "max_attempts": 0, "timeout": 60.0, "memory_limit": 0, "is_copy": True}).encode())
send(3, open(sys.argv[2], "rb").read())
hear()
send(6, json.dumps({"lead": 0.1, "seconds": 5}).encode())
time.sleep(5.5)
measured = hear()["window"]["measurement"]
parent.close()
runner.wait()
assert measured["run_seconds"] > 1, measured  # one that waited has some tenths
END
}

@test "a profile is saved whole, with the machine and the date" {
    cd "$BATS_TEST_TMPDIR"
    "$HWNAS" profile mnist_mlp --device ref,null --dtype f32,f16 --seconds 0.05 --name here \
        --save kept.json --json >printed.json || [ $? -eq 1 ]
    cmp <(/usr/bin/python3 -m json.tool kept.json) <(/usr/bin/python3 -m json.tool printed.json)
    /usr/bin/python3 - kept.json <<'END'
import json, os, sys, time
d = json.load(open(sys.argv[1]))
assert (d["format"], d["version"], d["name"], d["source"]) == ("hwnas.profile", 1, "here", "measured")
assert d["machine"]["cores"] == len(os.sched_getaffinity(0)), d
assert d["date"][:4] >= "2026" and d["date"].endswith("Z"), d
assert [r["device"] for r in d["rows"]] == ["ref", "ref", "null", "null"]
assert len(d["rows"][0]["digest"]) == 32 and d["rows"][0]["params"] == 669706
END
    run --separate-stderr "$HWNAS" profile mnist_mlp --device null --save /nowhere/kept.json
    [ "$status" -eq 1 ]
    [[ $stderr == *"/nowhere/kept.json"* ]]
}

@test "what cannot be read or written is told before anything is measured" {
    cd "$BATS_TEST_TMPDIR"
    # A runner that notes that it was started.
    printf '#!/bin/sh\ntouch started\nexec "%s" "$@"\n' "$HWNAS" >runner.sh
    chmod +x runner.sh
    "$HWNAS" export --space mnist_mlp --format onnx --out $'\xff.onnx'
    ends() { # ends CODE PATTERN ARGUMENT...
        local code=$1 pattern=$2
        shift 2
        HWNAS_RUNNER=$PWD/runner.sh run --separate-stderr "$HWNAS" "$@"
        [ "$status" -eq "$code" ] && [[ $stderr == $pattern ]] && [ -z "$output" ] ||
            { echo "$* ended with $status: $stderr$output" && false; }
        [ ! -e started ]
    }
    ends 2 "*no 'nothing'*" profile mnist_mlp nothing --device null
    ends 2 "*would take*multiply-accumulates*" profile resnet50 --batch 1,1048576 --device null
    ends 2 "*not UTF-8*" profile mnist_mlp $'\xff.onnx' --device null --json
    ends 1 "*none/x.json: cannot write*" profile mnist_mlp --device null --save none/x.json
    ends 1 "*cannot write*directory*" profile mnist_mlp --device null --save .
    ends 1 "*none/x.json: cannot write*" compare mnist_mlp --device null --save none/x.json
    [ -z "$(ls -A | grep tmp)" ]
}

@test "an interrupted profile prints what it has" {
    cd "$BATS_TEST_TMPDIR"
    "$HWNAS" profile mnist_mlp resnet152 --device ref --seconds 0.05 --save half.json >half.txt \
        2>half.err &
    pid=$!
    sleep 3
    kill -INT "$pid"
    code=0
    wait "$pid" || code=$?
    [ "$code" -eq 130 ]
    # On a machine that is very slow not even the small one was finished; then there is no file.
    if grep -q "interrupted; 0 rows were finished" half.err; then
        [ ! -e half.json ]
        return
    fi
    grep -q "interrupted; 1 row was finished" half.err
    grep -q "mnist_mlp" half.txt
    [ "$(/usr/bin/python3 -c 'import json; print(len(json.load(open("half.json"))["rows"]))')" -eq 1 ]
}

@test "energy, where the machine counts it" {
    # A counter as powercap shows it, of a machine that takes 10 W.
    zone=$BATS_TEST_TMPDIR/powercap/intel-rapl:0
    mkdir -p "$zone"
    echo package-0 >"$zone/name"
    echo 262143328850 >"$zone/max_energy_range_uj"
    echo 1 >"$zone/energy_uj"
    /usr/bin/python3 - "$zone/energy_uj" <<'END' &
import sys, time
with open(sys.argv[1], "r+") as f:
    end = time.time() + 600
    while time.time() < end:
        f.seek(0)
        f.write("%d\n" % (time.monotonic() * 10e6))
        f.flush()
        time.sleep(0.001)
END
    meter=$!
    for streams in "" "--streams 1"; do
        # shellcheck disable=SC2086
        HWNAS_POWERCAP=$BATS_TEST_TMPDIR/powercap "$HWNAS" profile mnist_mlp --device ref --batch 2 \
            --seconds 2 --interval 0.001 --priority normal $streams --json >"$BATS_TEST_TMPDIR/energy.json"
        /usr/bin/python3 - "$BATS_TEST_TMPDIR/energy.json" <<'END'
import json, sys
(row,) = json.load(open(sys.argv[1]))["rows"]
if row["energy_joules"] is None and row["unstable"]:
    sys.exit()  # disturbed from beginning to end: there is no block that counts
assert row["energy_low_joules"] <= row["energy_joules"] <= row["energy_high_joules"], row
assert row["energy_joules"] >= 0, row  # 0: the meter above had no processor; what it counts has a unit test
END
    done
    run env HWNAS_POWERCAP="$BATS_TEST_TMPDIR/powercap" "$HWNAS" profile mnist_mlp --device ref \
        --seconds 2 --interval 0.001 --priority normal
    kill "$meter"
    [[ $output == *"mJ/item"* || $output == *"disturbed"* ]]
    run "$HWNAS" profile mnist_mlp --device null
    [ -e /sys/class/powercap/intel-rapl:0/energy_uj ] || [[ $output != *"mJ/item"* ]]
}

@test "what cannot be profiled is told, with exit code" {
    ends() { # ends CODE PATTERN ARGUMENT...
        local code=$1 pattern=$2
        shift 2
        run --separate-stderr "$HWNAS" profile "$@"
        [ "$status" -eq "$code" ] && [[ $stderr == $pattern ]] ||
            { echo "$* ended with $status: $stderr" && false; }
    }

    ends 2 "*argument is missing*"
    ends 2 "*which network of nas_bench_macro*--arch CODE*" nas_bench_macro
    ends 2 "*'0,1' is not a list*--batch 1,2,4*" mnist_cnn --batch 0,1
    ends 2 "*'1,' is not a list*" mnist_cnn --threads 1,
    ends 2 "*no precision 'int9'*did you mean 's8'[?] The precisions are f32, *" mnist_cnn --dtype f32,int9
    ends 2 "*--dtype 'f32,' is not a list*" mnist_cnn --dtype f32,
    ends 2 "*no device 'cpuu'*did you mean 'cpu'*" mnist_cnn --device ref,cpuu
    ends 2 "*exclude each other*" mnist_cnn --json --csv
    ends 2 "*more than 0*" mnist_cnn --interval 0
    ends 2 "*layers are measured in the mode hot*" mnist_cnn --layers --mode cold
    ends 2 "*without streams*" mnist_cnn --layers --streams 1
    ends 2 "*no 'resnet5'*" resnet5
    ends 2 "*name of the machine is not UTF-8*" mnist_mlp --device null --name $'\xff'
    "$HWNAS" export --space mnist_mlp --batch 2 --format onnx --out "$BATS_TEST_TMPDIR/two.onnx"
    ends 2 "*has a batch of 2, not 1*leave --batch out*" "$BATS_TEST_TMPDIR/two.onnx" --device null --batch 1
    ends 2 "*one network*" "$BATS_TEST_TMPDIR/two.onnx" --arch 1
    head -c 100 "$BATS_TEST_TMPDIR/two.onnx" >"$BATS_TEST_TMPDIR/cut.onnx"
    ends 2 "*cut.onnx*" "$BATS_TEST_TMPDIR/cut.onnx" --device null
}

@test "layers: every node in one of them, what they cost, and what the device allows" {
    local out=$BATS_TEST_TMPDIR/layers.json
    "$HWNAS" space show resnet32_cifar --json >"$BATS_TEST_TMPDIR/network.json"
    "$HWNAS" profile resnet32_cifar --layers --seconds 0.2 --json >"$out"
    /usr/bin/python3 - "$out" "$BATS_TEST_TMPDIR/network.json" <<'END'
import json, sys
(row,) = json.load(open(sys.argv[1]))["rows"]
network = json.load(open(sys.argv[2]))
layers = row["layers"]["list"]
assert sorted(l["position"] for l in layers) == list(range(len(layers)))
times = [l["p50_seconds"] for l in layers]
assert times == sorted(times, reverse=True) and times[-1] > 0
assert abs(sum(times) - row["layers"]["sum_seconds"]) < 1e-9
assert sum(l["macs"] for l in layers) == row["macs"] == 68862592
names = [n for l in layers for n in l["nodes"]]
# BatchNorm is folded away; the rest is there once.
left = [l["name"] for l in network["layers"] if l["operator"] != "batch_norm"]
assert sorted(names) == sorted(left), set(names) ^ set(left)
for l in layers:
    assert l["p50_low_seconds"] <= l["p50_seconds"] <= l["p50_high_seconds"], l
    assert l["bytes"] >= l["weight_bytes"] >= 0
    assert (l["bound"] is None) == (l["least_seconds"] is None), l
    assert l["macs"] == 0 or l["bound"] in ("compute", "cache", "memory"), l
END
    "$HWNAS" profile resnet32_cifar --layers --seconds 0.1 --csv >"$BATS_TEST_TMPDIR/layers.csv"
    /usr/bin/python3 - "$out" "$BATS_TEST_TMPDIR/layers.csv" <<'END'
import csv, json, sys
(row,) = json.load(open(sys.argv[1]))["rows"]
rows = list(csv.DictReader(open(sys.argv[2])))
assert {r["layer"] for r in rows} == {l["name"] for l in row["layers"]["list"]}
assert all(None not in r and None not in r.values() for r in rows)
END
    run "$HWNAS" profile mnist_cnn mnist_mlp --device ref,null --layers --seconds 0.05
    [ "$status" -eq 0 ]
    [[ $output == *"mnist_mlp, ref, "*"layer "*"sum of the "*"mnist_mlp, null, "*"does not tell its steps"* ]]
}

@test "the roofline is measured once" {
    export XDG_CACHE_HOME=$BATS_TEST_TMPDIR/cache
    "$HWNAS" profile mnist_mlp --layers --seconds 0.05 >/dev/null
    local file
    file=$(echo "$XDG_CACHE_HOME"/hwnas/roofline-*.json)
    grep -q 'oneDNN .* 1 threads; f32' "$file"
    cp "$file" "$BATS_TEST_TMPDIR/first"
    "$HWNAS" profile mnist_mlp --layers --seconds 0.05 >/dev/null
    cmp "$file" "$BATS_TEST_TMPDIR/first"
    [ "$(ls "$XDG_CACHE_HOME/hwnas" | wc -l)" -eq 1 ]
}

@test "each row has the command that makes it again" {
    mkdir "$BATS_TEST_TMPDIR/it's here"
    cp "$HWNAS_SRC/search_spaces/nas_bench_macro.yaml" "$BATS_TEST_TMPDIR/it's here/space.yaml"
    cd "$BATS_TEST_TMPDIR/it's here"
    "$HWNAS" profile space.yaml "$PWD/space.yaml" --arch 22212220 --device null --batch 1,2 \
        --seconds 0.05 --interval 0.5 --runs 7 --mode after-idle=0.002 --json >../first.json
    /usr/bin/python3 - ../first.json "$HWNAS" <<'END'
import json, subprocess, sys
rows = json.load(open(sys.argv[1]))["rows"]
assert len(rows) == 4
for row in rows:
    assert row["mode"] == "after-idle" and "--mode after-idle=0.002" in row["command"], row
    name, rest = row["command"].split(" ", 1)
    assert name == "hwnas"
    text = subprocess.run(["sh", "-c", f"'{sys.argv[2]}' {rest} --json"], check=True,
                          capture_output=True, text=True).stdout
    (again,) = json.loads(text)["rows"]
    for key in ("model", "digest", "batch", "threads", "dtype", "mode", "command"):
        assert again[key] == row[key], (key, again, row)
END
}

@test "modes: what each is, and what is none" {
    for mode in hot after-idle=0.001 sustained=0.2; do
        "$HWNAS" profile mnist_mlp --device null --seconds 0.1 --mode $mode --json |
            grep -q "\"mode\": \"${mode%=*}\""
    done
    for mode in cold cold-weights; do
        run "$HWNAS" profile mnist_mlp --seconds 0.1 --mode $mode --json
        [[ $status -eq 0 && $output == *"\"mode\": \"$mode\""* ]] || [[ $output == *"out of its caches"* ]]
    done
    # What the figures are of is told to people too.
    run "$HWNAS" profile mnist_mlp --device null --mode sustained=0.1
    [[ $output == *"mode sustained, 0.1 s"*"in the first tenth"*"in the last"* ]]
    run "$HWNAS" profile mnist_mlp --device null --seconds 0.1
    [[ $output != *"mode "* ]]
    run "$HWNAS" profile mnist_mlp --mode lukewarm
    [[ $status -eq 2 && $output == *"no mode 'lukewarm'"*"after-idle[=SECONDS]"* ]]
    run "$HWNAS" profile mnist_mlp --mode cold --streams 1
    [[ $status -eq 2 && $output == *"mode hot only"* ]]
    run "$HWNAS" profile mnist_mlp --runs 0
    [[ $status -eq 2 && $output == *"1 or more"* ]]
}

@test "a model larger than memory is a row that says so, with exit code 1" {
    run --separate-stderr "$HWNAS" profile mobilenet_v2 mnist_mlp --device null --batch 500000,1 --csv
    [ "$status" -eq 1 ]
    [[ $stderr == *"memory"* ]]
    [ "$(cut -d, -f1,3,7 <<<"$output" | tail -n +2 | head -2 | tr '\n' ' ')" = \
        "mobilenet_v2,500000,out_of_memory mobilenet_v2,1,ok " ]
}

@test "a runner that is killed in the middle costs its row, and no other" {
    printf '#!/bin/sh\n[ -e once ] || { touch once; export HWNAS_RUNNER_FAULT=killed; }\nexec "%s" "$@"\n' \
        "$HWNAS" >"$BATS_TEST_TMPDIR/runner.sh"
    chmod +x "$BATS_TEST_TMPDIR/runner.sh"
    cd "$BATS_TEST_TMPDIR"
    HWNAS_RUNNER=$PWD/runner.sh run --separate-stderr "$HWNAS" profile mnist_mlp mnist_cnn \
        --device null --seconds 0.05 --csv
    [ "$status" -eq 1 ]
    [[ $stderr == *"killed while compiling"* ]]
    [ "$(cut -d, -f1,7 <<<"$output" | tail -n +2 | tr '\n' ' ')" = \
        "mnist_mlp,out_of_memory mnist_cnn,ok " ]
}
