"""named_tensors size=24,taps=3,op=conv.pool.skip

13,978 parameters, 1,949,052 multiply-accumulates for an input of 3 x 24 x 24.
Written by hwnas VERSION.
"""

import torch
from torch import nn


class Ladder(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(8, 12, 3, padding=1),
            nn.ReLU(inplace=True),
        )
        self.layers1 = nn.Sequential(
            nn.Conv2d(12, 16, 3, padding=1),
            nn.ReLU(inplace=True),
        )
        self.layers2 = nn.Sequential(
            nn.Conv2d(16, 20, 3, padding=1),
            nn.ReLU(inplace=True),
        )
        self.relu = nn.ReLU()
        self.conv = nn.Conv2d(44, 16, 1)

    def forward(self, x):
        rung0 = x
        rung1 = self.stem(rung0)
        rung2 = self.layers1(rung1)
        rung3 = self.layers2(rung2)
        x = torch.cat([rung3, rung0, self.relu(rung2)], dim=1)
        return self.conv(x)


class Ladder2(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(16, 20, 3, padding=1),
            nn.ReLU(inplace=True),
        )
        self.relu = nn.ReLU()
        self.conv = nn.Conv2d(52, 12, 1)

    def forward(self, x):
        rung0 = x
        rung1 = self.stem(rung0)
        x = torch.cat([rung1, rung0, self.relu(rung0)], dim=1)
        return self.conv(x)


class Crossing(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.ReLU(),
            nn.Conv2d(12, 12, 3, padding=1),
        )
        self.conv1 = nn.Conv2d(12, 1, 1)
        self.layers = nn.Sequential(
            nn.ReLU(),
            nn.Conv2d(12, 12, 1),
        )
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(12, 6, 1)
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(6, 6, 1),
            nn.Hardsigmoid(),
        )
        self.conv3 = nn.Conv2d(6, 12, 1)
        self.conv4 = nn.Conv2d(6, 12, 1)

    def forward(self, x):
        h = self.stem(x)
        h_2 = self.layers(h)
        lambda_ = self.conv1(h) + h_2 + self.relu(h_2)
        h = self.conv2(lambda_)
        x = h * self.gate(h)
        x = lambda_ + self.conv3(x)
        return x + lambda_ + self.conv4(h)


class Unit(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(12, 12, 3, padding=1),
            nn.ReLU(inplace=True),
        )


class Unit2(nn.Sequential):
    def __init__(self):
        super().__init__(nn.MaxPool2d(3, stride=1, padding=1))


class Plain(nn.Module):
    def __init__(self):
        super().__init__()
        self.branch1 = Unit()
        self.branch2 = nn.Conv2d(12, 12, 1)
        self.branch3 = Unit2()
        self.branch4 = nn.Conv2d(12, 12, 1)
        self.branch = nn.Conv2d(12, 12, 1)

    def forward(self, x):
        x = x + self.branch1(x) + self.branch2(x)
        x = x + self.branch3(x) + self.branch4(x)
        return x + x + self.branch(x)


class NamedTensors(nn.Module):
    def __init__(self, num_classes=5):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 3, stride=2, padding=1),
            Ladder(),
            Ladder2(),
            Crossing(),
            Plain(),
        )
        self.max_pool1 = nn.MaxPool2d(2, stride=1)
        self.conv1 = nn.Conv2d(12, 12, 1)
        self.relu1 = nn.ReLU()
        self.conv2 = nn.Conv2d(12, 12, 1)
        self.relu2 = nn.ReLU()
        self.max_pool2 = nn.MaxPool2d(2, stride=1)
        self.head = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(24, num_classes),
        )

    def forward(self, x):
        wide = self.stem(x)
        x = self.max_pool1(wide)
        x = x + self.conv1(x) + self.relu1(x)
        x = x + self.conv2(x) + self.relu2(x)
        x = torch.cat([x, self.max_pool2(wide)], dim=1)
        return self.head(x)


def build(num_classes=5):
    """The network with fresh weights."""
    return NamedTensors(num_classes)


if __name__ == "__main__":
    model = build().eval()
    with torch.no_grad():
        output = model(torch.randn(1, 3, 24, 24))
    parameters = sum(p.numel() for p in model.parameters())
    print(f"output {tuple(output.shape)}, {parameters:,} parameters")
