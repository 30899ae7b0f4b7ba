"""Decoded images of any sizes in one block of memory, or in a mapped file; single pictures as tensors, and back."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from blemish.core.errors import InputError

DIGEST_BYTES = 16


@dataclass(frozen=True, eq=False)
class Images:
    """Labelled images as uint8 levels, ready to be put into batches.

    ``pixels`` holds the images one after the other, each as (C, H, W) of its row in ``shapes``, beginning at its entry
    of ``starts``; ``digests`` has a row of bytes for each. The other fields are those of the `Source`.
    """

    name: str
    names: Sequence[str]
    ids: NDArray[np.int64]
    labels: NDArray[np.int64]
    pixels: NDArray[np.uint8]
    starts: NDArray[np.int64]
    shapes: NDArray[np.int64]
    digests: NDArray[np.uint8]
    classes: tuple[str, ...] | None = None
    groups: tuple[tuple[int, ...], ...] | None = None
    note: str | None = None

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def fingerprint(self) -> str:
        """Names, ids, labels, shapes and pixels in short: two sets with the same one give the same results."""
        return joined_fingerprint([self], range(len(self)))

    def image(self, row: int) -> NDArray[np.uint8]:
        """One image as (C, H, W); a view that is not to be changed."""
        channels, height, width = self.shapes[row].tolist()
        start = int(self.starts[row])
        return self.pixels[start : start + channels * height * width].reshape(channels, height, width)

    def batch(self, rows: Sequence[int] | NDArray[np.int64]) -> Tensor:
        """A copy of some images of one shape, as uint8 of shape (B, C, H, W)."""
        index = [int(row) for row in rows]
        if not index:
            raise InputError("a batch of no images; expected at least one row")
        shape = self.shapes[index[0]]
        if (self.shapes[index] != shape).any():
            raise InputError(f"{self.name}: images of different shapes in one batch; expected rows of one by_shape()")
        return torch.from_numpy(np.stack([self.image(row) for row in index]))

    def by_shape(self) -> list[list[int]]:
        """The rows of each shape, ascending; the shapes in the order in which they first occur."""
        groups: dict[tuple[int, ...], list[int]] = {}
        for row, shape in enumerate(self.shapes.tolist()):
            groups.setdefault(tuple(shape), []).append(row)
        return list(groups.values())

    def take(self, rows: Sequence[int] | NDArray[np.int64]) -> Images:
        """Some of the images, without copying pixels; their fingerprint is that of a source of just these."""
        index = np.asarray(rows, dtype=np.int64)
        return replace(
            self,
            names=tuple(self.names[row] for row in index.tolist()),
            ids=self.ids[index],
            labels=self.labels[index],
            starts=self.starts[index],
            shapes=self.shapes[index],
            digests=self.digests[index],
        )


def joined_fingerprint(parts: Sequence[Images], order: Sequence[int] | NDArray[np.int64]) -> str:
    """The fingerprint of several sets as one; ``order`` numbers the images of all of them, one set after the other."""
    index = np.asarray(order, dtype=np.int64)
    names = [name for part in parts for name in part.names]
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for row in index.tolist():
        raw = names[row].encode("utf-8", "surrogateescape")
        digest.update(len(raw).to_bytes(8, "little") + raw)
    for field in ("ids", "labels", "shapes"):
        values = np.concatenate([getattr(part, field) for part in parts])[index]
        digest.update(np.ascontiguousarray(values, dtype="<i8").tobytes())
    digest.update(np.ascontiguousarray(np.concatenate([part.digests for part in parts])[index]).tobytes())
    return digest.hexdigest()


def image_digest(levels: NDArray[np.uint8]) -> bytes:
    """What tells the pixels of an image from others; large ones are digested without holding up other threads."""
    return hashlib.blake2b(levels.data, digest_size=DIGEST_BYTES).digest()


def picture_batch(picture: Image.Image) -> Tensor:
    """A picture as a batch of one, (1, C, H, W) of uint8."""
    return torch.from_numpy(np.array(picture)).reshape(1, picture.height, picture.width, -1).permute(0, 3, 1, 2)


def as_picture(image: Tensor) -> Image.Image:
    """A (C, H, W) tensor of uint8 as a picture; gray where it has one channel."""
    levels = image.permute(1, 2, 0).contiguous().numpy()
    return Image.fromarray(levels[:, :, 0] if levels.shape[2] == 1 else levels)
