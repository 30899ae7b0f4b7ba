"""Boxes, masks and keypoints of torchvision in a sample, moved with the pixels of its image.

A box of which nothing is left becomes one without area, which torchvision's ``SanitizeBoundingBoxes`` removes.
Keypoints that are not shown any more are not-a-number; those of whole numbers are refused, as they cannot say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_unflatten

from blemish.core.errors import InputError
from blemish.corruptions.labels import Place, checked_boxes, moved_boxes, moved_image_masks, moved_points
from blemish.corruptions.samples import tv_kind, wrapped_like


def with_moved_labels(sample: Any, places: Sequence[Place]) -> Any:
    """A sample whose image is at a place, with its labels moved there; everything else is as it was.

    Labels have to be those of one image of this size: of a video each frame has labels of its own, which are refused.
    """
    leaves, structure = tree_flatten(sample)
    moved = [_moved(leaf, places) for leaf in leaves]
    return tree_unflatten(moved, structure)


def _moved(leaf: Any, places: Sequence[Place]) -> Any:
    kind = tv_kind(leaf)
    work = {"BoundingBoxes": _boxes, "Mask": _mask, "KeyPoints": _keypoints}.get(kind or "")
    if work is None:
        return leaf
    if len(places) != 1:
        raise InputError(f"{kind} beside {len(places)} images; expected the labels of one image (move_labels)")
    place = places[0]
    size = tuple(leaf.shape[-2:]) if kind == "Mask" else tuple(leaf.canvas_size)
    if size != (place.height, place.width):
        raise InputError(f"{kind} of an image of {size} pixels; the sample's has {(place.height, place.width)}")
    values = leaf.detach().as_subclass(Tensor)
    return wrapped_like(work(values.cpu(), place, leaf).to(values), leaf)


def _boxes(values: Tensor, place: Place, leaf: Any) -> Tensor:
    form = leaf.format.name
    if form not in ("XYXY", "XYWH", "CXCYWH"):
        raise InputError(f"boxes of the format {form}; expected XYXY, XYWH or CXCYWH, which are not turned")
    flat = values.reshape(-1, 4).to(torch.float64)
    first, second = flat[:, :2], flat[:, 2:]
    if form == "CXCYWH":
        first = first - second / 2
    corners = flat if form == "XYXY" else torch.cat([first, first + second], dim=1)
    moved, _ = moved_boxes(checked_boxes(corners), place.maps, place.number)
    low, high = moved[:, :2], moved[:, 2:]
    made = {
        "XYXY": moved,
        "XYWH": torch.cat([low, high - low], 1),
        "CXCYWH": torch.cat([(low + high) / 2, high - low], 1),
    }
    return made[form].view(values.shape)


def _mask(values: Tensor, place: Place, leaf: Any) -> Tensor:
    return moved_image_masks(values, place.maps, place.number, 0)


def _keypoints(values: Tensor, place: Place, leaf: Any) -> Tensor:
    if not values.is_floating_point():
        raise InputError(f"keypoints of type {values.dtype}; expected floats, to say which are not shown any more")
    moved, _ = moved_points(values.reshape(-1, 2).to(torch.float64), place.maps, place.number)
    return moved.view(values.shape)
