#!/usr/bin/env python3
"""The device `torch`: runs networks as the PyTorch modules that hwnas writes of them.

torch_runner.py LIBRARY: becomes a runner of LIBRARY, which is libhwnas.so. What is measured, when and how often is
the library's business (src/device/torch/torch.h); hwnas starts this by itself.
"""
import contextlib
import ctypes
import importlib.util
import itertools
import os
import pathlib
import re
import sys
import tempfile

WAYS = ("eager", "compiled")
WARM_UP = 3  # runs: the compiler of TorchScript looks at two before it begins


class Unsupported(Exception):
    """A message, and perhaps what to try."""


# ---- The module ----


class Failed(Exception):
    """A status of the library, which has the message."""


class NetworkOptions(ctypes.Structure):  # hwnas_network_options
    _fields_ = [("size", ctypes.c_size_t), ("batch", ctypes.c_int), ("takes_own_batch", ctypes.c_bool),
                ("shape", ctypes.c_char_p)]


class ArrayInfo(ctypes.Structure):  # hwnas_array_info
    _fields_ = [("name", ctypes.c_char_p), ("type", ctypes.c_char_p), ("rank", ctypes.c_int),
                ("dims", ctypes.POINTER(ctypes.c_int64)), ("count", ctypes.c_int64)]


def ports(tell, network):
    """The shape and the type, which is PyTorch's name of it, of each input or output."""
    infos = itertools.takewhile(bool, (tell(network, ctypes.c_size_t(i)) for i in itertools.count()))
    return [(info[0].dims[:info[0].rank], info[0].type.decode()) for info in infos]


def write_module(onnx, library):
    """Has the library write the network as a module with its weights: that, ready to run; its inputs and outputs."""
    def call(name, *arguments):
        status = getattr(library, name)(*arguments)
        if status:
            raise Failed(status)

    network, options = ctypes.c_void_p(), NetworkOptions(ctypes.sizeof(NetworkOptions), 0, True, None)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "network.")
        pathlib.Path(path + "onnx").write_bytes(onnx)
        call("hwnas_network_open", ctypes.byref(network), os.fsencode(path + "onnx"), None,
             ctypes.byref(options))
        try:
            call("hwnas_network_export", network, os.fsencode(path + "py"), b"pytorch", None)
            given, wanted = (ports(tell, network) for tell in (library.hwnas_network_input, library.hwnas_network_output))
        finally:
            library.hwnas_network_close(network)
        spec = importlib.util.spec_from_file_location("network", path + "py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.build(), given, wanted


def compile_module(model, inputs):
    import torch
    if hasattr(torch, "compile"):
        return torch.compile(model)

    def trace():
        return torch.jit.trace(model, inputs, check_trace=False)

    if model.training:
        return trace()
    optimized = torch.jit.optimize_for_inference(torch.jit.freeze(trace()))
    return optimized if agree(optimized, model, inputs) else torch.jit.freeze(trace())


def agree(one, other, inputs):
    """Of PyTorch 1.13 optimize_for_inference() computes Hardswish, Hardsigmoid and ReLU6 wrongly after a convolution whose
    channels do not fill its blocks."""
    import torch
    values = [torch.rand(x.shape) if x.is_floating_point() else x for x in inputs]
    pairs = [(x if isinstance(x, (tuple, list)) else [x]) for x in (one(*values), other(*values))]
    return all((a - b).abs().max() <= 0.01 * b.abs().max() if b.is_floating_point() else (a == b).all()
               for a, b in zip(*pairs))


# ---- Training steps ----


def target_of(output, loss):
    """Classes, or values: what they are does not matter for the time."""
    import torch
    if loss == "cross-entropy":
        return torch.randint(output.shape[-1], (output.numel() // output.shape[-1],))
    return torch.rand(output.shape)


def loss_of(output, target, loss):
    import torch.nn.functional as F
    if loss == "cross-entropy":
        return F.cross_entropy(output.float().reshape(-1, output.shape[-1]), target)
    return F.mse_loss(output.float(), target)


def training_step(model, inputs, training, precision, losses):
    """A function that does one step: forward, loss, backward, update."""
    import torch
    # Rates are so small that no weight changes by much, however many steps are measured.
    optimizer = (torch.optim.SGD(model.parameters(), lr=1e-4, momentum=0.9) if training == "sgd"
                 else torch.optim.AdamW(model.parameters(), lr=1e-6))

    def forward():
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bf16"):
            outputs = model(*inputs)
        return outputs if isinstance(outputs, (tuple, list)) else [outputs]

    with torch.no_grad():
        targets = [target_of(output, loss) for output, loss in zip(forward(), losses)]

    def step():
        optimizer.zero_grad()
        sum(map(loss_of, forward(), targets, losses)).backward()
        optimizer.step()

    return step


def held_bytes(key):
    """VmRSS, what this process holds; VmHWM, the most that it has held."""
    return int(re.search(rf"{key}:\s*(\d+) kB", pathlib.Path("/proc/self/status").read_text())[1]) << 10


# ---- Networks on arrays of the library ----


class Network:
    """A module, and where its inputs come from and its outputs go."""

    def __init__(self, onnx, library, way, training, precision, losses):
        import torch
        self.trains = training != "none"
        self.held = held_bytes("VmRSS")
        set_mode(self.trains)
        library.hwnas_torch_say(b"writing the module")
        module, self.given, self.wanted = write_module(onnx, library)
        self.module = module.train(self.trains)
        if way == "compiled":
            library.hwnas_torch_say(b"compiling")
            zeros = [torch.zeros(shape, dtype=getattr(torch, kind)) for shape, kind in self.given]
            self.module = compile_module(module, zeros)
            for _ in range(0 if self.trains else WARM_UP):
                library.hwnas_torch_say(b"running for the compiler")
                self.module(*zeros)
        self.how = training, precision, losses

    def bind(self, inputs, outputs):
        """Floats stay where they are; what is none is converted in each run, as there may be others by then."""
        import torch
        arrays = [array_at(address, shape) for address, (shape, _) in zip(inputs, self.given)]
        given = [array.to(getattr(torch, kind)) for array, (_, kind) in zip(arrays, self.given)]
        wanted = [array_at(address, shape) for address, (shape, _) in zip(outputs, self.wanted)]
        converted = [pair for pair in zip(given, arrays) if pair[0] is not pair[1]]
        module = self.module

        def run():
            for tensor, array in converted:
                tensor.copy_(array)
            found = module(*given)
            for array, tensor in zip(wanted, found if len(wanted) > 1 else (found,)):
                array.copy_(tensor)

        def run_one():
            """The same for most networks, in a microsecond less."""
            only.copy_(module(*given))

        only = wanted[0]
        self.run = (training_step(module, given, *self.how) if self.trains else
                    run if converted or len(wanted) > 1 else run_one)


def array_at(address, shape):
    """Floats of the library as a tensor."""
    import torch
    size = 1
    for n in shape:
        size *= n
    return torch.frombuffer((ctypes.c_float * size).from_address(address), dtype=torch.float32).reshape(shape)


def set_mode(trains, entered=[]):
    """PyTorch's inference mode from now on, or not: entering it in each run would be part of what is measured."""
    import torch
    if trains and entered:
        entered.pop().__exit__(None, None, None)
    elif not trains and not entered:
        entered.append(torch.inference_mode())
        entered[0].__enter__()


# ---- The library ----


class Side:
    """The functions of hwnas_torch_calls, as Python has them."""

    def __init__(self, library):
        self.library, self.way, self.networks = library, "", {}

    def open(self, way, threads, library, size):
        self.way = way.decode() or "eager"
        if self.way not in WAYS:
            raise Unsupported(f"torch does not run networks '{self.way}'", "write torch, torch:eager or torch:compiled")
        try:
            import torch
        except ModuleNotFoundError:
            raise Unsupported(f"{sys.executable} has no PyTorch",
                              "install python3-torch, or name another Python: HWNAS_TORCH_PYTHON=/path/python3")
        torch.set_num_threads(threads)
        by = "torch.compile" if hasattr(torch, "compile") else "torch.jit.freeze"
        name = f"PyTorch {torch.__version__[:20]}, " + (f"compiled by {by}" if self.way == "compiled" else self.way)
        ctypes.memmove(library, name.encode()[:size - 1] + b"\0", min(len(name), size - 1) + 1)

    def compile(self, number, onnx, length, training, precision, losses):
        self.networks[number] = Network(ctypes.string_at(onnx, length), self.library, self.way, training.decode(),
                                        precision.decode(), losses.decode().split(","))

    def bind(self, number, inputs, outputs):
        self.networks[number].bind(inputs, outputs)

    def run(self, number):
        self.networks[number].run()

    def memory(self, number):
        network = self.networks[number]
        return max(held_bytes("VmHWM") - network.held, 0) if network.trains else 0

    def free(self, number):
        self.networks.pop(number, None)


STATUS, NUMBER, TEXT, SIZE, PLACE = ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p
ARRAYS = ctypes.POINTER(PLACE)
CALLS = {  # src/device/torch/torch.h
    "open": (STATUS, TEXT, NUMBER, PLACE, SIZE),
    "compile": (STATUS, NUMBER, PLACE, SIZE, TEXT, TEXT, TEXT),
    "bind": (STATUS, NUMBER, ARRAYS, ARRAYS),
    "run": (STATUS, NUMBER),
    "memory": (SIZE, NUMBER),
    "free": (None, NUMBER),
}


class Calls(ctypes.Structure):
    _fields_ = [(name, ctypes.CFUNCTYPE(*types)) for name, types in CALLS.items()]


def main(path):
    with contextlib.suppress(OSError):
        # PyTorch's wheels bring an OpenMP of their own. With this one before it, all threads are of one team.
        ctypes.CDLL("libgomp.so.1", ctypes.RTLD_GLOBAL)
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        sys.exit(f"the device torch needs hwnas's library: {error} (Debian: libhwnas0)")
    library.hwnas_status_name.restype = ctypes.c_char_p
    library.hwnas_network_input.restype = library.hwnas_network_output.restype = ctypes.POINTER(ArrayInfo)
    statuses = {library.hwnas_status_name(i): i for i in range(32)}
    unsupported, out_of_memory = statuses[b"unsupported"], statuses[b"out_of_memory"]

    def fail(status, message, hint=""):
        library.hwnas_fail(status, None, b"%s", message.encode("utf-8", "replace"))
        return library.hwnas_hint(status, b"%s", hint.encode()) if hint else status

    def tells(function):
        """What is raised fails this network, and the search goes on with others."""
        def call(*arguments):
            try:
                function(*arguments)
                return 0
            except Failed as error:
                return error.args[0]
            except Unsupported as error:
                return fail(unsupported, *error.args)
            except Exception as error:
                of_memory = isinstance(error, MemoryError) or "allocate memory" in str(error)
                return fail(out_of_memory if of_memory else unsupported, f"{type(error).__name__}: {error}"[:900])
        return call

    side = Side(library)
    calls = Calls(*(kind(tells(getattr(side, name)) if CALLS[name][0] is STATUS else getattr(side, name))
                    for name, kind in Calls._fields_))
    library.hwnas_torch_use(ctypes.byref(calls))
    code = ctypes.c_int(2)
    words = (ctypes.c_char_p * 3)(b"hwnas", b"runner", None)
    library.hwnas_runner_main(ctypes.byref(code), 2, words)
    os._exit(code.value)  # PyTorch has nothing left to do


if __name__ == "__main__":
    main(*sys.argv[1:])
