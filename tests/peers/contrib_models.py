#!/usr/bin/python3
"""Models of the operators that ONNX Runtime's optimiser writes, one a file, each with an input.

    contrib_models.py FOLDER    writes NAME.onnx and NAME.in, raw float32, for ort_run.mjs
"""

import pathlib
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

RANDOM = np.random.default_rng(1)


def values(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def save(folder, name, nodes, inputs, outputs, constants=None, opset=17):
    """Inputs and outputs are shapes by name; whole numbers, 0 or 1, are called so."""
    kinds = {k: TensorProto.INT32 if k.startswith("whole") else TensorProto.FLOAT for k in [*inputs, *outputs]}
    graph = helper.make_graph(
        nodes, name, [helper.make_tensor_value_info(k, kinds[k], v) for k, v in inputs.items()],
        [helper.make_tensor_value_info(k, kinds[k], v) for k, v in outputs.items()],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in (constants or {}).items()])
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)])
    model.ir_version = 8 if opset < 20 else 10
    onnx.save(model, folder / f"{name}.onnx")
    given = [3 * values(*v) if kinds[k] == TensorProto.FLOAT else (values(*v) > -1).astype(np.float32) for k, v in inputs.items()]
    (folder / f"{name}.in").write_bytes(b"".join(v.tobytes() for v in given))


def node(kind, inputs, outputs, **attributes):
    return helper.make_node(kind, inputs.split(" "), outputs.split(" "), domain="com.microsoft", **attributes)


def main(folder):
    folder = pathlib.Path(folder)
    x, wide = {"x": [2, 5, 16]}, {"y": [2, 5, 16]}
    for name, kind, inputs, attributes in [
        ("gelu", "Gelu", "x", {}),
        ("bias_gelu", "BiasGelu", "x bias", {}),
        ("fast_gelu", "FastGelu", "x", {}),
        ("fast_gelu_bias", "FastGelu", "x bias", {}),
        ("quick_gelu", "QuickGelu", "x", {}),
        ("quick_gelu_alpha", "QuickGelu", "x", {"alpha": 1.0}),
    ]:
        save(folder, name, [node(kind, inputs, "y", **attributes)], x, wide, {"bias": values(16)} if "bias" in inputs else {})

    save(folder, "swish", [helper.make_node("Swish", ["x"], ["y"], alpha=1.5)], x, wide, opset=24)

    weights = {"gamma": values(16), "beta": values(16), "bias": values(16)}
    two = {"x": [2, 5, 16], "s": [2, 5, 16]}
    for name, inputs in [("skip_norm", "x s gamma beta"), ("skip_norm_bias", "x s gamma beta bias"),
                         ("skip_norm_scale", "x s gamma")]:
        used = {k: v for k, v in weights.items() if k in inputs.split()}
        save(folder, name, [node("SkipLayerNormalization", inputs, "y", epsilon=1e-5)], two, wide, used)
    save(folder, "skip_norm_sum",
         [node("SkipLayerNormalization", "x s gamma beta", "y   sum"), helper.make_node("Relu", ["sum"], ["z"])],
         two, {"y": [2, 5, 16], "z": [2, 5, 16], "sum": [2, 5, 16]}, {k: weights[k] for k in ("gamma", "beta")})
    save(folder, "skip_simple_norm",
         [node("SkipSimplifiedLayerNormalization", "x s gamma bias", "y   sum", epsilon=1e-6)], two,
         {"y": [2, 5, 16], "sum": [2, 5, 16]}, {k: weights[k] for k in ("gamma", "bias")})
    save(folder, "simple_norm", [helper.make_node("SimplifiedLayerNormalization", ["x", "gamma"], ["y"], epsilon=1e-6)],
         x, wide, {"gamma": weights["gamma"]})

    save(folder, "matmul_b", [node("FusedMatMul", "x w", "y", transB=1, alpha=0.125)], x, {"y": [2, 5, 7]},
         {"w": values(7, 16)})
    save(folder, "matmul_ab", [node("FusedMatMul", "x s", "y", transA=1, transB=1)], {"x": [2, 16, 5], "s": [2, 7, 16]},
         {"y": [2, 5, 7]})
    save(folder, "matmul", [node("FusedMatMul", "x s", "y", alpha=2.0)], {"x": [2, 3, 5, 16], "s": [2, 3, 16, 7]},
         {"y": [2, 3, 5, 7]})

    qkv = {"w": values(16, 48) / 4, "b": values(48)}
    for name, inputs, mask, attributes in [
        ("attention", "x w b", {}, {}),
        ("attention_causal", "x w b", {}, {"unidirectional": 1}),
        ("attention_scale", "x w b", {}, {"scale": 0.3}),
        ("attention_mask", "x w b whole_mask", {"whole_mask": [2, 5]}, {}),
        ("attention_lengths", "x w b whole_lengths", {"whole_lengths": [2]}, {}),
    ]:
        save(folder, name, [node("Attention", inputs, "y", num_heads=4, **attributes)], {**x, **mask}, wide, qkv)

    tables = {"words": values(9, 16), "places": values(7, 16), "segments": values(2, 16), "gamma": values(16), "beta": values(16)}
    save(folder, "embed", [node("EmbedLayerNormalization", "whole_ids whole_kinds words places segments gamma beta whole_mask",
                                "y whole_lengths", epsilon=1e-12),
                           node("Attention", "y w b whole_lengths", "z", num_heads=2)],
         {"whole_ids": [2, 5], "whole_kinds": [2, 5], "whole_mask": [2, 5]},
         {"y": [2, 5, 16], "whole_lengths": [2], "z": [2, 5, 16]}, {**tables, **qkv})
    save(folder, "embed_words", [node("EmbedLayerNormalization", "whole_ids  words places  gamma beta", "y whole_lengths")],
         {"whole_ids": [2, 5]}, {"y": [2, 5, 16]}, {k: v for k, v in tables.items() if k != "segments"})

    image, made = {"x": [1, 4, 9, 8]}, {"y": [1, 6, 9, 8]}
    kernel = {"w": values(6, 4, 3, 3), "b": values(6)}
    for name, attributes in [
        ("conv_relu", {"activation": "Relu"}),
        ("conv_leaky", {"activation": "LeakyRelu", "activation_params": [0.3]}),
        ("conv_clip", {"activation": "Clip", "activation_params": [-1.0, 2.0]}),
        ("conv_hard", {"activation": "HardSigmoid", "activation_params": [0.2, 0.4]}),
        ("conv_tanh", {"activation": "Tanh"}),
    ]:
        save(folder, name, [node("FusedConv", "x w b", "y", pads=[1] * 4, **attributes)], image, made, kernel)
    save(folder, "conv_sum", [node("FusedConv", "x w b z", "y", pads=[1] * 4, activation="Relu")],
         {"x": [1, 4, 9, 8], "z": [1, 6, 9, 8]}, made, kernel)
    save(folder, "gemm_relu", [node("FusedGemm", "x w b", "y", transB=1, activation="Relu")], {"x": [3, 16]},
         {"y": [3, 7]}, {"w": values(7, 16), "b": values(7)})
    save(folder, "gemm_leaky",
         [node("FusedGemm", "x w b", "y", alpha=0.5, activation="LeakyRelu", activation_alpha=0.2)], {"x": [3, 16]},
         {"y": [3, 7]}, {"w": values(16, 7), "b": values(7)})
    for p in (1, 2, 3):
        save(folder, f"global_lp_{p}", [helper.make_node("GlobalLpPool", ["x"], ["y"], p=p)], image, {"y": [1, 4, 1, 1]})


if __name__ == "__main__":
    main(*sys.argv[1:])
