"""TensorFlow Lite models, floating-point or quantised."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from blemish.core.errors import InputError, refused
from blemish.core.optional import optional_import
from blemish.core.reading import read_bytes
from blemish.models.base import Classifier, Preprocessing
from blemish.models.code import needs_permission
from blemish.models.hashing import hash_files
from blemish.models.onnx_file import in_batches_of, preprocessing_for
from blemish.models.own_preprocessing import NOTHING_SAID

_FLEX = re.compile(rb"Flex\w+\0", re.ASCII)
_LOWEST = {"uint8": 0, "int8": -128}


def load_tflite(path: Path, *, allow_code: bool = False) -> Classifier:
    """The classifier in a ``.tflite`` file.

    By default a quantised model takes the grey levels as they are (int8: less 128), and a floating-point one values in
    [0, 1]. Mean and standard deviation, where given, are applied first; the model's own scale turns the result into
    its whole numbers. Operators of TensorFlow itself can read and write files, so the user has to allow them.
    """
    if not allow_code and (operators := _tensorflow_operators(read_bytes(path))):
        why = f"uses operators of TensorFlow ({', '.join(operators[:3])}), which can read and write files"
        raise needs_permission(str(path), why, "convert it with TFLite's own operators only")
    runtime = _runtime()
    with refused(f"{path}: not a readable TFLite model"):  # damaged files fail in many ways inside the runtime
        interpreter = runtime.Interpreter(model_path=str(path), num_threads=torch.get_num_threads())
        interpreter.allocate_tensors()
    inputs, outputs = interpreter.get_input_details(), interpreter.get_output_details()
    if len(inputs) != 1:
        raise InputError(f"{path}: {len(inputs)} inputs; expected one, the images")
    if not outputs:
        raise InputError(f"{path}: no outputs; expected class scores")
    taken, given = inputs[0], outputs[0]
    kind = np.dtype(taken["dtype"])
    if kind.name not in ("float32", *_LOWEST):
        raise InputError(f"{path}: input of type {kind.name}; expected float32, uint8 or int8")

    def run(values: NDArray[Any]) -> NDArray[Any]:
        interpreter.set_tensor(taken["index"], _quantised(values, taken))
        interpreter.invoke()
        return _dequantised(interpreter.get_tensor(given["index"]), given)

    shape = [int(size) for size in taken["shape"]]
    return Classifier(
        name=path.stem,
        kind="tflite",
        forward=in_batches_of(str(path), shape[0], run),
        weights=hash_files([path]),
        preprocessing=_preprocessing(str(path), shape, taken),
        assumed=None if kind.name in _LOWEST else NOTHING_SAID,
    )


def _tensorflow_operators(content: bytes) -> list[str]:
    """The names of operators that are not TFLite's own, as texts with their lengths before and a zero behind."""
    names = {
        match[0][:-1].decode()
        for match in _FLEX.finditer(content)
        if content[: match.start()].endswith((match.end() - match.start() - 1).to_bytes(4, "little"))
    }
    return sorted(names)


def _runtime() -> Any:
    for module in ("ai_edge_litert.interpreter", "tflite_runtime.interpreter"):
        with contextlib.suppress(InputError):
            return optional_import(module)
    raise InputError("TFLite models need ai-edge-litert; install it with: pip install ai-edge-litert")


def _scale(details: Mapping[str, Any]) -> tuple[float, int]:
    """The scale and zero point of a tensor; without them, whole numbers stand for grey levels."""
    scale, zero = details["quantization"]
    kind = np.dtype(details["dtype"]).name
    return (float(scale), int(zero)) if scale else (1 / 255, _LOWEST.get(kind, 0))


def _preprocessing(name: str, shape: list[int], details: Mapping[str, Any]) -> Preprocessing:
    plain = preprocessing_for(name, list(shape))
    kind = np.dtype(details["dtype"]).name
    if kind not in _LOWEST:
        return plain
    scale, zero = _scale(details)
    # Chosen so that quantising gives back the level itself: level + lowest = value / scale + zero.
    return replace(plain, mean=((zero - _LOWEST[kind]) / 255,), std=(1 / (255 * scale),))


def _quantised(values: NDArray[Any], details: Mapping[str, Any]) -> NDArray[Any]:
    kind = np.dtype(details["dtype"])
    if kind.name not in _LOWEST:
        return values.astype(kind, copy=False)
    scale, zero = _scale(details)
    limits = np.iinfo(kind)
    return np.rint(values / scale + zero).clip(limits.min, limits.max).astype(kind)


def _dequantised(values: NDArray[Any], details: Mapping[str, Any]) -> NDArray[Any]:
    if np.dtype(details["dtype"]).kind == "f":
        return np.array(values)
    scale, zero = _scale(details)
    return ((values.astype(np.float32) - zero) * scale).astype(np.float32)
