#!/usr/bin/python3
"""Does hwnas compute what ONNX says its operators compute?

    onnx_node.py HWNAS DEVICE

Runs the node tests that ship in the package onnx (onnx.backend.test.case.node) for the operators
that hwnas has, and compares the outputs with theirs. What hwnas refuses must be in REASONS, with
a part of what it says, and nothing else may be: the list of what it cannot do stays right.
"""

import collections
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import onnx
import onnx.numpy_helper

# onnx 1.12 uses names that numpy 1.24 took away.
for name, alias in {"float": float, "int": int, "bool": bool, "object": object}.items():
    if name not in np.__dict__:
        setattr(np, name, alias)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from onnx.backend.test.case.node import collect_testcases

LIMIT = 1e-5

# How many inputs are data; what follows are weights and options, which hwnas takes as constants.
DATA_INPUTS = collections.defaultdict(lambda: 1, Add=2, Mul=2, Concat=99)
OPERATORS = """Add AveragePool BatchNormalization Clip Concat Conv Dropout Flatten Gemm
    GlobalAveragePool HardSigmoid HardSwish LeakyRelu MaxPool Mul Relu Sigmoid Softmax
    Tanh""".split()

REASONS = {
    "is of type UINT8": "add_uint8 maxpool_2d_uint8 mul_uint8",
    "is of type INT8": "clip_default_int8_min clip_default_int8_max clip_default_int8_inbounds",
    # An input of fewer dimensions, which would be repeated.
    "cannot join the shapes": "add_bcast mul_bcast",
    "attribute 'auto_pad'": """averagepool_2d_precomputed_same_upper averagepool_2d_same_upper
        averagepool_2d_same_lower conv_with_autopad_same maxpool_2d_precomputed_same_upper
        maxpool_2d_same_upper maxpool_2d_same_lower""",
    "attribute 'ceil_mode'": "averagepool_2d_ceil maxpool_2d_ceil",
    "attribute 'dilations'": "maxpool_2d_dilations",
    # Sequences and volumes.
    "attribute 'kernel_shape'": """averagepool_1d_default averagepool_3d_default maxpool_1d_default
        maxpool_3d_default""",
    "attribute 'training_mode'": """batchnorm_example_training_mode
        batchnorm_epsilon_training_mode""",
    "(Dropout) has 2 inputs": """training_dropout_default training_dropout_default_mask
        training_dropout training_dropout_mask training_dropout_zero_ratio
        training_dropout_zero_ratio_mask""",
    "a second output": """dropout_default_mask dropout_default_mask_ratio
        maxpool_with_argmax_2d_precomputed_pads maxpool_with_argmax_2d_precomputed_strides""",
    "attribute 'axis'": """flatten_axis0 flatten_negative_axis4 flatten_negative_axis3
        flatten_negative_axis2 flatten_negative_axis1""",
    "attribute 'transA'": "gemm_transposeA",
    "attribute 'transB'": """gemm_default_zero_bias gemm_default_no_bias gemm_default_scalar_bias
        gemm_default_single_elem_vector_bias gemm_default_vector_bias gemm_default_matrix_bias""",
    "attribute 'alpha'": "gemm_alpha gemm_all_attributes",
    "attribute 'beta'": "gemm_beta",
    "a bias of shape 1x4": "gemm_transposeB",
}
# A network of dropout alone is nothing once it is folded, and a device computes something.
REASONS_ON = {
    "cpu": {
        "is not computed": "dropout_default dropout_default_ratio dropout_default_old "
        "dropout_random_old"
    }
}


def run_case(case, hwnas, device, folder):
    """None, or why it was refused."""
    model = case.model
    graph = model.graph
    node = graph.node[0]
    ((inputs, outputs),) = case.data_sets
    values = dict(zip([i.name for i in graph.input], inputs))
    data = [n for n in node.input[: DATA_INPUTS[node.op_type]] if n]
    if len(graph.node) > 1:
        data = [i.name for i in graph.input]
    for value in [i for i in graph.input if i.name not in data]:
        constant = np.array(values[value.name])
        graph.initializer.append(onnx.numpy_helper.from_array(constant, value.name))
        graph.input.remove(value)
    for opset in model.opset_import:  # older ones that did not change until 7
        opset.version = max(opset.version, 7)
    onnx.save(model, folder / "model.onnx")
    raw = b"".join(np.array(values[i.name]).tobytes() for i in graph.input)
    (folder / "in.bin").write_bytes(raw)
    command = [hwnas, "run", folder / "model.onnx", "--device", device]
    command += ["--input", folder / "in.bin", "--output", folder / "out.bin"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip().splitlines()[0]
    got = np.fromfile(folder / "out.bin", np.float32)
    wanted = np.concatenate([np.asarray(o, np.float32).ravel() for o in outputs])
    assert got.shape == wanted.shape, f"{case.name}: {got.size} values, not {wanted.size}"
    error = np.abs(got - wanted).max() / max(np.abs(wanted).max(), 1e-30)
    assert error <= LIMIT, f"{case.name}: a relative error of {error:.2g}"
    return None


# Cases that newer versions of onnx have besides: refused there, absent in older ones.
NEWER = {
    "attribute 'ceil_mode'": "averagepool_2d_dilations averagepool_3d_dilations_small"
    " averagepool_3d_dilations_large_count_include_pad_is_0_ceil_mode_is_True"
    " averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_True"
    " maxpool_2d_ceil_output_size_reduce_by_one maxpool_3d_dilations_use_ref_impl_large",
    "attribute 'dilations'": "maxpool_3d_dilations maxpool_3d_dilations_use_ref_impl"
    " averagepool_3d_dilations_large_count_include_pad_is_0_ceil_mode_is_False"
    " averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_False",
}


def by_case(reasons):
    return {f"test_{name}": why for why, names in reasons.items() for name in names.split()}


def main(hwnas, device):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    cases = [c for c in cases if {n.op_type for n in c.model.graph.node} <= set(OPERATORS)]
    reasons = REASONS | REASONS_ON.get(device, {})
    required = by_case(reasons)
    refused = required | by_case(NEWER)
    n_run = collections.Counter()
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            reason = run_case(case, hwnas, device, pathlib.Path(folder))
            expected = refused.get(case.name)
            if reason is None:
                n_run[case.model.graph.node[0].op_type] += 1
                if expected:
                    wrong.append(f"{case.name} is in REASONS but runs")
            elif not expected or expected not in reason:
                wrong.append(f"{case.name}: {reason}")
    for operator, n in sorted(n_run.items()):
        print(f"{operator}: {n}")
    wrong += [f"{name} does not exist" for name in required.keys() - {c.name for c in cases}]
    print(f"{sum(n_run.values())} of {len(cases)} run on {device}, the others are refused:")
    for reason, names in reasons.items():
        print(f"{reason}: {' '.join(names.split())}")
    for line in wrong:
        print(line)
    return 1 if wrong or not n_run else 0


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except AssertionError as error:
        sys.exit(f"onnx_node.py: {error}")
