"""What the programs that train share: samples, the loop, weights and files.

Nothing but PyTorch and NumPy is needed. `hwnas optimize` puts this text into the program that it writes, so that
it is a file of its own; train.py imports it."""
import contextlib
import copy
import gzip
import importlib.util
import io
import itertools
import json
import math
import os
import sys

import numpy as np
import torch
from torch.nn import functional as F

IGNORED = -100  # a label that does not count, as PyTorch has it


def stop(message):
    sys.exit(f"{os.path.basename(sys.argv[0])}: {message}")


# ---- Samples ----


def read_idx(path, data):
    kinds = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
    if data[:2] != b"\0\0" or len(data) < 4 or data[2] not in kinds:
        stop(f"{path} is no .npz, .npy or IDX file")
    dims = np.frombuffer(data, ">u4", data[3], 4)
    values = np.frombuffer(data, kinds[data[2]], offset=4 + 4 * data[3])
    if values.size != math.prod(map(int, dims)):
        stop(f"{path} is cut off")
    return values.reshape(dims)


def read_array(path, name):
    """The array of a file; of a .npz the one of that name, None where there is none."""
    try:
        with open(path, "rb") as file:
            begin = file.read(4)
        if begin[:2] == b"PK":
            with np.load(path) as arrays:
                return arrays[name] if name in arrays else None
        if begin == b"\x93NUM":
            return np.load(path, mmap_mode="r")
        with (gzip.open if begin[:2] == b"\x1f\x8b" else open)(path, "rb") as file:
            data = file.read()
    except (OSError, ValueError, EOFError) as problem:
        stop(f"{path}: {problem}")
    if data[:6] == b"\x93NUMPY":
        return np.load(io.BytesIO(data))
    return read_idx(path, data)


def is_npz(path):
    with open(path, "rb") as file:
        return file.read(2) == b"PK"


def fraction(text):
    above, _, below = text.partition("/")
    return float(above) / float(below or 1)


class Samples:
    """Samples as a network takes them, and their labels or None. `how` says by which names and in which
    preprocessing, as `hwnas evaluate` has them: x, y, layout, scale, mean, std."""

    def __init__(self, x, y, how, shape, is_whole=False, path="the data"):
        self.x, self.y, self.how, self.wanted, self.is_whole = x, y, how, tuple(shape), is_whole
        self.resolution = 1  # of images, as a share of the height and width that the network takes
        self.turned = how.get("layout") == "nhwc" and self.x.ndim == 4
        shape = self.x.shape[1:] if not self.turned else (self.x.shape[3], *self.x.shape[1:3])
        if math.prod(shape) != math.prod(self.wanted):
            stop(f"{path}: a sample is {' x '.join(map(str, shape))}, the network takes "
                 f"{' x '.join(map(str, self.wanted))}")
        if self.y is not None and len(self.y) != len(self.x):
            stop(f"{path} has {len(self.x)} samples and {len(self.y)} labels")

    @classmethod
    def read(cls, path, labels, how, shape, is_whole=False, name="x"):
        """Of files: a .npz with both, or one for each."""
        x = read_array(path, how.get("x") or name)
        if x is None:
            x = read_array(path, "x")
        if x is None:
            stop(f"{path} has no array '{how.get('x') or name}' or 'x'")
        y = read_array(labels or path, how.get("y") or "y") if labels or is_npz(path) else None
        return cls(x, y, how, shape, is_whole, path)

    def __len__(self):
        return len(self.x)

    def inputs(self, rows, device):
        x = np.ascontiguousarray(self.x[rows])
        if self.is_whole:
            return torch.from_numpy(x.astype(np.int64)).reshape(len(rows), *self.wanted).to(device)
        if self.turned:
            x = x.transpose(0, 3, 1, 2)
        x = self.scaled(torch.from_numpy(x.astype(np.float32)).reshape(len(rows), *self.wanted).to(device))
        if self.resolution != 1 and x.dim() == 4:
            x = F.interpolate(x, [max(round(size * self.resolution), 1) for size in x.shape[2:]], mode="area")
        return x.to(memory_format=torch.channels_last) if x.dim() == 4 else x

    def scaled(self, x):
        for key, turn in (("scale", torch.mul), ("mean", torch.sub), ("std", torch.div)):
            if key in self.how:
                values = torch.tensor([fraction(text) for text in self.how[key].split(":")], device=x.device)
                if len(values) > 1:
                    values = values.reshape(-1, *[1] * (x.dim() - 2))
                x = turn(x, values)
        return x

    def find_not_finite(self):
        """The number of the first sample that has a value which is no finite number; None: there is none."""
        if self.x.dtype.kind != "f":
            return None
        for first in range(0, len(self.x), 1024):
            wrong = ~np.isfinite(self.x[first:first + 1024]).reshape(len(self.x[first:first + 1024]), -1).all(1)
            if wrong.any():
                return first + int(wrong.argmax())
        return None

    def labels(self, rows, device):
        return None if self.y is None else torch.from_numpy(np.array(self.y[rows])).to(device)


# ---- Networks and their files ----


def load_module(path):
    spec = importlib.util.spec_from_file_location("network_" + str(abs(hash(path))), path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_whole(path, write):
    """A file that is whole or not there, also after a power cut."""
    with open(path + ".part", "wb") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(path + ".part", path)


def write_weights(path, tensors):
    """A file in the format safetensors."""
    header, values = {}, b""
    for name, tensor in tensors.items():
        kind = {torch.float32: "F32", torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8",
                torch.uint8: "U8", torch.bool: "BOOL"}[tensor.dtype]
        data = tensor.contiguous().numpy().tobytes()
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [len(values), len(values) + len(data)]}
        values += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    write_whole(path, lambda file: file.write(len(text).to_bytes(8, "little") + text + values))


def write_onnx(path, model, example, input_name="x", output_name="y"):
    """With an open batch. Returns what is wrong; None: it is written."""
    names = {"input_names": [input_name], "output_names": [output_name],
             "dynamic_axes": {input_name: {0: "batch"}, output_name: {0: "batch"}}}
    if "dynamo" in torch.onnx.export.__code__.co_varnames:
        names["dynamo"] = False  # the other one wants packages of its own
    try:
        torch.onnx.export(model, example.contiguous(), path + ".part", opset_version=17, **names)
    except Exception as problem:  # the weights are there nevertheless
        return f"no ONNX file was written: {problem}"
    os.replace(path + ".part", path)
    return None


# ---- How well ----


def log_shares(outputs, gives_shares):
    """Of the classes."""
    return outputs.clamp_min(1e-12).log() if gives_shares else outputs


def are_classes(outputs, labels, classes):
    """One label for all classes of a sample, or of each of its positions; else they are numbers."""
    n = outputs.numel() if labels is None else labels.numel() * classes
    return classes > 1 and n == outputs.numel()


def outputs_of(model, samples, rows, device):
    model.eval()
    with torch.no_grad():
        return torch.cat([model(samples.inputs(some, device)).float().cpu()
                          for some in np.array_split(rows, math.ceil(len(rows) / 256))])


def score(outputs, labels, classes, gives_shares):
    """(right in percent or 100 r2, loss)."""
    if are_classes(outputs, labels, classes):
        labels, rows = labels.reshape(-1).long(), outputs.reshape(-1, classes)
        right = (rows.argmax(1) == labels)[labels != IGNORED].double().mean().item()
        return 100 * right, F.cross_entropy(log_shares(rows, gives_shares), labels, ignore_index=IGNORED).item()
    wanted = labels.reshape(outputs.shape).double()
    error = (outputs - wanted).square().mean().item()
    spread = (wanted - wanted.mean(0)).square().mean().item()
    return 100 * (1 - error / max(spread, 1e-300)), error


def find_wrong_label(labels, classes):
    """In words; None: all that count are classes."""
    counted = labels[labels != IGNORED]
    if not len(counted):
        return f"no label of {len(labels)} counts: all are {IGNORED}"
    if counted.is_floating_point() and not (counted == counted.round()).all():  # nor is NaN
        return f"a label is {float(counted[counted != counted.round()][0]):g}, and classes are whole numbers"
    if counted.min() < 0 or counted.max() >= classes:
        return (f"a label is {int(counted.min() if counted.min() < 0 else counted.max())}, "
                f"of {classes} classes from 0 on")
    return None


# ---- Images that vary ----


def flip(x):
    """Each image is mirrored or not."""
    return torch.where((torch.rand(len(x), 1, 1, 1) < 0.5).to(x.device), x.flip(-1), x)


def shift(x, n, black):
    """Each image is moved by up to n pixels; what comes in is black."""
    edge = black.expand(*x.shape[:2], x.shape[2] + 2 * n, x.shape[3] + 2 * n).clone()
    edge[:, :, n:n + x.shape[2], n:n + x.shape[3]] = x
    moves = torch.randint(0, 2 * n + 1, (2, len(x), 1)).to(x.device)
    rows = (moves[0] + torch.arange(x.shape[2], device=x.device))[:, None, :, None]
    columns = (moves[1] + torch.arange(x.shape[3], device=x.device))[:, None, None, :]
    of = torch.arange(len(x), device=x.device)[:, None, None, None]
    return edge[of, torch.arange(x.shape[1], device=x.device)[None, :, None, None], rows, columns]


def crop(x, least):
    """Of each image a part of at least that share of its area, as large as the whole
    (Szegedy et al., "Going deeper with convolutions", CVPR 2015)."""
    area = torch.empty(len(x)).uniform_(least, 1)
    ratio = torch.empty(len(x)).uniform_(math.log(3 / 4), math.log(4 / 3)).exp()
    wide, high = (area * ratio).sqrt().clamp(max=1), (area / ratio).sqrt().clamp(max=1)
    places = torch.rand(2, len(x)) * 2 - 1
    turn = torch.zeros(len(x), 2, 3)
    turn[:, 0, 0], turn[:, 0, 2] = wide, places[0] * (1 - wide)
    turn[:, 1, 1], turn[:, 1, 2] = high, places[1] * (1 - high)
    grid = F.affine_grid(turn, list(x.shape), align_corners=False).to(x.device)
    return F.grid_sample(x, grid, padding_mode="reflection", align_corners=False)


def cutout(x, n):
    """In each image a square of n pixels is 0, perhaps over its edge (DeVries and Taylor 2017)."""
    height, width = x.shape[2:]
    middle = [torch.randint(0, size, (len(x), 1)).to(x.device) for size in (height, width)]
    inside = [((torch.arange(size, device=x.device) - m) >= -(n // 2)) & ((torch.arange(size, device=x.device) - m) < n - n // 2)
              for size, m in zip((height, width), middle)]
    return x.masked_fill(inside[0][:, None, :, None] & inside[1][:, None, None, :], 0)


def vary(x, how, black):
    """Images varied by {name: value} of the functions above, [samples, channels, height, width]; `black` is
    [1, channels, 1, 1]."""
    for name, function in (("flip", lambda x, yes: flip(x)), ("shift", lambda x, n: shift(x, n, black)), ("crop", crop),
                           ("cutout", cutout)):
        if how.get(name):
            x = function(x, how[name])
    return x.contiguous(memory_format=torch.channels_last)


# ---- The loop ----


class Diverged(Exception):
    """What is no number any more; nothing that follows can be."""


class Average:
    """The exponential moving average of a model's weights."""

    def __init__(self, model, share):
        self.share, self.n, self.model = share, 0, copy.deepcopy(model).eval()

    def add(self, model):
        self.n += 1
        share = min(self.share, (1 + self.n) / (10 + self.n))  # the first weights are soon forgotten
        with torch.no_grad():
            for ours, theirs in zip(self.model.state_dict().values(), model.state_dict().values()):
                if ours.dtype.is_floating_point:
                    ours.lerp_(theirs, 1 - share)
                else:
                    ours.copy_(theirs)


class Training:
    """A model that learns from samples: `loss(model, x, labels)` of a batch, `rate(done)` by the share of the
    training that is over. What is drawn at random follows from the seed and the number of the epoch."""

    def __init__(self, model, optimizer, loss, rate, samples, rows, batch, device="cpu", seed=0, varied=None, clip=None,
                 precision="f32", average=None):
        self.model, self.optimizer, self.loss, self.rate = model, optimizer, loss, rate
        self.samples, self.rows, self.batch, self.device, self.seed = samples, rows, min(batch, len(rows)), device, seed
        self.varied, self.clip, self.average = varied or {}, clip, average
        kind = {"bf16": torch.bfloat16, "f16": torch.float16}.get(precision)
        self.cast = (lambda: torch.autocast(torch.device(device).type, kind)) if kind else contextlib.nullcontext
        self.scaler = torch.cuda.amp.GradScaler(enabled=precision == "f16")

    def batches(self, epoch):
        """The rows of each batch of an epoch, all of one size."""
        torch.manual_seed(self.seed * 1000003 + epoch)
        order = np.random.default_rng([self.seed, epoch]).permutation(self.rows)
        n = len(order) // self.batch
        return [np.sort(some) for some in np.split(order[:n * self.batch], n)]

    def step(self, rows, done):
        x, labels = self.samples.inputs(rows, self.device), self.samples.labels(rows, self.device)
        if self.varied and x.dim() == 4:
            x = vary(x, self.varied, self.samples.scaled(torch.zeros(1, x.shape[1], 1, 1, device=self.device)))
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(done)
        self.model.train()
        with self.cast():
            loss = self.loss(self.model, x, labels)
        value = loss.item()
        if not math.isfinite(value):
            raise Diverged("the loss")
        self.optimizer.zero_grad(set_to_none=True)  # what has no part in a step is not changed by it
        self.scaler.scale(loss).backward()
        if self.clip:
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        if self.average:
            self.average.add(self.model)
        return value


def run(training, done_of, watch, first=0):
    """Steps until `watch(epochs, done, loss)`, called before each, says that it is enough: `epochs` are those that
    are over, with a fraction; `done = done_of(epochs)`; `loss` is the last step's, None before the first."""
    loss = None
    for epoch in itertools.count(first):
        batches = training.batches(epoch)
        for i, rows in enumerate(batches):
            epochs = epoch + i / len(batches)
            done = done_of(epochs)
            if watch(epochs, done, loss):
                return
            loss = training.step(rows, done)
