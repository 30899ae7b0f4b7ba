"""What a classifier is: 8-bit images in, class probabilities out, with its preprocessing and its declared training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional

from blemish.types import InputError

__all__ = ["Classifier", "Preprocessing", "Training"]

Channels = Literal["rgb", "bgr", "gray"]
Layout = Literal["nchw", "nhwc", "flat"]
Output = Literal["logits", "probabilities"]

_LUMA = (0.299, 0.587, 0.114)


@dataclass(frozen=True)
class Preprocessing:
    """What a model does to images before its first layer: size, channel order, mean and standard deviation.

    ``mean`` and ``std`` are on the scale where white is 1; ``size`` is (height, width), by default that of the images.
    """

    size: tuple[int, int] | None = None
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    channels: Channels = "rgb"
    layout: Layout = "nchw"

    def __post_init__(self) -> None:
        """Refuse numbers that no model means."""
        count = 1 if self.channels == "gray" else 3
        for what, values in (("mean", self.mean), ("std", self.std)):
            if len(values) not in (1, count):
                raise InputError(f"{what} of {len(values)} values for {count} channels; expected 1 or {count}")
        if min(self.std) <= 0:
            raise InputError(f"std {self.std}; expected positive numbers")
        if self.size is not None and min(self.size) < 1:
            raise InputError(f"input size {self.size}; expected positive numbers")

    def __call__(self, images: Tensor) -> Tensor:
        """(B, C, H, W) of uint8 to what the model takes, float32, on the same device."""
        values = self._channels(images.to(torch.float32).div_(255))
        if self.size is not None and tuple(values.shape[-2:]) != self.size:
            smaller = self.size[0] < values.shape[-2]
            values = functional.interpolate(
                values, size=self.size, mode="bilinear", align_corners=False, antialias=smaller
            )
        mean = torch.tensor(self.mean, device=values.device).view(1, -1, 1, 1)
        std = torch.tensor(self.std, device=values.device).view(1, -1, 1, 1)
        values = (values - mean) / std
        if self.layout == "flat":
            return values.flatten(1)
        return values.permute(0, 2, 3, 1).contiguous() if self.layout == "nhwc" else values

    def _channels(self, values: Tensor) -> Tensor:
        if self.channels == "gray":
            luma = torch.tensor(_LUMA, device=values.device).view(1, 3, 1, 1)
            return values if values.shape[1] == 1 else (values * luma).sum(1, keepdim=True)
        colour = values if values.shape[1] == 3 else values.expand(-1, 3, -1, -1)
        return colour.flip(1) if self.channels == "bgr" else colour


@dataclass(frozen=True)
class Training:
    """What the user declares a model has seen in training: corruptions by name, augmentations in free words."""

    corruptions: tuple[str, ...] = ()
    augmentations: tuple[str, ...] = ()


@dataclass(frozen=True)
class Classifier:
    """A model that blemish can evaluate.

    ``forward`` takes what ``preprocessing`` makes and gives (B, classes) logits or probabilities. Of outputs with
    background classes in front, ``skip_classes`` are dropped. ``weights`` is a hash of everything that was learnt.
    """

    name: str
    kind: str
    forward: Callable[[Tensor], Tensor]
    weights: str
    preprocessing: Preprocessing = field(default_factory=Preprocessing)
    output: Output = "logits"
    skip_classes: int = 0
    training: Training = field(default_factory=Training)
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))

    @torch.inference_mode()
    def __call__(self, images: Tensor) -> Tensor:
        """Probabilities, float32 (B, classes), of a uint8 batch (B, C, H, W)."""
        scores = self.forward(self.preprocessing(images.to(self.device, non_blocking=True))).to(torch.float32)
        if scores.ndim != 2 or len(scores) != len(images):
            raise InputError(
                f"model {self.name}: output of shape {tuple(scores.shape)} for {len(images)} images; "
                "expected one row of class scores per image"
            )
        scores = scores[:, self.skip_classes :]
        return scores.softmax(1) if self.output == "logits" else scores

    def describe(self) -> dict[str, Any]:
        """What the header of records says of the model."""
        return {
            "name": self.name,
            "kind": self.kind,
            "weights": self.weights,
            "preprocessing": asdict(self.preprocessing),
            "output": self.output,
            "skip_classes": self.skip_classes,
            "training": asdict(self.training),
        }
