# Runners of others: the protocol of docs/runner-protocol.md, and the examples that speak it.
load helpers

STILL=${HWNAS%/*}/tests/cli/still_runner
RUNNERS=$HWNAS_SRC/examples/runners

# A stand-in for ONNX Runtime is what the example in Python finds.
export PYTHONPATH=$HWNAS_SRC/tests/peers/standin

python_runner() {
    echo "runner:/usr/bin/python3 '$RUNNERS/onnxruntime_runner.py'"
}

# nodes FILE.onnx: how many nodes it has, by the ONNX library.
nodes() {
    /usr/bin/python3 -c 'import onnx, sys
print(len(onnx.load(sys.argv[1]).graph.node))' "$1"
}

@test "the runner in Python: hwnas judges its samples, and says who measured" {
    ends 0 export --space mnist_mlp --format onnx --fold --out net.onnx
    ends 0 profile net.onnx --device "$(python_runner)" --threads 3 --json
    is out "d['devices'][0]['library'] == 'ONNX Runtime in Python'"
    is out "[r['status'] for r in d['rows']] == ['ok']"
    # Time passes in its runs alone: 0.1 ms for each node.
    is out "abs(d['rows'][0]['p50_seconds'] / (1e-4 * $(nodes net.onnx)) - 1) < 1e-6"
    is out "d['rows'][0]['samples'] >= 30"
}

@test "the runner in Python: what it cannot run is a row that says so, and the next row is measured" {
    ends 1 profile mnist_cnn mnist_mlp --device "$(python_runner)" --json
    is out "'Conv is not implemented' in d['rows'][0]['message'] and d['rows'][1]['p50_seconds'] > 0"
    ends 1 profile mnist_mlp --device "$(python_runner)" --mode cold --json
    is out "'one run after the other' in d['rows'][0]['message']"
}

@test "a runner that takes no larger batch is not sent one" {
    sed 's/"native": /"batch": 2, "native": /' "$RUNNERS/onnxruntime_runner.py" >small.py
    grep -q '"batch": 2' small.py
    ends 0 profile mnist_mlp --device "runner:/usr/bin/python3 small.py" --batch 2 --json
    ends 1 profile mnist_mlp --device "runner:/usr/bin/python3 small.py" --batch 3 --json
    is out "'takes batches of at most 2, and this one is of 3' in d['rows'][0]['message']"
}

@test "devices: the priority that a runner of others says it has, and no word of hwnas's own rights" {
    local said
    for said in realtime normal; do
        sed "s/\"native\": /\"priority\": \"$said\", \"native\": /" "$RUNNERS/onnxruntime_runner.py" >"$said.py"
        grep -q "\"priority\": \"$said\"" "$said.py"
    done
    ends 0 devices "runner:/usr/bin/python3 realtime.py" --json
    is out "d['priority']['realtime'] is True"
    ends 0 devices "runner:/usr/bin/python3 normal.py" --json
    is out "d['priority']['realtime'] is False and 'chrt' in d['priority']['hint']"
    is out "not any(word in str(d['priority']) for word in ('setcap', 'HWNAS', 'kernel'))"
    ends 0 devices "runner:/usr/bin/python3 normal.py"
    says out "priority normal: the runner says that it measures with that"
    # Most say nothing of it.
    ends 0 devices "$(python_runner)" --json
    is out "'priority' not in d"
}

# starts LINE...: how often a search of 12 trials with these devices started runners, where half of the memory is free.
starts() {
    rm -f started s.db
    job "devices: [$1]" device "objectives: [accuracy, latency.p50 on left, latency.p50 on right]" "strategy: random" \
        "measure: {seconds: 0.01, estimate: off, verify: none, ties: 0, confirm: 0}" "budget: {trials: 12}"
    printf '#!/bin/sh\necho >>started\nexec "%s" "$@"\n' "$STILL" >counted
    chmod +x counted
    mkdir -p system/proc
    printf 'MemTotal: 8000 kB\nMemFree: 10 kB\nMemAvailable: 4000 kB\n' >system/proc/meminfo
    HWNAS_SYSTEM=$PWD/system HWNAS_CORE_LOCKS=$$ HWNAS_RUNNER=$PWD/counted ends 0 search job.yaml --study s.db
    wc -l <started
}

@test "devices keep their runners from trial to trial, where there is memory" {
    local n alone="{name: left, device: 'null', threads: 1}, {name: right, device: 'null', threads: 1}"
    [ "$(starts "$alone")" = 2 ]
    # A container that has used most of what it may have.
    mkdir -p system/proc/self system/sys/fs/cgroup
    echo 0::/ >system/proc/self/cgroup
    echo 4000000 >system/sys/fs/cgroup/memory.max
    echo 3500000 >system/sys/fs/cgroup/memory.current
    n=$(starts "$alone")
    [ "$n" -ge 24 ]
    rm -r system/sys
    # Threads that have nothing to do end, so several are in nobody's way either.
    [ "$(nproc)" -gt 1 ] || return 0
    [ "$(starts "{name: left, device: 'null', threads: 2}, {name: right, device: 'null', threads: 2}")" = 2 ]
}

@test "a runner that died between two trials is started anew, and no trial is blamed" {
    cat >train <<'END'
#!/bin/sh
# Ends the runners there are, and waits until each of them is gone, or is waited for and nothing else: a thread that
# still ends after the first one keeps the process from being waited for.
for pid in $(cat pids 2>/dev/null); do
    kill -9 "$pid" 2>/dev/null
    while [ -e "/proc/$pid" ] && [ "$(cat /proc/"$pid"/task/*/status 2>/dev/null | grep '^State:' | cut -c 8)" != Z ]; do sleep 0.01; done
done
: >pids
echo 70
END
    printf '#!/bin/sh\necho $$ >>pids\necho >>started\nexec "%s" "$@"\n' "$STILL" >counted
    chmod +x train counted
    job "accuracy: command:./train" "device: 'null'" "objectives: [accuracy, latency.p50]" "strategy: random" "budget: {trials: 4}" \
        "measure: {seconds: 0.01, estimate: off, verify: none, ties: 0, confirm: 0}"
    HWNAS_RUNNER=$PWD/counted ends 0 search job.yaml --study s.db --json
    is out "d['failed'] == 0 and d['finished'] == 4"
    [ "$(wc -l <started)" -ge 3 ]
}

# benchmarks NAME...: the programs that the template in shell drives, in the PATH: stand-ins that take 2 ms for each node.
benchmarks() {
    local name
    mkdir -p bin
    for name; do
        ln -s "$HWNAS_SRC/tests/peers/standin/benchmark.py" "bin/$name"
    done
    PATH=$PWD/bin:$PATH
}

@test "the template in shell: latencies that benchmark_app, trtexec and a program behind adb print" {
    local name samples
    benchmarks benchmark_app trtexec adb
    mkdir tmp
    export TMPDIR=$PWD/tmp # others may use the template meanwhile
    ends 0 export --space mnist_mlp --format onnx --fold --out net.onnx
    while read -r name samples; do
        ends 0 profile net.onnx --device "runner:sh '$RUNNERS/printed_numbers.sh' $name" --json
        is out "abs(d['rows'][0]['p50_seconds'] / (2e-3 * $(nodes net.onnx)) - 1) < 1e-6"
        is out "d['rows'][0]['samples'] == $samples and d['rows'][0]['p50_low_seconds'] > 0"
        is out "d['devices'][0]['name'].startswith('$name on ')"
    done <<END
benchmark_app 6
trtexec 20
adb 20
END
    [ -z "$(ls tmp)" ]
}

@test "the template in shell: a search drives a benchmark by its printed numbers" {
    benchmarks trtexec
    ends 0 search --space nas_bench_macro --accuracy nas_bench_macro_cifar10 --objectives accuracy,latency --trials 4 \
        --device "runner:sh '$RUNNERS/printed_numbers.sh' trtexec" --ties 0 --confirm 0 --study s.db --json
    is out "d['trials'] == d['finished'] == 4 and d['failed'] == 0 and len(d['front']) >= 1"
}

@test "the template in shell: without the program, and without the function, it says what is wrong" {
    ends 0 export --space mnist_mlp --format onnx --fold --out net.onnx
    ends 1 profile net.onnx --device "runner:sh '$RUNNERS/printed_numbers.sh'" --json
    is out "'printed no latency' in d['rows'][0]['message']"
    ends 1 profile net.onnx --device "runner:sh '$RUNNERS/printed_numbers.sh' trtexec" --json
    is out "'cannot run this network' in d['rows'][0]['message']"
    ends 1 profile net.onnx --device "runner:sh '$RUNNERS/printed_numbers.sh' nonsense"
    says out "ended with status 2 while starting: there is no function use_nonsense"
}

@test "our own runner speaks it: a search by it is the search by a child of ours" {
    export STILL_BY_NETWORK=1 STILL_BY_SIZE=1
    local job=(search --space nas_bench_macro --accuracy nas_bench_macro_cifar10 --strategy nsga2
        --objectives accuracy,latency.p50 --trials 40 --parallel 2 --ties 0 --confirm 0 --estimate off --json)
    undisturbed ends 0 "${job[@]}" --device null --study own.db
    mv out own
    echo "#!/bin/sh
exec '$STILL' runner serve" >serve
    chmod +x serve
    ends 0 "${job[@]}" --device runner:./serve --study other.db
    [ "$(json own "[[t['code'] for t in d['front']], d['trials']]")" = \
        "$(json out "[[t['code'] for t in d['front']], d['trials']]")" ]
}

@test "a runner that is none, dies, or is silent: a message, and no hang" {
    refuses 2 "needs a command" devices runner:
    ends 2 profile mnist_mlp --device 'runner:./is-not-there'
    says out "cannot start the runner './is-not-there'"
    ends 1 profile mnist_mlp --device 'runner:echo hello there world; cat >/dev/null'
    says out "is no frame of a runner"
    ends 1 profile mnist_mlp --device 'runner:echo that was it >&2; exit 3'
    says out "ended with status 3 while starting: that was it"
    ends 1 profile mnist_mlp --device 'runner:kill -SEGV $$'
    says out "died of SIGSEGV while starting"
}

# What a runner reads and writes, for those below that break something.
write_frames() {
    cat >frames.py <<'END'
import json, struct, sys
source, sink = sys.stdin.buffer, sys.stdout.buffer

def read():
    head = source.read(16)
    if len(head) < 16:
        sys.exit()
    kind, length = struct.unpack("<4sIQ", head)[1:]
    source.read(length)
    return kind

def write(kind, value):
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    sink.write(struct.pack("<4sIQ", b"hwn1", kind, len(text)) + text)
    sink.flush()
END
}

@test "a runner that breaks the protocol: what it wrote is said, for who wrote it" {
    local how what
    write_frames
    cat >broken.py <<'END'
import sys
from frames import read, write

how = sys.argv[1]
read()
info = {"protocol": 1, "name": "x" * (500 if how == "long" else 1)}
if how == "nameless":
    del info["name"]
write(5, b"ok" if how == "text" else {"status": "ok", "info": info})
while True:
    if read() != 3:
        continue
    seconds = {"negative": [-1e-3], "words": ["1 ms"], "nothing": []}.get(how)
    if seconds is not None:
        write(7, {"seconds": seconds})
    write(5, {"great": {"status": "great"}, "silent": {}}.get(how, {"status": "ok"}))
END
    while read -r how what; do
        ends 1 profile mnist_mlp --device "runner:/usr/bin/python3 broken.py $how"
        says out "'/usr/bin/python3 broken.py $how' wrote $what"
        says err "docs/runner-protocol.md"
    done <<END
text an ANSWER that is no JSON object
nameless an ANSWER to OPEN whose \`info\` lacks a \`name\`
long an ANSWER to OPEN whose \`info\` lacks a \`name\`, or has wrong members
negative SAMPLES without \`seconds\`, a list of numbers above 0
words SAMPLES without \`seconds\`
nothing SAMPLES without \`seconds\`
great an ANSWER with an unknown status
silent an ANSWER without status
none an ANSWER with neither SAMPLES before it
END
}

@test "a failure of a runner of others has the status that it says, and what comes of it is as docs/runner-protocol.md says" {
    local name n
    write_frames
    cat >fails.py <<'END'
import os, sys
from frames import read, write

open("starts", "a").write("one\n")
read()
write(5, {"status": "ok", "info": {"protocol": 1, "name": "a board"}})
while True:
    if read() != 3:
        continue
    if not os.path.exists("failed"):
        open("failed", "w").close()
        write(5, {"status": sys.argv[1], "message": "no luck"})
        continue
    write(7, {"seconds": [1e-3] * 100})
    write(5, {"status": "ok"})
END
    # The table of the page: a status, and whether the runner goes on, is started anew, or the search ends.
    awk -F'|' '/^\| status \|/ { inside = 1 } inside && !/^\|/ { exit } inside' "$HWNAS_SRC/docs/runner-protocol.md" |
        while IFS='|' read -r _ names what _; do
            for name in $(grep -oE '`[a-z_]+`' <<<"$names" | tr -d '\`'); do
                case $what in
                *"goes on"*) echo "$name 1" ;;
                *"started anew"*) echo "$name 2" ;;
                *"the search ends"*) echo "$name ends" ;;
                *"is measured"*) ;;
                *) echo "$name what" ;;
                esac
            done
        done >table
    [ "$(wc -l <table)" -ge 8 ]
    while read -r name n; do
        rm -f failed starts s.db
        job "device: 'runner:/usr/bin/python3 fails.py $name'" "objectives: [accuracy, latency.p50]" "strategy: random" \
            "measure: {seconds: 0.01, estimate: off, verify: none, ties: 0, confirm: 0, parallel: 1}" "budget: {trials: 3}"
        if [ "$n" = ends ]; then
            "$HWNAS" search job.yaml --study s.db >out 2>err && return 1
            ends 0 search job.yaml --study s.db --resume --json
            is out "d['failed'] == 0 and d['finished'] == 3"
            continue
        fi
        ends 0 search job.yaml --study s.db --json
        is out "d['failed'] == 1 and d['finished'] == 3"
        [ "$(wc -l <starts)" = "$n" ]
        ends 0 report s.db --csv
        says s.csv ",$name,"
    done <table
}

@test "a runner of another version of the protocol: one clear message" {
    cat >old.py <<'END'
import json, struct, sys
source, sink = sys.stdin.buffer, sys.stdout.buffer
magic, kind, n = struct.unpack("<4sIQ", source.read(16))
assert json.loads(source.read(n))["protocol"] == 1
text = json.dumps({"status": "ok", "info": {"protocol": 2, "name": "a board", "version": "9.9"}}).encode()
sink.write(struct.pack("<4sIQ", b"hwn1", 5, len(text)) + text)
sink.flush()
source.read()
END
    ends 1 profile mnist_mlp --device 'runner:/usr/bin/python3 old.py'
    says out "speaks version 2 of the protocol: it is hwnas 9.9"
}

@test "what belongs to one machine is refused: several copies, running in this process" {
    ends 1 profile mnist_mlp --device "$(python_runner)" --streams 2
    [ "$(nproc)" -lt 2 ] || says out "on this machine's own devices alone" # with one core there are no two copies anyway
    ends 0 export --space mnist_mlp --format onnx --out net.onnx
    /usr/bin/python3 -c 'import numpy; numpy.save("x.npy", numpy.zeros((1, 784), "f"))'
    refuses 1 "it runs nothing here" run net.onnx --input x.npy --output y.npy --device runner:true
}

@test "a program that says to be another device when it is started again: nothing of it is taken" {
    printf '#!/bin/sh\necho >>starts\n[ $(wc -l <starts) -le 2 ] || export STILL_MACHINE=other\nexec %s runner serve\n' "'$STILL'" >serve
    chmod +x serve
    # With a limit of memory each network has a process of its own.
    refuses 1 "another machine than before answers as 'runner:./serve'*, 1 thread; it is *, 1 thread"$'\n' search --space nas_bench_macro --memory 1024 \
        --accuracy nas_bench_macro_cifar10 --device runner:./serve --objectives accuracy,latency.p50 --trials 5 --study s.db --ties 0 --confirm 0
}

@test "a runner that goes from one thread to two and back is the same machine" {
    [ "$(nproc)" -gt 1 ] || skip "there is one core"
    ends 0 search --space nas_bench_macro --device cpu --threads '{values: [1, 2]}' --objectives latency.p50,params \
        --trials 8 --seconds 0.01 --strategy random --study s.db --ties 0 --confirm 0 --verify none
    says out "8 finished"
}

@test "latencies of another runner are not mixed into a study" {
    export STILL_BY_NETWORK=1
    undisturbed ends 0 search --space nas_bench_macro --accuracy nas_bench_macro_cifar10 --device null \
        --objectives accuracy,latency.p50 --trials 5 --study s.db --ties 0 --confirm 0
    printf '#!/bin/sh\nexec %s runner serve\n' "'$STILL'" >serve
    chmod +x serve
    refuses 2 "" search --space nas_bench_macro --accuracy nas_bench_macro_cifar10 --device runner:./serve \
        --objectives accuracy,latency.p50 --trials 9 --study s.db --resume --ties 0 --confirm 0
}
