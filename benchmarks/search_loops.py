"""The loops that people write around a search space: build a random MobileNet-like candidate, prepare
it, warm up (5 runs), time 30 runs. Prints a JSON line: candidates per minute, first one left out.

search_loops.py torch_eager|ort_export|ort_direct SECONDS [THREADS]

torch_eager: a PyTorch module; ort_export: the same through torch.onnx.export and ONNX Runtime;
ort_direct: the ONNX graph written with onnx.helper, BatchNorm folded, and ONNX Runtime (onnxruntime-node, in one
process for all candidates, at real-time priority where that is allowed, as ours are). The networks are those of
search_throughput.yaml.
"""
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import warnings

from figures import realtime

warnings.filterwarnings("ignore")
RESOLUTION, WARM, RUNS = 224, 5, 30
STAGES = ((24, 2, 4), (40, 2, 4), (80, 2, 4), (112, 1, 4), (192, 2, 4), (320, 1, 1))


def candidate(rng):
    """(activation, blocks); a block is (inputs, outputs, kernel, expansion, stride, squeeze)."""
    blocks, inputs = [], 16
    for channels, stride, most in STAGES:
        outputs = max(8, channels * rng.choice((3, 4, 5)) // 4 // 8 * 8)
        for i in range(rng.randint(1, most)):
            blocks.append((inputs, outputs, rng.choice((3, 5, 7)), rng.choice((3, 4, 6)),
                           stride if i == 0 else 1, rng.random() < 0.5))
            inputs = outputs
    return rng.choice(("relu", "hard_swish")), blocks


def squeezed(channels):
    return max(8, channels // 16 * 4 // 8 * 8)


class Direct:
    """Writes the graph node by node; weights are slices of one pool of random numbers."""

    def __init__(self, act):
        import numpy
        from onnx import helper, numpy_helper
        self.np, self.helper, self.numpy_helper, self.act = numpy, helper, numpy_helper, act
        self.nodes, self.weights = [], []

    pool = None

    def weight(self, *shape):
        if Direct.pool is None:
            Direct.pool = self.np.random.default_rng(0).standard_normal(1 << 21, dtype="float32")
        count = int(self.np.prod(shape))
        fan = max(1, count // shape[0])
        values = Direct.pool[:count].reshape(shape) * self.np.float32((2.0 / fan) ** 0.5)
        self.weights.append(self.numpy_helper.from_array(values, f"w{len(self.weights)}"))
        return self.weights[-1].name

    def op(self, kind, *inputs, **attributes):
        output = f"t{len(self.nodes)}"
        self.nodes.append(self.helper.make_node(kind, inputs, [output], **attributes))
        return output

    def conv(self, x, inputs, outputs, kernel=1, stride=1, groups=1, act=True):
        x = self.op("Conv", x, self.weight(outputs, inputs // groups, kernel, kernel),
                    self.weight(outputs), kernel_shape=[kernel] * 2, strides=[stride] * 2,
                    pads=[kernel // 2] * 4, group=groups)
        return self.op("Relu" if self.act == "relu" else "HardSwish", x) if act else x

    def squeeze(self, x, channels):
        middle = squeezed(channels)
        s = self.op("GlobalAveragePool", x)
        s = self.op("Relu", self.conv(s, channels, middle, act=False))
        s = self.op("HardSigmoid", self.conv(s, middle, channels, act=False), alpha=1 / 6, beta=0.5)
        return self.op("Mul", x, s)

    def add(self, x, y):
        return self.op("Add", x, y)

    def finish(self, x):
        from onnx import TensorProto
        x = self.op("Flatten", self.op("GlobalAveragePool", x))
        x = self.op("Gemm", x, self.weight(1000, 1280), self.weight(1000), transB=1)
        value = self.helper.make_tensor_value_info
        graph = self.helper.make_graph(
            self.nodes, "g", [value("x", TensorProto.FLOAT, [1, 3, RESOLUTION, RESOLUTION])],
            [value(x, TensorProto.FLOAT, [1, 1000])], self.weights)
        model = self.helper.make_model(graph, opset_imports=[self.helper.make_opsetid("", 17)])
        model.ir_version = 8
        return model.SerializeToString()


def write_direct(act, blocks):
    d = Direct(act)
    x = d.conv("x", 3, 32, 3, 2)
    x = d.conv(d.conv(x, 32, 32, 3, groups=32), 32, 16, act=False)
    for inputs, outputs, kernel, expansion, stride, squeeze in blocks:
        hidden, start = inputs * expansion, x
        x = d.conv(d.conv(x, inputs, hidden), hidden, hidden, kernel, stride, hidden)
        x = d.conv(d.squeeze(x, hidden) if squeeze else x, hidden, outputs, act=False)
        x = d.add(x, start) if stride == 1 and inputs == outputs else x
    return d.finish(d.conv(x, blocks[-1][1], 1280))


def make_module(act, blocks):
    from torch import nn
    activation = nn.ReLU if act == "relu" else nn.Hardswish

    def conv(inputs, outputs, kernel=1, stride=1, groups=1, act=True):
        layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
                  nn.BatchNorm2d(outputs)]
        return layers + [activation()] if act else layers

    class Squeeze(nn.Module):
        def __init__(self, channels):
            super().__init__()
            middle = squeezed(channels)
            self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(channels, middle, 1), nn.ReLU(),
                                      nn.Conv2d(middle, channels, 1), nn.Hardsigmoid())

        def forward(self, x):
            return x * self.gate(x)

    class Residual(nn.Module):
        def __init__(self, inside):
            super().__init__()
            self.inside = inside

        def forward(self, x):
            return x + self.inside(x)

    layers = conv(3, 32, 3, 2) + conv(32, 32, 3, groups=32) + conv(32, 16, act=False)
    for inputs, outputs, kernel, expansion, stride, squeeze in blocks:
        hidden = inputs * expansion
        block = nn.Sequential(*conv(inputs, hidden), *conv(hidden, hidden, kernel, stride, hidden),
                              *([Squeeze(hidden)] if squeeze else []),
                              *conv(hidden, outputs, act=False))
        layers.append(Residual(block) if stride == 1 and inputs == outputs else block)
    layers += conv(blocks[-1][1], 1280)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1280, 1000)).eval()


def median_of_torch(module, x):
    times = []
    for _ in range(WARM + RUNS):
        start = time.perf_counter()
        module(x)
        times.append(time.perf_counter() - start)
    return sorted(times[WARM:])[RUNS // 2]


def start_ort(threads):
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ort_median.mjs")
    shape = f"1x3x{RESOLUTION}x{RESOLUTION}"
    return subprocess.Popen([*realtime(), "node", script, *map(str, (threads, WARM, RUNS)), shape], text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def median_of_ort(ort, model, folder):
    path = os.path.join(folder, "candidate.onnx")
    with open(path, "wb") as file:
        file.write(model)
    ort.stdin.write(path + "\n")
    ort.stdin.flush()
    answer = ort.stdout.readline()
    if not answer:
        sys.exit("onnxruntime-node is not here, or failed")
    return float(answer)


def judge(peer, rng, ort, folder):
    """Builds and prepares a candidate, and times it: the median in seconds."""
    act, blocks = candidate(rng)
    if peer == "ort_direct":
        return median_of_ort(ort, write_direct(act, blocks), folder)
    import torch
    module, x = make_module(act, blocks), torch.randn(1, 3, RESOLUTION, RESOLUTION)
    if peer == "torch_eager":
        return median_of_torch(module, x)
    path = os.path.join(folder, "exported.onnx")
    torch.onnx.export(module, (x,), path, opset_version=14)
    with open(path, "rb") as file:
        return median_of_ort(ort, file.read(), folder)


def main():
    peer, seconds = sys.argv[1], float(sys.argv[2])
    threads = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    os.environ["OMP_NUM_THREADS"] = str(threads)
    if peer != "ort_direct":
        import torch
        torch.set_num_threads(threads)
        torch.inference_mode().__enter__() if peer == "torch_eager" else None
    ort = None if peer == "torch_eager" else start_ort(threads)
    rng, medians = random.Random(7), []
    with tempfile.TemporaryDirectory() as folder:
        judge(peer, rng, ort, folder)  # the first pays what is paid once
        begin = time.perf_counter()
        while not medians or time.perf_counter() - begin < seconds:
            medians.append(judge(peer, rng, ort, folder))
        elapsed = time.perf_counter() - begin
    if ort:
        ort.communicate()
    print(json.dumps({"peer": peer, "candidates": len(medians), "per_minute": 60 * len(medians) / elapsed,
                      "median_ms": 1e3 * sorted(medians)[len(medians) // 2]}))


if __name__ == "__main__":
    main()
