"""modules 2

2,413 parameters, 22,150 multiply-accumulates for an input of 4 x 8 x 12.
Written by hwnas VERSION.
"""

import torch
from torch import nn


class Residual(nn.Sequential):
    """Adds its input to the output of its layers."""

    def forward(self, x):
        return x + super().forward(x)


class Add(nn.ModuleList):
    """The sum of its branches."""

    def __init__(self, *branches):
        super().__init__(branches)

    def forward(self, x):
        return sum(branch(x) for branch in self)


class Concat(nn.ModuleList):
    """Its branches, one after the other."""

    def __init__(self, *branches, dim=1):
        super().__init__(branches)
        self.dim = dim

    def forward(self, x):
        return torch.cat([branch(x) for branch in self], dim=self.dim)


class MatMul(nn.ModuleList):
    """The matrix product of its two branches."""

    def __init__(self, left, right):
        super().__init__([left, right])

    def forward(self, x):
        left, right = self
        return left(x) @ right(x)


class Div(nn.ModuleList):
    """The quotient of its two branches."""

    def __init__(self, left, right):
        super().__init__([left, right])

    def forward(self, x):
        left, right = self
        return left(x) / right(x)


class Pow(nn.ModuleList):
    """The power of its two branches."""

    def __init__(self, left, right):
        super().__init__([left, right])

    def forward(self, x):
        left, right = self
        return left(x) ** right(x)


class Sub(nn.ModuleList):
    """The difference of its two branches."""

    def __init__(self, left, right):
        super().__init__([left, right])

    def forward(self, x):
        left, right = self
        return left(x) - right(x)


class Reshape(nn.Module):
    """The same values in another shape; the batch stays."""

    def __init__(self, *shape):
        super().__init__()
        self.shape = shape

    def forward(self, x):
        return x.reshape(x.shape[0], *self.shape)


class Permute(nn.Module):
    """The dimensions in another order."""

    def __init__(self, *order):
        super().__init__()
        self.order = order

    def forward(self, x):
        return x.permute(self.order)


class Slice(nn.Module):
    """Part of a tensor along one dimension."""

    def __init__(self, dim, begin=0, end=None, step=1):
        super().__init__()
        self.index = (slice(None),) * dim + (slice(begin, end, step),)

    def forward(self, x):
        return x[self.index]


class Mean(nn.Module):
    def __init__(self, dim, keepdim=False):
        super().__init__()
        self.dim = dim
        self.keepdim = keepdim

    def forward(self, x):
        return x.mean(self.dim, keepdim=self.keepdim)


class Expand(nn.Module):
    """Dimensions of 1 repeated; -1 leaves one as it is."""

    def __init__(self, *shape):
        super().__init__()
        self.shape = shape

    def forward(self, x):
        return x.expand(self.shape)


class Scale(nn.Module):
    def __init__(self, by):
        super().__init__()
        self.by = by

    def forward(self, x):
        return x * self.by


class Erf(nn.Module):
    def forward(self, x):
        return torch.erf(x)


class LayerNorm(nn.LayerNorm):
    """nn.LayerNorm without a shift."""

    def __init__(self, shape, eps=1e-5):
        super().__init__(shape, eps=eps)
        self.register_parameter("bias", None)


class Weight(nn.Module):
    """A learned tensor, whatever the input; expand: one a batch item."""

    def __init__(self, *shape, expand=False):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(1, *shape) * 0.02)
        self.expand = expand

    def forward(self, x):
        if self.expand:
            return self.weight.expand(x.shape[0], *self.weight.shape[1:])
        return self.weight


class LSTM(nn.LSTM):
    """Gives all states, or those after the last step; of one bias the other is zero."""

    def __init__(self, size, hidden, bidirectional=False, last=False, biases=2):
        super().__init__(
            size, hidden, bias=biases > 0, batch_first=True, bidirectional=bidirectional
        )
        self.last = last
        if biases == 1:
            for name, bias in self.named_parameters():
                if name.startswith("bias_hh"):
                    nn.init.zeros_(bias).requires_grad_(False)

    def forward(self, x):
        states, last = super().forward(x)
        return torch.cat(list(last[0]), dim=1) if self.last else states


class GRU(nn.GRU):
    """Gives all states, or those after the last step; of one bias the other is zero."""

    def __init__(self, size, hidden, bidirectional=False, last=False, biases=2):
        super().__init__(
            size, hidden, bias=biases > 0, batch_first=True, bidirectional=bidirectional
        )
        self.last = last
        if biases == 1:
            for name, bias in self.named_parameters():
                if name.startswith("bias_hh"):
                    nn.init.zeros_(bias).requires_grad_(False)

    def forward(self, x):
        states, last = super().forward(x)
        return torch.cat(list(last), dim=1) if self.last else states


class Modules(nn.Sequential):
    def __init__(self, num_classes=3):
        layers = []
        for _ in range(2):
            layers += [
                Residual(
                    nn.Flatten(2),
                    Permute(0, 2, 1),
                    LayerNorm(4),
                    MatMul(
                        nn.Identity(),
                        nn.Sequential(
                            Permute(0, 2, 1),
                            Slice(2, begin=1, end=5),
                        ),
                    ),
                    Sub(
                        nn.Identity(),
                        nn.Sequential(
                            Mean(1, keepdim=True),
                            Expand(-1, 96, 4),
                        ),
                    ),
                    nn.Tanh(),
                    Div(
                        nn.Identity(),
                        nn.Sequential(
                            Scale(2),
                            nn.Sigmoid(),
                        ),
                    ),
                    Pow(
                        nn.Sigmoid(),
                        nn.Sequential(
                            Erf(),
                            nn.Sigmoid(),
                        ),
                    ),
                    Add(nn.Identity(), Weight(1, 4)),
                    Concat(Weight(1, 4, expand=True), nn.Identity()),
                    Slice(1, begin=1),
                    nn.GELU(approximate="tanh"),
                    Permute(0, 2, 1),
                    Reshape(2, 4, -1),
                    Reshape(4, 8, 12),
                    nn.LayerNorm((8, 12), eps=0.001),
                ),
                nn.ZeroPad2d((0, 1, 0, 1)),
                nn.Conv2d(4, 4, 2),
                nn.ConstantPad2d((0, 2, 0, 2), float("-inf")),
                nn.MaxPool2d(3, stride=1),
                nn.ZeroPad2d((2, 0, 1, 1)),
                nn.AvgPool2d(3, stride=1),
            ]
        layers.append(nn.Flatten(2))
        channels = 96
        for _ in range(2):
            layers += [
                nn.Linear(channels, 8),
                LSTM(8, 4, bidirectional=True),
                GRU(8, 2, biases=1),
            ]
            channels = 2
        layers.append(
            LSTM(channels, channels // 2, bidirectional=True, last=True, biases=1)
        )
        channels = channels // 2 * 2
        layers.append(nn.Linear(channels, num_classes))
        super().__init__(*layers)


def build(num_classes=3):
    """The network with fresh weights."""
    return Modules(num_classes)


if __name__ == "__main__":
    model = build().eval()
    with torch.no_grad():
        output = model(torch.randn(1, 4, 8, 12))
    parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(f"output {tuple(output.shape)}, {parameters:,} parameters")
