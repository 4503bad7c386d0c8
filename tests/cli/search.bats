# `hwnas search` on published tables: what it finds, when it ends, and what it refuses.
load helpers

# hypervolume FILE: of the front over 150 M MACs and 70 %, in M MACs times %.
hypervolume() {
    json "$1" "sum((x1 - x) * (y - 70) for x, y, x1 in (lambda p:
        [(a[0], a[1], b[0]) for a, b in zip(p, p[1:] + [(150, 0)])])(sorted(
            (f['objectives']['macs']['value'], f['objectives']['accuracy']['value'])
            for f in d['front'] if f['objectives']['accuracy']['value'] > 70)))"
}

@test "the same seed gives the same front, bit for bit; another seed other trials" {
    ends 0 search "$REPLAY" --json --study a.db
    [ ! -s err ]
    mv out a
    ends 0 search "$REPLAY" --json --study b.db
    [ "$(json a "json.dumps(d['front'])")" = "$(json out "json.dumps(d['front'])")" ]
    trials a.db >a.txt
    trials b.db | cmp - a.txt
    ends 0 search "$REPLAY" --json --seed 2 --study c.db
    trials c.db >c.txt
    not cmp -s a.txt c.txt
    is out "d['job']['seed'] == 2"
}

@test "the same front from any directory" {
    ends 0 search "$REPLAY" --json --study a.db
    mv out a
    mkdir sub
    cp "$REPLAY" sub/job.yaml
    mkdir -p tests
    ln -s "$HWNAS_SRC/tests/data" tests/data
    ends 0 search sub/job.yaml --json
    [ -e job.db ]
    [ "$(json a "d['front']")" = "$(json out "d['front']")" ]
    cd sub
    ends 0 search job.yaml --resume --study ../job.db
    ends 0 export ../job.db --best --format yaml --out best.yaml
}

@test "a study that another version began is gone on with, and a note tells it" {
    ends 0 search "$REPLAY" --study job.db --trials 3
    ends 0 search "$REPLAY" --study job.db --trials 4 --resume
    not grep -q 'was begun by' err
    /usr/bin/python3 -c 'import sqlite3
db = sqlite3.connect("job.db", isolation_level=None)
assert db.execute("UPDATE fact SET value = ? WHERE key = ?", ("0.0.7", "version")).rowcount == 1'
    ends 0 search "$REPLAY" --study job.db --trials 5 --resume --json
    is out "d['finished'] == 5"
    [ "$(grep -c 'note: job.db was begun by hwnas 0.0.7, and this is ' err)" = 1 ]
}

@test "a study that other code of the same version began is gone on with, and a note tells it" {
    ends 0 search "$REPLAY" --study job.db --trials 3
    ends 0 study merge job.db --out copy.db
    fact() { # fact FILE SQL: of what it was begun with
        /usr/bin/python3 -c 'import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
assert db.execute(sys.argv[2]).rowcount == 1' "$@"
    }
    fact copy.db "UPDATE fact SET value = '1 2' WHERE key = 'proposing'"
    ends 0 search "$REPLAY" --study copy.db --trials 5 --resume
    [ "$(grep -c 'note: copy.db was begun by another build of hwnas .*, with other code for proposals' err)" = 1 ]
    fact job.db "DELETE FROM fact WHERE key = 'proposing'" # as in studies that were begun before there was one
    ends 0 search "$REPLAY" --study job.db --trials 5 --resume
    not grep -q 'was begun by' err
}

@test "the front is nearly the true one, and says what the table says" {
    local volume
    ends 0 search "$REPLAY" --json
    volume=$(hypervolume out)
    awk -v part="$volume" 'BEGIN { exit !(part >= .97 * 2940.464 && part <= 1.0001 * 2940.464) }'
    /usr/bin/python3 - "$TABLE" out <<'END'
import csv, json, sys
table = {row["arch"]: row for row in csv.DictReader(open(sys.argv[1]))}
front = json.load(open(sys.argv[2]))["front"]
assert len(front) > 10
for f in front:
    row, o = table[f["arch"]], f["objectives"]
    assert o["accuracy"] == {"value": float(row["acc_top1_pct_mean"]), "unit": "%", "low": None,
                             "high": None, "source": "replayed"}, f
    assert o["macs"]["source"] == "replayed" and o["params"]["source"] == "computed", f
    assert round(o["macs"]["value"] * 1e6) == int(row["macs_count"]), f
    assert round(o["params"]["value"] * 1e6) == int(row["params_count"]), f
    assert o["macs"]["unit"] == o["params"]["unit"] == "M" and o["memory"]["unit"] == "MiB", f
points = [(f["objectives"]["accuracy"]["value"], -f["objectives"]["macs"]["value"]) for f in front]
assert points == sorted(points, reverse=True), "the best in the first objective first"
for p in points:
    assert not any(q != p and q[0] >= p[0] and q[1] >= p[1] for q in points), p
END
    is out "d['winner'] == d['front'][0] and d['failures'] == [] and d['device'] is None"
    is out "(d['trials'], d['finished'], d['feasible'], d['failed']) == (300, 300, 300, 0)"
}

@test "published latencies of a Raspberry Pi: within the limit, near the best of the table" {
    ends 0 search "$HWNAS_SRC/examples/replay-nb201-raspi4.yaml" --json --study pi.db
    /usr/bin/python3 - "$HWNAS_SRC/tests/data/nas_bench_201.csv" out <<'END'
import csv, json, sys
table = {row["arch"]: row for row in csv.DictReader(open(sys.argv[1]))}
found = json.load(open(sys.argv[2]))
best = max(float(r["c100_test_top1_pct"]) for r in table.values() if float(r["raspi4_ms"]) <= 60)
for f in found["front"]:
    row, latency = table[f["arch"]], f["objectives"]["latency.p50"]
    assert (latency["source"], latency["unit"]) == ("replayed", "ms"), f
    assert abs(latency["value"] - float(row["raspi4_ms"])) < 1e-9 and latency["value"] <= 60, f
    assert f["objectives"]["accuracy"]["value"] == float(row["c100_test_top1_pct"]), f
assert best - 1 < found["winner"]["objectives"]["accuracy"]["value"] <= best
END
}

@test "nsga2 beats random with as many trials" {
    local nsga2 random
    ends 0 search "$REPLAY" --json
    nsga2=$(hypervolume out)
    ends 0 search "$REPLAY" --json --strategy random --study r.db
    is out "d['job']['strategy'] == 'random' and d['finished'] == 300"
    random=$(hypervolume out)
    awk -v a="$nsga2" -v b="$random" 'BEGIN { exit !(a > b && b > .85 * 2940.464) }'
}

@test "each strategy searches, the same trials each time; auto says bayesian here" {
    local name
    for name in auto bayesian local-search nsga2 random; do
        ends 0 search "$REPLAY" --strategy $name --trials 24 --study $name.db
        ends 0 search "$REPLAY" --strategy $name --trials 24 --study $name-2.db
        trials $name.db >a.txt
        trials $name-2.db | cmp - a.txt
    done
    trials auto.db >a.txt
    trials bayesian.db | cmp - a.txt
}

@test "what a strategy cannot do is said before the first trial" {
    refuses 2 "'regularized-evolution' has one objective, not 2*bayesian, nsga2" \
        search "$REPLAY" --strategy regularized-evolution
    refuses 2 "a budget of 10 trials is too small for 'bayesian': it needs 12*'auto'" \
        search "$REPLAY" --strategy bayesian --trials 10
    refuses 2 "a budget of 300 trials is too small for 'exhaustive': it needs 6561" \
        search "$REPLAY" --strategy exhaustive
    refuses 2 "'successive-halving' needs a cheaper way" \
        search "$REPLAY" --strategy successive-halving
    [ "$(echo *.db)" = "*.db" ]
}

@test "one objective: one winner; three: a surface" {
    job "objectives: [accuracy]"
    ends 0 search job.yaml --json
    is out "len(d['front']) == 1"
    job "objectives: [macs, params, accuracy]" "strategy: nsga2"
    ends 0 search job.yaml --json --study three.db
    is out "d['front'][0]['arch'] == '00000000' and len(d['front']) > 3"
}

@test "the table that people read" {
    ends 0 search "$REPLAY" --trials 60
    says out "*Pareto front of nas_bench_macro: * networks; most accuracy, least macs"
    says out "trial  accuracy %  MMACs  M params  peak memory MiB  architecture"
    says out "device      replay:/*nas_bench_macro.csv#macs_count"
    [ "$(grep -cE '^\* +[0-9]' out)" -eq 1 ]
    says out "winner *trial *: accuracy * %, macs * M"
    says out "trials      60 finished, 60 feasible, 0 failed, in "
    says out "study       replay-nb-macro.db"
    not grep -q -- '\.\./' out
    mv out first
    ends 0 study show replay-nb-macro.db
    cmp out first
}

@test "constraints hold for every network of the front" {
    job "constraints: ['macs <= 40 M, params < 1 M', accuracy >= 80 %, memory <= 5 MiB]" \
        "budget: {trials: 200}"
    ends 0 search job.yaml --json
    is out "len(d['front']) > 3 and 0 < d['feasible'] < 200"
    is out "all(f['objectives']['macs']['value'] <= 40 and f['objectives']['params']['value'] < 1
        and f['objectives']['accuracy']['value'] >= 80 and f['objectives']['memory']['value'] <= 5
        for f in d['front'])"
    is out "d['front'][0]['objectives']['macs']['value'] > 35"
    # One value exactly: kept by <=, missed by <.
    job "constraints: [macs <= 7713280e-6 M]" "budget: {trials: 5}" "strategy: nsga2"
    ends 0 search job.yaml --json --study equal.db
    is out "[f['arch'] for f in d['front']] == ['00000000']"
    job "constraints: [macs < 7713280e-6 M]" "budget: {trials: 5}"
    refuses 3 "no network of the space meets macs <*the smallest, 00000000, has 7.7 M" search job.yaml \
        --study less.db
}

@test "a constraint that nothing meets: exit 3, the closest, and the study is kept" {
    job "constraints: [macs <= 7.8 M, accuracy >= 90 %]" "export: {yaml: best.yaml}"
    ends 3 search job.yaml
    says out "no network meets the constraints"
    says out "closest *trial *: macs * M, accuracy * %"
    says err "hwnas: none of 30 networks met macs <= 7.8 M and accuracy >= 90 %; the closest is trial *: macs * M, accuracy * %"
    says err "hint: relax the constraint"
    [ ! -e best.yaml ]
    ends 0 study show job.db --json
    is out "(d['finished'], d['feasible'], d['front'], d['winner']) == (30, 0, [], None)"
    is out "d['closest']['objectives']['macs']['value'] > 7.7"
    refuses 3 "job.db: *no trial*meets the constraints" export job.db --format yaml --out x.yaml
    ends 3 search job.yaml --resume --trials 40 --json
    is out "d['finished'] == 40 and d['front'] == []"
}

# A space of four networks, and its table.
tiny() {
    cat >tiny.yaml <<'END'
hwnas: 1
name: tiny
input: {image: [3, 8, 8]}
choices:
  c: {each_of: 2, values: [4, 8]}
network:
  - for: {out: c}
    do:
      - conv: {out: out}
      - relu
  - global_avg_pool
  - flatten
  - linear: {out: 2}
END
    "$HWNAS" space sample tiny.yaml -n 50 --json >sample
    json sample "'\n'.join(['arch,top1_pct,phone_ms'] + ['%s,%d,%d' % (a, 50 + i, 3 + i)
        for i, a in enumerate(sorted({a['arch'] for a in d['archs']}))])" >tiny.csv
    [ "$(wc -l <tiny.csv)" -eq 5 ]
    job "space: tiny.yaml" "accuracy: table:tiny.csv#top1_pct" "device: replay:tiny.csv#phone_ms" \
        "objectives: [accuracy, latency]" "budget: {trials: 1000}"
}

@test "a space that is exhausted ends the search" {
    local strategy
    tiny
    for strategy in nsga2 random; do
        ends 0 search job.yaml --json --strategy $strategy --study $strategy.db
        is out "d['finished'] == 4 and len(d['front']) == 4"
        is out "d['winner']['objectives']['latency.p50']['value'] == 6"
        is out "d['winner']['objectives']['latency.p50']['unit'] == 'ms'"
        ends 0 search job.yaml --json --strategy $strategy --study $strategy.db --resume
        is out "d['finished'] == 4"
    done
    sed -i '$d' tiny.csv # a network that the table lacks is not tried
    ends 0 search job.yaml --json --study lacks.db
    is out "(d['finished'], d['failed'], len(d['front']), d['among']) == (3, 0, 3, 3)"
    sed -i '3,$d' tiny.csv
    ends 0 search job.yaml --json --study one.db
    is out "(d['finished'], d['failed'], len(d['front']), d['among']) == (1, 0, 1, 1)"
}

@test "a budget of nothing, and none" {
    refuses 2 "--trials:*trials must be between 1*0" search "$REPLAY" --trials 0
    refuses 2 "--minutes:*a budget of 0" search "$REPLAY" --minutes 0
    refuses_job "job.yaml:5:18: trials must be between 1*0" "budget: {trials: 0}"
    refuses_job "job.yaml:5:18: trials *-3" "budget: {trials: -3}"
    refuses_job "job.yaml:5:18: trials must be a whole number, not 'many'" "budget: {trials: many}"
    refuses_job "job.yaml:5:19: a budget of 0 minutes" "budget: {minutes: 0}"
    refuses_job "job.yaml:5:9: budget must be a mapping" "budget: 30"
    job "budget: {minutes: 0.05}"
    ends 0 search job.yaml --json
    is out "d['finished'] > 10 and d['wall_seconds'] >= 3"
}

@test "a budget of money is the minutes that it buys of all devices" {
    refuses_job "job.yaml:5:17: a budget of money needs the price of *" "budget: {money: 1}"
    refuses_job "job.yaml:*a budget of money needs a device" "budget: {money: 1}" "device" "objectives: [accuracy, macs]"
    refuses_job "job.yaml:5:17: money must be above 0" "budget: {money: 0}" "price: 2"
    job "budget: {money: 0.005}" "price: 6" # 3 seconds, of which a busy machine takes one to begin
    ends 0 search job.yaml --dry-run
    says out "ends         after 0.05 minutes, which cost 0.005 at 6 an hour"
    ends 0 search job.yaml --json
    is out "d['finished'] > 10 and d['wall_seconds'] >= 3 and d['ended'] == 'the money is spent: 0.005 at 6 an hour'"
    job "budget: {money: 3, minutes: 0.01}" "price: 6" # half an hour, so the minutes are over first
    ends 0 search job.yaml --dry-run
    says out "ends         after 0.01 minutes"
    not grep -q cost out
    job "space: nas_bench_201" "accuracy: table:$HWNAS_SRC/tests/data/nas_bench_201.csv#c10_test_top1_pct" "budget: {money: 1}" device "objectives: [accuracy, latency.p50]" \
        "devices: [{name: a, device: 'replay:$HWNAS_SRC/tests/data/nas_bench_201.csv#raspi4_ms', price: 3}, {name: b, device: 'replay:$HWNAS_SRC/tests/data/nas_bench_201.csv#raspi4_ms', price: 1}]"
    ends 0 search job.yaml --dry-run
    says out "after 15 minutes, which cost 1 at 4 an hour"
}

@test "one trial is told in the singular" {
    job "budget: {trials: 1}"
    ends 0 search job.yaml --dry-run
    grep -qx 'ends  *after 1 trial' out
    grep -q '^in all  *about 1 trial in ' out
}

@test "a budget of money takes devices that cost nothing, but not nothing else" {
    local replayed="'replay:$HWNAS_SRC/tests/data/nas_bench_201.csv#raspi4_ms'"
    job "space: nas_bench_201" "accuracy: table:$HWNAS_SRC/tests/data/nas_bench_201.csv#c10_test_top1_pct" "budget: {money: 1, trials: 3}" device \
        "objectives: [accuracy, latency.p50 on b]" "devices: [{name: a, device: $replayed, price: 0}, {name: b, device: $replayed, price: 4}]"
    ends 0 search job.yaml --dry-run
    says out "after 15 minutes, which cost 1 at 4 an hour"
    ends 0 search job.yaml
    says out "3 finished"
    ends 2 search job.yaml --study other.db --objectives "accuracy, cost on a"
    says err "at the price 0 of 'a' cost is 0, whatever the network"
    rm *.db
    refuses_job "job.yaml:5:17: a budget of money needs a device that costs something" "budget: {money: 1}" "price: 0"
    refuses_job "job.yaml:6:8: price must be*" "price: -1"
}

@test "an accuracy that is better the smaller it is has the worst network win: it is refused" {
    sed '1s/c10_test_top1_pct/val_ppl/; 1s/c100_test_top1_pct/neg_loss/' "$HWNAS_SRC/tests/data/nas_bench_201.csv" >../ppl.csv
    refuses_job "job.yaml:*the accuracy is to be large, and 'val_ppl' is better the smaller it is*'negative_val_ppl'" \
        "space: nas_bench_201" "accuracy: table:../ppl.csv#val_ppl" "objectives: [accuracy, macs]" device
    refuses 2 "'val_ppl' is better the smaller" search job.yaml --dry-run
    job "space: nas_bench_201" "accuracy: table:../ppl.csv#neg_loss" "objectives: [accuracy, macs]" device
    ends 0 search job.yaml --dry-run
}

# refuses_job PATTERN LINE...: such a job is refused and leaves no file.
refuses_job() {
    local pattern=$1
    shift
    job "$@"
    refuses 2 "$pattern" search job.yaml
    [ "$(ls -I 'tiny*')" = $'err\njob.yaml\nout' ] || says out "no file, but there is $(ls)"
}

@test "a job with wrong keys, types or values" {
    refuses_job "job.yaml:6:1: *'foo'*its keys are space, accuracy" "foo: bar"
    refuses_job "job.yaml:5:1: *'bugdet'*did you mean 'budget'" "budget" "bugdet: {trials: 3}"
    refuses_job "job.yaml:6:10: export*'onx'*did you mean 'onnx'" "export: {onx: x}"
    refuses_job "job.yaml:6:12: strategy*'nme'*did you mean 'name'" "strategy: {nme: nsga2}"
    refuses_job "job.yaml: the job names no space" space
    refuses_job "job.yaml:5:8: space must be a single value" "space: [nas_bench_macro]"
    refuses_job "job.yaml:6:7: seed *-1" "seed: -1"
    refuses_job "job.yaml:6:7: seed *99999999999999999999" "seed: 99999999999999999999"
    refuses_job "job.yaml:6:10: threads *0" "threads: 0"
    refuses_job "job.yaml:6:8: batch must be a whole number, not '1.5'" "batch: 1.5"
    refuses_job "job.yaml:6:20: seconds *0" "measure: {seconds: 0}"
    refuses_job "job.yaml:6:19: memory *1" "measure: {memory: 1}"
    refuses_job "job.yaml:6:11: *nsga3*did you mean 'nsga2'" "strategy: nsga3"
    refuses_job "job.yaml:6:37: *population of 2*needs 4" "strategy: {name: nsga2, population: 2}"
    echo 'space: *nowhere' >job.yaml
    refuses 2 "job.yaml:1:8: " search job.yaml
    printf 'space: a\nspace: b\n' >job.yaml
    refuses 2 "job.yaml:2:1: *line 1" search job.yaml
    : >job.yaml
    refuses 2 "job.yaml" search job.yaml
    head -c 100000 /dev/urandom >job.yaml
    refuses 2 "job.yaml" search job.yaml
}

@test "a job with wrong objectives or constraints" {
    refuses_job "job.yaml:5:14: *'acuracy'*did you mean 'accuracy'" "objectives: [acuracy]"
    refuses_job "job.yaml:5:13: *1 to 16 objectives" "objectives: []"
    refuses_job "job.yaml:5:13: objectives must be a list" "objectives: {accuracy: 1}"
    refuses_job "job.yaml:5:23: *'mcs'*did you mean 'macs'" "objectives: accuracy, mcs"
    refuses_job "job.yaml:5:20: 'macs' is an objective twice" "objectives: [macs, macs]"
    refuses_job "job.yaml: the job has no objectives*add objectives" objectives
    refuses_job "job.yaml: 'accuracy' needs a predictor*add accuracy" accuracy
    refuses_job "job.yaml: 'latency.p50' needs a device*add device" device "objectives: [latency]"
    refuses_job "job.yaml:*'replay:*' does not give latency.p50*choose" "objectives: [latency.p50]"
    refuses_job "job.yaml:*'replay:*' does not give latency.p90" "constraints: [latency.p90 <= 3 ms]"
    refuses_job "job.yaml:6:25: 'ms' is not a unit of macs*given in k, K, M, G" "constraints: [macs <= 3 ms]"
    refuses_job "job.yaml:6:15: *'mac'*did you mean 'macs'" "constraints: [mac <= 3 M]"
    while IFS='|' read -r column wrong; do
        refuses_job "job.yaml:6:$column: '$wrong' is not a constraint*latency.p50 <= 10 ms" \
            "constraints: '$wrong'"
    done <<'END'
20|macs 3
23|macs <= M
20|macs == 3 M
27|macs <= 3 M M
23|macs <= inf M
15|<= 3 M
20|macs =< 3 M
30|macs <= 3 M and
27|macs <= 3 M,
26|macs <= 3 M; params <= 3 M
END
}

@test "a job with things that do not exist" {
    refuses_job "job.yaml:5:8: *'nope' in search_spaces" "space: nope"
    refuses_job "nope.yaml: there is no such file" "space: ./nope.yaml"
    refuses_job "job.yaml:5:11: *'nope' in predictors*looked for nope.json" "accuracy: nope"
    refuses_job "nope.csv: *No such file" "accuracy: table:nope.csv#top1"
    refuses_job "job.yaml:5:11: 'table:*nope.csv' names no file and column" "accuracy: table:nope.csv"
    refuses_job "nas_bench_macro.csv: *acc_top1_pct_men*did you mean" \
        "accuracy: table:$TABLE#acc_top1_pct_men"
    refuses_job "job.yaml:5:9: *no device 'gpu'*did you mean 'cuda'" "device: gpu"
    refuses_job "job.yaml:5:9: device 'null' takes no '3'" "device: null:3"
    refuses_job "job.yaml:5:9: *needs a table and a column" "device: replay:x"
    refuses_job "job.yaml:5:9: *not clear from its name*macs_count" \
        "device: replay:$TABLE#acc_top1_pct_mean"
    job
    refuses 2 "hwnas: --device:1:1: there is no device 'gpu'" search job.yaml --device gpu
    refuses 2 "hwnas: --strategy:1:1: there is no strategy 'best'" search job.yaml --strategy best
    job "export: {onnx: nowhere/best.onnx}"
    refuses 1 "job.yaml:6:16: nowhere/best.onnx: cannot write the file: No such file*does its directory exist" search job.yaml
    refuses 1 "cannot create*No such file*directory" search "$REPLAY" --study nowhere/s.db
    [ ! -e job.db ]
}

@test "a predictor or table of another space" {
    printf '{"format": "hwnas.predictor", "version": 1}' >p.json
    job "accuracy: p.json"
    refuses 2 "p.json: " search job.yaml
    echo '{"format": "hwnas' >p.json
    refuses 2 "p.json:1:*not JSON" search job.yaml
    echo '{"format": "other"}' >p.json
    refuses 2 "p.json: this is not a predictor" search job.yaml
    rm p.json
    tiny
    job "accuracy: table:tiny.csv#top1_pct"
    refuses 2 "tiny.csv:2: *not an architecture of the space 'nas_bench_macro'" search job.yaml
    job "objectives: [latency]" accuracy "device: replay:tiny.csv#phone_ms"
    refuses 2 "tiny.csv:2: none of the table's 4 rows is of the space 'nas_bench_macro'; the first: *" search job.yaml
    [ ! -e job.db ]
    [ -e "$HWNAS_SRC/predictors/accel_nasbench_imagenet.json" ] || skip "the predictor is not there"
    job "accuracy: accel_nasbench_imagenet"
    refuses 2 "accel_nasbench_imagenet.json: *fitted on the space 'accel_nasbench', not *nas_bench_macro" \
        search job.yaml
}

@test "a table with a bad row: its line" {
    tiny
    cp tiny.csv good.csv
    sed -i '3s/,51,/,high,/' tiny.csv
    refuses 2 "tiny.csv:3: column 'top1_pct': 'high' is not a number" search job.yaml
    sed '4s/,.*//' good.csv >tiny.csv
    refuses 2 "tiny.csv:4: the row has 1 cells, the header has 3" search job.yaml
    sed '4s/$/,1/' good.csv >tiny.csv
    refuses 2 "tiny.csv:4: the row has more cells" search job.yaml
    sed '5s/^[48]*/55/' good.csv >tiny.csv
    refuses 2 "tiny.csv:5: *not an architecture of the space 'tiny'" search job.yaml
    sed '2s/5/"5/' good.csv >tiny.csv
    refuses 2 "tiny.csv:2: *quote" search job.yaml
    sed 's/phone_ms/phone_ms,phone_ms/' good.csv >tiny.csv
    refuses 2 "tiny.csv:1: *both called 'phone_ms'" search job.yaml
    head -n 1 good.csv >tiny.csv
    refuses 2 "tiny.csv: *no row" search job.yaml
    : >tiny.csv
    refuses 2 "tiny.csv: *empty" search job.yaml
    [ ! -e job.db ]
}

@test "a replayed column with a bad row: its line" {
    tiny
    sed -i '3s/,4$/,fast/' tiny.csv
    refuses 2 "tiny.csv:3: column 'phone_ms': 'fast' is not a number" search job.yaml
    [ ! -e job.db ]
}

@test "what is not a study, or the study of another search" {
    ends 0 search "$REPLAY" --trials 20 --study s.db
    refuses 2 "s.db: the study exists already*--resume" search "$REPLAY" --study s.db
    refuses 2 "nope.db: there is no such study*without --resume" search "$REPLAY" --resume --study nope.db
    job "space: accel_nasbench" "objectives: [macs, params]" accuracy device
    refuses 2 "s.db: this study was made with the space *not accel_nasbench*--study" search job.yaml --resume --study s.db
    /usr/bin/python3 -c 'import sqlite3; sqlite3.connect("s.db").execute("PRAGMA user_version = 99")'
    for how in "search $REPLAY --resume --study" "search $REPLAY --overwrite --study" "study show"; do
        # shellcheck disable=SC2086
        refuses 2 "s.db: the study has format 99, this hwnas knows format *a newer version" $how s.db
    done
    echo "some text that is not a study, long enough to be taken for one by its length alone" >text.db
    : >empty.db
    /usr/bin/python3 -c 'import sqlite3; sqlite3.connect("other.db").execute("CREATE TABLE t (x)")'
    head -c 3000 s.db >short.db
    for file in text empty other short; do
        cp $file.db before
        for how in "search $REPLAY --resume --study" "search $REPLAY --overwrite --study" "study show"; do
            # shellcheck disable=SC2086
            refuses 2 "$file.db: *stud" $how $file.db
            cmp $file.db before
        done
        refuses 2 "$file.db: the study exists already" search "$REPLAY" --study $file.db
    done
    [ "$(ls ./*.db*)" = "$(printf './%s.db\n' empty other s short text)" ]
}

@test "--overwrite begins anew" {
    ends 0 search "$REPLAY" --trials 20
    ends 0 search "$REPLAY" --trials 10 --seed 4 --overwrite --json
    is out "d['finished'] == 10 and d['job']['seed'] == 4"
}

@test "--overwrite keeps the old study until the new one has a trial" {
    local before first
    job
    ends 0 search job.yaml
    before=$(trials job.db)
    job "device: null"
    HWNAS_RUNNER_FAULT=crash ends 1 search job.yaml --overwrite
    says err "failed, last error"
    [ "$(trials job.db)" = "$before" ]
    HWNAS_RUNNER_FAULT=hang "$HWNAS" search job.yaml --overwrite >first.out 2>first.err 3>&- &
    first=$!
    until [ -e job.db-new ] && [ "$(/usr/bin/python3 -c 'import sqlite3
print(*sqlite3.connect("job.db-new").execute("SELECT count(*) FROM trial").fetchone())' 2>/dev/null)" = 1 ]; do
        kill -0 $first || { cat first.err; false; }
        sleep 0.02
    done
    refuses 1 "job.db: the study is in use by process $first" search job.yaml --resume
    ln -s job.db other.db
    refuses 1 "other.db: the study is in use by process $first" search job.yaml --overwrite --study other.db
    rm other.db
    kill -INT $first
    wait $first || [ $? -eq 130 ]
    says first.err "job.db: interrupted before the first trial: the old study is still there"
    [ "$(trials job.db)" = "$before" ]
    [ "$(ls job.db*)" = job.db ]
}

@test "--overwrite while somebody reads the old study" {
    job
    ends 0 search job.yaml
    /usr/bin/python3 - <<'END'
import os, sqlite3, subprocess
old = sqlite3.connect("job.db", isolation_level=None)
old.execute("PRAGMA journal_mode = WAL")
old.execute("BEGIN")
count = "SELECT count(*) FROM trial"
assert old.execute(count).fetchone() == (30,)
writer = sqlite3.connect("job.db")
writer.execute("INSERT INTO fact VALUES ('unread', 'by the reader')")
writer.commit()
writer.close()
assert os.path.exists("job.db-wal")
done = subprocess.run([os.environ["HWNAS"], "search", "job.yaml", "--overwrite", "--trials", "12"],
                      capture_output=True, text=True)
assert done.returncode == 0, done.stderr
assert old.execute(count).fetchone() == (30,)
new = sqlite3.connect("job.db")
assert new.execute(count).fetchone() == (12,)
old.close()
assert new.execute(count).fetchone() == (12,)
new.close()
END
    [ "$(ls job.db*)" = job.db ]
}

@test "a space that changed since the study was made" {
    tiny
    ends 0 search job.yaml --trials 2
    says out "Pareto front of tiny: "
    sed -i 's/out: 2/out: 3/' tiny.yaml
    refuses 2 "job.db: the space 'tiny' has changed*--study" search job.yaml --resume
}

@test "measuring stops early when a network is clearly beaten, unless that is off" {
    local measure=(search --space nas_bench_macro --accuracy nas_bench_macro_cifar10 --device null --seed 1
        --objectives accuracy,latency.p50 --strategy random --trials 40 --estimate off --ties 0 --seconds 5)
    export STILL_BY_SIZE=1
    undisturbed ends 0 "${measure[@]}" --study early.db
    undisturbed ends 0 "${measure[@]}" --study late.db --early-stop off
    refuses 2 "*early-stop is auto or off*" "${measure[@]}" --study bad.db --early-stop maybe
    /usr/bin/python3 - <<'END'
import json, sqlite3
def read(path):
    db = sqlite3.connect(path)
    rows = [(json.loads(d), v) for d, v in db.execute("SELECT detail, value FROM trial JOIN value ON"
            " value.trial = trial.number WHERE metric = 'latency.p50' ORDER BY number") if d]
    return [r for r in rows if "stop" in r[0]]
early, late = read("early.db"), read("late.db")
beaten = [d for d, _ in early if d["stop"] == "above"]
assert len(early) == len(late) and len(beaten) > len(early) / 4, (len(early), len(late), len(beaten))
assert all(6 <= d["samples"] < 30 for d in beaten)
assert all(d["stop"] == "interval" and d["samples"] >= 30 for d, _ in late)
assert all(abs(a / b - 1) < .02 for (_, a), (_, b) in zip(early, late))
END
}
