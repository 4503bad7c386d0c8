"""Recipes of trainings, docs/training.md: reads and checks them. Needs PyYAML, and no PyTorch: what is wrong in a
recipe is told at once, with its place."""
import difflib
import math
import os

import yaml


class Wrong(Exception):
    """What is wrong in a recipe or its data: the place is (file, line, column) or None."""

    def __init__(self, message, place=None, hint=None):
        super().__init__(message)
        self.message, self.place, self.hint = message, place, hint


def place_of(node):
    mark = node.start_mark
    return mark.name, mark.line + 1, mark.column + 1


def nearest(word, words):
    near = difflib.get_close_matches(word, words, 1)
    return f"did you mean '{near[0]}'?" if near else None


# ---- Values: functions of (what it is called, its node) ----


def text(name, node):
    if not isinstance(node, yaml.ScalarNode) or not node.value:
        raise Wrong(f"{name} must be a text", place_of(node))
    return node.value


def word(*words):
    def read(name, node):
        value = text(name, node)
        if value not in words:
            raise Wrong(f"{name} is {', '.join(words[:-1])} or {words[-1]}, not '{value:.40}'", place_of(node), nearest(value, words))
        return value
    return read


def number(low, high, is_whole=False):
    def read(name, node):
        value = text(name, node)
        try:
            found = int(value) if is_whole else float(value)
        except ValueError:
            found = math.nan
        if not low <= found <= high:
            raise Wrong(f"{name} must be a {'whole ' if is_whole else ''}number from {low:g} to {high:g}, not '{value:.40}'", place_of(node))
        return found
    return read


def whole(low, high=10 ** 6):
    return number(low, high, True)


def truth(name, node):
    value = text(name, node)
    if value not in ("true", "false"):
        raise Wrong(f"{name} is true or false, not '{value:.40}'", place_of(node))
    return value == "true"


def path(name, node):
    """Seen from the recipe's folder."""
    found = os.path.join(os.path.dirname(os.path.abspath(node.start_mark.name)), text(name, node))
    if not os.path.exists(found):
        raise Wrong(f"{name}: there is no file or folder '{node.value}'", place_of(node), f"looked for {found}")
    return found


def share_or_path(name, node):
    try:
        float(text(name, node))
    except ValueError:
        return path(name, node)
    return number(0.001, 0.9)(name, node)


def factor(name, node):
    """A number or a quotient, as `hwnas evaluate` takes them; a list has one for each channel."""
    def one(node):
        above, _, below = text(name, node).partition("/")
        try:
            good = math.isfinite(float(above) / float(below or 1))
        except (ValueError, ZeroDivisionError):
            good = False
        if not good:
            raise Wrong(f"{name} must be a number or a quotient such as 1/255, not '{node.value:.40}'", place_of(node))
        return node.value
    if isinstance(node, yaml.SequenceNode):
        return ":".join(one(item) for item in node.value)
    return one(node)


def ascending(name, node):
    read = number(0, 1e6)
    values = [read(name, item) for item in node.value] if isinstance(node, yaml.SequenceNode) else [read(name, node)]
    if not values or sorted(set(values)) != values:
        raise Wrong(f"{name} must be epochs in ascending order", place_of(node))
    return values


def device(name, node):
    value = text(name, node)
    if value not in ("auto", "cpu", "cuda") and not (value.startswith("cuda:") and value[5:].isdigit()):
        raise Wrong(f"{name} is auto, cpu, cuda or cuda:NUMBER, not '{value:.40}'", place_of(node), nearest(value, ["auto", "cpu", "cuda"]))
    return value


# ---- Keys: (what reads the value, what holds without it); REQUIRED: it must be there ----

REQUIRED = object()

DATA = {
    "train": (path, REQUIRED), "train-labels": (path, None),
    "validation": (share_or_path, 0.1), "validation-labels": (path, None),
    "test": (share_or_path, None), "test-labels": (path, None),
    "x": (text, None), "y": (text, None), "layout": (word("nchw", "nhwc"), None),
    "scale": (factor, None), "mean": (factor, None), "std": (factor, None),
}
OPTIMIZER = {
    "name": (word("sgd", "adamw"), "sgd"), "rate": (number(1e-9, 1e9), None), "momentum": (number(0, 0.9999), 0.9),
    "nesterov": (truth, True), "decay": (number(0, 10), None), "clip": (number(1e-9, 1e9), None),
}
SCHEDULE = {
    "name": (word("cosine", "one-cycle", "steps", "constant"), "cosine"), "warmup": (number(0, 1e6), None),
    "at": (ascending, None), "factor": (number(1e-6, 1), 0.1),
}
AUGMENT = {
    "flip": (truth, False), "shift": (whole(0, 1000), 0), "crop": (number(0.01, 1), None), "cutout": (whole(0, 1000), 0),
}


RUNG = {
    "epochs": (whole(1), None), "data": (number(0.001, 1), None), "resolution": (number(0.1, 1), None),
}


def list_of(keys, most):
    def read(name, node):
        if not isinstance(node, yaml.SequenceNode) or not 1 <= len(node.value) <= most:
            raise Wrong(f"{name} must be a list of 1 to {most} mappings", place_of(node), "such as [{epochs: 1}, {epochs: 3}]")
        return [read_keys(f"a rung of {name}", item, keys) for item in node.value]
    return read


def mapping(keys):
    """A mapping; one that has a name may be the name alone."""
    def read(name, node):
        if "name" in keys and isinstance(node, yaml.ScalarNode):
            node = yaml.MappingNode(node.tag, [(yaml.ScalarNode(node.tag, "name", node.start_mark), node)], node.start_mark)
        return read_keys(name, node, keys)
    return read


RECIPE = {
    "data": (mapping(DATA), REQUIRED), "epochs": (whole(1), REQUIRED), "batch": (whole(1), 128), "seed": (whole(0, 2 ** 31), 0),
    "optimizer": (mapping(OPTIMIZER), {}), "schedule": (mapping(SCHEDULE), {}), "augment": (mapping(AUGMENT), {}),
    "label-smoothing": (number(0, 0.9), 0), "ema": (number(0, 0.999999), 0),
    "precision": (word("f32", "bf16", "f16"), "f32"), "early-stop": (whole(1), None),
    "device": (device, "auto"), "threads": (whole(1, 4096), None), "rungs": (list_of(RUNG, 7), []),
}


def read_keys(name, node, keys):
    if not isinstance(node, yaml.MappingNode):
        raise Wrong(f"{name} must be a mapping with keys such as {', '.join(list(keys)[:3])}", place_of(node))
    found, places = {}, {}
    for key, value in node.value:
        if key.value not in keys:
            raise Wrong(f"{name} has no key '{str(key.value):.40}'", place_of(key),
                        nearest(str(key.value), keys) or f"the keys are {', '.join(keys)}")
        if key.value in found:
            raise Wrong(f"'{key.value}' stands twice in {name}", place_of(key))
        found[key.value], places[key.value] = keys[key.value][0](key.value, value), place_of(value)
    for key, (_, without) in keys.items():
        if key not in found and without is REQUIRED:
            raise Wrong(f"{name} has no '{key}'", place_of(node), f"add {key}: ...")
        if key not in found:
            found[key] = read_keys(key, yaml.MappingNode("", [], node.start_mark), TABLES[key]) if key in TABLES else without
    return Settings(found, places)


TABLES = {"optimizer": OPTIMIZER, "schedule": SCHEDULE, "augment": AUGMENT}


class Settings(dict):
    """Values by their keys, and the places of those that were written."""

    def __init__(self, values, places):
        super().__init__(values)
        self.places = places

    def place(self, key):
        return self.places.get(key)


def check_schedule(recipe):
    schedule = recipe["schedule"]
    if schedule["name"] == "steps" and not schedule["at"]:
        raise Wrong("the schedule 'steps' needs the epochs at which the rate falls", recipe.place("schedule"),
                    "write schedule: {name: steps, at: [30, 60]}")
    if schedule["at"] and schedule["name"] != "steps":
        raise Wrong(f"'at' is of the schedule 'steps', not '{schedule['name']}'", schedule.place("at"))
    if (schedule["warmup"] or 0) >= recipe["epochs"]:
        raise Wrong(f"a warmup of {schedule['warmup']:g} epochs leaves nothing of {recipe['epochs']}", schedule.place("warmup"))


def cost(recipe, rung):
    """Of a training, beside that of a whole one."""
    return (rung["epochs"] or recipe["epochs"]) / recipe["epochs"] * (rung["data"] or 1) * (rung["resolution"] or 1) ** 2


def check_rungs(recipe):
    dearest = 0
    for rung in recipe["rungs"]:
        place = min(rung.places.values(), default=recipe.place("rungs"))
        if not dearest < cost(recipe, rung) < 1:
            raise Wrong("each rung must cost more than the one before, and less than the whole training: by epochs, data "
                        "and the square of the resolution", place, "the cheapest comes first")
        dearest = cost(recipe, rung)


def at_rung(recipe, n):
    """The recipe of a training so much cheaper: 0 is the whole one, then from the dearest rung to the cheapest. What counts
    in epochs or in pixels is as much less."""
    if not 0 <= n <= len(recipe["rungs"]):
        raise Wrong(f"the recipe has {len(recipe['rungs'])} cheaper trainings, not {n}", recipe.place("rungs"))
    rung = recipe["rungs"][-n] if n else dict.fromkeys(RUNG)
    found = Settings({**recipe, "share": rung["data"] or 1, "resolution": rung["resolution"] or 1}, recipe.places)
    if rung["epochs"]:
        share, found["epochs"] = rung["epochs"] / recipe["epochs"], rung["epochs"]
        schedule = found["schedule"] = Settings(recipe["schedule"], recipe["schedule"].places)
        schedule["warmup"] = schedule["warmup"] and schedule["warmup"] * share
        schedule["at"] = schedule["at"] and [at * share for at in schedule["at"]]
    if rung["resolution"]:
        augment = found["augment"] = Settings(recipe["augment"], recipe["augment"].places)
        for key in ("shift", "cutout"):
            augment[key] = round(augment[key] * rung["resolution"])
    return found


def read_recipe(file):
    try:
        with open(file, encoding="utf-8") as stream:
            node = yaml.compose(stream, yaml.SafeLoader)
    except OSError as problem:
        raise Wrong(problem.strerror, (file, 0, 0)) from None
    except UnicodeDecodeError:
        raise Wrong("the file is not in UTF-8", (file, 0, 0)) from None
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        what = getattr(problem, "problem", None) or "it cannot be read"
        raise Wrong(f"this is not YAML: {what}", (file, mark.line + 1, mark.column + 1) if mark else (file, 0, 0)) from None
    if node is None:
        raise Wrong("the recipe is empty", (file, 0, 0), "docs/training.md has one to begin with")
    recipe = read_keys("the recipe", node, RECIPE)
    check_schedule(recipe)
    check_rungs(recipe)
    optimizer = recipe["optimizer"]
    is_sgd = optimizer["name"] == "sgd"
    for key, of_sgd, of_adamw in (("rate", 0.1, 0.001), ("decay", 5e-4, 0.05)):
        if optimizer[key] is None:
            optimizer[key] = of_sgd if is_sgd else of_adamw
    return recipe
