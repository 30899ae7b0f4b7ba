"""Scikit-learn classifiers: flattened pixels in [0, 1] in, probabilities out."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.core.errors import InputError, refused
from blemish.core.optional import optional_import
from blemish.core.printable import first_few
from blemish.models.base import Channels, Classifier, Output, Preprocessing
from blemish.models.code import needs_permission
from blemish.models.hashing import hash_files


def load_estimator(path: Path, *, allow_code: bool) -> Classifier:
    """An estimator that joblib or pickle has written; reading one can run code from it, so it has to be allowed."""
    if not allow_code:
        raise needs_permission(str(path), "a pickle, and reading it can run code from it", "save the model as ONNX")
    optional_import("sklearn")
    try:
        estimator = optional_import("joblib").load(path)  # reads plain pickles too
    except Exception as error:  # a pickle can raise anything
        raise InputError(f"{path}: cannot be unpickled ({type(error).__name__}: {error})") from error
    return from_estimator(estimator, name=path.stem, weights=hash_files([path]))


def is_estimator(model: Any) -> bool:
    """Whether this behaves like a scikit-learn estimator."""
    return not isinstance(model, type) and hasattr(model, "predict") and hasattr(model, "fit")


def from_estimator(
    estimator: Any,
    *,
    name: str | None = None,
    preprocessing: Preprocessing | None = None,
    weights: str | None = None,
) -> Classifier:
    """A fitted scikit-learn classifier whose classes are the labels 0 … K − 1.

    Images are flattened in the order of NumPy pictures. Size and channels follow from the number of features, if it
    is that of a square picture. Scores are ``predict_proba``, else ``decision_function``, else one-hot ``predict``.
    """
    name = name or type(estimator).__name__
    if not is_estimator(estimator):
        raise InputError(f"model {name}: a {type(estimator).__name__}; expected a scikit-learn classifier")
    classes = getattr(estimator, "classes_", None)
    if classes is None:
        raise InputError(f"model {name}: it has no classes_; expected a fitted classifier")
    labels = _labels(name, np.asarray(classes))
    predict, output = _scores(estimator, labels)
    if preprocessing is None:
        preprocessing = flat_preprocessing(getattr(estimator, "n_features_in_", None))

    def forward(values: Tensor) -> Tensor:
        try:
            return torch.from_numpy(np.ascontiguousarray(predict(values.numpy()), dtype=np.float32))
        except ValueError as error:
            raise InputError(f"model {name} refuses images of {values.shape[1]} values: {error}") from error

    return Classifier(
        name=name,
        kind="sklearn",
        forward=forward,
        weights=weights or _hash(name, estimator),
        preprocessing=preprocessing,
        output=output,
    )


def flat_preprocessing(features: int | None) -> Preprocessing:
    """Flattened pixels, with the size and channels that a number of features implies, if it does.

    >>> flat_preprocessing(3072).size, flat_preprocessing(784).channels
    ((32, 32), 'gray')
    """
    kinds: tuple[tuple[Channels, int], ...] = (("gray", 1), ("rgb", 3))
    for channels, count in kinds:
        side = math.isqrt((features or 0) // count)
        if side and side * side * count == features:
            return Preprocessing(size=(side, side), channels=channels, layout="flat")
    return Preprocessing(layout="flat")


def _hash(name: str, estimator: Any) -> str:
    with refused(f"model {name}: it cannot be pickled, and so not be told from others", pickle.PicklingError):
        return str(optional_import("joblib").hash(estimator))


def _labels(name: str, classes: NDArray[Any]) -> NDArray[np.int64]:
    """The label of each column of scores."""
    try:
        labels = classes.astype(np.int64)  # "7" is 7: common data sets have their digits as text
        whole = classes.ndim == 1 and bool((labels == classes.astype(np.float64)).all())
    except (ValueError, TypeError, OverflowError):
        whole = False
    if not whole or sorted(labels.tolist()) != list(range(len(labels))):
        shown = first_few([repr(name) for name in classes.tolist()], 5)
        raise InputError(f"model {name}: {len(classes)} classes ({shown}); expected the labels 0 … {len(classes) - 1}")
    return labels


def _scores(estimator: Any, labels: NDArray[np.int64]) -> tuple[Callable[[NDArray[np.float32]], NDArray[Any]], Output]:
    count = len(labels)
    columns = np.argsort(labels)

    def one_hot(rows: NDArray[np.float32]) -> NDArray[Any]:
        return np.eye(count)[np.asarray(estimator.predict(rows)).astype(np.int64)]

    if hasattr(estimator, "predict_proba"):
        return lambda rows: np.asarray(estimator.predict_proba(rows))[:, columns], "probabilities"
    if not hasattr(estimator, "decision_function"):
        return one_hot, "probabilities"
    if getattr(estimator, "decision_function_shape", None) == "ovo" and count > 2:
        return one_hot, "probabilities"  # one score per pair of classes is not one score per class

    def decisions(rows: NDArray[np.float32]) -> NDArray[Any]:
        scores = np.asarray(estimator.decision_function(rows))
        if scores.ndim == 1:  # two classes: the score of the second against the first
            scores = np.stack([np.zeros_like(scores), scores], axis=1)
        return scores[:, columns]

    return decisions, "logits"
