# Studies in PostgreSQL. The server is the tests' own, on a socket in a folder of theirs.
load helpers

setup_file() {
    local code=0
    export SERVER_FOLDER ADDRESS WITHOUT=
    SERVER_FOLDER=$(mktemp -d /tmp/hwnas-bats-postgresql.XXXXXX) # a socket's name is short
    ADDRESS=$("$HWNAS_SRC/tests/postgresql.sh" start "$SERVER_FOLDER") || code=$?
    [ $code = 0 ] || WITHOUT="PostgreSQL's server is not installed"
    [ $code = 0 ] || [ $code = 77 ]
    ! "$HWNAS" study show "postgresql:///x?host=/nowhere" 2>&1 | grep -q 'built without' ||
        WITHOUT='hwnas was built without PostgreSQL'
}

teardown_file() {
    "$HWNAS_SRC/tests/postgresql.sh" stop "$SERVER_FOLDER" || true
    rmdir "$SERVER_FOLDER" 2>/dev/null || true
}

setup() {
    cd "$BATS_TEST_TMPDIR" || return
    TABLE=$HWNAS_SRC/tests/data/nas_bench_macro.csv
    [ -z "$WITHOUT" ] || skip "$WITHOUT"
    STUDY="$ADDRESS&study=case-$BATS_TEST_NUMBER"
}

sql() { psql -X -q -A -t -h "$SERVER_FOLDER" -U hwnas -d postgres -c "$1"; }

# becomes VALUE SQL [PROCESS]: waits until the server answers that, as long as the process lives.
becomes() {
    local n
    for ((n = 0; n < 600; n++)); do
        [ "$(sql "$2" 2>/dev/null)" != "$1" ] || return 0
        [ -z "${3:-}" ] || kill -0 "$3" || { cat err err.* 2>/dev/null; return 1; }
        sleep 0.1
    done
    echo "not $1, but $(sql "$2" 2>&1): $2"
    return 1
}

# same_trials A B: two studies have the same trials, but for the time that they took.
same_trials() {
    "$HWNAS" study trials "$1" --json >a.json
    "$HWNAS" study trials "$2" --json >b.json
    /usr/bin/python3 - <<'END'
import json
def trials(name):
    rows = json.load(open(name))["trials"]
    for row in rows:
        row.pop("seconds", None)
    return rows
a, b = trials("a.json"), trials("b.json")
assert len(a) == len(b) > 0, (len(a), len(b))
for x, y in zip(a, b):
    assert x == y, (x, y)
END
}

@test "a search finds the same in PostgreSQL as in a file, and all that looks at a study does" {
    local strategy
    for strategy in nsga2 bayesian; do
        job "strategy: $strategy" "budget: {trials: 40}"
        ends 0 search job.yaml --study file.db --overwrite
        ends 0 search job.yaml --study "$STUDY" --overwrite
        same_trials file.db "$STUDY"
    done
    ends 0 study show "$STUDY" --json
    /usr/bin/python3 -c 'import json; s = json.load(open("out")); assert s["trials"] == 40 and s["front"]'
    ends 0 explain "$STUDY"
    ends 0 report "$STUDY" --out page.html
    ends 0 report "$STUDY"
    [ -s "case-$BATS_TEST_NUMBER.html" ]
    ends 0 export "$STUDY" --format yaml --out best.yaml
    refuses 2 'exists already' search job.yaml --study "$STUDY"
    ends 0 search job.yaml --study warm.db --warm-start "$STUDY" --trials 20
}

# shown N: waits until the page that is served at $(cat address) shows so many trials.
shown() {
    /usr/bin/python3 - "$(head -n 1 address)data" "$1" <<'END'
import json, sys, time, urllib.request
for _ in range(600):
    with urllib.request.urlopen(sys.argv[1], timeout=60) as answer:
        if answer.status == 200 and json.load(answer)["study"]["finished"] >= int(sys.argv[2]):
            sys.exit(0)
    time.sleep(0.1)
sys.exit("the page does not show them")
END
}

@test "the page of a study in PostgreSQL follows its search, and ends with it" {
    HWNAS_LIBRARY=${HWNAS%/*}/libhwnas.so.0 PYTHONPATH=$HWNAS_SRC/python \
        /usr/bin/python3 "$HWNAS_SRC/tests/cli/slow_study.py" "$STUDY" "$TABLE" 3>&- &
    local search=$! watch
    until "$HWNAS" study show "$STUDY" --json >shown 2>shown.err && grep -q '"finished": 5' shown; do sleep 0.1; done
    "$HWNAS" watch "$STUDY" >address 2>watch.err 3>&- &
    watch=$!
    until [ -s address ] || ! kill -0 $watch 2>/dev/null; do sleep 0.1; done
    ! grep -q "built without libmicrohttpd" watch.err || { kill $search; skip "built without libmicrohttpd"; }
    shown 5
    touch go
    shown 10
    while kill -0 $search 2>/dev/null; do touch go; sleep 0.2; done
    timeout 60 tail --pid=$watch -f /dev/null
    wait $watch
    says watch.err "the search has ended"
    refuses 2 "no search works on this study*--stay" watch "$STUDY"
}

@test "a search in PostgreSQL that is killed goes on as if nothing had happened" {
    local n moments
    job "strategy: nsga2" "budget: {trials: 12}"
    MORTAL_COUNT=count "${HWNAS%/*}/tests/cli/mortal" search job.yaml --study "$STUDY-whole" >/dev/null
    moments=$(<count)
    [ "$moments" -gt 24 ]
    for n in 4 7 $((moments / 2)) $((moments / 2 + 1)) $((moments - 2)); do
        MORTAL_DIES=$n "${HWNAS%/*}/tests/cli/mortal" search job.yaml --study "$STUDY-$n" >out 2>&1 3>&- && return 1
        ends 0 search job.yaml --study "$STUDY-$n" --resume
        same_trials "$STUDY-whole" "$STUDY-$n"
    done
}

@test "measured latencies, and what is learned of them, are kept in PostgreSQL as well" {
    job "device: 'null'" "objectives: [accuracy, latency.p50]" "measure: {seconds: 0.01}" "budget: {trials: 4}"
    ends 0 search job.yaml --study "$STUDY"
    ends 0 search job.yaml --study "$STUDY" --trials 6 --resume
    [ "$(sql "SELECT count(*) FROM \"case-$BATS_TEST_NUMBER\".trial")" = 6 ]
    [ "$(sql "SELECT count(*) > 0 FROM pg_tables WHERE schemaname = 'case-$BATS_TEST_NUMBER' AND tablename = 'observation'")" = t ]
}

@test "a server that is away is not a study that is not there" {
    local command away="postgresql:///x?host=/nowhere"
    job "budget: {trials: 3}"
    for command in "search job.yaml --dry-run --study" "search job.yaml --resume --study" "search job.yaml --study" \
        "study merge s.db --out"; do
        [ -e s.db ] || ends 0 search job.yaml --study s.db
        # shellcheck disable=SC2086
        refuses 1 "cannot connect to PostgreSQL" $command "$away"
    done
}

@test "no password is printed or stored" {
    local command secret=hunter2 address=postgresql://me:hunter2@localhost/db
    job "budget: {trials: 3}"
    for command in "search job.yaml --study" "search job.yaml --dry-run --study" "search job.yaml --json --study" \
        "search job.yaml --warm-start" "study show" "study show --constraints accuracy>=90" "study trials" "study export --format jsonl" "explain" "report" "export --format yaml --out best.yaml"; do
        # shellcheck disable=SC2086
        refuses 2 "a password stands in the address of the study" $command "$address"
        not grep -q $secret out err
    done
    PGPASSWORD=$secret ends 0 search job.yaml --study "$STUDY" --json
    not grep -q $secret out err
    pg_dump -h "$SERVER_FOLDER" -U hwnas -n "case-$BATS_TEST_NUMBER" postgres >dump
    grep -q nas_bench_macro dump
    not grep -q $secret dump
}

@test "who wants to change a study that another one changes is told who that is" {
    # A search whose third training never ends.
    printf '%s\n' '#!/bin/sh' 'echo >>calls' '[ "$(wc -l <calls)" -lt 3 ] || exec sleep 10000' 'echo 70' >train
    chmod +x train
    job "accuracy: command:./train" "strategy: random" "budget: {trials: 20}"
    "$HWNAS" search job.yaml --study "$STUDY" >/dev/null 2>search.err 3>&- &
    local searcher=$!
    until "$HWNAS" study show "$STUDY" >out 2>err; do
        kill -0 $searcher || { cat search.err; false; }
        sleep 0.1
    done
    refuses 1 "in use by hwnas on *, process $searcher" search job.yaml --study "$STUDY" --resume
    # Nor may it be disturbed, as by measurements that are beside the study.
    refuses 1 "a search works on this study*leave --measure out" explain "$STUDY" --measure
    ends 0 explain "$STUDY"
    ends 0 study list "$ADDRESS"
    says out " running"
    kill -9 $searcher
    wait $searcher || true
    becomes 0 "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"
    ends 0 explain "$STUDY" --measure
    ends 0 study list "$ADDRESS"
    says out " not ended"
}

@test "one worker makes the trials of a search" {
    job "strategy: nsga2" "budget: {trials: 60}" "seed: 5"
    ends 0 search job.yaml --study file.db
    ends 0 search job.yaml --study "$STUDY" --workers 1
    same_trials file.db "$STUDY"
}

# is_whole SCHEMA N: trials 0 to N - 1, each asked once, finished once, of a network of its own, and nobody's any more.
is_whole() {
    [ "$(sql "SELECT count(*), count(DISTINCT code), min(number), max(number), count(finish_order), max(finish_order)
              FROM \"$1\".trial")" = "$2|$2|0|$(($2 - 1))|$2|$(($2 - 1))" ]
    [ "$(sql "SELECT kind, count(*), count(DISTINCT trial) FROM \"$1\".event GROUP BY kind ORDER BY kind" |
        tr '\n' ' ')" = "asked|$2|$2 finished|$2|$2 " ]
    [ "$(sql "SELECT count(*) FROM \"$1\".lease")" = 0 ]
}

@test "workers that are killed, cut off, and a server that restarts lose no trial and double none" {
    local strategy strategies=random n=1000 workers=4
    [ -z "${HWNAS_LONG:-}" ] || strategies='random nsga2' n=5000 workers=8
    for strategy in $strategies; do
        /usr/bin/python3 "$HWNAS_SRC/tests/cli/worker_storm.py" "$HWNAS" "$HWNAS_SRC" "$STUDY-$strategy" $workers $n $strategy \
            "$SERVER_FOLDER" >&3
    done
}

@test "1, 2 and 8 workers find the same front where proposals do not depend on results" {
    local n front
    job "strategy: random" "budget: {trials: 200}"
    ends 0 search job.yaml --study alone.db --json
    front="[(t['arch'], t['objectives']) for t in d['front']]"
    json out "$front" >want
    for n in 1 2 8; do
        ends 0 search job.yaml --study "$STUDY-$n" --workers $n --json
        json out "$front" >got
        cmp want got
        is_whole "case-$BATS_TEST_NUMBER-$n" 200
    done
}

@test "workers refuse what they cannot share" {
    job "budget: {trials: 5}"
    refuses 2 '--workers goes without --resume' search job.yaml --study "$STUDY" --workers 1 --resume
    refuses 2 'there is no such study' worker "$STUDY"
    job "device: 'null'" "objectives: [accuracy, latency.p50]" "measure: {seconds: 0.01}" "budget: {trials: 4}"
    refuses 1 "disturb each other's measurements" search job.yaml --study "$STUDY" --workers 2
    refuses 1 "workers share a file on one machine*search without workers" search job.yaml --study file.db --workers 1
    [ ! -e file.db ]
    # What cannot be started here is no server that may be back.
    HWNAS_RUNNER=/nowhere refuses 1 "cannot start the runner '/nowhere'" search job.yaml --study "$STUDY" --workers 1
    not grep -q "trying again" err
    not "$HWNAS" study show "$STUDY"
    ends 0 search job.yaml --study "$STUDY" --workers 1
}

# outcomes STUDY: of each trial its network, how it ended, and its values; a study in PostgreSQL or a file.
outcomes() {
    "$HWNAS" study trials "$1" --json >trials.json
    json trials.json '[(t["trial"], t["arch"], t["status"], t["objectives"]) for t in d["trials"]]' | sed 's/), (/)\n(/g'
}

# ended PROCESS: it ends, and well.
ended() { wait "$1" || { cat err.*; return 1; }; }

@test "workers on different devices serve one study, each for its own" {
    export STILL_BY_NETWORK=1
    job "devices: [{name: left, device: 'null'}, {name: right, device: 'null', threads: 2}]" device \
        "objectives: [accuracy, latency.p50 on left, latency.p50 on right]" "constraints: latency.p50 on left <= 1 ms" \
        "strategy: random" "measure: {seconds: 0.01, estimate: off}" "budget: {trials: 16}"
    undisturbed ends 0 search job.yaml --study "$STUDY-alone" --workers 1
    outcomes "$STUDY-alone" >want
    undisturbed "$HWNAS" search job.yaml --study "$STUDY" --workers 1 --only left >out.left 2>err.left 3>&- &
    local left=$!
    becomes 4 "SELECT count(*) FROM \"case-$BATS_TEST_NUMBER\".lease WHERE tasks = 2" $left
    [ "$(sql "SELECT count(*) FROM \"case-$BATS_TEST_NUMBER\".trial WHERE status = 'ok' AND violation = 0")" = 0 ]
    [ "$(sql "SELECT count(*) - count(finish_order) FROM \"case-$BATS_TEST_NUMBER\".trial")" = 4 ] # no more until one is done
    undisturbed ends 0 worker "$STUDY" --only right --json
    ended $left
    is out "d['finished'] == 16"
    is_whole "case-$BATS_TEST_NUMBER" 16
    outcomes "$STUDY" >got
    cmp want got
    grep -q "latency.p50 on right" got
    # What misses the limit on the first device is not measured on the other one.
    is trials.json "any('latency.p50 on right' not in t['objectives'] for t in d['trials'] if t['status'] == 'ok')"
    is trials.json "all(('latency.p50 on right' in t['objectives']) == (t['objectives']['latency.p50 on left']['high'] <= 1)
        for t in d['trials'] if t['status'] == 'ok')"
    ends 0 study show "$STUDY" --environment --json
    is out "sorted(d['devices']) == ['left', 'right']"
}

@test "a worker on a machine without a device of the study is refused, and may do the rest" {
    export HWNAS_ORT_LIBRARY=/nowhere HWNAS_RUNNER=${HWNAS%/*}/tests/cli/still_runner
    job "devices: [{name: left, device: 'null'}, {name: gpu, device: ort}]" device "strategy: random" \
        "objectives: [accuracy, latency.p50 on left, latency.p50 on gpu]" "measure: {seconds: 0.01}" "budget: {trials: 2}"
    refuses 1 "there is no ONNX Runtime: /nowhere" search job.yaml --study "$STUDY" --workers 1
    not "$HWNAS" study show "$STUDY"
    "$HWNAS" search job.yaml --study "$STUDY" --workers 1 --only left >out 2>err 3>&- &
    local left=$!
    becomes 2 "SELECT count(*) FROM \"case-$BATS_TEST_NUMBER\".lease WHERE tasks = 2" $left
    kill -INT $left
    wait $left || true
    ends 0 search job.yaml --study "$STUDY-plan" --workers 1 --only left --dry-run # the other device is not opened
    says out "does only    left; other workers do the rest of each trial*this part    about * s a trial*up to * trials; all by this worker: *"
    not grep -q -e '^a trial' -e 'near ties' out
    ends 0 search job.yaml --study "$STUDY-plan" --workers 1 --only left --dry-run --json
    is out "d['only'] == 'left' and d['trials'] == 2 and d['seconds_a_trial'] > 0"
    refuses 1 "there is no ONNX Runtime: /nowhere" search job.yaml --study "$STUDY-plan" --dry-run
    [ "$(sql "SELECT count(*) FROM \"case-$BATS_TEST_NUMBER\".lease WHERE tasks = 2 AND begun LIKE '%latency.p50 on left%'")" = 2 ]
    refuses 1 "there is no ONNX Runtime: /nowhere" worker "$STUDY"
    refuses 2 "'right' is no task of this job's trials*measure, train, left, gpu" worker "$STUDY" --only right
    refuses 2 "there is nothing to do of this job*its trials need left, gpu" worker "$STUDY" --only train
    refuses 2 "only goes with --workers" search job.yaml --study "$STUDY" --only left
}

@test "one machine measures and another one trains" {
    export STILL_BY_NETWORK=1
    printf '%s\n' '#!/bin/sh' 'echo "$WHO $HWNAS_CODE" >>calls' "grep \"^\$HWNAS_CODE,\" '$TABLE' | cut -d, -f9" >train
    chmod +x train
    job "accuracy: command:./train" "device: 'null'" "objectives: [accuracy, latency.p50]" "constraints: latency.p50 <= 1 ms" \
        "strategy: random" "measure: {seconds: 0.01, estimate: off}" "budget: {trials: 16}"
    ends 0 search job.yaml --study "$STUDY-plan" --workers 1 --only measure --dry-run
    says out "does only    *; other workers*this part    about * s a trial*up to * trials; all by this worker: *"
    not grep -q '^trainings' out
    HWNAS_RUNNER=/nowhere ends 0 search job.yaml --study "$STUDY-plan" --workers 1 --only train --dry-run
    says out "does only    train; *trainings    up to 16 more"
    not grep -q '^this part' out
    WHO=alone undisturbed ends 0 search job.yaml --study "$STUDY-alone" --workers 1
    rm calls train.* *.csv 2>/dev/null || true
    outcomes "$STUDY-alone" >want
    WHO=measurer undisturbed "$HWNAS" search job.yaml --study "$STUDY" --workers 1 --only measure >out.a 2>err.a 3>&- &
    local measurer=$!
    until "$HWNAS" study show "$STUDY" >shown 2>&1; do kill -0 $measurer; sleep 0.1; done
    WHO=trainer HWNAS_RUNNER=/nowhere ends 0 worker "$STUDY" --only train --workers 2 --json # it has no runner
    ended $measurer
    is out "d['finished'] == 16"
    is_whole "case-$BATS_TEST_NUMBER" 16
    outcomes "$STUDY" >got
    cmp want got
    grep -q trainer calls
    not grep -qv trainer calls
    is trials.json "all(('accuracy' in t['objectives']) == (t['objectives']['latency.p50']['high'] <= 1)
        for t in d['trials'] if t['status'] == 'ok')"
}

@test "a trainer that always fails ends, as one process does" {
    export STILL_BY_NETWORK=1
    printf '%s\n' '#!/bin/sh' 'exit 1' >train
    chmod +x train
    job "accuracy: command:./train" "device: 'null'" "objectives: [accuracy, latency.p50]" \
        "strategy: random" "measure: {seconds: 0.01, estimate: off}" "budget: {trials: 40}"
    HWNAS_RUNNER=${HWNAS%/*}/tests/cli/still_runner "$HWNAS" search job.yaml --study "$STUDY" --workers 1 --only measure >out.a 2>err.a 3>&- &
    local measurer=$!
    until "$HWNAS" study show "$STUDY" >shown 2>&1; do kill -0 $measurer; sleep 0.1; done
    HWNAS_RUNNER=/nowhere ends 1 worker "$STUDY" --only train
    says err "each of the first * trials failed"
    kill $measurer
    wait $measurer || true
    [ "$(sql "SELECT count(*) FROM \"case-$BATS_TEST_NUMBER\".trial WHERE status <> 'ok' AND finish_order IS NOT NULL")" -lt 10 ]
    [ "$(sql "SELECT count(*) FROM \"case-$BATS_TEST_NUMBER\".trial WHERE status <> 'ok' AND detail IS NOT NULL")" = 0 ]
}

@test "what a worker has measured is kept when it dies in the training" {
    export STILL_BY_NETWORK=1
    printf '%s\n' '#!/bin/sh' 'echo "$PPID $HWNAS_CODE" >>calls' '[ -e go ] || exec sleep 1000' \
        "grep \"^\$HWNAS_CODE,\" '$TABLE' | cut -d, -f9" >train
    chmod +x train
    job "accuracy: command:./train" "device: 'null'" "objectives: [accuracy, latency.p50]" \
        "strategy: random" "measure: {seconds: 0.01, estimate: off}" "budget: {trials: 2}"
    HWNAS_RUNNER=${HWNAS%/*}/tests/cli/still_runner "$HWNAS" search job.yaml --study "$STUDY" --workers 1 >out.a 2>err.a 3>&- &
    local whole=$!
    until [ -s calls ]; do kill -0 $whole; sleep 0.1; done
    kill -9 $whole
    wait $whole || true
    [ "$(sql "SELECT count(*) FROM \"case-$BATS_TEST_NUMBER\".lease WHERE begun LIKE '%latency.p50%'")" = 1 ]
    sql "UPDATE \"case-$BATS_TEST_NUMBER\".lease SET expires = 0"
    touch go
    # Another one that cannot measure trains it.
    HWNAS_RUNNER=/nowhere "$HWNAS" worker "$STUDY" --only train >out.b 2>err.b 3>&- &
    local trainer=$!
    becomes 1 "SELECT count(*) FROM \"case-$BATS_TEST_NUMBER\".trial WHERE status = 'ok'" $trainer
    undisturbed ends 0 worker "$STUDY"
    ended $trainer
    is_whole "case-$BATS_TEST_NUMBER" 2
}

# left_and_right: the job by one worker for each of its two devices, to the end; `out` is what the second says.
left_and_right() {
    local left
    undisturbed "$HWNAS" search job.yaml --study "$STUDY" --workers 1 --only left >out.left 2>err.left 3>&- &
    left=$!
    until "$HWNAS" study show "$STUDY" >shown 2>&1; do kill -0 $left; sleep 0.1; done
    undisturbed ends 0 worker "$STUDY" --only right --json
    ended $left
}

@test "workers that do different tasks end together when the time is over" {
    export STILL_BY_NETWORK=1
    job "devices: [{name: left, device: 'null'}, {name: right, device: 'null', threads: 2}]" device \
        "objectives: [accuracy, latency.p50 on left, latency.p50 on right]" "strategy: random" \
        "measure: {seconds: 0.01, estimate: off}" "budget: {minutes: 0.12}"
    left_and_right
    is out "d['ended'] == 'the time is over' and d['finished'] == d['trials'] > 0"
    [ "$(sql "SELECT count(*) FROM \"case-$BATS_TEST_NUMBER\".fact WHERE key = 'exhausted' AND value LIKE '%the time is over%'")" = 1 ]
}

@test "a strategy that has no more networks is told to those who do not propose" {
    export STILL_BY_NETWORK=1
    job "space: mnist_mlp" accuracy "devices: [{name: left, device: 'null'}, {name: right, device: 'null', threads: 2}]" device \
        "objectives: [latency.p50 on left, latency.p50 on right]" "strategy: random" \
        "measure: {seconds: 0.01, estimate: off}" "budget: {trials: 5}"
    left_and_right
    is out "d['finished'] == 1 and 'has been tried (1)' in d['ended']"
}

@test "a worker whose counterpart never comes says whom it lacks, and ends" {
    job "devices: [{name: left, device: 'null'}, {name: middle, device: 'null', threads: 2}, {name: right, device: 'null', threads: 3}]" \
        device "objectives: [accuracy, latency.p50 on left, latency.p50 on middle, latency.p50 on right]" "strategy: random" \
        "measure: {seconds: 0.01, estimate: off}" "budget: {trials: 8}"
    HWNAS_WORKER_PATIENCE=2 undisturbed ends 1 search job.yaml --study "$STUDY" --workers 1 --only left
    says err "no worker that does middle is here; waiting for one"
    says err "no worker that does middle was here for 2 s*start one with --only"
    # Nothing is lost, and nobody's.
    [ "$(sql "SELECT count(*) FROM \"case-$BATS_TEST_NUMBER\".lease WHERE tasks = 2 AND worker = '' AND begun IS NOT NULL")" = 4 ]
    HWNAS_WORKER_PATIENCE=2 undisturbed ends 1 worker "$STUDY" --only middle
    says err "no worker that does right was here"
    HWNAS_WORKER_PATIENCE=2 undisturbed ends 1 worker "$STUDY" --only right
    says err "no worker that does left was here"
    [ "$(sql "SELECT count(*) FROM \"case-$BATS_TEST_NUMBER\".trial WHERE status = 'ok'")" = 4 ]
}

@test "only who proposes networks, and so judges them, needs the weights of a supernet" {
    cat >recipe.yaml <<END
data: {train: $HWNAS_SRC/tests/data/fashion_images.gz, train-labels: $HWNAS_SRC/tests/data/fashion_labels.gz, validation: 0.5}
epochs: 1
END
    job "accuracy: supernet:recipe.yaml" "devices: [{name: left, device: 'null'}, {name: right, device: 'null', threads: 2}]" device \
        "objectives: [accuracy, latency.p50 on left, latency.p50 on right]" "strategy: random" "measure: {seconds: 0.01, estimate: off}" "budget: {trials: 2}"
    export HWNAS_WORKER_PATIENCE=1
    undisturbed ends 1 search job.yaml --study "$STUDY" --workers 1 --only right
    sql "INSERT INTO \"case-$BATS_TEST_NUMBER\".fact (key, value) VALUES ('weights', 'those of another machine')"
    undisturbed ends 1 worker "$STUDY" --only right
    says err "no worker that does left was here"
    undisturbed refuses 2 "the weights that the accuracies of this study are of are not there: recipe.nas_bench_macro.supernet.npz" worker "$STUDY" --only left
}

@test "a warm start that was interrupted is not gone on with by a worker that does a part" {
    job "budget: {trials: 6}" "device: 'null'" "objectives: [accuracy, latency.p50]" "measure: {seconds: 0.01}"
    undisturbed ends 0 search job.yaml --study old.db
    printf '%s\n' '#!/bin/sh' "grep \"^\$HWNAS_CODE,\" '$TABLE' | cut -d, -f9" >train
    chmod +x train
    job "accuracy: command:./train" "device: 'null'" "objectives: [accuracy, latency.p50]" "strategy: random" \
        "measure: {seconds: 0.01, estimate: off}" "budget: {trials: 2}" "warm-start: old.db"
    refuses 1 "is begun by a worker without --only" search job.yaml --study "$STUDY" --workers 1 --only measure
    not "$HWNAS" study show "$STUDY"
    undisturbed ends 0 search job.yaml --study "$STUDY" --workers 1
    sql "UPDATE \"case-$BATS_TEST_NUMBER\".fact SET value = regexp_replace(value, '(\"done\": *)true', '\1false') WHERE key = 'warm_start'"
    undisturbed refuses 1 "is begun by a worker without --only" worker "$STUDY" --only measure
}

@test "failures between trials that others go on with do not end a search" {
    export STILL_BY_NETWORK=1
    awk -F, -v OFS=, 'NR % 3 == 1' "$TABLE" >some.csv
    job "accuracy: table:some.csv#acc_top1_pct_mean" "devices: [{name: left, device: 'null'}, {name: right, device: 'null', threads: 2}]" device \
        "objectives: [accuracy, latency.p50 on left, latency.p50 on right]" "strategy: random" "seed: 1" \
        "measure: {seconds: 0.01, estimate: off}" "budget: {trials: 40}"
    undisturbed "$HWNAS" search job.yaml --study "$STUDY" --workers 1 --only left >out.left 2>err.left 3>&- &
    local left=$!
    becomes 4 "SELECT count(*) FROM \"case-$BATS_TEST_NUMBER\".lease WHERE tasks = 2" $left
    undisturbed ends 0 worker "$STUDY" --only right --json
    ended $left
    is_whole "case-$BATS_TEST_NUMBER" 40
}

@test "workers for different devices that are killed and cut off lose no trial and double none" {
    local n=40 workers=4
    [ -z "${HWNAS_LONG:-}" ] || n=400 workers=8
    STILL_BY_NETWORK=1 undisturbed /usr/bin/python3 "$HWNAS_SRC/tests/cli/worker_storm.py" "$HWNAS" "$HWNAS_SRC" "$STUDY" \
        $workers $n random "$SERVER_FOLDER" left right >&3
}

@test "a worker needs nothing but the address, and one that is cut off and comes back does no harm" {
    local n=1500 code=0
    job "strategy: nsga2" "budget: {trials: $n}"
    HWNAS_NOT_PAUSED=yes "$HWNAS" search job.yaml --study "$STUDY" --workers 1 >first 2>&1 3>&- &
    local first=$!
    becomes t "SELECT count(*) > 100 FROM \"case-$BATS_TEST_NUMBER\".trial"
    kill -STOP $first # as a partition: its connection is there, and nothing comes of it
    mkdir elsewhere
    cd elsewhere || return
    # If it has a transaction open, the server ends that after a minute; here at once, but in `make check-long`.
    sleep 0.2
    [ -n "${HWNAS_LONG:-}" ] || sql "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
    sql "UPDATE \"case-$BATS_TEST_NUMBER\".lease SET expires = 0"
    timeout 600 "$HWNAS" worker "$STUDY" --json >out 2>err || code=$?
    kill -CONT $first
    [ $code = 0 ]
    is out "d['finished'] == $n"
    wait $first
    is_whole "case-$BATS_TEST_NUMBER" $n
}

@test "a worker that comes back notes once that another version began the study" {
    local mine backends
    printf '%s\n' '#!/bin/sh' 'echo >>calls' 'until [ -e go ]; do sleep 0.05; done' 'echo 70' >train
    chmod +x train
    job "accuracy: command:./train" "strategy: random" "budget: {trials: 3}"
    touch go
    ends 0 search job.yaml --study "$STUDY" --workers 1 --trials 1
    rm go calls
    sql "UPDATE \"case-$BATS_TEST_NUMBER\".fact SET value = '0.0.7' WHERE key = 'version'"
    "$HWNAS" search job.yaml --study "$STUDY" --workers 1 -v >out 2>err 3>&- &
    mine=$!
    until [ -s calls ]; do kill -0 $mine; sleep 0.1; done
    backends=$(sql "SELECT string_agg(pid::text, ',') FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
    sql "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid IN ($backends)"
    becomes 0 "SELECT count(*) FROM pg_stat_activity WHERE pid IN ($backends)" $mine
    touch go
    wait $mine
    says err "trying again"
    [ "$(grep -c 'was begun by hwnas 0.0.7' err)" = 1 ]
    is_whole "case-$BATS_TEST_NUMBER" 3
}

@test "studies are listed, copied between the stores, and made small" {
    job "budget: {trials: 40}"
    ends 0 search job.yaml --study "$STUDY"
    ends 0 study list "$ADDRESS" --json
    is out "[s for s in d['studies'] if s['study'].endswith('study=case-$BATS_TEST_NUMBER')][0]['finished'] == 40"
    ends 0 study vacuum "$STUDY" --json
    is out "0 < d['bytes'] <= d['bytes_before']"
    ends 0 study merge "$STUDY" --out file.db
    same_trials "$STUDY" file.db
    ends 0 study merge file.db --out "$STUDY-back"
    same_trials file.db "$STUDY-back"
    ends 0 search job.yaml --study "$STUDY-back" --resume --trials 45
    ends 0 study show "$STUDY" --environment --json
    is out "d['machines'][0]['kernel'] == '$(uname -r)' and d['space']['name'] == 'nas_bench_macro'"
}
