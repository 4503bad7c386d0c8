# A time is believed only of the right result: what a search's front and `profile --verify` compare
# with a reference. The still machine computes, and is wrong where it is told to be (still_runner.c).
load helpers

# still: a search that is the same each time, on a machine that computes. Other ARGUMENTS follow.
still_search() {
    job "device: null" "accuracy: nas_bench_macro_cifar10" "objectives: [accuracy, latency.p50]" \
        "budget: {trials: 12}" "seed: 3" "measure: {seconds: 0.1, estimate: off, ties: 0, confirm: 0}"
    STILL_COMPUTES=1 STILL_BY_SIZE=1 STILL_LOG=$PWD/log undisturbed ends "$@"
}

setup_file() {
    command -v /usr/bin/python3
}

@test "the front is verified: in text, in JSON, once" {
    still_search 0 search job.yaml --study s.db
    says out "verified    * networks of the front against ref, largest error "
    local n
    n=$(wc -l <log)
    "$HWNAS" study show s.db --json >shown.json
    is shown.json "d['verified']['networks'] == d['verified']['right'] == len(d['front']) >= 2"
    is shown.json "d['verified']['wrong'] == 0 and d['verified']['skipped'] == {}"
    is shown.json "all(t['verified']['against'] == 'ref' for t in d['front'])"
    is shown.json "all(0 <= t['verified']['error'] <= t['verified']['tolerance'] == 1e-4 for t in d['front'])"
    [ "$n" -eq "$(json shown.json "d['finished'] + len(d['front'])")" ]

    # What is recorded is not done again.
    still_search 0 search job.yaml --study s.db --resume
    [ "$(wc -l <log)" -eq "$n" ]
    says out "verified    * networks of the front against ref"
}

# digest NUMBER: what the log has of the front's network of this number, from 0.
digest() {
    tail -n "$(json right.json "len(d['front'])")" log | sed -n "$(($1 + 1))p"
}

@test "a wrong network of the front is a failed trial, and the next best takes its place" {
    still_search 0 search job.yaml --study right.db --json
    cp out right.json
    export STILL_WRONG
    STILL_WRONG=$(digest 0)
    still_search 0 search job.yaml --study s.db --json
    cp out wrong.json
    local trial
    trial=$(json right.json "d['winner']['trial']")
    is wrong.json "d['failed'] == 1 and d['verified']['wrong'] == 1 and d['failures'][0]['trial'] == $trial"
    is wrong.json "d['failures'][0]['status'] == 'wrong_result'"
    is wrong.json "'the result on null in f32 is wrong' in d['failures'][0]['message']"
    is wrong.json "'number 1 of' in d['failures'][0]['message'] and 'instead of' in d['failures'][0]['message']"
    is wrong.json "d['winner']['trial'] != $trial and all(t['trial'] != $trial for t in d['front'])"
    is wrong.json "all('verified' in t for t in d['front'])"
    is wrong.json "d['verified']['right'] == len(d['front'])"

    # All that read the study agree, and a session more does not take it back.
    ends 0 study show s.db
    says out "; 1 wrong result, failed: trial $trial"
    says out "the last that failed: trial $trial: the result on null in f32 is wrong"
    "$HWNAS" export s.db --format yaml --out best.yaml
    STILL_WRONG=''
    still_search 0 search job.yaml --study s.db --resume --json
    is out "d['failed'] == 1 and d['winner']['trial'] == $(json wrong.json "d['winner']['trial']")"
    still_search 0 search job.yaml --trials 16 --study s.db --resume --json
    is out "d['finished'] == 16 and all(t['trial'] != $trial for t in d['front'])"
    is out "d['verified']['right'] == len(d['front'])"
}

@test "where each device has a front, a wrong result is a failure on that device alone" {
    two() {
        job "device" "accuracy: nas_bench_macro_cifar10" "budget: {trials: 6}" "seed: 3" \
            "devices: [{name: a, device: null}, {name: b, device: null, batch: 2}]" "fronts: each" \
            "objectives: [accuracy, latency.p50 on a, latency.p50 on b]" "measure: {seconds: 0.1, estimate: off, ties: 0, confirm: 0}"
        STILL_COMPUTES=1 STILL_BY_SIZE=1 STILL_LOG=$PWD/log undisturbed ends "$@"
    }
    two 0 search job.yaml --study right.db --json
    cp out right.json
    # The first that is verified is the winner on a.
    local trial n
    trial=$(json right.json "d['fronts']['a']['winner']['trial']")
    is right.json "any(t['trial'] == $trial for t in d['fronts']['b']['front'])"
    # On both fronts, and counted once.
    is right.json "d['verified']['networks'] == d['verified']['right'] == len({t['trial'] for f in d['fronts'].values() for t in f['front']})"
    /usr/bin/python3 - "$trial" <<'END'
import json, sqlite3, sys
db = sqlite3.connect("right.db")
verified = json.loads(db.execute("SELECT value FROM fact WHERE key = 'verified'").fetchone()[0])
del verified["trials"][sys.argv[1]]
db.execute("UPDATE fact SET value = ? WHERE key = 'verified'", (json.dumps(verified),))
db.commit()
END
    ends 0 study show right.db --json
    is out "d['verified']['missing'] == [$trial] and d['verified']['right'] == d['verified']['networks'] - 1"
    n=$(json right.json "2 * d['finished'] + 1")
    export STILL_WRONG
    STILL_WRONG=$(sed -n "${n}p" log)
    two 0 search job.yaml --study s.db --json
    is out "all(t['trial'] != $trial for t in d['fronts']['a']['front']) and d['fronts']['a']['front']"
    is out "any(t['trial'] == $trial for t in d['fronts']['b']['front'])"
    is out "d['failures'][0]['device'] == 'a' and d['failures'][0]['status'] == 'wrong_result'"
    is out "d['failed'] == 0 and d['verified']['wrong'] == 1 and d['verified']['missing'] == []"
    is out "d['failed_by'] == {'wrong_result': 1} and len(d['failures']) == 1"
    ends 0 study show s.db
    says out "feasible, 0 failed, 1 with a wrong result only on some devices, in "
    says out "expected    of the front on a on average accuracy * points less"
    says out "expected    of the front on b on average accuracy * points less"
    says out "; 1 wrong result, failed: trial $trial on a"
}

@test "a result that is wrong on several devices names them all" {
    job "device" "accuracy: nas_bench_macro_cifar10" "budget: {trials: 4}" "seed: 3" \
        "devices: [{name: a, device: null}, {name: b, device: null, batch: 2}, {name: c, device: null, batch: 3}]" "fronts: each" \
        "objectives: [accuracy, latency.p50 on a, latency.p50 on b, latency.p50 on c]" \
        "measure: {seconds: 0.1, estimate: off, ties: 0, confirm: 0}"
    STILL_COMPUTES=1 STILL_BY_SIZE=1 undisturbed ends 0 search job.yaml --study s.db
    local trial
    trial=$(/usr/bin/python3 - <<'END'
import json, sqlite3
db = sqlite3.connect("s.db")
verified = json.loads(db.execute("SELECT value FROM fact WHERE key = 'verified'").fetchone()[0])
trial = next(t for t in sorted(verified["trials"]) if len(verified["trials"][t]) == 3)
for device in "bc":
    verified["trials"][trial][device]["message"] = f"wrong on {device}"
db.execute("UPDATE fact SET value = ? WHERE key = 'verified'", (json.dumps(verified),))
db.commit()
print(trial)
END
)
    ends 0 study show s.db --json
    is out "[(f['trial'], f['devices'], f['device'], f['message']) for f in d['failures']] == [($trial, ['b', 'c'], 'b', 'wrong on b')]"
    is out "all(t['trial'] != $trial for n in 'bc' for t in d['fronts'][n]['front'])"
    ends 0 study show s.db
    says out "1 with a wrong result only on some devices"
    says out "1 wrong result, failed: trial $trial on b, c"
}

@test "a network of the front that was not verified is named" {
    still_search 0 search job.yaml --study s.db
    # As if the search had been ended before it came to the winner.
    local trial
    trial=$(/usr/bin/python3 - <<'END'
import json, sqlite3
db = sqlite3.connect("s.db")
verified = json.loads(db.execute("SELECT value FROM fact WHERE key = 'verified'").fetchone()[0])
trial = sorted(verified["trials"])[0]
del verified["trials"][trial]
db.execute("UPDATE fact SET value = ? WHERE key = 'verified'", (json.dumps(verified),))
db.commit()
print(trial)
END
    )
    ends 0 study show s.db
    says out "verified    * of * networks of the front against ref, largest error *; not trial $trial"
    ends 0 study show s.db --json
    is out "d['verified']['missing'] == [$trial] and d['verified']['right'] == d['verified']['networks'] - 1"
}

# taken_over STUDY CODE: how many trials of a warm start have this code.
taken_over() {
    "$HWNAS" study show "$1" --json >shown.json
    trials "$1" | head -n "$(json shown.json "d['warm']")" | awk -v code="$2" '$2 == code' | wc -l
}

@test "a trial that failed so is not taken over by a warm start" {
    still_search 0 search job.yaml --study right.db --json
    cp out right.json
    STILL_WRONG=$(digest 0) still_search 0 search job.yaml --study s.db --json
    local wrong
    wrong=$(json right.json "d['winner']['arch']")
    still_search 0 search job.yaml --trials 1 --study t.db --warm-start s.db
    [ "$(taken_over t.db "$wrong")" -eq 0 ]
    still_search 0 search job.yaml --trials 1 --study u.db --warm-start right.db
    [ "$(taken_over u.db "$wrong")" -eq 1 ]
}

@test "a device that is always wrong ends the search with exit code 1" {
    STILL_WRONG=all still_search 1 search job.yaml --study s.db
    says err "best networks gave a wrong result"
    [ ! -s out ]
    # Fewer than would condemn the device, but all there are.
    STILL_WRONG=all still_search 1 search job.yaml --study t.db --trials 3
    says err "each network that met the constraints gave a wrong result; trial"
}

@test "verify: none, and devices that compute nothing, are told" {
    still_search 0 search job.yaml --study s.db --verify none
    says out "verified    no, null: the job says verify: none"
    ends 0 search job.yaml --study n.db
    says out "verified    no, null: it computes nothing"
    ends 0 search "$REPLAY" --trials 5 --study r.db --json
    is out "d['verified']['right'] == 0 and all('runs nothing' in v for v in d['verified']['skipped'].values())"
    refuses 2 "verify is front or none, not 'all'" search job.yaml --verify all
}

@test "several devices: each is verified, or said to be skipped" {
    job "device" "accuracy: nas_bench_macro_cifar10" "budget: {trials: 4}" "seed: 3" \
        "devices: [{name: a, device: null}, {name: b, device: replay:$TABLE#macs_count}]" \
        "objectives: [accuracy, latency.p50 on a]" "measure: {seconds: 0.1, estimate: off, ties: 0, confirm: 0}"
    STILL_COMPUTES=1 STILL_BY_SIZE=1 undisturbed ends 0 search job.yaml --study s.db
    says out "networks of the front against ref"
    says out "not on b: it remembers published numbers and runs nothing"
    job "device" "accuracy: nas_bench_macro_cifar10" "budget: {trials: 4}" "seed: 3" \
        "devices: [{name: a, device: null}, {name: b, device: null, batch: 2}]" "fronts: each" \
        "objectives: [accuracy, latency.p50 on a, latency.p50 on b]" "measure: {seconds: 0.1, estimate: off, ties: 0, confirm: 0}"
    STILL_COMPUTES=1 STILL_BY_SIZE=1 undisturbed ends 0 search job.yaml --study t.db --json
    is out "all('verified' in t for f in d['fronts'].values() for t in f['front'])"
}

@test "the search on cpu verifies its front" {
    job "device: cpu" "threads: 1" "accuracy: nas_bench_macro_cifar10" "objectives: [accuracy, latency.p50]" \
        "budget: {trials: 4}" "measure: {seconds: 0.05}"
    ends 0 search job.yaml --study s.db --json
    is out "d['verified']['right'] == len(d['front']) and d['verified']['largest_error'] < 1e-4"
}

@test "profile --verify: a right model has its error, a wrong one no time" {
    ends 0 profile mnist_cnn lstm_text_generation --verify --seconds 0.05 --json
    is out "all(r['verified_against'] == 'ref' and r['verified_error'] < r['verified_tolerance'] == 1e-4 for r in d['rows'])"
    ends 0 profile mnist_cnn --dtype f32,s8 --verify --seconds 0.05
    says out "verified: 2 of 2 rows against a reference, largest error "
    ends 0 profile mnist_cnn --device null,ref --verify --seconds 0.05 --batch 1,2
    [ "$(grep -c 'not verified on null' out)" -eq 1 ] # not again for each row
    says out "not verified on null: it computes nothing"
    says out "not verified on ref: it is the reference itself"

    export STILL_COMPUTES=1 STILL_LOG=$PWD/log
    undisturbed ends 0 profile mnist_cnn mnist_mlp --device null --verify --save right.json
    STILL_WRONG=$(head -n 1 log) undisturbed ends 1 profile mnist_cnn mnist_mlp --device null --verify --json
    is out "d['rows'][0]['status'] == 'wrong_result' and 'p50_seconds' not in d['rows'][0]"
    is out "'is wrong' in d['rows'][0]['message'] and d['rows'][0]['verified_error'] > d['rows'][0]['verified_tolerance']"
    is out "d['rows'][1]['status'] == 'ok' and d['rows'][1]['verified_against'] == 'ref'"
    says err "mnist_cnn: the result on null in f32 is wrong"
    refuses 2 "verified in one copy" profile mnist_cnn --verify --streams 2
}

@test "on a GPU, that is its stand-in, results are verified in each precision" {
    [ -e "$HWNAS_MODULES/hwnas-cuda.so" ] || skip "built without CUDA"
    [ -e "$HWNAS_FAKE_GPU/libcuda.so.1" ] || skip "without the stand-in"
    LD_LIBRARY_PATH=$HWNAS_FAKE_GPU ends 0 profile mnist_mlp mnist_cnn --device cuda:0:own \
        --dtype f32,f16,bf16 --verify --seconds 0.02 --json
    is out "len(d['rows']) == 6 and all(r['verified_against'] == 'ref' for r in d['rows'])"
    ends 1 profile mnist_mlp --device cuda-dry:h200 --verify
}
