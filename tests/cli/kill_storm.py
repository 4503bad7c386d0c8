"""A storm of kill -9 on searches and on their runners, at any moment.

kill_storm.py PROGRAM RUNNER SOURCE KILLS: RUNNER is tests/cli/still_runner. Of the kills a half is of
searches on published numbers, the others of searches that measure, and of their runners. A search
that was killed is continued. Then: the file opened each time; no finished trial is lost or there
twice; in the end the study and its front are those of a search that nobody killed; no process is left,
and no file but the study. A killed runner costs a trial at most.
"""
import json, os, random, re, signal, sqlite3, subprocess, sys, time

program, runner, source, n_kills = sys.argv[1:]
n_kills = int(n_kills)
seed = int(os.environ.get("HWNAS_SEED") or random.randrange(1 << 30))
print("# seed", seed, "(HWNAS_SEED)")
rng = random.Random(seed)
os.makedirs("tmp")
mark = f"KILL_STORM={os.getpid()}"
replayed = ["search", source + "/examples/replay-nb-macro.yaml", "--trials", "1500", "--json"]
measured = ["search", "--space", "nas_bench_macro", "--accuracy", "nas_bench_macro_cifar10", "--device", "null",
            "--objectives", "accuracy,latency.p50", "--strategy", "nsga2", "--trials", "150", "--ties", "0", "--confirm", "0",
            "--json"]


def start(arguments, name):
    environment = dict(os.environ, HWNAS_RUNNER=runner, STILL_BY_SIZE="1", STILL_BY_NETWORK="1",
                       XDG_CACHE_HOME=os.path.abspath(name + ".cache"), TMPDIR=os.path.abspath("tmp"),
                       KILL_STORM=str(os.getpid()))
    return subprocess.Popen([program] + arguments + ["--study", name + ".db"], env=environment,
                            stdout=open("out", "w"), stderr=open("err", "w"))


def ours():
    """Processes of the storm, this one aside."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if mark in open(f"/proc/{pid}/environ").read().split("\0") and \
                    " Z " not in re.sub(r"\(.*\)", "", open(f"/proc/{pid}/stat").read()):
                found.append(int(pid))
        except OSError:
            pass
    return found


def none_is_left(what):
    deadline = time.time() + 20
    while ours() and time.time() < deadline:
        time.sleep(.02)
    assert not ours(), f"{what}: processes are left: {ours()}"


def trials_of(name):
    db = sqlite3.connect(name + ".db")
    rows = db.execute("SELECT number, code, status, violation FROM trial ORDER BY number").fetchall()
    values = db.execute("SELECT * FROM value ORDER BY trial, position").fetchall()
    db.close()
    return rows, values


def look(name, n_before):
    """The study opens, and has at least as many finished trials as before, each number and code once."""
    if not os.path.exists(name + ".db"):
        assert n_before == 0, "the study is gone"
        return 0
    show = subprocess.run([program, "study", "show", name + ".db", "--json"], capture_output=True, text=True)
    if "ended before it began" in show.stderr:
        assert n_before == 0, show.stderr
        return 0
    assert show.returncode in (0, 3), (show.returncode, show.stderr)
    study = json.loads(show.stdout)
    assert study["finished"] >= n_before, "a finished trial was lost"
    assert study["trials"] - study["finished"] <= 1
    rows, _ = trials_of(name)
    assert [row[0] for row in rows] == list(range(len(rows))), "a trial is missing"
    assert len({row[1] for row in rows}) == len(rows), "a network was tried twice"
    return study["finished"]


def no_litter(name):
    left = sorted(f for f in os.listdir(".") if f.startswith(name) and not f.endswith(".cache"))
    assert left == [name + ".db"], left
    assert not os.listdir("tmp"), os.listdir("tmp")


def front_of():
    return [(row["trial"], row["arch"], row["objectives"]) for row in json.load(open("out"))["front"]]


def undisturbed(arguments, name):
    begin = time.time()
    search = start(arguments, name)
    assert search.wait() == 0, open("err").read()
    return front_of(), trials_of(name), time.time() - begin


def storm(what, arguments, wanted):
    """Kills searches until there were as many kills as wanted; each study is brought to its end."""
    subprocess.run("rm -rf whole.*", shell=True, check=True)
    front, trials, seconds = undisturbed(arguments, "whole")
    n_killed = n_studies = 0
    while n_killed < wanted:
        subprocess.run("rm -rf part.*", shell=True, check=True)
        n_before = sitting = 0
        while True:
            resume = ["--resume"] if os.path.exists("part.db") else []
            search = start(arguments + resume, "part")
            sitting += 1
            if n_killed < wanted and sitting < 25:  # what is done is gone through again first
                share = rng.uniform(0, .05) if sitting % 4 == 0 else rng.uniform(.02, .3)
                time.sleep((share + .3 * n_before / len(trials[0])) * seconds)
                search.kill()
            if search.wait() == 0:
                break
            assert search.returncode == -signal.SIGKILL, (what, search.returncode, open("err").read())
            n_killed += 1
            none_is_left(what)
            n_before = look("part", n_before)
        n_studies += 1
        assert front_of() == front, f"{what}: another front"
        assert trials_of("part") == trials, f"{what}: other trials"
        none_is_left(what)
        no_litter("part")
    print(f"# {what}: {n_killed} searches killed, {n_studies} studies brought to their end")


def children(pid):
    try:
        return list(map(int, open(f"/proc/{pid}/task/{pid}/children").read().split()))
    except OSError:
        return []


def kill_runners(wanted):
    """The search goes on: whom it happens to fails, or is measured by the next runner."""
    n_killed = n_studies = n_failed = 0
    while n_killed < wanted:
        subprocess.run("rm -rf part.*", shell=True, check=True)
        before = n_killed
        search = start(measured, "part")
        # One that is killed while the search opens its device ends the search, rightly, before the study is made.
        while search.poll() is None and not os.path.exists("part.db"):
            time.sleep(.01)
        while search.poll() is None:
            time.sleep(rng.uniform(0, .4))
            for pid in children(search.pid):
                if n_killed < wanted and n_killed - before < 12:
                    try:
                        os.kill(pid, signal.SIGKILL)
                        n_killed += 1
                    except ProcessLookupError:
                        pass
        assert search.returncode == 0, (search.returncode, open("err").read())
        look("part", 150)
        rows, _ = trials_of("part")
        crashed = [row for row in rows if row[2] in ("crashed", "out_of_memory")]
        n_failed += len(crashed)
        assert len(crashed) <= n_killed - before, "a killed runner cost more than one trial"
        none_is_left("runners")
        no_litter("part")
        n_studies += 1
    print(f"# {n_killed} runners killed in {n_studies} searches, which cost {n_failed} trials")


storm("on published numbers", replayed, n_kills // 2)
storm("measured", measured, n_kills - n_kills // 2 - n_kills // 5)
kill_runners(n_kills // 5)
