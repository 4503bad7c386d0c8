#!/usr/bin/python3
"""Models of forms of ONNX's operators that the node tests of version 1.12 lack, one a file, each with an input.

    newer_models.py FOLDER    writes NAME.onnx and NAME.in, raw float32, for ort_run.mjs
"""

import itertools
import pathlib
import sys

import numpy as np
from onnx import helper

from contrib_models import save


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


if __name__ == "__main__":
    for write in grids, smaller:
        write(pathlib.Path(sys.argv[1]))
