"""Starts a program of Python with a PyTorch that finds a GPU: what is asked of it the processor computes, in the same
precision. It has a clock as the GPU's, a memory of 64 MiB, of which "tensors" are counted, and CUDA graphs that do again
what was recorded. STANDIN_CUDA: "none", a PyTorch without CUDA; "driver", without a driver; "lost", whose runs fail.

torch_on_gpu.py PROGRAM [ARGUMENT]...
"""
import contextlib
import os
import runpy
import sys
import time

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

KIND = os.environ.get("STANDIN_CUDA", "")
ROOM = 64 << 20
allocated, peak = 0, 0


def is_gpu(x):
    return isinstance(x, (str, torch.device)) and str(x).startswith("cuda")


class OnProcessor(TorchFunctionMode):
    """Tensors of the GPU are the processor's."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        there = [torch.device("cpu") if is_gpu(x) else x for x in args]
        return function(*there, **{key: torch.device("cpu") if is_gpu(x) else x for key, x in (kwargs or {}).items()})


class Event:
    def __init__(self, enable_timing=False, blocking=False):
        assert enable_timing and blocking  # who waits sleeps

    def record(self):
        self.when = time.perf_counter()

    def synchronize(self):
        pass

    def elapsed_time(self, end):
        return (end.when - self.when) * 1e3


class Recorder(TorchDispatchMode):
    def __init__(self, steps):
        super().__init__()
        self.steps = steps

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        self.steps.append((function, args, kwargs or {}, found))
        return found


class CUDAGraph:
    def __init__(self):
        self.steps = []

    def replay(self):
        for function, args, kwargs, found in self.steps:
            again = function(*args, **kwargs)
            for old, new in zip(*(x if isinstance(x, (tuple, list)) else [x] for x in (found, again))):
                if isinstance(old, torch.Tensor):
                    old.copy_(new)


def fail(message):
    raise RuntimeError(message)


def synchronize():
    if KIND == "lost":
        fail("CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be reported later")


def init():
    if KIND == "driver":
        fail("Found no NVIDIA driver on your system.")


@contextlib.contextmanager
def graph(recorded):
    with Recorder(recorded.steps):
        yield


to = torch.nn.Module.to


def move(module, *args, **kwargs):
    """Counts a module's weights: it is what takes memory here."""
    global allocated, peak
    moved = to(module, *args, **{**kwargs, "device": "cpu"})
    allocated = sum(weights.numel() * weights.element_size() for weights in moved.parameters())
    peak = max(peak, allocated)
    if allocated > ROOM:
        fail(f"CUDA out of memory. Tried to allocate {allocated >> 20} MiB")
    return moved


cuda, autocast = torch.cuda, torch.autocast
torch.autocast = lambda place, **how: autocast("cpu", **how)
torch.version.cuda = None if KIND == "none" else "13.0"
torch.nn.Module.to = move
cuda.init, cuda.synchronize, cuda.Event, cuda.CUDAGraph, cuda.graph = init, synchronize, Event, CUDAGraph, graph
cuda.is_available, cuda.device_count, cuda.set_device = lambda: True, lambda: 1, lambda number: None
cuda.get_device_name, cuda.get_device_capability = lambda number: "a stand-in", lambda number: (9, 0)
cuda.memory_allocated, cuda.max_memory_allocated = lambda: 0, lambda: peak
torch._C._cuda_clearCublasWorkspaces = lambda: None
cuda.reset_peak_memory_stats = cuda.empty_cache = lambda: None
del sys.argv[0]
with OnProcessor():
    runpy.run_path(sys.argv[0], run_name="__main__")
