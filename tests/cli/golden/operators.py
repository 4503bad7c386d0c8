"""every_operator c=12,gate=softmax

19,110 parameters, 653,710 multiply-accumulates for an input of 3 x 15 x 16.
Written by hwnas VERSION.
"""

import torch
from torch import nn


class Concat(nn.ModuleList):
    """Its branches, one after the other."""

    def __init__(self, *branches, dim=1):
        super().__init__(branches)
        self.dim = dim

    def forward(self, x):
        return torch.cat([branch(x) for branch in self], dim=self.dim)


class Zero(nn.Module):
    """Zeros of the input's shape, or of every stride-th row and column."""

    def __init__(self, stride=1):
        super().__init__()
        self.stride = stride

    def forward(self, x):
        if self.stride > 1:
            x = x[:, :, :: self.stride, :: self.stride]
        return x * 0


class Inception(nn.Module):
    def __init__(self, in_channels, a, b, stride=1):
        super().__init__()
        self.branch1 = nn.Sequential(
            nn.Conv2d(in_channels, a, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(a, affine=False),
            nn.ReLU6(inplace=True),
        )
        self.branch2 = nn.Sequential(
            nn.MaxPool2d(3, stride=stride, padding=1),
            nn.Conv2d(in_channels, b, 1),
            nn.LeakyReLU(0.2, inplace=True),
        )
        self.branch3 = Zero(stride=stride)
        self.branch4 = nn.Sequential(
            nn.AvgPool2d(3, stride=stride, padding=1, count_include_pad=False),
            nn.Hardswish(inplace=True),
        )
        self.branch5 = nn.Sequential(
            nn.AvgPool2d((3, 1), stride=stride, padding=(1, 0)),
            nn.Tanh(),
        )
        self.clip = nn.Hardtanh(-1, 2, inplace=True)

    def forward(self, x):
        x = torch.cat(
            [
                self.branch1(x),
                self.branch2(x),
                self.branch3(x),
                self.branch4(x),
                self.branch5(x),
            ],
            dim=1,
        )
        return self.clip(x)


class SqueezeExcite(nn.Module):
    def __init__(self, in_channels):
        super().__init__()
        hidden = in_channels // 4
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(in_channels, hidden, 1),
            nn.LeakyReLU(inplace=True),
            nn.Conv2d(hidden, hidden * 4, 1),
            nn.Softmax(dim=1),
        )

    def forward(self, x):
        return x * self.gate(x)


class EveryOperator(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 12, 3, padding=1, bias=False),
            nn.BatchNorm2d(12),
            nn.ReLU(inplace=True),
            Inception(12, 8, b=4),
            Inception(48, 4, b=8, stride=2),
            SqueezeExcite(156),
        )
        self.branch = Zero()
        self.branch2 = nn.Sequential(
            Concat(nn.Identity(), nn.Identity()),
            nn.Hardtanh(0, 0.5, inplace=True),
        )
        self.head = nn.Sequential(
            nn.Conv2d(468, 7, 1),
            nn.Sigmoid(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Dropout(0.1),
            nn.Linear(7, 10),
            nn.Softmax(dim=-1),
        )

    def forward(self, x):
        x = self.stem(x)
        x = x + self.branch(x)
        x = torch.cat([x, self.branch2(x)], dim=1)
        return self.head(x)


def build():
    """The network with fresh weights."""
    return EveryOperator()


if __name__ == "__main__":
    model = build().eval()
    with torch.no_grad():
        output = model(torch.randn(1, 3, 15, 16))
    parameters = sum(p.numel() for p in model.parameters())
    print(f"output {tuple(output.shape)}, {parameters:,} parameters")
