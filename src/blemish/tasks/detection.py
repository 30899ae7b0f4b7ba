"""Detection: which objects are where. Records keep all boxes of an image, found and true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.core.errors import InputError, notify, refused
from blemish.core.optional import optional_import
from blemish.core.printable import first_few
from blemish.data.truth import Boxes, BoxTruth
from blemish.evaluation.answers import Answers, Column, Lists
from blemish.evaluation.info import TaskInfo
from blemish.models.answering import AnsweringModel

_COLUMNS = {
    "boxes": "list<float>",
    "scores": "list<float>",
    "labels": "list<int32>",
    "truth_boxes": "list<double>",
    "truth_labels": "list<int32>",
    "truth_areas": "list<double>",
    "truth_crowd": "list<bool>",
}
_TRUE = ("boxes", "labels", "areas", "crowd")
_SHOWN = 5
_VOC = {"aeroplane": "airplane", "motorbike": "motorcycle", "sofa": "couch", "pottedplant": "potted plant"}
_VOC |= {"diningtable": "dining table", "tvmonitor": "tv"}
_OTHER_NAMES = _VOC | {own: other for other, own in _VOC.items()}
"""What PASCAL VOC, and models such as RT-DETR and D-FINE, call categories of COCO, and the other way round."""
# Answers are alike whose unlike boxes have less than this share of all scores. Boxes are alike whose scores differ by
# less than this part of the best one, and whose sides by less than this many pixels and this part of the longer one.
_OTHER = 0.05
_SCORE = 0.02
_PIXELS, _SIDE = 0.1, 0.005


@dataclass(frozen=True)
class Detection:
    """The task of finding the objects of a truth. Boxes are kept as (left, top, width, height), as COCO has them."""

    truth: BoxTruth
    metric: str = "ap"
    in_places: bool = True

    @cached_property
    def info(self) -> TaskInfo:
        """What records say: the columns, and which truth it was."""
        return TaskInfo("detection", _COLUMNS, {"truth": self.truth.digest, "categories": len(self.truth.categories)})

    def check(self, model: Any, names: Sequence[str]) -> None:
        """Refuse a model that knows none of the categories, and images without a truth."""
        if not isinstance(model, AnsweringModel):
            raise InputError(f"a {type(model).__name__}; expected a detector (blemish.models.detectors)")
        optional_import("numba")  # AP is counted with it: better missed now than after hours
        model.tell_assumed()
        if missing := [name for name in names if name not in self.truth.images]:
            raise InputError(f"no annotations of {first_few(missing, _SHOWN)}; expected them for every image")
        known = set(self._numbers(model).values())
        lacking = [name for number, name in self.truth.categories.items() if number not in known]
        if len(lacking) == len(self.truth.categories):
            raise InputError(
                f"model {model.name} names none of the {len(lacking)} categories; expected {first_few(lacking, _SHOWN)}"
            )
        if lacking:
            notify(f"model {model.name} does not know {first_few(lacking, _SHOWN)}: their AP is 0")

    def _numbers(self, model: AnsweringModel) -> dict[int, int]:
        """The category that each label of a model means: by its name, or, of a model that names none, by its number."""
        if model.classes is None:
            return {number: number for number in self.truth.categories}
        numbers = {name: number for number, name in self.truth.categories.items()}
        for name, other in _OTHER_NAMES.items():
            if other in numbers and other not in model.classes:
                numbers.setdefault(name, numbers[other])
        return {label: numbers[name] for label, name in enumerate(model.classes) if name in numbers}

    def answers(self, model: AnsweringModel, pixels: Tensor, names: Sequence[str]) -> Mapping[str, Column]:
        """Ask a detector; what it says of categories that are not in the truth is dropped."""
        height, width = pixels.shape[-2:]
        for name in names:
            stated = self.truth.sizes.get(name, (height, width))
            if stated != (height, width):
                raise InputError(
                    f"{name}: a picture of {height}×{width} pixels (height × width), whose annotations are for "
                    f"{stated[0]}×{stated[1]}; expected the pictures that were annotated"
                )
        output, numbers = model(pixels), self._numbers(model)
        if not isinstance(output, Sequence) or len(output) != len(names):
            shown = f"{len(output)} answers" if isinstance(output, Sequence) else f"a {type(output).__name__}"
            raise InputError(f"model {model.name}: {shown} to {len(names)} images; expected a list with one for each")
        checked = [_found(model, name, entry, numbers) for name, entry in zip(names, output, strict=True)]
        columns: dict[str, Column] = {
            name: _lists([each[column] for each in checked])
            for column, name in enumerate(("boxes", "scores", "labels"))
        }
        if are_shares(np.concatenate([each[0] for each in checked])):
            notify(f"model {model.name}: all boxes end within the first pixel; {IN_PIXELS}")
        return {**columns, **true_columns(self.truth, names)}

    def changed(self, before: Answers, now: Answers) -> str | None:
        """The image with most other boxes than before, where they make more than a twentieth of all, by their scores.

        Other batches and devices round otherwise, so that a doubtful box may come or go.
        """
        pairs = zip(_boxes_of(before), _boxes_of(now), strict=True)
        other, whole = np.array([_other_boxes(*pair) for pair in pairs]).T
        return str(now.images[other.argmax()]) if other.sum() > _OTHER * whole.sum() else None


IN_PIXELS = "expected pixels of the image, not parts of its sides"


def are_shares(sides: NDArray[Any]) -> bool:
    """Whether boxes (x, y, width, height), of which there are some, look like parts of the sides of their image."""
    boxes = sides.reshape(-1, 4)
    return bool(len(boxes) and (boxes >= 0).all() and (boxes[:, :2] + boxes[:, 2:] <= 1).all())


def true_columns(truth: BoxTruth, names: Sequence[str]) -> dict[str, Column]:
    """What records keep of the objects of some images."""
    own = [truth.images[name] for name in names]
    return {f"truth_{field}": _lists([_flat(each, field) for each in own]) for field in _TRUE}


def _flat(own: Boxes, field: str) -> NDArray[Any]:
    values: NDArray[Any] = getattr(own, field)
    return values.reshape(-1)


def _lists(parts: Sequence[NDArray[Any]]) -> Lists:
    return Lists(np.concatenate(list(parts)), np.array([len(part) for part in parts], dtype=np.int64))


def _found(
    model: AnsweringModel, image: str, entry: Any, numbers: Mapping[int, int]
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int32]]:
    """Boxes, scores and categories of one image, as they are kept."""
    if not isinstance(entry, Mapping) or not {"boxes", "scores", "labels"} <= entry.keys():
        raise InputError(
            f"model {model.name}: {image}: no boxes, scores and labels; expected a dictionary of the three"
        )
    with refused(f"model {model.name}: {image}: boxes, scores and labels that are no numbers", TypeError, ValueError):
        boxes, scores, labels = (torch.as_tensor(entry[key]).detach().cpu() for key in ("boxes", "scores", "labels"))
    is_table = boxes.numel() == 0 or (boxes.ndim == 2 and boxes.shape[1] == 4)
    if not is_table or boxes.numel() != 4 * scores.numel() or labels.numel() != scores.numel():
        shapes = ", ".join(str(tuple(each.shape)) for each in (boxes, scores, labels))
        raise InputError(
            f"model {model.name}: {image}: boxes, scores and labels of shape {shapes}; expected (n, 4), n, n"
        )
    corners, sure = boxes.reshape(-1, 4).to(torch.float32), scores.reshape(-1).to(torch.float32)
    if not bool(corners.isfinite().all() and sure.isfinite().all()):
        raise InputError(f"model {model.name}: {image}: boxes or scores that are not finite")
    if len(turned := corners[(corners[:, 2:] < corners[:, :2]).any(1)]):
        raise InputError(
            f"model {model.name}: {image}: box {turned[0].tolist()} ends before it begins; expected left, top, right "
            "and bottom"
        )
    if labels.is_floating_point() and len(parts := labels[labels != labels.round()]):
        raise InputError(f"model {model.name}: {image}: label {parts[0].item():g}; expected whole numbers")
    if labels.is_floating_point() and len(parts := labels[labels != labels.round()]):
        raise InputError(f"model {model.name}: {image}: label {parts[0].item():g}; expected whole numbers")
    kinds = labels.reshape(-1).to(torch.int64).tolist()
    if model.classes is None and (strange := [kind for kind in kinds if kind not in numbers]):
        raise InputError(
            f"model {model.name}: {image}: label {strange[0]}; expected the number of a category, "
            f"{first_few([str(number) for number in numbers], _SHOWN)} (or class names, in the order of the labels)"
        )
    if model.classes is not None and (strange := [kind for kind in kinds if not 0 <= kind < len(model.classes)]):
        raise InputError(
            f"model {model.name}: {image}: label {strange[0]}; expected a place among its {len(model.classes)} classes"
        )
    kept = [row for row, kind in enumerate(kinds) if kind in numbers]
    sides = torch.cat([corners[:, :2], corners[:, 2:] - corners[:, :2]], dim=1)[kept]
    categories = np.array([numbers[kinds[row]] for row in kept], dtype=np.int32)
    return sides.reshape(-1).numpy(), sure[kept].numpy(), categories


class _Boxes(NamedTuple):
    """What was found in one image."""

    boxes: NDArray[Any]
    scores: NDArray[Any]
    labels: NDArray[Any]


def _boxes_of(answers: Answers) -> list[_Boxes]:
    scores = answers.lists("scores")
    ends = np.cumsum(scores.counts)[:-1]
    columns = (answers.lists("boxes").values.reshape(-1, 4), scores.values, answers.lists("labels").values)
    return [_Boxes(*each) for each in zip(*(np.split(column, ends) for column in columns), strict=True)]


def _other_boxes(before: _Boxes, now: _Boxes) -> tuple[float, float]:
    """The scores of boxes in either answer that have none like them in the other, and of all, added up."""
    own, new = (np.abs(each.scores).astype(np.float64) for each in (before, now))
    whole = own.sum() + new.sum()
    if all(np.array_equal(*pair) for pair in zip(before, now, strict=True)):
        return 0.0, float(whole)
    if whole == 0:  # scores that say nothing: boxes are counted
        own, new = np.ones(len(own)), np.ones(len(new))
        whole = own.sum() + new.sum()
    near = np.abs(before.scores[:, None] - now.scores) <= _SCORE * max(own.max(initial=0), new.max(initial=0))
    moved = np.abs(before.boxes[:, None] - now.boxes).max(axis=2)
    close = moved <= _PIXELS + _SIDE * before.boxes[:, None, 2:].max(axis=2)
    alike = near & close & (before.labels[:, None] == now.labels)
    free, common = np.ones(len(new), dtype=np.bool_), 0.0
    for row in np.argsort(-own, kind="stable"):
        if len(places := np.flatnonzero(alike[row] & free)):
            free[places[0]] = False
            common += own[row] + new[places[0]]
    return float(whole - common), float(whole)
