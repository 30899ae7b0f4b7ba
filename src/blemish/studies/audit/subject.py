"""What is audited before a run: a model, labelled images of which some are taken, and how they are brought to size."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from blemish.benchmarks.benchmark import Protocol
from blemish.benchmarks.condition import CLEAN, Condition
from blemish.data.cache import load
from blemish.data.images import Images
from blemish.data.source import Source, stratified_order
from blemish.evaluation.fitting import fit
from blemish.evaluation.measure import measure
from blemish.evaluation.plan import plan_for
from blemish.evaluation.records import Records
from blemish.models.base import Classifier


@dataclass(frozen=True)
class Subject:
    """A model and some of the images that it is to be measured on, with the labels that it means.

    Every beginning of ``images`` holds the classes in their proportions. ``source`` holds all images, ``rows`` says
    which of them were taken. Images that are ``lossy`` were JPEG once, though they should not have been.
    """

    model: Classifier
    source: Source
    outputs: int
    protocol: Protocol
    rows: NDArray[np.int64]
    images: Images
    batch_size: int | None = None
    lossy: bool = False

    @property
    def label_classes(self) -> int:
        """How many classes a label can mean: the model's, or those of the images that each stand for several."""
        return self.outputs if self.images.groups is None else len(self.images.groups)

    def answers(self, images: Images, *, model: Classifier | None = None, batch_size: int | None = None) -> Records:
        """What the model, or another, says of images."""
        ((_, records),) = self.conditions(images, [CLEAN], model=model, batch_size=batch_size)
        return records

    def conditions(
        self,
        images: Images,
        conditions: Sequence[Condition],
        *,
        model: Classifier | None = None,
        batch_size: int | None = None,
    ) -> list[tuple[Condition, Records]]:
        """What is said of images under conditions."""
        size = batch_size or self.batch_size
        plan = plan_for(model or self.model, images, conditions, protocol=self.protocol, batch_size=size)
        return list(measure(plan))

    def load(self, rows: NDArray[np.int64], protocol: Protocol) -> Images:
        """Images of the source, brought to size in another way."""
        return _load(self.source.take(rows), protocol)

    def relabelled(self, mapping: NDArray[np.int64]) -> Subject:
        """The same with other labels: ``mapping`` has one for each."""
        source = replace(self.source, labels=mapping[self.source.labels])
        return replace(self, source=source, images=replace(self.images, labels=mapping[self.images.labels]))


def open_subject(
    model: Classifier, source: Source, protocol: Protocol, *, count: int, batch_size: int | None
) -> Subject:
    """The model with some of the images, taken from all classes in proportion."""
    fitted = fit(model, source, resize=protocol.resize, crop=protocol.view, superclasses=protocol.superclasses)
    whole = fitted.source
    rows = stratified_order(whole.labels, whole.ids)[:count]
    images = _load(whole.take(rows), protocol)
    return Subject(model, whole, fitted.outputs, protocol, rows, images, batch_size)


def _load(source: Source, protocol: Protocol) -> Images:
    return load(source, resize=protocol.resize, crop=protocol.view)
