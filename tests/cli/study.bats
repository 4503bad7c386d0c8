# Several devices, goals as expressions, settings as choices, warm starts, plans, explanations.
load helpers

# A table of two devices: published latencies of a Raspberry Pi, and what a phone might need whose time
# goes with the parameters.
setup_file() {
    export TWO=$BATS_FILE_TMPDIR/two.csv
    /usr/bin/python3 - "$HWNAS_SRC/tests/data/nas_bench_201.csv" "$TWO" <<'END'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
with open(sys.argv[2], "w") as out:
    out.write("arch,top1_pct,pi_ms,phone_ms\n")
    for r in rows:
        out.write("%s,%s,%s,%.6f\n" % (r["arch"], r["c100_test_top1_pct"], r["raspi4_ms"],
                                       2 + float(r["params_count"]) / 1e5))
END
}

# two_job LINE...: a search on both.
two_job() {
    cp "$TWO" two.csv
    job "space: nas_bench_201" "accuracy: table:two.csv#top1_pct" device \
        "devices: [{name: pi, device: 'replay:two.csv#pi_ms'}, {name: phone, device: 'replay:two.csv#phone_ms'}]" \
        "objectives: [accuracy, latency.p50]" "strategy: nsga2" "budget: {trials: 150}" "$@"
}

@test "several devices: a network good on all" {
    two_job "constraints: latency.p50 <= 30 ms on pi and latency.p50 <= 8 ms on phone and params < 0.8 M"
    ends 0 search job.yaml --json
    /usr/bin/python3 - two.csv out job.db <<'END'
import csv, json, sqlite3, sys
table = {r["arch"]: r for r in csv.DictReader(open(sys.argv[1]))}
found = json.load(open(sys.argv[2]))
db = sqlite3.connect(sys.argv[3])
params = dict(db.execute("SELECT code, value FROM trial JOIN value ON trial = number"
                         " WHERE metric = 'params'"))
tried = [(-float(r["top1_pct"]), float(r["pi_ms"]), float(r["phone_ms"]), a)
         for a, r in ((a, table[a]) for a in params)]
good = [p for p in tried if p[1] <= 30 and p[2] <= 8 and params[p[3]] < .8e6]
assert found["feasible"] == len(good) and 3 < len(good) < len(tried)
front = {p[3] for p in good if not any(q != p and all(x <= y for x, y in zip(q[:3], p[:3]))
                                       and q[:3] != p[:3] for q in good)}
names = {f["arch"] for f in found["front"]}
assert names <= front and {tuple(p[:3]) for p in good if p[3] in names} == \
    {tuple(p[:3]) for p in good if p[3] in front}
for f in found["front"]:
    for name in ("pi", "phone"):
        value = f["objectives"]["latency.p50 on " + name]
        assert abs(value["value"] - float(table[f["arch"]][name + "_ms"])) < 1e-6
        assert value["source"] == "replayed" and value["low"] is None
assert found["job"]["objectives"] == ["accuracy", "latency.p50 on pi", "latency.p50 on phone"]
END
    ends 0 study show job.db
    says out "device      pi = replay:/*two.csv#pi_ms"
    says out "latency p50 on phone ms"
    says out "constraint  latency.p50 <= 30 ms on pi, kept"
}

@test "several devices: a front for each from one set of trials" {
    two_job "fronts: each" "constraints: [latency.p50 <= 30 ms on pi]" "export: {yaml: best.yaml}"
    ends 0 search job.yaml --json
    says err "wrote best-pi.yaml*wrote best-phone.yaml"
    /usr/bin/python3 - two.csv out job.db <<'END'
import csv, json, sqlite3, sys
table = {r["arch"]: r for r in csv.DictReader(open(sys.argv[1]))}
found = json.load(open(sys.argv[2]))
tried = [c for c, in sqlite3.connect(sys.argv[3]).execute("SELECT code FROM trial")]
assert len(tried) == 150 == found["feasible"]
for name, limit in (("pi", 30), ("phone", 1e9)):
    points = {(-float(table[a]["top1_pct"]), float(table[a][name + "_ms"])) for a in tried
              if float(table[a][name + "_ms"]) <= limit}
    best = {p for p in points if not any(q != p and q[0] <= p[0] and q[1] <= p[1] for q in points)}
    front = found["fronts"][name]["front"]
    assert {(-float(table[f["arch"]]["top1_pct"]), float(table[f["arch"]][name + "_ms"]))
            for f in front} == best and len(front) == len(best) > 3
    assert found["fronts"][name]["winner"] == front[0]
    assert 0 < found["fronts"][name]["hypervolume"]["share"] < 1
END
    says out '"fronts"'
    ends 0 study show job.db
    says out "Pareto front of nas_bench_201 on pi: *Pareto front of nas_bench_201 on phone: "
}

@test "several devices: a front for each, where one device has no objective" {
    two_job "fronts: each" "objectives: [latency.p50 on pi]" "budget: {trials: 20}"
    ends 0 search job.yaml --json
    is out 'd["fronts"]["pi"]["hypervolume"] is not None'
    ends 0 study show job.db
}

@test "the summary has the hypervolume of a front with its reference, and its knee" {
    for objectives in "accuracy, params" "accuracy, latency.p50" "accuracy, latency.p50, params, macs"; do
        two_job "objectives: [$objectives]" "constraints: [params < 0.9 M]"
        ends 0 search job.yaml --json --overwrite
        mv out found
        ends 0 study trials job.db --json
        /usr/bin/python3 - found out >expected <<'END'
import json, sys
found, trials = (json.load(open(path)) for path in sys.argv[1:])
told, names = found["hypervolume"], found["job"]["objectives"]

def point(trial):
    return tuple((-1 if n == "accuracy" else 1) * trial["objectives"][n]["value"] for n in names)

def volume(points, reference):                     # by slices: from one value of the first objective to the next
    if not reference:
        return 1.0 if points else 0.0
    edges = sorted({p[0] for p in points if p[0] < reference[0]}) + [reference[0]]
    return sum((b - a) * volume({p[1:] for p in points if p[0] <= a}, reference[1:]) for a, b in zip(edges, edges[1:]))

feasible = [point(t) for t in trials["trials"] if t["objectives"]["params"]["value"] < 0.9]
assert len(feasible) == found["feasible"] > 100
front = {point(t): t for t in found["front"]}
worst, best = ([of(p[k] for p in some) for k in range(len(names))]
               for of, some in ((max, feasible), (min, front)))
sign = [-1 if n == "accuracy" else 1 for n in names]
for corner, key in ((worst, "reference"), (best, "best")):
    for n, s, value in zip(names, sign, corner):
        assert abs(told[key][n]["value"] - s * value) < 1e-9 and told[key][n]["unit"], (told, corner)
expected, whole = volume(set(front), worst), 1.0
for low, high in zip(best, worst):
    whole *= high - low
assert abs(told["value"] / expected - 1) < 1e-9 and abs(told["share"] - expected / whole) < 1e-9, (told, expected)
assert told["share_error"] == 0 and 0 < told["share"] < 1
ends = [max(p[k] for p in front) for k in range(len(names))]

def far(p):
    return sum((x - low) / (high - low) for x, low, high in zip(p, best, ends))
knee = min(front, key=far)
assert front[knee]["trial"] == told["knee"], (front[knee], told)
if len(names) == 2:                                # farthest from the line through the ends
    (ax, ay), (bx, by) = min(front), max(front)
    bend = min(front, key=lambda p: (ax - p[0]) * (by - ay) - (ay - p[1]) * (bx - ax))
    assert front[bend]["trial"] == told["knee"]
print(f"hypervolume {100 * told['share']:.1f} % of the box")
print(f"knee        trial {told['knee']}: accuracy")
END
        ends 0 study show job.db
        [ "$(wc -l <expected)" = 2 ]
        while read -r line; do
            grep -qF "$line" out || { cat expected out; return 1; }
        done <expected
    done
    two_job "objectives: [accuracy]"
    ends 0 search job.yaml --json --overwrite
    is out "d['hypervolume']['knee'] is None and d['failed_by'] == {}"
}

@test "the same front whatever the number of threads" {
    two_job
    ends 0 search job.yaml --json --threads 1 --study a.db
    mv out a
    OMP_NUM_THREADS=2 ends 0 search job.yaml --json --threads 2 --study b.db
    [ "$(json a "json.dumps(d['front'])")" = "$(json out "json.dumps(d['front'])")" ]
}

@test "several devices and limits: kill -9, then --resume, to the same end" {
    two_job "constraints: latency.p50 <= 30 ms on pi and params < 0.8 M" "budget: {trials: 1500}"
    ends 0 search job.yaml --json --study whole.db
    mv out whole
    /usr/bin/python3 - "$HWNAS" <<'END'
import json, os, subprocess, sys, time
seconds = json.load(open("whole"))["wall_seconds"]

def kill_often(seconds):
    """Until a search comes to its end; how often it was killed."""
    for sitting in range(60):
        resume = ["--resume"] if os.path.exists("s.db") else []
        search = subprocess.Popen([sys.argv[1], "search", "job.yaml", "--study", "s.db", *resume],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(seconds * .15 * (1 + sitting / 4))
        search.kill()
        if search.wait() == 0:
            return sitting
    return 60

# The whole search may have been slower than these are: others used the machine.
killed = kill_often(seconds)
while killed < 2 and seconds > 1e-3:
    os.remove("s.db")
    seconds /= 2
    killed = kill_often(seconds)
assert killed >= 2, killed
END
    ends 0 search job.yaml --json --study s.db --resume
    trials whole.db >whole.txt
    trials s.db | cmp - whole.txt
    [ "$(json whole "d['front']")" = "$(json out "d['front']")" ]
}

@test "every key of a job is a flag, and flags alone are a job" {
    local key
    ends 0 search "$REPLAY" --json --trials 40 --study a.db
    mv out a
    ends 0 search --space nas_bench_macro --accuracy "table:$TABLE#acc_top1_pct_mean" \
        --device "replay:$TABLE#macs_count" --objectives "accuracy, macs" --strategy nsga2 \
        --trials 40 --seed 1 --json
    [ -e nas_bench_macro.db ]
    [ "$(json a "d['front']")" = "$(json out "d['front']")" ]
    ends 0 search --help
    for key in space accuracy device devices threads batch price objectives constraints fronts \
        strategy population trials minutes money improvement until seed warm-start interval seconds ties confirm \
        timeout memory study onnx pytorch yaml; do
        grep -q -- "--$key\b" out || says out "--$key"
    done
    two_job # other devices than the file's, and goals that name them
    ends 0 search job.yaml --json --devices "[{name: one, device: 'replay:two.csv#pi_ms'}]" \
        --constraints "latency.p50 <= 20 ms on one" --trials 30
    is out "d['job']['objectives'] == ['accuracy', 'latency.p50']"
    is out "all(f['objectives']['latency.p50']['value'] <= 20 for f in d['front'])"
    refuses 2 "--constraints:1:18: *'MB'*not a unit" search job.yaml -c "latency.p50 <= 8 MB" --study x.db
}

@test "goals that cannot be: told before the first trial, with their place" {
    local line
    while IFS='|' read -r pattern line; do
        two_job "$line"
        sed -i 's/trials: 150/trials: 5/' job.yaml
        refuses 2 "job.yaml:$pattern" search job.yaml
        [ ! -e job.db ]
    done <<'END'
7:40: 'latency.p50 <= 5 ms on pi' and 'latency.p50 >= 9 ms on pi' exclude each other|constraints: latency <= 5 ms on pi and latency >= 9 ms
7:37: *no device called 'ph'*did you mean 'pi'|constraints: latency.p50 <= 5 ms on ph
3:30: the device 'replay:*pi_ms' does not give latency.p99|objectives: [accuracy, latency.p99 on pi]
3:30: the device 'replay:*pi_ms' does not give energy|objectives: [accuracy, energy on pi]
3:30: cost needs the price of 'pi' an hour*add price|objectives: [accuracy, cost on pi]
6:11: the strategy 'regularized-evolution' has one objective, not 3|strategy: regularized-evolution
6:11: a budget of 5 trials is too small for 'bayesian'*'auto'|strategy: bayesian
7:9: fronts is each or together, not 'both'*together*each|fronts: both
6:*: two devices are called 'replay-two.csv-pi_ms'*write {name|devices: ['replay:two.csv#pi_ms', 'replay:two.csv#pi_ms']
7:8: batch needs 1 to 16 values|batch: {values: []}
7:24: batch has 8 twice|batch: {values: [1, 8, 8]}
7:18: there is no precision 'fp32'*did you mean 'f32'*s8|dtype: {values: [fp32, s8]}
7:8: batch is a choice, but no device of the job runs with it|batch: {values: [1, 8]}
END
}

@test "a device without an energy counter says so" {
    ls /sys/class/powercap/intel-rapl:*/energy_uj 2>/dev/null | xargs -r cat 2>/dev/null | grep -q . &&
        skip "this machine has a counter that may be read"
    job "device: 'null'" "objectives: [accuracy, energy]"
    refuses 2 "job.yaml:*: the device 'null' does not give energy: no counter*powercap" search job.yaml
}

@test "price, throughput and cost: what they follow from" {
    job "device: {name: box, device: 'replay:$TWO#pi_ms', price: 0.36}" "space: nas_bench_201" \
        "accuracy: table:$TWO#top1_pct"
    sed -i 's/^device: /devices: [/; /^devices/s/$/]/' job.yaml
    ends 0 search job.yaml --json --objectives accuracy,throughput,cost --trials 20
    is out "all(abs(o['throughput']['value'] * o['latency.p50']['value'] - 1000) < 1e-6 and
        abs(o['cost']['value'] - .36 / 3600 * 1e6 * o['latency.p50']['value'] / 1000) < 1e-9
        for o in (f['objectives'] for f in d['front']))"
}

@test "batch, threads and precision as choices of the search" {
    alone
    job "device: 'null'" "objectives: [accuracy, throughput]" "batch: {values: [1, 4]}" \
        "threads: {values: [1, 2]}" "dtype: {values: [f32, s8]}" "budget: {trials: 48}" \
        "strategy: random" "measure: {seconds: 0.05}"
    ends 0 search job.yaml --json
    is out "all(f['batch'] in (1, 4) and f['threads'] in (1, 2) and f['dtype'] in ('f32', 's8')
        for f in d['front'])"
    is out "d['job']['dtype'] == ['f32', 's8']"
    /usr/bin/python3 - <<'END'
import sqlite3
rows = sqlite3.connect("job.db").execute(
    "SELECT code, a.value, b.value, c.value FROM trial JOIN value a ON a.trial = number AND a.metric ="
    " 'throughput' JOIN value b ON b.trial = number AND b.metric = 'latency.p50'"
    " JOIN value c ON c.trial = number AND c.metric = 'macs'").fetchall()
assert len(rows) == 48
seen = set()
for code, throughput, latency, macs in rows:
    settings = dict(part.split("=") for part in code.split(","))
    seen.add((settings["batch"], settings["threads"], settings["dtype"]))
    assert abs(throughput * latency / int(settings["batch"]) - 1) < 1e-9, code
    assert 7e6 < macs < 1.1e8, "of one inference, not of the batch"
assert len(seen) == 8, seen
END
    ends 0 export job.db --best --format yaml --out best.yaml
    ends 0 space check best.yaml
    ends 0 search job.yaml --resume --trials 54 --json
    is out "d['finished'] == 54"
}

@test "a search ends by itself" {
    job "strategy: nsga2" budget
    ends 0 search job.yaml --json
    is out "100 <= d['finished'] < 2000 and d['finished'] % 10 == 0"
    is out "d['ended'].startswith('the front improved by less than 0.1 % over the last ')"
    mv out first
    ends 0 search job.yaml --json --resume
    is out "d['finished'] == $(json first "d['finished']")"
    ends 0 search job.yaml --json --improvement "5 %" --study coarse.db
    is out "d['finished'] < $(json first "d['finished']")"
    ends 0 search job.yaml --json --until "accuracy >= 92 % and macs <= 90 M" --study until.db
    is out "d['ended'] == 'the target is met'"
    is out "any(f['objectives']['accuracy']['value'] >= 92 and f['objectives']['macs']['value'] <= 90
        for f in d['front'])"
    job
    ends 0 search job.yaml --json --study n.db
    is out "d['ended'] == 'all trials were made'"
}

@test "a search that finds no more networks does not say that it has tried all" {
    job "space: mnist_mlp" device accuracy "objectives: [params]" "strategy: random" # which has one network
    ends 0 search job.yaml --json
    is out "d['finished'] == 1 and d['ended'] == 'each network of the space \'mnist_mlp\' has been tried (1)'"
    # Where g is 1 there are some 10^30 networks, which nobody finds, and where it is 0 there is one.
    /usr/bin/python3 - >rare.yaml <<'END'
import random
random.seed(5)
rows = [[random.randrange(1000000) + v * 1000000 for v in range(8)] for i in range(40)]
print(f"""hwnas: 1
name: rare
input: {{image: [3, 8, 8]}}
choices:
  g: {{values: [0, 1]}}
  a: {{values: {rows}}}
constraints:
  - g == 0 or sum(a) % 999983 == 7
  - g == 1 or sum(a) < {sum(row[0] for row in rows) + 1}
network:
  - conv: {{out: "a[0] % 7 + 1", kernel: 3, pad: 1}}
  - global_avg_pool""")
END
    job "space: rare.yaml" device accuracy "objectives: [params]" "strategy: random"
    ends 0 search job.yaml --json --overwrite
    is out "d['finished'] < 30 and d['ended'].startswith('no new network of the space \'rare\' was found beside ')"
}

@test "a warm start takes trials over, and measures nothing twice" {
    export HWNAS_RUNNER=${HWNAS%/*}/tests/cli/still_runner
    job "device: 'null'" "objectives: [accuracy, latency.p50]" "measure: {seconds: 0.05, early-stop: off}" \
        "budget: {trials: 10}"
    ends 0 search job.yaml --study old.db
    ends 0 search job.yaml --json --warm-start old.db --study new.db --seed 5
    is out "(d['finished'], d['warm']) == (20, 10)"
    /usr/bin/python3 - <<'END'
import sqlite3
def rows(name, of):
    return sqlite3.connect(name).execute(
        "SELECT code, value, low, high FROM trial JOIN value ON trial = number"
        " WHERE metric = 'latency.p50' AND number < 10 ORDER BY " + of).fetchall()
assert rows("old.db", "finish_order") == rows("new.db", "number")
details = [d for d, in sqlite3.connect("new.db").execute("SELECT detail FROM trial WHERE number < 10")]
assert all('"of_study":"old.db"' in d and "samples" not in d for d in details), details
END
    ends 0 search job.yaml --json --warm-start old.db --study new.db --seed 5 --resume --trials 12
    is out "(d['finished'], d['warm']) == (22, 10)"
    # What was cut short, as the network was beaten, is not a number for another search; nor is what equal
    # networks had of it.
    /usr/bin/python3 - <<'END'
import sqlite3
db = sqlite3.connect("old.db")
db.execute("UPDATE trial SET stopped_early = 1 WHERE number = 3")
db.commit()
END
    ends 0 search job.yaml --json --warm-start old.db --study short.db --seed 5
    is out "d['warm'] == 9"
    # Another device measures anew, so nothing can be taken over; what was best is measured first.
    ends 0 search job.yaml --json --warm-start old.db --study ref.db --threads 2 --trials 3
    is out "(d['finished'], d['warm']) == (3, 0)"
    ends 0 study show old.db --json
    trials ref.db | head -3 | cut -d ' ' -f 2 >begun
    json out "'\n'.join(f['arch'] for f in d['front'])" >best
    /usr/bin/python3 - <<'END'
begun, best = (open(name).read().split() for name in ("begun", "best"))
assert begun[:len(best)] == best[:3], (begun, best)
END
    job "space: nas_bench_201" "accuracy: table:$TWO#top1_pct" "device: replay:$TWO#pi_ms"
    refuses 2 "old.db: the study is of another space" search job.yaml --warm-start old.db
    refuses 2 "nope.db: there is no such study" search job.yaml --warm-start nope.db
    [ ! -e job.db ]
}

@test "a plan: what would be done, and nothing written" {
    two_job "constraints: [latency.p50 <= 30 ms on pi]"
    rm -f out err
    ls >before
    "$HWNAS" search job.yaml --dry-run >"$BATS_TEST_TMPDIR/plan"
    ls >"$BATS_TEST_TMPDIR/after"
    cmp before "$BATS_TEST_TMPDIR/after"
    says "$BATS_TEST_TMPDIR/plan" "nas_bench_201: 15625 encodings*strategy     nsga2: "
    says "$BATS_TEST_TMPDIR/plan" "latency.p50 <= 30 ms on pi*looked up    pi = replay:*150 trials*Nothing was written."
    ends 0 search job.yaml --dry-run --json --strategy auto
    is out "d['format'] == 'hwnas.dry_run' and d['encodings_exact'] == '15625' and d['trials'] == 150"
    is out "d['strategy'] in ('bayesian', 'nsga2') and d['why'] and d['seconds_a_trial'] > 0"
    ends 0 search job.yaml --study s.db --trials 5
    ends 0 search job.yaml --study s.db --dry-run
    says out "s.db, which exists: go on with --resume"
    # A limit that the smallest network misses is no reason to refuse: it need not be the fastest.
    ends 0 search job.yaml --dry-run -c "latency.p50 <= 1 us on pi"
    says out "note: the smallest network misses latency.p50 <= 1 us on pi, with * [mu]s"
    ends 0 search job.yaml --dry-run --json -c "latency.p50 <= 1 us on pi"
    is out "'1 us on pi' in d['missed']"
}

@test "a job may move, and its tables with it; other contents are another search" {
    mkdir a
    two_job
    mv job.yaml two.csv a
    ends 0 search a/job.yaml --trials 20 --study s.db
    mv a b
    ends 0 search b/job.yaml --trials 30 --study s.db --resume --json
    is out "d['finished'] == 30 and '/b/two.csv' in d['job']['accuracy']"
    ends 0 explain s.db
    sed -i '5s/[0-9]$/0/;6s/,[0-9.]*$/,99/' b/two.csv
    refuses 2 "s.db: the accuracy has other contents since this study was made" \
        search b/job.yaml --trials 40 --study s.db --resume
}

@test "explain: neighbours, what choices cost, what a looser limit buys" {
    two_job "devices: [{name: pi, device: 'replay:two.csv#pi_ms'}]" \
        "constraints: [latency.p50 <= 30 ms]"
    ends 0 search job.yaml
    ends 0 explain job.db
    says out "It is the winner: of "
    says out "latency.p50 <= 30 ms: kept by "
    says out "One change away (24 networks"
    says out "What a looser limit would buy:"
    ends 0 explain job.db --measure
    says out "- nothing is measured on 'replay:/*two.csv#pi_ms', which runs no networks here"
    ends 0 explain job.db --measure --json
    is out "d['measured'] and d['unmeasured'] and d['stopped'] is None and d['unbuilt'] == []"
    /usr/bin/python3 - two.csv out job.db <<'END'
import csv, json, sqlite3, sys
table = {r["arch"]: r for r in csv.DictReader(open(sys.argv[1]))}
e = json.load(open(sys.argv[2]))
tried = {c: n for n, c in sqlite3.connect(sys.argv[3]).execute("SELECT number, code FROM trial")}
mine = e["trial"]["arch"]
assert e["is_winner"] and e["is_on_front"]
assert sorted(n["arch"] for n in e["neighbours"]) == sorted(
    a for a in table if sum(x != y for x, y in zip(a, mine)) == 1)
for n in e["neighbours"]:
    row, o = table[n["arch"]], n["objectives"]
    assert abs(o["accuracy"]["value"] - float(row["top1_pct"])) < 1e-9
    assert abs(o["latency.p50"]["value"] - float(row["pi_ms"])) < 1e-9
    assert n["feasible"] == (float(row["pi_ms"]) <= 30)
    if n["arch"] in tried:
        assert n["trial"] is not None
    d = n["differences"]["latency.p50"]
    assert abs(d["value"] - (float(row["pi_ms"]) - float(table[mine]["pi_ms"]))) < 1e-9
    assert d["by"] == "values" and d["low"] is None and n["not_measured"] is None
# The smallest relaxation that any network known to the study asks for.
known = set(tried) | {n["arch"] for n in e["neighbours"]}
better = [(float(table[a]["pi_ms"]), float(table[a]["top1_pct"])) for a in known
          if float(table[a]["pi_ms"]) > 30 and float(table[a]["top1_pct"]) > float(table[mine]["top1_pct"])]
assert better and e["relaxations"], "the table has more accurate networks beyond 30 ms"
ms, accuracy = min(better)
assert abs(e["relaxations"][0]["value"] - ms) < 1e-6
assert abs(e["relaxations"][0]["gain"] - (accuracy - float(table[mine]["top1_pct"]))) < 1e-6
END
    ends 0 explain job.db --trial 0
    says out "trial 0: accuracy "
    refuses 2 "job.db: the study has 150 trials, none is 150" explain job.db --trial 150
    refuses 2 "nope.db: there is no such study" explain nope.db
    rm two.csv
    refuses 2 "two.csv" explain job.db
}

@test "explain: a difference that the decimals do not show has no minus" {
    awk -F, -v OFS=, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "acc_top1_pct_mean") c = i }
        NR > 1 { $c = $1 ~ /0$/ ? 70.004 : $1 ~ /2$/ ? 69.9 : 70 } { print }' "$TABLE" >near.csv
    job "accuracy: table:near.csv#acc_top1_pct_mean"
    ends 0 search job.yaml
    ends 0 explain job.db
    says out "70.00 (+0.00)"
    not grep -qe '-0\.0*)' out
}

@test "explain: latencies that were not measured are estimates, and say so" {
    job "device: 'null'" "objectives: [accuracy, latency.p50]" "measure: {seconds: 0.05, ties: 0, confirm: 0, estimate: off}" \
        "budget: {trials: 30}"
    ends 0 search job.yaml
    ends 0 explain job.db --json
    is out "d['estimated_from'] == 30 and d['estimate_errors']['latency.p50'] > 0"
    is out "{n['objectives']['latency.p50']['source'] for n in d['neighbours'] if n['trial'] is None}
        == {'estimated'}"
    is out "all(n['objectives']['accuracy']['source'] == 'replayed' for n in d['neighbours'])"
    ends 0 explain job.db
    says out "~ latency.p50 estimated from the choices of 30 measured networks of this study"
}

@test "explain: latencies come from the parts that the study timed, where there are enough" {
    export STILL_BY_SIZE=1 # a millisecond for each operator, give or take a percent
    undisturbed ends 0 search --space nas_bench_macro --accuracy nas_bench_macro_cifar10 --device null --seed 1 \
        --objectives accuracy,latency.p50 --strategy random --trials 60 --ties 0 --confirm 0 --seconds 1 --study s.db
    ends 0 explain s.db --json
    cp out parts.json
    is out "d['part_errors']['latency.p50'] < 0.1 and not d['estimate_errors']"
    ends 0 explain s.db
    says out "~ latency.p50 estimated from the parts that this study timed"
    # It is what a measurement then gives.
    local code
    json parts.json "'\n'.join(n['arch'] for n in d['neighbours'] if n['trial'] is None)" | head -3 >codes
    while read -r code; do
        undisturbed ends 0 profile nas_bench_macro --arch "$code" --device null --seconds 1 --json
        is out "abs(d['rows'][0]['p50_seconds'] * 1e3 / [n['objectives']['latency.p50']['value'] for n in json.load(open('parts.json'))[
            'neighbours'] if n['arch'] == '$code'][0] - 1) < 0.1"
    done <codes
    [ -s codes ]
    # What a change costs does not hang on how lucky the network's own measurement was.
    /usr/bin/python3 - parts.json s.db <<'END'
import json, sqlite3, sys
db = sqlite3.connect(sys.argv[2])
number = json.load(open(sys.argv[1]))["trial"]["trial"]
assert db.execute("UPDATE value SET value = 0.8 * value, low = 0.8 * low, high = 0.8 * high"
                  " WHERE trial = ? AND metric = 'latency.p50'", [number]).rowcount == 1
db.commit()
END
    ends 0 explain s.db --trial "$(json parts.json "d['trial']['trial']")" --json
    /usr/bin/python3 - parts.json out <<'END'
import json, sys
shares = []
for e in (json.load(open(f)) for f in sys.argv[1:]):
    own = e["trial"]["objectives"]["latency.p50"]["value"]
    shares.append({n["arch"]: n["objectives"]["latency.p50"]["value"] / own - 1 for n in e["neighbours"]
                   if n["objectives"]["latency.p50"]["source"] == "estimated"})
assert len(shares[0]) >= 10 and shares[0].keys() == shares[1].keys()
assert all(abs(share - shares[1][arch]) < 1e-9 for arch, share in shares[0].items())
END
}

@test "explain: an estimate that the study has kept is one, for a neighbour and for the network itself" {
    export STILL_BY_SIZE=1
    undisturbed ends 0 search --space nas_bench_macro --accuracy nas_bench_macro_cifar10 --device null --seed 1 \
        --objectives accuracy,latency.p50 --strategy random --trials 60 --ties 0 --confirm 0 --seconds 1 --study s.db
    # Of two neighbours the second is kept as an estimate of three times what it took.
    local a b ratio
    /usr/bin/python3 - >pair <<'END'
import sqlite3
db = sqlite3.connect("s.db")
number = dict(db.execute("SELECT code, number FROM trial"))
a, b = next((number[a], number[b]) for a in number for b in number if sum(x != y for x, y in zip(a, b)) == 1)
took = dict(db.execute("SELECT trial, value FROM value WHERE metric = 'latency.p50'"))
db.execute("UPDATE value SET source = 'estimated', value = 3 * value, low = 2 * value, high = 4 * value"
           " WHERE trial = ? AND metric IN ('latency.p50', 'throughput')", [b])
db.commit()
print(a, b, took[a] / took[b])
END
    read -r a b ratio <pair
    ends 0 explain s.db --trial "$a" --json
    is out "[(n['differences']['latency.p50']['by'], abs(n['objectives']['latency.p50']['value'] * $ratio /
        d['trial']['objectives']['latency.p50']['value'] - 1) < 0.1) for n in d['neighbours'] if n['trial'] == $b] == [('parts', True)]"
    ends 0 explain s.db --trial "$b" --json
    is out "[(n['differences']['latency.p50']['by'], n['differences']['latency.p50']['value']) for n in d['neighbours']
        if n['trial'] == $a] == [('values', None)]"
    ends 0 explain s.db --trial "$b"
    says out "- latency.p50: no difference is told of a measured value and an estimate; --measure measures both"
    # Measured on a machine that becomes slower, all stands at one level, which is told.
    STILL_GROWS=1 undisturbed ends 0 explain s.db --trial "$b" --measure --json
    /usr/bin/python3 - "$a" "$ratio" <<'END'
import json, sys
e = json.load(open("out"))
level = e["own_now"]["latency.p50"]["value"]
rows = [(n["trial"], n["objectives"]["latency.p50"]["value"], n["differences"]["latency.p50"]) for n in e["neighbours"]]
turns = [d["own"] for _, _, d in rows if d["by"] == "turns"]
assert len(turns) >= 3 and min(turns) < 0.95 * max(turns) and min(turns) <= level <= max(turns), (turns, level)
assert all(abs(value - d["value"] - level) < 1e-9 for _, value, d in rows), rows
assert [abs(value / level / float(sys.argv[2]) - 1) < 0.03 for t, value, _ in rows if t == int(sys.argv[1])] == [True]
END
    STILL_GROWS=1 undisturbed ends 0 explain s.db --trial "$b" --measure
    says out "latency.p50 measured now: "
    says out "turns with the network itself ($(grep -c ' =[0-9]' out) times)"
}

@test "explain --measure: what one device could not measure is told of it, and another one measures" {
    [ "$(nproc)" -ge 2 ] || skip "needs two cores"
    # The machine of the first device, the one with one thread, is never at rest.
    cat >runner <<END
#!/bin/sh
if [ -e "$PWD/shared" ] && [ "\$OMP_NUM_THREADS" = 1 ]; then export STILL_SHARED=1; fi
exec "${HWNAS%/*}/tests/cli/still_runner" "\$@"
END
    chmod +x runner
    job "devices: [{name: a, device: 'null', threads: 1}, {name: b, device: 'null', threads: 2}]" device \
        "objectives: [accuracy, latency.p50]" "strategy: random" "budget: {trials: 2}" \
        "measure: {seconds: 0.2, ties: 0, confirm: 0}"
    HWNAS_RUNNER=$PWD/runner ends 0 search job.yaml
    touch shared
    HWNAS_RUNNER=$PWD/runner ends 0 explain job.db --measure --json
    is out "len(d['neighbours']) > 10 and all(n['differences']['latency.p50 on b']['by'] == 'turns' and
        n['not_measured'].startswith('on a: no round was whole in the time') and ' on b' not in n['not_measured']
        for n in d['neighbours'])"
}

@test "explain --measure: neighbours take turns with the network, and differ as the device does" {
    # Each network has a pace of its own, which is known: what `profile` says of it. One in 16 cannot be compiled.
    export STILL_BY_NETWORK=1
    undisturbed ends 0 search --space nas_bench_macro --accuracy nas_bench_macro_cifar10 --device null --seed 1 \
        --objectives accuracy,latency.p50 --strategy random --trials 12 --ties 0 --confirm 0 --seconds 0.5 --study s.db
    sha256sum s.db >before
    undisturbed ends 0 explain s.db --measure --json
    sha256sum --check --quiet before
    cp out measured.json
    json out "'\n'.join([d['trial']['arch']] + [n['arch'] for n in d['neighbours']])" >codes
    while read -r code; do
        undisturbed "$HWNAS" profile nas_bench_macro --arch "$code" --device null --seconds 0.5 --json >>pace.jsonl || true
    done <codes
    /usr/bin/python3 - measured.json pace.jsonl <<'END'
import json, sys
e, pace, text = json.load(open(sys.argv[1])), {}, open(sys.argv[2]).read()
while text.strip():
    profile, end = json.JSONDecoder().raw_decode(text.lstrip())
    text = text.lstrip()[end:]
    row = profile["rows"][0]
    pace[row["arch"]] = row["p50_seconds"] * 1e3 if row["status"] == "ok" else None
own = e["trial"]["objectives"]["latency.p50"]["value"]
ran = [n for n in e["neighbours"] if n["not_measured"] is None]
failed = [n for n in e["neighbours"] if n["not_measured"] is not None]
assert len(ran) >= 10 and failed and all(pace[n["arch"]] is None for n in failed)
assert all("cannot do this network" in n["not_measured"] for n in failed), failed
for n in ran:
    d, value = n["differences"]["latency.p50"], n["objectives"]["latency.p50"]
    truth = own * (pace[n["arch"]] / pace[e["trial"]["arch"]] - 1)
    assert d["by"] == "turns" and d["rounds"] >= 6 and d["low"] <= d["value"] <= d["high"], d
    assert abs(d["value"] - truth) < 0.01 * own, (d, truth)
    assert value["source"] == "measured" and abs(value["value"] - own - d["value"]) < 1e-9
END
    # Text says the same, and a signal leaves what is there.
    : >spans
    STILL_WAITS=0.1 STILL_SPANS=$PWD/spans HWNAS_RUNNER=${HWNAS%/*}/tests/cli/still_runner \
        "$HWNAS" explain s.db --measure >out 2>err 3>&- &
    local id=$! got=0
    until [ "$(grep -c - spans)" -ge 6 ]; do sleep 0.05; done
    kill -INT "$id"
    wait "$id" || got=$?
    [ "$got" -eq 130 ]
    says out "= measured now, each in turns with the network itself ("
    says out "- measuring ended early, the rest is as it was known: interrupted"
    # A device that is not there, or another one.
    HWNAS_RUNNER=$PWD/none refuses 1 "*$PWD/none*" explain s.db --measure
    /usr/bin/python3 -c "
import sqlite3
db = sqlite3.connect('s.db')
db.execute('UPDATE fact SET value = replace(value, \'\"threads\":1\', \'\"threads\":7\') WHERE key = \'devices\'')
assert '7' in db.execute('SELECT value FROM fact WHERE key = \'devices\'').fetchone()[0]
db.commit()"
    HWNAS_RUNNER=${HWNAS%/*}/tests/cli/still_runner \
        refuses 2 "s.db: the trials of this study were measured on another 'null'" explain s.db --measure
}

@test "explain --measure on this processor, of right results" {
    cat >tiny.yaml <<'END'
hwnas: 1
name: tiny
input: {image: [3, 32, 32]}
choices:
  c: {each_of: 2, values: [8, 64]}
network:
  - for: {out: c}
    do: [{conv: {out: out}}, relu]
  - global_avg_pool
  - flatten
  - linear: {out: 2}
END
    ends 0 search --space tiny.yaml --device cpu --objectives latency.p50,params --strategy random --trials 4 --ties 0 \
        --confirm 0 --seconds 0.2 --study s.db
    ends 0 explain s.db --measure --json
    is out "len(d['neighbours']) == 2 and d['stopped'] is None and d['measured']"
    is out "any(n['not_measured'] is None and n['differences']['latency.p50']['by'] == 'turns' and
        n['objectives']['latency.p50']['source'] == 'measured' for n in d['neighbours'])"
    # A time of a wrong result is no time.
    export STILL_COMPUTES=1
    undisturbed ends 0 search --space tiny.yaml --device null --objectives latency.p50,params --strategy random --trials 4 \
        --ties 0 --confirm 0 --study w.db
    STILL_WRONG=all undisturbed ends 0 explain w.db --measure --json
    is out "all('wrong' in n['not_measured'] and n['differences']['latency.p50']['by'] == 'values' for n in d['neighbours'])"
}

@test "near ties on the front are measured again, in turns" {
    # All networks take the same time, and nothing disturbs them: most of the front is a tie.
    job "device: 'null'" "objectives: [accuracy, latency.p50]" "budget: {trials: 30}" \
        "measure: {seconds: 0.5, interval: 1, ties: 100}"
    undisturbed ends 0 search job.yaml --json
    says out '"rounds": '
    # What the strategy was told stays as it was.
    /usr/bin/python3 - <<'END'
import math, sqlite3
db = sqlite3.connect("job.db")
again = db.execute("SELECT * FROM again").fetchall()
assert len({row[0] for row in again}) > 2, again
for trial, metric, value, low, high, rounds in again:
    assert low <= value <= high and rounds >= 6
    first, = db.execute("SELECT value FROM value WHERE trial = ? AND metric = ?",
                        (trial, metric)).fetchone()
    assert first != value
# Together they lie where they lay.
pairs = db.execute("SELECT a.value, v.value FROM again a JOIN value v USING (trial, metric)"
                   " WHERE metric = 'latency.p50'").fetchall()
assert abs(math.prod(a / b for a, b in pairs) ** (1 / len(pairs)) - 1) < .05, pairs
END
    undisturbed ends 0 search job.yaml --json --resume --trials 32
    is out "d['finished'] == 32"
}

@test "the front's end is confirmed by fresh measurements, which are published" {
    job "device: 'null'" "objectives: [accuracy, latency.p50]" "constraints: [latency.p50 <= 35 ms]" \
        "budget: {trials: 60}" "measure: {estimate: off, ties: 0, confirm: 100}"
    export STILL_BY_SIZE=1 STILL_BY_NETWORK=1 STILL_NOISE=0.02,0.02,20,0.1 STILL_CLOCK=$PWD/clock
    undisturbed ends 0 search job.yaml --json
    is out "any(c['trial'] == d['winner']['trial'] for c in d['confirmed'])"
    is out "all(4 <= c['rounds'] <= 12 and 4 <= c['references'] <= 8 and c['low'] < c['value'] < c['high'] != c['first']
        for c in d['confirmed'])"
    is out "d['winner']['objectives']['latency.p50']['high'] <= 35"
    # Published is what was confirmed; the first measurement stays in the history.
    is out "all(abs(f['objectives']['latency.p50']['value'] - 1e3 * c['value']) < 1e-9
        for f in d['front'] for c in d['confirmed'] if f['trial'] == c['trial'])"
    /usr/bin/python3 - <<'END'
import json, sqlite3
found = json.load(open("out"))["confirmed"]
db = sqlite3.connect("job.db")
for c in found:
    first, = db.execute("SELECT value FROM value WHERE trial = ? AND metric = ?", (c["trial"], c["metric"])).fetchone()
    assert abs(first / c["first"] - 1) < 1e-12
END
    ends 0 study show job.db
    says out "confirmed   trial * [mu]s at first, * fresh rounds beside * other networks"
    # What was confirmed is not confirmed again.
    local before after
    before=$(wc -c <clock)
    undisturbed ends 0 search job.yaml --json --resume --trials 60
    after=$(wc -c <clock)
    [ "$after" -le $((before + 2)) ]
}

@test "successive halving: short measurements first, and only whole ones on the front" {
    job "device: 'null'" "objectives: [accuracy, latency.p50]" "strategy: successive-halving" \
        "budget: {trials: 16}" "measure: {seconds: 0.02}"
    ends 0 search job.yaml --json
    is out "d['front'] and all('rung' not in f for f in d['front'])"
    /usr/bin/python3 - <<'END'
import sqlite3
rows = sqlite3.connect("job.db").execute("SELECT rung, code, detail FROM trial").fetchall()
short = {code for rung, code, _ in rows if rung == 1}
whole = {code for rung, code, _ in rows if rung == 0}
assert len(rows) == 16 and whole < short
assert all("same_network_as" not in detail for rung, _, detail in rows if rung == 0), "measured anew"
END
    ends 0 study show job.db
    says out "of them at a cheaper rung"
    ends 0 search job.yaml --resume --trials 20 --json
    is out "d['finished'] == 20"
    job "strategy: successive-halving"
    refuses 2 "job.yaml:6:11: *needs a cheaper way" search job.yaml --study other.db
}

@test "successive halving: what was quick enough at a rung is not refused for a machine that is slower now" {
    job "device: 'null'" "objectives: [accuracy, latency.p50]" "constraints: [latency.p50 <= 1.07 ms]" \
        "strategy: successive-halving" "budget: {trials: 4}" "measure: {seconds: 0.02}"
    # Three networks at the rung, of which the fourth trial is the best. On a machine that takes half as long again it
    # has what was measured first; what differs by less counts as it is.
    STILL_CLOCK=$PWD/clock STILL_SLOW=4,99,1.5 undisturbed ends 0 search job.yaml --json
    is out "len(d['front']) == 1 and 0.98 < d['front'][0]['objectives']['latency.p50']['value'] < 1.02"
    is out "d['front'][0]['measurement']['overruled']['by_trial'] < 3 and d['front'][0]['measurement']['unstable']"
    is out "0.00148 < d['front'][0]['measurement']['overruled']['p50_seconds'] < 0.00152"
    rm clock
    STILL_CLOCK=$PWD/clock STILL_SLOW=4,99,1.09 undisturbed ends 3 search job.yaml --study close.db --json
    is out "not d['front']"
}

@test "study trials, export: every trial with all that is known of it, as a table, JSON, CSV and JSON lines" {
    two_job "constraints: latency.p50 <= 30 ms on pi"
    ends 0 search job.yaml --json
    mv out found
    ends 0 study export job.db --format csv
    mv out trials.csv
    ends 0 study trials job.db --json
    mv out trials.json
    /usr/bin/python3 - two.csv found trials.csv trials.json <<'END'
import csv, json, sys
table = {r["arch"]: r for r in csv.DictReader(open(sys.argv[1]))}
found = json.load(open(sys.argv[2]))
rows = list(csv.DictReader(open(sys.argv[3])))
told = json.load(open(sys.argv[4]))
assert told["format"] == "hwnas.trials" and len(told["trials"]) == len(rows) == 150
front = {t["trial"] for t in found["front"]}
for row, t in zip(rows, told["trials"]):
    published = table[row["architecture"]]
    assert int(row["trial"]) == t["trial"] and row["architecture"] == t["arch"]
    assert abs(float(row["accuracy (%)"]) - float(published["top1_pct"])) < 1e-6
    assert abs(float(row["latency.p50 on pi (ms)"]) - float(published["pi_ms"])) < 1e-6 * float(published["pi_ms"])
    assert row["latency.p50 on phone source"] == "replayed" and row["status"] == t["status"] == "ok"
    assert (row["front"] == "1") == t["front"] == (t["trial"] in front)
    assert (row["feasible"] == "1") == t["feasible"] == (float(published["pi_ms"]) <= 30)
END
    ends 0 study trials job.db
    [ "$(grep -c '^\*' out)" -eq $(($(json found "len(d['front'])") + 1)) ] # and the line that says what * is
    grep -q infeasible out
    ends 0 study export job.db --format jsonl
    /usr/bin/python3 -c '
import json, sys
assert [json.loads(line) for line in open("out")] == json.load(open("trials.json"))["trials"]'
    # By other limits: a row is feasible by the published table, and the rest is as it was.
    ends 0 study export job.db --format csv --constraints 'latency.p50 <= 5 ms on phone'
    /usr/bin/python3 - two.csv trials.csv out <<'END'
import csv, sys
table = {r["arch"]: r for r in csv.DictReader(open(sys.argv[1]))}
before, now = (list(csv.DictReader(open(path))) for path in sys.argv[2:])
assert 0 < sum(row["feasible"] == "1" for row in now) < len(now) == len(before)
for old, row in zip(before, now):
    assert (row["feasible"] == "1") == (float(table[row["architecture"]]["phone_ms"]) <= 5)
    assert row["front"] == "0" or row["feasible"] == "1"
    assert all(row[key] == old[key] for key in row if key not in ("front", "feasible"))
assert [row["front"] for row in now] != [row["front"] for row in before]
END
    refuses 2 "there is no metric 'speed'" study export job.db --format csv --constraints 'speed <= 4'
    refuses 2 "--format is missing*--format csv or --format jsonl" study export job.db
    refuses 2 "there is no format 'tsv'" study export job.db --format tsv
}

@test "other limits: a study answers for them without a search, and says what was never measured" {
    two_job "constraints: params < 0.4 M"
    ends 0 search job.yaml --json
    mv out found
    ends 0 study show job.db --constraints "params < 0.4 M" --json # its own: the same answer
    /usr/bin/python3 - found out <<'END'
import json, sys
found, asked = (json.load(open(f)) for f in sys.argv[1:])
assert asked["other_limits"]["constraints"] == found["job"]["constraints"] and not found["other_limits"]
assert all(asked[k] == found[k] for k in ("front", "winner", "feasible", "finished", "failed"))
END
    ends 0 study show job.db --constraints "latency.p50 <= 20 ms on pi, params < 0.6 M" --json
    mv out asked
    ends 0 study trials job.db --constraints "latency.p50 <= 20 ms on pi, params < 0.6 M" --json
    /usr/bin/python3 - two.csv asked out job.db <<'END'
import csv, json, sqlite3, sys
table = {r["arch"]: r for r in csv.DictReader(open(sys.argv[1]))}
found, trials = (json.load(open(f)) for f in sys.argv[2:4])
db = sqlite3.connect(sys.argv[4])
params = dict(db.execute("SELECT code, value FROM trial JOIN value ON trial = number WHERE metric = 'params'"))
row = lambda a: (-float(table[a]["top1_pct"]), float(table[a]["pi_ms"]), float(table[a]["phone_ms"]))
good = {a for a in params if row(a)[1] <= 20 and params[a] < .6e6}
front = {row(a) for a in good if not any(row(b) != row(a) and all(x <= y for x, y in zip(row(b), row(a))) for b in good)}
assert {row(f["arch"]) for f in found["front"]} == front and found["feasible"] == len(good) < len(params)
assert found["other_limits"] == trials["other_limits"] == {
    "constraints": ["latency.p50 <= 20 ms on pi", "params < 0.6 M"], "without": {"latency.p50 on pi": 0, "params": 0},
    "left_open": 0}
assert {t["arch"] for t in trials["trials"] if t["feasible"]} == good
END
    # Networks above the search's own limit were not measured.
    job "device: 'null'" "objectives: [accuracy, latency.p50]" "measure: {seconds: 0.01, estimate: off}" \
        "constraints: macs <= 20 M" "budget: {trials: 60}" "strategy: random"
    ends 0 search job.yaml --study null.db
    ends 0 study trials null.db -c "macs <= 30 M" --json
    /usr/bin/python3 - out null.db <<'END'
import json, sqlite3, sys
trials = json.load(open(sys.argv[1]))
db = sqlite3.connect(sys.argv[2])
of = lambda metric: dict(db.execute("SELECT trial, value FROM value WHERE metric = ?", (metric,)))
macs, measured = of("macs"), of("latency.p50")
left_open = {t for t in macs if t not in measured and macs[t] <= 30e6}
assert 0 < len(left_open) < len(macs) - len(measured) and measured
assert trials["other_limits"] == {"constraints": ["macs <= 30 M"], "without": {"macs": 0}, "left_open": len(left_open)}
assert {t["trial"] for t in trials["trials"] if t["feasible"] is None} == left_open
END
    ends 0 study trials null.db -c "macs <= 30 M"
    grep -q 'not measured' out
    ends 0 study show null.db --constraints "energy <= 30 mJ and macs < 30 M"
    says out "no network meets the constraints"
    says out "asked now; the search had macs <= 20 M"
    says out "energy was never measured: no trial has it"
    says out "networks may meet them: the search did not measure those"
    refuses 2 "--constraints: 'mm' is not a unit" study show null.db --constraints "latency.p50 <= 6 mm"
    refuses 2 "exclude each other" study show null.db -c "params < 1 M" --environment
}

@test "a study is looked at while it is written: each look is of one moment" {
    local search looks=0 now before=0 code=0
    # It goes on until there were looks enough.
    job "strategy: random" "space: accel_nasbench" "accuracy: accel_nasbench_imagenet" "objectives: [accuracy, params]" \
        device "budget: {minutes: 100}"
    "$HWNAS" search job.yaml --study job.db --quiet >/dev/null 2>search.err 3>&- &
    search=$!
    until [ -e job.db ] && "$HWNAS" study show job.db >/dev/null 2>&1; do kill -0 $search || { cat search.err; false; }; sleep 0.01; done
    while [ $looks -lt 8 ]; do
        kill -0 $search || { cat search.err; false; }
        ends 0 study show job.db --json
        is out "d['failed'] == 0 and d['trials'] - d['finished'] in (0, 1) and len(d['front']) > 0"
        now=$(json out "d['finished']")
        [ "$now" -eq "$before" ] || looks=$((looks + 1))
        before=$now
    done
    kill -INT $search
    wait $search || code=$?
    [ $code = 130 ]
}

@test "studies of a directory are listed, those that cannot be read too" {
    job "budget: {trials: 5}"
    ends 0 search job.yaml --study a.db
    mkdir sub
    cp a.db sub/b.db
    truncate -s 5000 sub/b.db
    echo text >sub/c.db
    ends 0 study list --json
    is out "[(s['study'], s['space'], s['finished'], s['ended']) for s in d['studies']] == [('a.db', 'nas_bench_macro', 5, 'all trials were made')]"
    ends 0 study list sub
    says out "sub/b.db*damaged"
    not grep -q c.db out
    mkdir none
    ends 0 study list none --json
    is out "d['studies'] == []"
    refuses 2 'nowhere: cannot look into the directory' study list nowhere
}

@test "studies of one job are merged: each network once, values as they were, and a search goes on with them" {
    job "strategy: random" "budget: {trials: 60}"
    ends 0 search job.yaml --study a.db --seed 1
    ends 0 search job.yaml --study b.db --seed 2
    ends 0 study merge a.db b.db --out both.db --json
    is out "d['trials'] + d['same'] == 120 and d['unfinished'] == 0"
    local n
    n=$(json out "d['trials']")
    /usr/bin/python3 - <<'END'
import sqlite3
def values(name):
    return {code: sorted(map(repr, db.execute("SELECT metric, value, low, high, unit, source FROM value WHERE trial = ?", (number,))))
            for db in [sqlite3.connect(name)] for number, code in db.execute("SELECT number, code FROM trial").fetchall()}
a, b, both = values("a.db"), values("b.db"), values("both.db")
assert both == {**b, **a} and len(a) > 50
END
    ends 0 study show both.db --json
    cp out both
    ends 0 search job.yaml --study both.db --seed 1 --resume --trials $((n + 5)) --json
    is out "d['finished'] == $n + 5 and d['failed'] == 0"
    refuses 2 'both.db: the study exists already*--out names' study merge a.db --out both.db
    refuses 2 'none.db: there is no such study*study list' study vacuum none.db
    refuses 2 'a.db: cannot look into the directory' study list a.db
    ends 0 search job.yaml --study other.db --objectives accuracy,params
    refuses 2 'other.db: it has another objectives than a.db' study merge a.db other.db --out new.db
    [ ! -e new.db ]
    refuses 2 'names the new study' study merge a.db
}

@test "a study is made small, and says what it was made with" {
    job
    ends 0 search job.yaml
    /usr/bin/python3 -c 'import sqlite3
db = sqlite3.connect("job.db")
db.execute("CREATE TABLE waste (bytes BLOB)")
db.execute("INSERT INTO waste VALUES (zeroblob(1000000))")
db.execute("DROP TABLE waste")
db.commit()'
    ends 0 study show job.db --json
    cp out before
    ends 0 study vacuum job.db --json
    is out "d['bytes'] < d['bytes_before'] - 900000 and d['bytes'] == $(stat -c %s job.db)"
    ends 0 study show job.db --json
    cmp out before
    ends 0 study show job.db --environment --json
    is out "d['machines'][0]['kernel'] == '$(uname -r)' and d['machines'][0]['machine'] == '$(uname -m)'"
    is out "d['contents']['accuracy'] != None and '$(xxhsum -H2 "$TABLE" 2>/dev/null | cut -d' ' -f1)' in d['contents']['accuracy']"
    ends 0 study show job.db --environment
    says out "kernel\|$(uname -r)" || says out "$(uname -r)"
}
