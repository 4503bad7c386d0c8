"""Every allocation and every write of a search, a resume and an export fails once.

faults.py FAULTY SOURCE [SCENARIO FAULT N]: FAULTY is tests/fault/faulty, which says what the faults are.
A run in which something failed may end well: then all is as without a fault. Or it ends with status 1 and a
message that says what there was not enough of, or what could not be written; what it was to write is whole
or as before; and the search, continued without faults, ends as if nothing had happened.

HWNAS_FAULTS of the N are tried for each scenario and fault, others each day or as HWNAS_SEED says: 30, and
2,000 with HWNAS_LONG=yes; and each of the first 40 writes, or 200, finds the disk full (at most two for each of HWNAS_FAULTS). All of them, HWNAS_FAULTS=100000, take hours. With SCENARIO FAULT N that one alone, which shows the stack of what failed.
"""
import concurrent.futures, contextlib, datetime, os, random, re, shutil, sqlite3, subprocess, sys, time

faulty, source = map(os.path.abspath, sys.argv[1:3])
TABLE = source + "/tests/data/nas_bench_macro.csv"
JOB = f"""space: nas_bench_macro
accuracy: table:{TABLE}#acc_top1_pct_mean
device: replay:{TABLE}#macs_count
objectives: [accuracy, macs]
strategy: random
budget: {{trials: 6}}
export: {{onnx: best.onnx, pytorch: best.py, yaml: best.yaml}}
"""
MEMORY = re.compile(r"^hwnas: .*(out of memory|no memory|Cannot allocate memory)", re.M)
BROKEN = re.compile(r"^hwnas: .*(Input/output error|the disk, or its file system, does not do as it should)", re.M)
FULL = re.compile(r"^(hwnas: .*(No space left on device|the disk is full)|  hint: .*is there room on the disk)", re.M)
FAULTS = {"memory": MEMORY, "starved": MEMORY, "eio": BROKEN, "full": FULL}
OLD = b"what was there before\n"
LOGS = "job.db-wal", "job.db-shm"
EXPORTS = dict.fromkeys(["best.onnx", "best.py", "best.yaml"], OLD)
SEARCH = ["search", "job.yaml", "--json"]
IS_LONG = bool(os.environ.get("HWNAS_LONG"))
WANTED = int(os.environ.get("HWNAS_FAULTS") or (2000 if IS_LONG else 30))
FIRST_WRITES = min(200 if IS_LONG else 40, 2 * WANTED)  # each of them finds the disk full


def export(form):
    return ["export", "job.db", "--trial", "1", "--format", form, "--out", "best"]


class Server:
    """A process of `faulty`, and a directory to run in."""

    def __init__(self, name):
        self.folder = os.path.abspath(name)
        self.process = subprocess.Popen([faulty], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, fault, n, arguments):
        """(status, what was seen, standard output, standard error)"""
        print(fault, n, self.folder, *arguments, sep="\t", file=self.process.stdin, flush=True)
        status, seen = map(int, self.process.stdout.readline().split())
        return status, seen, self.take("out"), self.take("err")

    def take(self, name):
        with open(os.path.join(self.folder, name)) as file:
            text = file.read()
        os.remove(os.path.join(self.folder, name))
        return re.sub(r'("\w*seconds"|"trials_per_minute"): [-+.\de]+', r"\1: 0", text)

    def lay(self, files):
        shutil.rmtree(self.folder, ignore_errors=True)
        os.mkdir(self.folder)
        for name, content in files.items():
            with open(os.path.join(self.folder, name), "wb") as file:
                file.write(content)

    def files(self):
        return {name: open(os.path.join(self.folder, name), "rb").read() for name in os.listdir(self.folder)}

    def study(self):
        """All that the study says, but for times."""
        path = os.path.join(self.folder, "job.db")
        if not os.path.exists(path):
            return None
        with contextlib.closing(sqlite3.connect(path)) as db:
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)], "the study is damaged"
            rows = []
            for table, in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY 1").fetchall():
                names = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
                columns = ", ".join(name for name in names if name != "seconds")
                rows += [(table, *row) for row in db.execute(f"SELECT {columns} FROM {table}") if "seconds" not in str(row[0])]
        # A study knows the folder of its job: this server's, or that of the one which made it.
        folders = re.escape(self.folder).rstrip("0123456789") + r"\d*"
        return sorted(re.sub(folders, "HERE", repr(row)) for row in rows)


class Scenario:
    def __init__(self, files, arguments, is_search):
        self.files, self.arguments, self.is_search = files, arguments, is_search
        self.resumed = set()  # what was left by faults, and resumed well

    def learn(self, server):
        """What comes out without a fault, and how much there is that can fail."""
        server.lay(self.files)
        status, _, self.out, self.err = server.run("none", 0, self.arguments)
        assert status == 0, self.err
        self.after, self.whole = server.files(), server.study()
        self.counts = {}
        for fault in FAULTS:
            server.lay(self.files)
            self.counts[fault] = server.run(fault, 1 << 40, self.arguments)[1]

    def check_whole(self, server, fault, out):
        assert out == self.out, "another result:\n" + out
        found = server.files()
        if fault == "eio":  # at the end SQLite may be kept from putting its log into the one file
            found = {name: content for name, content in found.items() if name not in LOGS}
        assert sorted(found) == sorted(self.after), f"other files: {sorted(found)}"
        study = server.study()
        assert study == self.whole, "another study: " + ", ".join(
            row[:200] for row in sorted(set(study or ()) ^ set(self.whole)))[:1500]
        for name, content in found.items():
            assert name == "job.db" or content == self.after[name], f"{name} is another"

    def check(self, server, fault, n):
        server.lay(self.files)
        status, _, out, err = server.run(fault, n, self.arguments)
        if status == 0:
            assert err == self.err or FAULTS[fault].search(err), f"ended well, but said:\n{err}"
            self.check_whole(server, fault, out)
            return "well"
        assert status == 1, f"ended with {status}:\n{err}"
        assert FAULTS[fault].search(err), f"not what happened:\n{err}"
        for name, content in server.files().items():
            old = self.files.get(name), self.after.get(name)
            assert name.startswith("job.db") or content in old, f"{name} is neither the old nor the new one"
        if self.is_search:
            self.check_resume(server)
        return "failed"


    def check_resume(self, server):
        files = server.files()
        left = repr((server.study(), sorted((name, name.startswith("job.db") or content)
                                            for name, content in files.items())))
        if left in self.resumed:  # many faults leave the same
            return
        arguments = [a for a in self.arguments if a != "--resume"] + ["--resume"] * ("job.db" in files)
        status, _, out, err = server.run("none", 0, arguments)
        assert status == 0, f"cannot go on:\n{err}"
        self.check_whole(server, "none", out)
        self.resumed.add(left)


def learn(server):
    scenarios = {"search": Scenario({"job.yaml": JOB.encode(), **EXPORTS}, SEARCH, True)}
    scenarios["search"].learn(server)
    study = server.files()["job.db"]
    server.lay({"job.yaml": JOB.encode()})
    assert server.run("none", 0, SEARCH + ["--trials", "3"])[0] == 0
    scenarios["resume"] = Scenario({"job.yaml": JOB.encode(), "job.db": server.files()["job.db"], **EXPORTS},
                                   SEARCH + ["--resume"], True)
    for form in "onnx", "pytorch", "yaml":
        scenarios["export-" + form] = Scenario({"job.db": study, "best": OLD}, export(form), False)
    scenarios["show"] = Scenario({"job.db": study}, ["study", "show", "job.db", "--json"], False)
    for scenario in list(scenarios.values())[1:]:
        scenario.learn(server)
    return scenarios


def chosen(fault, count, rng):
    first = range(1, min(FIRST_WRITES, count) + 1) if fault == "full" else ()
    return sorted({*first, *rng.sample(range(1, count + 1), min(WANTED, count))})


def main():
    if len(sys.argv) > 3:
        os.environ["FAULTY_STACK"] = "yes"
        server = Server("alone")
        name, fault, n = sys.argv[3:]
        print(learn(server)[name].check(server, fault, int(n)))
        return 0
    seed = int(os.environ.get("HWNAS_SEED") or datetime.date.today().toordinal())
    rng = random.Random(seed)
    print("# seed", seed, "(HWNAS_SEED)")
    n_jobs = os.cpu_count()
    servers = [Server(f"worker{i}") for i in range(n_jobs)]
    scenarios = learn(servers[0])
    findings = {}

    def work(server, name, fault, share):
        ends = {"well": 0, "failed": 0}
        for n in share:
            try:
                ends[scenarios[name].check(server, fault, n)] += 1
            except (AssertionError, sqlite3.Error) as error:
                text = f"{type(error).__name__}: {error}"
                findings.setdefault((name, fault, re.sub(r"\d+", "", text)), []).append((n, text))
        return ends

    with concurrent.futures.ThreadPoolExecutor(n_jobs) as pool:
        for name, scenario in scenarios.items():
            for fault in FAULTS:
                begin = time.time()
                if scenario.counts[fault] == 0:
                    continue
                all_n = chosen(fault, scenario.counts[fault], rng)
                ends = list(pool.map(work, servers, [name] * n_jobs, [fault] * n_jobs,
                                     [all_n[i::n_jobs] for i in range(n_jobs)]))
                print(f"# {name}, {fault}: {len(all_n)} of {scenario.counts[fault]}, "
                      f"{sum(e['well'] for e in ends)} ended well, {sum(e['failed'] for e in ends)} with a message, "
                      f"{time.time() - begin:.1f} s", flush=True)
    for (name, fault, _), all_n in findings.items():
        print(f"{name} {fault} {all_n[0][0]}: {all_n[0][1]}\n  (and {len(all_n) - 1} more like it: "
              f"{' '.join(str(n) for n, _ in all_n[1:9])})")
    return 1 if findings else 0


sys.exit(main())
