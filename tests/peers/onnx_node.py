#!/usr/bin/python3
"""Does hwnas compute what ONNX says its operators compute?

    onnx_node.py HWNAS DEVICE...          fails where a device computes another thing, refuses what is not
                                          in REASONS, or does not refuse what is, and where
                                          docs/operators.md says another number of tests
    onnx_node.py HWNAS DEVICE... --docs   writes docs/operators.md instead
    onnx_node.py HWNAS DEVICE --seconds N as far as that time goes, one case of each operator first; the page
                                          is not looked at
    onnx_node.py HWNAS DEVICE --jobs N    so many at a time
    onnx_node.py HWNAS DEVICE --library L by this libhwnas.so in this process, ten times as fast as by a program
                                          for each case; but one case that ends the process ends all

Runs the node tests that ship in the package onnx (onnx.backend.test.case.node) for the operators
that hwnas reads, and compares the outputs with theirs.
"""

import collections
import concurrent.futures
import importlib
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time
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

ROOT = pathlib.Path(__file__).parents[2]
LIMIT = 1e-5
GPU = "\n## On a GPU\n"  # from here on tests/unit/test_plans writes
PAGE = ROOT / "docs" / "operators.md"

# Which inputs are data, not weights and options; -1: all.
DATA_INPUTS = collections.defaultdict(lambda: 1) | dict.fromkeys(
    """Add And BitShift CastLike Concat Div Einsum Equal Gather GatherElements GatherND Greater GreaterOrEqual GridSample Less
    LessOrEqual MatMul Max Mean Min
    Mod Mul Or Pow PRelu ScatterElements ScatterND Sub Sum Where Xor""".split(),
    -1,
) | {"Conv": 2, "ConstantOfShape": 0, "Range": 0}
OPERATORS = """Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh AveragePool
    BatchNormalization BitShift Cast CastLike Ceil Celu Clip Compress Concat Constant
    ConstantOfShape Conv ConvInteger ConvTranspose Cos Cosh CumSum DepthToSpace DequantizeLinear Div
    Dropout DynamicQuantizeLinear Einsum Elu Equal Erf Exp Expand EyeLike Flatten Floor
    GRU Gather GatherElements GatherND Gelu Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool Greater
    GreaterOrEqual GridSample GroupNormalization HardSigmoid HardSwish Hardmax Identity
    InstanceNormalization IsInf IsNaN LRN LSTM LayerNormalization LeakyRelu Less
    LessOrEqual Log LogSoftmax LpNormalization LpPool MatMul MatMulInteger Max MaxPool
    Mean MeanVarianceNormalization Min Mish Mod Mul Neg Not OneHot Or PRelu Pad Pow
    QLinearConv QLinearMatMul QuantizeLinear RNN Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum
    ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare
    Relu Reshape Resize ReverseSequence Round Scatter ScatterElements ScatterND Selu
    Shape Shrink Sigmoid Sign Sin Sinh Size Slice Softmax Softplus Softsign SpaceToDepth
    Split Sqrt Squeeze Sub Sum Swish Tan Tanh ThresholdedRelu Tile TopK Transpose Trilu
    Unsqueeze Upsample Where Xor""".split()

REASONS = {
    "has no values": """reshape_allowzero_reordered slice_start_out_of_bounds split_zero_size_splits tril_zero
        triu_zero constantofshape_int_shape_zero""",
    "attribute 'training_mode'": """batchnorm_example_training_mode
        batchnorm_epsilon_training_mode""",
    "zeroes values at random": """training_dropout_default training_dropout_default_mask
        training_dropout training_dropout_mask""",
    "a second output": """dropout_default_mask dropout_default_mask_ratio training_dropout_zero_ratio_mask
        maxpool_with_argmax_2d_precomputed_pads maxpool_with_argmax_2d_precomputed_strides""",
    "is of type STRING": """cast_FLOAT_to_STRING cast_STRING_to_FLOAT castlike_FLOAT_to_STRING
        castlike_STRING_to_FLOAT castlike_FLOAT_to_STRING_expanded
        castlike_STRING_to_FLOAT_expanded""",
    "not a tensor of known shape": "identity_sequence identity_opt",
}
# Cases that newer versions of onnx have besides: refused there, absent in older ones.
NEWER = {
    "'dilations'": "averagepool_2d_dilations averagepool_3d_dilations_small"
    " averagepool_3d_dilations_large_count_include_pad_is_0_ceil_mode_is_True"
    " averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_True"
    " averagepool_3d_dilations_large_count_include_pad_is_0_ceil_mode_is_False"
    " averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_False",
}


def write_case(case, folder):
    """Writes folder/model.onnx with the constants in it; gives the model, all values by name, and the outputs."""
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
    if len(graph.node) > 1:  # a whole number is a length, as Range takes it
        data = [n for n, value in values.items() if np.shape(value) or np.asarray(value).dtype.kind != "i"]
    for value in [i for i in graph.input if i.name not in data]:
        constant = np.array(values[value.name])
        graph.initializer.append(onnx.numpy_helper.from_array(constant, value.name))
        graph.input.remove(value)
    for opset in model.opset_import:  # older ones that did not change until 7
        opset.version = max(opset.version, 7)
    onnx.save(model, folder / "model.onnx")
    return model, values, outputs


class Refused(Exception):
    """The reason."""


def by_program(hwnas):
    """What runs folder/model.onnx: takes the folder, a device and the inputs, gives the outputs' values."""
    def run(folder, device, inputs):
        (folder / "in.bin").write_bytes(b"".join(array.tobytes() for array in inputs))
        command = [hwnas, "run", folder / "model.onnx", "--device", device]
        command += ["--input", folder / "in.bin", "--output", folder / "out.bin"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise Refused(done.stderr.strip().splitlines()[0] if done.stderr else f"died: {done.returncode}")
        return np.fromfile(folder / "out.bin", np.float32)
    return run


def by_library(library):
    """The same."""
    os.environ["HWNAS_LIBRARY"] = library
    sys.path.insert(0, str(ROOT / "python"))
    hwnas = importlib.import_module("hwnas")

    def run(folder, device, inputs):
        try:
            with hwnas.Network(folder / "model.onnx") as network, network.compile(device) as executable:
                return np.concatenate([made.ravel() for made in executable(*inputs)])
        except hwnas.Error as error:
            raise Refused(str(error)) from error
    return run


def run_case(case, run, device, folder):
    """None, or why it was refused."""
    model, values, outputs = write_case(case, folder)
    graph = model.graph
    try:
        got = run(folder, device, [np.array(values[i.name]).astype(np.float32) for i in graph.input])
    except Refused as why:
        return str(why)
    wanted = np.concatenate([np.asarray(o, np.float32).ravel() for o in outputs])
    assert got.shape == wanted.shape, f"{case.name}: {got.size} values, not {wanted.size}"
    both = np.isnan(got) & np.isnan(wanted)  # 0 / 0
    got[both] = wanted[both] = 0
    error = np.abs(got - wanted).max() / max(np.abs(wanted).max(), 1e-30)
    # We compute in float32 what a file keeps in 16 bits.
    limit = 1e-2 if "FLOAT16" in case.name else LIMIT
    # Functions have constants of few digits, such as 3.1415: for them the test's own tolerance.
    is_near = len(graph.node) > 1 and np.allclose(got, wanted, rtol=case.rtol, atol=case.atol)
    assert error <= limit or is_near, f"{case.name}: a relative error of {error:.2g}"
    return None


def by_case(reasons):
    return {f"test_{name}": why for why, names in reasons.items() for name in names.split()}


def collect():
    """By operator, or "functions" for those that are written as several."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    found = collections.defaultdict(list)
    for case in cases:
        types = {n.op_type for n in case.model.graph.node}
        # onnx 1.12's own values for bfloat16 are in no format that numpy knows; newer ones keep such values as protobufs.
        is_plain = "BFLOAT16" not in case.name and not any(
            isinstance(value, onnx.TensorProto) for values in case.data_sets or [] for part in values for value in part)
        if case.data_sets and is_plain and types <= set(OPERATORS):
            found[types.pop() if len(types) == 1 else "functions"].append(case)
    return found


def in_turns(found):
    """The first case of each operator, then the second of each."""
    for turn in range(max(map(len, found.values()))):
        for operator, cases in found.items():
            if turn < len(cases):
                yield operator, cases[turn]


def try_case(case, run, device, end):
    """(why it was refused, or None; whether it was tried): a failed comparison is raised."""
    if time.monotonic() > end:
        return None, False
    with tempfile.TemporaryDirectory() as folder:
        return run_case(case, run, device, pathlib.Path(folder)), True


def run_all(found, run, device, wrong, end=math.inf, jobs=1):
    """How many run, by operator."""
    required = by_case(REASONS)
    refused = required | by_case(NEWER)
    n_run = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        due = [(operator, case, pool.submit(try_case, case, run, device, end)) for operator, case in in_turns(found)]
        for operator, case, future in due:
            try:
                reason, is_tried = future.result()
            except AssertionError as error:
                wrong.append(f"{device}: {error}")
                continue
            except Exception as error:  # a case of a newer onnx, of a form that write_case does not know
                wrong.append(f"{device}: {case.name}: {error!r}")
                continue
            if not is_tried:
                continue
            expected = refused.get(case.name)
            n_run[operator] += reason is None
            if reason is None and expected:
                wrong.append(f"{device}: {case.name} is in REASONS but runs")
            elif reason is not None and (not expected or expected not in reason):
                wrong.append(f"{device}: {case.name}: {reason}")
    names = {case.name for cases in found.values() for case in cases}
    if end == math.inf:  # with a limit to the time it is not the page's version that is asked for
        wrong += [f"{name} does not exist" for name in required.keys() - names]
    return n_run


def page(found, n_run):
    """docs/operators.md."""
    devices = list(n_run)
    total = sum(map(len, found.values()))
    lines = [
        "# Operators of ONNX that are read",
        "",
        "`hwnas run` and `hwnas profile` read files of opset 7 and newer that hold these operators (up to 17 is",
        "tested). What does not run is refused with the node's name; `hwnas profile FILE --skip-unsupported` leaves it",
        "out and names it. Convolutions, matrix products, norms and pools run in oneDNN on `cpu`; what oneDNN lacks",
        "runs there in plain loops on one thread, which is right but no measure of a fast runtime.",
        "",
        f"The numbers are ONNX's own node tests (version {onnx.__version__}): how many there are, and on each device how many run and",
        "give what the test wants. The page is written by `tests/peers/onnx_node.py build/hwnas ref cpu --docs`, and a",
        "test compares it with what runs.",
        "",
        "| Operator | Tests | " + " | ".join(devices) + " |",
        "|---|---|" + "---|" * len(devices),
    ]
    for operator in [*OPERATORS, "functions"]:
        n = len(found.get(operator, []))
        name = "Several of them, as functions" if operator == "functions" else operator
        counts = [str(n_run[d][operator]) if n else "" for d in devices]
        lines.append(f"| {name} | {n or 'none'} | " + " | ".join(counts) + " |")
    sums = [str(sum(n_run[d].values())) for d in devices]
    lines.append(f"| **All {len(OPERATORS)}** | {total} | " + " | ".join(sums) + " |")
    lines += ["", "What is refused, and the words in which it is said:", ""]
    lines += [f"- {why}: {', '.join(names.split())}" for why, names in REASONS.items()]
    lines += [
        "",
        "Of ONNX Runtime's own operators (`com.microsoft`), which its optimiser writes, those are read that are several of the",
        "above: Attention (without a past), BiasGelu, EmbedLayerNormalization, FastGelu, FusedConv, FusedGemm, FusedMatMul, Gelu, MatMulNBits, QuickGelu, SkipLayerNormalization,",
        "SkipSimplifiedLayerNormalization, and SimplifiedLayerNormalization, which it has among ONNX's. `tests/cli/ort.bats`",
        "compares them with ONNX Runtime.",
        "",
        "RandomNormal, RandomUniform, their forms ...Like, and Bernoulli draw their values once, while the file is read: from then on",
        "they are constants, the same in each run, and cost no time, and a note says so. GridSample takes images, not volumes. Resize with",
        "`antialias` and recurrent layers whose lengths are given or computed are compared with ONNX Runtime by `tests/cli/ort.bats`.",
        "",
        "NaN stays NaN in Relu, Clip, Max, Min, HardSigmoid and Sign on `ref`, as in ONNX Runtime; some instructions of",
        "oneDNN's make a number of it on `cpu`. TopK takes NaN for the greatest, as PyTorch does. When a file is opened, weights with NaN or infinity and constants of whole numbers",
        "that no float holds are told with their node; a sample of such a whole number is refused.",
        "",
        "Values of whole numbers, truth values, float16 and float64 are computed as float32, which is exact for whole",
        "numbers up to 2^24. Three dimensions are computed as two at a time, LSTM, GRU and RNN from a given state, with lengths that differ or with `clip` step",
        "by step; `hwnas profile` measures the operators that it makes of them. Weights are constants, but for the",
        "kernel of a Conv, which may be an input of the network or computed.",
        "",
        "What has no values, such as the cache before the first token, goes through operators that compute value by value",
        "and through Concat, Expand, Flatten, Gather, MatMul, Pad, Reduce..., Reshape, Slice, Split, Squeeze, Tile, Transpose and Unsqueeze, until a Concat",
        "puts it beside what has some, or values follow from shapes alone: a product over a length of 0 is 0, a reduction over no values is that of no terms (a maximum minus",
        "infinity, a mean 0, as ONNX Runtime has it), a Pad is its constant. Outputs of the network without values are left out; one at least has some.",
    ]
    return "\n".join(lines) + "\n"


def compare_page(found, n_run, wrong):
    """The columns of the devices that ran, where onnx is of the page's version."""
    text = PAGE.read_text().partition(GPU)[0]
    if f"version {onnx.__version__})" not in text:
        return
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("|")]
    for device, counts in n_run.items():
        if device not in rows[0]:  # a stand-in, of which the page says nothing
            continue
        column = rows[0].index(device)
        said = {row[0]: row[column] for row in rows[2:-1] if len(row) > column}
        said["functions"] = said.pop("Several of them, as functions", None)
        for operator in found:
            if said.get(operator) != str(counts[operator]):
                wrong.append(f"docs/operators.md says {said.get(operator)} of {operator} on {device}, "
                             f"{counts[operator]} run: write it anew with --docs")


def main(hwnas, *arguments):
    arguments, given = list(arguments), {"--seconds": math.inf, "--jobs": 1, "--library": ""}
    for option in given:
        if option in arguments:
            at = arguments.index(option)
            given[option] = type(given[option])(arguments[at + 1])
            del arguments[at : at + 2]
    end = time.monotonic() + given["--seconds"]
    run = by_library(given["--library"]) if given["--library"] else by_program(hwnas)
    devices = [a for a in arguments if a != "--docs"]
    wrong = []
    found = collect()
    n_run = {device: run_all(found, run, device, wrong, end, given["--jobs"]) for device in devices}
    for device, counts in n_run.items():
        print(f"{sum(counts.values())} of {sum(map(len, found.values()))} run on {device}")
    if "--docs" in arguments:
        PAGE.write_text(page(found, n_run) + "".join(PAGE.read_text().partition(GPU)[1:]))
    elif end == math.inf:
        compare_page(found, n_run, wrong)
    for line in wrong:
        print(line)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
