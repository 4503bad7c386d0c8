"""accel_nasbench e=1666666,k=3353553,l=1223341,se=1111111

MBConv stages for ImageNet (DAC 2024), with a table of 4110 trained networks.

5,288,548 parameters, 385,814,752 multiply-accumulates for an input of 3 x 224
x 224.
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


class SqueezeExcite(nn.Module):
    def __init__(self, in_channels, hidden):
        super().__init__()
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(in_channels, hidden, 1),
            nn.ReLU(inplace=True),
            nn.Conv2d(hidden, in_channels, 1),
            nn.Hardsigmoid(),
        )

    def forward(self, x):
        return x * self.gate(x)


class MBConv(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, expand, stride):
        super().__init__()
        self.use_residual = stride == 1 and in_channels == out_channels
        channels = in_channels
        layers = []
        if expand > 1:
            channels = in_channels * expand
            layers += [ConvBN(in_channels, channels), nn.ReLU(inplace=True)]
        layers += [
            ConvBN(channels, channels, kernel_size, stride, groups=channels),
            nn.ReLU(inplace=True),
            SqueezeExcite(channels, max(1, in_channels // 4)),
            ConvBN(channels, out_channels),
        ]
        self.body = nn.Sequential(*layers)

    def forward(self, x):
        y = self.body(x)
        return x + y if self.use_residual else y


class AccelNASBench(nn.Sequential):
    def __init__(self, num_classes=1000):
        stages = [
            # out, stride, expand, kernel, layers
            (16, 1, 1, 3, 1),
            (24, 2, 6, 3, 2),
            (40, 2, 6, 5, 2),
            (80, 2, 6, 3, 3),
            (112, 1, 6, 5, 3),
            (192, 2, 6, 5, 4),
            (320, 1, 6, 3, 1),
        ]
        modules = [ConvBN(3, 32, kernel_size=3, stride=2), nn.ReLU(inplace=True)]
        channels = 32
        for out, stride, expand, kernel, layers in stages:
            for i in range(layers):
                modules.append(
                    MBConv(channels, out, kernel, expand, stride if i == 0 else 1)
                )
                channels = out
        modules += [
            ConvBN(channels, 1280),
            nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Dropout(0.2),
            nn.Linear(1280, num_classes),
        ]
        super().__init__(*modules)


def build(num_classes=1000):
    """The network with fresh weights."""
    return AccelNASBench(num_classes)


if __name__ == "__main__":
    model = build().eval()
    with torch.no_grad():
        output = model(torch.randn(1, 3, 224, 224))
    parameters = sum(p.numel() for p in model.parameters())
    print(f"output {tuple(output.shape)}, {parameters:,} parameters")
