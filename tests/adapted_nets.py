"""A small network, images, and settings with which every adaptation method has something to do."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from blemish.models.base import Preprocessing
from blemish.studies.adaptation.base import Levels, Method, Optimiser
from blemish.studies.adaptation.methods import make_method

CLASSES = 4
FAST = Optimiser("sgd", 0.1)


def small_net(norm: str = "batch") -> nn.Module:
    torch.manual_seed(0)
    layers: dict[str, nn.Module] = {"batch": nn.BatchNorm2d(6), "group": nn.GroupNorm(2, 6), "none": nn.Identity()}
    net = nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1), layers[norm], nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Dropout(0.5)
    )
    net.append(nn.Linear(24, CLASSES))
    nn.init.normal_(net[-1].weight, std=2.0)
    if norm == "batch":
        net[1].running_mean.normal_(0, 0.2)
        net[1].running_var.uniform_(0.5, 1.5)
    return Levels(net, Preprocessing(mean=(0.5,), std=(0.25,))).eval()


def images(seed: int = 0, count: int = 16) -> Tensor:
    return torch.randint(0, 256, (count, 3, 12, 12), dtype=torch.uint8, generator=torch.Generator().manual_seed(seed))


class Plain:
    """The small network as bare arithmetic: convolution, batch norm by given rules, pooling, linear layer."""

    def __init__(self, levels: nn.Module) -> None:
        net = levels.network
        self.conv, self.norm, self.head = net[0], net[1], net[6]
        self.weight = self.norm.weight.detach().clone().requires_grad_(True)
        self.bias = self.norm.bias.detach().clone().requires_grad_(True)

    def __call__(self, x: Tensor, *, share: float = 1.0, unbiased: bool = False, statistics: object = None) -> Tensor:
        y = F.conv2d((x.to(torch.float32) / 255 - 0.5) / 0.25, self.conv.weight, self.conv.bias, padding=1)
        flat = y.transpose(0, 1).flatten(1)
        mean, variance = flat.mean(1), flat.var(1, unbiased=unbiased)
        before = (self.norm.running_mean, self.norm.running_var) if statistics is None else statistics
        mean = share * mean + (1 - share) * before[0]  # type: ignore[index]
        variance = share * variance + (1 - share) * before[1]  # type: ignore[index]
        self.moved = mean.detach(), variance.detach()
        y = (y - mean[:, None, None]) / (variance[:, None, None] + self.norm.eps).sqrt()
        y = F.relu(y * self.weight[:, None, None] + self.bias[:, None, None])
        return F.adaptive_avg_pool2d(y, 2).flatten(1) @ self.head.weight.T + self.head.bias


def norms(method: object) -> tuple[Tensor, Tensor]:
    layer = method.model.network[1]  # type: ignore[attr-defined]
    return layer.weight.detach(), layer.bias.detach()


# Settings with which every method has something to do on this small network.
CHANGES = {
    "tent": {"optimiser": FAST},
    "rpl": {"optimiser": FAST},
    "cpl": {"optimiser": FAST},
    "eta": {"optimiser": FAST, "margin": 0.9, "similarity": 2.0},
    "eata": {"optimiser": FAST, "margin": 0.9, "similarity": 2.0},
    "rdumb": {"optimiser": FAST, "margin": 0.9, "similarity": 2.0, "every": 3},
    "sar": {"optimiser": FAST, "margin": 0.9, "recover": 0.0},
    "deyo": {"optimiser": FAST, "margin": 0.9, "drop": -0.5},
    "roid": {"optimiser": FAST},
    "cmf": {"optimiser": FAST, "noise": 50.0},
    "asr": {"optimiser": Optimiser("sgd", 0.01), "margin": 0.9, "similarity": 2.0, "first": 0.2501, "momentum": 0.01},
    "rotta": {"optimiser": FAST, "room": 12, "every": 10, "follow": 0.3, "momentum": 0.3},
    "memo": {"views": 4, "rate": 0.1},
    "note": {"optimiser": FAST, "room": 12, "every": 10, "momentum": 0.3},
    "rmt": {"optimiser": FAST, "decay": 0.9},
    "adacontrast": {"rate": 0.1, "room": 40, "neighbours": 3, "first": 30, "decay": 0.9},
    "cotta": {"optimiser": FAST, "confident": 0.99, "views": 4, "restore": 0.1, "decay": 0.9},
}


def made(name: str, model: nn.Module | None = None) -> Method:
    return make_method(name, model or small_net(), clean=[images(90), images(91)], **CHANGES.get(name, {}))


def parameters(method: Method) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in method.model.named_parameters()}  # type: ignore[attr-defined]
