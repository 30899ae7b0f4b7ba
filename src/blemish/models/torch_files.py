"""Torch models in one file: TorchScript, exported programs, pickled modules.

All three can run code. A pickle does so when it is read. TorchScript has ``__setstate__``, which runs when it is read,
and operators that write files; no list of them was ever complete. So the user has to allow it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from blemish.core.errors import InputError, first_line, refused
from blemish.core.printable import first_few
from blemish.core.torch_archive import torch_kind
from blemish.models.base import Classifier
from blemish.models.code import needs_permission
from blemish.models.hashing import hash_files
from blemish.models.own_preprocessing import NOTHING_SAID
from blemish.models.torch_module import MoreThanTensorsError, from_module, read_safely

TORCHSCRIPT_SUFFIXES = (".pts", ".torchscript")
EXPORTED_SUFFIX = ".pt2"

_WHY = {
    "torchscript": "TorchScript, which can run code when it is read and when it is used",
    "exported": "a program of torch.export, which can hold pickles and libraries that run code",
    "saved": "a pickle of more than tensors, and reading it can run code from it",
}


def load_torch_file(path: Path, *, device: torch.device, allow_code: bool) -> Classifier:
    """The model in a file of torch; ``.pt`` and ``.pth`` may be of any kind. Exported programs need a dynamic batch."""
    suffix = path.suffix.lower()
    kind = "exported" if suffix == EXPORTED_SUFFIX else torch_kind(path)
    if suffix in TORCHSCRIPT_SUFFIXES and kind != "torchscript":
        raise InputError(f"{path}: not a TorchScript file (there is no TorchScript in it)")
    refused = needs_permission(str(path), _WHY[kind], "save the model as ONNX, or its state dict alone")
    if kind == "saved":
        try:
            saved = _unpickled(path) if allow_code else read_safely(path)
        except MoreThanTensorsError as error:
            raise refused from error
        if isinstance(saved, nn.Module):
            return from_module(saved, name=path.stem, device=device)
        raise InputError(
            f"{path}: holds {_described(saved)}, not a model. Name the function that builds the model, and give the "
            "file as its weights: model python:package.module:function, weights FILE"
        )
    if not allow_code:
        raise refused
    module = _torchscript(path) if kind == "torchscript" else _exported_program(path)
    return _classifier(path, kind, module.to(device), device)


def _torchscript(path: Path) -> nn.Module:
    unreadable = (RuntimeError, ValueError, OSError)
    with refused(f"{path}: not a readable TorchScript file", *unreadable), warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # torch would rather have exported programs
        return torch.jit.load(path, map_location="cpu").eval()  # type: ignore[no-untyped-call, no-any-return]


def _exported_program(path: Path) -> nn.Module:
    # Damaged archives fail in many ways inside torch.
    with refused(f"{path}: not a readable exported program"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*buffer is not writable")  # torch's own way of reading
        return torch.export.load(path).module()


def _classifier(path: Path, kind: str, module: Callable[[Tensor], Tensor], device: torch.device) -> Classifier:
    def forward(values: Tensor) -> Tensor:
        try:
            return module(values)
        except torch.cuda.OutOfMemoryError:
            raise
        except (RuntimeError, AssertionError) as error:
            shape = tuple(values.shape)
            raise InputError(f"{path}: the model refuses an input of shape {shape}: {first_line(error)}") from error

    weights = hash_files([path])
    return Classifier(path.stem, kind, forward, weights, device=device, assumed=NOTHING_SAID)


def _unpickled(path: Path) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=False)
    except Exception as error:  # a pickle can raise anything
        raise InputError(f"{path}: cannot be unpickled ({type(error).__name__}: {first_line(error)})") from error


def _described(saved: Any) -> str:
    if isinstance(saved, dict):
        return f"a dictionary ({first_few([str(key) for key in saved], 3)})"
    return f"a {type(saved).__name__}"
