"""Small shared types: what an image batch looks like, and how bad input and lost workers are reported."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

__all__ = [
    "InputError",
    "Notice",
    "ProgressReport",
    "Shape",
    "UnknownNameError",
    "WorkerError",
    "brief",
    "check_dense",
    "notify",
    "odd_kind",
    "optional_import",
    "tell_nobody",
]

_HERE = str(Path(__file__).parent)

ProgressReport = Callable[[int, int, str], None]
"""Told how much of some long work is done, of how much, and what is being done."""


def tell_nobody(done: int, total: int, what: str) -> None:
    """A `ProgressReport` that goes unheard."""


class InputError(ValueError):
    """Input that cannot be used. The message names it, and says what was expected."""


class UnknownNameError(InputError, KeyError):
    """A name that a mapping does not hold."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would quote it


class WorkerError(RuntimeError):
    """Workers that were lost (killed, or their machine is gone), or that cannot start."""


class Notice(UserWarning):
    """What was assumed for the user, who may know better. Commands print it; in Python it is a warning."""


def notify(message: str) -> None:
    """Tell the user once, as a warning at the line of their code that led here."""
    level, frame = 1, sys._getframe(0)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, Notice, stacklevel=level)


def brief(value: object) -> str:
    """A value as error messages show it: its repr, unless that is very long.

    >>> brief("three"), brief(10**100)
    ("'three'", '1000000000…0000000000 (101 characters)')
    """
    try:
        text = repr(value)
    except ValueError:  # Python writes no whole numbers of more than a few thousand digits
        return f"<{type(value).__name__}, too long to write>"
    return text if len(text) <= 80 else f"{text[:10]}…{text[-10:]} ({len(text)} characters)"


class Shape(NamedTuple):
    """The shape of one image."""

    channels: int
    height: int
    width: int

    @classmethod
    def of(cls, images: Tensor) -> Shape:
        """The shape shared by a (B, C, H, W) batch."""
        return cls(*images.shape[-3:])


def odd_kind(values: Tensor) -> str | None:
    """How a tensor is not an ordinary one, whose values lie in memory one by one; None where it is."""
    if values.is_nested:
        return "a nested tensor"
    if values.is_meta:
        return "a tensor without values (on the device meta)"
    if values.layout != torch.strided:
        return f"a sparse tensor ({values.layout})"
    return f"a quantised tensor ({values.dtype})" if values.is_quantized else None


def check_dense(values: Tensor, what: str) -> None:
    """Refuse a tensor that is not an ordinary one."""
    if odd := odd_kind(values):
        raise InputError(f"{what} in {odd}; expected an ordinary one")


_DISTRIBUTIONS = {"sklearn": "scikit-learn"}
_EXTRAS = {"onnxruntime": "onnx", "ray": "ray"}
_OWN = ("timm", "torchvision", "ai_edge_litert")


def optional_import(module: str) -> Any:
    """A module of an optional library; where it is missing, an error that says how to install it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        library = module.split(".")[0]
        if error.name is None or error.name.split(".")[0] != library:
            raise
        name = _DISTRIBUTIONS.get(library, library.replace("_", "-"))
        what = name if library in _OWN else f"'blemish[{_EXTRAS.get(library, 'full')}]'"
        raise InputError(f"this needs {name}; install it with: pip install {what}") from error
