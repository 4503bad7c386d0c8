#!/usr/bin/env python3
"""Trains a network that hwnas made, by a recipe: the program behind `accuracy: train:RECIPE` (docs/training.md).

    train.py --recipe RECIPE [--work FOLDER] net.onnx net.py
    train.py --recipe RECIPE --out PREFIX net.onnx net.py
    train.py --recipe RECIPE --supernet PREFIX supernet.py
    train.py --serve SOCKET

It is an ordinary program for `accuracy: command:...`: its last line on standard output is the accuracy on the
validation samples. Copy it with fork_server.py, loop.py and recipe.py, and change it. What hwnas says of the network
is in the environment: HWNAS_INPUT_SHAPE, HWNAS_INPUT_TYPE, HWNAS_DIGEST, and HWNAS_RUNG, how cheap the training is to
be: 0 is a whole one, N the Nth of the recipe's rungs from the last.

In the folder of --work there is a checkpoint of each training under way, DIGEST.pt, and of each that has ended what
came of it, DIGEST.json. A training that is begun again goes on from there, and comes to the same weights as one that
was never interrupted (on a CPU, with as many threads).

With --out, as `hwnas train` has it, there are PREFIX.pt, PREFIX.onnx with the weights and PREFIX.csv with the curve, and the
last line says with which samples the network is to be tested.

With --supernet the module is that of `hwnas export SPACE --supernet`: all networks of a space are trained at once, as
slices of one set of weights. There are PREFIX.npz with the weights, PREFIX-samples.npz with samples by which networks
are judged, PREFIX.csv with the curve, and PREFIX.json with what they are of.

With --serve it loads PyTorch, and others of these command lines are done by its forks (fork_server.py)."""
import argparse
import csv
import fcntl
import hashlib
import importlib.util
import io
import json
import math
import os
import random
import sys

import fork_server
from recipe import Wrong, at_rung, read_recipe

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".ppm", ".pgm", ".tif", ".tiff")


def import_torch():
    """PyTorch and NumPy take seconds, so they come when the recipe is known to be good."""
    global np, torch, F, loop
    try:
        import numpy as np
        import torch
        from torch.nn import functional as F
        import loop
    except ImportError as problem:
        raise Wrong(f"{sys.executable} has no {problem.name or 'PyTorch'}: {problem}",
                    hint="install python3-torch, or name a Python that has it: HWNAS_TORCH_PYTHON=...") from None


def choose_device(recipe):
    wanted, place = recipe["device"], recipe.place("device")
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    elif wanted != "cpu":
        n = torch.cuda.device_count() if torch.cuda.is_available() else 0
        number = int(wanted.partition(":")[2] or 0)
        if number >= n:
            raise Wrong(f"there is no GPU {wanted}: PyTorch {torch.__version__} sees {n}", place, "write device: auto, or cpu")
    if recipe["precision"] == "f16" and wanted == "cpu":
        raise Wrong("f16 is trained on GPUs only", recipe.place("precision"), "write precision: bf16, or f32")
    return wanted


# ---- Data ----


class Input:
    """What the network takes, as hwnas says."""

    def __init__(self):
        try:
            self.shape = [int(size) for size in os.environ["HWNAS_INPUT_SHAPE"].split("x")]
        except (KeyError, ValueError):
            raise Wrong("HWNAS_INPUT_SHAPE does not say what the network takes, such as 3x32x32",
                        hint="hwnas sets it for the programs that it starts") from None
        self.is_whole = os.environ.get("HWNAS_INPUT_TYPE", "f32").startswith("i")


def list_images(folder):
    """(path, class) of each, and the names of the classes: a folder for each."""
    names = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith("."))
    found = [(os.path.join(folder, name, file), i) for i, name in enumerate(names)
             for file in sorted(os.listdir(os.path.join(folder, name))) if file.lower().endswith(IMAGES)]
    return found, names


def decode(path, shape):
    """As the network takes it: the middle, as large as fits."""
    from PIL import Image, ImageOps
    if len(shape) != 3 or shape[0] not in (1, 3):
        raise Wrong(f"images have 1 or 3 channels, the network takes {' x '.join(map(str, shape))}")
    try:
        with Image.open(path) as image:
            image = ImageOps.fit(image.convert("L" if shape[0] == 1 else "RGB"), (shape[2], shape[1]), Image.BILINEAR)
            return np.asarray(image).reshape(shape[1], shape[2], shape[0]).transpose(2, 0, 1)
    except OSError as problem:
        raise Wrong(f"{path}: {problem}") from None


def read_folder(folder, given, place, work, is_check):
    """(images as bytes, labels, names of the classes, what they are about). They are decoded once, into the work
    folder; a check decodes one of each class, and writes nothing."""
    if not importlib.util.find_spec("PIL"):
        raise Wrong("a folder of images needs Pillow", place, "install python3-pil, or give a .npz") from None
    files, names = list_images(folder)
    if not files:
        raise Wrong(f"no images in {folder}", place, f"it must have a folder for each class, with files {', '.join(IMAGES[:3])} ...")
    labels = np.array([label for _, label in files])
    about = json.dumps([given.shape, [[os.path.relpath(path, folder), os.stat(path).st_size, os.stat(path).st_mtime_ns] for path, _ in files]])
    kept = work and os.path.join(work, f"images-{hashlib.blake2b(about.encode(), digest_size=8).hexdigest()}.npy")
    if is_check:
        firsts = [decode(files[np.argmax(labels == label)][0], given.shape) for label in np.unique(labels)]
        return np.broadcast_to(firsts[0], (len(files), *firsts[0].shape)), labels, names, about
    if not kept or not os.path.exists(kept):
        images = np.stack([decode(path, given.shape) for path, _ in files])
        if not kept:
            return images, labels, names, about
        loop.write_whole(kept, lambda file: np.save(file, images))
    return np.load(kept, mmap_mode="r"), labels, names, about


class Data:
    """Samples to train with, to judge networks by (validation), and to test the last one (test): each with its
    rows. Shares of the samples are drawn by a fixed seed, so they are the same for all networks and recipes."""

    def __init__(self, recipe, given, work, is_check):
        self.recipe, self.given, self.work, self.is_check = recipe["data"], given, work, is_check
        self.how = {key: self.recipe[key] for key in ("x", "y", "layout", "scale", "mean", "std") if self.recipe[key]}
        self.names = None
        train, free = self.read("train"), None
        self.parts = {}
        for part in ("test", "validation"):
            wanted = self.recipe[part]
            if wanted is None:
                continue
            if isinstance(wanted, str):
                samples = self.read(part)
                self.parts[part] = samples, np.arange(len(samples))
                continue
            if free is None:
                free = np.random.default_rng(1).permutation(len(train))
            n = max(round(wanted * len(train)), 1)
            self.parts[part], free = (train, np.sort(free[:n])), free[n:]
        self.parts["train"] = train, np.arange(len(train)) if free is None else np.sort(free)
        self.all_rows = {part: rows for part, (_, rows) in self.parts.items()}
        self.take_share(recipe)
        for part, (_, rows) in self.parts.items():
            if len(rows) < 2:
                raise Wrong(f"{len(rows)} samples are too few: {part}", self.recipe.place(part) or self.recipe.place("train"))

    def take_share(self, recipe):
        """Of the samples to train with, at a rung that takes fewer: the first of one order, so less is in more."""
        samples, rows = self.parts["train"]
        if recipe["share"] < 1:
            order = np.random.default_rng(2).permutation(len(rows))
            self.parts["train"] = samples, np.sort(rows[order[:max(round(recipe["share"] * len(rows)), 1)]])
        for samples, _ in self.parts.values():
            samples.resolution = recipe["resolution"]

    def read(self, part):
        path, place = self.recipe[part], self.recipe.place(part)
        try:
            if not os.path.isdir(path):
                samples = loop.Samples.read(path, self.recipe[part + "-labels"], self.how, self.given.shape, self.given.is_whole)
            else:
                x, y, names, about = read_folder(path, self.given, place, self.work, self.is_check)
                if self.names not in (None, names):
                    raise Wrong(f"the classes of {path} are not those of {self.recipe['train']}", place)
                self.names = names
                samples = loop.Samples(x, y, {"scale": "1/255", **self.how}, self.given.shape, False, path)
                samples.about = about
        except SystemExit as problem:  # what loop.stop() says
            raise Wrong(str(problem).partition(": ")[2], place) from None
        if samples.y is None:
            raise Wrong(f"there are no labels with {path}", place, f"name their file: {part}-labels")
        wrong = samples.find_not_finite() if self.is_check else None
        if wrong is not None:
            raise Wrong(f"{path}: sample {wrong + 1} of {len(samples)} has a value that is no finite number", place,
                        "a network that learns from it has no finite loss: leave it out")
        return samples

    def check_labels(self, outputs, recipe):
        """`outputs` are of two samples."""
        classes = outputs.shape[-1]
        for samples, part in {id(samples): (samples, part if isinstance(self.recipe[part], str) else "train")
                              for part, (samples, _) in self.parts.items()}.values():
            labels = torch.from_numpy(np.array(samples.y))
            if not loop.are_classes(outputs, labels[:len(outputs)], classes):
                if labels[:len(outputs)].numel() != outputs.numel():
                    raise Wrong(f"the labels of {part} do not fit what the network gives: {tuple(labels.shape[1:])} beside {tuple(outputs.shape[1:])} of a sample",
                                self.recipe.place(part))
                if not torch.isfinite(labels).all():
                    raise Wrong(f"{self.recipe[part]}: a label is no finite number",
                                self.recipe.place(part + "-labels") or self.recipe.place(part))
                if recipe["label-smoothing"]:
                    raise Wrong("labels that are numbers cannot be smoothed", recipe.place("label-smoothing"))
                continue
            wrong = loop.find_wrong_label(labels, classes)
            if wrong:
                raise Wrong(f"{self.recipe[part]}: {wrong}", self.recipe.place(part + "-labels") or self.recipe.place(part),
                            "the network's last layer says how many classes there are")

    def digest(self):
        """Of what is trained with."""
        hash = hashlib.blake2b(digest_size=16)
        for part in sorted(self.parts):
            samples, rows = self.parts[part][0], self.all_rows[part]
            about = getattr(samples, "about", None)
            for values in (samples.x if about is None else np.frombuffer(about.encode(), np.uint8), samples.y, rows):
                hash.update(np.ascontiguousarray(values))
        return hash.hexdigest()


# ---- What a training does ----


def rate_of(recipe):
    """The learning rate by the share of the training that is over."""
    schedule, epochs, peak = recipe["schedule"], recipe["epochs"], recipe["optimizer"]["rate"]
    name = schedule["name"]
    warm = (0.3 if name == "one-cycle" else 0) if schedule["warmup"] is None else schedule["warmup"] / epochs
    start = 1 / 25 if name == "one-cycle" else 0  # Smith and Topin, arXiv:1708.07120

    def rate(done):
        if done < warm:
            return peak * (start + (1 - start) * done / warm) + 1e-12
        if name == "steps":
            return peak * schedule["factor"] ** sum(done * epochs >= at - 1e-9 for at in schedule["at"])
        return peak * (1 if name == "constant" else (1 + math.cos(math.pi * (done - warm) / (1 - warm))) / 2)
    return rate


def make_optimizer(model, recipe):
    o = recipe["optimizer"]
    if o["name"] == "adamw":
        return torch.optim.AdamW(model.parameters(), o["rate"], weight_decay=o["decay"])
    return torch.optim.SGD(model.parameters(), o["rate"], o["momentum"], weight_decay=o["decay"],
                           nesterov=o["nesterov"] and o["momentum"] > 0)


class Loss:
    """Of a batch: cross-entropy of classes, squares of numbers."""

    def __init__(self, outputs, recipe):
        self.classes = outputs.shape[-1]
        sums = outputs.sum(-1)  # does the network end in a softmax?
        self.gives_shares = self.classes > 1 and bool((outputs >= 0).all()) and bool(((sums - 1).abs() < 1e-3).all())
        self.smoothing = recipe["label-smoothing"]

    def __call__(self, model, x, labels):
        outputs = model(x)
        if not loop.are_classes(outputs, labels, self.classes):
            return F.mse_loss(outputs.float(), labels.reshape(outputs.shape).float())
        rows = loop.log_shares(outputs.reshape(-1, self.classes).float(), self.gives_shares)
        return F.cross_entropy(rows, labels.reshape(-1).long(), ignore_index=loop.IGNORED, label_smoothing=self.smoothing)

    def score(self, model, samples, rows, device):
        return loop.score(loop.outputs_of(model, samples, rows, device), samples.labels(rows, "cpu"), self.classes, self.gives_shares)


class Sandwich(Loss):
    """Of a supernet, by the sandwich rule: in each step learn its largest network, its smallest, and two at random (Yu
    and Huang, ICCV 2019). The largest learns from the labels, and where these are classes the others from the largest."""

    def __call__(self, model, x, labels):
        largest, others = model.largest(), [model.smallest(), model.random(), model.random()]
        outputs = model(x, largest)
        loss = super().__call__(lambda x: outputs, x, labels)
        if not loop.are_classes(outputs, labels, self.classes):
            return loss + sum(super(Sandwich, self).__call__(lambda x: model(x, some), x, labels) for some in others)
        goal = loop.log_shares(outputs.detach().reshape(-1, self.classes).float(), self.gives_shares).softmax(-1)
        for some in others:
            rows = loop.log_shares(model(x, some).reshape(-1, self.classes).float(), self.gives_shares)
            loss = loss - (goal * rows.log_softmax(-1)).sum(-1).mean()
        return loss


class Course:
    """The training of one network, which may be interrupted at any moment."""

    def __init__(self, session, files):
        recipe, data, loss, device = session.recipe, session.data, session.loss, session.device
        self.recipe, self.data, self.loss, self.device, self.files, self.about = recipe, data, loss, device, files, session.about
        self.model = session.model.to(device)
        if device != "cpu":
            torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = False, True
        samples, rows = data.parts["train"]
        average = loop.Average(self.model, recipe["ema"]) if recipe["ema"] else None
        self.training = loop.Training(
            self.model, make_optimizer(self.model, recipe), loss, rate_of(recipe), samples, rows, recipe["batch"], device,
            recipe["seed"], recipe["augment"], recipe["optimizer"]["clip"], recipe["precision"], average)
        self.curve = []  # of each epoch: its number, loss in training, loss and accuracy on the validation samples
        self.losses = []
        self.best = None  # with early-stop: accuracy, and weights

    def judged(self):
        """The model that counts."""
        return self.training.average.model if self.training.average else self.model

    def state(self):
        t = self.training
        return {"about": self.about, "model": self.model.state_dict(), "optimizer": t.optimizer.state_dict(),
                "scaler": t.scaler.state_dict(), "average": t.average and (t.average.n, t.average.model.state_dict()),
                "curve": self.curve, "best": self.best}

    def resume(self):
        """From the checkpoint, if there is one of this recipe."""
        path = self.files and self.files + ".pt"
        if not path or not os.path.exists(path):
            return
        try:
            state = torch.load(path, map_location=self.device)
            if state["about"] != self.about:
                return
        except (OSError, RuntimeError, KeyError, EOFError, ValueError):
            return  # it is begun anew
        t = self.training
        self.model.load_state_dict(state["model"])
        t.optimizer.load_state_dict(state["optimizer"])
        t.scaler.load_state_dict(state["scaler"])
        if t.average:
            t.average.n = state["average"][0]
            t.average.model.load_state_dict(state["average"][1])
        self.curve, self.best = state["curve"], state["best"]
        for epoch, loss, _, right in self.curve:
            self.tell("was epoch", epoch, loss, right)

    def tell(self, what, epoch, loss, right):
        """hwnas reads it while the training goes on, and may end it (docs/predictors.md)."""
        print(f"{what} {epoch} of {self.recipe['epochs']}: loss {loss:.4f}, validation {right:.2f} %", flush=True)

    def end_epoch(self, epoch):
        right, loss = self.loss.score(self.judged(), *self.data.parts["validation"], self.device)
        if not (math.isfinite(right) and math.isfinite(loss)):
            raise loop.Diverged("what the network gives for the validation samples")
        self.curve.append([epoch, sum(self.losses) / max(len(self.losses), 1), loss, right])
        self.losses = []
        if self.recipe["early-stop"] and (self.best is None or right > self.best[0]):
            self.best = right, {name: value.cpu().clone() for name, value in self.judged().state_dict().items()}, epoch
        if self.files:
            loop.write_whole(self.files + ".pt", lambda file: torch.save(self.state(), file))
        self.tell("epoch", epoch, self.curve[-1][1], right)

    def is_over(self):
        epoch = len(self.curve)
        return epoch >= self.recipe["epochs"] or bool(self.best and epoch - self.best[2] >= self.recipe["early-stop"])

    def watch(self, epochs, done, loss):
        if loss is not None:
            self.losses.append(loss)
        if epochs > len(self.curve) and epochs == int(epochs):
            self.end_epoch(int(epochs))
        return self.is_over()

    def why_diverged(self, what):
        """What happened, and what to try."""
        return (f"the training diverged in epoch {len(self.curve) + 1}: {what} is not finite",
                f"a smaller rate than {self.recipe['optimizer']['rate']:g} may help, or clip")

    def train(self):
        """Returns the accuracy on the validation samples."""
        self.resume()
        if not self.is_over():
            epochs = self.recipe["epochs"]
            loop.run(self.training, lambda done: min(done / epochs, 1), self.watch, len(self.curve))
        if not self.best:
            return self.curve[-1][3]
        self.judged().load_state_dict(self.best[1])
        return self.best[0]


# ---- What is known of trainings before ----


def settings_of(recipe):
    """What decides about the result; where it is computed does not."""
    found = {key: value for key, value in recipe.items() if key not in ("data", "device", "threads", "rungs")}
    for key in ("share", "resolution"):
        if found[key] == 1:
            del found[key]
    return json.loads(json.dumps(found))


def suffix(rung):
    """Of what is kept of trainings at a rung."""
    return f".rung{rung}" if rung else ""


def check_about(args, session):
    """What the results of a folder are about: one recipe and the same samples. The samples are looked at once in a
    run of hwnas, by --check: they may be many."""
    settings = settings_of(session.recipe)
    if args.out:
        return {"settings": settings, "data": session.data.digest()}
    if args.supernet:
        with open(args.network[-1], "rb") as file:
            return {"settings": settings, "data": session.data.digest(), "module": hashlib.blake2b(file.read(), digest_size=16).hexdigest()}
    kept = args.work and os.path.join(args.work, f"recipe{suffix(session.rung)}.json")
    if not kept:
        return {"settings": settings}
    if not os.path.exists(kept):
        about = {"settings": settings, "data": session.data.digest()}
        if not args.check:
            loop.write_whole(kept, lambda file: file.write(json.dumps(about).encode()))
        return about
    with open(kept, encoding="utf-8") as file:
        before = json.load(file)
    changed = [f"{key} was {json.dumps(before['settings'].get(key))}, is {json.dumps(value)}"
               for key, value in settings.items() if before["settings"].get(key) != value]
    if args.check and before["data"] != session.data.digest():
        changed.append("the samples are others")
    if changed:
        raise Wrong(f"the networks of {args.work} were trained otherwise: {'; '.join(changed)[:200]}", (args.recipe, 0, 0),
                    "'train:RECIPE#cache=OTHER.csv' begins new results; results of two recipes cannot be compared")
    return before


def read_outcome(files, about):
    """What came of this training, if it has ended."""
    if not files or not os.path.exists(files + ".json"):
        return None
    with open(files + ".json", encoding="utf-8") as file:
        outcome = json.load(file)
    return outcome if outcome["about"] == about else None


def write_outcome(files, outcome):
    if not files:
        return
    loop.write_whole(files + ".json", lambda file: file.write(json.dumps(outcome).encode()))
    if os.path.exists(files + ".pt"):
        os.remove(files + ".pt")


# ---- The program ----


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", required=True, metavar="FILE")
    parser.add_argument("--work", metavar="FOLDER", help="checkpoints and what came of trainings; without it none are kept")
    parser.add_argument("--out", metavar="PREFIX", help="what files of a trained network begin with")
    parser.add_argument("--supernet", metavar="PREFIX", help="what files of a supernet begin with")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="trainings at a time, which share the cores (1)")
    parser.add_argument("--check", action="store_true", help="tell what is wrong, as JSON, and train nothing")
    parser.add_argument("network", nargs="+", metavar="net.onnx net.py")
    return parser.parse_args()


class Session:
    """What is there before the first step: the recipe, its samples, and a network that takes them."""

    def __init__(self, args, rung=0):
        self.rung = rung
        self.recipe = at_rung(read_recipe(args.recipe), rung)
        import_torch()
        torch.set_num_threads(self.recipe["threads"] or max(len(os.sched_getaffinity(0)) // args.jobs, 1))
        self.device = choose_device(self.recipe)
        if args.work and not args.check:
            os.makedirs(args.work, exist_ok=True)
        self.data = Data(self.recipe, Input(), args.work, args.check)
        self.model = self.build(args.network[-1])
        samples, rows = self.data.parts["train"]
        try:
            self.model.eval()
            with torch.no_grad():
                outputs = self.model(samples.inputs(rows[:2], "cpu"))
        except Exception as problem:
            raise Wrong(f"the network does not take these samples{' in a lower resolution' if self.recipe['resolution'] < 1 else ''}: {problem}",
                        self.recipe["data"].place("train") if self.recipe["resolution"] == 1 else self.recipe.place("rungs")) from None
        if not isinstance(outputs, torch.Tensor):
            raise Wrong("a network with several outputs needs a program of its own", hint="copy training/train.py, and use accuracy: command:...")
        self.data.check_labels(outputs, self.recipe)
        self.loss = (Sandwich if args.supernet else Loss)(outputs, self.recipe)
        self.about = check_about(args, self)

    def build(self, path):
        if not path.endswith(".py") or not os.path.exists(path):
            raise Wrong("hwnas has no PyTorch module of this network", hint="`hwnas export --format pytorch` says why")
        torch.manual_seed(self.recipe["seed"])
        random.seed(self.recipe["seed"])
        sys.dont_write_bytecode = True
        return loop.load_module(path).build()


def tell(what, args):
    """One line of JSON, whatever comes."""
    try:
        told = what(args)
    except Wrong as wrong:
        file, line, column = wrong.place or (None, 0, 0)
        told = {"wrong": wrong.message, "file": file, "line": line, "column": column, "hint": wrong.hint}
        told = {key: value for key, value in told.items() if value is not None}
    print(json.dumps(told))


def check(args):
    if args.supernet:
        check_names(args)
        session = Session(args)
        check_supernet(args, session)
        samples = {part: len(rows) for part, (_, rows) in session.data.parts.items()}
        return {"samples": {**samples, "validation": min(samples["validation"], SUPERNET_SAMPLES)}, "device": session.device}
    for rung in range(len(read_recipe(args.recipe)["rungs"]), -1, -1):
        session = Session(args, rung)
    return {"samples": {part: len(rows) for part, (_, rows) in session.data.parts.items()}, "device": session.device}


# ---- A network to keep ----


def write_curve(path, curve):
    def write(file):
        text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(["epoch", "loss", "validation_loss", "validation_pct"])
        rows.writerows([epoch, *(f"{value:.6g}" for value in values)] for epoch, *values in curve)
        text.detach()
    loop.write_whole(path, write)


def samples_to_test(session, prefix):
    """A file and how `hwnas evaluate` reads it: as it is given where all of it counts, else written."""
    data = session.data
    part = "test" if "test" in data.parts else "validation"
    given, (samples, rows) = data.recipe[part], data.parts[part]
    numbers = {key: [loop.fraction(text) for text in samples.how.get(key, "").split(":") if text] for key in ("scale", "mean", "std")}
    told = {"part": part, "data": given, "labels": data.recipe[part + "-labels"], "scale": (numbers["scale"] or [1])[0],
            "mean": numbers["mean"], "std": numbers["std"]}
    told.update({key: samples.how[key] for key in ("layout", "x", "y") if key in samples.how})
    if not isinstance(given, str) or os.path.isdir(given):
        told.update(data=prefix + "-" + part + ".npz", labels=None, x="x", y="y")
        loop.write_whole(told["data"], lambda file: np.savez(file, x=np.ascontiguousarray(samples.x[rows]), y=np.array(samples.y[rows])))
    return told


def run_course(session, files, path):
    """A training to its end, and its accuracy."""
    course = Course(session, files)
    try:
        return course, course.train()
    except loop.Diverged as what:
        message, hint = course.why_diverged(what)
        raise Wrong(message, session.recipe["optimizer"].place("rate") or (path, 0, 0), hint) from None


def train_to_keep(args):
    session = Session(args)
    course, accuracy = run_course(session, args.out, args.recipe)
    samples, rows = session.data.parts["train"]
    state = {**course.state(), "weights": course.judged().state_dict()}
    loop.write_whole(args.out + ".pt", lambda file: torch.save(state, file))
    model = course.judged().cpu().eval().to(memory_format=torch.contiguous_format)
    write_curve(args.out + ".csv", course.curve)
    wrong = loop.write_onnx(args.out + ".onnx", model, samples.inputs(rows[:1], "cpu"))
    if wrong:
        raise Wrong(wrong, hint=f"the weights are in {args.out}.pt")
    return {"accuracy": accuracy, "epochs": len(course.curve), **samples_to_test(session, args.out)}


# ---- All networks of a space ----

SUPERNET_SAMPLES = 10000  # at most; those by which networks are judged


def read_supernet(args):
    """What the one that is there is about, trained or under way; None: there is none. Other files of such names are
    somebody's."""
    prefix = args.supernet
    try:
        if os.path.exists(prefix + ".json"):
            with open(prefix + ".json", encoding="utf-8") as file:
                about = json.load(file)["about"]
        elif os.path.exists(prefix + ".pt"):
            import torch
            about = torch.load(prefix + ".pt", map_location="cpu")["about"]
        else:
            others = [prefix + end for end in (".npz", ".csv", "-samples.npz") if os.path.exists(prefix + end)]
            if others:
                raise KeyError(others[0])
            return None
        return {key: about[key] for key in ("module", "data", "settings")}
    except Exception:  # whatever pickles and JSON of others may hold
        raise Wrong(f"there are files {prefix}.* that are of no supernet, and would be replaced", (args.recipe, 0, 0),
                    "'supernet:RECIPE#weights=OTHER' has other names") from None


def check_names(args):
    """What can be known of a supernet's files without PyTorch."""
    folder = os.path.dirname(args.supernet) or "."
    if not os.access(folder, os.W_OK):
        raise Wrong(f"nothing can be written into the folder {folder}", (args.recipe, 0, 0))
    if os.path.exists(args.supernet + ".json") or not os.path.exists(args.supernet + ".pt"):
        read_supernet(args)


def check_supernet(args, session):
    """Whether it is trained already."""
    before = read_supernet(args)
    if before is None or before == session.about:
        return before is not None and os.path.exists(args.supernet + ".json") and os.path.exists(args.supernet + ".npz")
    what = "the space" if before["module"] != session.about["module"] else "the samples" if before["data"] != session.about["data"] else "the recipe"
    raise Wrong(f"{args.supernet}.npz was trained otherwise: {what} was another", (args.recipe, 0, 0),
                "'supernet:RECIPE#weights=OTHER' begins another")


def train_supernet(args):
    """Processes that want the same one wait for the one that trains it."""
    try:
        lock = open(args.supernet + ".lock", "w", encoding="utf-8")
    except OSError as problem:
        raise Wrong(f"{args.supernet}.lock cannot be written: {problem.strerror}", (args.recipe, 0, 0)) from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return train_locked_supernet(args)


def train_locked_supernet(args):
    check_names(args)
    session = Session(args)
    if check_supernet(args, session):
        return {"trained": 0}
    course, accuracy = run_course(session, args.supernet, args.recipe)
    samples, rows = session.data.parts["validation"]
    rows = np.random.default_rng(3).permutation(rows)[:SUPERNET_SAMPLES]
    x = samples.inputs(rows, "cpu").contiguous(memory_format=torch.contiguous_format).numpy()
    weights = {name: value.detach().cpu().numpy() for name, value in course.judged().named_parameters()}
    loop.write_whole(args.supernet + "-samples.npz", lambda file: np.savez(file, x=x, y=np.array(samples.y[rows])))
    loop.write_whole(args.supernet + ".npz", lambda file: np.savez(file, **weights))
    write_curve(args.supernet + ".csv", course.curve)
    outcome = {"about": session.about, "accuracy": accuracy}
    loop.write_whole(args.supernet + ".json", lambda file: file.write(json.dumps(outcome).encode()))
    os.remove(args.supernet + ".pt")
    return {"trained": len(course.curve)}


# ---- A network of a search ----


def rung_wanted():
    text = os.environ.get("HWNAS_RUNG") or "0"
    if not text.isdigit():
        raise Wrong(f"HWNAS_RUNG must be a number from 0 on, not '{text:.40}'")
    return int(text)


def train(args):
    session = Session(args, rung_wanted())
    files = args.work and os.path.join(args.work, (os.environ.get("HWNAS_DIGEST") or "network") + suffix(session.rung))
    outcome = read_outcome(files, session.about)
    if outcome is None:
        course = Course(session, files)
        try:
            outcome = {"about": session.about, "accuracy": course.train(), "curve": course.curve}
        except loop.Diverged as what:
            outcome = {"about": session.about, "curve": course.curve, "failed": "; ".join(course.why_diverged(what))}
        write_outcome(files, outcome)
    if "failed" in outcome:
        sys.exit(f"train.py: {outcome['failed']}")
    print(f"{max(outcome['accuracy'], 0):.4f} %")  # a fit of numbers that is worse than their mean is worth nothing


def is_good(args):
    """What is wrong in the recipe, or with a supernet's files, is told at once, not when the server has loaded PyTorch."""
    try:
        read_recipe(args.recipe)
        if args.supernet:
            check_names(args)
    except Wrong:
        return False
    return True


def work(args):
    if args.check or args.out or args.supernet:
        return tell(check if args.check else train_to_keep if args.out else train_supernet, args)
    try:
        train(args)
    except Wrong as wrong:
        place = ":".join(str(part) for part in wrong.place if part) + ": " if wrong.place else ""
        sys.exit(f"train.py: {place}{wrong.message}" + (f" ({wrong.hint})" if wrong.hint else ""))


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--serve":
        fork_server.serve(sys.argv[2], import_torch)
        fork_server.end_after(lambda: work(parse()))
    args = parse()
    if is_good(args):
        fork_server.hand_over()
    work(args)


if __name__ == "__main__":
    main()
