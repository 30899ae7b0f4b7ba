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
from blemish.corruptions.labels import Geometry, checked_boxes, moved_boxes, moved_image_masks, moved_points
from blemish.corruptions.samples import tv_kind, wrapped_like


def with_moved_labels(sample: Any, geometries: Sequence[Geometry]) -> Any:
    """A sample whose image is at a place, with its labels moved there; everything else is as it was.

    Labels have to be those of one image of this size: of a video each frame has labels of its own, which are refused.
    """
    leaves, structure = tree_flatten(sample)
    moved = [_moved(leaf, geometries) for leaf in leaves]
    return tree_unflatten(moved, structure)


def _moved(leaf: Any, geometries: Sequence[Geometry]) -> Any:
    kind = tv_kind(leaf)
    work = {"BoundingBoxes": _boxes, "Mask": _mask, "KeyPoints": _keypoints}.get(kind or "")
    if work is None:
        return leaf
    if len(geometries) != 1:
        raise InputError(f"{kind} beside {len(geometries)} images; expected the labels of one image (move_labels)")
    geometry = geometries[0]
    size = tuple(leaf.shape[-2:]) if kind == "Mask" else tuple(leaf.canvas_size)
    if size != (geometry.height, geometry.width):
        raise InputError(f"{kind} of an image of {size} pixels; the sample's has {(geometry.height, geometry.width)}")
    values = leaf.detach().as_subclass(Tensor)
    return wrapped_like(work(values.cpu(), geometry, leaf).to(values), leaf)


def _boxes(values: Tensor, geometry: Geometry, leaf: Any) -> Tensor:
    form = leaf.format.name
    if form not in ("XYXY", "XYWH", "CXCYWH"):
        raise InputError(f"boxes of the format {form}; expected XYXY, XYWH or CXCYWH, which are not turned")
    flat = values.reshape(-1, 4).to(torch.float64)
    first, second = flat[:, :2], flat[:, 2:]
    if form == "CXCYWH":
        first = first - second / 2
    corners = flat if form == "XYXY" else torch.cat([first, first + second], dim=1)
    moved, _ = moved_boxes(checked_boxes(corners), geometry.maps, geometry.number)
    low, high = moved[:, :2], moved[:, 2:]
    made = {
        "XYXY": moved,
        "XYWH": torch.cat([low, high - low], 1),
        "CXCYWH": torch.cat([(low + high) / 2, high - low], 1),
    }
    return made[form].view(values.shape)


def _mask(values: Tensor, geometry: Geometry, leaf: Any) -> Tensor:
    return moved_image_masks(values, geometry.maps, geometry.number, 0)


def _keypoints(values: Tensor, geometry: Geometry, leaf: Any) -> Tensor:
    if not values.is_floating_point():
        raise InputError(f"keypoints of type {values.dtype}; expected floats, to say which are not shown any more")
    moved, _ = moved_points(values.reshape(-1, 2).to(torch.float64), geometry.maps, geometry.number)
    return moved.view(values.shape)
