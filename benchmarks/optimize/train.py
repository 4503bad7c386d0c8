#!/usr/bin/python3
"""Trains four small networks on Fashion-MNIST and writes them as ONNX files with their weights.

    train.py OUT                    all four into the folder OUT: vgg, resnet20, mobilenet, vit
    train.py OUT vgg tiny           these; tiny is the one of tests/data
    train.py OUT --epochs 1         1 epoch of each instead of the number below

The data is Debian's package dataset-fashion-mnist (Zalando SE, MIT licence), the trainer Debian's
python3-torch. Pixels are brought into [0, 1], then normalised by MEAN and STD, which `hwnas evaluate
--scale 1/255 --mean 0.286 --std 0.353` does as well. OUT/accuracy.json says what PyTorch makes of the
10,000 test images; OUT/NAME.npy has its logits.

An epoch takes 50 to 130 seconds of one core's time."""
import argparse
import gzip
import json
import os
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

DATA = "/usr/share/datasets/fashion-mnist"
MEAN, STD = 0.286, 0.353
CLASSES, SIZE, BATCH = 10, 28, 128


def read_idx(name):
    with gzip.open(f"{DATA}/{name}.gz") as file:
        magic = file.read(4)
        dims = [int.from_bytes(file.read(4), "big") for _ in range(magic[3])]
        return np.frombuffer(file.read(), np.uint8).reshape(dims)


def load(part):
    images = read_idx(f"{part}-images-idx3-ubyte").astype(np.float32) / 255
    labels = read_idx(f"{part}-labels-idx1-ubyte").astype(np.int64)
    return torch.from_numpy((images[:, None] - MEAN) / STD), torch.from_numpy(labels)


def conv(inputs, outputs, kernel=3, stride=1, groups=1, act=True):
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
              nn.BatchNorm2d(outputs)]
    return nn.Sequential(*layers, *([nn.ReLU()] if act else []))


def tiny():
    """Fits in a test's folder."""
    return nn.Sequential(conv(1, 8), nn.MaxPool2d(2), conv(8, 16), nn.MaxPool2d(2), conv(16, 32),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, CLASSES))


def vgg():
    """Convolutions in pairs and a hidden layer, as in Simonyan and Zisserman 2015, small."""
    layers, inputs = [], 1
    for width in (24, 48, 96):
        layers += [conv(inputs, width), conv(width, width), nn.MaxPool2d(2)]
        inputs = width
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(inputs * 9, 128), nn.ReLU(),
                         nn.Dropout(0.3), nn.Linear(128, CLASSES))


class Residual(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(conv(inputs, outputs, stride=stride),
                                  conv(outputs, outputs, act=False))
        self.skip = nn.Identity() if inputs == outputs and stride == 1 else \
            conv(inputs, outputs, 1, stride, act=False)

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


def resnet20():
    """He et al. 2016, section 4.2, with n = 3 and projections."""
    layers, inputs = [conv(1, 16)], 16
    for width, first_stride in ((16, 1), (32, 2), (64, 2)):
        for i in range(3):
            layers.append(Residual(inputs, width, first_stride if i == 0 else 1))
            inputs = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, CLASSES))


class Inverted(nn.Module):
    def __init__(self, inputs, outputs, stride, expand=4):
        super().__init__()
        wide = inputs * expand
        self.body = nn.Sequential(conv(inputs, wide, 1), conv(wide, wide, 3, stride, wide),
                                  conv(wide, outputs, 1, act=False))
        self.is_residual = inputs == outputs and stride == 1

    def forward(self, x):
        return x + self.body(x) if self.is_residual else self.body(x)


def mobilenet():
    """Inverted residuals with depthwise convolutions, as in Sandler et al. 2018, small."""
    layers, inputs = [conv(1, 16, stride=2)], 16
    for width, n, first_stride in ((16, 2, 1), (24, 2, 2), (48, 3, 1), (64, 1, 2)):
        for i in range(n):
            layers.append(Inverted(inputs, width, first_stride if i == 0 else 1))
            inputs = width
    return nn.Sequential(*layers, conv(inputs, 128, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(128, CLASSES))


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        n, tokens, width = x.shape
        qkv = self.qkv(x).reshape(n, tokens, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q @ k.transpose(-2, -1)) * (width // self.heads) ** -0.5
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(n, tokens, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    """Dosovitskiy et al. 2021, small: 49 patches of 4 x 4, the mean of the tokens in the place of
    a class token."""

    def __init__(self, width=64, depth=6, heads=4, patch=4):
        super().__init__()
        self.embed = nn.Conv2d(1, width, patch, patch)
        self.position = nn.Parameter(0.02 * torch.randn(1, (SIZE // patch) ** 2, width))
        self.blocks = nn.Sequential(*(Block(width, heads) for _ in range(depth)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, CLASSES)

    def forward(self, x):
        x = self.embed(x).flatten(2).transpose(1, 2) + self.position
        return self.head(self.norm(self.blocks(x)).mean(1))


# What makes it, epochs, peak of the learning rate, weight decay.
NETWORKS = {
    "vgg": (vgg, 5, 0.004, 1e-4),
    "resnet20": (resnet20, 4, 0.004, 1e-4),
    "mobilenet": (mobilenet, 6, 0.004, 1e-4),
    "vit": (ViT, 6, 0.0015, 5e-2),
    "tiny": (tiny, 8, 0.01, 1e-4),
}


def augment(images):
    """Mirrored, and moved by up to two pixels."""
    if torch.rand(()) < 0.5:
        images = images.flip(-1)
    dy, dx = torch.randint(0, 5, (2,)).tolist()
    padded = F.pad(images, (2, 2, 2, 2), value=-MEAN / STD)
    return padded[:, :, dy:dy + SIZE, dx:dx + SIZE]


def train(model, images, labels, epochs, rate, decay):
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=decay)
    steps = epochs * (len(labels) // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, rate, total_steps=steps)
    model.train().to(memory_format=torch.channels_last)
    for _ in range(epochs):
        order = torch.randperm(len(labels))[:len(labels) // BATCH * BATCH]
        for some in order.view(-1, BATCH):
            batch = augment(images[some]).to(memory_format=torch.channels_last)
            loss = F.cross_entropy(model(batch), labels[some])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()


def logits_of(model, images):
    model.eval()
    with torch.no_grad():
        return torch.cat([model(some) for some in images.split(500)])


def write(folder, name, model, images, labels, seconds):
    model.to(memory_format=torch.contiguous_format)
    logits = logits_of(model, images)
    fact = {"top1": (logits.argmax(1) == labels).float().mean().item(),
            "top5": (logits.topk(5).indices == labels[:, None]).any(1).float().mean().item(),
            "loss": F.cross_entropy(logits, labels).item(),
            "params": sum(p.numel() for p in model.parameters()), "seconds": round(seconds)}
    np.save(f"{folder}/{name}.npy", logits.numpy())
    torch.save(model.state_dict(), f"{folder}/{name}.pt")
    torch.onnx.export(model, images[:1], f"{folder}/{name}.onnx", opset_version=13,
                      input_names=["image"], output_names=["logits"],
                      dynamic_axes={"image": {0: "batch"}, "logits": {0: "batch"}})
    print(name, fact, flush=True)
    return fact


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("out", metavar="OUT")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    os.makedirs(args.out, exist_ok=True)
    images, labels = load("train")
    test = load("t10k")
    facts, path = {}, f"{args.out}/accuracy.json"
    if os.path.exists(path):
        with open(path) as file:
            facts = json.load(file)
    for name in args.names or [name for name in NETWORKS if name != "tiny"]:
        torch.manual_seed(1)
        make, epochs, rate, decay = NETWORKS[name]
        model, start = make(), time.time()
        train(model, images, labels, args.epochs or epochs, rate, decay)
        facts[name] = write(args.out, name, model, *test, time.time() - start)
        with open(path, "w") as file:
            json.dump(facts, file, indent=1)


if __name__ == "__main__":
    main()
