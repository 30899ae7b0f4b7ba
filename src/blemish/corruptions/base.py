"""What a corruption is: a severity table, a draw and an apply; and the one call that validates, draws and quantises."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from blemish.core.errors import InputError
from blemish.core.rng import CounterRng, check_seed, image_ids
from blemish.core.types import Shape
from blemish.corruptions.at_once import AtOnce, Numbers, alike, as_planes, for_each, make_parts
from blemish.corruptions.files import Files
from blemish.corruptions.inputs import as_severities, check_images, plain_severity
from blemish.corruptions.moves import Moves
from blemish.corruptions.precision import eagerly, full_precision
from blemish.corruptions.severity import (
    PUBLISHED_SIDE,
    Params,
    SeverityTable,
    severity_text,
)
from blemish.ops.codecs import Codec
from blemish.ops.compiled import compiled
from blemish.ops.compiled.threads import Shared, shares
from blemish.ops.fused import fused, kernels_for
from blemish.ops.levels import as_levels, empty_like, truncated, unit_range
from blemish.ops.positions import Positions, joined
from blemish.ops.transfer import to_device

__all__ = [
    "AtOnce",
    "Corruption",
    "Files",
    "Numbers",
    "alike",
    "as_planes",
    "no_draw",
    "per_image",
    "quantise",
    "side_scale",
]

# Float32 noise must not turn a value that is a whole grey level into the level below when it is truncated.
_SLACK = 2.0**-12

# Pixels for which a compiled corruption draws whole fields at once: they should stay in the cache. The C library gives
# much larger blocks back to the system each time they are freed, and to get them anew took as long as the rest of fog.
_FIELDS = 16 * 224 * 224

# Values per call of apply. On the CPU a chunk should stay in the cache; on a GPU it only has to fit.
_CPU_CHUNK = 2**20
_GPU_CHUNK = 2**28


def _slices(count: int, size: int) -> list[slice | Tensor]:
    return [slice(i, min(i + size, count)) for i in range(0, count, size)]


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
    corruption's. ``at_once`` makes the same pixels faster. ``files`` are needed for any pixel; ``variant_of`` names
    the corruption that it imitates, beside which it is left out of what is meant by default. ``moves`` says whether
    pixels stay where they are, for labels that stand for places; None says nothing.
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
    moves: Moves | None = field(default=None, compare=False)
    at_once: AtOnce | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Keep compiled kernels beside the functions whose pixels they make: `dataclasses.replace` may bring others."""
        own = (self.apply, self.draw, self.uint8_io)
        if self.at_once is not None and self.at_once.instead_of != own:
            kept = self.at_once._replace(instead_of=own) if self.at_once.instead_of is None else None
            object.__setattr__(self, "at_once", kept)

    @eagerly
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
        numbers = image_ids(ids, images.shape[0])
        if self.at_once is not None:
            kernels = fused(self.at_once.kernels, images.device)
            arrays = kernels is None
            if arrays and images.is_cpu:
                kernels = compiled(self.at_once.kernels)
            asked = (arrays, images, severity, check_seed(seed), numbers, preset)
            made = None if kernels is None else self._made_at_once(kernels, *asked)
            if made is not None:
                return made
        levels = self._severities(severity, len(images))
        preset = preset or self.table.preset(*images.shape[-2:])
        with full_precision(images.device):
            params = self.table.at(levels, preset)
            out = empty_like(images) if bool((levels > 0).all()) else empty_like(images).copy_(images)
            for rows in self._parts(levels, params, self._room(images)):
                part = {name: values[rows] for name, values in params.items()}
                rng = CounterRng(seed, numbers[rows], self.stream or self.name, images.device)
                result = self.render(images[rows], part, self.draw(Shape.of(images), part, rng))
                if self._is_all(result, rows, images):
                    return result
                out[rows] = result if out.dtype == torch.uint8 else unit_range(result).to(out.dtype)
        return out

    def _severities(self, severity: float | Sequence[float] | Tensor, count: int) -> Tensor:
        levels = as_severities(severity, count)
        if self.only_severity is not None:
            for level in levels.tolist():
                self.require(level)
        return levels

    @staticmethod
    def _is_all(result: Tensor, rows: slice | Tensor, images: Tensor) -> bool:
        """Whether a result needs no copy to be what a call returns."""
        whole = isinstance(rows, slice) and len(result) == len(images)
        alone = images.dtype == torch.uint8 and result.data_ptr() != images.data_ptr()
        return whole and alone and images.is_contiguous() and result.is_contiguous()

    def _made_at_once(
        self,
        kernels: Any,
        arrays: bool,
        images: Tensor,
        severity: float | Sequence[float] | Tensor,
        seed: int,
        numbers: Tensor,
        preset: str | None,
    ) -> Tensor | None:
        """What a call returns, by kernels, on a CPU with a share of the images for each thread; None if they cannot."""
        assert self.at_once is not None
        count, _, height, width = images.shape
        one = plain_severity(severity)
        if one is not None:
            self.require(one)
            values = self.table.numbers(one, height, width, preset)
            if one == 0:
                return images.detach().clone()
            asked = params = for_each(values, count)
            most = None if self.at_once.draws_little else max(1, _FIELDS // (height * width))
            parts: list[slice | Tensor] = [*shares(count, most)] if arrays else _slices(count, self._room(images))
            if arrays and self.at_once.draws_little and len(parts) > 1:
                kernels, parts = Shared(kernels), [slice(0, count)]
        else:
            levels = self._severities(severity, count)
            with full_precision(images.device):
                known = self.table.at(levels, preset or self.table.preset(height, width))
                size = -(-count // torch.get_num_threads()) if arrays else self._room(images)
                parts = [*self._parts(levels, known, size)]
            params = {name: column.numpy() for name, column in known.items()}
            asked = {name: values[levels.numpy() > 0] for name, values in params.items()}
        if not self.at_once.suits(asked, height, width):
            return None
        rng = CounterRng(seed, numbers, self.stream or self.name, images.device)
        out = empty_like(images) if one is not None else empty_like(images).copy_(images.detach())
        make_parts(self.at_once, kernels, images, out, params, parts, rng, arrays=arrays)
        return out

    def positions(
        self,
        images: Tensor,
        *,
        severity: float | Sequence[float] | Tensor,
        seed: int = 0,
        ids: Iterable[int] | Tensor | None = None,
        preset: str | None = None,
    ) -> list[Positions]:
        """Where the pixels of what a call returns come from: maps that follow one another; none where none is known.

        From the same draws, on the CPU. Of the images only the shape counts.
        """
        if self.moves is None or self.moves.maps is None:
            return []
        shape = Shape.of(images)
        like = torch.zeros((), dtype=torch.uint8 if self.uint8_io else torch.float32).expand(len(images), *shape)
        numbers = image_ids(ids, len(images))
        levels = self._severities(severity, len(images))
        made: list[list[tuple[Tensor, Positions]]] = []
        with full_precision(like.device):
            params = self.table.at(levels, preset or self.table.preset(shape.height, shape.width))
            for rows in self._parts(levels, params, self._room(like)):
                part = {name: values[rows] for name, values in params.items()}
                rng = CounterRng(seed, numbers[rows], self.stream or self.name, like.device)
                maps = self.moves.maps(like[rows], part, self.draw(shape, part, rng))
                made.append([(torch.arange(len(images))[rows], single) for single in maps])
        return [joined(parts, len(images), shape.height, shape.width) for parts in zip(*made, strict=True)]

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

    def _room(self, images: Tensor) -> int:
        """How many images are worked on at a time; a program that does the work has memory of its own."""
        cached = images.device.type == "cpu" and not isinstance(self.files, Codec)
        return max(1, (_CPU_CHUNK if cached else _GPU_CHUNK) // images[0].numel())

    def _parts(self, levels: Tensor, params: Params, size: int) -> Iterator[slice | Tensor]:
        """Index the images to be changed, in parts of up to ``size`` that share the ``shared`` parameters."""
        changed = levels > 0
        if bool(changed.all()) and all(bool((params[name] == params[name][0]).all()) for name in self.shared):
            yield from _slices(len(levels), size)
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
