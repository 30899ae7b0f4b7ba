"""A model and labelled images brought together, before any long work: do its outputs mean what they should?"""

from __future__ import annotations

import traceback
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from blemish.benchmarks.benchmark import Protocol
from blemish.benchmarks.condition import CLEAN
from blemish.core.errors import InputError, notify
from blemish.core.types import Square
from blemish.data.classes import imagenet_wnids
from blemish.data.images import Images, picture_batch
from blemish.data.labels import fit_labels
from blemish.data.model_classes import fit_class_names
from blemish.data.pictures import resize_and_crop
from blemish.data.source import Source
from blemish.data.superclasses import in_superclasses, superclasses_named
from blemish.evaluation.answers import Answers
from blemish.evaluation.executors.base import Failed
from blemish.evaluation.executors.failures import raise_failures
from blemish.evaluation.measure import count_outputs, measure
from blemish.evaluation.plan import plan_for
from blemish.evaluation.runs import Run
from blemish.evaluation.task import Task
from blemish.models.base import Classifier

# How many images are classified again when a run is continued, and how far their confidence may be off.
_AGAIN = 8
_CONFIDENCE = 0.02


class Fitted(NamedTuple):
    """Images whose labels are a model's class numbers, and how many outputs it has."""

    source: Source
    outputs: int


def fit(
    model: Classifier,
    source: Source,
    *,
    resize: int | None = None,
    crop: int | Square | None = None,
    superclasses: str | None = None,
) -> Fitted:
    """Give images the labels that the model means, and say what was assumed of labels and of the model's input.

    For that the model is shown the first image, brought to size. Everything that shows labelled images to a model
    begins here. With ``superclasses``, by name, only images of theirs are left, and have them as labels.
    """
    if model.assumed is not None:
        notify(f"model {model.name}: {model.assumed}")
    first = picture_batch(resize_and_crop(source.read(0), resize=resize, crop=crop))
    outputs = count_outputs(model, first.contiguous())
    names = None if model.classes is None else model.classes[model.skip_classes :]
    if names is not None and len(names) != outputs:
        raise InputError(f"model {model.name}: {len(names)} class names for {outputs} outputs; expected one for each")
    if superclasses is not None:
        grouped = in_superclasses(source, superclasses_named(superclasses), outputs, model=model.name)
        if names is not None:  # superclasses are made of ImageNet's classes in their usual order
            usual = replace(source, labels=np.zeros_like(source.labels), classes=imagenet_wnids(), class_names=None)
            fit_class_names(replace(usual, labelling="imagenet"), names, model=model.name)
        return Fitted(grouped, outputs)
    try:
        if names is not None:
            source = fit_class_names(source, names, model=model.name)
        fitted = fit_labels(source, outputs, model=model.name)
        if model.prompts is not None and fitted.groups is None and fitted.labelling == "given":
            _check_as_many(fitted, outputs)
    except InputError as error:
        if model.prompts is None:
            raise
        raise InputError(
            f"{error}. Model {model.name} is a zero-shot model, which was asked for {outputs:,} class names, "
            "ImageNet's by default; name the classes of the data (--class-names FILE)"
        ) from None
    return Fitted(fitted, outputs)


def fit_all(model: Classifier, source: Source, others: Iterable[Source], protocol: Protocol, folder: Path) -> Fitted:
    """Fit the images of a run, and other sets beside them; what a model raised by itself is kept in the folder."""
    try:
        view, superclasses = protocol.view, protocol.superclasses
        fitted = fit(model, source, resize=protocol.resize, crop=view, superclasses=superclasses)
    except InputError as error:
        if error.__cause__ is not None:  # what the model raised may be wanted
            raise_failures([Failed(CLEAN, str(error), traceback.format_exc(), 1, bad_input=True)], folder)
        raise
    for other in others:
        fit_labels(other, fitted.outputs, model=model.name)
    return fitted


def _check_as_many(source: Source, outputs: int) -> None:
    """Refuse data with more or fewer classes than names: they are not those that a zero-shot model was asked for."""
    if source.classes is not None and len(source.classes) != outputs:
        raise InputError(f"{source.name}: {len(source.classes)} classes for {outputs:,} class names")


def check_outputs_unchanged(
    model: Classifier,
    images: Images,
    run: Run,
    stage: int,
    *,
    protocol: Protocol,
    batch_size: int | None,
    crop: int | Square | None,
    task: Task | None = None,
) -> None:
    """Raise if the model's outputs changed since the run began: weights are not all that can change."""
    again = images.take(range(min(_AGAIN, len(images))))
    ((_, now),) = measure(plan_for(model, again, protocol=protocol, batch_size=batch_size, crop=crop, task=task))
    if task is not None:
        assert isinstance(now, Answers)
        changed = task.changed(run.answers_part(CLEAN, stage).take(np.arange(len(again))), now)
        if changed is not None:
            raise InputError(
                f"{run.folder}: model {model.name} gives another answer to {changed} than when the run began; choose "
                "another --out or --name"
            )
        return
    difference = np.abs(now.label_confidence - run.part(CLEAN, stage).label_confidence[: len(again)])
    if (difference > _CONFIDENCE).any():
        raise InputError(
            f"{run.folder}: model {model.name} gives other scores for {now.images[difference.argmax()]} than when the "
            "run began; choose another --out or --name"
        )
