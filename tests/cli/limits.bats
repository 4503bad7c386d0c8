# Limits at quantiles of published latencies: `hwnas search` finds a network within each that some
# network meets, and says of the others that none does, within the stated share of its budget.
load helpers

# seek STRATEGY N SEED: N columns of the table drawn with the seed (0: all of them), each with limits that
# 1, 2, 5, 10 and 40 % of the cells meet and with one that none does.
seek() {
    # shellcheck disable=SC2016
    /usr/bin/python3 - "$HWNAS" "$HWNAS_SRC/tests/data" "$@" <<'END'
import csv, json, os, random, subprocess, sys
program, data, strategy, n, seed = *sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5])
TRIALS, SHARE = 500, 100 # docs/searching.md: a fifth of the trials, but at least 100
table = f"{data}/nas_bench_201_latency.csv"
rows = list(csv.DictReader(open(table)))
columns = [c for c in rows[0] if c.endswith("_ms")]
assert len(columns) == 27
if n:
    columns = random.Random(seed).sample(columns, n)
wrong = []

def search(column, limit):
    if os.path.exists("s.db"):
        os.remove("s.db")
    goal = f"latency.p50 <= {limit!r} ms"
    line = [program, "search", "--space", "nas_bench_201", "--strategy", strategy, "--accuracy",
            f"table:{data}/nas_bench_201.csv#c100_test_top1_pct", "--device",
            f"replay:{table}#{column}", "--objectives",
            "accuracy" if strategy == "regularized-evolution" else "accuracy,latency.p50", "-c",
            goal, "--until", goal, "--trials", str(TRIALS), "--seed", str(seed % 1000), "--study",
            "s.db", "--json"]
    done = subprocess.run(line, capture_output=True, text=True)
    found = json.loads(done.stdout) if done.returncode in (0, 3) else {"finished": 0}
    print(f"# {column} <= {limit}: exit {done.returncode}, {found['finished']} trials")
    return done, found

for column in columns:
    values = sorted(float(r[column]) for r in rows if r[column])
    for percent in 1, 2, 5, 10, 40:
        limit = values[len(values) * percent // 100 - 1]
        done, found = search(column, limit)
        if done.returncode != 0 or found["finished"] > SHARE:
            wrong.append(f"{column} <= {limit}, {percent} %: {done.returncode} {done.stderr}")
    done, found = search(column, 0.99 * values[0])
    closest = found.get("closest") or {"objectives": {"latency.p50": {"value": 0}}}
    if done.returncode != 3 or found["finished"] > SHARE or " networks met " not in done.stderr \
            or closest["objectives"]["latency.p50"]["value"] > 1.5 * values[0]:
        wrong.append(f"{column} <= {0.99 * values[0]}, none: {done.returncode} {done.stderr}")
print(*wrong, sep="\n")
assert not wrong
END
}

@test "limits at quantiles of published latencies: seven devices, drawn by the day" {
    local seed=${HWNAS_SEED:-$(($(date +%s) / 86400))}
    echo "# HWNAS_SEED=$seed draws them again"
    seek auto 5 "$seed"
    seek nsga2 2 "$seed"
}

@test "limits at quantiles of published latencies: all devices, each strategy that seeks" {
    [ "$HWNAS_LONG" ] || skip "HWNAS_LONG is not set"
    local strategy
    for strategy in auto nsga2 local-search regularized-evolution; do
        seek $strategy 0 1
    done
}

@test "too few samples for a percentile are told by the dry run, with how many it takes; and by the trials that fail" {
    short() {
        ends "$@" --space nas_bench_macro --device cpu --threads 1 --objectives latency -c 'latency.p99<=1s' --seconds 0.01 \
            --estimate off --confirm 0 --ties 0 --trials 2 --study s.db
    }
    short 0 search --dry-run
    says out "*note: 0.01 s are too few samples for *latency.p99: it takes 36?, of * ms each, so measure: {seconds: *} or more
*"
    short 1 search
    says out "*2 failed (2 timeout)*the last that failed: trial *: too few samples for *latency.p99: it takes 36?, of * ms each, so measure: {seconds: *} or more*"
}

@test "a limit on the accuracy that excludes nothing, or all, is told before the search" {
    local data=$HWNAS_SRC/tests/data/nas_bench_macro.csv
    try() {
        printf '%s\n' 'space: nas_bench_macro' "accuracy: $1" 'device: null' 'objectives: [latency]' "constraints: $2" 'budget: {trials: 1}' >job.yaml
        ends 0 search job.yaml --dry-run
    }
    try "table:$data#acc_top1_pct_mean" 'accuracy >= 0.75'
    says err "hwnas: note: *job.yaml:5:14: accuracy >= 0.75 % excludes none of 6561 networks, which have 45.36 to 93.13; they are in percent: 75?"
    try "table:$data#acc_top1_pct_mean" 'accuracy >= 99'
    says err "*accuracy >= 99 % excludes all of 6561 networks, which have *"
    try nas_bench_macro_cifar10 'accuracy >= 0.75'
    says err "*job.yaml:5:14: accuracy >= 0.75 % is a limit of 0.75 %; they are in percent: 75?"
    try "table:$data#acc_top1_pct_mean" 'accuracy >= 75'
    [ ! -s err ]
    try nas_bench_macro_cifar10 'accuracy >= 75 %'
    [ ! -s err ]
}
