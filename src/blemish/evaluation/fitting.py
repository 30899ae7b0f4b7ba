"""A model and labelled images brought together, before any long work: does each label mean one of its outputs?"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from blemish.core.errors import notify
from blemish.core.types import Square
from blemish.data.labels import fit_labels
from blemish.data.pictures import resize_and_crop
from blemish.data.source import Source
from blemish.evaluation.measure import count_outputs
from blemish.models.base import Classifier

__all__ = ["Fitted", "fit"]


class Fitted(NamedTuple):
    """Images whose labels are a model's class numbers, and how many outputs it has."""

    source: Source
    outputs: int


def fit(model: Classifier, source: Source, *, resize: int | None = None, crop: int | Square | None = None) -> Fitted:
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
