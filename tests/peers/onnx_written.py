#!/usr/bin/python3
"""Is what hwnas writes of ONNX's operators valid ONNX?

    onnx_written.py LIBRARY           reads the node tests that onnx_node.py runs by this libhwnas.so, writes each as
                                      a file and has onnx's own checker look at it, with shape inference
    onnx_written.py LIBRARY --ort     has ONNX Runtime read it as well, which also looks at the types of operands

What is not read is for onnx_node.py to judge.
"""

import importlib
import os
import pathlib
import sys
import tempfile

import onnx

import onnx_node

# Operators that ONNX Runtime lacks for some types.
LACKING = "NOT_IMPLEMENTED", "Could not find an implementation"


def check(case, hwnas, folder, with_ort):
    """Whether it was written; raises what the checkers say."""
    onnx_node.write_case(case, folder)
    try:
        network = hwnas.Network(folder / "model.onnx")
    except hwnas.Error:
        return False
    with network:
        network.export(folder / "written.onnx")
        onnx.checker.check_model(str(folder / "written.onnx"), full_check=True)
        try:
            if with_ort:
                network.compile("ort", threads=1).close()
        except hwnas.Error as error:
            if not any(word in str(error) for word in LACKING):
                raise
    return True


def main(library, *options):
    os.environ["HWNAS_LIBRARY"] = library
    sys.path.insert(0, str(onnx_node.ROOT / "python"))
    hwnas = importlib.import_module("hwnas")
    n_written = n_wrong = 0
    for cases in onnx_node.collect().values():
        for case in cases:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    n_written += check(case, hwnas, pathlib.Path(folder), "--ort" in options)
                except Exception as error:  # the checker's, of several types
                    n_wrong += 1
                    print(f"{case.name}: {str(error).splitlines()[0]}")
    print(f"{n_written} are valid, {n_wrong} are not")
    return 1 if n_wrong or not n_written else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
