"""sequences hidden=12,heads=2,directions=1

3,687 parameters, 21,211 multiply-accumulates for tokens of 6, types of 6, 2
memory.
Written by hwnas VERSION.
"""

import torch
from torch import nn


class LayerNorm(nn.LayerNorm):
    """nn.LayerNorm without a shift."""

    def __init__(self, shape, eps=1e-5):
        super().__init__(shape, eps=eps)
        self.register_parameter("bias", None)


class RMSNorm(nn.Module):
    def __init__(self, shape, eps=1e-5):
        super().__init__()
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.dims = tuple(range(-len(shape), 0))
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(shape))

    def forward(self, x):
        square = x.square().mean(self.dims, keepdim=True)
        return x * torch.rsqrt(square + self.eps) * self.weight


class LSTM(nn.LSTM):
    """Gives all states, or those after the last step; of one bias the other is zero."""

    def __init__(self, size, hidden, bidirectional=False, last=False, biases=2):
        super().__init__(
            size, hidden, bias=biases > 0, batch_first=True, bidirectional=bidirectional
        )
        self.last = last
        if biases == 1:
            for name, bias in self.named_parameters():
                if name.startswith("bias_hh"):
                    nn.init.zeros_(bias).requires_grad_(False)

    def forward(self, x):
        states, last = super().forward(x)
        return torch.cat(list(last[0]), dim=1) if self.last else states


class GRU(nn.GRU):
    """Gives all states, or those after the last step; of one bias the other is zero."""

    def __init__(self, size, hidden, bidirectional=False, last=False, biases=2):
        super().__init__(
            size, hidden, bias=biases > 0, batch_first=True, bidirectional=bidirectional
        )
        self.last = last
        if biases == 1:
            for name, bias in self.named_parameters():
                if name.startswith("bias_hh"):
                    nn.init.zeros_(bias).requires_grad_(False)

    def forward(self, x):
        states, last = super().forward(x)
        return torch.cat(list(last), dim=1) if self.last else states


class Split(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(12, 12)

    def forward(self, x):
        return self.linear(x).unflatten(2, (2, 6)).transpose(1, 2)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.split1 = Split()
        self.split2 = Split()
        self.linear = nn.Linear(12, 12, bias=False)

    def forward(self, x, memory):
        query = self.split1(x)
        new = self.split2(x)
        key = torch.cat([memory, new], dim=2)
        key_2 = key.transpose(2, 3)
        x = query / 6**0.5
        x = (x @ key_2).softmax(dim=-1).mean(-1, keepdim=True)
        x = (x * query).transpose(1, 2).flatten(2)
        x = self.linear(x)
        return x, key


class Sequences(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding1 = nn.Embedding(40, 12)
        self.weight1 = nn.Parameter(torch.randn(1, 9, 12) * 0.02)
        self.embedding2 = nn.Embedding(2, 12)
        self.layer_norm1 = nn.LayerNorm(12)
        self.attention1 = Attention()
        self.layer_norm2 = LayerNorm(12, eps=1e-12)
        self.body1 = nn.Sequential(
            RMSNorm(12, eps=1e-06),
            nn.Linear(12, 24),
            nn.GELU(),
            nn.Linear(24, 12),
        )
        self.attention2 = Attention()
        self.layer_norm3 = LayerNorm(12, eps=1e-12)
        self.body2 = nn.Sequential(
            RMSNorm(12, eps=1e-06),
            nn.Linear(12, 24),
            nn.GELU(approximate="tanh"),
            nn.Linear(24, 12),
        )
        self.tied_linear = nn.Linear(12, 40, bias=False)
        self.layers1 = nn.Sequential(
            LSTM(12, 5, biases=1),
            GRU(5, 4),
            GRU(4, 3, last=True, biases=0),
        )
        self.weight2 = nn.Parameter(torch.randn(1, 1, 12) * 0.02)
        self.lstm = LSTM(12, 4, last=True)
        self.flatten = nn.Flatten()
        self.sigmoid = nn.Sigmoid()
        self.layers2 = nn.Sequential(
            nn.Upsample(scale_factor=2),
            nn.Upsample(scale_factor=(1, 3), mode="bilinear"),
        )
        self.linear = nn.Linear(3, 3)
        self.tied_linear.weight = self.embedding1.weight

    def forward(self, tokens, types, memory):
        x = self.embedding1(tokens)
        x = x + self.weight1[:, :6] + self.embedding2(types)
        words = self.layer_norm1(x)
        x, key0 = self.attention1(words, memory[0])
        x = words + x
        x = self.layer_norm2(x)
        x = x + self.body1(x)
        y, key1 = self.attention2(x, memory[1])
        x = x + y
        x = self.layer_norm3(x)
        encoded = x + self.body2(x)
        logits = self.tied_linear(encoded)
        ends0 = self.layers1(encoded)
        x = torch.cat([self.weight2.expand(words.shape[0], -1, -1), words], dim=1)
        ends1 = self.lstm(x)
        x = encoded[:, types]
        x = x[:, -3::2][:, :, :1].reshape(-1, 2, 6)
        x = self.flatten(x)
        y = x * 3
        y = x - y
        x = torch.erf(x) / y
        y = x * x
        x = (y ** self.sigmoid(x)).unflatten(1, (3, 2, 2))
        x = self.layers2(x).mean((2, 3))
        summary = self.linear(x)
        return key0, key1, logits, ends0, ends1, summary


def build():
    """The network with fresh weights."""
    return Sequences()


if __name__ == "__main__":
    model = build().eval()
    inputs = dict(
        tokens=torch.randint(40, (1, 6)),
        types=torch.randint(2, (1, 6)),
        memory=[
            torch.randn(1, 2, 3, 6),
            torch.randn(1, 2, 4, 6),
        ],
    )
    with torch.no_grad():
        output = model(**inputs)
    parameters = sum(p.numel() for p in model.parameters() if p.requires_grad)
    shapes = ", ".join(str(tuple(y.shape)) for y in output)
    print(f"outputs {shapes}, {parameters:,} parameters")
