"""``.keras`` files: models of Keras 3, on torch unless the program has chosen another of its backends."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from blemish.core.errors import InputError, first_line
from blemish.core.optional import optional_import
from blemish.models.base import Classifier, Output
from blemish.models.card import ModelCard
from blemish.models.code import needs_permission
from blemish.models.hashing import hash_files
from blemish.models.onnx_file import preprocessing_for
from blemish.models.own_preprocessing import NOTHING_SAID

KERAS_SUFFIX = ".keras"

_BACKEND = "KERAS_BACKEND"


def load_keras(path: Path, *, device: torch.device, allow_code: bool) -> Classifier:
    """The classifier in a ``.keras`` file, with the input size and layout that it states.

    Such a file can hold code (Lambda layers), and Keras has run code from crafted files even where it was told not to;
    so the user has to allow it.
    """
    if not allow_code:
        why = "a model of Keras, which can hold code, and reading it can run code"
        raise needs_permission(str(path), why, "save the model as ONNX (model.export)")
    keras = _keras()
    try:
        model = keras.saving.load_model(path, compile=False, safe_mode=False)
        shape = list(model.input_shape)
    except Exception as error:  # code of others, and no class of errors for them
        raise InputError(f"{path}: not a readable Keras model ({type(error).__name__}: {first_line(error)})") from error
    preprocessing = preprocessing_for(str(path), shape)

    def forward(values: Tensor) -> Tensor:
        try:
            scores = model(values if keras.backend.backend() == "torch" else values.cpu().numpy(), training=False)
        except (ValueError, RuntimeError) as error:
            raise InputError(
                f"{path}: the model refuses an input of shape {tuple(values.shape)}: {first_line(error)}"
            ) from error
        made = scores if isinstance(scores, Tensor) else torch.from_numpy(np.array(scores))
        return made.to(values.device)

    return Classifier(
        name=path.stem,
        kind="keras",
        forward=forward,
        weights=hash_files([path]),
        preprocessing=preprocessing,
        output=_output(model),
        device=device,
        assumed=NOTHING_SAID,
        card=ModelCard(parameters=int(model.count_params()), input_size=preprocessing.size),
    )


def _output(model: Any) -> Output:
    """Probabilities where the last layer makes them; what is wrong here is refused with the first batch."""
    activation = getattr(model.layers[-1], "activation", None)
    softmax = getattr(activation, "__name__", "") == "softmax" or type(model.layers[-1]).__name__ == "Softmax"
    return "probabilities" if softmax else "logits"


def _keras() -> Any:
    """Keras, which asks its environment for a backend when it is first imported; torch is the one that is here."""
    if "keras" in sys.modules or _BACKEND in os.environ:
        return optional_import("keras")
    os.environ[_BACKEND] = "torch"
    try:
        return optional_import("keras")
    finally:
        del os.environ[_BACKEND]
