"""Workers on one study that are killed, cut off, and lose their server: no trial is lost, none is there twice.

worker_storm.py PROGRAM SOURCE STUDY WORKERS TRIALS [STRATEGY [SERVER [TASKS...]]]: STUDY is a file's name or an address in
PostgreSQL, whose server lies in the folder SERVER (tests/postgresql.sh). Each worker is killed three times or more, at
random moments of the search, and another one takes its place; one is stopped, as by a partition of the network, while
others make its trial, and goes on later; the server is killed twice. Then each trial was asked once and finished once,
and belongs to nobody; and where proposals do not depend on results (`random`), the trials and the front are those of
a search that nobody disturbed. With TASKS networks are measured on two devices, `left` and `right`, and the workers in
turns do one of these each.
"""
import json, os, random, re, signal, sqlite3, subprocess, sys, time

program, source, study = sys.argv[1:4]
n_workers, n_trials = map(int, sys.argv[4:6])
strategy = sys.argv[6] if len(sys.argv) > 6 else "random"
server = sys.argv[7] if len(sys.argv) > 7 else None
tasks = sys.argv[8:]
seed = int(os.environ.get("HWNAS_SEED") or random.randrange(1 << 30))
print("# seed", seed, "(HWNAS_SEED)")
rng = random.Random(seed)
TABLE = source + "/tests/data/nas_bench_macro.csv"
with open("storm.yaml", "w") as job:
    job.write(f"space: nas_bench_macro\naccuracy: 'table:{TABLE}#acc_top1_pct_mean'\n"
              f"objectives: [accuracy, {'latency.p50 on left, latency.p50 on right' if tasks else 'macs'}]\n"
              f"strategy: {strategy}\nbudget: {{trials: {n_trials}}}\nseed: 11\n")
    if tasks:
        job.write("devices: [{name: left, device: 'null'}, {name: right, device: 'null', threads: 2}]\n"
                  "measure: {seconds: 0.01, estimate: off, ties: 0, confirm: 0}\n")  # workers measure once
SEARCH = [program, "search", "storm.yaml", "--json"]


def rows(statement):
    """What the study answers; None: it cannot just now, as it is not begun, or its server starts."""
    if server:
        name = re.search("study=([^&]*)", study).group(1)
        done = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-F", "\t", "-h", server, "-U", "hwnas", "-d", "postgres", "-c",
                               f'SET search_path TO "{name}"', "-c", statement], capture_output=True, text=True)
        return [tuple(line.split("\t")) for line in done.stdout.splitlines()] if done.returncode == 0 else None
    try:
        db = sqlite3.connect(f"file:{study}?mode=rw", uri=True, isolation_level=None, timeout=5)
        try:
            return [tuple(map(str, row)) for row in db.execute(statement)]
        finally:
            db.close()
    except sqlite3.OperationalError:
        return None


def n_finished():
    answer = rows("SELECT count(finish_order) FROM trial")
    return int(answer[0][0]) if answer else 0


gone = []  # numbers of processes that are dead or stopped


def end_leases():
    """Of those that are gone, as after a minute. What one had sent may be committed after its death, and a statement may find
    the file locked or no server: so this is done until the storm is over."""
    names = " OR ".join(f"worker LIKE '% {pid} %'" for pid in gone)
    if names and rows(f"SELECT trial FROM lease WHERE expires > 0 AND ({names}) LIMIT 1"):
        rows(f"UPDATE lease SET expires = 0 WHERE {names}")


def part_from(pid):
    """In the long form the server itself ends the session of one that stopped in a transaction."""
    if server and not os.environ.get("HWNAS_LONG"):
        rows(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE '%process {pid}'")
    gone.append(pid)


class Worker:
    n_started = 0

    def __init__(self, which):
        only = ["--only", tasks[which % len(tasks)]] if tasks else []
        self.log = f"worker.{Worker.n_started}"
        Worker.n_started += 1
        self.process = subprocess.Popen(SEARCH + ["--study", study, "--workers", "1"] + only,
                                        stdout=subprocess.DEVNULL, stderr=open(self.log, "w"),
                                        env=dict(os.environ, HWNAS_NOT_PAUSED="yes"))

    def kill(self):
        self.process.kill()
        self.process.wait()
        part_from(self.process.pid)

    def end(self):
        begin = time.monotonic()
        while self.process.poll() is None:
            assert time.monotonic() < begin + 600, "a worker does not end"
            end_leases()
            time.sleep(.05)
        code = self.process.returncode
        assert code == 0, (code, open(self.log).read())


def search(*words):
    done = subprocess.run(SEARCH + list(words), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def front_of(found):
    return sorted((t["arch"], json.dumps(t["objectives"])) for t in found["front"])


def plan():
    """What happens when so many trials are finished."""
    moments = [(rng.uniform(0, .9), "kill", i % n_workers) for i in range(3 * n_workers)]
    begin = rng.uniform(.2, .5)
    moments += [(begin, "stop", 0), (begin + .2, "continue", 0)]
    moments += [(rng.uniform(.1, .4), "restart", 0), (rng.uniform(.5, .9), "restart", 0)] if server else []
    return sorted((int(share * n_trials), what, which) for share, what, which in moments)


def storm():
    workers = [Worker(i) for i in range(n_workers)]
    stopped, counts = None, dict.fromkeys(["kill", "stop", "continue", "restart"], 0)
    for at, what, which in plan():
        begin = time.monotonic()
        while n_finished() < at:
            if stopped and not server:  # it may have stopped with the file's lock, which nobody takes from it
                if time.monotonic() > begin + 5:
                    break
            else:
                end_leases()
            assert time.monotonic() < begin + 600, "the search does not go on"
            time.sleep(.01)
        time.sleep(rng.uniform(0, .05))
        running = workers[which] is not stopped and workers[which].process.poll() is None
        if what == "kill" and running:
            workers[which].kill()
            workers[which] = Worker(which)
        elif what == "stop":
            stopped = workers[which]
            stopped.process.send_signal(signal.SIGSTOP)
            part_from(stopped.process.pid)
            end_leases()
        elif what == "continue":
            gone.remove(stopped.process.pid)
            stopped.process.send_signal(signal.SIGCONT)
            stopped = None
        elif what == "restart":
            subprocess.run([source + "/tests/postgresql.sh", "restart", server], check=True)
        else:
            continue
        counts[what] += 1
    for worker in workers:
        worker.end()
    assert counts["kill"] and counts["stop"], "the search was too short for a storm"
    return counts


def check(whole):
    n = str(n_trials)
    assert rows("SELECT count(*), count(DISTINCT code), min(number), max(number), count(finish_order), max(finish_order)"
                " FROM trial") == [(n, n, "0", str(n_trials - 1), n, str(n_trials - 1))], rows("SELECT * FROM trial")
    assert rows("SELECT kind, count(*), count(DISTINCT trial) FROM event GROUP BY kind ORDER BY kind") == \
        [("asked", n, n), ("finished", n, n)], rows("SELECT kind, count(*) FROM event GROUP BY kind")
    assert rows("SELECT * FROM lease") == [], rows("SELECT * FROM lease")
    found = search("--study", study, "--workers", "1")  # nothing is left to be done
    assert found["finished"] == n_trials and found["failed"] == whole["failed"]
    if strategy == "random":
        assert front_of(found) == front_of(whole), "another front"
        db = sqlite3.connect("whole.db")
        codes = db.execute("SELECT number, code FROM trial ORDER BY number").fetchall()
        db.close()
        assert rows("SELECT number, code FROM trial ORDER BY number") == [(str(i), code) for i, code in codes]
    assert search("--study", study, "--resume", "--trials", str(n_trials + 10))["finished"] == n_trials + 10


whole = search("--study", "whole.db", "--overwrite")
begin = time.monotonic()
counts = storm()
check(whole)
print(f"# {n_trials} trials by {n_workers} workers, {strategy}: {counts['kill']} killed, {counts['stop']} cut off, "
      f"{counts['restart']} restarts of the server, {time.monotonic() - begin:.0f} s: 0 lost, 0 doubled")
