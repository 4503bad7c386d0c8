"""Searches that die at some moment and are continued: what the strategy is asked and told, to the
last bit, and all that the study has in the end, must be as in a search that nothing ended.

prefixes.py PROGRAM RUNNER SOURCE [CASE...]: PROGRAM is tests/cli/mortal, RUNNER tests/cli/still_runner.
The seed is the day's number, HWNAS_SEED gives another; it chooses some of the cases and a few moments
of each. With HWNAS_LONG all cases are tried, and HWNAS_MOMENTS (20) moments of each; every moment of all of
them takes hours, and unit/test_search_resume.c continues after every trial. Some searches die twice.
"""
import os, random, signal, sqlite3, subprocess, sys, time

program, runner, source, *names = sys.argv[1:]
seed = int(os.environ.get("HWNAS_SEED") or time.time() // 86400)
is_long = bool(os.environ.get("HWNAS_LONG"))
N_MOMENTS = int(os.environ.get("HWNAS_MOMENTS") or 20)  # of a case, in the long form
print("# seed", seed, "(HWNAS_SEED)")

table = source + "/tests/data/nas_bench_macro.csv"
with open(table) as whole, open("holes.csv", "w") as holes:  # what it lacks is a trial that fails
    holes.writelines(row for i, row in enumerate(whole) if i % 10 != 7)

replay = ["--accuracy", "table:holes.csv#acc_top1_pct_mean", "--device", "replay:holes.csv#macs_count"]
still = ["--accuracy", "nas_bench_macro_cifar10", "--device", "null", "--ties", "0", "--confirm", "0"]
one, two = ["--objectives", "accuracy"], ["--objectives", "accuracy,macs"]
fast, both = ["--objectives", "latency.p50"], ["--objectives", "accuracy,latency.p50"]

cases = {}
for name, n in (("random", 60), ("nsga2", 150), ("local-search", 150), ("bayesian", 30)):
    cases[name + ", replayed, 1 objective"] = replay + one + ["--strategy", name, "--trials", str(n)]
    cases[name + ", replayed, 2 objectives, a limit"] = replay + two + [
        "--strategy", name, "--trials", str(n), "--constraints", "macs <= 60 M"]
    n_measured = "45" if name == "bayesian" else "70"
    cases[name + ", estimated, 2 objectives"] = still + both + ["--strategy", name, "--trials", n_measured]
    cases[name + ", estimated, 1 objective, a limit"] = still + fast + [
        "--strategy", name, "--trials", n_measured, "--constraints", "accuracy >= 91"]
cases["exhaustive, replayed"] = replay + two + ["--strategy", "exhaustive", "--trials", "6561"]
cases["regularized-evolution, replayed"] = replay + one + [
    "--strategy", "regularized-evolution", "--trials", "150", "--constraints", "macs <= 60 M"]
cases["regularized-evolution, estimated"] = still + ["--objectives", "accuracy"] + [
    "--strategy", "regularized-evolution", "--trials", "70", "--constraints", "latency.p50 <= 60 ms"]
cases["successive-halving, measured"] = still + both + ["--strategy", "successive-halving", "--trials", "60"]
cases["auto, estimated"] = still + both + ["--trials", "40", "--constraints", "latency.p50 <= 60 ms"]
warm = os.path.abspath("warm.db")
cases["warm start, nsga2, estimated"] = still + both + ["--strategy", "nsga2", "--trials", "40", "--warm-start", warm]


def make_warm():
    subprocess.run([program, "search", "--space", "nas_bench_macro", "--seed", "77", "--study", warm] + still + both + [
        "--strategy", "random", "--trials", "40", "--estimate", "off"], check=True, capture_output=True,
        env=dict(os.environ, HWNAS_RUNNER=runner, STILL_BY_SIZE="1", STILL_BY_NETWORK="1",
                 XDG_CACHE_HOME=os.path.abspath("warm.cache")))


def run(arguments, name, **environment):
    """One sitting. Returns its exit status and what the strategy was asked and told."""
    told = name + ".told"
    if os.path.exists(told):
        os.remove(told)
    environment = dict(os.environ, HWNAS_RUNNER=runner, STILL_BY_SIZE="1", STILL_BY_NETWORK="1",
                       XDG_CACHE_HOME=os.path.abspath(name + ".cache"), MORTAL_TOLD=told, **environment)
    command = [program, "search", "--space", "nas_bench_macro", "--seed", str(seed), "--study",
               name + ".db"] + arguments
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    lines = open(told).read().splitlines() if os.path.exists(told) else []
    return done, lines


def read(name):
    """All that the study says, but for what tells the time."""
    db = sqlite3.connect(name + ".db")
    queries = ("SELECT number, code, digest, rung, finish_order, status, message, violation FROM trial",
               "SELECT * FROM value", "SELECT * FROM event", "SELECT event, status, message, violation FROM earlier",
               "SELECT * FROM earlier_value")
    tables = [sorted(map(repr, db.execute(q))) for q in queries]
    has_table = db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'observation'").fetchone()[0]
    if has_table:
        tables.append(list(map(repr, db.execute("SELECT * FROM observation ORDER BY id"))))
    return tables


def asked(lines):
    return [line for line in lines if line.startswith("ask")]


def heard(lines):
    return [line for line in lines if line.startswith("tell")]


def first_difference(a, b):
    for i in range(max(len(a), len(b))):
        x, y = a[i] if i < len(a) else "nothing", b[i] if i < len(b) else "nothing"
        if x != y:
            return f"{i}: {y}, not {x}"


def clean(name):
    subprocess.run(["rm", "-rf"] + [name + s for s in (".db", ".db-wal", ".db-shm", ".db-lock", ".db-new",
                                                       ".told", ".cache", ".count")], check=True)


def compare(what, whole, whole_tables, lines):
    difference = first_difference(heard(whole), heard(lines))
    assert not difference, f"{what}: what was told differs at {difference}"
    last = asked(whole)[len(asked(whole)) - len(asked(lines)):]
    difference = first_difference(last, asked(lines))
    assert not difference, f"{what}: what was proposed differs at {difference}"
    for a, b in zip(whole_tables, read("part")):
        assert a == b, f"{what}: the study differs at {first_difference(a, b)}"


def continue_after(what, arguments, moments):
    clean("part")
    resume = []
    for moment in moments:
        done, _ = run(arguments + resume, "part", MORTAL_DIES=str(moment))
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, (what, done.returncode, done.stderr)
        resume = ["--resume"] if os.path.exists("part.db") else []
    done, lines = run(arguments + resume, "part")
    assert done.returncode == 0, (what, done.returncode, done.stderr)
    return lines


def try_case(name, arguments, rng):
    clean("whole")
    done, whole = run(arguments, "whole", MORTAL_COUNT="whole.count")
    assert done.returncode == 0, (name, done.returncode, done.stderr)
    tables, n_moments = read("whole"), int(open("whole.count").read())
    n_events = len(tables[2])
    moments = [rng.randrange(1, n_moments) for _ in range(2)]
    if is_long:
        moments = rng.sample(range(1, n_moments), min(N_MOMENTS, n_moments - 1))
    for moment in moments:
        what = f"{name}, seed {seed}, died at moment {moment} of {n_moments}"
        compare(what, whole, tables, continue_after(what, arguments, [moment]))
    twice = [sorted(rng.sample(range(1, n_moments), 2)) for _ in range(5 if is_long else 1)]
    for first, second in twice:
        what = f"{name}, seed {seed}, died at {first} and {second - first} later of {n_moments}"
        lines = continue_after(what, arguments, [first, max(1, second - first)])
        compare(what, whole, tables, lines)
    n_measured = sum("'revised'" in row for row in tables[2])
    print(f"# {name}: {n_events} events, {n_measured} of them measurements of what was estimated, "
          f"{len(moments) + len(twice)} deaths")
    return n_measured


def choose_cases():
    """Those that were named; else all, or the few of the day: half of them with estimates."""
    if names:
        return [c for c in cases if any(n in c for n in names)]
    if is_long:
        return list(cases)
    rng = random.Random(seed)
    estimated = [c for c in cases if "estimated" in c]
    return rng.sample(estimated, 3) + rng.sample(sorted(set(cases) - set(estimated)), 3)


make_warm()
n_measured = sum(try_case(c, cases[c], random.Random(f"{seed} {c}")) for c in choose_cases())
assert names or n_measured > 10, n_measured
