#!/usr/bin/python3
"""Does hwnas read what PyTorch exports, and compute what PyTorch computes?

    torch_export.py HWNAS DEVICE [NAME...] [--opset N] [--keep FOLDER]

Exports the modules below with torch.onnx.export, in each opset from 11 to 17, runs the files, and
compares the outputs. With --keep the files stay: NAME-OPSET.onnx, its input .in and our output .out. Nothing of the files is ours: they hold what exporters write for a reshape, a mask
or an attention.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile
import warnings

import torch
from torch import nn
from torch.nn import functional as F

LIMIT = 1e-4
OPSETS = range(11, 18)


class Residual(nn.Module):
    """A block of ResNet, with the stem and the head."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
        )
        self.body = nn.Sequential(
            nn.Conv2d(8, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True),
            nn.Conv2d(16, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16)
        )
        self.skip = nn.Sequential(nn.Conv2d(8, 16, 1, 2, bias=False), nn.BatchNorm2d(16))
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        x = self.stem(x)
        x = F.relu(self.body(x) + self.skip(x))
        return self.head(torch.flatten(F.adaptive_avg_pool2d(x, 1), 1))


class MobileV3(nn.Module):
    """An inverted residual of MobileNetV3 with squeeze-and-excitation."""

    def __init__(self):
        super().__init__()
        self.expand = nn.Sequential(
            nn.Conv2d(8, 24, 1, bias=False), nn.BatchNorm2d(24), nn.Hardswish(),
            nn.Conv2d(24, 24, 5, 1, 2, groups=24, bias=False), nn.BatchNorm2d(24), nn.Hardswish()
        )
        self.squeeze = nn.Sequential(
            nn.AdaptiveAvgPool2d(1), nn.Conv2d(24, 8, 1), nn.ReLU(), nn.Conv2d(8, 24, 1), nn.Hardsigmoid()
        )
        self.project = nn.Sequential(nn.Conv2d(24, 8, 1, bias=False), nn.BatchNorm2d(8))
        self.head = nn.Sequential(nn.Linear(8, 16), nn.ReLU6(), nn.Dropout(0.2), nn.Linear(16, 5))

    def forward(self, x):
        y = self.expand(x)
        x = x + self.project(y * self.squeeze(y))
        return self.head(x.mean([2, 3]))


class Activations(nn.Module):
    def __init__(self):
        super().__init__()
        self.prelu = nn.PReLU(6)
        self.each = [
            F.elu, F.selu, F.celu, F.gelu, F.silu, F.mish, F.hardswish, F.hardsigmoid, F.hardtanh,
            F.leaky_relu, F.relu6, F.softplus, F.softsign, F.logsigmoid, F.hardshrink, F.softshrink,
            lambda x: F.gelu(x, approximate="tanh"), lambda x: F.log_softmax(x, -1),
            lambda x: F.softmax(x, 1), lambda x: F.glu(x, 1).repeat(1, 2, 1, 1), F.normalize,
        ]

    def forward(self, x):
        return torch.cat([f(x) for f in self.each] + [self.prelu(x)], 1)


class Vit(nn.Module):
    """Patches, a class token, positions, and a block with nn.MultiheadAttention."""

    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 16, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, 16))
        self.positions = nn.Parameter(torch.randn(1, 17, 16))
        self.norm = nn.LayerNorm(16, eps=1e-6)
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.LayerNorm(16), nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
        self.head = nn.Linear(16, 7)

    def forward(self, x):
        n = x.shape[0]
        x = self.patch(x)
        x = x.reshape(n, 16, x.shape[2] * x.shape[3]).permute(0, 2, 1)
        x = torch.cat([self.token.expand(n, -1, -1), x], 1) + self.positions
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return self.head((x + self.mlp(x))[:, 0])


class Bert(nn.Module):
    """Tokens, segments and a mask of padding, as in Hugging Face's BERT."""

    def __init__(self):
        super().__init__()
        self.word, self.place, self.kind = nn.Embedding(50, 16), nn.Embedding(32, 16), nn.Embedding(2, 16)
        self.norm, self.norm_1, self.norm_2 = [nn.LayerNorm(16, eps=1e-12) for _ in range(3)]
        self.q, self.k, self.v, self.out = [nn.Linear(16, 16) for _ in range(4)]
        self.up, self.down, self.pool = nn.Linear(16, 32), nn.Linear(32, 16), nn.Linear(16, 16)
        self.register_buffer("ids", torch.arange(32).expand(1, -1))

    def split(self, x):
        return x.view(x.size()[:-1] + (4, 4)).permute(0, 2, 1, 3)

    def forward(self, tokens, kinds, mask):
        mask = (1.0 - mask[:, None, None, :].to(torch.float32)) * torch.finfo(torch.float32).min
        x = self.word(tokens) + self.kind(kinds) + self.place(self.ids[:, : tokens.size(1)])
        x = self.norm(x)
        scores = torch.matmul(self.split(self.q(x)), self.split(self.k(x)).transpose(-1, -2))
        weights = F.softmax(scores / 4**0.5 + mask, -1)
        y = torch.matmul(weights, self.split(self.v(x))).permute(0, 2, 1, 3).contiguous()
        x = self.norm_1(self.out(y.view(y.size()[:-2] + (16,))) + x)
        x = self.norm_2(self.down(F.gelu(self.up(x))) + x)
        return x, torch.tanh(self.pool(x[:, 0]))


class Gpt(nn.Module):
    """A causal mask by tril and masked_fill, as in nanoGPT, and logits by the embedding's weight."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(40, 16), nn.Embedding(24, 16)
        self.norm_1, self.norm_2, self.norm = [nn.LayerNorm(16) for _ in range(3)]
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.up, self.down = nn.Linear(16, 64), nn.Linear(64, 16)
        self.register_buffer("bias", torch.tril(torch.ones(24, 24)).view(1, 1, 24, 24))

    def forward(self, tokens):
        b, t = tokens.size()
        x = self.tokens(tokens) + self.places(torch.arange(0, t, dtype=torch.long))
        q, k, v = [p.view(b, t, 4, 4).transpose(1, 2) for p in self.qkv(self.norm_1(x)).split(16, dim=2)]
        att = (q @ k.transpose(-2, -1)) * (1.0 / 4**0.5)
        att = F.softmax(att.masked_fill(self.bias[:, :, :t, :t] == 0, float("-inf")), dim=-1)
        x = x + self.out((att @ v).transpose(1, 2).contiguous().view(b, t, 16))
        x = x + self.down(F.gelu(self.up(self.norm_2(x)), approximate="tanh"))
        return F.linear(self.norm(x), self.tokens.weight)


class Masks(nn.Module):
    """Masks that are computed: triu of ones, cumsum of a mask as positions, where, one-hot."""

    def __init__(self):
        super().__init__()
        self.places = nn.Embedding(12, 8)

    def forward(self, x, mask):
        t = x.shape[1]
        causal = torch.triu(torch.full((t, t), float("-inf")), diagonal=1)
        places = (torch.cumsum(mask, 1) * mask).to(torch.int64)
        x = x + self.places(places)
        scores = torch.einsum("bid,bjd->bij", x, x) + causal
        scores = torch.where(mask[:, None, :] > 0, scores, torch.full_like(scores, -1e4))
        hot = F.one_hot(places, 12).to(x.dtype)
        return torch.cat([F.softmax(scores, -1) @ x, hot], -1), scores.argmax(-1)


class Scan(nn.Module):
    """A selective scan as Mamba has it, unrolled: einsum of three tensors, and of two that share no summed letter."""

    def __init__(self):
        super().__init__()
        self.steps = nn.Parameter(-torch.rand(6, 4))
        self.project = nn.Linear(6, 6 + 2 * 4)

    def forward(self, x):
        delta, b, c = torch.split(self.project(x), [6, 4, 4], -1)
        delta = F.softplus(delta)
        decay = torch.exp(torch.einsum("bld,dn->bldn", delta, self.steps))
        added = torch.einsum("bld,bln,bld->bldn", delta, b, x)
        state, out = torch.zeros_like(decay[:, 0]), []
        for t in range(x.shape[1]):
            state = decay[:, t] * state + added[:, t]
            out.append(torch.einsum("bdn,bn->bd", state, c[:, t]))
        bilinear = torch.einsum("bld,dn,bln,bl->bn", x, self.steps, c, x[..., 0])
        return torch.stack(out, 1), bilinear, torch.einsum("...d,n->n...d", x, self.steps[0])


class Decoder(nn.Module):
    """nn.TransformerEncoderLayer and nn.TransformerDecoderLayer, with a mask."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, activation="gelu")
        self.decoder = nn.TransformerDecoderLayer(16, 2, 32, batch_first=True, norm_first=True)

    def forward(self, x, y):
        mask = torch.triu(torch.ones(y.shape[1], y.shape[1], dtype=torch.bool), 1)
        return self.decoder(y, self.encoder(x), tgt_mask=mask)


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(6, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(10, 3)

    def forward(self, x):
        y, (h, c) = self.rnn(x)
        return self.head(y), h, c


class Gru(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(6, 5, bidirectional=True, batch_first=True)
        self.second = nn.GRU(10, 4)

    def forward(self, x, h):
        y, last = self.rnn(x, h)
        z, _ = self.second(y.transpose(0, 1))
        return z, last[-1]


class Rnn(nn.Module):
    """Steps of a cell, one by one, and the plain RNN."""

    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(6, 5)
        self.rnn = nn.RNN(6, 5, batch_first=True)

    def forward(self, x):
        h = c = torch.zeros(x.shape[0], 5)
        for step in x.unbind(1):
            h, c = self.cell(step, (h, c))
        return h, self.rnn(x)[0]


class Detector(nn.Module):
    """A head of YOLO on two scales: upsample, concat, split, SPP's pools, padding, grid."""

    def __init__(self):
        super().__init__()
        self.focus = nn.Conv2d(12, 16, 3, 1, 1)
        self.down = nn.Conv2d(16, 32, 3, 2, 1)
        self.lateral, self.merge = nn.Conv2d(32, 16, 1), nn.Conv2d(32, 18, 1)

    def boxes(self, x, stride):
        b, _, h, w = x.shape
        x = x.view(b, 3, 6, h, w).permute(0, 1, 3, 4, 2).contiguous()
        y, z = torch.meshgrid(torch.arange(h), torch.arange(w), indexing="ij")
        grid = torch.stack((z, y), 2).view(1, 1, h, w, 2).float()
        xy, wh, conf = x.sigmoid().split((2, 2, 2), 4)
        return torch.cat(((xy * 2 - 0.5 + grid) * stride, (wh * 2) ** 2, conf), 4).view(b, -1, 6)

    def forward(self, x):
        x = torch.cat([x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]], 1)
        x = F.silu(self.focus(x))
        deep = F.silu(self.down(F.pad(x, (0, 1, 0, 1))))
        deep = self.lateral(deep)
        pooled = F.max_pool2d(deep, 5, 1, 2)
        up = F.interpolate(deep + pooled, scale_factor=2, mode="nearest")[:, :, : x.shape[2], : x.shape[3]]
        both = self.merge(torch.cat([up, x], 1))
        left, right = both.chunk(2, 1)
        return self.boxes(both, 8), left * right


class Norms(nn.Module):
    def __init__(self):
        super().__init__()
        self.group, self.instance = nn.GroupNorm(4, 8), nn.InstanceNorm2d(8, affine=True)
        self.plain = nn.InstanceNorm2d(8)
        self.layer = nn.LayerNorm([8, 6, 5])
        self.local = nn.LocalResponseNorm(3)
        self.flat = nn.Sequential(nn.Linear(30, 6), nn.BatchNorm1d(6))

    def forward(self, x):
        y = self.layer(self.local(self.plain(self.group(x) + self.instance(x))))
        return self.flat(y.flatten(2)[:, 0]), y


class Transposed(nn.Module):
    """An hourglass: transposed convolutions, pixel shuffle, resizing to a size."""

    def __init__(self):
        super().__init__()
        self.up = nn.ConvTranspose2d(6, 4, 3, 2, 1, output_padding=1)
        self.grouped = nn.ConvTranspose2d(4, 4, 2, 2, groups=2, bias=False)
        self.norm = nn.BatchNorm2d(4)

    def forward(self, x):
        y = self.norm(self.grouped(F.relu(self.up(x))))
        y = F.pixel_unshuffle(F.pixel_shuffle(y, 2), 2)
        z = F.interpolate(x, size=(13, 9), mode="bilinear", align_corners=False)
        w = F.interpolate(x, size=y.shape[2:], mode="bilinear", align_corners=True)
        return y, z, w, F.interpolate(x, scale_factor=2, mode="bicubic", align_corners=False)


class Sound(nn.Module):
    """One dimension: wav2vec's convolutions, pools and padding."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv1d(2, 8, 10, 5), nn.Conv1d(8, 8, 3, padding=2, dilation=2, groups=8)
        self.norm, self.up = nn.BatchNorm1d(8), nn.ConvTranspose1d(8, 4, 4, 2, 1)

    def forward(self, x):
        x = F.gelu(self.norm(self.first(F.pad(x, (3, 3), mode="reflect"))))
        x = F.max_pool1d(self.second(x), 3, 2, ceil_mode=True)
        x = F.avg_pool1d(F.pad(x, (1, 1), mode="replicate"), 2)
        return self.up(x), F.adaptive_max_pool1d(x, 1).squeeze(-1)


class Volume(nn.Module):
    """Three dimensions, as for video."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv3d(2, 6, 3, (1, 2, 2), 1), nn.BatchNorm3d(6)

    def forward(self, x):
        x = F.max_pool3d(F.relu(self.norm(self.conv(x))), 2)
        return F.adaptive_avg_pool3d(x, 1).flatten(1), F.avg_pool3d(x, (1, 2, 2))


class Swin(nn.Module):
    """Windows shifted by roll, and a bias that is looked up."""

    def __init__(self):
        super().__init__()
        self.qkv, self.table = nn.Linear(8, 24), nn.Parameter(torch.randn(9, 2))
        self.register_buffer("index", torch.randint(0, 9, (16, 16)))

    def forward(self, x):
        b, h, w, c = x.shape
        x = torch.roll(x, (-2, -2), (1, 2))
        x = x.view(b, h // 4, 4, w // 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, c)
        q, k, v = self.qkv(x).reshape(-1, 16, 3, 2, c // 2).permute(2, 0, 3, 1, 4).unbind(0)
        bias = self.table[self.index.view(-1)].view(16, 16, -1).permute(2, 0, 1)
        x = (((q * 2**-1) @ k.transpose(-2, -1) + bias.unsqueeze(0)).softmax(-1) @ v).transpose(1, 2)
        x = x.reshape(b, h // 4, w // 4, 4, 4, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)
        return torch.roll(x, (2, 2), (1, 2)), x.std(-1), x.var((1, 2), unbiased=False)


class Shapes(nn.Module):
    """What shapes, indices and counts are made of."""

    def forward(self, x):
        b, c, t = x.shape
        index = torch.arange(t - 1, -1, -1)
        parts = [
            x.flip(2), x[:, :, index], x.repeat_interleave(2, 2)[:, :, ::2], x.repeat(1, 1, 2)[..., :t],
            torch.zeros(b, c, t) + x, x.unfold(2, 2, 1).sum(-1)[..., [0] * t],
            torch.gather(x, 2, index.expand(b, c, t)), x.sort(2, descending=True)[0], x.topk(2, 2)[0][..., [0] * t],
            torch.where(x > 0, x, x.new_zeros(1)), x.clamp(min=0.1), x.clamp(max=0.1), x.tril(), x.triu(1),
            x.amax(2, keepdim=True).expand_as(x), x.cumsum(2), x.transpose(0, 1).reshape(b, c, t),
            x.norm(dim=2, keepdim=True).expand(-1, -1, t), x.remainder(0.3), x.abs().log1p() + x.sign(),
            torch.logsumexp(x, 2, keepdim=True).expand(b, c, t), torch.div(x, 0.25, rounding_mode="floor"), x.minimum(-x),
            x.square().add(1).rsqrt(),
            x.masked_fill(x.isinf() | x.isnan(), 0.0), torch.stack([x, -x], 0).prod(0),
        ]
        return torch.cat(parts, 1), x.argmax(2), x.max(1)[1]


class Samples(nn.Module):
    """Images at the places of a grid, many of them beyond the image."""

    def forward(self, x, grid):
        return [F.grid_sample(x, grid, mode, padding, aligned) for mode in ("bilinear", "nearest", "bicubic")
                for padding in ("zeros", "border", "reflection") for aligned in (False, True)]


def image(*dims):
    return torch.randn(dims)


# What each is given.
INPUTS = {
    Residual: lambda: [image(2, 3, 32, 32)],
    MobileV3: lambda: [image(1, 8, 10, 10)],
    Activations: lambda: [image(2, 6, 3, 4)],
    Vit: lambda: [image(2, 3, 16, 16)],
    Bert: lambda: [
        torch.randint(0, 50, (2, 9)), torch.randint(0, 2, (2, 9)), torch.tensor([[1] * 9, [1] * 6 + [0] * 3])
    ],
    Gpt: lambda: [torch.randint(0, 40, (2, 11))],
    Masks: lambda: [image(2, 7, 8), torch.tensor([[1] * 7, [0] * 3 + [1] * 4])],
    Scan: lambda: [image(2, 5, 6)],
    Decoder: lambda: [image(2, 6, 16), image(2, 5, 16)],
    Lstm: lambda: [image(3, 7, 6)],
    Gru: lambda: [image(3, 7, 6), image(2, 3, 5)],
    Rnn: lambda: [image(3, 4, 6)],
    Detector: lambda: [image(1, 3, 16, 24)],
    Norms: lambda: [image(2, 8, 6, 5)],
    Transposed: lambda: [image(2, 6, 5, 4)],
    Sound: lambda: [image(2, 2, 120)],
    Volume: lambda: [image(1, 2, 6, 10, 12)],
    Swin: lambda: [image(1, 8, 8, 8)],
    Samples: lambda: [image(2, 5, 6, 7), 2 * image(2, 9, 13, 2)],
    Shapes: lambda: [image(2, 3, 5)],
}


def raw(tensors):
    return b"".join(t.detach().to(torch.float32).numpy().tobytes() for t in tensors)


def flatten(outputs):
    if isinstance(outputs, torch.Tensor):
        return [outputs]
    return [t for o in outputs for t in flatten(o)]


def run(model, inputs, opset, hwnas, device, folder):
    """What went wrong, or None; False where PyTorch cannot export the module."""
    outputs = flatten(model(*inputs))
    try:
        torch.onnx.export(model, tuple(inputs), folder / "model.onnx", opset_version=opset)
    except torch.onnx.errors.OnnxExporterError:
        return False
    (folder / "in.bin").write_bytes(raw(inputs))
    command = [hwnas, "run", folder / "model.onnx", "--device", device]
    command += ["--input", folder / "in.bin", "--output", folder / "out.bin"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return done.stderr.strip() or f"died: {done.returncode}"
    got = torch.frombuffer(bytearray((folder / "out.bin").read_bytes()), dtype=torch.float32)
    if got.numel() != sum(o.numel() for o in outputs):
        return f"{got.numel()} values, not {sum(o.numel() for o in outputs)}"
    for ours, theirs in zip(got.split([o.numel() for o in outputs]), outputs):
        theirs = theirs.detach().flatten().to(torch.float32)
        same = ours == theirs  # infinities
        error = (torch.where(same, theirs, ours) - theirs).abs().max() / theirs[theirs.isfinite()].abs().max()
        if not error <= LIMIT:
            return f"a relative error of {error:.2g}"
    return None


def keep(folder, name, where):
    for suffix, file in (("onnx", "model.onnx"), ("in", "in.bin"), ("out", "out.bin")):
        shutil.copy(folder / file, f"{where}/{name}.{suffix}")


def read_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("hwnas")
    parser.add_argument("device")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--opset", type=int)
    parser.add_argument("--keep")
    return parser.parse_args()


def main():
    arguments = read_arguments()
    hwnas, device, names = arguments.hwnas, arguments.device, arguments.names
    wrong, n = [], 0
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind, make_inputs in INPUTS.items():
            if names and kind.__name__ not in names:
                continue
            torch.manual_seed(1)
            model = kind().eval()
            for module in model.modules():  # statistics as of a network that was trained
                if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.running_mean is not None:
                    module.running_mean.uniform_(-0.5, 0.5)
                    module.running_var.uniform_(0.5, 2)
            inputs, done = make_inputs(), []
            for opset in [arguments.opset] if arguments.opset else OPSETS:
                error = run(model, inputs, opset, hwnas, device, pathlib.Path(folder))
                if error:
                    wrong.append(f"{kind.__name__}, opset {opset}: {error}")
                elif error is None:
                    done.append(opset)
                    if arguments.keep:
                        keep(pathlib.Path(folder), f"{kind.__name__}-{opset}", arguments.keep)
                    n += 1
            print(f"{kind.__name__}: opsets {done}", flush=True)
    for line in wrong:
        print(line)
    print(f"{n} files run on {device}, {len(wrong)} do not")
    return 1 if wrong or not n else 0


if __name__ == "__main__":
    sys.exit(main())
