"""Models in files, by the ending of the name. No code of a file is run unless it is allowed."""

from __future__ import annotations

from pathlib import Path

import torch

from blemish.core.errors import InputError
from blemish.core.reading import check_regular
from blemish.models.base import Classifier
from blemish.models.onnx_file import load_onnx
from blemish.models.sklearn_estimator import load_estimator
from blemish.models.tflite_file import load_tflite
from blemish.models.torch_files import EXPORTED_SUFFIX, TORCHSCRIPT_SUFFIXES, load_torch_file

__all__ = ["SUFFIXES", "load_file"]

_TORCH = (".pt", ".pth", ".th", ".ckpt", *TORCHSCRIPT_SUFFIXES, EXPORTED_SUFFIX)
SUFFIXES = (*_TORCH, ".onnx", ".tflite", ".joblib", ".pkl", ".pickle")


def load_file(path: str | Path, *, device: torch.device, allow_code: bool = False) -> Classifier:
    """The classifier in a file.

    ONNX and TFLite files are read as they are. TorchScript, exported programs (``.pt2``), pickled torch modules and
    scikit-learn estimators need ``allow_code``, since they can run code.
    """
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError(f"{path}: a model file with the ending {suffix!r}; expected {', '.join(SUFFIXES)} or .toml")
    check_regular(file)
    if suffix in _TORCH:
        return load_torch_file(file, device=device, allow_code=allow_code)
    if suffix == ".onnx":
        return load_onnx(file, device=device)
    load = load_tflite if suffix == ".tflite" else load_estimator
    return load(file, allow_code=allow_code)
