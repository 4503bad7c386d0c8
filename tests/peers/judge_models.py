#!/usr/bin/python3
"""Networks as people export them, written as ONNX: torchvision's, made small, and transformers of hand.

    judge_models.py FOLDER [NAME...]

Writes NAME.onnx and its input NAME.in for the models below, in opsets 11 to 20 as far as this PyTorch has them.
Weights are random.
"""

import math
import pathlib
import sys
import warnings

import torch
from torch import nn
from torch.nn import functional as F
from torchvision import models
from torchvision.models import convnext, densenet, efficientnet, maxvit, mobilenetv3, resnet
from torchvision.models.vision_transformer import VisionTransformer

LAST_OPSET = torch.onnx._constants.ONNX_MAX_OPSET


def image(size=32, channels=3):
    return (torch.rand(1, channels, size, size) * 2 - 1,)


def ids(length, below=50):
    return torch.randint(0, below, (1, length))


def convnext_small():
    blocks = [convnext.CNBlockConfig(16, 32, 1), convnext.CNBlockConfig(32, None, 1)]
    return models.ConvNeXt(blocks, num_classes=10)


def mobilenet_v3():
    def row(c, k, e, o, se, act, s):
        return mobilenetv3.InvertedResidualConfig(c, k, e, o, se, act, s, 1, 0.5)

    rows = [row(16, 3, 16, 16, True, "RE", 2), row(16, 3, 72, 24, False, "RE", 1),
            row(24, 5, 96, 40, True, "HS", 2), row(40, 5, 240, 40, True, "HS", 1)]
    return models.MobileNetV3(rows, 64, num_classes=10)


def efficientnet_v2():
    blocks = [efficientnet.FusedMBConvConfig(2, 3, 2, 16, 24, 2), efficientnet.MBConvConfig(4, 3, 2, 24, 32, 2)]
    return models.EfficientNet(blocks, 0.1, num_classes=10, last_channel=64)


def max_vit():
    return maxvit.MaxVit((64, 64), 16, 2, [16, 32], [1, 1], 8, 0.0, num_classes=10)


class Attention(nn.Module):
    """Of heads, with a mask or a bias that is added, and keys from elsewhere where they are given."""

    def __init__(self, width, heads, kv_heads=None, bias=True):
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.kv_heads = kv_heads or heads
        self.q = nn.Linear(width, width, bias=bias)
        self.k, self.v = [nn.Linear(width, self.kv_heads * self.size, bias=bias) for _ in range(2)]
        self.out = nn.Linear(width, width, bias=bias)

    def split(self, x, heads):
        return x.view(x.shape[0], -1, heads, self.size).transpose(1, 2)

    def forward(self, x, other=None, bias=None, turn=None, cache=None, scale=None):
        other = x if other is None else other
        q, k, v = self.split(self.q(x), self.heads), *(self.split(m(other), self.kv_heads) for m in (self.k, self.v))
        if turn:
            q, k = turn(q), turn(k)
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        keys, values = k, v
        if self.kv_heads != self.heads:
            k, v = [t.repeat_interleave(self.heads // self.kv_heads, dim=1) for t in (k, v)]
        scores = q @ k.transpose(-1, -2) * (scale or 1 / math.sqrt(self.size))
        y = F.softmax(scores if bias is None else scores + bias, -1) @ v
        return self.out(y.transpose(1, 2).reshape(x.shape)), keys, values


class Bert(nn.Module):
    """Two layers with the norm behind them, GELU, a mask of padding and a pooler."""

    def __init__(self):
        super().__init__()
        self.word, self.place, self.kind = nn.Embedding(50, 32), nn.Embedding(24, 32), nn.Embedding(2, 32)
        self.norm = nn.LayerNorm(32, eps=1e-12)
        self.layers = nn.ModuleList(
            nn.ModuleList([Attention(32, 4), nn.LayerNorm(32), nn.Linear(32, 64), nn.Linear(64, 32), nn.LayerNorm(32)])
            for _ in range(2))
        self.pool = nn.Linear(32, 32)

    def forward(self, tokens, kinds, mask):
        bias = (1.0 - mask[:, None, None, :].float()) * -10000.0
        x = self.word(tokens) + self.kind(kinds) + self.place(torch.arange(tokens.shape[1]))[None]
        x = self.norm(x)
        for attention, first, up, down, second in self.layers:
            x = first(x + attention(x, bias=bias)[0])
            x = second(x + down(F.gelu(up(x))))
        return x, torch.tanh(self.pool(x[:, 0]))


class GptCache(nn.Module):
    """One token more, with keys and values of those before it: two layers as in GPT-2."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(50, 32), nn.Embedding(24, 32)
        self.layers = nn.ModuleList(
            nn.ModuleList([nn.LayerNorm(32), Attention(32, 4), nn.LayerNorm(32), nn.Linear(32, 128),
                           nn.Linear(128, 32)])
            for _ in range(2))
        self.norm = nn.LayerNorm(32)

    def forward(self, token, cache):
        made, past = [], cache.shape[4]
        x = self.tokens(token) + self.places.weight[past : past + 1]
        for i, (first, attention, second, up, down) in enumerate(self.layers):
            y, k, v = attention(first(x), cache=cache[i])
            made.append(torch.stack([k, v]))
            x = x + y
            x = x + down(F.gelu(up(second(x)), approximate="tanh"))
        return self.norm(x) @ self.tokens.weight.T, torch.stack(made)


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Llama(nn.Module):
    """RMSNorm, rotary positions, two queries for a key, a gate with SiLU, a causal mask."""

    def __init__(self, width=32, heads=4):
        super().__init__()
        self.tokens = nn.Embedding(50, width)
        self.layers = nn.ModuleList(
            nn.ModuleList([RmsNorm(width), Attention(width, heads, heads // 2, False), RmsNorm(width)]
                          + [nn.Linear(width, 64, bias=False) for _ in range(2)] + [nn.Linear(64, width, bias=False)])
            for _ in range(2))
        self.norm, self.head = RmsNorm(width), nn.Linear(width, 50, bias=False)
        size = width // heads
        self.register_buffer("speeds", 1 / 10000 ** (torch.arange(0, size, 2) / size))

    def forward(self, tokens):
        n = tokens.shape[1]
        angles = torch.cat([torch.arange(n)[:, None] * self.speeds] * 2, -1)
        cos, sin = angles.cos(), angles.sin()

        def turn(x):
            half = x.shape[-1] // 2
            return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin

        mask = torch.full((n, n), float("-inf")).triu(1)
        x = self.tokens(tokens)
        for first, attention, second, gate, up, down in self.layers:
            x = x + attention(first(x), bias=mask, turn=turn)[0]
            y = second(x)
            x = x + down(F.silu(gate(y)) * up(y))
        return self.head(self.norm(x))


class T5(nn.Module):
    """An encoder and a decoder, with a bias for each distance by buckets, no scale and RMSNorm."""

    def __init__(self):
        super().__init__()
        self.tokens, self.bias = nn.Embedding(50, 32), nn.Embedding(8, 4)
        self.encode, self.decode, self.cross = [Attention(32, 4, bias=False) for _ in range(3)]
        self.norms = nn.ModuleList(RmsNorm(32) for _ in range(6))
        self.up, self.down = nn.Linear(32, 64, bias=False), nn.Linear(64, 32, bias=False)

    def distance(self, n, is_causal):
        apart = torch.arange(n)[None, :] - torch.arange(n)[:, None]
        bucket = apart.abs().clamp(max=3) + (0 if is_causal else 4 * (apart > 0).long())
        bias = self.bias(bucket).permute(2, 0, 1)[None]
        return bias + torch.full((n, n), -1e9).triu(1) if is_causal else bias

    def feed(self, x):
        return self.down(F.relu(self.up(x)))

    def forward(self, given, made):
        x, y = self.tokens(given), self.tokens(made)
        x = x + self.encode(self.norms[0](x), bias=self.distance(given.shape[1], False), scale=1.0)[0]
        x = self.norms[2](x + self.feed(self.norms[1](x)))
        y = y + self.decode(self.norms[3](y), bias=self.distance(made.shape[1], True), scale=1.0)[0]
        y = y + self.cross(self.norms[4](y), x, scale=1.0)[0]
        return (y + self.feed(self.norms[5](y))) @ self.tokens.weight.T


class Whisper(nn.Module):
    """Sound by two convolutions, an encoder, and a decoder that looks at it."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv1d(20, 32, 3, padding=1), nn.Conv1d(32, 32, 3, 2, padding=1)
        self.register_buffer("sound_places", torch.randn(24, 32))
        self.encoder = nn.TransformerEncoderLayer(32, 4, 64, activation="gelu", batch_first=True, norm_first=True)
        self.tokens, self.places = nn.Embedding(50, 32), nn.Parameter(torch.randn(16, 32))
        self.norms = nn.ModuleList(nn.LayerNorm(32) for _ in range(4))
        self.own, self.cross = Attention(32, 4), Attention(32, 4)
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)

    def forward(self, sound, tokens):
        x = F.gelu(self.second(F.gelu(self.first(sound)))).permute(0, 2, 1)
        x = self.norms[0](self.encoder(x + self.sound_places))
        n = tokens.shape[1]
        y = self.tokens(tokens) + self.places[:n]
        y = y + self.own(self.norms[1](y), bias=torch.full((n, n), float("-inf")).triu(1))[0]
        y = y + self.cross(self.norms[2](y), x)[0]
        y = y + self.down(F.gelu(self.up(self.norms[3](y))))
        return y @ self.tokens.weight.T


class Unet(nn.Module):
    """Two levels: pools on the way down, transposed convolutions on the way up."""

    def __init__(self):
        super().__init__()

        def double(a, b):
            return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(),
                                 nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU())

        self.down = nn.ModuleList([double(3, 8), double(8, 16), double(16, 32)])
        self.widen = nn.ModuleList([nn.ConvTranspose2d(32, 16, 2, 2), nn.ConvTranspose2d(16, 8, 2, 2)])
        self.up = nn.ModuleList([double(32, 16), double(16, 8)])
        self.head = nn.Conv2d(8, 2, 1)

    def forward(self, x):
        kept = []
        for level in self.down[:2]:
            kept.append(level(x))
            x = F.max_pool2d(kept[-1], 2)
        x = self.down[2](x)
        for widen, level in zip(self.widen, self.up):
            x = level(torch.cat([kept.pop(), widen(x)], 1))
        return self.head(x)


class Video(nn.Module):
    """Blocks of R(2+1)D: convolutions in space, then in time."""

    def __init__(self):
        super().__init__()

        def block(a, b, stride):
            return nn.Sequential(
                nn.Conv3d(a, 24, (1, 3, 3), (1, stride, stride), (0, 1, 1), bias=False), nn.BatchNorm3d(24), nn.ReLU(),
                nn.Conv3d(24, b, (3, 1, 1), (stride, 1, 1), (1, 0, 0), bias=False), nn.BatchNorm3d(b))

        self.stem, self.a, self.b = block(3, 16, 2), block(16, 16, 1), block(16, 32, 2)
        self.skip = nn.Conv3d(16, 32, 1, 2)
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.stem(x))
        x = F.relu(x + self.a(x))
        x = F.relu(self.skip(x) + self.b(x))
        return self.head(F.adaptive_avg_pool3d(x, 1).flatten(1))


class Speech(nn.Module):
    """A bidirectional GRU over frames, as in DeepSpeech 2."""

    def __init__(self):
        super().__init__()
        self.conv, self.gru = nn.Conv1d(16, 24, 5, 2, 2), nn.GRU(24, 32, 2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(64, 20)

    def forward(self, x):
        x = F.hardtanh(self.conv(x), 0, 20).transpose(1, 2)
        return F.log_softmax(self.head(self.gru(x)[0]), -1)


# By name: the opset, how the model is made, and its inputs.
JUDGES = {
    "resnet": (11, lambda: models.ResNet(resnet.BasicBlock, [1, 1, 1, 1], 10), image),
    "resnext": (12, lambda: models.ResNet(resnet.Bottleneck, [1, 1, 1, 1], 10, groups=8, width_per_group=2), image),
    "mobilenet_v2": (13, lambda: models.MobileNetV2(10, 0.25), image),
    "mobilenet_v3": (14, mobilenet_v3, image),
    "efficientnet_v2": (15, efficientnet_v2, image),
    "shufflenet_v2": (16, lambda: models.ShuffleNetV2([1, 2, 1], [24, 32, 64, 128, 64], 10), image),
    "squeezenet": (17, lambda: models.SqueezeNet("1_1", 10), lambda: image(48)),
    "densenet": (18, lambda: densenet.DenseNet(8, (2, 2, 2), 16, num_classes=10), image),
    "regnet": (19, lambda: models.regnet_y_400mf(num_classes=10), image),
    "convnext": (20, convnext_small, image),
    "vit": (14, lambda: VisionTransformer(32, 8, 2, 4, 32, 64, num_classes=10), image),
    "swin": (15, lambda: models.SwinTransformer([4, 4], 24, [2, 2], [2, 4], [4, 4], num_classes=10), image),
    "max_vit": (16, max_vit, lambda: image(64)),
    "bert": (11, Bert, lambda: (ids(12), ids(12, 2), torch.ones(1, 12, dtype=torch.long))),
    "gpt_cache": (12, GptCache, lambda: (ids(1), torch.randn(2, 2, 1, 4, 9, 8))),
    "llama": (14, Llama, lambda: (ids(10),)),
    "t5": (15, T5, lambda: (ids(9), ids(6))),
    "whisper": (17, Whisper, lambda: (torch.randn(1, 20, 48), ids(5))),
    "unet": (11, Unet, image),
    "video": (13, Video, lambda: (torch.randn(1, 3, 8, 24, 24),)),
    "speech": (12, Speech, lambda: (torch.randn(1, 16, 30),)),
}


def spread(model):
    """Statistics as of a network that was trained."""
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.running_mean.uniform_(-0.3, 0.3)
            module.running_var.uniform_(0.5, 2)
    return model.eval()


def write(name, folder):
    opset, make, inputs = JUDGES[name]
    torch.manual_seed(1)
    model, given = spread(make()), inputs()
    torch.onnx.export(model, given, str(folder / f"{name}.onnx"), opset_version=min(opset, LAST_OPSET))
    values = [t.float().flatten() for t in given]
    (folder / f"{name}.in").write_bytes(torch.cat(values).numpy().tobytes())


def main(folder, *names):
    torch.set_num_threads(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names or JUDGES:
            write(name, pathlib.Path(folder))


if __name__ == "__main__":
    main(*sys.argv[1:])
