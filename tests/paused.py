#!/usr/bin/env python3
"""paused.py shells|programs SEED COMMAND...: runs tests on a machine where nobody keeps pace.

While the command runs, one process below it after the other is stopped for a moment: of the `shells`
and Pythons that are the tests themselves, which then see hwnas as a machine of many times its speed
would run it; or of the `programs`, which are then slow. A test must pass either way. What a test stops
itself has HWNAS_NOT_PAUSED in its environment. Prints the seed, and ends as the command does."""
import os
import random
import signal
import subprocess
import sys
import time

PAUSES = [0.02, 0.1, 0.3, 0.8]  # seconds; two of them take a test from one moment of hwnas to another
GAPS = [0.01, 0.05, 0.2]


def processes():
    """Of every process: its parent, its name, its state, its command line."""
    found = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", errors="replace") as stat, \
                    open(f"/proc/{entry}/cmdline", errors="replace") as line:
                text, command = stat.read(), line.read()
        except OSError:
            continue
        name = text[text.index("(") + 1:text.rindex(")")]
        state, parent = text[text.rindex(")") + 2:].split()[:2]
        found[int(entry)] = (int(parent), name, state, command)
    return found


def above(pid, root, found):
    """The processes from this one up to the root; none if it is not below that."""
    chain = []
    while pid in found and pid != root:
        chain.append(found[pid])
        pid = found[pid][0]
    return chain if pid == root else []


def is_program(name):
    return "hwnas" in name or name in ("mortal", "still_runner")


def stops_by_itself(pid):
    try:
        with open(f"/proc/{pid}/environ", errors="replace") as environment:
            return "HWNAS_NOT_PAUSED=" in environment.read()
    except OSError:
        return True


def candidates(root, mode):
    found = processes()
    for pid, (_, name, state, _) in found.items():
        chain = above(pid, root, found)
        # Bats runs each test in a process of its own; shells below hwnas are what it runs.
        if state in "TtZX" or not any("bats-exec-test" in command for *_, command in chain):
            continue
        if is_program(name) if mode == "programs" else (
                name in ("bash", "sh", "dash", "python3") and not any(is_program(up[1]) for up in chain)):
            if not stops_by_itself(pid):
                yield pid


def pause(pid, seconds):
    try:
        os.kill(pid, signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            os.kill(pid, signal.SIGCONT)
    except ProcessLookupError:
        pass


def main():
    mode, seed, command = sys.argv[1], sys.argv[2], sys.argv[3:]
    assert mode in ("shells", "programs") and command, __doc__
    print(f"paused.py: {mode}, seed {seed}", flush=True)
    chance = random.Random(seed)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    tests = subprocess.Popen(command, close_fds=False)  # make hands its jobs on by files
    while tests.poll() is None:
        pids = sorted(candidates(tests.pid, mode))
        if pids:
            pause(chance.choice(pids), chance.choice(PAUSES))
        time.sleep(chance.choice(GAPS))
    return tests.returncode


if __name__ == "__main__":
    sys.exit(main())
