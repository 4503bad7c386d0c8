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
# Which inputs are data, not weights and options; -1: all.
DATA_INPUTS = collections.defaultdict(lambda: 1) | dict.fromkeys(
    """Add And BitShift CastLike Concat Div Einsum Equal Gather GatherElements GatherND Greater GreaterOrEqual Less
    LessOrEqual MatMul Max Mean Min
    Mod Mul Or Pow PRelu ScatterElements ScatterND Sub Sum Where Xor""".split(),
    -1,
) | {"ConstantOfShape": 0, "Range": 0}
OPERATORS = """Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh AveragePool
    BatchNormalization BitShift Cast CastLike Ceil Celu Clip Compress Concat Constant
    ConstantOfShape Conv ConvTranspose Cos Cosh CumSum DepthToSpace DequantizeLinear Div
    Dropout DynamicQuantizeLinear Einsum Elu Equal Erf Exp Expand EyeLike Flatten Floor
    GRU Gather GatherElements GatherND Gelu Gemm GlobalAveragePool GlobalMaxPool Greater
    GreaterOrEqual GroupNormalization HardSigmoid HardSwish Hardmax Identity
    InstanceNormalization IsInf IsNaN LRN LSTM LayerNormalization LeakyRelu Less
    LessOrEqual Log LogSoftmax LpNormalization LpPool MatMul MatMulInteger Max MaxPool
    Mean MeanVarianceNormalization Min Mish Mod Mul Neg Not OneHot Or PRelu Pad Pow
    QLinearMatMul QuantizeLinear RNN Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum
    ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare
    Relu Reshape Resize ReverseSequence Round Scatter ScatterElements ScatterND Selu
    Shape Shrink Sigmoid Sign Sin Sinh Size Slice Softmax Softplus Softsign SpaceToDepth
    Split Sqrt Squeeze Sub Sum Tan Tanh ThresholdedRelu Tile TopK Transpose Trilu
    Unsqueeze Upsample Where Xor""".split()

REASONS = {
    "the shape 0x3x4": "reshape_allowzero_reordered",
    "takes nothing": """slice_start_out_of_bounds layer_normalization_4d_axis0_expanded
        layer_normalization_4d_axis_negative_4_expanded
        layer_normalization_2d_axis0_expanded
        layer_normalization_2d_axis_negative_2_expanded
        layer_normalization_3d_axis0_epsilon_expanded
        layer_normalization_3d_axis_negative_3_epsilon_expanded""",
    "attribute 'layout'": "gru_batchwise lstm_batchwise",
    "resizes in a way": """resize_downsample_scales_cubic
        resize_downsample_scales_cubic_A_n0p5_exclude_outside
        resize_downsample_scales_cubic_align_corners resize_downsample_scales_linear
        resize_downsample_scales_linear_align_corners resize_downsample_scales_nearest
        resize_downsample_sizes_cubic resize_downsample_sizes_linear_pytorch_half_pixel
        resize_downsample_sizes_nearest resize_tf_crop_and_resize
        resize_upsample_scales_cubic resize_upsample_scales_cubic_A_n0p5_exclude_outside
        resize_upsample_scales_cubic_align_corners
        resize_upsample_scales_cubic_asymmetric
        resize_upsample_scales_linear_align_corners resize_upsample_sizes_cubic
        resize_upsample_sizes_nearest resize_upsample_sizes_nearest_ceil_half_pixel
        resize_upsample_sizes_nearest_floor_align_corners
        resize_upsample_sizes_nearest_round_prefer_ceil_asymmetric""",
    "attribute 'auto_pad'": """averagepool_2d_precomputed_same_upper averagepool_2d_same_upper
        averagepool_2d_same_lower conv_with_autopad_same
        maxpool_2d_precomputed_same_upper maxpool_2d_same_upper maxpool_2d_same_lower""",
    "attribute 'ceil_mode'": "averagepool_2d_ceil maxpool_2d_ceil",
    "attribute 'dilations'": "maxpool_2d_dilations",
    "attribute 'kernel_shape'": """averagepool_1d_default averagepool_3d_default maxpool_1d_default
        maxpool_3d_default""",
    "attribute 'training_mode'": """batchnorm_example_training_mode batchnorm_epsilon_training_mode""",
    "(Dropout) has 2 inputs": """training_dropout_default training_dropout_default_mask training_dropout
        training_dropout_mask training_dropout_zero_ratio
        training_dropout_zero_ratio_mask""",
    "a second output": """dropout_default_mask dropout_default_mask_ratio
        maxpool_with_argmax_2d_precomputed_pads
        maxpool_with_argmax_2d_precomputed_strides""",
    "attribute 'limit'": """blackmanwindow_expanded blackmanwindow_symmetric_expanded hammingwindow_expanded
        hammingwindow_symmetric_expanded hannwindow_expanded
        hannwindow_symmetric_expanded""",
    "is of type STRING": """cast_FLOAT_to_STRING cast_STRING_to_FLOAT castlike_FLOAT_to_STRING_expanded
        castlike_STRING_to_FLOAT_expanded""",
    "a constant of its type": "clip_default_int8_min clip_default_int8_max",
    "no graph with inputs and outputs": """constant constantofshape_float_ones constantofshape_int_zeros
        constantofshape_int_shape_zero range_float_type_positive_delta
        range_int32_type_negative_delta""",
    "'linear_before_reset' is absent": "gru_defaults gru_with_initial_bias gru_seq_length",
    "not a tensor of known shape": "identity_sequence identity_opt",
    "is more than zeros": "lstm_with_peepholes",
    "is a constant": """shape_example shape shape_start_1 shape_end_1 shape_start_negative_1
        shape_end_negative_1 shape_start_1_end_negative_1 shape_start_1_end_2
        shape_clip_start shape_clip_end size_example size""",
    "goes backwards": "slice_neg_steps",
    "would have the shape 0": "split_zero_size_splits",
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
    if node.op_type == "LayerNormalization":  # mean and deviation besides, which only training wants
        del graph.output[1:], node.output[1:]
        outputs = outputs[:1]
    values = dict(zip([i.name for i in graph.input], inputs))
    n_data = DATA_INPUTS[node.op_type]
    data = [n for n in (node.input[:n_data] if n_data >= 0 else node.input) if n]
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
        return done.stderr.strip().splitlines()[0] if done.stderr else f"died: {done.returncode}"
    got = np.fromfile(folder / "out.bin", np.float32)
    wanted = np.concatenate([np.asarray(o, np.float32).ravel() for o in outputs])
    assert got.shape == wanted.shape, f"{case.name}: {got.size} values, not {wanted.size}"
    error = np.abs(got - wanted).max() / max(np.abs(wanted).max(), 1e-30)
    # We compute in float32 what a file keeps in 16 bits.
    limit = 1e-2 if "FLOAT16" in case.name else LIMIT
    assert error <= limit, f"{case.name}: a relative error of {error:.2g}"
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
    # onnx 1.12's own values for bfloat16 are in no format that numpy knows.
    cases = [
        case
        for case in cases
        if case.data_sets
        and "BFLOAT16" not in case.name
        and {n.op_type for n in case.model.graph.node} <= set(OPERATORS)
    ]
    reasons = REASONS | REASONS_ON.get(device, {})
    required = by_case(reasons)
    refused = required | by_case(NEWER)
    n_run = collections.Counter()
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            try:
                reason = run_case(case, hwnas, device, pathlib.Path(folder))
            except AssertionError as error:
                wrong.append(str(error))
                continue
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
