"""Stands for a Python in tests that train: a script runs in a fork of a process that has loaded PyTorch once for all of
them (training/fork_server.py, whose VARIABLE the script finds as hwnas has set it).

    loaded_python.py --serve SOCKET
    loaded_python.py SOCKET SCRIPT ARGUMENT..."""
import os
import runpy
import sys

sys.path[0] = os.environ["HWNAS_SRC"] + "/training"
import fork_server

KEPT = "LOADED_PYTHON_KEPT"


def load():
    import numpy, torch
    from torch.nn import functional


def run():
    kept = os.environ.pop(KEPT)
    del os.environ[fork_server.VARIABLE]
    if kept:
        os.environ[fork_server.VARIABLE] = kept
    del sys.argv[0]
    sys.path[0] = os.path.dirname(sys.argv[0])
    runpy.run_path(sys.argv[0], run_name="__main__")


if sys.argv[1] == "--serve":
    fork_server.serve(sys.argv[2], load)
    fork_server.end_after(run)
socket = sys.argv.pop(1)
os.environ[KEPT] = os.environ.get(fork_server.VARIABLE, "")
os.environ[fork_server.VARIABLE] = socket
fork_server.hand_over()
sys.exit(f"{socket}: nobody who has loaded PyTorch")
