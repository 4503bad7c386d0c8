"""shapes h=8,deep=1

419 parameters, 4,714 multiply-accumulates for image of 4 x 8 x 12, 2 scores.
Written by hwnas VERSION.
"""

import torch
from torch import nn


class Halve(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(4, 4, 3, stride=2, padding=1),
            nn.ReLU(inplace=True),
        )


class Level(nn.Module):
    def __init__(self):
        super().__init__()
        self.halve = Halve()
        self.linear = nn.Linear(24, 3)

    def forward(self, x, scores):
        scaled = self.halve(x)
        x = scaled.flatten(2)
        x = self.linear(x)
        box = x + scores
        halves = box.unflatten(1, (2, 2))
        return scaled, box, halves


class Halve2(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.ZeroPad2d((1, 1, 0, 1)),
            nn.Conv2d(4, 4, 3, stride=2),
            nn.ReLU(inplace=True),
        )


class Level2(nn.Module):
    def __init__(self):
        super().__init__()
        self.halve = Halve2()
        self.linear = nn.Linear(6, 4)

    def forward(self, x, scores):
        scaled = self.halve(x)
        x = scaled.flatten(2)
        x = self.linear(x)
        box = x + scores
        halves = box.unflatten(1, (2, 2))
        return scaled, box, halves


class Shapes(nn.Module):
    def __init__(self):
        super().__init__()
        self.level1 = Level()
        self.level2 = Level2()
        self.upsample = nn.Upsample(scale_factor=(2, 3))
        self.linear = nn.Linear(1, 10)

    def forward(self, image, scores):
        x, box0, halves0 = self.level1(image, scores[0])
        x, box1, halves1 = self.level2(x, scores[1])
        x = x.unflatten(1, (2, 2)).mean((1, 2), keepdim=True).flatten(3)
        x = self.upsample(x).mean((2, 3))
        classes = self.linear(x)
        return box0, halves0, box1, halves1, classes


def build():
    """The network with fresh weights."""
    return Shapes()


if __name__ == "__main__":
    model = build().eval()
    inputs = dict(
        image=torch.randn(1, 4, 8, 12),
        scores=[
            torch.randn(1, 4, 3),
            torch.randn(1, 4, 4),
        ],
    )
    with torch.no_grad():
        output = model(**inputs)
    parameters = sum(p.numel() for p in model.parameters())
    shapes = ", ".join(str(tuple(y.shape)) for y in output)
    print(f"outputs {shapes}, {parameters:,} parameters")
