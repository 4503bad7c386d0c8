"""PyTorch as a worker of `engine`: engine_torch.py MODULE.py MODE THREADS SHAPE..., where MODULE.py
is what `hwnas export --format pytorch` wrote, MODE is eager or frozen, and each SHAPE is of an input
("1x3x224x224", whole numbers "i1x128"). engine_worker.h tells the protocol."""
import importlib.util
import json
import os
import resource
import sys
import time
import warnings

path, mode, threads, shapes = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4:]
os.environ["OMP_NUM_THREADS"] = str(threads)
import torch  # after the threads are said

warnings.filterwarnings("ignore")
torch.set_num_threads(threads)
torch.set_num_interop_threads(1)
torch.manual_seed(1)


def make_input(text):
    dims = [int(n) for n in text.lstrip("i").split("x")]
    return torch.randint(0, 2, dims) if text.startswith("i") else torch.rand(dims) * 2 - 1


def load():
    spec = importlib.util.spec_from_file_location("model", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.build().eval()


def main():
    inputs = [make_input(text) for text in shapes]
    start = time.perf_counter()
    model = load()
    with torch.inference_mode():
        if mode == "frozen":
            # The tensor-expression fuser of Debian's build compiles a CNN for minutes.
            torch._C._jit_set_texpr_fuser_enabled(False)
            model = torch.jit.freeze(torch.jit.trace(model, inputs, check_trace=False))
            model = torch.jit.optimize_for_inference(model)
        create = time.perf_counter() - start
        start = time.perf_counter()
        model(*inputs)
        first = time.perf_counter() - start
        for _ in range(4):
            model(*inputs)
        print(json.dumps({"who": f"PyTorch {torch.__version__} {mode}", "create_s": create,
                          "first_s": first,
                          "rss_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}), flush=True)
        for line in sys.stdin:
            seconds, end = [], time.perf_counter() + float(line)
            while len(seconds) < 3 or time.perf_counter() < end:
                start = time.perf_counter()
                model(*inputs)
                seconds.append(time.perf_counter() - start)
            seconds.sort()
            print(json.dumps({"median_s": seconds[len(seconds) // 2], "min_s": seconds[0],
                              "runs": len(seconds)}), flush=True)


main()
