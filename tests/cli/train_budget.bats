# A search with a budget of trainings: `accuracy: command:PROGRAM` and `train-budget: N`. The "training" looks
# the published result up.
load helpers

# trainer LINE...: writes ./train, which knows the results of NAS-Bench-Macro and counts its calls.
trainer() {
    printf '%s\n' '#!/bin/sh' 'echo "$HWNAS_CODE" >>calls' "$@" \
        "grep \"^\$HWNAS_CODE,\" '$TABLE' | cut -d, -f9" >train
    chmod +x train
}

# budget N LINE...: writes job.yaml.
budget() {
    local n=$1
    shift
    job "accuracy: command:./train" "train-budget: $n" "$@"
}

# whole_search: the files of a search of 60 trials, 24 of them trained, that nothing ended, in this folder. With every few
# trainings a model is fitted anew, which takes seconds; so it is made once for all tests.
whole_search() {
    local made=$BATS_FILE_TMPDIR/whole
    if [ ! -s "$made/out" ]; then
        trainer
        budget 24 'budget: {trials: 60}'
        ends 0 search job.yaml --json
        cp -r . "$made"
    else
        cp -r "$made/." .
    fi
}

@test "no more than the budget is trained, and what was is said so" {
    whole_search
    is out "d['finished'] == 60 and d['failed'] == 0"
    [ "$(wc -l <calls)" -le 24 ]
    [ "$(wc -l <calls)" -gt 12 ]
    [ "$(sort calls | uniq -d)" = "" ]
    is out "{'trained', 'predicted'} >= {t['objectives']['accuracy']['source'] for t in d['front']}"
    is out "any(t['objectives']['accuracy']['source'] == 'predicted' for t in d['front'])"
    # A trained value is the published one; others are near it.
    cp out result
    /usr/bin/python3 - "$TABLE" <<'END'
import csv, json, sys
table = {row["arch"]: float(row["acc_top1_pct_mean"]) for row in csv.DictReader(open(sys.argv[1]))}
for t in json.load(open("result"))["front"]:
    a = t["objectives"]["accuracy"]
    if a["source"] == "trained":
        assert a["value"] == table[t["arch"]], t
END
}

@test "results that are there count, and a larger budget goes on" {
    whole_search
    local before
    before=$(wc -l <calls)
    ends 0 search job.yaml --overwrite --trials 30
    [ "$(wc -l <calls)" = "$before" ]
    ends 0 search job.yaml --overwrite --trials 30 --train-budget 30
    [ "$(wc -l <calls)" -gt "$before" ]
    [ "$(wc -l <calls)" -le 30 ]
}

@test "a search that died goes on as it would have" {
    # A training waits while there are as many results as the file `hold` says.
    whole_search
    trainer 'until [ ! -e hold ] || [ "$(cat train.nas_bench_macro.csv 2>/dev/null | wc -l)" -lt "$(cat hold)" ]; do sleep 0.02; done'
    json out "[t['arch'] for t in d['front']]" >want
    cut -d, -f1-3 train.nas_bench_macro.csv >rows
    mkdir again
    cp job.yaml train again
    cd again
    echo 15 >hold
    "$HWNAS" search job.yaml --quiet >out 2>err &
    local hwnas=$!
    while [ "$(cat train.nas_bench_macro.csv 2>/dev/null | wc -l)" -lt 15 ]; do kill -0 $hwnas || { cat err; false; }; sleep 0.02; done
    kill -9 "$hwnas"
    wait "$hwnas" || true
    rm hold
    ends 0 search job.yaml --resume --json
    json out "[t['arch'] for t in d['front']]" >got
    cmp ../want got
    cut -d, -f1-3 train.nas_bench_macro.csv | cmp ../rows -
}

@test "what of the front was still to be trained when a search was ended is told, and trained by the next session" {
    trainer '[ ! -e signal ] || [ "$(sort -u calls | wc -l)" -lt 20 ] || { kill "-$(cat signal)" "$(cat pid)"; sleep 60; }'
    budget 20 'budget: {trials: 60}' 'strategy: random' 'seed: 1'
    # In the last training, which is one of the front, twice.
    local signal got want=137
    for signal in KILL INT; do
        echo $signal >signal
        got=0
        sh -c 'echo $$ >pid; exec "$@"' - "$HWNAS" search job.yaml $([ ! -e job.db ] || echo --resume) --quiet >out 2>err || got=$?
        [ "$got" = "$want" ]
        want=130
        ends 0 study show job.db
        # After a session that was killed nobody knows.
        if [ $signal = KILL ]; then
            not grep -q ^untrained out
        fi
    done
    says out "untrained   1 of the front, which 'hwnas search ... --resume' trains"
    ends 0 study show job.db --json
    is out 'd["untrained"] == 1 and d["waiting"] == 0'
    ends 0 study show job.db --json --constraints 'macs <= 1e12'
    is out 'd["untrained"] == 0'
    rm signal
    ends 0 search job.yaml --resume
    not grep -q ^untrained out
    [ "$(wc -l <train.nas_bench_macro.csv)" = 21 ]
}

@test "a plan and an explanation train nothing" {
    trainer
    budget 20 'budget: {trials: 25}'
    ends 0 search job.yaml --dry-run
    [ ! -e calls ]
    whole_search
    cp calls before
    ends 0 explain job.db
    cmp calls before
    ends 0 search job.yaml --resume --trials 70 --dry-run
    cmp calls before
}

@test "a program that cannot train ends the search before its first trial" {
    trainer 'echo "no GPU" >&2; exit 1'
    budget 20
    refuses 1 "ended with status 1: no GPU" search job.yaml
    [ ! -e job.db ]
    [ ! -e train.nas_bench_macro.csv ]
    trainer 'echo 50; exit 0'
    refuses 2 "in every row: there is nothing to learn" search job.yaml
    [ ! -e job.db ]
}

@test "a budget that cannot be" {
    trainer
    budget 5
    refuses 2 "job.yaml:*train-budget must be between 20 and" search job.yaml
    ends 0 search --help
    says out "--train-budget"
    budget 20 "accuracy: proxy:log-macs"
    refuses 2 "needs a program that trains*a proxy" search job.yaml
    budget 20 "accuracy: table:$TABLE#acc_top1_pct_mean"
    refuses 2 "write accuracy: train:RECIPE, or command:PROGRAM" search job.yaml
}

@test "a search by a proxy says that its accuracy is a score" {
    job "accuracy: proxy:log-params" 'budget: {trials: 20}'
    ends 0 search job.yaml
    says out "score *of proxy:log-params: it ranks, and is not a percentage"
    says out "winner *trial *: score "
    sed 's/^hypervolume [0-9.]* % of the box//' out >rest
    not grep -q % rest
    ends 0 explain job.db
    not grep -q % out
    ends 0 search job.yaml --overwrite --json
    is out "all(t['objectives']['accuracy']['source'] == 'computed' for t in d['front'])"
    is out "all(t['objectives']['accuracy']['low'] is None for t in d['front'])"
    is out "all(t['objectives']['accuracy']['unit'] == 'score' for t in d['front'])"
    # A score has no bound of 100.
    ends 3 search job.yaml --overwrite --constraints 'accuracy >= 300'
    says err "met accuracy >= 300; the closest is trial *: score "
}

@test "each accuracy is said to be trained or predicted" {
    whole_search
    ends 0 search job.yaml --resume # its report, for people
    grep -q '^[* ] .*[0-9] trained .*[0-9]$' out
    local how # what was kept for the end may be over before the best one is trained
    how=$(sed -n -E 's/^\* .*[0-9] (trained|predicted) .*/\1/p' out)
    says out "winner *: accuracy * % ($how), macs"
    job 'accuracy: command:./train' 'budget: {trials: 3}' 'study: third.db'
    ends 0 search job.yaml
    says out "winner *: accuracy * % (trained), macs"
    job 'accuracy: nas_bench_macro_cifar10' 'study: other.db'
    ends 0 search job.yaml
    says out "winner *: accuracy * % (predicted), macs"
}

@test "why networks failed is told beside the front" {
    printf '%s\n' 'hwnas: 1' 'name: some' 'input: {image: [3, 8, 8]}' 'choices: {act: {values: [1, 0]}, w: {values: [4, 8, 16]}}' 'network:' \
        '  - conv: {out: w, kernel: 3, pad: 1}' '  - if: act' '    then: [relu]' '    else: []' \
        '  - global_avg_pool' '  - flatten' '  - linear: {out: 2}' >some.yaml
    ends 0 search --space some.yaml --accuracy proxy:naswot --objectives accuracy,macs --trials 6
    says out "6 finished, * 3 failed"
    says out "the last that failed: trial *: *naswot needs activations"
}

# macs_of_calls: the multiply-accumulates of the networks that were trained, in millions.
most_macs_of_calls() {
    /usr/bin/python3 - "$TABLE" <<'END'
import csv, sys
macs = {row["arch"]: float(row["macs_count"]) for row in csv.DictReader(open(sys.argv[1]))}
print(max(macs[code.strip()] for code in open("calls")) / 1e6)
END
}

@test "no network is trained that misses a limit which is free to know" {
    trainer
    budget 24 'budget: {trials: 60}' 'constraints: macs <= 30 M'
    ends 0 search job.yaml --json
    [ "$(wc -l <calls)" -gt 12 ]
    [ "$(most_macs_of_calls | cut -d. -f1)" -lt 31 ]
    # Nor without a budget, where every other network is.
    rm -f calls train.nas_bench_macro.csv
    job 'accuracy: command:./train' 'budget: {trials: 30}' 'constraints: macs <= 30 M' 'strategy: random'
    ends 0 search job.yaml --overwrite --json
    is out "d['finished'] == 30 and d['failed'] == 0 and d['feasible'] < 30"
    [ "$(wc -l <calls)" -ge "$(json out "d['feasible'] / 3" | cut -d. -f1)" ]
    [ "$(most_macs_of_calls | cut -d. -f1)" -lt 31 ]
}

@test "where too few networks meet the limits, those that come nearest are trained first" {
    trainer
    budget 20 'budget: {trials: 25}' 'constraints: macs <= 8 M'
    ends 0 search job.yaml --json
    [ "$(wc -l <calls)" -ge 10 ]
    [ "$(most_macs_of_calls | cut -d. -f1)" -lt 20 ]
}

@test "a program that fails at the last trainings leaves the predictions, and that is said" {
    whole_search
    trainer '[ "$(wc -l <calls)" -le 22 ] || exit 9' # a tenth of 24 is kept for the end
    sed -i 23,\$d calls
    sed -i 24,\$d train.nas_bench_macro.csv # the first line is of titles
    ends 0 search job.yaml --overwrite
    [ "$(sed -n '23,$p' calls | sort | uniq -c | awk '{ print $1 }')" = 2 ] # the first that fails is tried twice
    says err "a network of the front could not be trained: *ended with status 9"
}

@test "a plan tells how many trainings there are, and how long they take" {
    trainer
    budget 24 'budget: {trials: 60}'
    ends 0 search job.yaml --dry-run
    says out "accuracy     trained by command:"
    says out "trainings    up to 24 more; how long one takes is not known"
    says out "about 60 trials, and the time of the trainings"
    [ ! -e calls ]
    ends 0 search job.yaml --dry-run --json
    is out "d['trainings'] == 24 and d['seconds_a_training'] is None and d['minutes'] is None"
    # Six results of 100 s each: 6 of the first 12 are made, two at a time, and 12 more.
    /usr/bin/python3 - "$TABLE" <<'END' >train.nas_bench_macro.csv
import csv, sys
print("code,digest,accuracy_pct,sd,seconds")
for i, row in enumerate(list(csv.DictReader(open(sys.argv[1])))[:6]):
    print('"%s",%032d,%s,,100' % (row["arch"], i, row["acc_top1_pct_mean"]))
END
    ends 0 search job.yaml --dry-run --json --accuracy 'command:./train#jobs=2'
    is out "d['trainings'] == 18 and d['seconds_a_training'] == 100"
    is out "abs(d['minutes'] * 60 - 1500) < 60"
    ends 0 search job.yaml --dry-run
    says out "trainings    up to 18 more, of 100 seconds each"
}

@test "without a terminal a line in ten seconds tells what is done" {
    local HWNAS=${HWNAS%/*}/tests/cli/mortal
    export MORTAL_CLOCK=$PWD/clock # seconds are its bytes
    : >clock
    trainer
    printf '%s\n' '#!/bin/sh' 'until grep -q " for [0-9]* s" err; do printf " " >>clock; sleep 0.05; done' 'echo 60' >train
    job 'accuracy: command:./train' 'budget: {trials: 1}'
    ends 0 search job.yaml
    says err "hwnas: 0/1 trials, *training a network for [1-9]*s"
    [ "$(wc -c <clock)" -ge 10 ]
    printf '%s\n' '#!/bin/sh' 'for s in $(seq 30); do printf " " >>clock; sleep 0.05; done' 'echo 60' >train
    rm -f train.nas_bench_macro.csv
    ends 0 search job.yaml --overwrite --quiet
    [ ! -s err ]
}

# scripted: a search of 40 minutes whose clock is the file `clock` (mortal.c): a training takes 100 s, and whatever is
# compiled to be measured 5 s. The file `begun` tells when each training began. It is made once for all tests.
scripted() {
    local made=$BATS_FILE_TMPDIR/scripted
    if [ -s "$made/out" ]; then
        cp -r "$made/." .
        return
    fi
    trainer 'stat -c %s clock >>begun' "printf %100s '' >>clock"
    : >clock
    budget 24 "device: 'null'" "objectives: [accuracy, latency.p50]" "seed: 3" 'budget: {trials: 200, minutes: 40}' \
        'measure: {seconds: 0.1, ties: 0, confirm: 0}'
    local here=${HWNAS%/*}/tests/cli
    STILL_BY_SIZE=1 MORTAL_CLOCK=$PWD/clock HWNAS_RUNNER=$here/still_runner HWNAS=$here/mortal ends 0 search job.yaml --json
    cp -r . "$made"
}

@test "the time that is reserved for the last trainings is theirs" {
    scripted
    is out "d['ended'] == 'the time is over'"
    # A tenth of 24 trainings are kept for the end, 200 s: until then others are trained and measured, and the last
    # thing that happens is a training, which ends within the 2400 s.
    local last
    last=$(tail -n 1 begun)
    [ "$last" -ge 2200 ]
    [ "$(stat -c %s clock)" -eq "$((last + 100))" ]
    [ "$((last + 100))" -le 2400 ]
}

@test "what waits for a measurement gets it before a training that outlasts the time" {
    local here=${HWNAS%/*}/tests/cli
    export STILL_BY_SIZE=1 HWNAS_RUNNER=$here/still_runner
    : >clock
    MORTAL_CLOCK=$PWD/clock HWNAS=$here/mortal ends 0 calibrate nas_bench_macro --device null --minutes 5
    trainer "printf %100s '' >>clock"
    : >clock
    job 'accuracy: command:./train' "device: 'null'" 'objectives: [accuracy, latency.p50]' 'strategy: random' 'seed: 3' \
        'budget: {trials: 40, minutes: 20}' 'measure: {seconds: 0.05, ties: 0, confirm: 0}'
    MORTAL_CLOCK=$PWD/clock HWNAS=$here/mortal ends 0 search job.yaml --json
    # Twelve trainings of 100 s: the last one is over after the time is, and waits.
    is out "d['ended'] == 'the time is over' and d['finished'] >= 10 and d['remeasured'] >= 1 and d['waiting'] <= 1"
    # Disturbed, what waits has its other tries before that training.
    : >clock
    rm train.nas_bench_macro.csv
    STILL_NOISE=0,0,1,1 STILL_CLOCK=$PWD/compiled MORTAL_CLOCK=$PWD/clock HWNAS=$here/mortal ends 0 search job.yaml --study noisy.db --json
    is out "d['ended'] == 'the time is over' and d['finished'] >= 10 and d['waiting'] <= 1"
    /usr/bin/python3 -c '
import sqlite3
assert sqlite3.connect("noisy.db").execute("SELECT count(*) FROM event WHERE kind = ?", ("put off",)).fetchone()[0] >= 1'
}

@test "the time that a training takes is none of a measurement's" {
    scripted
    run -0 /usr/bin/python3 - "$(json out "d['study']")" <<'END'
import json, sqlite3, sys
study = sqlite3.connect(sys.argv[1])
(longest,) = study.execute("SELECT max(seconds) FROM trial").fetchone()
assert longest >= 105, longest  # trained, and then measured
(text,) = study.execute("SELECT value FROM fact WHERE key = 'session'").fetchone()
fact = json.loads(text)
assert fact["n_run"] > 5, fact
assert fact["run_seconds"] <= 6 * fact["n_run"], fact
END
}
