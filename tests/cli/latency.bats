# The table of latencies as users meet it: calibrate, its cache, and searches that it spares measurements.
load helpers

CACHE=hwnas/latency-3.db

networks() {
    python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["table"]["networks"])' "$1"
}

@test "calibrate fills the cache, and goes on with it" {
    ends 0 calibrate nas_bench_macro --device null --minutes 0.02 --json
    is out "d['measured'] >= 1 and d['table']['networks'] <= d['measured']"
    [ -s "$XDG_CACHE_HOME/$CACHE" ]
    local before
    before=$(networks out)
    ends 0 calibrate nas_bench_macro --device null --minutes 0.01 --seed 1 --json
    [ "$(networks out)" -ge "$before" ]
    ends 0 calibrate nas_bench_macro --device null --minutes 0.01 --seed 2
    says out 'the table has'
}

@test "interrupted, calibrate keeps and prints what it has, with exit code 130" {
    "$HWNAS" calibrate nas_bench_macro --device null --minutes 5 --json >out 2>err &
    local pid=$! code=0
    for _ in $(seq 300); do [ -s "$XDG_CACHE_HOME/$CACHE" ] && break; sleep 0.1; done
    sleep 0.5
    kill -INT $pid
    wait $pid || code=$?
    [ $code -eq 130 ]
    says err 'interrupted; what was measured is in the table'
    is out "d['failed'] == 0"
    is out "(d['held_out']['within_5'] is None) == (d['held_out']['networks'] == 0)"
    local before
    before=$(networks out)
    ends 0 calibrate nas_bench_macro --device null --minutes 0.005 --json
    [ "$(networks out)" -ge "$before" ]
}

@test "two at once share the cache, and nothing of either is lost" {
    undisturbed "$HWNAS" calibrate nas_bench_macro --device null --minutes 0.02 --json >a 2>a.err &
    undisturbed "$HWNAS" calibrate nas_bench_macro --device null --minutes 0.02 --seed 5 --json >b 2>b.err
    wait $! # whose status wait then has
    [ ! -s a.err ]
    [ ! -s b.err ]
    is a "d['measured'] > 0 and d['unstable'] == 0"
    is b "d['measured'] > 0 and d['unstable'] == 0"
    # Each measured network is there, whichever of them saw those of the other when it began.
    [ "$(/usr/bin/python3 -c 'import sqlite3, sys
print(*sqlite3.connect(sys.argv[1]).execute("SELECT count(*) FROM observation").fetchone())' "$XDG_CACHE_HOME/$CACHE")" -eq \
        $(($(json a "d['measured']") + $(json b "d['measured']"))) ]
}

@test "a cache that is damaged or cut short is put aside and said so" {
    ends 0 calibrate nas_bench_macro --device null --minutes 0.01
    local file=$XDG_CACHE_HOME/$CACHE size
    size=$(stat -c %s "$file")
    truncate -s $((size / 2)) "$file"
    ends 0 calibrate nas_bench_macro --device null --minutes 0.01
    says err 'note: *latency-3.db is damaged, cut short'
    [ "$(stat -c %s "$file".damaged-*[0-9])" -eq $((size / 2)) ]
    ends 0 calibrate nas_bench_macro --device null --minutes 0.01
    [ ! -s err ]
}

@test "without a place for the table calibrate measures nothing" {
    XDG_CACHE_HOME=/proc/none refuses 1 '/proc/none/hwnas/*: cannot use the table of latencies: *nothing was measured; $XDG_CACHE_HOME' \
        calibrate nas_bench_macro --device null --minutes 5
    env -u HOME -u XDG_CACHE_HOME "$HWNAS" calibrate nas_bench_macro --device null --minutes 5 >out 2>err &&
        false
    says err 'there is no folder for the table of latencies'
}

@test "what calibrate cannot do" {
    refuses 2 "nowhere" calibrate nowhere
    refuses 2 "--minutes" calibrate nas_bench_macro --minutes 0
    refuses 2 "no precision 'f31'" calibrate nas_bench_macro --dtype f31
    refuses 2 "no device 'cup'" calibrate nas_bench_macro --device cup
}

finished() {
    python3 -c 'import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute("SELECT count(*) FROM trial WHERE status IS NOT NULL").fetchone()[0])' "$1"
}

# Of a study with accuracy and latency: the front is measured, and no network that was left out at its estimate
# could have been on it, as far as intervals go and with the largest error that was seen.
left_out_rightly() {
    python3 - "$1" <<'END'
import json, sqlite3, sys
rows = sqlite3.connect(sys.argv[1]).execute(
    "SELECT t.number, a.value, l.value, l.low, l.source, t.detail FROM trial t"
    " JOIN value a ON a.trial = t.number AND a.metric = 'accuracy'"
    " JOIN value l ON l.trial = t.number AND l.metric = 'latency.p50' WHERE t.status = 'ok'").fetchall()
measured = [r for r in rows if r[4] == "measured"]
remeasured = [(r[2], json.loads(r[5])["estimate"]) for r in measured if "estimate" in json.loads(r[5] or "{}")]
slack = max([1.0] + [truth / estimate for truth, estimate in remeasured])
for number, accuracy, _, low, source, _ in rows:
    assert source in ("measured", "estimated"), source
    assert source == "measured" or any(m[1] >= accuracy and m[2] <= low * slack for m in measured), number
print(f"# {len(measured)} measured, {len(remeasured)} of them estimated first, {len(rows) - len(measured)} left out")
END
}

@test "a front is measured, and what was left out could not have been on it" {
    alone
    search() {
        ends 0 search --space nas_bench_macro --accuracy nas_bench_macro_cifar10 --device cpu --threads 1 \
            --objectives 'accuracy, latency' --strategy random --trials 80 --seconds 0.05 --interval 0.1 --ties 0 --confirm 0 \
            "$@" --json
        is out "all(r['objectives']['latency.p50']['source'] == 'measured' for r in d['front'])"
        is out "d['finished'] == 80 and d['estimated'] + d['remeasured'] <= 80"
        is out "(d['estimate_error'] is None) >= (d['remeasured'] == 0)"
    }
    search --study a.db
    left_out_rightly a.db >&3
    search --study b.db --seed 2 # with what the first one learnt
    left_out_rightly b.db >&3
    search --study c.db --estimate off
    is out "d['estimated'] == 0 and d['remeasured'] == 0"
    refuses 2 "estimate is auto, aggressive or off, not 'maybe'" search --space nas_bench_macro --device null \
        --objectives latency --estimate maybe
}

@test "killed while its estimates wait, a search goes on with them" {
    alone
    ends 0 calibrate nas_bench_macro --threads 1 --minutes 0.05
    set -- search --space nas_bench_macro --accuracy nas_bench_macro_cifar10 --device cpu --threads 1 \
        --objectives 'accuracy, latency' --strategy nsga2 --trials 1000 --seconds 0.05 --interval 0.1 --ties 0 --confirm 0 \
        --study k.db --json
    HWNAS=${HWNAS%/*}/tests/cli/mortal MORTAL_DIES=800 ends 137 "$@"
    [ "$(finished k.db)" -ge 50 ]
    [ "$(finished k.db)" -lt 1000 ]
    ends 0 "$@" --resume
    is out "d['finished'] == 1000 and d['failed'] == 0 and d['ended'] == 'all trials were made'"
    left_out_rightly k.db >&3
}

# The null device's table, filled until it is used: on a busy machine that takes longer.
fill_null_table() {
    for _ in {1..10}; do
        ends 0 calibrate nas_bench_macro --device null --minutes 0.1
        ! grep -q 'estimated before they were measured' out || return 0
    done
    skip "other programs leave no time to fill a table"
}

@test "that no network meets a limit is said of a measurement, not of estimates" {
    undisturbed fill_null_table
    # Minutes end it, and by the table each network misses the limit for sure.
    undisturbed ends 3 search --space nas_bench_macro --accuracy nas_bench_macro_cifar10 --device null \
        --objectives accuracy,latency.p50 --constraints 'latency.p50 <= 1e-6 us' --minutes 0.2 --study none.db --json
    is out 'd["estimated"] > 0'
    is out 'd["closest"]["objectives"]["latency.p50"]["source"] == "measured"'
}

@test "the first network is measured though its estimate would do, and an accuracy used up the time" {
    undisturbed fill_null_table
    printf '%s\n' '#!/bin/sh' 'sleep 4' 'echo 90' >train
    chmod +x train
    undisturbed ends 0 search --space nas_bench_macro --accuracy command:./train --device null \
        --objectives accuracy,latency.p50 --constraints 'latency.p50 <= 1 s' --minutes 0.05 --study s.db --json
    is out 'd["finished"] == 1 and d["ended"] == "the time is over"'
    is out 'd["front"][0]["objectives"]["latency.p50"]["source"] == "measured"'
}

# others COLUMN: the published latencies on all devices but one, as others.csv.
others() {
    python3 - "$HWNAS_SRC/tests/data/nas_bench_201_latency.csv" "$1" <<'END'
import csv
import sys

rows = list(csv.reader(open(sys.argv[1])))
at = rows[0].index(sys.argv[2])
with open("others.csv", "w") as file:
    csv.writer(file).writerows(row[:at] + row[at + 1:] for row in rows[:1] + rows[1::10])
END
}

@test "a device that was left out is carried over from ten of its published latencies" {
    local device=replay:$HWNAS_SRC/tests/data/nas_bench_201_latency.csv#gold_6226_ms
    others gold_6226_ms
    ends 0 calibrate nas_bench_201 --from others.csv --device "$device" -n 10 --out here.csv --json
    is out "d['networks'] == 1563 and d['other_devices'] == 26 and len(d['measured']) == 10"
    python3 - "$HWNAS_SRC/tests/data/nas_bench_201_latency.csv" "$HWNAS_SRC/benchmarks" <<'END'
import csv
import sys

sys.path.insert(0, sys.argv[2])
import figures

truth = {row["arch"]: float(row["gold_6226_ms"]) for row in csv.DictReader(open(sys.argv[1]))}
rows = list(csv.DictReader(open("here.csv")))
told = [row for row in rows if row["is_measured"] == "1"]
left = [row for row in rows if row["is_measured"] == "0"]
assert len(told) == 10 and all(abs(float(row["latency_ms"]) / truth[row["arch"]] - 1) < 1e-5 for row in told)
rank = figures.spearman([float(row["latency_ms"]) for row in left], [truth[row["arch"]] for row in left])
inside = sum(float(row["low_ms"]) <= truth[row["arch"]] <= float(row["high_ms"]) for row in left)
assert rank > 0.95, rank
assert inside > 0.75 * len(left), inside / len(left)
END
}

@test "a study of another device is carried over: its networks, and its measured latencies" {
    local table=$HWNAS_SRC/tests/data/nas_bench_201_latency.csv
    ends 0 search --space nas_bench_201 --accuracy nas_bench_201_cifar10 --device "replay:$table#gold_6240_ms" --strategy random \
        --objectives accuracy,latency --trials 150 --study old.db
    ends 0 calibrate nas_bench_201 --from old.db --device "replay:$table#gold_6226_ms" -n 10 --out here.csv --json
    is out "100 < d['networks'] <= 150 and d['other_devices'] == 1 and len(d['measured']) == 10"
    python3 - "$table" "$HWNAS_SRC/benchmarks" <<'END'
import csv
import sys

sys.path.insert(0, sys.argv[2])
import figures

truth = {row["arch"]: float(row["gold_6226_ms"]) for row in csv.DictReader(open(sys.argv[1]))}
rows = list(csv.DictReader(open("here.csv")))
left = [row for row in rows if row["is_measured"] == "0"]
assert len(rows) - len(left) == 10
rank = figures.spearman([float(row["latency_ms"]) for row in left], [truth[row["arch"]] for row in left])
assert rank > 0.8, rank
END
    ends 2 calibrate nas_bench_macro --from old.db --device null --out none.csv
    says err "old.db: the study is of another space than 'nas_bench_macro'"
    ends 0 search --space nas_bench_201 --accuracy nas_bench_201_cifar10 --objectives accuracy,macs --trials 5 --study macs.db
    ends 2 calibrate nas_bench_201 --from macs.db --device null --out none.csv
    says err "no network of the study has a latency on each device"
    [ ! -e none.csv ]
}

@test "a table of latencies of another machine is carried over, and none of the device's own" {
    local table=$XDG_CACHE_HOME/$CACHE
    export STILL_BY_SIZE=1
    undisturbed ends 0 calibrate nas_bench_macro --device null --minutes 0.05
    undisturbed ends 2 calibrate nas_bench_macro --from "$table" --device null --out none.csv
    says err "the table knows the networks of 'nas_bench_macro' on no other device"
    /usr/bin/python3 -c 'import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as db: # as if another machine had written it
    db.execute("UPDATE machine SET name = \"a board, \" || name")' "$table"
    undisturbed ends 0 calibrate nas_bench_macro --from "$table" --device null -n 10 --out here.csv --json
    is out "d['networks'] == 1000 and d['other_devices'] == 1 and d['median_error'] < 0.15"
    [ "$(head -n 1 here.csv)" = arch,latency_ms,low_ms,high_ms,is_measured ]
    ends 0 search --space nas_bench_macro --accuracy nas_bench_macro_cifar10 --device 'replay:here.csv#latency_ms' --strategy random \
        --objectives accuracy,latency --trials 5 --study s.db
    undisturbed ends 2 calibrate nas_bench_201 --from "$table" --device null --out none.csv
    says err "the table knows the networks of 'nas_bench_201' on no other device"
    [ ! -e none.csv ]
}

@test "latencies that cannot be carried over leave no file" {
    printf 'arch,a_ms\n111111,1\n222222,2\n333333,0\n' >zero.csv
    ends 2 calibrate nas_bench_201 --from zero.csv --device null --out here.csv
    says err "zero.csv:4: 'a_ms' is 0, not above 0"
    printf 'arch,a\n111111,1\n' >none.csv
    ends 2 calibrate nas_bench_201 --from none.csv --device null --out here.csv
    says err 'no column has latencies of another device'
    printf 'arch,a_ms\n111111,1\n222222,2\n' >few.csv
    ends 2 calibrate nas_bench_201 --from few.csv --device null --out here.csv
    says err '2 networks are too few to learn from'
    ends 2 calibrate nas_bench_201 --from missing.csv --device null --out here.csv
    ends 2 calibrate nas_bench_201 --from zero.csv -n 2
    ends 2 calibrate nas_bench_201 --out here.csv
    [ ! -e here.csv ]
}
