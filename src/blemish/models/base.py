"""What a classifier is: 8-bit images in, class probabilities out, with its preprocessing and its declared training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from blemish.core.errors import InputError
from blemish.core.printable import as_text, first_few
from blemish.core.typed import optional_field
from blemish.core.types import check_dense, odd_kind
from blemish.models.card import ModelCard
from blemish.models.code import ending_refused
from blemish.models.prompts import PromptsInfo
from blemish.models.resizing import Resizing
from blemish.ops.fused import kernels_for

Channels = Literal["rgb", "bgr", "gray"]
Layout = Literal["nchw", "nhwc", "flat", "flat-chw"]
Output = Literal["logits", "probabilities"]

_SHOWN = 4

_LUMA = (0.299, 0.587, 0.114)

# Preprocessing is done in this type: what is infinite or zero in it is no number to divide by.
_FLOATS = torch.finfo(torch.float32)


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
    ``resizing`` is how the model's library brings pictures to its size; without it, values are resized bilinearly.
    """

    size: tuple[int, int] | None = None
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)
    channels: Channels = "rgb"
    layout: Layout = "nchw"
    levels: bool = False
    resizing: Resizing | None = optional_field()

    def __post_init__(self) -> None:
        """Refuse settings that no model means."""
        for setting, value, known in (("channels", self.channels, Channels), ("layout", self.layout, Layout)):
            if value not in get_args(known):
                raise InputError(f"{setting} {value!r}; expected {', '.join(get_args(known))}")
        count = 1 if self.channels == "gray" else 3
        for setting, values in (("mean", self.mean), ("std", self.std)):
            if not isinstance(values, Sequence):
                raise InputError(f"{setting} {values!r}; expected a tuple of numbers, such as (0.5,)")
            if len(values) not in (1, count):
                raise InputError(f"{setting} of {len(values)} values for {count} channels; expected 1 or {count}")
        if not all(abs(value) <= _FLOATS.max for value in self.mean):
            raise InputError(f"mean {self.mean}; expected finite numbers")
        if not all(_FLOATS.tiny <= value <= _FLOATS.max for value in self.std):
            raise InputError(f"std {self.std}; expected positive, finite numbers")
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
        if self.resizing is not None and self.size is not None:
            images = self.resizing(images, self.size)
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
        usual = self.channels == "rgb" and images.shape[1] == 3 and not self.levels and self.layout == "nchw"
        return usual and self.size in (None, tuple(images.shape[-2:]))

    @property
    def _scales(self) -> bool:
        return any(self.mean) or any(value != 1 for value in self.std)

    def _resized(self, values: Tensor) -> Tensor:
        height, width = values.shape[-2:]
        if self.size is None or self.size == (height, width):
            return values
        smaller = self.size[0] < height or self.size[1] < width
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

    def __post_init__(self) -> None:
        """Escape what result files cannot hold."""
        object.__setattr__(self, "augmentations", tuple(map(as_text, self.augmentations)))


@dataclass(frozen=True)
class ModelInfo:
    """What files say of a model: where it comes from, a digest of its weights, its preprocessing, and its training.

    ``outputs`` is how many classes it was seen to have, ``card`` what its source says of it, ``prompts`` what a
    zero-shot model was asked. `blemish.core.typed` tells how to say more.
    """

    name: str
    kind: str = ""
    weights: str = ""
    preprocessing: Preprocessing = field(default_factory=Preprocessing)
    output: str = ""
    skip_classes: int = 0
    training: Training | None = None
    outputs: int | None = optional_field()
    card: ModelCard | None = optional_field(compare=False)
    prompts: PromptsInfo | None = optional_field()


def logits_of(output: Any) -> Any:
    """The logits in what a module returned; anything without logits in it is given back as it is."""
    return output.get("logits", output) if isinstance(output, Mapping) else getattr(output, "logits", output)


def _kind_of(output: Any) -> str:
    """What something that is no tensor is; of several things, which, and what to do."""
    name = type(output).__name__
    if isinstance(output, Mapping):
        return f"{name} ({first_few([str(key) for key in output], _SHOWN)}), of which none is called logits"
    return f"{name} of {len(output)}" if isinstance(output, (tuple, list)) else name


def class_scores(model: str, output: Any, count: int) -> Tensor:
    """What a model gave for ``count`` images, in float32 (count, classes); anything but such scores is refused.

    Only kinds and shapes are looked at, for which nobody has to wait for the device.
    """
    if not isinstance(output, Tensor):
        raise InputError(f"{model}: output of type {_kind_of(output)}; expected a tensor of class scores")
    if odd := odd_kind(output) or (f"complex ({output.dtype})" if output.is_complex() else None):
        raise InputError(f"{model}: output that is {odd}; expected a plain tensor of real numbers, the class scores")
    if output.ndim != 2 or len(output) != count:
        raise InputError(
            f"{model}: output of shape {tuple(output.shape)} for {count} images; expected one row of class scores "
            "per image"
        )
    return output.to(torch.float32)


@dataclass(frozen=True)
class Classifier:
    """A model that blemish can evaluate.

    ``forward`` takes what ``preprocessing`` makes and gives (B, classes) logits or probabilities. Of outputs with
    background classes in front, ``skip_classes`` are dropped. ``weights`` is a hash of everything that was learnt.
    ``module`` is the torch module behind it, where there is one that can be trained on. ``reopen`` makes it anew on a
    device, in another process as well. ``assumed`` says what was assumed of its input, where it was not stated.
    ``classes`` are the names of its outputs, ``card`` what its source says of it, where they are known, and ``prompts``
    what a zero-shot model is asked.
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
    # How many outputs the first batch that was not refused had.
    _seen: list[int] = field(default_factory=list, init=False, repr=False, compare=False)
    reopen: Callable[[torch.device], Classifier] | None = field(default=None, repr=False, compare=False)
    assumed: str | None = field(default=None, repr=False, compare=False)
    classes: tuple[str, ...] | None = field(default=None, repr=False, compare=False)
    card: ModelCard | None = field(default=None, repr=False, compare=False)
    prompts: PromptsInfo | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Refuse settings that no model means; escape what result files cannot hold in the name."""
        object.__setattr__(self, "name", as_text(self.name))
        if self.output not in get_args(Output):
            raise InputError(f"model {self.name}: output {self.output!r}; expected {' or '.join(get_args(Output))}")
        if self.skip_classes < 0:
            raise InputError(f"model {self.name}: skip_classes {self.skip_classes}; expected 0 or more")

    @torch.inference_mode()
    def __call__(self, images: Tensor) -> Tensor:
        """Probabilities, float32 (B, classes), of a uint8 batch (B, C, H, W)."""
        check_dense(images, f"model {self.name}: images")
        values = self.preprocessing(images.to(self.device, non_blocking=True))
        with ending_refused(f"model {self.name}"):
            output = self.forward(values)
        return self._probabilities(class_scores(f"model {self.name}", output, len(images)))

    @property
    def outputs_seen(self) -> int | None:
        """How many outputs it has had so far for each image, background classes too; None before the first batch."""
        return self._seen[0] if self._seen else None

    def _probabilities(self, scores: Tensor) -> Tensor:
        outputs = scores.shape[1]
        if outputs <= self.skip_classes:
            raise InputError(f"model {self.name}: skip_classes {self.skip_classes} of {outputs} classes")
        if outputs != (self.outputs_seen or outputs):
            raise InputError(
                f"model {self.name}: {outputs} classes for a batch of {len(scores)} images, {self.outputs_seen} for "
                "those before; expected as many for all"
            )
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
        if scores.device.type == "cuda" and self._seen:
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
        if not self._seen:  # a batch that was refused says nothing of the next
            self._seen.append(scores.shape[1])

    def describe(self, outputs: int | None = None) -> ModelInfo:
        """What files say of the model; ``outputs`` is how many classes it has, where that is known."""
        return ModelInfo(
            self.name,
            self.kind,
            self.weights,
            self.preprocessing,
            self.output,
            self.skip_classes,
            self.training,
            outputs,
            self.card,
            self.prompts,
        )
