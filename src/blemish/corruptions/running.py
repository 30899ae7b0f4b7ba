"""Corrupting images that were taken out of what a user gave, and their ids."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from blemish.core.errors import InputError
from blemish.core.rng import as_ids, check_seed, image_ids
from blemish.core.types import check_dense
from blemish.corruptions.base import Corruption
from blemish.corruptions.inputs import as_severities, check_images
from blemish.corruptions.kinds import Unpacked, unpack
from blemish.corruptions.labels import Geometry
from blemish.ops.levels import as_levels

Ids = int | Iterable[int] | Tensor


def content_id(image: Tensor | NDArray[Any] | Image.Image) -> int:
    """The id of one image without a name: a stable 64-bit hash of its shape and grey levels.

    A picture has the same id as a PIL image, a NumPy array or a tensor, and as uint8 or as float32 in [0, 1].
    """
    images = unpack(image)
    if not images.single:
        raise InputError("several images; expected one")
    return int(_content_ids(images)[0])


def numbers_of(images: Unpacked, ids: Ids | None) -> Tensor:
    """The ids that were given, or those by the content of images."""
    return _content_ids(images) if ids is None else as_numbers(ids, images.single)


def _content_ids(images: Unpacked) -> Tensor:
    """The ids of images by their content; of a video, by that of its first frame."""
    ids = torch.empty(1 if images.single else images.total, dtype=torch.int64, device="cpu")
    for rows, batch in images.parts:
        check_images(batch)  # before values that are no levels are made some
        for row, image in zip(rows[: len(ids)], as_levels(batch[: len(ids)]).cpu().numpy(), strict=True):
            digest = hashlib.blake2b(repr(image.shape).encode(), digest_size=8)
            digest.update(image)
            ids[row] = int.from_bytes(digest.digest(), "little", signed=True)
    return ids


def run(
    images: Unpacked,
    corruption: Corruption,
    severity: float | Sequence[float] | Tensor,
    seed: int,
    ids: Tensor | None,
    preset: str | None,
) -> Any:
    """Corrupted images as what was given."""
    numbers = None if ids is None else images.each(ids)
    if len(images.parts) == 1:
        batch = images.parts[0].batch
        return images.rebuild([corruption(batch, severity=severity, seed=seed, ids=numbers, preset=preset)])
    if isinstance(severity, Tensor):
        check_dense(severity, "severities")
    levels, numbers = as_severities(severity, images.total), image_ids(numbers, images.total)
    return images.rebuild(
        [
            corruption(batch, severity=levels[rows], seed=check_seed(seed), ids=numbers[rows], preset=preset)
            for rows, batch in images.parts
        ]
    )


def geometries_of(
    images: Unpacked,
    corruption: Corruption,
    severity: float | Sequence[float] | Tensor,
    seed: int,
    ids: Tensor | None,
    preset: str | None,
) -> list[Geometry]:
    """Where the pixels of each image come from, by the same draws as its pixels."""
    numbers = image_ids(None if ids is None else images.each(ids), images.total)
    levels = as_severities(severity, images.total)
    geometries: dict[int, Geometry] = {}
    for rows, batch in images.parts:
        maps = corruption.positions(
            batch, severity=levels[rows], seed=check_seed(seed), ids=numbers[rows], preset=preset
        )
        geometries |= {row: Geometry(batch.shape[-2], batch.shape[-1], number, maps) for number, row in enumerate(rows)}
    return [geometries[row] for row in range(images.total)]


def _whole(value: Any, what: str) -> int:
    try:
        return int(operator.index(value))
    except TypeError:
        hint = "; blemish.hash_id makes one from a name" if what == "id" else ""
        raise InputError(f"{what} {value!r}; expected a whole number{hint}") from None


def as_numbers(ids: Ids, single: bool) -> Tensor:
    """Ids as an int64 tensor; anything but whole numbers is refused, not truncated."""
    if isinstance(ids, Tensor):
        check_dense(ids, "ids")
    if isinstance(ids, Tensor | np.ndarray):
        ids = ids.tolist()
    if type(ids) is not int and isinstance(ids, Iterable) and not isinstance(ids, str | bytes):
        return as_ids([_whole(value, "id") for value in ids])
    number = _whole(ids, "id")
    if not single:
        raise InputError(f"one id ({number}) for a batch; expected one id per image")
    return as_ids([number])
