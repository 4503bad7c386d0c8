"""volumes kernel=3,stride=2

1,462 parameters, 447,632 multiply-accumulates for an input of 3 x 7 x 14 x 12.
Written by hwnas VERSION.
"""

import torch
from torch import nn


class Volumes(nn.Module):
    def __init__(self, num_classes=10):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv3d(3, 12, 3, stride=(2, 2, 1), padding=1, bias=False),
            nn.BatchNorm3d(12),
            nn.ReLU(inplace=True),
            nn.Conv3d(
                12, 8, (2, 1, 3), padding=(1, 0, 2), dilation=(2, 1, 2), groups=4
            ),
            nn.ReLU(inplace=True),
        )
        self.body = nn.Sequential(
            nn.Conv3d(8, 8, 3, padding=1, groups=8),
            nn.ReLU(inplace=True),
        )
        self.linear = nn.Linear(8, num_classes)

    def forward(self, x):
        x = self.stem(x)
        x = (x + self.body(x)).mean((2, 3, 4))
        return self.linear(x)


def build(num_classes=10):
    """The network with fresh weights."""
    return Volumes(num_classes)


if __name__ == "__main__":
    model = build().eval()
    with torch.no_grad():
        output = model(torch.randn(1, 3, 7, 14, 12))
    parameters = sum(p.numel() for p in model.parameters())
    print(f"output {tuple(output.shape)}, {parameters:,} parameters")
