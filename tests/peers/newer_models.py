#!/usr/bin/python3
"""Models of forms of ONNX's operators that the node tests of version 1.12 lack, one a file, each with an input.

    newer_models.py FOLDER    writes NAME.onnx and NAME.in, raw float32, for ort_run.mjs
"""

import itertools
import pathlib
import sys

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


if __name__ == "__main__":
    grids(pathlib.Path(sys.argv[1]))
