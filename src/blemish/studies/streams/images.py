"""The images a stream shows: tensors in memory, or pictures that are cropped at random as the release does."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from blemish.core.errors import InputError
from blemish.core.rng import CounterRng
from blemish.corruptions.inputs import check_images
from blemish.data.pictures import resize_and_crop
from blemish.data.source import Source

Load = Callable[[NDArray[np.int64], NDArray[np.int64], int], Tensor]

_AREA = (0.08, 1.0)
_ASPECT = (3 / 4, 4 / 3)
_TRIES = 10


@dataclass(frozen=True)
class ImageSet:
    """Labelled images of one shape.

    ``load(rows, positions, seed)`` gives a uint8 batch (B, C, H, W): the images at ``rows``, shown at these positions
    of the stream, which decide random crops. ``preparation`` says in words what is done to the pictures.
    """

    name: str
    names: Sequence[str]
    labels: NDArray[np.int64]
    ids: NDArray[np.int64]
    load: Load
    preparation: str

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def fingerprint(self) -> str:
        """A hash of the names, ids and labels and of the preparation, though not of the pixels."""
        digest = hashlib.blake2b(digest_size=12)
        digest.update("\n".join(self.names).encode("utf-8", "surrogateescape"))
        digest.update(np.ascontiguousarray(self.ids).tobytes() + np.ascontiguousarray(self.labels).tobytes())
        digest.update(self.preparation.encode())
        return digest.hexdigest()

    @property
    def shape(self) -> list[int]:
        """Channels, height and width of the first image, as it is shown."""
        first = np.zeros(1, dtype=np.int64)
        return list(self.load(first, first, 0).shape[1:])


def image_list(names: Sequence[str]) -> str:
    """A digest of which images there are, by their names, whatever their order and whatever is done to them."""
    return hashlib.blake2b(json.dumps(sorted(names)).encode(), digest_size=12).hexdigest()


def preparation(resize: int | None, crop: int | None, random: int | None) -> str:
    """What is done to pictures before they are corrupted, in words; one way to say it for streams and calibrations."""
    if random is None:
        return f"resize {resize}, crop {crop}"
    if resize is not None or crop is not None:
        raise InputError("a random crop together with resize or crop; expected one or the other")
    return f"mirrored and cropped at random to {random}"


def from_tensor(
    images: Tensor, labels: Sequence[int] | Tensor | NDArray[np.int64], *, name: str = "tensor"
) -> ImageSet:
    """A uint8 batch (N, C, H, W) in memory, on any device; image ``i`` has id ``i``."""
    check_images(images)
    if images.dtype != torch.uint8:
        raise InputError(f"images of type {images.dtype} for a stream; expected uint8")
    numbers = np.asarray(labels, dtype=np.int64)
    if numbers.shape != (len(images),):
        raise InputError(f"labels of shape {numbers.shape} for {len(images)} images; expected one per image")
    ids = np.arange(len(images), dtype=np.int64)
    return ImageSet(name, [f"{i}" for i in ids], numbers, ids, partial(_load_rows, images), "as they are")


def from_source(
    source: Source, *, resize: int | None = None, crop: int | None = None, random: int | None = None
) -> ImageSet:
    """The pictures of a source, decoded when they are shown.

    Either brought to ``resize`` and cut to a centre square of side ``crop``, or, as the release does, mirrored and
    cropped at random and resized to ``random`` pixels: see `randomly_cropped`.
    """
    if source.groups is not None:
        raise InputError(
            f"{source.name}: covers or merges some of a model's classes; expected all of them, as they are"
        )
    how = preparation(resize, crop, random)
    load = partial(_load_pictures, source, resize, crop, random)
    return ImageSet(source.name, source.names, source.labels, source.ids, load, how)


def prepared_source(source: Source, side: int, *, seed: int) -> Source:
    """The pictures of a source, each mirrored and cropped at random once, by draws of its id: see `randomly_cropped`.

    For calibrations, which show the same images in all cells; a stream crops anew whenever it shows an image.
    """
    read, stamp, ids = source.read, source.stamp, source.ids

    def cropped(row: int) -> Image.Image:
        return randomly_cropped([read(row)], side, seed=seed, positions=ids[row : row + 1])[0]

    return replace(
        source,
        read=cropped,
        stamp=None if stamp is None else lambda row: f"{stamp(row)}|{preparation(None, None, side)}, seed {seed}",
        reopen=None if source.reopen is None else partial(_reopened, source.reopen, side, seed),
    )


def _reopened(reopen: Callable[[], Source], side: int, seed: int) -> Source:
    return prepared_source(reopen(), side, seed=seed)


def _load_rows(images: Tensor, rows: NDArray[np.int64], _positions: NDArray[np.int64], _seed: int) -> Tensor:
    return images[torch.from_numpy(np.ascontiguousarray(rows)).to(images.device)]


def _load_pictures(
    source: Source,
    resize: int | None,
    crop: int | None,
    random: int | None,
    rows: NDArray[np.int64],
    positions: NDArray[np.int64],
    seed: int,
) -> Tensor:
    pictures = [source.read(int(row)) for row in rows]
    if random is not None:
        pictures = randomly_cropped(pictures, random, seed=seed, positions=positions)
    else:
        pictures = [resize_and_crop(picture, resize=resize, crop=crop) for picture in pictures]
    return _stacked(source, pictures, rows)


def _stacked(source: Source, pictures: Sequence[Image.Image], rows: NDArray[np.int64]) -> Tensor:
    sizes = {picture.size: int(row) for picture, row in zip(pictures, rows, strict=True)}
    if len(sizes) > 1:
        (one, i), (two, j) = list(sizes.items())[:2]
        raise InputError(
            f"{source.name}: {source.names[i]} has {one[0]}×{one[1]} pixels and {source.names[j]} {two[0]}×{two[1]}; "
            "expected one size: give resize and crop, or a random crop"
        )
    arrays = np.stack([np.atleast_3d(np.asarray(picture, dtype=np.uint8)) for picture in pictures])
    return torch.from_numpy(arrays).permute(0, 3, 1, 2).contiguous()


def randomly_cropped(
    pictures: Sequence[Image.Image], side: int, *, seed: int, positions: NDArray[np.int64]
) -> list[Image.Image]:
    """Every other picture mirrored, then a random crop of it resized to a square (bilinear, antialiased).

    A crop holds 8 to 100 % of the area and has an aspect ratio of 3:4 to 4:3, uniform on a logarithmic scale (Szegedy
    et al., 2015), with torchvision's ten tries and its centre crop when all of them fail.
    """
    rng = CounterRng(seed, torch.from_numpy(np.ascontiguousarray(positions)), "ccc crop")
    mirrored = rng.uniforms("mirror", 1)[:, 0].lt(0.5).tolist()
    draws = rng.uniforms("crop", 4, _TRIES).to(torch.float64).numpy()
    result = []
    for picture, mirror, draw in zip(pictures, mirrored, draws, strict=True):
        turned = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirror else picture
        cut = turned.crop(crop_box(*picture.size, draw))
        result.append(cut.resize((side, side), Image.Resampling.BILINEAR))
    return result


def crop_box(width: int, height: int, draw: NDArray[np.float64]) -> tuple[int, int, int, int]:
    """Left, top, right and bottom of a random crop, from uniforms (area, aspect, x, y) × tries."""
    low, high = (math.log(value) for value in _ASPECT)
    for area_rank, aspect_rank, x, y in draw.T.tolist():
        area = width * height * (_AREA[0] + (_AREA[1] - _AREA[0]) * area_rank)
        aspect = math.exp(low + (high - low) * aspect_rank)
        w, h = round(math.sqrt(area * aspect)), round(math.sqrt(area / aspect))
        if 0 < w <= width and 0 < h <= height:
            left, top = int(x * (width - w + 1)), int(y * (height - h + 1))
            return left, top, left + w, top + h
    w, h = width, height
    if width / height < _ASPECT[0]:
        h = round(width / _ASPECT[0])
    elif width / height > _ASPECT[1]:
        w = round(height * _ASPECT[1])
    left, top = (width - w) // 2, (height - h) // 2
    return left, top, left + w, top + h
