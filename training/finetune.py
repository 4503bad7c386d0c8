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
import json
import math
import os
import re
import sys
import time

import numpy as np
import torch
from torch.nn import functional as F

# hwnas optimize writes loop.py in the place of this statement.
from loop import (
    Diverged, IGNORED, Samples, Training, are_classes, find_wrong_label, load_module, log_shares, outputs_of, run, score, stop,
    write_onnx, write_weights,
)

SETTINGS = {}

HERE = os.path.dirname(os.path.abspath(__file__))
CHECKS = 16  # of the best weights, at least two epochs' work for each


# ---- Samples ----


def read_samples(path, labels, how):
    return Samples.read(path, labels, how, SETTINGS["shape"], SETTINGS["is_whole"], SETTINGS["input"])


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


# ---- What is learnt, and how well ----


def by_class(outputs):
    return outputs.reshape(-1, SETTINGS["classes"])


def loss_of(outputs, wanted, labels, args):
    """What the teacher says, by its shares at a temperature; of numbers by squares."""
    share = 0 if labels is None else args.labels_share
    if not are_classes(outputs, labels, SETTINGS["classes"]):
        loss = F.mse_loss(outputs, wanted)
        return (1 - share) * loss + share * F.mse_loss(outputs, labels.reshape(outputs.shape).float()) if share else loss
    t = args.temperature
    ours, theirs = (by_class(log_shares(some, SETTINGS["gives_shares"])) for some in (outputs, wanted))
    loss = t * t * F.kl_div(F.log_softmax(ours / t, -1), F.log_softmax(theirs / t, -1), reduction="batchmean",
                            log_target=True)
    if not share:
        return loss
    return (1 - share) * loss + share * F.cross_entropy(ours, labels.reshape(-1).long(), ignore_index=IGNORED)


class Part:
    """Samples by which networks are judged, with what the original makes of them."""

    def __init__(self, samples, rows, teacher, args):
        self.samples, self.rows, self.args = samples, rows, args
        self.originals = outputs_of(teacher, samples, rows, args.device)
        self.labels = samples.labels(rows, "cpu")
        self.check()
        if self.labels is None:  # what agrees with the original
            are_all = are_classes(self.originals, None, SETTINGS["classes"])
            self.labels = by_class(self.originals).argmax(1) if are_all else self.originals

    def check(self):
        if not self.originals.isfinite().all():
            stop("the original gives values that are no numbers for these samples: are they scaled as it takes them?")
        if self.labels is not None and are_classes(self.originals, self.labels, SETTINGS["classes"]):
            wrong = find_wrong_label(self.labels, SETTINGS["classes"])
            if wrong:
                stop(wrong)

    def score(self, model=None):
        outputs = self.originals if model is None else outputs_of(model, self.samples, self.rows, self.args.device)
        return score(outputs, self.labels, SETTINGS["classes"], SETTINGS["gives_shares"])


# ---- Training ----


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
    def loss(model, x, labels):
        with torch.no_grad():
            wanted = teacher(x)
        return loss_of(model(x), wanted, labels, args)

    def rate(done):
        return args.rate * min(done / 0.05, 1) * (1 + math.cos(math.pi * done)) / 2

    begin, checks = time.monotonic(), 0

    def minutes():
        return (time.monotonic() - begin) / 60

    def done_of(epochs):
        return min(max(minutes() / args.minutes if args.minutes else 0, epochs / args.epochs if args.epochs else 0), 1)

    def watch(epochs, done, _):
        nonlocal checks
        if done >= (checks + 1) / CHECKS or done >= 1:
            checks = int(done * CHECKS)
            right = best.offer(model)
            if not args.json:
                print(f"{minutes():.1f} minutes, {epochs:.1f} epochs: {right:.2f}, best {best.value[0]:.2f}", flush=True)
        return done >= 1

    optimizer = torch.optim.AdamW(model.parameters(), args.rate, weight_decay=args.decay)
    varied = {"flip": args.flip, "shift": args.shift}
    run(Training(model, optimizer, loss, rate, samples, rows, args.batch, args.device, args.seed, varied, args.clip), done_of, watch)


def part_samples(args):
    """(samples, rows to train with, samples and rows that choose, the same of the test)."""
    path, labels, how = settings_of_samples()
    samples = read_samples(args.data or path, args.labels if args.data else labels, how)
    order = np.random.default_rng(1).permutation(len(samples))
    share = max(len(samples) // 10, 1)
    if len(samples) < 20:
        stop(f"{len(samples)} samples are too few to train with")
    if args.test:
        tested = read_samples(args.test, args.test_labels, how)
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
    samples, rows, chosen_by, test, tested = part_samples(args)
    teacher = load_module(os.path.join(HERE, SETTINGS["teacher"] + ".py")).build().eval().to(args.device)
    model = load_module(os.path.join(HERE, SETTINGS["module"] + ".py")).build(**({"weights": os.path.abspath(args.start)} if args.start else {})).to(args.device)
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
    wrong = write_onnx(prefix + ".onnx", model, test.inputs(tested[:1], "cpu"), SETTINGS["input"], SETTINGS["output"])
    if wrong:
        print(wrong, file=sys.stderr)
    else:
        files.append(prefix + ".onnx")
    tell({"held_out": len(tested), "original": held_out.score()[0], "before": before,
          "after": held_out.score(model)[0], "diverged": diverged is not None, "files": files}, args)
    if diverged:
        stop(f"the training diverged: {diverged} is not finite. The files have the best weights before that; "
             f"try --rate {args.rate / 10:g} or --clip {args.clip / 10:g}")


if __name__ == "__main__":
    main()
