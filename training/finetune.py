#!/usr/bin/env python3
"""Trains the network that `hwnas optimize` made until it gives what its original gives.

The original is the teacher: the network learns its outputs (Hinton, Vinyals and Dean 2015), and the labels
where there are any. Nothing but PyTorch and NumPy is needed. The samples are those of the optimization unless
--data says others; its preprocessing is that of the optimization.

Without --test 20 % of the samples are kept back: half of them choose the best weights, half are tested. With it
10 % are kept back to choose, and the test's samples are tested. Ctrl-C ends the training as its time does: the
best weights so far are written; so does one that diverges, with exit code 1."""
import argparse
import copy
import gzip
import importlib.util
import io
import json
import math
import os
import re
import sys
import time

import numpy as np
import torch
from torch.nn import functional as F

SETTINGS = {}

HERE = os.path.dirname(os.path.abspath(__file__))
IGNORED = -100  # a label that does not count, as PyTorch has it
CHECKS = 16  # of the best weights, at least two epochs' work for each


def stop(message):
    sys.exit(f"{os.path.basename(__file__)}: {message}")


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


class Samples:
    """Samples as the network takes them, and their labels or None."""

    def __init__(self, path, labels, how):
        self.how = how
        self.x = read_array(path, how.get("x") or SETTINGS["input"])
        if self.x is None:
            self.x = read_array(path, "x")
        if self.x is None:
            stop(f"{path} has no array '{how.get('x') or SETTINGS['input']}' or 'x'")
        self.y = read_array(labels or path, how.get("y") or "y") if labels or is_npz(path) else None
        self.turned = how.get("layout") == "nhwc" and self.x.ndim == 4
        shape = self.x.shape[1:] if not self.turned else (self.x.shape[3], *self.x.shape[1:3])
        if math.prod(shape) != math.prod(SETTINGS["shape"]):
            stop(f"{path}: a sample is {' x '.join(map(str, shape))}, the network takes "
                 f"{' x '.join(map(str, SETTINGS['shape']))}")
        if self.y is not None and len(self.y) != len(self.x):
            stop(f"{path} has {len(self.x)} samples and {len(self.y)} labels")

    def __len__(self):
        return len(self.x)

    def inputs(self, rows, device):
        x = np.ascontiguousarray(self.x[rows])
        if SETTINGS["is_whole"]:
            return torch.from_numpy(x.astype(np.int64)).reshape(len(rows), *SETTINGS["shape"]).to(device)
        if self.turned:
            x = x.transpose(0, 3, 1, 2)
        x = torch.from_numpy(x.astype(np.float32)).reshape(len(rows), *SETTINGS["shape"]).to(device)
        for key, turn in (("scale", torch.mul), ("mean", torch.sub), ("std", torch.div)):
            if key in self.how:
                values = torch.tensor([fraction(text) for text in self.how[key].split(":")], device=device)
                if len(values) > 1:
                    values = values.reshape(-1, *[1] * (x.dim() - 2))
                x = turn(x, values)
        return x.to(memory_format=torch.channels_last) if x.dim() == 4 else x

    def labels(self, rows, device):
        return None if self.y is None else torch.from_numpy(np.array(self.y[rows])).to(device)


def fraction(text):
    above, _, below = text.partition("/")
    return float(above) / float(below or 1)


def settings_of_samples():
    """ "FILE#KEY=VALUE,...": the file, its labels, and how it is read."""
    text = SETTINGS["samples"]
    cuts = [len(text)] + [at for at in range(len(text) - 1, 0, -1) if text[at] == "#"]
    cut = next((at for at in cuts if os.path.exists(os.path.join(SETTINGS["folder"], text[:at]))), cuts[min(1, len(cuts) - 1)])
    items = re.findall(r"(?:\\.|[^,\\])+", text[cut + 1:])
    how = dict(re.sub(r"\\(.)", r"\1", item).split("=", 1) for item in items)
    path = os.path.join(SETTINGS["folder"], text[:cut])
    labels = how.pop("labels", None)
    if labels:
        near = os.path.join(SETTINGS["folder"], labels)
        labels = near if os.path.exists(near) else os.path.join(os.path.dirname(path), labels)
    return path, labels, how


# ---- Networks ----


def load_module(name):
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), os.path.join(HERE, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def write_weights(path, tensors):
    """A file in the format safetensors; whole or not at all."""
    header, values = {}, b""
    for name, tensor in tensors.items():
        kind = {torch.float32: "F32", torch.int64: "I64", torch.int32: "I32", torch.int16: "I16", torch.int8: "I8",
                torch.uint8: "U8", torch.bool: "BOOL"}[tensor.dtype]
        data = tensor.contiguous().numpy().tobytes()
        header[name] = {"dtype": kind, "shape": list(tensor.shape), "data_offsets": [len(values), len(values) + len(data)]}
        values += data
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path + ".part", "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text + values)
    os.replace(path + ".part", path)


def write_onnx(path, model, example):
    names = {"input_names": [SETTINGS["input"]], "output_names": [SETTINGS["output"]],
             "dynamic_axes": {SETTINGS["input"]: {0: "batch"}, SETTINGS["output"]: {0: "batch"}}}
    if "dynamo" in torch.onnx.export.__code__.co_varnames:
        names["dynamo"] = False  # the other one wants packages of its own
    try:
        torch.onnx.export(model, example.contiguous(), path + ".part", opset_version=17, **names)
    except Exception as problem:  # the weights are there nevertheless
        print(f"no ONNX file was written: {problem}", file=sys.stderr)
        return False
    os.replace(path + ".part", path)
    return True


# ---- What is learnt, and how well ----


def log_shares(outputs):
    """Of the classes."""
    return outputs.clamp_min(1e-12).log() if SETTINGS["gives_shares"] else outputs


def are_classes(outputs, labels):
    """One label for all classes of a sample, or of each of its positions; else they are numbers."""
    n = outputs.numel() if labels is None else labels.numel() * SETTINGS["classes"]
    return SETTINGS["classes"] > 1 and n == outputs.numel()


def by_class(outputs):
    return outputs.reshape(-1, SETTINGS["classes"])


def loss_of(outputs, wanted, labels, args):
    """What the teacher says, by its shares at a temperature; of numbers by squares."""
    share = 0 if labels is None else args.labels_share
    if not are_classes(outputs, labels):
        loss = F.mse_loss(outputs, wanted)
        return (1 - share) * loss + share * F.mse_loss(outputs, labels.reshape(outputs.shape).float()) if share else loss
    t = args.temperature
    ours, theirs = by_class(log_shares(outputs)), by_class(log_shares(wanted))
    loss = t * t * F.kl_div(F.log_softmax(ours / t, -1), F.log_softmax(theirs / t, -1), reduction="batchmean",
                            log_target=True)
    if not share:
        return loss
    return (1 - share) * loss + share * F.cross_entropy(ours, labels.reshape(-1).long(), ignore_index=IGNORED)


def outputs_of(model, samples, rows, args):
    model.eval()
    with torch.no_grad():
        return torch.cat([model(samples.inputs(some, args.device)).cpu() for some in np.array_split(rows, math.ceil(len(rows) / 256))])


def score(outputs, labels, originals):
    """(right in percent or 100 r2, loss); without labels what agrees with the original."""
    if are_classes(outputs, labels):
        classes = by_class(originals).argmax(1) if labels is None else labels.reshape(-1).long()
        counts, rows = classes != IGNORED, by_class(outputs)
        right = (rows.argmax(1) == classes)[counts].double().mean().item()
        return 100 * right, F.cross_entropy(log_shares(rows), classes, ignore_index=IGNORED).item()
    wanted = (originals if labels is None else labels).reshape(outputs.shape).double()
    error = (outputs - wanted).square().mean().item()
    spread = (wanted - wanted.mean(0)).square().mean().item()
    return 100 * (1 - error / max(spread, 1e-300)), error


class Part:
    """Samples by which networks are judged, with what the original makes of them."""

    def __init__(self, samples, rows, teacher, args):
        self.samples, self.rows, self.args = samples, rows, args
        self.labels = samples.labels(rows, "cpu")
        self.originals = outputs_of(teacher, samples, rows, args)
        self.check()

    def check(self):
        if not self.originals.isfinite().all():
            stop("the original gives values that are no numbers for these samples: are they scaled as it takes them?")
        if self.labels is not None and are_classes(self.originals, self.labels):
            counted = self.labels[self.labels != IGNORED]
            if not len(counted):
                stop(f"no label of the {len(self.rows)} samples that judge counts: all are {IGNORED}")
            if counted.min() < 0 or counted.max() >= SETTINGS["classes"]:
                stop(f"a label is {int(counted.min() if counted.min() < 0 else counted.max())}, "
                     f"of {SETTINGS['classes']} classes from 0 on")

    def score(self, model=None):
        outputs = self.originals if model is None else outputs_of(model, self.samples, self.rows, self.args)
        return score(outputs, self.labels, self.originals)


# ---- Training ----


def vary(x, args):
    """Images mirrored and moved, by --flip and --shift."""
    if x.dim() != 4:
        return x
    if args.flip and torch.rand(()) < 0.5:
        x = x.flip(-1)
    if args.shift:
        dy, dx = torch.randint(0, 2 * args.shift + 1, (2,)).tolist()
        edge = F.pad(x, [args.shift] * 4, mode="replicate")
        x = edge[:, :, dy:dy + x.shape[2], dx:dx + x.shape[3]]
    return x.contiguous(memory_format=torch.channels_last)


def step(model, teacher, optimizer, samples, rows, args):
    x, labels = vary(samples.inputs(rows, args.device), args), samples.labels(rows, args.device)
    with torch.no_grad():
        wanted = teacher(x)
    loss = loss_of(model(x), wanted, labels, args)
    if not math.isfinite(loss.item()):
        raise Diverged("the loss")
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
    optimizer.step()


class Diverged(Exception):
    """What is no number any more; nothing that follows can be."""


class Best:
    """The best weights so far, by the samples that choose."""

    def __init__(self, model, judges):
        self.judges, self.value, self.weights = judges, None, None
        self.offer(model)

    def offer(self, model):
        right, loss = self.judges.score(model)
        if not (math.isfinite(right) and math.isfinite(loss)):
            raise Diverged("what the network gives for the samples that choose")
        if self.value is None or (right, -loss) > self.value:
            self.value = right, -loss
            self.weights = copy.deepcopy(model.state_dict())
        return right


def train(model, teacher, samples, rows, best, args):
    optimizer = torch.optim.AdamW(model.parameters(), args.rate, weight_decay=args.decay)
    batch = min(args.batch, len(rows))
    per_epoch = len(rows) // batch
    begin, n, checks = time.monotonic(), 0, 0
    while True:
        order = np.random.permutation(rows)
        for some in np.split(order[:per_epoch * batch], per_epoch):
            minutes = (time.monotonic() - begin) / 60
            done = max(minutes / args.minutes if args.minutes else 0, n / per_epoch / args.epochs if args.epochs else 0)
            if done >= (checks + 1) / CHECKS or done >= 1:
                checks = int(done * CHECKS)
                right = best.offer(model)
                if not args.json:
                    print(f"{minutes:.1f} minutes, {n / per_epoch:.1f} epochs: {right:.2f}, best {best.value[0]:.2f}", flush=True)
            if done >= 1:
                return
            rate = args.rate * min(done / 0.05, 1) * (1 + math.cos(math.pi * done)) / 2
            for group in optimizer.param_groups:
                group["lr"] = rate
            model.train()
            step(model, teacher, optimizer, samples, np.sort(some), args)
            n += 1


def part_samples(args):
    """(samples, rows to train with, samples and rows that choose, the same of the test)."""
    path, labels, how = settings_of_samples()
    samples = Samples(args.data or path, args.labels if args.data else labels, how)
    order = np.random.default_rng(1).permutation(len(samples))
    share = max(len(samples) // 10, 1)
    if len(samples) < 20:
        stop(f"{len(samples)} samples are too few to train with")
    if args.test:
        tested = Samples(args.test, args.test_labels, how)
        return samples, order[share:], np.sort(order[:share]), tested, np.arange(len(tested))
    return samples, order[2 * share:], np.sort(order[:share]), samples, np.sort(order[share:2 * share])


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, help="of training (10, unless --epochs is given)")
    parser.add_argument("--epochs", type=float, help="of training")
    parser.add_argument("--data", metavar="FILE", help="samples to train with")
    parser.add_argument("--labels", metavar="FILE", help="labels of --data")
    parser.add_argument("--test", metavar="FILE", help="samples to test with")
    parser.add_argument("--test-labels", metavar="FILE", help="labels of --test")
    parser.add_argument("--flip", action="store_true", help="images may be mirrored")
    parser.add_argument("--shift", type=int, default=0, metavar="N", help="images may be moved by N pixels (0)")
    parser.add_argument("--start", metavar="FILE", help="weights to begin with, such as those of a training before")
    parser.add_argument("--out", metavar="PREFIX", help=f"what files begin with ({SETTINGS.get('module', '')}-tuned)")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--threads", type=int, help="of the CPU")
    parser.add_argument("--batch", type=int, default=128, help="samples a step (128)")
    parser.add_argument("--rate", type=float, default=1e-3, help="peak of the learning rate (0.001)")
    parser.add_argument("--decay", type=float, default=1e-4, help="of the weights (0.0001)")
    parser.add_argument("--clip", type=float, default=1.0, help="longest gradient (1)")
    parser.add_argument("--temperature", type=float, default=2.0, help="of the teacher's shares (2)")
    parser.add_argument("--labels-share", type=float, default=0.1, help="of the labels in the loss; the rest is the teacher's (0.1)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one JSON object at the end, and nothing else")
    args = parser.parse_args()
    for name in ("minutes", "epochs"):
        if getattr(args, name) is not None and not getattr(args, name) > 0:
            stop(f"--{name} must be positive")
    if not args.minutes and not args.epochs:
        args.minutes = 10.0
    if args.batch < 1 or args.shift < 0:
        stop("--batch must be positive, --shift not negative")
    return args


def tell(found, args):
    if args.json:
        print(json.dumps(found))
        return
    print(f"\non {found['held_out']} samples that training has not seen\n"
          f"original  {found['original']:.2f} %\nbefore    {found['before']:.2f} %\nafter     {found['after']:.2f} %\n")
    for path in found["files"]:
        print(f"wrote {path}")


def main():
    if not SETTINGS:
        stop("`hwnas optimize` writes this program beside a network, with its settings")
    args = parse()
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    np.random.seed(args.seed)
    samples, rows, chosen_by, test, tested = part_samples(args)
    teacher = load_module(SETTINGS["teacher"]).build().eval().to(args.device)
    model = load_module(SETTINGS["module"]).build(**({"weights": os.path.abspath(args.start)} if args.start else {})).to(args.device)
    held_out = Part(test, tested, teacher, args)
    before = held_out.score(model)[0]
    try:
        best = Best(model, Part(samples, chosen_by, teacher, args))
    except Diverged as what:
        stop(f"{what} is not finite before any training: the weights that it begins with are of no use")
    diverged = None
    try:
        train(model, teacher, samples, rows, best, args)
    except KeyboardInterrupt:
        print("interrupted: the best weights so far", file=sys.stderr)
    except Diverged as what:
        diverged = what
    model.load_state_dict(best.weights)
    model = model.cpu().eval().to(memory_format=torch.contiguous_format)
    prefix = args.out or os.path.join(HERE, SETTINGS["module"] + "-tuned")
    args.device = "cpu"
    files = [prefix + ".safetensors"]
    write_weights(files[0], model.state_dict())
    if write_onnx(prefix + ".onnx", model, test.inputs(tested[:1], "cpu")):
        files.append(prefix + ".onnx")
    tell({"held_out": len(tested), "original": held_out.score()[0], "before": before,
          "after": held_out.score(model)[0], "diverged": diverged is not None, "files": files}, args)
    if diverged:
        stop(f"the training diverged: {diverged} is not finite. The files have the best weights before that; "
             f"try --rate {args.rate / 10:g} or --clip {args.clip / 10:g}")


if __name__ == "__main__":
    main()
