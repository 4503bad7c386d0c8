# A search that was ended in the middle, in any way, goes on as if it had not been.
load helpers

TRIALS=2500 # half a second or so

setup_file() {
    export WHOLE=$BATS_FILE_TMPDIR/whole
    "$HWNAS" search "$HWNAS_SRC/examples/replay-nb-macro.yaml" --trials $TRIALS --json \
        --study "$WHOLE.db" >"$WHOLE.json"
}

# equals_whole STUDY JSON: the study has every trial and the front of the one that nothing ended.
equals_whole() {
    trials "$WHOLE.db" >whole.txt
    trials "$1" | cmp - whole.txt
    [ "$(json "$2" "d['front']")" = "$(json "$WHOLE.json" "d['front']")" ]
    is "$2" "d['finished'] == d['trials'] == $TRIALS and not d['interrupted']"
}

@test "kill -9 at any moment, many times, then --resume: the same trials, the same front" {
    /usr/bin/python3 - "$HWNAS" "$REPLAY" $TRIALS "$WHOLE.json" <<'END'
import json, os, random, subprocess, sys, time
program, job, n, whole = sys.argv[1:]
seed = random.randrange(1 << 30)
print("seed", seed)
random.seed(seed)
seconds = json.load(open(whole))["wall_seconds"]
command = [program, "search", job, "--trials", n, "--json", "--study", "s.db"]
begin = time.monotonic()
subprocess.run([program, "--version"], stdout=subprocess.DEVNULL, check=True)
start = time.monotonic() - begin # which the search's own seconds leave out

def kill_often(seconds):
    """Until a search comes to its end; how often it was killed."""
    n_killed = n_before = 0
    for sitting in range(200):
        # Some die while they start; the others recall what is done, and get a little further.
        share = random.uniform(.02, .1) + .4 * n_before / int(n)
        life = random.uniform(0, start + .03 * seconds) if sitting % 4 == 0 else start + share * seconds
        resume = ["--resume"] if os.path.exists("s.db") else []
        search = subprocess.Popen(command + resume, stdout=open("out", "w"), stderr=open("err", "w"))
        time.sleep(life)
        search.kill()
        if search.wait() == 0:
            break
        assert search.returncode == -9, (search.returncode, open("err").read())
        n_killed += 1
        if os.path.exists("s.db"):
            show = subprocess.run([program, "study", "show", "s.db", "--json"], capture_output=True)
            if b"ended before it began" in show.stderr and n_before == 0:
                continue
            assert show.returncode == 0, show.stderr
            study = json.loads(show.stdout)
            assert study["finished"] >= n_before, "a finished trial was lost"
            assert study["trials"] - study["finished"] <= 1
            n_before = study["finished"]
    return n_killed

# The whole search may have been slower than these are: others used the machine.
n_killed = kill_often(seconds)
while n_killed < 8 and seconds > 1e-3:
    os.remove("s.db")
    seconds /= 2
    n_killed = kill_often(seconds)
print("killed", n_killed, "times")
assert n_killed >= 8
END
    ends 0 search "$REPLAY" --trials $TRIALS --json --study s.db --resume
    equals_whole s.db out
    [ "$(ls s.db*)" = s.db ]
}

@test "killed between the making of the file and the first trial" {
    ends 0 search "$REPLAY" --trials 1 --study s.db
    /usr/bin/python3 - <<'END'
import sqlite3
db = sqlite3.connect("s.db")
for table in ("event", "value", "trial", "fact"):
    db.execute("DELETE FROM " + table)
db.commit()
END
    refuses 2 "s.db: the search was ended before it began*--resume" study show s.db
    refuses 2 "s.db: the search was ended before it began" export s.db --format onnx --out x.onnx
    refuses 2 "s.db: the study exists already" search "$REPLAY" --study s.db
    ends 0 search "$REPLAY" --trials $TRIALS --json --study s.db --resume
    equals_whole s.db out
}

# interrupted SIGNAL: a search that gets it in the middle, where it stands still (mortal.c).
interrupted() {
    /usr/bin/python3 - "${HWNAS%/*}/tests/cli/mortal" "$REPLAY" $TRIALS "$1" <<'END'
import os, signal, subprocess, sys
program, job, n, name = sys.argv[1:]
moments = 8 * 600  # eight of each trial
search = subprocess.Popen([program, "search", job, "--trials", n, "--json", "--study", "s.db"],
                          stdout=open("out", "w"), stderr=open("err", "w"), env=dict(os.environ, MORTAL_STOPS=str(moments), HWNAS_NOT_PAUSED="yes"))
assert os.WIFSTOPPED(os.waitpid(search.pid, os.WUNTRACED)[1]), "ended too early"
search.send_signal(getattr(signal, name))
search.send_signal(signal.SIGCONT)
search.send_signal(getattr(signal, name)) # as timeout(1) does
assert search.wait() == 130, search.returncode
END
    is out "d['interrupted'] and 500 <= d['finished'] < $TRIALS and len(d['front']) > 5"
    says err "hwnas: interrupted after * trials*hint: 'hwnas search $REPLAY --study s.db --resume' goes on"
    ends 0 search "$REPLAY" --trials $TRIALS --json --study s.db --resume
    equals_whole s.db out
}

@test "Ctrl-C: exit 130, the front so far, how to go on; --resume comes to the same end" {
    interrupted SIGINT
}

@test "SIGTERM is the same" {
    interrupted SIGTERM
}

@test "a larger budget continues, and comes to the same end" {
    ends 0 search "$REPLAY" --trials 1000 --study s.db --json
    ends 0 search "$REPLAY" --trials 1001 --study s.db --json --resume
    ends 0 search "$REPLAY" --trials $TRIALS --study s.db --json --resume
    equals_whole s.db out
    ends 0 search "$REPLAY" --trials $TRIALS --study s.db --json --resume # nothing left to do
    equals_whole s.db out
    ends 0 search "$REPLAY" --trials 10 --study s.db --json --resume
    is out "d['finished'] == $TRIALS"
}

@test "another job does not continue a study" {
    job
    ends 0 search job.yaml
    trials job.db >before
    refuses 2 "job.db: *seed: this study was made with 0, not 2*--study" search job.yaml --resume --seed 2
    refuses 2 "job.db: *strategy: this study was made with \"auto\", not \"random\"" search job.yaml --resume \
        --strategy random
    refuses 2 "job.db: *device: this study was made with" search job.yaml --resume --device null
    job "objectives: [accuracy, params]"
    refuses 2 "job.db: *objectives: this study was made with" search job.yaml --resume
    job "constraints: [macs <= 50 M]"
    refuses 2 "job.db: *constraints: this study was made with" search job.yaml --resume
    job "accuracy: table:$TABLE#acc_top1_pct_run1"
    refuses 2 "job.db: *accuracy: this study was made with" search job.yaml --resume
    # What an identity leaves out, as it is the default, is a difference as well.
    ends 0 search --space nas_bench_macro --device null --objectives latency,macs --dtype bf16 --trials 2 --study bf16.db
    refuses 2 'bf16.db: *dtype: this study was made with "bf16", not the default' search --space nas_bench_macro --device null \
        --objectives latency,macs --trials 4 --study bf16.db --resume
    job "space: accel_nasbench" "objectives: [macs, params]" accuracy device
    refuses 2 "job.db: this study was made with the space nas_bench_macro, not accel_nasbench" search job.yaml --resume
    trials job.db | cmp - before
}

@test "two searches on one study at once: the second is refused" {
    local first
    job "device: null" "measure: {timeout: 60, seconds: 0.02}"
    # The first one waits for a candidate that hangs.
    HWNAS_RUNNER_FAULT=hang "$HWNAS" search job.yaml >first.out 2>first.err 3>&- &
    first=$!
    until [ -e job.db ] && [ "$("$HWNAS" study show job.db --json 2>/dev/null | json /dev/stdin "d['trials']" 2>/dev/null)" = 1 ]; do
        kill -0 $first || { cat first.err; false; }
        sleep 0.02
    done
    refuses 1 "job.db: the study is in use by process $first" search job.yaml --resume
    refuses 1 "job.db: the study is in use by process $first" search job.yaml --overwrite
    refuses 2 "job.db: the study exists already" search job.yaml
    ends 0 study show job.db
    says out "0 finished"
    kill -INT $first
    wait $first || [ $? -eq 130 ]
    says first.err "interrupted after 0 trials"
    ends 0 search job.yaml --resume --json
    is out "d['finished'] == 30"
}

@test "a study is not continued on another machine: the latencies would be of two" {
    job "device: 'null'" "objectives: [accuracy, latency.p50]" "measure: {seconds: 0.01}" \
        "budget: {trials: 5}"
    ends 0 search job.yaml
    /usr/bin/python3 - <<'END'
import json, sqlite3
db = sqlite3.connect("job.db")
(text,) = db.execute("SELECT value FROM fact WHERE key = 'devices'").fetchone()
devices = json.loads(text)
devices["null"].update(name="Some Other Processor", library="another library 9")
db.execute("UPDATE fact SET value = ? WHERE key = 'devices'", (json.dumps(devices),))
db.commit()
END
    trials job.db >before
    refuses 2 "job.db: *measured on another 'null': Some Other Processor, another library 9, *; here it is *--study OTHER.db --warm-start" \
        search job.yaml --resume --trials 8
    trials job.db | cmp - before
}
