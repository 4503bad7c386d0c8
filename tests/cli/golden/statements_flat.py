"""every_statement w=24,d=111,act=relu.relu.relu

nothing to train, but each statement of the language in its odder uses, with
"quotes" and a text that is too long for one line.

372,672 parameters, 161,982,464 multiply-accumulates for an input of 3 x 32 x
32.
Written by hwnas VERSION.
"""

import torch
from torch import nn


def make_divisible(value, divisor):
    """The multiple of divisor nearest to value, at most 10 % below it."""
    rounded = max(divisor, int(value + divisor / 2) // divisor * divisor)
    return rounded + divisor if rounded < 0.9 * value else rounded


class HardSigmoid(nn.Module):
    def __init__(self, alpha=1 / 6, beta=0.5):
        super().__init__()
        self.alpha = alpha
        self.beta = beta

    def forward(self, x):
        return torch.clamp(self.alpha * x + self.beta, 0, 1)


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


class Mul(nn.ModuleList):
    """The product of its branches."""

    def __init__(self, *branches):
        super().__init__(branches)

    def forward(self, x):
        first, *others = self
        y = first(x)
        for branch in others:
            y = y * branch(x)
        return y


class ConvBN(nn.Sequential):
    def __init__(self, in_channels, out_channels, kernel_size=1, stride=1, groups=1):
        super().__init__(
            nn.Conv2d(
                in_channels,
                out_channels,
                kernel_size,
                stride=stride,
                padding=kernel_size // 2,
                groups=groups,
                bias=False,
            ),
            nn.BatchNorm2d(out_channels),
        )


class Maybe(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.ReLU(),
            nn.ReLU(),
        )


class Bottleneck(nn.Module):
    def __init__(self, in_channels, out_channels, stride, mid, lambda_=2):
        super().__init__()
        self.branch1 = ConvBN(in_channels, out_channels, stride=stride)
        hidden = mid * lambda_
        self.branch2 = nn.Sequential(
            ConvBN(in_channels, mid),
            nn.ReLU(inplace=True),
            ConvBN(mid, hidden, kernel_size=3, stride=stride),
            nn.ReLU(inplace=True),
            ConvBN(hidden, out_channels),
        )
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        x = self.branch1(x) + self.branch2(x)
        return self.relu(x)


class Stack(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.body = nn.Sequential(
            ConvBN(in_channels, in_channels),
            nn.ReLU(inplace=True),
        )
        self.head = nn.Sequential(
            nn.Conv2d(in_channels, make_divisible(out_channels * 1.5, 8), 3, padding=1),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        x = x + self.body(x)
        return self.head(x)


class Widen(nn.Sequential):
    def __init__(self, in_channels, by):
        super().__init__(
            nn.Conv2d(in_channels, in_channels * by, (1, 3), padding=(0, 1)),
            HardSigmoid(alpha=0.25),
        )


class EveryStatement(nn.Sequential):
    def __init__(self):
        branch = [nn.Conv2d(72, 40, 1)]
        for _ in range(2):
            branch += [nn.ReLU(), nn.Conv2d(40, 40, 1)]
        body = [Mul(nn.Conv2d(72, 40, 1), nn.Sequential(*branch))]
        inner = []
        for _ in range(3):
            inner += [nn.Conv2d(40, 40, 3, padding=1, groups=40), nn.ReLU(inplace=True)]
        layers = [
            ConvBN(3, 24, kernel_size=3),
            nn.ReLU(inplace=True),
            Maybe(),
            Bottleneck(24, 64, stride=1, mid=6),
            Stack(64, 32),
            Widen(48, 2),
            nn.Conv2d(96, 48, 1),
            Mul(
                nn.Identity(),
                nn.Sequential(
                    nn.Conv2d(48, 48, 1),
                    nn.Hardsigmoid(),
                ),
            ),
            Residual(
                nn.ReLU(),
                nn.Conv2d(48, 48, 1),
            ),
            Maybe(),
            Bottleneck(48, 64, stride=1, mid=12),
            Stack(64, 32),
            Widen(48, 2),
            nn.Conv2d(96, 48, 1),
            Mul(
                nn.Identity(),
                nn.Sequential(
                    nn.Conv2d(48, 48, 1),
                    nn.Hardsigmoid(),
                ),
            ),
            Residual(
                nn.ReLU(),
                nn.Conv2d(48, 48, 1),
            ),
            Maybe(),
            Bottleneck(48, 96, stride=2, mid=12),
            Stack(96, 48),
            Widen(72, 2),
            nn.Conv2d(144, 72, 1),
            Mul(
                nn.Identity(),
                nn.Sequential(
                    nn.Conv2d(72, 72, 1),
                    nn.Hardsigmoid(),
                ),
            ),
            nn.ReLU(inplace=True),
            nn.Conv2d(72, 72, 1),
            Add(
                nn.Sequential(
                    nn.Conv2d(72, 40, 1),
                    nn.ReLU(inplace=True),
                ),
                nn.Sequential(*body),
            ),
            Residual(*inner),
            nn.Flatten(),
            nn.Linear(10240, 10, bias=False),
            nn.BatchNorm1d(10),
        ]
        super().__init__(*layers)


def build():
    """The network with fresh weights."""
    return EveryStatement()


if __name__ == "__main__":
    model = build().eval()
    with torch.no_grad():
        output = model(torch.randn(1, 3, 32, 32))
    parameters = sum(p.numel() for p in model.parameters())
    print(f"output {tuple(output.shape)}, {parameters:,} parameters")
