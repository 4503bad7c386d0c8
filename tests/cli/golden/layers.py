"""more_layers groups=4,kernel=3,act=prelu

3,030 parameters, 572,744 multiply-accumulates for an input of 3 x 14 x 12.
Written by hwnas VERSION.
"""

import torch
from torch import nn


class Conv1d(nn.Conv1d):
    """Along sequences of batch x length x features."""

    def forward(self, x):
        return super().forward(x.transpose(1, 2)).transpose(1, 2)


class BatchNorm1d(nn.BatchNorm1d):
    """Of the features of sequences of batch x length x features."""

    def forward(self, x):
        return super().forward(x.transpose(1, 2)).transpose(1, 2)


class Activation(nn.Sequential):
    def __init__(self, in_channels):
        super().__init__(nn.PReLU(in_channels))


class MoreLayers(nn.Module):
    def __init__(self, num_classes=10):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 16, 3, padding=1),
            nn.GroupNorm(4, 16),
            Activation(16),
            nn.ConvTranspose2d(16, 12, 3, stride=2, padding=1, output_padding=1),
            Activation(12),
            nn.ConvTranspose2d(12, 6, (3, 1), groups=3, bias=False, dilation=2),
            nn.GroupNorm(6, 6, eps=0.001, affine=False),
        )
        self.layers = nn.Sequential(
            Conv1d(6, 20, 3, stride=2, padding=1),
            nn.SiLU(inplace=True),
            Conv1d(20, 20, 3, padding=2, dilation=2, groups=20, bias=False),
            BatchNorm1d(20),
            nn.ReLU6(inplace=True),
        )
        self.head = nn.Sequential(
            nn.PReLU(20),
            nn.Linear(20, num_classes),
        )

    def forward(self, x):
        x = self.stem(x).flatten(2).transpose(1, 2)
        x = self.layers(x).mean(1)
        return self.head(x)


def build(num_classes=10):
    """The network with fresh weights."""
    return MoreLayers(num_classes)


if __name__ == "__main__":
    model = build().eval()
    with torch.no_grad():
        output = model(torch.randn(1, 3, 14, 12))
    parameters = sum(p.numel() for p in model.parameters())
    print(f"output {tuple(output.shape)}, {parameters:,} parameters")
