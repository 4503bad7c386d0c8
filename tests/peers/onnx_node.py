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
DATA_INPUTS = collections.defaultdict(
    lambda: 1, Add=2, Concat=99, Div=2, Gather=2, MatMul=2, Mul=2, Pow=2, Sub=2
)
OPERATORS = """Add AveragePool BatchNormalization Clip Concat Conv Div Dropout Erf Expand Flatten
    GRU Gather Gelu Gemm GlobalAveragePool HardSigmoid HardSwish LSTM LayerNormalization LeakyRelu
    MatMul MaxPool Mul Pow ReduceMean Relu Reshape Resize Sigmoid Slice Softmax Sub Tanh
    Transpose""".split()

REASONS = {
    "is of type UINT8": "add_uint8 div_uint8 maxpool_2d_uint8 mul_uint8 sub_uint8",
    "is of type INT32": "pow_types_float32_int32 pow_types_int32_float32 pow_types_int32_int32",
    "is of type UINT": "pow_types_float32_uint64 pow_types_float32_uint32",
    "which holds whole numbers": """pow_types_float32_int64 pow_types_int64_float32
        pow_types_int64_int64""",
    "has 0 dimensions": "pow_bcast_scalar",
    "the shape 0x3x4": "reshape_allowzero_reordered",
    "attribute 'axes' is absent": """reduce_mean_default_axes_keepdims_example
        reduce_mean_default_axes_keepdims_random""",
    # Of several axes at once.
    "values belong": "slice slice_default_axes slice_default_steps slice_neg_steps slice_negative_axes",
    "takes nothing": "slice_start_out_of_bounds",
    # Only the last state is asked for.
    "has no output": """gru_defaults gru_with_initial_bias gru_seq_length lstm_defaults
        lstm_with_initial_bias lstm_with_peepholes""",
    "attribute 'layout'": "gru_batchwise lstm_batchwise",
    # By other factors than whole ones, or placed in another way.
    "resizes in a way": """resize_downsample_scales_cubic resize_downsample_scales_cubic_A_n0p5_exclude_outside
        resize_downsample_scales_cubic_align_corners resize_downsample_scales_linear
        resize_downsample_scales_linear_align_corners resize_downsample_scales_nearest
        resize_downsample_sizes_cubic resize_downsample_sizes_linear_pytorch_half_pixel
        resize_downsample_sizes_nearest resize_tf_crop_and_resize
        resize_upsample_scales_cubic resize_upsample_scales_cubic_A_n0p5_exclude_outside
        resize_upsample_scales_cubic_align_corners resize_upsample_scales_cubic_asymmetric
        resize_upsample_scales_linear_align_corners resize_upsample_sizes_cubic
        resize_upsample_sizes_nearest resize_upsample_sizes_nearest_ceil_half_pixel
        resize_upsample_sizes_nearest_floor_align_corners
        resize_upsample_sizes_nearest_round_prefer_ceil_asymmetric""",
    "is of type INT8": "clip_default_int8_min clip_default_int8_max clip_default_int8_inbounds",
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


def run_case(case, hwnas, device, folder):
    """None, or why it was refused."""
    model = case.model
    graph = model.graph
    node = graph.node[0]
    ((inputs, outputs),) = case.data_sets
    if node.op_type == "LayerNormalization":  # mean and deviation besides, which only training wants
        del graph.output[1:], node.output[1:]
        outputs = outputs[:1]
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
    raw = b"".join(np.array(values[i.name]).astype(np.float32).tobytes() for i in graph.input)
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
    required = by_case(REASONS)
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
    for reason, names in REASONS.items():
        print(f"{reason}: {' '.join(names.split())}")
    for line in wrong:
        print(line)
    return 1 if wrong or not n_run else 0


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except AssertionError as error:
        sys.exit(f"onnx_node.py: {error}")
