"""What a corruption is: a severity table, a draw and an apply; and the one call that validates, draws and quantises."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from blemish.core.errors import InputError, brief
from blemish.core.rng import CounterRng, image_ids
from blemish.core.types import Shape, check_dense
from blemish.corruptions.precision import full_precision
from blemish.corruptions.severity import (
    MAX_SEVERITY,
    PUBLISHED_SIDE,
    Params,
    SeverityTable,
    is_truth,
    severity_text,
)
from blemish.ops.fused import kernels_for
from blemish.ops.levels import as_levels, truncated, unit_range
from blemish.ops.transfer import to_device

__all__ = [
    "MIN_SIDE",
    "Corruption",
    "Files",
    "as_severities",
    "check_images",
    "no_draw",
    "per_image",
    "quantise",
    "side_scale",
]

MIN_SIDE = 8

# Float32 noise must not turn a value that is a whole grey level into the level below when it is truncated.
_SLACK = 2.0**-12

# Severities below this count as 0: parameters such as photons per image would leave the range of floats.
_NEGLIGIBLE = 1e-6

# Values per call of apply. On the CPU a chunk should stay in the cache; on a GPU it only has to fit.
_CPU_CHUNK = 2**20
_GPU_CHUNK = 2**28


def per_image(values: Tensor, images: Tensor) -> Tensor:
    """One parameter per image as (B, 1, 1, 1) float32 beside the images."""
    return to_device(values, images.device, torch.float32).view(-1, 1, 1, 1)


def side_scale(height: int, width: int) -> float:
    """What a pixel of the published size measures in an image of this size: the shorter side counts."""
    return min(height, width) / PUBLISHED_SIDE


def quantise(images: Tensor) -> Tensor:
    """Float images in [0, 1] to uint8 by truncation, as the reference does; overwrites its input."""
    fused = kernels_for(images.device)
    if fused is not None:
        levels: Tensor = fused.quantised(images, _SLACK)
        return levels
    slack = torch.full((), _SLACK, device=images.device, dtype=torch.float32)
    return truncated(torch.add(slack, images, alpha=255, out=images).clamp_(0, 255))


def no_draw(shape: Shape, params: Params, rng: CounterRng) -> tuple[()]:
    """The draw of a corruption without randomness."""
    return ()


class Files(Protocol):
    """Files that pixels are made of. ``kind`` is what protocols call them, and is known where they are not."""

    @property
    def kind(self) -> str:
        """What they are, in a word."""

    @property
    def note(self) -> str | None:
        """What is to be said of numbers that are measured with them; nothing of the reference's own files."""

    def check(self) -> None:
        """Refuse where they are missing, with how to get them."""


@dataclass(frozen=True)
class Corruption:
    """A named corruption of images.

    ``draw(shape, params, rng)`` makes the random part for a batch, ``apply(images, params, draw)`` is deterministic.
    Both see one parameter value per image. ``apply`` takes and returns float32 in [0, 1] (results may leave the range:
    quantising clips), or uint8 when ``uint8_io`` is set; it must not write to its input unless ``uint8_io`` is
    unset, in which case the images are its own to overwrite.

    ``severities`` are those it was published with: numbers, or "1-5" for one drawn from that range for every image;
    ``source`` says where. Parameters in ``shared`` are equal within one call. Where lower severities have no meaning,
    ``only_severity`` names the one there is, besides 0. ``stream`` names the random streams if they are another
    corruption's. ``files`` are needed for any pixel; ``variant_of`` names the corruption that it imitates, beside
    which it is left out of what is meant by default.
    """

    name: str
    family: str
    description: str
    table: SeverityTable
    apply: Callable[[Tensor, Params, Any], Tensor]
    draw: Callable[[Shape, Params, CounterRng], Any] = no_draw
    _: KW_ONLY
    severities: Sequence[float] | str = (1, 2, 3, 4, 5)
    source: str = ""
    shared: tuple[str, ...] = ()
    only_severity: float | None = None
    uint8_io: bool = False
    version: int = 1
    stream: str | None = None
    files: Files | None = None
    variant_of: str | None = None

    def __call__(
        self,
        images: Tensor,
        *,
        severity: float | Sequence[float] | Tensor,
        seed: int = 0,
        ids: Iterable[int] | Tensor | None = None,
        preset: str | None = None,
    ) -> Tensor:
        """Corrupt a (B, C, H, W) batch of uint8, or of float in [0, 1]; the result has the same type, shape and device.

        Float images are first rounded to the nearest of the 256 grey levels, so that the type of the input cannot
        matter, and results lie on these levels, as published sets do. Severity 0 returns the image unchanged, bit for
        bit. ``ids`` default to 0 … B − 1 and, with the seed, decide every random draw.
        """
        check_images(images)
        levels = as_severities(severity, len(images))
        if self.only_severity is not None:
            for level in levels.tolist():
                self.require(level)
        numbers = image_ids(ids, len(images))
        preset = preset or self.table.preset(*images.shape[-2:])
        with full_precision(images.device):
            params = self.table.at(levels, preset)
            out = torch.empty_like(images) if bool((levels > 0).all()) else images.clone()
            for rows in self._parts(images, levels, params):
                part = {name: values[rows] for name, values in params.items()}
                rng = CounterRng(seed, numbers[rows], self.stream or self.name, images.device)
                result = self.render(images[rows], part, self.draw(Shape.of(images), part, rng))
                out[rows] = result if out.dtype == torch.uint8 else unit_range(result).to(out.dtype)
        return out

    def supports(self, severity: float) -> bool:
        """Whether the corruption exists at this severity."""
        return self.only_severity in (None, severity) or severity == 0

    def require(self, severity: float) -> None:
        """Refuse a severity at which the corruption does not exist."""
        if not self.supports(severity):
            only = severity_text(self.only_severity or 0)
            raise InputError(f"{self.name} at severity {severity_text(severity)}; it exists at severity {only} only")

    def check_files(self) -> None:
        """Refuse to begin where files that the pixels are made of are missing."""
        if self.files is not None:
            self.files.check()

    def render(self, images: Tensor, params: Params, draw: Any) -> Tensor:
        """The uint8 result for a given draw: this library's, or one recorded from a reference."""
        levels = as_levels(images)
        if self.uint8_io:
            return self.apply(levels, params, draw)
        return quantise(self.apply(unit_range(levels), params, draw))

    def _parts(self, images: Tensor, levels: Tensor, params: Params) -> Iterator[slice | Tensor]:
        """Index the images to be changed, in parts that share the ``shared`` parameters and suit the device."""
        room = _CPU_CHUNK if images.device.type == "cpu" else _GPU_CHUNK
        size = max(1, room // images[0].numel())
        changed = levels > 0
        if bool(changed.all()) and all(bool((params[name] == params[name][0]).all()) for name in self.shared):
            yield from (slice(i, i + size) for i in range(0, len(images), size))
            return
        index = changed.nonzero().flatten()
        groups = [index]
        if self.shared:
            values = np.stack([params[name][index].numpy() for name in self.shared], axis=1)
            _, inverse = np.unique(values, axis=0, return_inverse=True)
            numbers = torch.from_numpy(inverse.ravel())
            groups = [index[numbers == number] for number in range(int(inverse.max(initial=-1)) + 1)]
        for members in groups:
            yield from (members[i : i + size] for i in range(0, len(members), size))


def check_images(images: Tensor) -> None:
    """Refuse anything but a batch of images that can be corrupted."""
    check_dense(images, "images")
    if images.ndim != 4:
        raise InputError(f"images of shape {tuple(images.shape)}; expected (batch, channels, height, width)")
    batch, channels, height, width = images.shape
    if batch == 0:
        raise InputError("an empty batch; expected at least one image")
    if channels not in (1, 3):
        raise InputError(f"images with {channels} channels (shape {tuple(images.shape)}); expected 1 or 3")
    if min(height, width) < MIN_SIDE:
        raise InputError(f"images of {height}×{width} pixels; expected at least {MIN_SIDE}×{MIN_SIDE}")
    if images.dtype == torch.uint8:
        return
    if not images.dtype.is_floating_point:
        raise InputError(f"images of type {images.dtype}; expected uint8, or float in [0, 1]")
    low, high = (float(v) for v in images.detach().aminmax())
    if not (low >= 0 and high <= 1):
        values = "not-a-number values" if low != low or high != high else f"values in [{low:g}, {high:g}]"
        raise InputError(f"float images with {values}; expected all in [0, 1] (divide 0–255 levels by 255)")


def as_severities(severity: float | Sequence[float] | Tensor, count: int) -> Tensor:
    """A severity for each of ``count`` images, float64 on the CPU, from one for all or one for each; checked."""
    if isinstance(severity, Tensor):
        check_dense(severity, "severities")
    if _misleading(severity):
        raise _no_severity(severity)
    try:
        levels = torch.as_tensor(severity, dtype=torch.float64, device="cpu").detach()
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise _no_severity(severity) from error
    if levels.ndim == 0:
        levels = levels.expand(count)
    if levels.shape != (count,):
        raise InputError(f"severities of shape {tuple(levels.shape)} for {count} images; expected one per image")
    wrong = ~((levels >= 0) & (levels <= MAX_SEVERITY))
    if bool(wrong.any()):
        first = severity_text(levels[wrong][0].item())
        raise InputError(f"severity {first}; expected a number in 0 … {MAX_SEVERITY}")
    return torch.where(levels < _NEGLIGIBLE, 0.0, levels)


def _no_severity(severity: object) -> InputError:
    return InputError(f"severity {brief(severity)}; expected a number in 0 … {MAX_SEVERITY}, or one per image")


def _misleading(severity: float | Sequence[float] | Tensor) -> bool:
    """Whether there are truths or complex numbers: torch would take true for 1 and drop the imaginary part."""
    if isinstance(severity, Tensor | np.ndarray):
        return is_truth(severity) or torch.as_tensor(severity).is_complex()
    return any(map(is_truth, severity if isinstance(severity, Sequence) else [severity]))
