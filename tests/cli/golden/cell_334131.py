"""nas_bench_201 334131

cells of four nodes for CIFAR-10 (ICLR 2020), every one of them trained.

802,426 parameters, 113,951,360 multiply-accumulates for an input of 3 x 32 x
32.
Written by hwnas VERSION.
"""

import torch
from torch import nn


class ReLUConvBN(nn.Sequential):
    def __init__(self, in_channels, out_channels, kernel_size, stride=1):
        super().__init__(
            nn.ReLU(),
            nn.Conv2d(
                in_channels,
                out_channels,
                kernel_size,
                stride=stride,
                padding=kernel_size // 2,
                bias=False,
            ),
            nn.BatchNorm2d(out_channels),
        )


class Edge(nn.Sequential):
    def __init__(self, in_channels, op):
        layers = []
        if op == 3:
            layers.append(ReLUConvBN(in_channels, in_channels, kernel_size=3))
        elif op == 4:
            layers.append(nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False))
        super().__init__(*layers)


class Cell(nn.Module):
    def __init__(self, in_channels):
        super().__init__()
        self.edge1 = Edge(in_channels, 3)
        self.edge2 = Edge(in_channels, 3)
        self.edge3 = Edge(in_channels, 4)
        self.edge4 = Edge(in_channels, 1)
        self.edge5 = Edge(in_channels, 3)
        self.edge6 = Edge(in_channels, 1)

    def forward(self, x):
        node0 = x
        node1 = self.edge1(node0)
        node2 = self.edge2(node0) + self.edge3(node1)
        return self.edge4(node0) + self.edge5(node1) + self.edge6(node2)


class Reduction(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.branch1 = nn.Sequential(
            ReLUConvBN(in_channels, out_channels, kernel_size=3, stride=2),
            ReLUConvBN(out_channels, out_channels, kernel_size=3),
        )
        self.branch2 = nn.Sequential(
            nn.AvgPool2d(2, stride=2, count_include_pad=False),
            nn.Conv2d(in_channels, out_channels, 1, bias=False),
        )

    def forward(self, x):
        return self.branch1(x) + self.branch2(x)


class NASBench201(nn.Sequential):
    def __init__(self, num_classes=10):
        layers = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)]
        for _ in range(5):
            layers.append(Cell(16))
        width = 16
        for channels in [32, 64]:
            layers.append(Reduction(width, channels))
            for _ in range(5):
                layers.append(Cell(channels))
            width = channels
        layers += [
            nn.BatchNorm2d(width),
            nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(width, num_classes),
        ]
        super().__init__(*layers)


def build(num_classes=10):
    """The network with fresh weights."""
    return NASBench201(num_classes)


if __name__ == "__main__":
    model = build().eval()
    with torch.no_grad():
        output = model(torch.randn(1, 3, 32, 32))
    parameters = sum(p.numel() for p in model.parameters())
    print(f"output {tuple(output.shape)}, {parameters:,} parameters")
