"""Labels of places, boxes, masks and keypoints, moved with the pixels of corrupted images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from blemish.core.errors import InputError
from blemish.corruptions.moves import NOT_STATED, Moves
from blemish.ops.forward import Forward
from blemish.ops.positions import Positions, moved_masks


@dataclass(frozen=True)
class Corrupted:
    """Corrupted images and their labels, each of the kind that was given.

    ``moves`` says what the corruption does to places: ``not at all``, ``a little`` (without a known map), ``by a map``
    or ``not stated``. Labels are moved by maps only, and are otherwise those that were given. ``boxes_kept`` and
    ``keypoints_visible`` say which of them still show anything of the image.
    """

    images: Any
    moves: str
    boxes: Any = None
    boxes_kept: Any = None
    masks: Any = None
    keypoints: Any = None
    keypoints_visible: Any = None


def how_it_moves(moves: Moves | None) -> str:
    """The word for what a corruption does to places."""
    return NOT_STATED if moves is None else moves.how


def moved_boxes(boxes: Tensor, maps: Sequence[Positions], image: int) -> tuple[Tensor, Tensor]:
    """Boxes (N, 4) of an image after maps, and which of them are still there; the others are all zeros."""
    boxes, kept = boxes.clone(), torch.ones(len(boxes), dtype=torch.bool)
    for positions in maps:
        forward = Forward(positions, image)
        for row in kept.nonzero().flatten().tolist():
            moved = forward.box(boxes[row].numpy())
            kept[row] = moved is not None
            boxes[row] = torch.from_numpy(np.zeros(4) if moved is None else moved)
    return boxes, kept


def moved_points(points: Tensor, maps: Sequence[Positions], image: int) -> tuple[Tensor, Tensor]:
    """Points (N, 2) of an image after maps, and which of them are shown; the others are NaN."""
    points, visible = points.clone(), torch.ones(len(points), dtype=torch.bool)
    for positions in maps:
        forward = Forward(positions, image)
        for row in visible.nonzero().flatten().tolist():
            moved = forward.point(points[row].numpy())
            visible[row] = moved is not None
            points[row] = torch.from_numpy(np.full(2, np.nan) if moved is None else moved)
    return points, visible


def _moved_keypoints(points: Tensor, maps: Sequence[Positions], image: int) -> tuple[Tensor, Tensor]:
    """Keypoints (…, 2), or (…, 3) with COCO's visibility, of which 0 means that there is none."""
    flat = points.reshape(-1, points.shape[-1]).clone()
    some = torch.ones(len(flat), dtype=torch.bool) if points.shape[-1] == 2 else flat[:, 2] > 0
    moved, seen = moved_points(flat[some, :2], maps, image)
    visible = some.clone()
    visible[some] = seen
    flat[some, :2] = moved
    if points.shape[-1] == 3:
        flat[some & ~visible] = 0
    return flat.view(points.shape), visible.view(points.shape[:-1])


def moved_image_masks(masks: Tensor, maps: Sequence[Positions], image: int, fill: float) -> Tensor:
    """Label images (H, W) or (N, H, W) of an image after maps."""
    made = masks.reshape(1, -1, *masks.shape[-2:])
    for positions in maps:
        single = Positions(positions.x[image : image + 1], positions.y[image : image + 1], positions.outside)
        made = moved_masks(made, single, fill)
    return made.view(masks.shape)


def _per_image(labels: Any, name: str, count: int, *, alone: bool) -> list[Tensor]:
    """A tensor for each image, on the CPU."""
    if not alone and (not hasattr(labels, "__len__") or len(labels) != count):
        raise InputError(f"{name} for a batch of {count} images; expected a list, or a stack, with an entry for each")
    return [_as_tensor(entry, name) for entry in ([labels] if alone else labels)]


def _as_tensor(labels: Any, name: str) -> Tensor:
    if isinstance(labels, Tensor):
        return labels.detach().as_subclass(Tensor).cpu()
    try:
        return torch.from_numpy(np.array(labels))
    except (TypeError, ValueError) as error:
        raise InputError(f"{name}: {error}; expected numbers, as a tensor, an array or lists") from error


def _as_given(made: Sequence[Tensor], given: Any, *, alone: bool, types: bool = True) -> Any:
    """Results of the kind that was given; with ``types`` also of its type, but whole numbers become float32."""
    if alone:
        return _one_as_given(made[0], given, types=types)
    entries = [_one_as_given(one, entry, types=types) for one, entry in zip(made, given, strict=True)]
    if isinstance(given, Tensor):
        return torch.stack(entries)
    if isinstance(given, np.ndarray):
        return np.stack(entries)
    return tuple(entries) if isinstance(given, tuple) else entries


def _one_as_given(made: Tensor, given: Any, *, types: bool) -> Any:
    if isinstance(given, Tensor):
        kind = given.dtype if given.dtype.is_floating_point else torch.float32
        return made.to(given.device, kind) if types else made.to(given.device)
    array = made.numpy()
    kind_of_array = np.asarray(given).dtype
    return array.astype(kind_of_array if kind_of_array.kind == "f" else np.float32) if types else array


class Geometry(NamedTuple):
    """An image's size, its number among those of the maps beside it, and these."""

    height: int
    width: int
    number: int
    maps: Sequence[Positions]


@dataclass(frozen=True)
class LabelSet:
    """The labels of an image, or of each image of a batch, and what masks hold where nothing of it is shown."""

    boxes: Any = None
    masks: Any = None
    keypoints: Any = None
    fill: float = 0

    def moved(self, images: Any, moves: Moves | None, geometries: Sequence[Geometry], *, alone: bool) -> Corrupted:
        """The labels beside corrupted images, of which each is at its place."""
        still = moves is None or moves.maps is None
        made: dict[str, Any] = {}

        def move(given: Any, name: str, work: Callable[[Tensor, Geometry], tuple[Tensor, Tensor]]) -> tuple[Any, Any]:
            each = _per_image(given, name, len(geometries), alone=alone)
            pairs = [work(entry, geometry) for entry, geometry in zip(each, geometries, strict=True)]
            types = name != "masks"
            labels = given if still else _as_given([one for one, _ in pairs], given, alone=alone, types=types)
            return labels, _as_given([shown for _, shown in pairs], given, alone=alone, types=False)

        if self.boxes is not None:
            made["boxes"], made["boxes_kept"] = move(self.boxes, "boxes", _boxes_at)
        if self.keypoints is not None:
            made["keypoints"], made["keypoints_visible"] = move(self.keypoints, "keypoints", _keypoints_at)
        if self.masks is not None:
            made["masks"], _ = move(self.masks, "masks", partial(_masks_at, fill=self.fill))
        return Corrupted(images, how_it_moves(moves), **made)


def _boxes_at(boxes: Tensor, geometry: Geometry) -> tuple[Tensor, Tensor]:
    return moved_boxes(checked_boxes(boxes), geometry.maps, geometry.number)


def _keypoints_at(points: Tensor, geometry: Geometry) -> tuple[Tensor, Tensor]:
    return _moved_keypoints(_checked_points(points), geometry.maps, geometry.number)


def _masks_at(masks: Tensor, geometry: Geometry, *, fill: float) -> tuple[Tensor, Tensor]:
    _check_masks(masks, geometry.height, geometry.width)
    made = moved_image_masks(masks, geometry.maps, geometry.number, fill)
    return made, made


def checked_boxes(boxes: Tensor) -> Tensor:
    """Boxes as float64 (N, 4); what cannot be xyxy is refused."""
    if boxes.numel() == 0 and boxes.ndim < 2:
        return torch.zeros(0, 4, dtype=torch.float64)
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise InputError(f"boxes of shape {tuple(boxes.shape)}; expected (boxes, 4) for each image")
    boxes = boxes.to(torch.float64)
    if not bool(boxes.isfinite().all()):
        raise InputError("boxes with values that are not finite; expected pixels")
    turned = (boxes[:, 2:] < boxes[:, :2]).any(1)
    if bool(turned.any()):
        first = boxes[turned][0].tolist()
        raise InputError(f"box {first} ends before it begins; expected left, top, right and bottom (xyxy) in pixels")
    return boxes


def _checked_points(points: Tensor) -> Tensor:
    """Keypoints as float64 (…, 2 or 3)."""
    if points.numel() == 0 and points.shape[-1] == 0:
        return torch.zeros(*(points.shape[:-1] or (0,)), 2, dtype=torch.float64)
    if points.ndim < 2 or points.shape[-1] not in (2, 3):
        raise InputError(
            f"keypoints of shape {tuple(points.shape)}; expected (…, 2) as x and y in pixels for each image, or (…, 3) "
            "with COCO's visibility"
        )
    return points.to(torch.float64)


def _check_masks(masks: Tensor, height: int, width: int) -> None:
    """Refuse label images that are not beside the image."""
    if masks.ndim not in (2, 3) or tuple(masks.shape[-2:]) != (height, width):
        raise InputError(
            f"masks of shape {tuple(masks.shape)} for an image of {height}×{width} pixels (height × width); expected "
            f"({height}, {width}), or (masks, {height}, {width})"
        )
