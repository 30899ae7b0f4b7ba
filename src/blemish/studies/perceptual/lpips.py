"""LPIPS with AlexNet, from weights that the user has (Zhang, Isola, Efros, Shechtman and Wang, CVPR 2018, version 0.1).

Distances of a network's features: each of five layers is scaled to length 1 at every place, differences are squared,
weighted by channel, averaged over places, and summed over layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from blemish.core.errors import InputError
from blemish.models.hashing import hash_state
from blemish.models.torch_module import read_safely

# The convolutions of AlexNet as torchvision numbers them: outputs, inputs, kernel, stride, padding, and whether the
# largest of 3 × 3 values, every second one, goes in.
_LAYERS = {
    0: (64, 3, 11, 4, 2, False),
    3: (192, 64, 5, 1, 2, True),
    6: (384, 192, 3, 1, 1, True),
    8: (256, 384, 3, 1, 1, False),
    10: (256, 256, 3, 1, 1, False),
}
# Of values in −1 … 1.
_SHIFT, _SCALE = (-0.030, -0.088, -0.188), (0.458, 0.448, 0.450)
_LEAST = 1e-10
_SIDE = 32


class Lpips:
    """The distance of each pair in two uint8 batches (B, C, H, W), float32 (B,); 0 for equal images."""

    def __init__(self, weights: Mapping[str, Tensor], device: torch.device) -> None:
        self.digest = hash_state(weights)
        self.device = device
        self._weights = {name: value.to(device) for name, value in weights.items()}

    @torch.inference_mode()
    def __call__(self, first: Tensor, second: Tensor) -> Tensor:
        """Both are made three channels where they have one."""
        if min(first.shape[-2:]) < _SIDE:
            size = f"{first.shape[-2]}×{first.shape[-1]}"
            raise InputError(f"images of {size} pixels; LPIPS needs at least {_SIDE}×{_SIDE}")
        total = torch.zeros(len(first), device=self.device)
        pairs = zip(self._features(first), self._features(second), strict=True)
        for number, (one, other) in enumerate(pairs):
            weights = self._weights[f"lin{number}.model.1.weight"].view(1, -1, 1, 1)
            total += ((one - other).square() * weights).sum(1).mean((-2, -1))
        return total

    def _features(self, images: Tensor) -> Iterator[Tensor]:
        values = images.to(self.device, torch.float32).div_(127.5).sub_(1).expand(-1, 3, -1, -1)
        shift, scale = (torch.tensor(numbers, device=self.device).view(1, 3, 1, 1) for numbers in (_SHIFT, _SCALE))
        values = (values - shift) / scale
        for layer, (_, _, _, stride, padding, pooled) in _LAYERS.items():
            values = F.max_pool2d(values, 3, 2) if pooled else values
            weight, bias = (self._weights[f"features.{layer}.{kind}"] for kind in ("weight", "bias"))
            values = F.relu(F.conv2d(values, weight, bias, stride=stride, padding=padding))
            yield values / (values.square().sum(1, keepdim=True).sqrt() + _LEAST)


def read_lpips(network: Path, linear: Path, *, device: torch.device) -> Lpips:
    """LPIPS of two files of weights: AlexNet's as torchvision publishes them, and the five layers of LPIPS itself."""
    expected: dict[str, tuple[int, ...]] = {}
    for layer, (outputs, inputs, kernel, *_) in _LAYERS.items():
        expected[f"features.{layer}.weight"] = (outputs, inputs, kernel, kernel)
        expected[f"features.{layer}.bias"] = (outputs,)
    lines = {f"lin{i}.model.1.weight": (1, outputs, 1, 1) for i, (outputs, *_) in enumerate(_LAYERS.values())}
    weights = _read(network, expected, "AlexNet's weights as torchvision has them")
    return Lpips({**weights, **_read(linear, lines, "the weights of LPIPS for AlexNet, version 0.1")}, device)


def _read(path: Path, expected: Mapping[str, tuple[int, ...]], what: str) -> dict[str, Tensor]:
    saved = read_safely(path)
    if not isinstance(saved, Mapping):
        raise InputError(f"{path}: holds a {type(saved).__name__}; expected {what}")
    for name, shape in expected.items():
        value = saved.get(name)
        if not isinstance(value, Tensor) or tuple(value.shape) != shape:
            held = f"of shape {tuple(value.shape)}" if isinstance(value, Tensor) else "missing"
            raise InputError(f"{path}: {name} is {held}, not {shape}; expected {what}")
    return {name: saved[name].to(torch.float32) for name in expected}
