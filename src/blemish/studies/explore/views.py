"""What is seen of a picture under a condition: its pixels, and what models say of them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from blemish.benchmarks.benchmark import Protocol
from blemish.benchmarks.condition import CLEAN, Condition, parse_condition
from blemish.core.errors import InputError
from blemish.corruptions.catalog import Catalog, catalog
from blemish.data.cache import load
from blemish.data.classes import class_titles, imagenet_wnids
from blemish.data.images import Images, as_picture, picture_batch
from blemish.data.source import Source
from blemish.evaluation.measure import probabilities
from blemish.evaluation.plan import plan_for
from blemish.models.base import Classifier
from blemish.studies.explore.pictures import Picture

TOP = 5
"""How many answers are shown."""

LONGEST_CHAIN = 2

_IMAGENET = 1000
_KEPT = 2000


@dataclass(frozen=True)
class View:
    """A condition, which carries its corruptions, and a seed."""

    condition: Condition
    seed: int = 0

    @classmethod
    def of(cls, text: str, seed: int = 0, catalog: Catalog = catalog) -> View:
        """What a text such as ``fog@2.5+snow@1`` or ``clean`` means; at most two corruptions at given severities."""
        condition = parse_condition(text, catalog=catalog)
        plain = condition.other is None and not condition.is_sequence
        if not plain or len(condition.steps) > LONGEST_CHAIN or any(step.low != step.high for step in condition.steps):
            raise InputError(f"condition {text!r}; expected clean, a corruption such as fog@2.5, or two joined by +")
        condition.check_files()
        return cls(condition, Protocol(seed=seed).seed)

    def pixels(self, picture: Picture) -> Tensor:
        """The picture's pixels under the condition, (C, H, W) of uint8; those of `blemish.corrupt`."""
        batch = picture_batch(picture.image).contiguous()
        return self.condition.apply(batch, seed=self.seed, ids=torch.tensor([picture.id]))[0]

    def image(self, picture: Picture) -> Image.Image:
        """The same as a picture."""
        return as_picture(self.pixels(picture))


@dataclass(frozen=True)
class Answers:
    """What a model says: its five likeliest classes, and its confidence in all of them."""

    top: tuple[tuple[int, float], ...]
    confidences: tuple[float, ...]


class Witness:
    """A model that is asked about single pictures, one at a time; what it said last is remembered."""

    def __init__(self, model: Classifier, class_names: Sequence[str] | None = None) -> None:
        self.model = model
        names = class_names if class_names is not None else model.classes
        self._titles = None if names is None else class_titles(names)
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str, int], Answers] = OrderedDict()

    def name_of(self, number: int, classes: int) -> str:
        """What people call a class."""
        if self._titles is None and classes == _IMAGENET:
            self._titles = class_titles(imagenet_wnids())
        return self._titles[number] if self._titles and number < len(self._titles) else f"class {number}"

    def answers(self, picture: Picture, view: View) -> Answers:
        """What the model says of the picture under the condition: a plan of one image, carried out."""
        key = (picture.key, str(view.condition), view.seed)
        with self._lock:
            if key not in self._known:
                self._known[key] = self._asked(picture, view)
                while len(self._known) > _KEPT:
                    self._known.popitem(last=False)
            self._known.move_to_end(key)
            return self._known[key]

    def _asked(self, picture: Picture, view: View) -> Answers:
        plan = plan_for(self.model, _one(picture), [view.condition], protocol=Protocol(seed=view.seed), batch_size=1)
        [(_, shares)] = probabilities(plan)
        values = shares[0]
        order = torch.sort(values, descending=True, stable=True).indices[:TOP].tolist()
        return Answers(tuple((number, float(values[number])) for number in order), tuple(values.tolist()))

    def told(self, picture: Picture, view: View) -> dict[str, Any]:
        """The same for the page, with the confidence in what the model says of the clean picture."""
        said, clean = self.answers(picture, view), self.answers(picture, View(CLEAN, 0))
        before, classes = clean.top[0][0], len(said.confidences)
        return {
            "top": [
                {"class": number, "name": self.name_of(number, classes), "confidence": confidence}
                for number, confidence in said.top
            ],
            "clean": {
                "class": before,
                "name": self.name_of(before, classes),
                "before": clean.top[0][1],
                "confidence": said.confidences[before],
            },
        }


def _one(picture: Picture) -> Images:
    """A set of one image. It has no label; plans want one, and nothing here asks whether an answer is right."""
    gray = picture.image.mode == "L"
    source = Source(
        picture.name,
        (picture.name,),
        np.array([picture.id], dtype=np.int64),
        np.zeros(1, dtype=np.int64),
        lambda _: picture.image,
        channels=1 if gray else 3,
    )
    return load(source, workers=1)
