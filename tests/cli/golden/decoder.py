"""decoder heads=242,tied=1

7,488 parameters, 15,680 multiply-accumulates for tokens of 2, mask of 1 x 2 x
7, 3 past_key.
Written by hwnas VERSION.
"""

import torch
from torch import nn


class Split(nn.Module):
    def __init__(self, in_features, heads):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Linear(in_features, 8 * heads),
            nn.Unflatten(2, (heads, 8)),
        )

    def forward(self, x):
        return self.stem(x).transpose(1, 2)


class Attention(nn.Module):
    def __init__(self, in_features, heads):
        super().__init__()
        self.layer_norm = nn.LayerNorm(in_features)
        self.split1 = Split(in_features, heads)
        self.split2 = Split(in_features, heads)
        self.linear = nn.Linear(8 * heads, 16)

    def forward(self, x, past_key, mask):
        x = self.layer_norm(x)
        key = self.split1(x)
        memory = torch.cat([past_key, key], dim=2)
        x = self.split2(x) / 8**0.5
        x = x @ memory.transpose(2, 3)
        x = (x + mask).softmax(dim=-1)
        x = (x @ memory).transpose(1, 2).flatten(2)
        x = self.linear(x)
        return x, key


class FeedForward(nn.Sequential):
    def __init__(self, in_features, hidden):
        super().__init__(
            nn.LayerNorm(in_features),
            nn.Linear(in_features, hidden),
            nn.GELU(approximate="tanh"),
            nn.Linear(hidden, 16),
        )


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        self.attention1 = Attention(16, 2)
        self.feed_forward1 = FeedForward(16, 16)
        self.attention2 = Attention(16, 4)
        self.feed_forward2 = FeedForward(16, 32)
        self.attention3 = Attention(16, 2)
        self.feed_forward3 = FeedForward(16, 48)
        self.layers = nn.Sequential(
            nn.LayerNorm(16),
            nn.Linear(16, 50, bias=False),
        )
        self.layers[1].weight = self.embedding.weight

    def forward(self, tokens, mask, past_key):
        x = self.embedding(tokens)
        y, key0 = self.attention1(x, past_key[0], mask)
        x = x + y
        x = x + self.feed_forward1(x)
        y, key1 = self.attention2(x, past_key[1], mask)
        x = x + y
        x = x + self.feed_forward2(x)
        y, key2 = self.attention3(x, past_key[2], mask)
        x = x + y
        x = x + self.feed_forward3(x)
        logits = self.layers(x)
        return key0, key1, key2, logits


def build():
    """The network with fresh weights."""
    return Decoder()


if __name__ == "__main__":
    model = build().eval()
    inputs = dict(
        tokens=torch.randint(50, (1, 2)),
        mask=torch.randn(1, 1, 2, 7),
        past_key=[
            torch.randn(1, 2, 5, 8),
            torch.randn(1, 4, 5, 8),
            torch.randn(1, 2, 5, 8),
        ],
    )
    with torch.no_grad():
        output = model(**inputs)
    parameters = sum(p.numel() for p in model.parameters())
    shapes = ", ".join(str(tuple(y.shape)) for y in output)
    print(f"outputs {shapes}, {parameters:,} parameters")
