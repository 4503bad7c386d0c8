#!/usr/bin/python3
"""Blocks that people build networks of, as ONNX files: blocks.py FOLDER [NAME...]

Writes NAME-BATCH.onnx and its input, NAME-BATCH.in, for batches of 1 and 2. tests/cli/blocks.bats runs
them on our devices and on ONNX Runtime.
"""

import pathlib
import sys
import zlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

BLOCKS = {}


class Builder:
    """b.Relu(x) appends a node and returns its output."""

    def __init__(self, name, batch):
        self.batch = batch
        self.random = np.random.RandomState(zlib.crc32(name.encode()))
        self.nodes, self.constants, self.inputs = [], [], []

    def __getattr__(self, op):
        def append(*inputs, outputs=1, **attributes):
            names = [f"t{len(self.nodes)}_{i}" for i in range(outputs)]
            self.nodes.append(helper.make_node(op, list(inputs), names, **attributes))
            return names[0] if outputs == 1 else names

        return append

    def given(self, values, dtype=np.float32):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.array(values, dtype), name))
        return name

    def ints(self, *values):
        return self.given(values, np.int64)

    def weight(self, *dims, scale=None):
        scale = scale or 1 / np.sqrt(max(1, np.prod(dims[1:])))
        return self.given(self.random.uniform(-scale, scale, dims))

    def near_one(self, *dims):
        return self.given(self.random.uniform(0.8, 1.2, dims))

    def input(self, *dims):
        name = f"x{len(self.inputs)}"
        self.inputs.append((name, [self.batch, *dims]))
        return name

    # What blocks share.

    def conv(self, x, n_in, n_out, kernel=1, stride=1, groups=1, bias=True, dilation=1):
        pad = dilation * (kernel // 2)
        inputs = [x, self.weight(n_out, n_in // groups, kernel, kernel)]
        inputs += [self.weight(n_out, scale=0.1)] if bias else []
        return self.Conv(*inputs, group=groups, strides=[stride] * 2, pads=[pad] * 4, dilations=[dilation] * 2)

    def bn(self, x, n):
        return self.BatchNormalization(x, self.near_one(n), self.weight(n), self.weight(n), self.near_one(n))

    def linear(self, x, n_in, n_out, bias=True):
        y = self.MatMul(x, self.weight(n_in, n_out, scale=n_in**-0.5))
        return self.Add(y, self.weight(n_out, scale=0.1)) if bias else y

    def norm(self, x, n):
        return self.LayerNormalization(x, self.near_one(n), self.weight(n, scale=0.1), axis=-1)

    def gelu(self, x):
        erf = self.Erf(self.Div(x, self.given(2**0.5)))
        return self.Mul(self.Mul(x, self.Add(erf, self.given(1))), self.given(0.5))

    def silu(self, x):
        return self.Mul(x, self.Sigmoid(x))

    def reshape(self, x, *dims):
        return self.Reshape(x, self.ints(*dims))

    def slice(self, x, begin, end, axis):
        return self.Slice(x, self.ints(begin), self.ints(end), self.ints(axis))

    def heads(self, x, length, n, width, order=(0, 2, 1, 3)):
        return self.Transpose(self.reshape(x, -1, length, n, width // n), perm=order)

    def attention(self, x, length=10, n=4, width=32, mask=None, memory=None):
        of = memory or x
        q = self.heads(self.linear(x, width, width), length, n, width)
        k = self.heads(self.linear(of, width, width), length, n, width, (0, 2, 3, 1))
        v = self.heads(self.linear(of, width, width), length, n, width)
        scores = self.Mul(self.MatMul(q, k), self.given((width / n) ** -0.5))
        scores = self.Add(scores, mask) if mask else scores
        y = self.Transpose(self.MatMul(self.Softmax(scores, axis=-1), v), perm=[0, 2, 1, 3])
        return self.linear(self.reshape(y, -1, length, width), width, width)

    def mlp(self, x, width=32):
        return self.linear(self.gelu(self.linear(x, width, 2 * width)), 2 * width, width)

    def se(self, x, n, gate="HardSigmoid"):
        s = self.Relu(self.conv(self.GlobalAveragePool(x), n, 4))
        return self.Mul(x, getattr(self, gate)(self.conv(s, 4, n)))

    def model(self, outputs):
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        graph = helper.make_graph(
            self.nodes, "block", [helper.make_tensor_value_info(n, TensorProto.FLOAT, d) for n, d in self.inputs],
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        model = onnx.shape_inference.infer_shapes(model)
        onnx.checker.check_model(model)
        return model


def block(function):
    BLOCKS[function.__name__] = function
    return function


def image(name, make, channels=16, size=9):
    BLOCKS[name] = lambda b: make(b, b.input(channels, size, size - 1))


def sequence(name, make, length=10, width=32):
    BLOCKS[name] = lambda b: make(b, b.input(length, width))


# ---- Images ----

def conv_bn_relu(b, x, n_in=16, n_out=16, **how):
    return b.Relu(b.bn(b.conv(x, n_in, n_out, bias=False, **how), n_out))


def residual(b, x):
    y = b.bn(b.conv(conv_bn_relu(b, x, kernel=3), 16, 16, 3), 16)
    return b.Relu(b.Add(y, x))


def bottleneck(b, x):
    y = b.bn(b.conv(conv_bn_relu(b, conv_bn_relu(b, x, 16, 8), 8, 8, kernel=3, stride=2), 8, 32), 32)
    return b.Relu(b.Add(y, b.bn(b.conv(x, 16, 32, stride=2), 32)))


def preactivated(b, x):
    y = b.conv(b.Relu(b.bn(x, 16)), 16, 16, 3)
    return b.Add(x, b.conv(b.Relu(b.bn(y, 16)), 16, 16, 3))


def mbconv(b, x, gate="Sigmoid"):
    y = b.silu(b.bn(b.conv(x, 16, 48), 48))
    y = b.silu(b.bn(b.conv(y, 48, 48, 3, groups=48), 48))
    return b.Add(b.bn(b.conv(b.se(y, 48, gate), 48, 16), 16), x)


def inverted(b, x):
    y = b.Clip(b.bn(b.conv(x, 16, 48), 48), b.given(0), b.given(6))
    y = b.HardSwish(b.bn(b.conv(y, 48, 48, 5, groups=48), 48))
    return b.Add(x, b.conv(y, 48, 16))


def convnext(b, x):
    y = b.Transpose(b.conv(x, 16, 16, 7, groups=16), perm=[0, 2, 3, 1])
    y = b.linear(b.gelu(b.linear(b.norm(y, 16), 16, 64)), 64, 16)
    return b.Add(x, b.Transpose(b.Mul(y, b.weight(16)), perm=[0, 3, 1, 2]))


def convnext_second(b, x):
    """With global response normalisation."""
    y = b.Transpose(b.conv(x, 16, 16, 7, groups=16), perm=[0, 2, 3, 1])
    y = b.gelu(b.linear(b.norm(y, 16), 16, 64))
    g = b.ReduceL2(y, axes=[1, 2], keepdims=1)
    g = b.Div(g, b.Add(b.ReduceMean(g, axes=[-1], keepdims=1), b.given(1e-6)))
    y = b.Add(b.Add(b.Mul(b.weight(1, 1, 1, 64), b.Mul(y, g)), b.weight(1, 1, 1, 64)), y)
    return b.Add(x, b.Transpose(b.linear(y, 64, 16), perm=[0, 3, 1, 2]))


def inception(b, x):
    pool = b.MaxPool(x, kernel_shape=[3, 3], pads=[1] * 4)
    return b.Concat(b.conv(x, 16, 5), b.Relu(b.conv(b.conv(x, 16, 4), 4, 7, 3)), b.conv(x, 16, 3, 5),
                    b.conv(pool, 16, 6), axis=1)


def dense(b, x):
    for i in range(3):
        x = b.Concat(x, b.conv(b.Relu(b.bn(x, 16 + 8 * i)), 16 + 8 * i, 8, 3), axis=1)
    return b.AveragePool(b.conv(x, 40, 20), kernel_shape=[2, 2], strides=[2, 2])


def csp(b, x):
    a, c = b.Split(x, b.ints(8, 8), axis=1, outputs=2)
    return b.conv(b.Concat(b.Add(c, b.silu(b.conv(c, 8, 8, 3))), a, axis=1), 16, 16)


def focus(b, x):
    parts = []
    for i, j in ((0, 0), (1, 0), (0, 1), (1, 1)):
        parts.append(b.Slice(x, b.ints(i, j), b.ints(8, 8), b.ints(2, 3), b.ints(2, 2)))
    return b.silu(b.conv(b.Concat(*parts, axis=1), 64, 12, 3))


def channel_shuffle(b, x):
    a, c = b.Split(x, b.ints(8, 8), axis=1, outputs=2)
    y = b.Concat(a, conv_bn_relu(b, b.conv(c, 8, 8, 3, groups=8), 8, 8), axis=1)
    return b.reshape(b.Transpose(b.reshape(y, -1, 2, 8, 9, 8), perm=[0, 2, 1, 3, 4]), -1, 16, 9, 8)


def pixel_shuffle(b, x):
    return b.conv(b.DepthToSpace(b.conv(x, 16, 16, 3), blocksize=2, mode="CRD"), 4, 3, 3)


def spatial_attention(b, x):
    maps = b.Concat(b.ReduceMean(x, axes=[1], keepdims=1), b.ReduceMax(x, axes=[1], keepdims=1), axis=1)
    return b.Mul(x, b.Sigmoid(b.conv(maps, 2, 1, 7)))


def both_attentions(b, x):
    return spatial_attention(b, b.Mul(x, b.Sigmoid(b.Add(
        b.conv(b.GlobalAveragePool(x), 16, 16), b.conv(b.GlobalMaxPool(x), 16, 16)))))


def eca(b, x):
    s = b.reshape(b.GlobalAveragePool(x), -1, 1, 1, 16)
    s = b.Conv(s, b.weight(1, 1, 1, 3), pads=[0, 1, 0, 1])
    return b.Mul(x, b.Sigmoid(b.reshape(s, -1, 16, 1, 1)))


def gem(b, x):
    y = b.Pow(b.Clip(b.conv(x, 16, 16), b.given(1e-6)), b.given(3))
    y = b.Pow(b.GlobalAveragePool(y), b.given(1 / 3))
    return b.linear(b.Flatten(y), 16, 10)


def aspp(b, x):
    pooled = b.Resize(b.conv(b.GlobalAveragePool(x), 16, 8), "", b.given([1, 1, 9, 8]), mode="nearest",
                      coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    return b.conv(b.Concat(b.conv(x, 16, 8), b.conv(x, 16, 8, 3, dilation=2), pooled, axis=1), 24, 16)


def pyramid(b, x):
    low = b.conv(b.MaxPool(b.conv(x, 16, 16), kernel_shape=[2, 2], strides=[2, 2]), 16, 16, 3)
    up = b.Resize(low, "", b.given([1, 1, 2, 2]), mode="nearest", coordinate_transformation_mode="asymmetric",
                  nearest_mode="floor")
    return b.conv(b.Add(up, b.slice(b.conv(x, 16, 16), 0, 8, 2)), 16, 16, 3), low


def unet(b, x):
    x = b.slice(x, 0, 8, 2)
    down = b.conv(x, 16, 24, 3, stride=2)
    up = b.ConvTranspose(down, b.weight(24, 16, 2, 2), strides=[2, 2])
    return b.conv(b.Concat(up, x, axis=1), 32, 16, 3)


def deconvs(b, x):
    """Padded, dilated, in groups, with rows beyond, and of a signal."""
    y = b.ConvTranspose(x, b.weight(16, 8, 3, 3), b.weight(8), strides=[2, 2], pads=[1] * 4, output_padding=[1, 1])
    y = b.silu(b.bn(y, 8))
    y = b.Relu(b.Add(y, b.ConvTranspose(x, b.weight(16, 4, 2, 2), strides=[2, 2], group=2)))
    y = b.LeakyRelu(b.ConvTranspose(y, b.weight(8, 6, 3, 3), dilations=[2, 2], pads=[2] * 4), alpha=0.1)
    s = b.ConvTranspose(b.reshape(x, -1, 16, 72), b.weight(16, 3, 4), b.weight(3), strides=[2], pads=[1, 1])
    return y, b.Tanh(s)


def layer_norm_of_channels(b, x):
    mean = b.ReduceMean(x, axes=[1], keepdims=1)
    centred = b.Sub(x, mean)
    variance = b.ReduceMean(b.Mul(centred, centred), axes=[1], keepdims=1)
    y = b.Div(centred, b.Sqrt(b.Add(variance, b.given(1e-6))))
    return b.conv(b.Add(b.Mul(y, b.near_one(16, 1, 1)), b.weight(16, 1, 1)), 16, 8)


def layer_scale(b, x):
    return b.Add(x, b.Mul(b.conv(x, 16, 16, 3), b.weight(16, 1, 1)))


def mixer_of_places(b, x):
    y = b.Transpose(b.reshape(x, -1, 16, 72), perm=[0, 2, 1])
    y = b.Add(y, b.Transpose(b.linear(b.gelu(b.linear(b.Transpose(b.norm(y, 16), perm=[0, 2, 1]), 72, 40)), 40, 72),
                             perm=[0, 2, 1]))
    return b.reshape(b.Transpose(y, perm=[0, 2, 1]), -1, 16, 9, 8)


def non_local(b, x):
    q, k, v = (b.reshape(b.conv(x, 16, 8), -1, 8, 72) for _ in range(3))
    a = b.Softmax(b.MatMul(b.Transpose(q, perm=[0, 2, 1]), k), axis=-1)
    y = b.reshape(b.MatMul(v, b.Transpose(a, perm=[0, 2, 1])), -1, 8, 9, 8)
    return b.Add(x, b.conv(y, 8, 16))


def windows(b, x, bias=(4, 16, 16)):
    x = b.slice(x, 0, 8, 2)
    y = b.Transpose(b.reshape(b.Transpose(x, perm=[0, 2, 3, 1]), -1, 2, 4, 2, 4, 16), perm=[0, 1, 3, 2, 4, 5])
    y = b.reshape(y, -1, 16, 16)
    y = b.Add(y, b.norm(b.attention(y, 16, 4, 16, b.weight(*bias)), 16))
    y = b.Transpose(b.reshape(y, -1, 2, 2, 4, 4, 16), perm=[0, 1, 3, 2, 4, 5])
    return b.Transpose(b.reshape(y, -1, 8, 8, 16), perm=[0, 3, 1, 2])


def heads_of(b, x, cosine):
    """Queries and keys, perhaps as long as 1."""
    if not cosine:
        return b.Mul(x, b.given(0.5))
    length = b.Clip(b.ReduceL2(x, axes=[-1], keepdims=1), b.given(1e-12))
    return b.Div(x, b.Expand(length, b.Shape(x)))


def shifted_windows(b, x, cosine=False):
    """A bias for each head, and a mask for each of 4 windows."""
    y = b.reshape(b.Transpose(b.slice(x, 0, 8, 2), perm=[0, 2, 3, 1]), -1, 16, 16)
    q, k, v = (b.heads(b.linear(y, 16, 16), 16, 4, 16) for _ in range(3))
    q, k = heads_of(b, q, cosine), heads_of(b, k, cosine)
    a = b.MatMul(q, b.Transpose(k, perm=[0, 1, 3, 2]))
    a = b.Mul(a, b.near_one(4, 1, 1)) if cosine else a
    a = b.reshape(b.Add(a, b.weight(1, 4, 16, 16)), -1, 4, 4, 16, 16)
    mask = np.where(b.random.uniform(size=(1, 4, 1, 16, 16)) < 0.3, -100, 0)
    a = b.Softmax(b.reshape(b.Add(a, b.given(mask)), -1, 4, 16, 16), axis=-1)
    y = b.reshape(b.Transpose(b.MatMul(a, v), perm=[0, 2, 1, 3]), -1, 16, 16)
    return b.Transpose(b.reshape(b.linear(y, 16, 16), -1, 8, 8, 16), perm=[0, 3, 1, 2])


def patches(b, x):
    y = b.Conv(x, b.weight(32, 16, 3, 2), strides=[3, 2])
    y = b.Transpose(b.reshape(y, -1, 32, 12), perm=[0, 2, 1])
    y = b.Concat(b.Expand(b.weight(1, 1, 32), b.ints(b.batch, 1, 32)), y, axis=1)
    y = b.Add(y, b.weight(1, 13, 32))
    y = b.Add(y, b.attention(b.norm(y, 32), 13))
    return b.linear(b.Gather(b.norm(y, 32), b.given(0, np.int64), axis=1), 32, 5)


def head(b, x):
    return b.Gemm(b.Flatten(b.slice(b.conv(x, 16, 8, 3), 2, 6, 1)), b.weight(10, 4 * 72), b.weight(10), transB=1)


def slice_to(reader):
    return lambda b, x: reader(b, b.slice(b.conv(x, 16, 8, 3), 1, 7, 1))


for name, make in {
    "residual": residual, "bottleneck": bottleneck, "preactivated": preactivated, "mbconv": mbconv,
    "mbconv_hard": lambda b, x: mbconv(b, x, "HardSigmoid"), "inverted": inverted, "convnext": convnext,
    "convnext_second": convnext_second, "inception": inception, "dense": dense, "csp": csp, "focus": focus,
    "channel_shuffle": channel_shuffle, "pixel_shuffle": pixel_shuffle, "spatial_attention": spatial_attention,
    "both_attentions": both_attentions, "eca": eca, "gem": gem, "aspp": aspp, "pyramid": pyramid, "unet": unet,
    "deconvs": deconvs,
    "layer_norm_of_channels": layer_norm_of_channels, "layer_scale": layer_scale,
    "mixer_of_places": mixer_of_places, "non_local": non_local, "windows": windows,
    "shifted_windows": shifted_windows, "cosine_windows": lambda b, x: shifted_windows(b, x, True),
    "windows_of_rank_4": lambda b, x: windows(b, x, (1, 4, 16, 16)), "patches": patches, "head": head,
    "depthwise_separable": lambda b, x: conv_bn_relu(b, conv_bn_relu(b, x, kernel=3, groups=16), 16, 24),
    "squeeze_excite": lambda b, x: b.se(b.conv(x, 16, 16), 16),
    "conv_and_map": lambda b, x: b.Relu(b.Add(b.conv(x, 16, 16), b.weight(16, 9, 8))),
    "slice_to_mean": slice_to(lambda b, x: b.ReduceMean(x, axes=[2, 3], keepdims=0)),
    "slice_to_transpose": slice_to(lambda b, x: b.Transpose(x, perm=[0, 2, 3, 1])),
    "slice_to_softmax": slice_to(lambda b, x: b.Softmax(x, axis=-1)),
    "slice_to_output": slice_to(lambda b, x: x),
}.items():
    image(name, make)

# ---- Sequences ----


def rms_norm(b, x, width=32):
    mean = b.ReduceMean(b.Pow(x, b.given(2)), axes=[-1], keepdims=1)
    return b.Mul(b.Mul(x, b.Reciprocal(b.Sqrt(b.Add(mean, b.given(1e-5))))), b.near_one(width))


def swiglu(b, x):
    return b.linear(b.Mul(b.silu(b.linear(x, 32, 48, False)), b.linear(x, 32, 48, False)), 48, 32, False)


def glu(b, x):
    a, c = b.Split(b.linear(x, 32, 64), b.ints(32, 32), axis=-1, outputs=2)
    return b.Add(x, b.Mul(a, b.Sigmoid(c)))


def rotated(b, x):
    half = b.Concat(b.Neg(b.slice(x, 4, 8, 3)), b.slice(x, 0, 4, 3), axis=-1)
    angles = np.outer(np.arange(10), 10000.0 ** -(np.arange(8) % 4 / 4))
    return b.Add(b.Mul(x, b.given(np.cos(angles))), b.Mul(half, b.given(np.sin(angles))))


def rotary(b, x):
    q, k, v = (b.heads(b.linear(x, 32, 32, False), 10, 4, 32) for _ in range(3))
    scores = b.MatMul(rotated(b, q), b.Transpose(rotated(b, k), perm=[0, 1, 3, 2]))
    scores = b.Add(b.Div(scores, b.given(8**0.5)), b.given(np.triu(np.full((10, 10), -1e4), 1)))
    y = b.Transpose(b.MatMul(b.Softmax(scores, axis=-1), v), perm=[0, 2, 1, 3])
    return b.linear(b.reshape(y, -1, 10, 32), 32, 32, False)


def llama(b, x):
    y = b.Add(x, rotary(b, rms_norm(b, x)))
    return b.Add(y, swiglu(b, rms_norm(b, y)))


def pre_norm(b, x):
    x = b.Add(x, b.attention(b.norm(x, 32)))
    return b.Add(x, b.mlp(b.norm(x, 32)))


def post_norm(b, x):
    x = b.norm(b.Add(x, b.attention(x)), 32)
    return b.norm(b.Add(x, b.mlp(x)), 32)


def swin_second(b, x):
    x = b.Add(x, b.norm(b.attention(x), 32))
    return b.Add(x, b.norm(b.mlp(x), 32))


def sandwich(b, x):
    x = b.Add(x, b.norm(b.attention(b.norm(x, 32)), 32))
    return b.Add(x, b.norm(b.mlp(b.norm(x, 32)), 32))


def parallel(b, x):
    y = b.norm(x, 32)
    return b.Add(b.Add(b.attention(y), b.mlp(y)), x)


def two_norms(b, x):
    return b.Add(b.norm(b.attention(x), 32), b.norm(b.mlp(x), 32))


def scaled_layers(b, x):
    x = b.Add(x, b.Mul(b.weight(32), b.attention(b.norm(x, 32))))
    return b.Add(x, b.Mul(b.weight(32), b.mlp(b.norm(x, 32))))


def masked(*dims):
    return lambda b, x: b.Add(x, b.attention(x, mask=b.weight(*dims, scale=1)))


def masked_by_input(*dims):
    return lambda b, x: b.attention(x, mask=b.input(*dims))


def cross(b, x):
    return b.Add(x, b.attention(b.norm(x, 32), memory=b.norm(b.input(10, 32), 32)))


def grouped(b, x):
    """Two keys for four queries."""
    q = b.heads(b.linear(x, 32, 32), 10, 4, 32)
    k, v = (b.heads(b.linear(x, 32, 16), 10, 2, 16) for _ in range(2))
    k, v = (b.reshape(b.Expand(b.Unsqueeze(y, b.ints(2)), b.ints(b.batch, 2, 2, 10, 8)), -1, 4, 10, 8)
            for y in (k, v))
    a = b.Softmax(b.MatMul(q, b.Transpose(k, perm=[0, 1, 3, 2])), axis=-1)
    return b.linear(b.reshape(b.Transpose(b.MatMul(a, v), perm=[0, 2, 1, 3]), -1, 10, 32), 32, 32)


def lstm(b, x):
    x = b.Transpose(b.linear(x, 32, 16), perm=[1, 0, 2])
    y = b.LSTM(x, b.weight(1, 48, 16), b.weight(1, 48, 12), b.weight(1, 96, scale=0.1), hidden_size=12, outputs=3)[0]
    y = b.Transpose(b.Squeeze(y, b.ints(1)), perm=[1, 0, 2])
    return b.linear(b.norm(b.Tanh(y), 12), 12, 5)


def gru(b, x):
    x = b.Transpose(x, perm=[1, 0, 2])
    y = b.GRU(x, b.weight(1, 36, 32), b.weight(1, 36, 12), b.weight(1, 72, scale=0.1), hidden_size=12,
              linear_before_reset=1, outputs=2)[0]
    return b.linear(b.Gather(b.Squeeze(y, b.ints(1)), b.given(-1, np.int64), axis=0), 12, 5)


def biased_twice(b, x):
    y = b.Gemm(b.reshape(x, -1, 32), b.weight(12, 32), b.weight(12), transB=1)
    return b.Add(y, b.weight(12))


def conformer(b, x):
    y = b.Transpose(glu(b, b.norm(x, 32)), perm=[0, 2, 1])
    y = b.Conv(b.Unsqueeze(y, b.ints(2)), b.weight(32, 1, 1, 5), pads=[0, 2, 0, 2], group=32)
    y = b.silu(b.bn(y, 32))
    return b.Add(x, b.linear(b.Transpose(b.Squeeze(y, b.ints(2)), perm=[0, 2, 1]), 32, 32))


def mixer(b, x):
    y = b.Transpose(b.norm(x, 32), perm=[0, 2, 1])
    x = b.Add(x, b.Transpose(b.linear(b.gelu(b.linear(y, 10, 20)), 20, 10), perm=[0, 2, 1]))
    return b.Add(x, b.mlp(b.norm(x, 32)))


def pooled(b, x):
    return b.Tanh(b.linear(b.ReduceMean(post_norm(b, x), axes=[1], keepdims=0), 32, 8))


def old_norm(b, x, spell, affine=True):
    """LayerNorm as exporters wrote it before opset 17."""
    centred = b.Sub(x, b.ReduceMean(x, axes=[-1], keepdims=1))
    square = b.Pow(centred, b.given(2)) if spell == "torch" else b.Mul(centred, centred)
    total = b.Add(b.ReduceMean(square, axes=[-1], keepdims=1), b.given(1e-5))
    if spell == "power":
        y = b.Mul(centred, b.Pow(total, b.given(-0.5)))
    elif spell == "reciprocal":
        y = b.Mul(b.Reciprocal(b.Sqrt(total)), centred)
    else:
        y = b.Div(centred, b.Sqrt(total))
    return b.Add(b.Mul(y, b.near_one(32)), b.weight(32)) if affine else y


def tensorflow_norm(b, x):
    mean = b.ReduceMean(x, axes=[2], keepdims=1)
    centred = b.Sub(x, mean)
    variance = b.ReduceMean(b.Mul(centred, centred), axes=[2], keepdims=1)
    factor = b.Mul(b.Reciprocal(b.Sqrt(b.Add(variance, b.given(1e-3)))), b.near_one(32))
    return b.Add(b.Mul(x, factor), b.Sub(b.weight(32), b.Mul(mean, factor)))


def old_functions(b, x):
    x = b.linear(x, 32, 32)
    x = b.Mul(x, b.Div(b.Clip(b.Add(x, b.given(3)), b.given(0), b.given(6)), b.given(6)))
    x = b.Mul(x, b.Tanh(b.Softplus(b.linear(x, 32, 32))))
    x = b.linear(x, 32, 32)
    x = b.Mul(x, b.Tanh(b.Log(b.Add(b.Exp(x), b.given(1)))))
    x = b.linear(x, 32, 32)
    cube = b.Mul(b.given(0.044715), b.Pow(x, b.given(3)))
    gate = b.Add(b.given(1), b.Tanh(b.Mul(b.given(0.7978845608), b.Add(x, cube))))
    x = b.linear(b.Mul(b.Mul(b.given(0.5), x), gate), 32, 32)
    less = b.Exp(b.Sub(x, b.ReduceMax(x, axes=[1], keepdims=1)))
    return b.Div(less, b.ReduceSum(less, b.ints(1), keepdims=1))


def group_norm(b, x):
    """As PyTorch writes it."""
    y = b.InstanceNormalization(b.reshape(x, b.batch, 4, 288), b.given([1] * 4), b.given([0] * 4))
    y = b.reshape(y, b.batch, 16, 9, 8)
    return b.Add(b.Mul(y, b.near_one(16, 1, 1)), b.weight(16, 1, 1))


# Where an x86 processor has no VNNI, ONNX Runtime adds two products in 16 bits, which 2 x 255 x 127 exceeds.
with open("/proc/cpuinfo") as file:
    flags = file.read()
MOST_OF_BYTES = 127 if "vnni" in flags or "flags" not in flags else 63


def quantized(b, x):
    """Bytes, their scale and zero point."""
    return b.DynamicQuantizeLinear(x, outputs=3)


def dynamic_linear(b, x, n_in, n_out, per_column=False, zero=0):
    """As onnxruntime.quantization.quantize_dynamic writes it; x: what quantized() gives."""
    n = n_out if per_column else ()
    whole = b.random.randint(-MOST_OF_BYTES, MOST_OF_BYTES + 1, (n_in, n_out))
    y = b.MatMulInteger(x[0], b.given(whole, np.int8), x[2], b.given(np.full(n, zero), np.int8))
    scale = b.Mul(x[1], b.given(b.random.uniform(0.001, 0.002, n)))
    return b.Add(b.Mul(b.Cast(y, to=TensorProto.FLOAT), scale), b.weight(n_out, scale=0.1))


def dynamic_layer(b, x, per_column=False, zero=0):
    """Two products of the same bytes; functions, sums and norms behind them."""
    given = quantized(b, x)
    y = b.gelu(dynamic_linear(b, given, 32, 48, per_column, zero))
    z = b.Sigmoid(dynamic_linear(b, given, 32, 48, per_column, zero))
    y = dynamic_linear(b, quantized(b, b.Mul(y, z)), 48, 32, per_column, zero)
    y = b.norm(b.Add(y, x), 32)
    return b.Relu(dynamic_linear(b, quantized(b, y), 32, 32, per_column, zero)), b.attention(y)


def gated_attention(b, x):
    return b.Mul(b.attention(x), b.Sigmoid(b.linear(x, 32, 32)))


for name, make in {
    "rms_norm": rms_norm, "swiglu": swiglu, "glu": glu, "rotary": rotary, "llama": llama, "pre_norm": pre_norm,
    "post_norm": post_norm, "swin_second": swin_second, "sandwich": sandwich, "parallel": parallel,
    "two_norms": two_norms, "scaled_layers": scaled_layers, "mask_of_rank_1": masked(10),
    "mask_of_rank_2": masked(10, 10), "mask_of_rank_3": masked(4, 10, 10), "mask_of_rank_3_heads": masked(4, 1, 10),
    "mask_of_rank_4": masked(1, 4, 10, 10), "mask_by_input": masked_by_input(1, 1, 10),
    "mask_by_input_of_heads": masked_by_input(4, 10, 10), "cross": cross, "grouped": grouped, "lstm": lstm,
    "gru": gru, "biased_twice": biased_twice, "conformer": conformer, "mixer": mixer, "pooled": pooled,
    "gated_attention": gated_attention, "dynamic_layer": dynamic_layer,
    "dynamic_columns": lambda b, x: dynamic_layer(b, x, True), "dynamic_shifted": lambda b, x: dynamic_layer(b, x, zero=3),
    "tensorflow_norm": tensorflow_norm, "old_functions": old_functions,
    "old_norm": lambda b, x: b.Add(x, old_norm(b, x, "torch")),
    "old_norm_reciprocal": lambda b, x: old_norm(b, b.Add(x, old_norm(b, x, "reciprocal")), "power"),
    "old_norm_shared": lambda b, x: b.Mul(old_norm(b, x, "torch", False), b.weight(10, 32)),
    "normed_linear": lambda b, x: b.Add(x, b.norm(b.linear(x, 32, 32), 32)),
    "positions": lambda b, x: pre_norm(b, b.Add(x, b.weight(10, 32))),
}.items():
    sequence(name, make)


def dynamic_and_image(b, x):
    """A sum of a dynamic product and a convolution, one of whose readers wants rows and one channels last."""
    a = b.conv(x, 16, 16, 3)
    s = b.Add(dynamic_linear(b, quantized(b, x), 8, 8), a)
    return b.conv(s, 16, 16, 3), b.reshape(a, b.batch, 16 * 9 * 8)


def dynamic_conv(b, x, n_in, n_out, kernel, per_channel=False, zero=0, unsigned=False, **attrs):
    """As onnxruntime.quantization.quantize_dynamic writes it; x: what quantized() gives."""
    low, kind = (0, np.uint8) if unsigned else (-127, np.int8)
    whole = b.random.randint(low, low + 255, (n_out, n_in // attrs.get("group", 1), kernel, kernel))
    y = b.ConvInteger(x[0], b.given(whole, kind), x[2], b.given(zero, kind), kernel_shape=[kernel] * 2, **attrs)
    scale = b.Mul(x[1], b.given(b.random.uniform(0.0005, 0.001, (1, n_out, 1, 1) if per_channel else ())))
    return b.Add(b.Mul(b.Cast(y, to=TensorProto.FLOAT), scale), b.weight(1, n_out, 1, 1, scale=0.1))


def dynamic_convs(b, x, per_channel=False, **zeros):
    """Padded with the zero point; two of the same bytes; a sum; strided, dilated, depthwise, in groups; floats behind."""
    def conv(x, *sizes, **attrs):
        return dynamic_conv(b, x, *sizes, per_channel=per_channel, **zeros, **attrs)
    given = quantized(b, b.Relu(conv(quantized(b, x), 16, 24, 3, pads=[1] * 4)))
    y = b.Relu(b.Add(conv(given, 24, 16, 1), x))
    z = b.Sigmoid(conv(given, 24, 16, 5, pads=[4, 4, 4, 4], dilations=[2, 2]))
    given = quantized(b, b.Mul(y, z))
    y = b.Relu(b.Add(conv(given, 16, 16, 3, pads=[1, 0, 0, 1], strides=[2, 2], group=16), b.weight(16, 1, 1)))
    return conv(quantized(b, y), 16, 8, 3, pads=[1] * 4, group=4), b.conv(y, 16, 8, 3)


def blank_windows(b, x):
    """Some windows lie over padding alone; behind another convolution of bytes, whose memory they had."""
    def static(x, zero, n, kernel, **attrs):
        def scale(): return b.given(0.05)
        whole = b.random.randint(-127, 128, (n, n // attrs.get("group", 1), *kernel))
        x = b.DequantizeLinear(b.QuantizeLinear(x, scale(), b.given(zero, np.uint8)), scale(), b.given(zero, np.uint8))
        return b.Conv(x, b.DequantizeLinear(b.given(whole, np.int8), scale(), b.given(0, np.int8)), kernel_shape=kernel, **attrs)
    first = dynamic_conv(b, quantized(b, x), 16, 32, 3, pads=[1] * 4)
    y = [dynamic_conv(b, quantized(b, first), 32, 32, 1, pads=[0, 0, 1, 0], group=32)]
    y += [dynamic_conv(b, quantized(b, first), 32, 32, 1, pads=[1] * 4, group=groups) for groups in (1, 2)]
    y += [dynamic_conv(b, quantized(b, first), 32, 32, 3, pads=[3, 0, 4, 3])]
    y += [static(b.Tanh(first), 20, 32, [1, 3], pads=[1, 0, 1, 0], group=32), static(b.Tanh(first), 20, 32, [1, 1], pads=[0, 0, 1, 0])]
    return y


def nearest(b, x):
    """Places of values that cutting off makes equal, and what stands there in another tensor."""
    _, far = b.TopK(x, b.ints(3), outputs=2, axis=3)
    _, near = b.TopK(x, b.ints(3), outputs=2, axis=3, largest=0)
    few = b.Round(b.Mul(x, b.given(2)))  # of equal values the first
    shape = b.ints(0, 0, -1)
    return [b.GatherElements(b.Tanh(x), far, axis=3), b.GatherElements(x, near, axis=3), *[
        b.Cast(b.TopK(b.Reshape(few, shape), b.ints(k), outputs=2, axis=axis, largest=largest)[1], to=TensorProto.FLOAT)
        for k, axis, largest in ((40, 2, 1), (5, 2, 0), (3, 1, 1))]]


image("blank_windows", blank_windows)
image("dynamic_convs", dynamic_convs)
image("dynamic_convs_by_channel", lambda b, x: dynamic_convs(b, x, True))
image("dynamic_convs_of_unsigned", lambda b, x: dynamic_convs(b, x, zero=128, unsigned=True))
image("dynamic_convs_shifted", lambda b, x: dynamic_convs(b, x, zero=3))
image("dynamic_and_image", dynamic_and_image)
image("group_norm", group_norm)
image("nearest", nearest)


def main(folder, *names):
    for name in names or BLOCKS:
        for batch in 1, 2:
            builder = Builder(name, batch)
            model = builder.model(BLOCKS[name](builder))
            base = pathlib.Path(folder) / f"{name}-{batch}"
            onnx.save(model, f"{base}.onnx")
            values = [builder.random.uniform(-1, 1, dims).ravel() for _, dims in builder.inputs]
            np.concatenate(values).astype(np.float32).tofile(f"{base}.in")


if __name__ == "__main__":
    main(*sys.argv[1:])
