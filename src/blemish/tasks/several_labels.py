"""Several labels for an image: of each one whether the image has it. Records keep a probability and the truth of each.

A label is said where its probability is above one half, as in the evaluation of MedMNIST.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from torch import Tensor

from blemish.core.errors import InputError
from blemish.core.printable import first_few
from blemish.data.label_sets import LabelTruth
from blemish.evaluation.answers import Answers, Column, Lists
from blemish.evaluation.info import TaskInfo
from blemish.models.answering import AnsweringModel

_THRESHOLD = 0.5
_COLUMNS = {"truth": "list<bool>", "probability": "list<float>"}
_SHOWN = 3
# Other batches and devices round otherwise.
_ROUNDING = 0.01


@dataclass(frozen=True)
class SeveralLabels:
    """The task of telling which of a list of labels an image has."""

    truth: LabelTruth
    metric: str = "balanced_error"
    in_places: bool = False

    @cached_property
    def info(self) -> TaskInfo:
        """What records say: the columns, how many labels there are, and which truth it was."""
        settings = {"digest": self.truth.digest, "labels": self.truth.count, "threshold": _THRESHOLD}
        return TaskInfo("multilabel", _COLUMNS, settings)

    def check(self, model: Any, names: Sequence[str]) -> None:
        """Refuse a model that is none of labels, and images without them."""
        if not isinstance(model, AnsweringModel):
            raise InputError(f"a {type(model).__name__}; expected a model of labels (blemish.tasks.labellers)")
        model.tell_assumed()
        if missing := [name for name in names if not self.truth.holds(name)]:
            raise InputError(f"no labels of {first_few(missing, _SHOWN)}; expected them for every image")

    def answers(self, model: AnsweringModel, pixels: Tensor, names: Sequence[str]) -> Mapping[str, Column]:
        """Ask a model; it has an output for each label."""
        given, true = model(pixels), self.truth.of(names)
        if not isinstance(given, Tensor) or tuple(given.shape) != true.shape:
            shown = tuple(given.shape) if isinstance(given, Tensor) else type(given).__name__
            raise InputError(f"model {model.name}: {shown} for {len(names)} images of {self.truth.count} labels")
        counts = np.full(len(names), self.truth.count, dtype=np.int64)
        probability = given.float().cpu().numpy()
        return {"truth": Lists(true.ravel(), counts), "probability": Lists(probability.ravel(), counts)}

    def changed(self, before: Answers, now: Answers) -> str | None:
        """The image of the label whose probability is farthest from what it was, where that is no rounding error."""
        was, here = before.lists("probability"), now.lists("probability")
        distance = np.abs(was.values - here.values)
        farthest = int(np.argmax(distance))
        return str(now.images[here.owners[farthest]]) if distance[farthest] > _ROUNDING else None
