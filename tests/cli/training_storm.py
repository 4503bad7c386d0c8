"""kill -9 of one search that trains, at any moment: no finished training is lost or done twice.

training_storm.py PROGRAM KILLS, in a folder with space.yaml and recipe.yaml: the same search once in peace, and then killed
so often while something is left to train, and continued each time; one that comes to its end begins anew. A training that
has ended is a file (DIGEST.json): it stays as it was written, to the inode. Each study that comes to its end has the trials
of the first, and its table of results the same rows.
"""
import csv, os, random, shutil, signal, sqlite3, subprocess, sys, time

program, n_kills = sys.argv[1], int(sys.argv[2])
seed = int(os.environ.get("HWNAS_SEED") or random.randrange(1 << 30))
print("# seed", seed, "(HWNAS_SEED)")
rng = random.Random(seed)
FOLDER = "recipe.many.trainings"


def search(*more):
    line = [program, "search", "--space", "many.yaml", "--accuracy", "train:recipe.yaml", "--objectives", "accuracy,macs",
            "--strategy", "random", "--seed", "1", "--trials", str(n_kills), "--study", "s.db", "--quiet", *more]
    return subprocess.Popen(line, stdout=open("out", "w"), stderr=open("err", "w"), stdin=subprocess.DEVNULL)


def ended():
    """What says that a training has ended, and that it was not written again."""
    found = {}
    for entry in os.scandir(FOLDER) if os.path.isdir(FOLDER) else []:
        if entry.name.endswith(".json") and len(entry.name) > 32:
            found[entry.name] = entry.inode(), entry.stat().st_mtime_ns
    return found


def told():
    """Trials and results; what took time is left out."""
    db = sqlite3.connect("s.db")
    trials = db.execute("SELECT number, code, digest, status, message FROM trial ORDER BY number").fetchall()
    values = db.execute("SELECT trial, position, value FROM value ORDER BY trial, position").fetchall()
    with open("recipe.many.csv") as file:
        rows = list(csv.DictReader(file))
    assert len({row["digest"] for row in rows}) == len(rows), "a training is in the table twice"
    return trials, values, sorted((row["digest"], row["accuracy_pct"]) for row in rows)


def check(before, after, when):
    for name, state in before.items():
        assert name in after, f"{when}: the training {name} is lost"
        assert after[name] == state, f"{when}: the training {name} was done, or written, again"


def begin_anew():
    for name in os.listdir("."):
        if name.startswith(("s.db", "recipe.many.")):
            shutil.rmtree(name) if os.path.isdir(name) else os.remove(name)
    return {}


begun = time.monotonic()
peaceful = search()
assert peaceful.wait() == 0, open("err").read()
whole = time.monotonic() - begun
want, n_trained = told(), len(ended())
assert n_trained == len(want[2]) >= 2, (n_trained, want[2])

seen, n_during, n_between, n_ended, longest = begin_anew(), 0, 0, 0, whole / 2
while n_during < n_kills or not n_between:
    running = search(*(["--resume"] if os.path.exists("s.db") else []))
    try:
        running.wait(rng.uniform(0.05, longest))
    except subprocess.TimeoutExpired:
        running.send_signal(signal.SIGKILL)
    code = running.wait()
    assert code in (0, -signal.SIGKILL), (code, open("err").read())
    now = ended()
    check(seen, now, f"kill {n_during + 1}")
    n_during += code != 0 and len(now) < n_trained
    n_between += code != 0 and 0 < len(now) < n_trained  # something is there that could be lost
    longest = min(longest * 1.2, 2 * whole) if len(now) == len(seen) else max(longest / 1.2, whole / 4)  # some get nowhere, most get on
    seen = now
    if code == 0:
        assert told() == want, (told(), want)
        n_ended += 1
        seen = begin_anew()
last = search(*(["--resume"] if os.path.exists("s.db") else []))
assert last.wait() == 0, open("err").read()
check(seen, ended(), "in the end")
assert told() == want, (told(), want)
print(f"# {n_during} kills while something was left to train; {n_trained} trainings, each once; {n_ended + 1} ends")
