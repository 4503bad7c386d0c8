"""How long a PyTorch module takes on this machine, once it is deployed (Debian: python3-torch)."""
import hwnas
import torch


class Block(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Conv2d(3, width, 3, padding=1), torch.nn.BatchNorm2d(width),
                                          torch.nn.ReLU(), torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(),
                                          torch.nn.Linear(width, 10))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        return self.layers(image)


for width in (16, 64):
    measured = hwnas.latency(Block(width), torch.zeros(1, 3, 64, 64), threads=1, seconds=0.2)
    print(f"width {width}: {measured}{' because ' + measured.doubt if measured.doubt else ''}")
