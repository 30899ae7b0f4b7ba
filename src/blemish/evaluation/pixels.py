"""Pixels on their way to a model: cropped, stored, or as the frames of sequences; and distances of frames."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from blemish.benchmarks.benchmark import Protocol
from blemish.benchmarks.condition import Condition
from blemish.core.errors import InputError
from blemish.core.types import Square
from blemish.ops.jpeg import jpeg_round_trip
from blemish.ops.pillow import squared

_JPEG_QUALITY = 85.0


def as_stored(images: Tensor, storage: str) -> Tensor:
    """Images as they come back from the disk: unchanged, or through JPEG of quality 85."""
    if storage == "raw":
        return images
    return jpeg_round_trip(images, torch.full((len(images),), _JPEG_QUALITY, dtype=torch.float64))


def centre(images: Tensor, side: int | Square) -> Tensor:
    """The centre square, placed as torchvision's CenterCrop does; or the square that images are brought to."""
    if isinstance(side, Square):
        return squared(images, side)
    height, width = images.shape[-2:]
    if side > min(height, width):
        raise InputError(f"images of {height}×{width} pixels are too small for a crop of {side}×{side}")
    top, left = round((height - side) / 2), round((width - side) / 2)
    return images[..., top : top + side, left : left + side]


def frame_probabilities(
    model: Callable[[Tensor], Tensor],
    condition: Condition,
    images: Tensor,
    ids: Tensor,
    protocol: Protocol,
    crop: int | Square | None,
    size: int,
) -> Iterator[Tensor]:
    """The model's output for each frame; frames of few images are classified together, ``size`` images at most."""
    sequence = condition.sequence()
    difficulty = int(condition.steps[0].low)
    frames = sequence.frames(
        images, seed=protocol.seed, ids=ids, difficulty=difficulty, preset=protocol.preset, crop=crop
    )
    waiting: list[Tensor] = []
    together = max(1, size // len(images))
    for frame in frames:
        waiting.append(as_stored(frame, protocol.storage))
        if len(waiting) == together:
            yield from torch.split(model(torch.cat(waiting)), len(images))
            waiting = []
    if waiting:
        yield from torch.split(model(torch.cat(waiting)), len(images))


def compared_with(condition: Condition, index: int) -> int | None:
    """The frame that a frame is compared with: the first in a noise sequence, else the one before on its stride."""
    step = index if condition.sequence().noise else int(condition.steps[0].low)
    return index - step if index >= step > 0 else None


def ranks_of(probabilities: Tensor) -> Tensor:
    """The rank of every class, from 1; ties go to the lower class number."""
    order = torch.sort(probabilities, dim=1, descending=True, stable=True).indices
    numbers = torch.arange(1, order.shape[1] + 1, device=order.device, dtype=torch.float32).expand_as(order)
    return torch.empty_like(numbers).scatter_(1, order, numbers)


def zipf_distance(first: Tensor, second: Tensor) -> Tensor:
    """Σ |1/r₁ − 1/r₂| / r₁ over all classes, as the evaluator of ImageNet-P prints it."""
    return ((1 / first - 1 / second).abs() / first).sum(1)
