#!/usr/bin/python3
"""Does training/train.py train as a program does that uses PyTorch alone?

    plain_training.py NET.py DATA OUTCOME.json

Trains the module by whole batches of 192 of the 256 images: 3 epochs of SGD with momentum on a cosine from 0.2, labels
smoothed by 0.1. Compares the losses, and the accuracy on the 64 others, with what train.py wrote down."""
import gzip
import importlib.util
import json
import math
import sys

import numpy as np
import torch

spec = importlib.util.spec_from_file_location("net", sys.argv[1])
net = importlib.util.module_from_spec(spec)
spec.loader.exec_module(net)


def read(name, skip):
    with gzip.open(f"{sys.argv[2]}/fashion_{name}.gz") as file:
        return np.frombuffer(file.read()[skip:], np.uint8)


x = (torch.tensor(read("images", 16).reshape(-1, 1, 28, 28).astype(np.float32)) / 255 - 0.286) / 0.353
y = torch.tensor(read("labels", 8).astype(np.int64))
order = np.random.default_rng(1).permutation(256)
held, used = order[:64], order[64:]

torch.set_num_threads(1)
torch.manual_seed(0)
model = net.build()
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9, nesterov=True, weight_decay=5e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 3)
loss_of = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
losses, right = [], []
for _ in range(3):
    model.train()
    loss = loss_of(model(x[used]), y[used])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    model.eval()
    losses.append(loss.item())
    right.append(100 * (model(x[held]).argmax(1) == y[held]).double().mean().item())

with open(sys.argv[3]) as file:
    outcome = json.load(file)
print(losses, right, outcome["curve"])
assert len(outcome["curve"]) == 3 and outcome["accuracy"] == outcome["curve"][-1][3]
for (_, loss, _, accuracy), plain, plain_right in zip(outcome["curve"], losses, right):
    assert math.isclose(loss, plain, rel_tol=1e-3), (loss, plain)
    assert abs(accuracy - plain_right) <= 100 / 64 + 1e-9, (accuracy, plain_right)  # one image, by rounding
