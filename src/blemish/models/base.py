"""What a classifier is: 8-bit images in, class probabilities out, with its preprocessing and its declared training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from blemish.kernels import kernels_for
from blemish.types import InputError

__all__ = ["Classifier", "Preprocessing", "Training"]

Channels = Literal["rgb", "bgr", "gray"]
Layout = Literal["nchw", "nhwc", "flat", "flat-chw"]
Output = Literal["logits", "probabilities"]

_LUMA = (0.299, 0.587, 0.114)


@lru_cache(maxsize=64)
def _constant(values: tuple[float, ...], device: torch.device) -> Tensor:
    """A number per channel. Sent to a device once: sending waits for what is queued there."""
    with torch.inference_mode(False):  # or no gradient could ever pass it
        return torch.tensor(values, device=device).view(1, -1, 1, 1)


@dataclass(frozen=True)
class Preprocessing:
    """What a model does to images before its first layer: size, channel order, mean and standard deviation.

    ``mean`` and ``std`` are on the scale where white is 1; ``size`` is (height, width), by default that of the images.
    Layout ``flat`` is one row of numbers per image, in the order of a NumPy picture (height, width, channels);
    ``flat-chw`` has one channel after the other. With ``levels`` the model takes the 8-bit levels themselves, as uint8.
    """

    size: tuple[int, int] | None = None
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    channels: Channels = "rgb"
    layout: Layout = "nchw"
    levels: bool = False

    def __post_init__(self) -> None:
        """Refuse settings that no model means."""
        for what, value, known in (("channels", self.channels, Channels), ("layout", self.layout, Layout)):
            if value not in get_args(known):
                raise InputError(f"{what} {value!r}; expected {', '.join(get_args(known))}")
        count = 1 if self.channels == "gray" else 3
        for what, values in (("mean", self.mean), ("std", self.std)):
            if len(values) not in (1, count):
                raise InputError(f"{what} of {len(values)} values for {count} channels; expected 1 or {count}")
        if min(self.std) <= 0:
            raise InputError(f"std {self.std}; expected positive numbers")
        if self.size is not None and min(self.size) < 1:
            raise InputError(f"input size {self.size}; expected positive numbers")
        if self.levels and self._scales:
            raise InputError(f"mean {self.mean}, std {self.std} of a model that takes 8-bit levels; expected neither")

    def __call__(self, images: Tensor) -> Tensor:
        """(B, C, H, W) of uint8 to what the model takes, float32 or uint8, on the same device."""
        fused = kernels_for(images.device)
        if fused is not None and self._plain(images):
            constants = (_constant(values, images.device).flatten() for values in (self.mean, self.std))
            normalised: Tensor = fused.normalised(images, *constants)
            return normalised
        values = self._resized(self._channels(images.to(torch.float32).div_(255)))
        if self.levels:
            values = values.mul(255).round_().to(torch.uint8)
        elif self._scales:
            values = (values - _constant(self.mean, values.device)).div_(_constant(self.std, values.device))
        if self.layout in ("nhwc", "flat"):
            values = values.permute(0, 2, 3, 1).contiguous()
        return values.flatten(1) if self.layout.startswith("flat") else values

    def _plain(self, images: Tensor) -> bool:
        """Whether all there is to do is to normalise."""
        there = self.channels == "rgb" and images.shape[1] == 3 and not self.levels and self.layout == "nchw"
        return there and (self.size is None or tuple(images.shape[-2:]) == self.size)

    @property
    def _scales(self) -> bool:
        return any(self.mean) or any(value != 1 for value in self.std)

    def _resized(self, values: Tensor) -> Tensor:
        here = values.shape[-2:]
        if self.size is None or tuple(here) == self.size:
            return values
        smaller = self.size[0] < here[0] or self.size[1] < here[1]
        return functional.interpolate(values, size=self.size, mode="bilinear", align_corners=False, antialias=smaller)

    def _channels(self, values: Tensor) -> Tensor:
        if self.channels == "gray":
            return values if values.shape[1] == 1 else (values * _constant(_LUMA, values.device)).sum(1, keepdim=True)
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
    ``module`` is the torch module behind it, where there is one that can be trained on. ``reopen`` makes it anew on a
    device, in another process as well.
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
    module: nn.Module | None = field(default=None, repr=False, compare=False)
    _looked: list[bool] = field(default_factory=list, init=False, repr=False, compare=False)
    reopen: Callable[[torch.device], Classifier] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse settings that no model means."""
        if self.output not in get_args(Output):
            raise InputError(f"model {self.name}: output {self.output!r}; expected {' or '.join(get_args(Output))}")
        if self.skip_classes < 0:
            raise InputError(f"model {self.name}: skip_classes {self.skip_classes}; expected 0 or more")

    @torch.inference_mode()
    def __call__(self, images: Tensor) -> Tensor:
        """Probabilities, float32 (B, classes), of a uint8 batch (B, C, H, W)."""
        scores = self.forward(self.preprocessing(images.to(self.device, non_blocking=True)))
        if not isinstance(scores, Tensor):
            raise InputError(
                f"model {self.name}: output of type {type(scores).__name__}; expected a tensor of class scores"
            )
        return self._probabilities(scores.to(torch.float32), images)

    def _probabilities(self, scores: Tensor, images: Tensor) -> Tensor:
        if scores.ndim != 2 or len(scores) != len(images):
            raise InputError(
                f"model {self.name}: output of shape {tuple(scores.shape)} for {len(images)} images; "
                "expected one row of class scores per image"
            )
        if scores.shape[1] <= self.skip_classes:
            raise InputError(f"model {self.name}: skip_classes {self.skip_classes} of {scores.shape[1]} classes")
        self._check(scores)
        scores = scores[:, self.skip_classes :]
        if self.output == "logits":
            return scores.softmax(1)
        # What is left after the background classes, as if they did not exist: the same as for logits.
        return scores / scores.sum(1, keepdim=True).clamp_min(1e-12) if self.skip_classes else scores

    def _check(self, scores: Tensor) -> None:
        """Refuse scores that cannot be ranked, or are of the other kind, whose confidences would be wrong.

        Looking waits for the device, so on a GPU only the first batch is looked at; what is not a number later shows in
        the confidences.
        """
        if scores.device.type == "cuda" and self._looked:
            return
        if not bool(scores.isfinite().all()):
            raise InputError(f"model {self.name}: scores that are infinite or not a number; expected finite ones")
        in_range = float(scores.min()) >= -1e-3 and float(scores.max()) <= 1 + 1e-3
        if self.output == "probabilities" and not in_range:
            raise InputError(f"model {self.name}: scores outside 0 … 1; they are logits: set output to logits")
        if self.output == "logits" and in_range and float((scores.sum(1) - 1).abs().max()) < 1e-3:
            raise InputError(
                f"model {self.name}: scores in 0 … 1 that sum to 1; they are probabilities: set output to probabilities"
            )
        if not self._looked:  # a batch that was refused says nothing of the next
            self._looked.append(True)

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
