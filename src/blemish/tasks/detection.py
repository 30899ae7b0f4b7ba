"""Detection: which objects are where. Records keep all boxes of an image, found and true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.core.errors import InputError, notify
from blemish.core.printable import first_few
from blemish.data.truth import Boxes, BoxTruth
from blemish.evaluation.answers import Column, Lists
from blemish.evaluation.info import TaskInfo
from blemish.models.answering import AnsweringModel

__all__ = ["Detection", "true_columns"]

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


@dataclass(frozen=True)
class Detection:
    """The task of finding the objects of a truth. Boxes are kept as (left, top, width, height), as COCO has them."""

    truth: BoxTruth
    metric: str = "ap"

    @cached_property
    def info(self) -> TaskInfo:
        """What records say: the columns, and which truth it was."""
        return TaskInfo("detection", _COLUMNS, {"truth": self.truth.digest, "categories": len(self.truth.categories)})

    def check(self, model: Any, names: Sequence[str]) -> None:
        """Refuse a model that knows none of the categories, and images without a truth."""
        if not isinstance(model, AnsweringModel):
            raise InputError(f"a {type(model).__name__}; expected a detector (blemish.models.detectors)")
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
        return {
            label: numbers[name] for label, name in enumerate(model.classes) if name is not None and name in numbers
        }

    def answers(self, model: AnsweringModel, pixels: Tensor, names: Sequence[str]) -> Mapping[str, Column]:
        """Ask a detector; what it says of categories that are not in the truth is dropped."""
        output, numbers = model(pixels), self._numbers(model)
        if not isinstance(output, Sequence) or len(output) != len(names):
            shown = f"{len(output)} answers" if isinstance(output, Sequence) else f"a {type(output).__name__}"
            raise InputError(f"model {model.name}: {shown} to {len(names)} images; expected a list with one for each")
        found = [_found(model, name, entry, numbers) for name, entry in zip(names, output, strict=True)]
        columns: dict[str, Column] = {
            name: _lists([each[place] for each in found]) for place, name in enumerate(("boxes", "scores", "labels"))
        }
        return {**columns, **true_columns(self.truth, names)}


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
    boxes, scores, labels = (torch.as_tensor(entry[key]).detach().cpu() for key in ("boxes", "scores", "labels"))
    if boxes.numel() != 4 * scores.numel() or labels.numel() != scores.numel():
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
    kinds = labels.reshape(-1).to(torch.int64).tolist()
    if model.classes is None and (strange := [kind for kind in kinds if kind not in numbers]):
        raise InputError(
            f"model {model.name}: {image}: label {strange[0]}; expected the number of a category, "
            f"{first_few([str(number) for number in numbers], _SHOWN)}"
        )
    kept = [row for row, kind in enumerate(kinds) if kind in numbers]
    sides = torch.cat([corners[:, :2], corners[:, 2:] - corners[:, :2]], dim=1)[kept]
    categories = np.array([numbers[kinds[row]] for row in kept], dtype=np.int32)
    return sides.reshape(-1).numpy(), sure[kept].numpy(), categories
