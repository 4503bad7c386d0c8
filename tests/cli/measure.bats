# Searches that measure: what comes out, and what a runner may do without harm.
load helpers

# A small search on this machine's processor.
cpu_job() {
    job "device: cpu" "threads: 1" "objectives: [latency.p50, params]" "budget: {trials: 5}" \
        "measure: {seconds: 0.05}" "$@"
}

# runner NUMBER=FAULT...: a runner that has this fault when it is started for the NUMBERth time, and
# notes each start in the file starts.
runner() {
    {
        printf '#!/bin/sh\necho $$ >>"%s/starts"\ncase $(wc -l <"%s/starts") in\n' "$PWD" "$PWD"
        local rule
        for rule; do
            printf '%s) export HWNAS_RUNNER_FAULT=%s ;;\n' "${rule%=*}" "${rule#*=}"
        done
        printf 'esac\nexec "%s" "$@"\n' "$HWNAS"
    } >runner.sh
    chmod +x runner.sh
    export HWNAS_RUNNER=$PWD/runner.sh
}

@test "a search on the cpu: measured values, each inside its interval" {
    cpu_job "constraints: [latency.p50 <= 1000 ms]"
    ends 0 search job.yaml --json
    is out "(d['finished'], d['failed']) == (5, 0) and d['front']"
    is out "d['device']['library'].startswith('oneDNN 3') and d['device']['threads'] == 1"
    is out "d['job']['device'] == 'cpu' and d['run_seconds'] > 0"
    is out "all(0 < p['low'] <= p['value'] <= p['high'] and p['source'] == 'measured'
        and p['unit'] == 'ms' for p in (f['objectives']['latency.p50'] for f in d['front']))"
    is out "all(f['measurement']['samples'] >= 5 and f['measurement']['stop'] in ('interval', 'budget', 'above')
        for f in d['front'] if 'samples' in f['measurement'])"
    mv out first
    ends 0 study show job.db
    says out "device      cpu: *oneDNN 3*, 1 thread, batch 1"
    says out "latency p50 [mu]s *"
    says out "95 % interval of the measured median"
    says out "constraint  latency.p50 <= 1000 ms, kept by the whole interval of each measurement"
    says out "% of the time inside measured runs"
    grep -qE '[0-9]\.[0-9]{2,3}( \?)? \[[0-9.]+, [0-9.]+\]' out
}

@test "a metric is a row: latency.p95 is measured, and one line of the program names it" {
    job "device: 'null'" "objectives: [latency.p95, params]" "constraints: [latency.p95 <= 1 s]" \
        "budget: {trials: 3}" "measure: {seconds: 0.5}"
    undisturbed ends 0 search job.yaml --json
    is out "all(v['source'] == 'measured' and v['unit'] == 'ms' and v['low'] <= v['value'] <= v['high']
        for v in (f['objectives']['latency.p95'] for f in d['front']))"
    is out "all(o['latency.p50']['value'] <= o['latency.p90']['value'] <= o['latency.p95']['value']
        for o in (f['objectives'] for f in d['front']))"
    is out "all(f['measurement']['samples'] >= 59 for f in d['front'])"
    [ "$(grep -rF 'latency.p95' "$HWNAS_SRC/src" | wc -l)" = 1 ]
}

@test "what missed a limit on a busy machine says nothing of the networks" {
    job "device: 'null'" "objectives: [latency.p50, params]" "constraints: [latency.p50 <= 0.5 ms]" \
        "budget: {trials: 6}" "measure: {seconds: 0.05, estimate: off}"
    undisturbed ends 3 search job.yaml --json
    says err "none of 6 networks met latency.p50 <= 0.5 ms; the closest is trial"
    is out "d['evidence'] == {'missed': 6, 'disturbed': 0, 'bad': False}"
    STILL_SHARED=1 undisturbed ends 4 search job.yaml --overwrite --json
    says err "the machine was too busy to tell whether a network meets the constraints: 6 of the 6 "
    is out "d['evidence'] == {'missed': 6, 'disturbed': 6, 'bad': True} and d['winner'] is None"
    not says err "none of"
    ends 0 study show job.db
    says out "the machine was too busy to tell whether a network meets the constraints"
    not says out "no network meets"
    refuses 4 "*too busy to tell*" export job.db --format yaml --out best.yaml
    refuses 4 "*too busy to tell*" explain job.db
    # A limit that was missed by what was computed is missed on any machine.
    STILL_SHARED=1 undisturbed ends 3 search job.yaml --overwrite --json -c "accuracy >= 99"
}

@test "each measured trial has the command that measures it again" {
    job "device: 'null'" "objectives: [latency.p50, params]" "budget: {trials: 3}" \
        "measure: {seconds: 0.05}" "batch: {values: [1, 2]}"
    ends 0 search job.yaml --json
    /usr/bin/python3 - "$HWNAS" <<'END'
import json, subprocess, sys
front = json.load(open("out"))["front"]
assert front
for trial in front:
    command = trial["measurement"]["command"]
    assert command.startswith("hwnas profile "), command
    text = subprocess.run(["sh", "-c", f"'{sys.argv[1]}' {command[6:]} --json"], check=True,
                          capture_output=True, text=True).stdout
    (row,) = json.loads(text)["rows"]
    assert row["digest"] == trial["digest"] and row["command"] == command, (row, trial)
END
}

@test "a limit on latency that nothing meets is told after a search, with the closest network's interval" {
    local still=("device: 'null'" "objectives: [latency.p50, params]" "budget: {trials: 5}" "measure: {seconds: 0.05}")
    job "${still[@]}" "constraints: [latency.p50 <= 1 us]"
    undisturbed ends 3 search job.yaml
    says err "none of * networks met latency.p50 <= 1 us; the closest is trial *: latency.p50 * [mu]s [[]*, *]*relax"
    says out "closest *trial *: latency.p50 * [mu]s [[]*, *]"
    # It began with the smallest network.
    [ "$(trials job.db | head -1 | cut -d ' ' -f 1-2)" = "0 00000000" ]
    job "${still[@]}" "constraints: [latency.p50 >= 100 s]"
    undisturbed ends 3 search job.yaml --study slow.db
    says err "none of * networks met latency.p50 >= 100 s"
}

@test "what misses a limit at no cost is not measured" {
    runner
    cpu_job "constraints: [params <= 0.4 M]" "device: null" "strategy: nsga2"
    ends 0 search job.yaml --json
    is out "[f['arch'] for f in d['front']] == ['00000000'] and d['finished'] == 5"
    /usr/bin/python3 -c 'import sqlite3
assert sqlite3.connect("job.db").execute(
    "SELECT count(*) FROM value WHERE metric = \"latency.p50\"").fetchone() == (1,)'
}

@test "equal networks are measured once" {
    job "device: null" accuracy "objectives: [latency.p50]" "budget: {trials: 200}" \
        "measure: {seconds: 0.001}" "strategy: random"
    ends 0 search job.yaml --json
    /usr/bin/python3 - <<'END'
import json, sqlite3
rows = sqlite3.connect("job.db").execute(
    "SELECT number, digest, detail, value FROM trial JOIN value ON trial = number"
    " WHERE metric = 'latency.p50' ORDER BY number").fetchall()
rows = [(n, d, json.loads(x), v) for n, d, x, v in rows]
rows = [r for r in rows if "estimated" not in r[2]] # by the parts of those that were measured
first = {r[1]: r for r in rows if "same_network_as" not in r[2]}
duplicates = [r for r in rows if "same_network_as" in r[2]]
assert len(first) + len(duplicates) == len(rows) # one measurement for each network
for number, digest, detail, value in duplicates:
    assert detail["same_network_as"] == first[digest][0] and value == first[digest][3]
END
}

@test "kill -9 of the runner in the middle of a measurement costs one trial" {
    runner
    cpu_job "measure: {seconds: 3, interval: 0.0001}" "budget: {trials: 3}"
    /usr/bin/python3 - "$HWNAS" <<'END'
import os, signal, sqlite3, subprocess, sys, time
search = subprocess.Popen([sys.argv[1], "search", "job.yaml", "--json"],
                          stdout=open("out", "w"), stderr=open("err", "w"))
def begun():
    try:
        return sqlite3.connect("job.db").execute("SELECT count(*) FROM trial").fetchone()[0]
    except sqlite3.Error:
        return 0
while not (os.path.exists("job.db") and begun()):
    assert search.poll() is None, open("err").read()
    time.sleep(.01)
runner = int(open("starts").read())
def computed():
    return sum(int(x) for x in open(f"/proc/{runner}/stat").read().rsplit(")")[1].split()[11:13]) / os.sysconf("SC_CLK_TCK")
before = computed()
while computed() < before + .2: # it idles until it measures
    assert search.poll() is None, open("err").read()
    time.sleep(.01)
os.kill(runner, signal.SIGKILL)
assert search.wait(600) == 0, open("err").read()
END
    [ "$(wc -l <starts)" -eq 2 ]
    is out "(d['finished'], d['failed']) == (3, 1) and d['front']"
    is out "[f['status'] for f in d['failures']] == ['out_of_memory']"
    is out "'killed while' in d['failures'][0]['message']"
}

@test "crash, exit, hang, lack of memory: each costs its trial and no more" {
    not grep -q __asan_init "$HWNAS" || skip "a sanitizer takes more memory than the limit"
    runner 2=crash 3=hang 4=oom 5=killed 6=exit 7=garbage 8=alloc
    # With a limit of memory each candidate has a runner of its own.
    cpu_job "budget: {trials: 9}" "measure: {seconds: 0.01, timeout: 8, memory: 400}" \
        "strategy: random"
    ends 0 search job.yaml --json
    [ "$(wc -l <starts)" -eq 9 ]
    is out "(d['finished'], d['failed']) == (9, 7) and d['front']"
    is out "[(f['trial'], f['status']) for f in d['failures']] == [(1, 'crashed'), (2, 'timeout'),
        (3, 'out_of_memory'), (4, 'out_of_memory'), (5, 'crashed'), (6, 'crashed'),
        (7, 'out_of_memory')]"
    is out "d['failed_by'] == {'crashed': 3, 'out_of_memory': 3, 'timeout': 1}"
    is out "'SIGSEGV while compiling' in d['failures'][0]['message']"
    is out "'said nothing for 8 s while compiling' in d['failures'][1]['message']"
    ends 0 study show job.db
    says out "7 failed (3 out_of_memory, 3 crashed, 1 timeout)"
}

@test "when every candidate fails, the search ends with the reason" {
    cpu_job "budget: {trials: 100}"
    export HWNAS_RUNNER_FAULT=crash
    refuses 1 "each of the first 5 trials failed, *the runner died of SIGSEGV while compiling" \
        search job.yaml
    ends 0 study show job.db --json # kept: the failures tell of the machine
    is out "[f['status'] for f in d['failures']] == ['crashed'] * 5"
    refuses 1 "each of the first * trials failed, *the runner died of SIGSEGV while compiling" \
        search job.yaml --parallel 2 --estimate off --overwrite
    cpu_job "budget: {trials: 2}"
    ends 1 search job.yaml --overwrite
    says err "2 of 2 trials failed, last error: the runner died of SIGSEGV"
    unset HWNAS_RUNNER_FAULT
    cpu_job "budget: {trials: 4}"
    ends 0 search job.yaml --resume --json
    is out "(d['finished'], d['failed']) == (4, 2) and d['front']"
}

@test "a runner that cannot be started, or is something else: exit 1, nothing left" {
    local runner
    cpu_job
    for runner in /nowhere/hwnas:"cannot start the runner '/nowhere/hwnas': No such file" \
        /bin/false:"the runner ended with status 1 while starting" \
        /bin/cat:"the runner ended with status 1 while starting"; do
        export HWNAS_RUNNER=${runner%%:*}
        refuses 1 "${runner#*:}" search job.yaml
        [ "$(ls)" = $'err\njob.yaml\nout' ]
    done
}

@test "the search ends, the runner ends" {
    runner
    cpu_job "measure: {timeout: 60}"
    HWNAS_RUNNER_FAULT=hang "$HWNAS" search job.yaml >/dev/null 2>&1 3>&- &
    local search=$! pid
    until [ -s starts ] && [ -e job.db ]; do
        kill -0 $search
        sleep 0.02
    done
    pid=$(<starts)
    kill -0 "$pid"
    kill -9 $search
    for _ in $(seq 3000); do
        [ -e /proc/"$pid"/exe ] || return 0
        sleep 0.02
    done
    return 1
}
