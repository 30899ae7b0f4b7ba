"""ONNX models through onnxruntime, whatever their layout, batch size and number type."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.core.errors import InputError
from blemish.core.optional import optional_import
from blemish.models.base import Classifier, Preprocessing
from blemish.models.hashing import hash_files
from blemish.models.onnx_external import external_files
from blemish.models.own_preprocessing import NOTHING_SAID
from blemish.models.sklearn_estimator import flat_preprocessing

_TYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(uint8)": np.uint8,
}

_PLAIN = (
    "nothing says what its input is like; assumed values in 0 … 1, red first, without mean and standard deviation; "
    "expected an export that normalises by itself"
)

Shape = list[int | str | None]
Run = Callable[[NDArray[Any]], NDArray[Any]]


def load_onnx(path: Path, *, device: torch.device) -> Classifier:
    """The classifier in an ``.onnx`` file, with the input size and layout that the file states."""
    files = [path, *external_files(path)]
    session = _session(path, device)
    required = session.get_inputs()
    if len(required) != 1:
        names = ", ".join(item.name for item in required)
        raise InputError(f"{path}: {len(required)} inputs ({names}); expected one, the images")
    taken, given = required[0], _output(path, session)
    if taken.type not in _TYPES:
        raise InputError(f"{path}: input of {taken.type}; expected {', '.join(_TYPES)}")
    dtype = _TYPES[taken.type]

    def run(values: NDArray[Any]) -> NDArray[Any]:
        try:
            (scores,) = session.run([given], {taken.name: values.astype(dtype, copy=False)})
        except Exception as error:  # onnxruntime's errors share no base of their own
            reason = str(error).split(" : ")[-1].strip()
            raise InputError(f"{path}: the model refuses an input of shape {values.shape}: {reason}") from error
        return np.asarray(scores)

    batch = taken.shape[0] if isinstance(taken.shape[0], int) else None
    return Classifier(
        name=path.stem,
        kind="onnx",
        forward=in_batches_of(str(path), batch, run),
        weights=hash_files(files),
        preprocessing=preprocessing_for(str(path), list(taken.shape), levels=dtype == np.uint8),
        assumed=None if dtype == np.uint8 else NOTHING_SAID,
    )


class OnePicture(NamedTuple):
    """An ONNX model that is asked about one picture at a time, for whichever of its outputs."""

    given: list[str]
    preprocessing: Preprocessing
    weights: str
    ask: Callable[[Tensor, Sequence[str]], list[NDArray[Any]]]

    def named(self, path: Path, outputs: Sequence[str], expected: str) -> Sequence[str]:
        """The outputs, if the model has all of them."""
        if missing := [item for item in outputs if item not in self.given]:
            raise InputError(f"{path}: no output {missing[0]!r} among {', '.join(self.given)}; {expected}")
        return outputs

    @property
    def assumed(self) -> str | None:
        """What had to be assumed of its input."""
        return None if self.preprocessing.levels else _PLAIN


def load_one_picture(path: Path, *, device: torch.device) -> OnePicture:
    """The model in an ``.onnx`` file, whose input is one picture (1, C, H, W) or (1, H, W, C)."""
    files = [path, *external_files(path)]
    session = _session(path, device)
    required = session.get_inputs()
    if len(required) != 1 or required[0].type not in _TYPES or len(required[0].shape) != 4:
        shown = ", ".join(f"{item.name} of {item.type} {_shown(item.shape)}" for item in required)
        raise InputError(f"{path}: takes {shown}; expected one input, pictures (1, C, H, W) of {', '.join(_TYPES)}")
    name, dtype = required[0].name, _TYPES[required[0].type]
    preprocessing = preprocessing_for(str(path), list(required[0].shape), levels=dtype == np.uint8)

    def ask(picture: Tensor, outputs: Sequence[str]) -> list[NDArray[Any]]:
        values = preprocessing(picture[None]).cpu().numpy().astype(dtype, copy=False)
        return [np.asarray(value) for value in session.run(list(outputs), {name: values})]

    return OnePicture([item.name for item in session.get_outputs()], preprocessing, hash_files(files), ask)


def in_batches_of(name: str, batch: int | None, run: Run) -> Callable[[Tensor], Tensor]:
    """A forward pass over batches of any size with a model that takes one size only; the last part is filled up."""

    def forward(values: Tensor) -> Tensor:
        rows = values.cpu().numpy()
        if batch is None or len(rows) == batch:
            return _as_scores(run(rows))
        parts: list[Tensor] = []
        for start in range(0, len(rows), batch):
            part = rows[start : start + batch]
            missing = batch - len(part)
            full = np.concatenate([part, np.repeat(part[-1:], missing, axis=0)]) if missing else part
            scores = _as_scores(run(full))
            if scores.ndim == 0 or len(scores) != batch or scores.shape[1:] != (parts or [scores])[0].shape[1:]:
                raise InputError(
                    f"{name}: output of shape {tuple(scores.shape)} for {batch} images; expected one row of class "
                    "scores per image, as many for all"
                )
            parts.append(scores[: len(part)])
        return torch.cat(parts)

    return forward


def preprocessing_for(name: str, shape: Shape, *, levels: bool = False) -> Preprocessing:
    """The preprocessing that the shape of an input implies: layout, channels, and the size if it is fixed.

    >>> preprocessing_for("m", ["N", 224, 224, 3]).layout
    'nhwc'
    """
    if any(isinstance(size, int) and size < 1 for size in shape):
        raise InputError(f"{name}: input of shape {_shown(shape)}; expected sizes of 1 or more, or free ones")
    if len(shape) == 2:
        return replace(flat_preprocessing(shape[1] if isinstance(shape[1], int) else None), levels=levels)
    if len(shape) != 4:
        raise InputError(f"{name}: input of shape {_shown(shape)}; expected four axes, batches of pictures, or two")
    last = shape[1] not in (1, 3) and shape[3] in (1, 3)
    count, height, width = (shape[3], shape[1], shape[2]) if last else (shape[1], shape[2], shape[3])
    if isinstance(count, int) and count not in (1, 3):
        raise InputError(f"{name}: input of shape {_shown(shape)}; expected 1 or 3 channels")
    return Preprocessing(
        size=(height, width) if isinstance(height, int) and isinstance(width, int) else None,
        channels="gray" if count == 1 else "rgb",
        layout="nhwc" if last else "nchw",
        levels=levels,
    )


def _session(path: Path, device: torch.device) -> Any:
    runtime = optional_import("onnxruntime")
    options = runtime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3
    wanted = (["CUDAExecutionProvider"] if device.type == "cuda" else []) + ["CPUExecutionProvider"]
    providers = [provider for provider in wanted if provider in runtime.get_available_providers()]
    try:
        return runtime.InferenceSession(str(path), sess_options=options, providers=providers)
    except Exception as error:  # onnxruntime's errors share no base of their own
        raise InputError(f"{path}: not a readable ONNX model ({str(error).split(' : ')[-1].strip()})") from error


def _output(path: Path, session: Any) -> str:
    """The output with the class scores; classifiers of other libraries give the label besides."""
    scores = [item for item in session.get_outputs() if item.type in _TYPES]
    if not scores:
        given = ", ".join(f"{item.name} of {item.type}" for item in session.get_outputs())
        raise InputError(f"{path}: gives {given}; expected class scores (for scikit-learn exports: zipmap=False)")
    return str(scores[0].name)


def _as_scores(scores: NDArray[Any]) -> Tensor:
    values = torch.from_numpy(np.ascontiguousarray(scores))
    return values.flatten(1) if values.ndim > 2 and math.prod(values.shape[1:]) == values.shape[1] else values


def _shown(shape: Shape) -> str:
    return f"({', '.join('?' if size is None else str(size) for size in shape)})"
