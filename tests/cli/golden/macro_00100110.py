"""nas_bench_macro 00100110

MBConv chain for CIFAR-10 (CVPR 2021), every network trained three times.

942,442 parameters, 22,669,824 multiply-accumulates for an input of 3 x 32 x
32.
Written by hwnas VERSION.
"""

import torch
from torch import nn


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


class MBConv(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, expand, stride):
        super().__init__()
        self.use_residual = stride == 1 and in_channels == out_channels
        hidden = in_channels * expand
        self.body = nn.Sequential(
            ConvBN(in_channels, hidden),
            nn.ReLU(inplace=True),
            ConvBN(hidden, hidden, kernel_size, stride, groups=hidden),
            nn.ReLU(inplace=True),
            ConvBN(hidden, out_channels),
        )

    def forward(self, x):
        y = self.body(x)
        return x + y if self.use_residual else y


class NASBenchMacro(nn.Sequential):
    def __init__(self, num_classes=10):
        super().__init__(
            ConvBN(3, 32, kernel_size=3),
            nn.ReLU(inplace=True),
            ConvBN(32, 64, stride=2),
            MBConv(64, 128, kernel_size=3, expand=3, stride=2),
            MBConv(128, 256, kernel_size=3, expand=3, stride=2),
            MBConv(256, 256, kernel_size=3, expand=3, stride=1),
            ConvBN(256, 1280),
            nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(1280, num_classes),
        )


def build(num_classes=10):
    """The network with fresh weights."""
    return NASBenchMacro(num_classes)


if __name__ == "__main__":
    model = build().eval()
    with torch.no_grad():
        output = model(torch.randn(1, 3, 32, 32))
    parameters = sum(p.numel() for p in model.parameters())
    print(f"output {tuple(output.shape)}, {parameters:,} parameters")
