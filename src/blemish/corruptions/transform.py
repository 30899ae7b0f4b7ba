"""Corrupting images of any kind: torch tensors, NumPy arrays and PIL pictures in, the same kind out."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from blemish.core.errors import InputError
from blemish.core.rng import as_ids, check_seed, image_ids
from blemish.core.types import check_dense
from blemish.corruptions.base import Corruption
from blemish.corruptions.catalog import Catalog, catalog
from blemish.corruptions.inputs import MIN_SIDE, as_severities, check_images
from blemish.corruptions.severity import SeverityTable, check_severity, severity_text
from blemish.ops.layout import channels_first, channels_last
from blemish.ops.levels import as_levels

__all__ = ["Corrupt", "content_id", "corrupt", "preset_rule"]

Images = TypeVar("Images", Tensor, NDArray[Any], Image.Image, list[Image.Image], tuple[Image.Image, ...])
Ids = int | Iterable[int] | Tensor
Rebuild = Callable[[list[Tensor]], Any]

_TORCH_TYPES = (torch.uint8, torch.float16, torch.bfloat16, torch.float32, torch.float64)
_NUMPY_TYPES = ("uint8", "float16", "float32", "float64")


class _Part(NamedTuple):
    """Images that share a shape, as (B, C, H, W), and their positions in the input."""

    rows: list[int]
    batch: Tensor


def corrupt(
    images: Images,
    name: str | Corruption,
    severity: float | Sequence[float] | Tensor,
    *,
    seed: int = 0,
    ids: Ids | None = None,
    preset: str | None = None,
    catalog: Catalog = catalog,
) -> Images:
    """Corrupt one image or a batch, and return the same kind, shape, type and device.

    Accepted are torch tensors (CHW or BCHW), NumPy arrays (HW, HWC or NHWC) of uint8 or of float in [0, 1], and PIL
    pictures in mode RGB or L, one or a list whose members may differ in size. Other PIL modes are refused rather than
    converted silently: the result could not have the mode of the input. A stack of gray NumPy images needs its channel
    axis, because (N, H, W) and a mistaken (C, H, W) look alike.

    ``severity`` is any number in 0 … 5, or one per image; 0 returns the input unchanged. The pixels are a pure function
    of the image, the corruption, the severity, ``seed`` and the image's id. ``ids`` (64-bit integers; one number will
    do for a single image) default to the positions 0, 1, 2 …, so name them when you corrupt images one by one.
    ``preset`` names the severity table; by default the one whose image size is nearest to the shorter side is used.
    """
    parts, rebuild, single = _unpack(images)
    corruption = _find(name, catalog)
    numbers = None if ids is None else _as_numbers(ids, single)
    return cast(Images, rebuild(_run(parts, corruption, severity, seed, numbers, preset)))


class Corrupt:
    """A corruption as a transform for datasets, DataLoader workers and torchvision-style pipelines.

    ``Corrupt("fog", severity=3)(image, id=7)`` depends on nothing but the image, the settings and the id, so any number
    of workers gives the same pixels. Called with the image alone, as a pipeline does, it takes the image's
    ``content_id``: still a pure function, and equal images get equal corruptions.
    """

    def __init__(
        self,
        name: str | Corruption,
        severity: float,
        *,
        seed: int = 0,
        preset: str | None = None,
        catalog: Catalog = catalog,
    ) -> None:
        """Check the settings once, here, rather than in a worker."""
        self.corruption = _find(name, catalog)
        self.severity = check_severity(severity)
        self.corruption.require(self.severity)
        self.corruption.check_files()
        self.seed = check_seed(seed)
        self.preset = preset
        if preset is not None:
            self.corruption.table.at([0], preset)  # refuses an unknown preset, and names the known ones

    def __call__(self, images: Images, *, id: Ids | None = None) -> Images:  # noqa: A002
        """Corrupt an image or a batch of any kind that ``corrupt`` takes; ``id`` is one number, or one per image."""
        parts, rebuild, single = _unpack(images)
        numbers = _content_ids(parts) if id is None else _as_numbers(id, single)
        return cast(Images, rebuild(_run(parts, self.corruption, self.severity, self.seed, numbers, self.preset)))

    def __repr__(self) -> str:
        """The settings, and how the preset is chosen if none was named."""
        preset = repr(self.preset) if self.preset else f"<{preset_rule(self.corruption.table)}>"
        severity = severity_text(self.severity)
        return f"Corrupt({self.corruption.name!r}, severity={severity}, seed={self.seed}, preset={preset})"


def preset_rule(table: SeverityTable) -> str:
    """How a preset is chosen when none is named, in words."""
    sizes = sorted((table.sizes[name], name) for name in table.rows)
    return "nearest to the shorter side: " + ", ".join(f"{name} {size}" for size, name in sizes)


def content_id(image: Tensor | NDArray[Any] | Image.Image) -> int:
    """The id of one image without a name: a stable 64-bit hash of its shape and grey levels.

    A picture has the same id as a PIL image, a NumPy array or a tensor, and as uint8 or as float32 in [0, 1].
    """
    parts, _, single = _unpack(image)
    if not single:
        raise InputError("several images; expected one")
    return int(_content_ids(parts)[0])


def _content_ids(parts: list[_Part]) -> Tensor:
    ids = torch.empty(sum(len(part.rows) for part in parts), dtype=torch.int64, device="cpu")
    for rows, batch in parts:
        check_images(batch)  # before values that are no levels are made some
        for row, image in zip(rows, as_levels(batch).cpu().numpy(), strict=True):
            digest = hashlib.blake2b(repr(image.shape).encode(), digest_size=8)
            digest.update(image)
            ids[row] = int.from_bytes(digest.digest(), "little", signed=True)
    return ids


def _run(
    parts: list[_Part],
    corruption: Corruption,
    severity: float | Sequence[float] | Tensor,
    seed: int,
    ids: Tensor | None,
    preset: str | None,
) -> list[Tensor]:
    if len(parts) == 1:
        return [corruption(parts[0].batch, severity=severity, seed=seed, ids=ids, preset=preset)]
    if isinstance(severity, Tensor):
        check_dense(severity, "severities")
    count = sum(len(part.rows) for part in parts)
    levels, numbers = as_severities(severity, count), image_ids(ids, count)
    return [
        corruption(batch, severity=levels[rows], seed=check_seed(seed), ids=numbers[rows], preset=preset)
        for rows, batch in parts
    ]


def _find(name: str | Corruption, catalog: Catalog) -> Corruption:
    return name if isinstance(name, Corruption) else catalog[name]


def _whole(value: Any, what: str) -> int:
    try:
        return int(operator.index(value))
    except TypeError:
        hint = "; blemish.hash_id makes one from a name" if what == "id" else ""
        raise InputError(f"{what} {value!r}; expected a whole number{hint}") from None


def _as_numbers(ids: Ids, single: bool) -> Tensor:
    """Ids as an int64 tensor; anything but whole numbers is refused, not truncated."""
    if isinstance(ids, Tensor):
        check_dense(ids, "ids")
    if isinstance(ids, Tensor | np.ndarray):
        ids = ids.tolist()
    if isinstance(ids, Iterable) and not isinstance(ids, str | bytes):
        return as_ids([_whole(value, "id") for value in ids])
    number = _whole(ids, "id")
    if not single:
        raise InputError(f"one id ({number}) for a batch; expected one id per image")
    return as_ids([number])


def _unpack(images: Any) -> tuple[list[_Part], Rebuild, bool]:
    """The images as tensors, the way back to their own kind, and whether it is one image rather than a batch."""
    if isinstance(images, Tensor):
        return _unpack_tensor(images)
    if isinstance(images, np.ndarray):
        return _unpack_array(images)
    if isinstance(images, Image.Image):
        batch = _picture_tensor(images, "the picture")[None]
        return [_Part([0], batch)], lambda results: _to_picture(results[0][0]), True
    if isinstance(images, list | tuple):
        return _unpack_pictures(images)
    kind = type(images).__name__
    raise InputError(
        f"images of type {kind}; expected a torch tensor, a NumPy array, a PIL picture or a list of pictures"
    )


def _unpack_tensor(images: Tensor) -> tuple[list[_Part], Rebuild, bool]:
    check_dense(images, "images")
    shape = tuple(images.shape)
    if images.dtype not in _TORCH_TYPES:
        raise InputError(f"a tensor of type {images.dtype}; expected torch.uint8, or float in [0, 1]")
    if images.ndim not in (3, 4):
        raise InputError(f"a tensor of shape {shape}; expected (channels, height, width), or a batch of those")
    if shape[-3] not in (1, 3):
        last = shape[-1] in (1, 3)
        hint = "; it looks like channels last: permute it first" if last else ""
        raise InputError(f"a tensor of shape {shape} with {shape[-3]} channels; expected 1 or 3{hint}")
    single = images.ndim == 3
    batch = images.detach()[None] if single else images.detach()
    return [_Part(list(range(len(batch))), batch)], lambda results: results[0][0] if single else results[0], single


def _unpack_array(images: NDArray[Any]) -> tuple[list[_Part], Rebuild, bool]:
    images = np.asarray(images)  # np.matrix and the like reshape themselves in unexpected ways
    shape = images.shape
    if images.dtype.name not in _NUMPY_TYPES:
        raise InputError(f"an array of type {images.dtype}; expected uint8, or float in [0, 1]")
    if images.ndim not in (2, 3, 4):
        raise InputError(f"an array of shape {shape}; expected (height, width, channels), or a batch of those")
    if images.ndim > 2 and shape[-1] not in (1, 3):
        raise InputError(f"an array of shape {shape}; expected 1 or 3 channels in the last axis{_array_hint(shape)}")
    single = images.ndim < 4
    view = images[:, :, None] if images.ndim == 2 else images
    view = view[None] if single else view
    # A copy in the machine's own byte order: read-only, reversed and big-endian arrays are all welcome.
    batch = torch.from_numpy(channels_first(view))

    def rebuild(results: list[Tensor]) -> NDArray[Any]:
        return channels_last(results[0].numpy()).reshape(shape).astype(images.dtype, copy=False)

    return [_Part(list(range(len(batch))), batch)], rebuild, single


def _array_hint(shape: tuple[int, ...]) -> str:
    if shape[-3] in (1, 3):
        return "; it looks like channels first: transpose it, or pass it as a torch tensor"
    return "; give a stack of gray images its channel axis: images[..., None]" if len(shape) == 3 else ""


def _unpack_pictures(images: Sequence[Any]) -> tuple[list[_Part], Rebuild, bool]:
    if not images:
        raise InputError("an empty list; expected at least one picture")
    groups: dict[tuple[int, ...], tuple[list[int], list[Tensor]]] = {}
    for row, image in enumerate(images):
        if not isinstance(image, Image.Image):
            kind = type(image).__name__
            raise InputError(
                f"a list with a {kind} at position {row}; expected PIL pictures (stack arrays and tensors)"
            )
        tensor = _picture_tensor(image, f"the picture at position {row}")
        rows, tensors = groups.setdefault(tuple(tensor.shape), ([], []))
        rows.append(row)
        tensors.append(tensor)
    parts = [_Part(rows, torch.stack(tensors)) for rows, tensors in groups.values()]

    def rebuild(results: list[Tensor]) -> Any:
        pictures = {
            row: _to_picture(image)
            for part, batch in zip(parts, results, strict=True)
            for row, image in zip(part.rows, batch, strict=True)
        }
        ordered = [pictures[row] for row in range(len(images))]
        return tuple(ordered) if isinstance(images, tuple) else ordered

    return parts, rebuild, False


def _picture_tensor(image: Image.Image, what: str) -> Tensor:
    if image.mode not in ("L", "RGB"):
        raise InputError(f'{what} has mode {image.mode!r}; expected RGB or L (convert it: image.convert("RGB"))')
    if min(image.size) < MIN_SIDE:
        raise InputError(f"{what} has {image.width}×{image.height} pixels; expected at least {MIN_SIDE}×{MIN_SIDE}")
    try:
        levels = np.asarray(image)
    except (OSError, SyntaxError, ValueError) as error:  # PIL decodes late: a damaged file shows itself only here
        raise InputError(f"{what} cannot be decoded: {error}") from error
    return torch.from_numpy(channels_first(levels.reshape(1, image.height, image.width, -1))[0])


def _to_picture(image: Tensor) -> Image.Image:
    levels = channels_last(image.numpy()[None])[0]
    return Image.fromarray(levels[:, :, 0] if levels.shape[2] == 1 else levels)
