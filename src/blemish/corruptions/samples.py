"""Samples, as torchvision's transforms (v2) take them: what in a structure is an image, and which id it has.

torchvision is not imported here. Where nobody else has, none of its kinds of tensors can be in a sample.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from PIL import Image
from torch import Tensor
from torch.utils._pytree import TreeSpec, keystr, tree_flatten_with_path, tree_unflatten

from blemish.core.errors import InputError
from blemish.core.rng import hash_id

IdFrom = str | int | Callable[[Any], Any]
"""Where a sample has its id: a key of a dictionary, a position in a tuple, or a function of the sample."""


def is_sample(value: object) -> bool:
    """Whether this is one sample, with images among other things, rather than an image or a list of pictures."""
    return isinstance(value, tuple | dict)


class Sample(NamedTuple):
    """A sample taken apart: its leaves, the positions of the images among them, where those are, and the structure."""

    leaves: list[Any]
    images: list[int]
    places: list[str]
    structure: TreeSpec

    def with_images(self, images: Sequence[Any]) -> Any:
        """The same structure with other images."""
        leaves = [*self.leaves]
        for row, image in zip(self.images, images, strict=True):
            leaves[row] = image
        return tree_unflatten(leaves, self.structure)


def open_sample(sample: Any) -> Sample:
    """The images in a sample, by torchvision's rule.

    They are all PIL pictures, images and videos of torchvision; only where there is none of these, the first tensor
    that is no other kind of torchvision's (boxes, masks, keypoints).
    """
    entries, structure = tree_flatten_with_path(sample)
    leaves = [leaf for _, leaf in entries]
    images = [row for row, leaf in enumerate(leaves) if isinstance(leaf, Image.Image) or tv_kind(leaf) in _PICTURES]
    if not images:
        images = [row for row, leaf in enumerate(leaves) if isinstance(leaf, Tensor) and tv_kind(leaf) is None][:1]
    if not images:
        kinds = ", ".join(dict.fromkeys(type(leaf).__name__ for leaf in leaves)) or "nothing"
        raise InputError(
            f"a sample without an image ({kinds}); expected a tensor, a PIL picture or an image of torchvision in it "
            "(NumPy arrays are not looked for: give them alone, or as tensors)"
        )
    return Sample(leaves, images, [keystr(entries[row][0]) for row in images], structure)


def sample_id(sample: Any, where: IdFrom) -> Any:
    """The id that a sample names: a whole number, one for each image of a batch, or texts, which are hashed.

    A key is looked for in the sample, or in the dictionaries of a tuple.
    """
    identity = where(sample) if callable(where) else _found(sample, where)
    if identity is None:  # which would leave it to the content of the image
        raise InputError(f"the sample's id is None ({where!r}); expected a whole number or a text")
    return _as_number(identity)


def _found(sample: Any, where: str | int) -> Any:
    if isinstance(where, int):
        if not isinstance(sample, tuple) or not -len(sample) <= where < len(sample):
            shape = f"a tuple of {len(sample)}" if isinstance(sample, tuple) else f"a {type(sample).__name__}"
            raise InputError(f"no id at position {where} of the sample, which is {shape}")
        return sample[where]
    members = sample if isinstance(sample, tuple) else (sample,)
    holders = [member for member in members if isinstance(member, Mapping)]
    values = [member[where] for member in holders if where in member]
    if len(values) != 1:
        keys = ", ".join(str(key) for member in holders for key in member) or "none"
        raise InputError(
            f"{len(values) or 'no'} ids called {where!r} in the sample; expected one, among its keys: {keys}"
        )
    return values[0]


def _as_number(value: Any) -> Any:
    if isinstance(value, str):
        return hash_id(value)
    if isinstance(value, list | tuple):
        return [_as_number(item) for item in value]
    return value.item() if isinstance(value, Tensor) and value.ndim == 0 else value


def is_video(images: Tensor) -> bool:
    """Whether these are the frames of one of torchvision's videos, which have one draw."""
    return tv_kind(images) == "Video"


def plain_tensor(images: Tensor) -> Tensor:
    """The values of an image of torchvision as an ordinary tensor; its other kinds are refused."""
    kind = tv_kind(images)
    if kind is not None and kind not in _PICTURES:
        raise InputError(f"images of type {kind}; expected an image")
    return images if kind is None else images.as_subclass(Tensor)


def wrapped_like(result: Tensor, like: Tensor) -> Tensor:
    """A result as the kind of tensor that it was made of."""
    if tv_kind(like) is None:
        return result
    wrapped: Tensor = sys.modules["torchvision.tv_tensors"].wrap(result, like=like)
    return wrapped


_PICTURES = ("Image", "Video")


def tv_kind(value: object) -> str | None:
    """Which of torchvision's kinds of tensors this is; None for everything else."""
    kinds = sys.modules.get("torchvision.tv_tensors")
    if kinds is None or not isinstance(value, Tensor) or not isinstance(value, kinds.TVTensor):
        return None
    return next((name for name in _PICTURES if isinstance(value, getattr(kinds, name))), type(value).__name__)
