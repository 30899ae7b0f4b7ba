"""Kinds of images: torch tensors, NumPy arrays and PIL pictures as batches of tensors, and the way back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from blemish.core.errors import InputError
from blemish.core.types import check_dense
from blemish.corruptions.inputs import MIN_SIDE
from blemish.corruptions.samples import is_video, plain_tensor, wrapped_like
from blemish.ops.layout import channels_first, channels_last

_TORCH_TYPES = (torch.uint8, torch.float16, torch.bfloat16, torch.float32, torch.float64)
_NUMPY_TYPES = ("uint8", "float16", "float32", "float64")


class Part(NamedTuple):
    """Images that share a shape, as (B, C, H, W), and their positions in the input."""

    rows: list[int]
    batch: Tensor


class Unpacked(NamedTuple):
    """Images as tensors, the way back to their own kind, and whether it is one image rather than a batch.

    A video is one image of many frames.
    """

    parts: list[Part]
    rebuild: Callable[[list[Tensor]], Any]
    single: bool

    @property
    def total(self) -> int:
        """How many images, or frames of one, there are."""
        return sum([len(part.rows) for part in self.parts])

    def each(self, ids: Tensor) -> Tensor:
        """The ids of all images: all frames of a video have its own."""
        total = self.total
        return ids.expand(total).contiguous() if self.single and ids.shape[0] == 1 < total else ids


def unpack(images: Any) -> Unpacked:
    """Images of any kind, as tensors."""
    if isinstance(images, Tensor):
        return _unpack_tensor(images)
    if isinstance(images, np.ndarray):
        return _unpack_array(images)
    if isinstance(images, Image.Image):
        batch = _picture_tensor(images, "the picture")[None]
        return Unpacked([Part([0], batch)], lambda results: _to_picture(results[0][0]), single=True)
    if isinstance(images, list | tuple):
        return _unpack_pictures(images)
    kind = type(images).__name__
    raise InputError(
        f"images of type {kind}; expected a torch tensor, a NumPy array, a PIL picture or a list of pictures"
    )


def _unpack_tensor(images: Tensor) -> Unpacked:
    check_dense(images, "images")
    values = plain_tensor(images).detach()
    shape = images.shape
    if images.dtype not in _TORCH_TYPES:
        raise InputError(f"a tensor of type {images.dtype}; expected torch.uint8, or float in [0, 1]")
    if len(shape) not in (3, 4):
        raise InputError(f"a tensor of shape {tuple(shape)}; expected (channels, height, width), or a batch of those")
    if shape[-3] not in (1, 3):
        last = shape[-1] in (1, 3)
        hint = "; it looks like channels last: permute it first" if last else ""
        raise InputError(f"a tensor of shape {tuple(shape)} with {shape[-3]} channels; expected 1 or 3{hint}")
    alone = len(shape) == 3
    batch = values[None] if alone else values

    def rebuild(results: list[Tensor]) -> Tensor:
        return wrapped_like(results[0][0] if alone else results[0], images)

    return Unpacked([Part([0] if alone else list(range(len(batch))), batch)], rebuild, single=alone or is_video(images))


def _unpack_array(images: NDArray[Any]) -> Unpacked:
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

    return Unpacked([Part(list(range(len(batch))), batch)], rebuild, single)


def _array_hint(shape: tuple[int, ...]) -> str:
    if shape[-3] in (1, 3):
        return "; it looks like channels first: transpose it, or pass it as a torch tensor"
    return "; give a stack of gray images its channel axis: images[..., None]" if len(shape) == 3 else ""


def _unpack_pictures(images: Sequence[Any]) -> Unpacked:
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
    parts = [Part(rows, torch.stack(tensors)) for rows, tensors in groups.values()]

    def rebuild(results: list[Tensor]) -> Any:
        pictures = {
            row: _to_picture(image)
            for part, batch in zip(parts, results, strict=True)
            for row, image in zip(part.rows, batch, strict=True)
        }
        ordered = [pictures[row] for row in range(len(images))]
        return tuple(ordered) if isinstance(images, tuple) else ordered

    return Unpacked(parts, rebuild, single=False)


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
