#!/usr/bin/python3
"""Models of forms of ONNX's operators that the node tests of version 1.12 lack, one a file, each with an input.

    newer_models.py FOLDER    writes NAME.onnx and NAME.in, raw float32, for ort_run.mjs
"""

import itertools
import pathlib
import sys

import numpy as np
from onnx import helper

from contrib_models import save, values


def node(kind, inputs, outputs, **attributes):
    return helper.make_node(kind, inputs.split(" "), outputs.split(" "), **attributes)


def grids(folder):
    """By the words of opset 16 and of opset 20."""
    words = {16: ("bilinear", "nearest", "bicubic"), 20: ("linear", "nearest", "cubic")}
    for opset, paddings, aligned in itertools.product(words, ("zeros", "border", "reflection"), (0, 1)):
        for mode in words[opset]:
            save(folder, f"grid_{opset}_{mode}_{paddings}_{aligned}",
                 [node("GridSample", "x grid", "y", mode=mode, padding_mode=paddings, align_corners=aligned)],
                 {"x": [2, 5, 6, 7], "grid": [2, 9, 13, 2]}, {"y": [2, 5, 9, 13]}, opset=opset)


def smaller(folder):
    """Images made smaller by filters that leave no pixel out, and one larger."""
    for number, (mode, size, attributes) in enumerate([
        ("linear", (6, 5), {}),
        ("linear", (7, 31), {"exclude_outside": 1}),
        ("linear", (3, 9), {"coordinate_transformation_mode": "align_corners"}),
        ("linear", (26, 14), {}),
        ("cubic", (6, 5), {}),
        ("cubic", (5, 8), {"exclude_outside": 1, "cubic_coeff_a": -0.5}),
        ("cubic", (26, 14), {"coordinate_transformation_mode": "pytorch_half_pixel"}),
    ]):
        save(folder, f"smaller_{number}", [node("Resize", "x   sizes", "y", mode=mode, antialias=1, **attributes)],
             {"x": [2, 3, 13, 20]}, {"y": [2, 3, *size]}, {"sizes": np.array([2, 3, *size])}, opset=18)


def tiles(folder):
    """Repeated along up to seven axes, also of one value, beside each other and not."""
    for number, (shape, by) in enumerate([
        ([2, 3, 4, 5], [1, 1, 2, 2]),
        ([2, 3, 4, 5], [3, 1, 1, 2]),
        ([2, 1, 4, 1], [2, 3, 2, 5]),
        ([6], [4]),
        ([2, 3, 2, 2, 3], [2, 2, 3, 2, 2]),
        ([2, 3, 2, 1, 2, 2, 3], [2, 2, 2, 2, 2, 2, 2]),
        ([2, 3, 2, 1, 2, 2, 3], [1, 2, 1, 2, 1, 2, 2]),
        ([2, 3, 4], [1, 1, 1]),
    ]):
        save(folder, f"tile_{number}", [node("Relu", "x", "a"), node("Tile", "a by", "y")], {"x": shape},
             {"y": [n * k for n, k in zip(shape, by)]}, {"by": np.array(by)})


def sequences(folder):
    """Recurrent layers with lengths and clipped."""
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}
    steps, batch, width, hidden = 5, 3, 4, 6
    for kind, direction in itertools.product(gates, ("forward", "reverse", "bidirectional")):
        n = 2 if direction == "bidirectional" else 1
        weights = {"w": values(n, gates[kind] * hidden, width), "r": values(n, gates[kind] * hidden, hidden),
                   "b": values(n, 2 * gates[kind] * hidden)}
        y = {"y": [steps, n, batch, hidden], "h": [n, batch, hidden]}
        settings = {"hidden_size": hidden, "direction": direction}
        if kind == "GRU":
            settings["linear_before_reset"] = 1
        for name, lengths in ("all", [5, 5, 5]), ("some", [2, 5, 1]):
            save(folder, f"{kind}_{direction}_{name}", [node(kind, "x w r b lengths", "y h", **settings)],
                 {"x": [steps, batch, width]}, y, {**weights, "lengths": np.array(lengths, np.int32)})
        save(folder, f"{kind}_{direction}_given", [node(kind, "x w r b whole_lengths", "y h", **settings)],
             {"x": [steps, batch, width], "whole_lengths": [batch]}, y, weights)
        save(folder, f"{kind}_{direction}_clip", [node(kind, "x w r b", "y h", clip=0.6, **settings)],
             {"x": [steps, batch, width]}, y, weights)


if __name__ == "__main__":
    for write in grids, smaller, tiles, sequences:
        write(pathlib.Path(sys.argv[1]))
