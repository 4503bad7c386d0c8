"""Networks that are slices of one set of weights. `hwnas export SPACE --supernet net.py` writes this text at the head of
the module that it makes (docs/training.md); it needs nothing but PyTorch."""
import math

import torch
from torch import nn
from torch.nn import functional as F


def divide(a, b):
    """A quotient, which is whole where it can be."""
    return a // b if isinstance(a, int) and isinstance(b, int) and a % b == 0 else a / b


def square_root(value):
    found = math.sqrt(value)
    return int(found) if isinstance(value, int) and found == int(found) else found


def make_divisible(value, divisor):
    """The multiple of divisor nearest to value, at most 10 % below it."""
    rounded = max(divisor, int(value + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * value else rounded


def fact(x, name):
    """Of a tensor: in, height, width or length, as spaces call them."""
    is_sequence = x.dim() == 3
    return x.shape[{"in": 2 if is_sequence else 1, "height": 2, "width": 3, "length": 1}[name]]


def pair(value):
    """One number for both directions, or two."""
    values = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    return values if len(values) == 2 else values * 2


def sides(pad):
    """Top, left, bottom, right."""
    if isinstance(pad, (list, tuple)) and len(pad) == 4:
        return tuple(pad)
    return pair(pad) * 2


def padded(x, pad, value=0.0):
    top, left, bottom, right = sides(pad)
    return F.pad(x, (left, right, top, bottom), value=value)


class SharedNet(nn.Module):
    """All networks of a space. A call takes the choices of one, {name: value or list of values}; without any it is the
    largest. Channels are the first of those that there are, kernels the middle. BatchNorm normalises by the batch, so
    a network that is to be used on its own has its statistics found on samples."""

    def __init__(self, network, choices, largest, shapes, settled, allowed):
        super().__init__()
        self.network, self.choices, self.largest_choices, self.settled, self.allowed = network, choices, largest, settled, allowed
        for name, shape in shapes.items():
            if name.endswith("/scale"):
                value = torch.ones(shape)
            elif name.endswith("/bias") and name[:-len("bias")] + "scale" in shapes:
                value = torch.zeros(shape)
            else:
                fan_in = math.prod((shapes.get(name[:-len("bias")] + "weight") if name.endswith("/bias") else shape)[1:])
                value = torch.empty(shape).uniform_(-fan_in ** -0.5, fan_in ** -0.5)
            self.register_parameter(name, nn.Parameter(value))

    def forward(self, x, choices=None):
        self.input, self.output = x, None
        x = self.network(self, x, "", self.largest_choices if choices is None else choices)
        return x if self.output is None else self.output

    # ---- Which network ----

    def draw(self, pick):
        """Choices where pick(values, order) gives the place of each; None: none were found that the space allows."""
        for _ in range(100):
            found = {}
            for name, (is_list, positions) in self.choices.items():
                values = [values[pick(values, order)] for values, order, _ in positions]
                found[name] = values if is_list else values[0]
            found = self.settled(found)
            if self.allowed(found):
                return found
        return None

    def random(self):
        """Drawn by PyTorch's generator."""
        return self.draw(lambda values, order: int(torch.randint(len(values), ()))) or self.largest_choices

    def largest(self):
        """The greatest values; those that are alternatives at random."""
        return self.draw(lambda values, order: order[-1] if order else int(torch.randint(len(values), ()))) or self.largest_choices

    def smallest(self):
        return self.draw(lambda values, order: order[0] if order else int(torch.randint(len(values), ()))) or self.random()

    def code_parts(self, code):
        """The text of each choice; settings of a measurement, which a study's codes have, are no choices."""
        if "=" not in code:
            return {next(iter(self.choices)): code} if self.choices else {}
        parts = {}
        for part in code.split(","):
            name, equals, text = part.partition("=")
            if not equals or (name not in self.choices and name not in ("batch", "threads", "dtype")):
                raise ValueError(f"'{name}' in the code '{code}' is no choice of this network, which has {', '.join(self.choices)}")
            parts[name] = text
        return parts

    def read_code(self, code):
        """The choices of a network by its code, as hwnas prints it."""
        found = {}
        parts = self.code_parts(code)
        for name, (is_list, positions) in self.choices.items():
            text, labels = parts.get(name, ""), [labels for _, _, labels in positions]
            if any(len(label) > 1 for some in labels for label in some):
                words = text.split(":" if ":" in text or any("." in label for some in labels for label in some) else ".") if text else []
            else:
                words = list(text)
            if len(words) > len(positions):
                raise ValueError(f"the code '{code}' has {len(words)} values for '{name}', which has {len(positions)}")
            for word, (_, _, labels) in zip(words, positions):
                if word not in labels:
                    raise ValueError(f"'{word}' in the code '{code}' is no value of '{name}', which may be {', '.join(labels)}")
            values = [values[labels.index(words[i])] if i < len(words) else values[0] for i, (values, _, labels) in enumerate(positions)]
            found[name] = values if is_list else values[0]
        return self.settled(found)

    # ---- Layers ----

    def take(self, name, *sizes):
        weight = self._parameters[name]
        for dim, size in enumerate(sizes):
            if size > weight.shape[dim]:
                raise ValueError(f"the network needs {size} of dimension {dim} of {name}, which has {weight.shape[dim]}")
            weight = weight.narrow(dim, (weight.shape[dim] - size) // 2 if dim > 1 else 0, size)
        return weight

    def conv(self, x, at, out, kernel=1, stride=1, pad=0, dilation=1, groups=1, bias=1):
        weight = self.take(at + "/weight", out, x.shape[1] // groups, *pair(kernel))
        bias = self.take(at + "/bias", out) if bias else None
        top, left, bottom, right = sides(pad)
        if (top, left) != (bottom, right):
            x, top, left = padded(x, pad), 0, 0
        return F.conv2d(x, weight, bias, pair(stride), (top, left), pair(dilation), groups)

    def linear(self, x, at, out, bias=1):
        return F.linear(x, self.take(at + "/weight", out, x.shape[-1]), self.take(at + "/bias", out) if bias else None)

    def batch_norm(self, x, at, epsilon=1e-5, affine=1):
        n = x.shape[1]
        weights = (self.take(at + "/scale", n), self.take(at + "/bias", n)) if affine else (None, None)
        statistics = getattr(self, "statistics", None)
        if statistics is None:
            return F.batch_norm(x, None, None, *weights, training=True, eps=epsilon)
        if at not in statistics:  # as with the statistics of this batch
            dims = [dim for dim in range(x.dim()) if dim != 1]
            statistics[at] = x.mean(dims), x.var(dims, unbiased=False)
        return F.batch_norm(x, *statistics[at], *weights, training=False, eps=epsilon)

    def max_pool(self, x, at, kernel, stride=1, pad=0):
        return F.max_pool2d(padded(x, pad, -math.inf), pair(kernel), pair(stride))

    def avg_pool(self, x, at, kernel, stride=1, pad=0, count_pad=0):
        means = F.avg_pool2d(padded(x, pad), pair(kernel), pair(stride))
        if count_pad or not any(sides(pad)):
            return means
        return means / F.avg_pool2d(padded(torch.ones_like(x[:1, :1]), pad), pair(kernel), pair(stride))

    def global_avg_pool(self, x, at):
        return x.mean((2, 3), keepdim=True)

    def flatten(self, x, at, axis=1):
        return x.flatten(axis)

    def dropout(self, x, at, rate=0.5):
        return F.dropout(x, rate, self.training)

    def add(self, branches, at):
        return sum(branches[1:], branches[0])

    def mul(self, branches, at):
        return math.prod(branches[1:], start=branches[0])

    def concat(self, branches, at, axis=1):
        return torch.cat(branches, axis)

    def zero(self, x, at, stride=1):
        return x[:, :, ::stride, ::stride] * 0 if stride > 1 else x * 0

    def relu(self, x, at):
        return F.relu(x)

    def relu6(self, x, at):
        return F.relu6(x)

    def hard_swish(self, x, at):
        return F.hardswish(x)

    def hard_sigmoid(self, x, at, alpha=1 / 6, beta=0.5):
        return (alpha * x + beta).clamp(0, 1)

    def leaky_relu(self, x, at, alpha=0.01):
        return F.leaky_relu(x, alpha)

    def silu(self, x, at):
        return F.silu(x)

    def gelu(self, x, at, tanh=0):
        return F.gelu(x, approximate="tanh" if tanh else "none")

    def sigmoid(self, x, at):
        return torch.sigmoid(x)

    def tanh(self, x, at):
        return torch.tanh(x)

    def clip(self, x, at, low=0, high=6):
        return x.clamp(low, high)

    def scale(self, x, at, by):
        return x * by

    def softmax(self, x, at, axis=-1):
        return x.softmax(axis)
