"""A model and labelled images brought together, before any long work: does each label mean one of its outputs?"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from blemish.core.errors import InputError, notify
from blemish.data.labels import fit_labels
from blemish.data.pictures import resize_and_crop
from blemish.data.source import Source
from blemish.evaluation.predict import Batcher
from blemish.models.base import Classifier
from blemish.models.speed import slowly

__all__ = ["Fitted", "count_outputs", "fit"]


class Fitted(NamedTuple):
    """Images whose labels are a model's class numbers, and how many outputs it has."""

    source: Source
    outputs: int


def fit(model: Classifier, source: Source, *, resize: int | None = None, crop: int | None = None) -> Fitted:
    """Give images the labels that the model means, and say what was assumed of labels and of the model's input.

    For that the model is shown the first image, brought to size. Everything that shows labelled images to a model
    begins here.
    """
    if model.assumed is not None:
        notify(f"model {model.name}: {model.assumed}")
    picture = np.array(resize_and_crop(source.read(0), resize=resize, crop=crop))
    levels = picture[None] if picture.ndim == 2 else picture.transpose(2, 0, 1)
    outputs = count_outputs(model, torch.from_numpy(np.ascontiguousarray(levels))[None])
    return Fitted(fit_labels(source, outputs, model=model.name), outputs)


def count_outputs(model: Classifier, images: Tensor) -> int:
    """How many classes a model tells apart, without those that are skipped; found out with the first of some images."""
    plain, seen = slowly(model), list[int]()

    def forward(values: Tensor) -> Tensor:
        scores = plain.forward(values)
        if isinstance(scores, Tensor) and scores.ndim == 2:
            seen.append(scores.shape[1] - plain.skip_classes)
        return scores

    # A copy, because the first batch that a model on a GPU is shown is looked at more closely than later ones.
    once = replace(plain, forward=forward)
    try:
        # Twice, because some models drop the axis of a single image.
        list(Batcher(2).map(lambda rows: once(images[rows]), [0, 0]))
    except InputError:
        # What is odd about one image alone need not be odd about many, and is found again if it is.
        if not seen or seen[0] < 1:
            raise
    except Exception as error:  # a model may raise anything
        raise InputError(f"model {model.name} fails at the first image ({type(error).__name__}: {error})") from error
    return seen[0]
