"""Models that tell of each of several labels whether an image has it: any classifier, by its outputs one by one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from blemish.core.errors import InputError
from blemish.models.answering import AnsweringModel
from blemish.models.base import Classifier, class_scores
from blemish.models.open import open_model


def open_labeller(
    text: str,
    *,
    name: str | None = None,
    weights: Path | None = None,
    device: str | torch.device | None = None,
    allow_code: bool = False,
    outputs: Sequence[str] = (),
    class_names: str | None = None,
) -> AnsweringModel:
    """A model that is named by a text as classifiers are; its other settings are those of a ``.toml`` file."""
    if outputs:
        raise InputError(f"outputs {', '.join(outputs)} for {text}; expected none: a model of labels has one output")
    if class_names is not None:
        raise InputError(f"class names for {text}; expected none: labels are told by their places")
    settings: dict[str, Any] = {"name": name, "weights": weights, "allow_code": allow_code}
    model = open_model(text, device=device, **settings)
    again = None if model.reopen is None else partial(_reopened, text, settings)
    return from_labeller(model, again)


def _reopened(text: str, settings: dict[str, Any], device: torch.device) -> AnsweringModel:
    return open_labeller(text, device=device, **settings)


def from_labeller(model: Classifier, reopen: Any = None) -> AnsweringModel:
    """A classifier as a model of labels: each logit becomes a probability by itself, and probabilities stay."""
    if model.skip_classes:
        raise InputError(f"model {model.name}: skip_classes {model.skip_classes}; expected 0 for several labels")
    return AnsweringModel(
        model.name,
        model.kind,
        partial(_probabilities, model),
        model.weights,
        model.classes,
        model.training,
        model.device,
        model.module,
        model.assumed,
        reopen,
    )


def _probabilities(model: Classifier, images: Tensor) -> Tensor:
    scores = class_scores(f"model {model.name}", model.forward(model.preprocessing(images)), len(images))
    if not bool(scores.isfinite().all()):
        raise InputError(f"model {model.name}: scores that are infinite or not a number; expected finite ones")
    if model.output == "logits":
        return scores.sigmoid()
    if float(scores.min()) < 0 or float(scores.max()) > 1:
        raise InputError(f"model {model.name}: scores outside 0 … 1; they are logits: set output to logits")
    return scores
