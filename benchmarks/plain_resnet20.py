"""ResNet-20 on the samples of benchmarks/proof, as a program has it that uses PyTorch alone (He et al., CVPR 2016, section
4.2): train.npz and test.npz in this folder. Prints the share of right ones of the test samples in percent.

plain_resnet20.py EPOCHS SEED SHIFT"""
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.stride, self.added = stride, outputs - inputs
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        if self.stride > 1:
            x = F.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, 0, self.added))
        return F.relu(x + y)


def resnet20():
    layers, inputs = [nn.Conv2d(1, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()], 16
    for outputs in (16, 32, 64):
        for i in range(3):
            layers.append(Block(inputs, outputs, 2 if i == 0 and outputs > 16 else 1))
            inputs = outputs
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def read(path):
    arrays = np.load(path)
    x = torch.from_numpy(arrays["x"].astype(np.float32)[:, None]) / 255
    return x, torch.from_numpy(arrays["y"].astype(np.int64))


def vary(x, shift):
    """Mirrored or not, and a part of the image with a black edge."""
    x = torch.where(torch.rand(len(x), 1, 1, 1) < 0.5, x.flip(3), x)
    size, padded = x.shape[2], F.pad(x, [shift] * 4)
    rows, columns = torch.randint(0, 2 * shift + 1, (2, len(x))).tolist()
    return torch.stack([image[:, r:r + size, c:c + size] for image, r, c in zip(padded, rows, columns)])


def normalize(x):
    return (x - 0.286) / 0.353


epochs, seed, shift = map(int, sys.argv[1:])
torch.set_num_threads(1)
torch.manual_seed(seed)
model = resnet20()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
loader = DataLoader(TensorDataset(*read("train.npz")), batch_size=128, shuffle=True, drop_last=True)
for epoch in range(epochs):
    model.train()
    for i, (x, y) in enumerate(loader):
        done = (epoch + i / len(loader)) / epochs
        for group in optimizer.param_groups:
            group["lr"] = 0.1 * 0.1 ** ((done >= 0.5) + (done >= 0.75))
        optimizer.zero_grad()
        F.cross_entropy(model(normalize(vary(x, shift))), y).backward()
        optimizer.step()
model.eval()
x, y = read("test.npz")
with torch.no_grad():
    right = sum((model(normalize(some)).argmax(1) == labels).sum().item() for some, labels in zip(x.split(500), y.split(500)))
print(100 * right / len(y))
