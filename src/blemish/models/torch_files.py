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

from blemish.core.errors import InputError
from blemish.core.torch_archive import torch_kind
from blemish.models.base import Classifier
from blemish.models.code import first_line, needs_permission
from blemish.models.hashing import hash_files
from blemish.models.own_preprocessing import NOTHING_SAID
from blemish.models.torch_module import MoreThanTensorsError, from_module, read_safely

__all__ = ["load_exported_program", "load_torch_file", "load_torchscript"]

_INSTEAD = "save the model as ONNX, or its state dict alone"


def load_torch_file(path: Path, *, device: torch.device, allow_code: bool) -> Classifier:
    """The model in a ``.pt`` or ``.pth`` file, whichever of the kinds that share these endings it is."""
    kind = torch_kind(path)
    if kind == "torchscript":
        return load_torchscript(path, device=device, allow_code=allow_code)
    if kind == "exported":
        return load_exported_program(path, device=device, allow_code=allow_code)
    try:
        found = _unpickled(path) if allow_code else read_safely(path)
    except MoreThanTensorsError as error:
        why = "a pickle of more than tensors, and reading it can run code from it"
        raise needs_permission(str(path), why, _INSTEAD) from error
    if isinstance(found, nn.Module):
        return from_module(found, name=path.stem, device=device)
    raise InputError(
        f"{path}: holds {_kind(found)}, not a model. Name the function that builds the model, and give the file as its "
        "weights: model python:package.module:function, weights FILE"
    )


def load_torchscript(path: Path, *, device: torch.device, allow_code: bool) -> Classifier:
    """A TorchScript archive."""
    if torch_kind(path) != "torchscript":
        raise InputError(f"{path}: not a TorchScript file (there is no TorchScript in it)")
    if not allow_code:
        raise needs_permission(
            str(path), "TorchScript, which can run code when it is read and when it is used", _INSTEAD
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # torch would rather have exported programs
            module = torch.jit.load(path, map_location="cpu").eval().to(device)  # type: ignore[no-untyped-call]
    except (RuntimeError, ValueError, OSError) as error:
        raise InputError(f"{path}: not a readable TorchScript file ({first_line(error)})") from error
    return _classifier(path, "torchscript", module, device)


def load_exported_program(path: Path, *, device: torch.device, allow_code: bool) -> Classifier:
    """A program that ``torch.export.save`` wrote. Its batch size must be dynamic."""
    if not allow_code:
        raise needs_permission(
            str(path), "a program of torch.export, which can hold pickles and libraries that run code", _INSTEAD
        )
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*buffer is not writable")  # torch's own way of reading
            program = torch.export.load(path)
        module = program.module()
    except Exception as error:  # damaged archives fail in many ways inside torch
        raise InputError(f"{path}: not a readable exported program ({first_line(error)})") from error
    return _classifier(path, "exported", module.to(device), device)


def _classifier(path: Path, kind: str, module: Callable[[Tensor], Tensor], device: torch.device) -> Classifier:
    def forward(values: Tensor) -> Tensor:
        try:
            return module(values)
        except (RuntimeError, AssertionError) as error:
            if isinstance(error, torch.cuda.OutOfMemoryError):
                raise
            shape = tuple(values.shape)
            raise InputError(f"{path}: the model refuses an input of shape {shape}: {first_line(error)}") from error

    return Classifier(
        name=path.stem,
        kind=kind,
        forward=forward,
        weights=hash_files([path]),
        device=device,
        assumed=NOTHING_SAID,
    )


def _unpickled(path: Path) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=False)
    except Exception as error:  # a pickle can raise anything
        raise InputError(f"{path}: cannot be unpickled ({type(error).__name__}: {first_line(error)})") from error


def _kind(found: Any) -> str:
    if isinstance(found, dict):
        keys = ", ".join(str(key) for key in list(found)[:3])
        return f"a dictionary ({keys}, …)" if len(found) > 3 else f"a dictionary ({keys})"
    return f"a {type(found).__name__}"
