"""Fits a small network on vectors that `hwnas predictor encode` printed, and writes it as ONNX.

torch_predictor.py VECTORS.csv RESULTS.csv COLUMN MODEL.onnx [--one-output] [--batch N]

Prints what PyTorch itself computes for each row: mean and standard deviation. This is the example of
docs/predictors.md."""
import argparse
import csv

import torch


class Predictor(torch.nn.Module):
    def __init__(self, length, mean, one_output):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(length, 32), torch.nn.ReLU())
        self.mean = torch.nn.Linear(32, 1)
        self.sd = torch.nn.Linear(32, 1)
        self.one_output = one_output
        torch.nn.init.constant_(self.mean.bias, mean)

    def forward(self, x):
        hidden = self.body(x)
        mean, sd = self.mean(hidden), torch.sigmoid(self.sd(hidden))
        return torch.cat([mean, sd], 1) if self.one_output else (mean, sd)


def main():
    parser = argparse.ArgumentParser()
    for name in ("vectors", "results", "column", "model"):
        parser.add_argument(name)
    parser.add_argument("--one-output", action="store_true")
    parser.add_argument("--batch", type=int, default=0)
    o = parser.parse_args()
    torch.manual_seed(0)
    x = torch.tensor([[float(v) for v in row[1:]] for row in list(csv.reader(open(o.vectors)))[1:]])
    y = torch.tensor([[float(row[o.column])] for row in csv.DictReader(open(o.results))])
    model = Predictor(x.shape[1], float(y.mean()), o.one_output)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(300):
        optimiser.zero_grad()
        out = model(x)
        mean = out[:, :1] if o.one_output else out[0]
        torch.nn.functional.mse_loss(mean, y).backward()
        optimiser.step()
    model.eval()
    axes = {} if o.batch else {"arch": {0: "n"}}
    torch.onnx.export(model, torch.zeros(o.batch or 1, x.shape[1]), o.model, input_names=["arch"],
                      output_names=["both"] if o.one_output else ["mean", "sd"], dynamic_axes=axes)
    with torch.no_grad():
        out = model(x)
        both = out if o.one_output else torch.cat(out, 1)
    for mean, sd in both.tolist():
        print(mean, sd)


main()
