#!/usr/bin/python3
"""A search on another machine whose link is cut again and again, in every way that links break.

cut_links.py PROGRAM SSH DEVICE CUTS: SSH reaches the machines of DEVICE; what it measures is a function of the network
alone. In the end the study is that of a search with an undisturbed link. This file is also the
program that stands in the place of SSH: with $CUT_LINKS, a directory, it cuts the link once and then ends.
"""
import fcntl, json, os, random, select, signal, sqlite3, struct, subprocess, sys, time

KINDS = ["killed", "half a frame in", "half a frame out", "stopped", "filled"]
SILENT = KINDS[3:]  # which hwnas learns by its timeout
MOST_IN_VAIN = 6
PARALLEL = 4
ANSWER = 5  # docs/runner-protocol.md


class Answers:
    """How many frames of that type have passed whole, and how many bytes the frame or its head still has."""

    def __init__(self):
        self.n, self.left, self.head, self.type = 0, 16, b"", None

    def take(self, data):
        self.left -= len(data)
        if self.type is None:
            self.head += data
            if not self.left:
                self.type, self.left = struct.unpack("<IQ", self.head[4:])
                self.head = b""
        if self.type is not None and not self.left:
            self.n += self.type == ANSWER
            self.type, self.left = None, 16


def is_running(pid):
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return pid != 0


def cut(directory):
    """Stands for ssh once."""
    with open(directory + "/log", "a") as log:
        fcntl.flock(log, fcntl.LOCK_EX)  # of several boards one at a time
        plan = json.load(open(directory + "/plan"))
        words = [plan["ssh"]] + sys.argv[1:]
        if not plan["cuts"]:
            os.execv(plan["ssh"], words)
        # One silent link at a time: a network that was on it has its second chance on another board.
        due = next((i for i, c in enumerate(plan["cuts"]) if c[0] not in SILENT), 0) if is_running(plan["silent"]) else 0
        kind, at, delay = plan["cuts"].pop(due)
        if kind in SILENT:
            plan["silent"] = os.getpid()
        json.dump(plan, open(directory + "/next", "w"))
        os.rename(directory + "/next", directory + "/plan")
        print(kind, file=log, flush=True)
    ssh = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    passed, answers = {0: 0, 1: 0}, Answers()
    is_armed = False
    while True:
        for fd in select.select([0, ssh.stdout.fileno()], [], [])[0]:
            is_out = fd != 0
            n = 65536
            if is_out and not is_armed:
                n = answers.left
            elif is_out and kind in ("half a frame out", *SILENT):
                n = min(n, at - passed[1])
            elif not is_out and kind == "half a frame in":
                n = min(n, 400 + at - passed[0])
            if n <= 0:
                if kind == "stopped":
                    ssh.send_signal(signal.SIGSTOP)
                if kind in SILENT:
                    while True:  # a full pipe: nothing is read any more; hwnas ends us all
                        time.sleep(1)
                ssh.kill()
                sys.exit(255)
            data = os.read(fd, n)
            if not data:
                ssh.kill()
                sys.exit(255)
            os.write(1, data) if is_out else ssh.stdin.write(data)
            if is_armed or not is_out:
                passed[is_out] += len(data)
                continue
            answers.take(data)
            # The first answer says who is there. As a request is made once more after silence, and no more, a network
            # is answered before a silent cut, however many bytes that takes: the first, which a link that is made anew is
            # asked again; of several boards as many as can be open, as one of them may have been lost on another board.
            if answers.n == 1 + (plan["open"] if kind in SILENT else 0):
                is_armed = True
                if kind == "killed":
                    time.sleep(delay)
                    ssh.kill()
                    sys.exit(255)


def plan_cuts(n, rng):
    # Where a link is cut before it answers anything, the same network may be lost each time, and ten times are too many.
    cuts = []
    while len(cuts) < n:
        is_due = len(cuts) >= MOST_IN_VAIN and not any(c[0] in SILENT for c in cuts[-MOST_IN_VAIN:])
        kind = rng.choice(SILENT if is_due else KINDS)
        if kind in SILENT and any(c[0] in SILENT for c in cuts[-3:]):
            continue
        cuts.append((kind, rng.randrange(1, 6000), rng.uniform(0, .05)))
    return cuts


def search(name, n, environment):
    command = [program, "search", "--space", "nas_bench_macro", "--accuracy", "nas_bench_macro_cifar10",
               "--strategy", "nsga2", "--objectives", "accuracy,latency.p50", "--ties", "0", "--confirm", "0",
               "--estimate", "off", "--parallel", str(PARALLEL), "--device", device, "--timeout", "1", "--trials", str(n), "--json",
               "--study", name + ".db"]
    run = subprocess.run(command, env=dict(os.environ, **environment), capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def trials_of(name):
    db = sqlite3.connect(name + ".db")
    trials = db.execute("SELECT number, code, status, violation FROM trial ORDER BY number").fetchall()
    values = db.execute("SELECT * FROM value ORDER BY trial, position").fetchall()
    db.close()
    return trials, values


if "CUT_LINKS" in os.environ:
    cut(os.environ["CUT_LINKS"])
program, ssh, device, n_cuts = sys.argv[1:]
seed = int(os.environ.get("HWNAS_SEED") or random.randrange(1 << 30))
print("# seed", seed, "(HWNAS_SEED)")
rng = random.Random(seed)
os.mkdir("cuts")
n_trials = 4 * int(n_cuts)
json.dump({"ssh": ssh, "cuts": plan_cuts(int(n_cuts), rng), "silent": 0, "open": PARALLEL if "+" in device else 1},
          open("cuts/plan", "w"))
undisturbed = search("undisturbed", n_trials, {"HWNAS_SSH": ssh})
disturbed = search("disturbed", n_trials, {"HWNAS_SSH": os.path.abspath(__file__), "CUT_LINKS": os.path.abspath("cuts")})
made = open("cuts/log").read().splitlines()
print("#", len(made), "links cut:", ", ".join(f"{made.count(k)} {k}" for k in KINDS))
assert len(made) == int(n_cuts), "the search was over before"
failed = [sqlite3.connect(name + ".db").execute(
    "SELECT number, code, status, message FROM trial WHERE status != 'ok' ORDER BY number").fetchall()
          for name in ("undisturbed", "disturbed")]
assert failed[0] == failed[1], [row for row in failed[1] if row not in failed[0]] or "trials did not fail that should have"
assert disturbed["trials"] == disturbed["finished"] == n_trials
front = [[(t["arch"], t["objectives"]) for t in s["front"]] for s in (undisturbed, disturbed)]
assert front[0] == front[1], front
assert trials_of("disturbed") == trials_of("undisturbed"), "trials are lost, doubled or others"
