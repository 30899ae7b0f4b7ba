"""``python:package.module:function``: models that the user's own code makes."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from blemish.core.errors import InputError
from blemish.models.base import Classifier, Output, Preprocessing
from blemish.models.code import where_raised
from blemish.models.hashing import DIGEST_SIZE
from blemish.models.sklearn_estimator import from_estimator, is_estimator
from blemish.models.torch_module import device_named, from_module, load_weights

FUNCTION = "function"
"""The kind of a classifier that is a bare function."""


def load_python(target: str, *, weights: Path | None, device: torch.device) -> Classifier:
    """What ``package.module:function``, called without arguments, makes of a model.

    It may return a torch module, into which ``weights`` are loaded, a scikit-learn classifier, a ``Classifier``, or a
    function from a uint8 batch (B, C, H, W) to class scores. The current folder can be imported from.
    """
    module_name, _, function_name = target.partition(":")
    spec = f"python:{target}"
    if not module_name or not function_name:
        raise InputError(f"model {spec!r}; expected python:package.module:function")
    function = _find(f"model {spec!r}", module_name, function_name)
    try:
        model = function()
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{spec} raised {type(error).__name__}: {error}{where_raised(error)}") from error
    if weights is not None and not isinstance(model, nn.Module):
        raise InputError(f"{spec} returns a {type(model).__name__}; expected a torch module, to load {weights} into")
    if isinstance(model, nn.Module) and weights is not None:
        model = load_weights(model, weights)
    try:
        return from_python(model, name=function_name, device=device, code=_code_hash(spec, function))
    except InputError as error:
        raise InputError(f"{spec} returns {error}") from error


def load_function(target: str, spec: str) -> tuple[Callable[[Tensor], Any], str]:
    """The function that ``package.module:function``, called without arguments, gives back, and a digest of its code."""
    module_name, _, function_name = target.partition(":")
    if not module_name or not function_name:
        raise InputError(f"model {spec!r}; expected python:package.module:function")
    maker = _find(spec, module_name, function_name)
    try:
        made = maker()
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{spec} raised {type(error).__name__}: {error}{where_raised(error)}") from error
    if not callable(made):
        raise InputError(f"{spec} returns a {type(made).__name__}; expected a function of uint8 batches")
    return made, _code_hash(spec, maker)


def from_python(model: Any, *, name: str, device: torch.device | None, code: str = "") -> Classifier:
    """A torch module, a scikit-learn classifier, a ``Classifier`` or a function of uint8 batches, as a classifier.

    ``code`` stands for what a bare function does. A module without a ``device`` stays where it is.
    """
    if isinstance(model, Classifier):
        return model
    if isinstance(model, nn.Module):
        return from_module(model, name=name, device=device)
    if is_estimator(model):
        return from_estimator(model, name=name)
    if callable(model) and not isinstance(model, type):
        return replace(from_function(model, name=name, device=device), weights=code)
    raise InputError(
        f"a {type(model).__name__}; expected a torch module, a scikit-learn classifier, a Classifier or a function "
        "of uint8 batches"
    )


def from_function(
    function: Callable[[Tensor], Any],
    *,
    name: str | None = None,
    output: Output = "logits",
    device: str | torch.device | None = None,
) -> Classifier:
    """A function from a uint8 batch (B, C, H, W), on the device, to class scores, as a classifier.

    Scores are a tensor, or an array of NumPy or of a library that NumPy can read, such as JAX.
    ``output`` says whether the scores are logits or probabilities. By default the device is a GPU where there is one.
    """
    called = name or getattr(function, "__name__", None) or type(function).__name__
    levels, target = Preprocessing(levels=True), device_named(device)
    return Classifier(called, FUNCTION, _Scores(function), "", preprocessing=levels, output=output, device=target)


@dataclass(frozen=True)
class _Scores:
    """What a function gives, as a tensor. A class, so that it can travel to other processes."""

    function: Callable[[Tensor], Any]

    def __call__(self, levels: Tensor) -> Any:
        scores = self.function(levels)
        if isinstance(scores, Tensor) or not hasattr(scores, "__array__"):
            return scores
        array = np.asarray(scores)
        return torch.from_numpy(array.astype(np.float32)) if array.dtype.kind in "fiu" else scores


def find_function(name: str, prefix: str) -> Callable[..., Any]:
    """What ``package.module:function`` after a prefix names; errors begin with the whole name."""
    module_name, _, function_name = name.removeprefix(prefix).partition(":")
    if not module_name or not function_name:
        raise InputError(f"{name!r}; expected {prefix}package.module:name")
    return _find(repr(name), module_name, function_name)


def _find(spec: str, module_name: str, function_name: str) -> Callable[..., Any]:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        target: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and (module_name == error.name or module_name.startswith(f"{error.name}.")):
            raise InputError(f"{spec}: no module {error.name!r}, neither installed nor in {here}") from error
        raise InputError(f"{spec}: {module_name} needs {error.name}, which is not installed") from error
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        raise InputError(f"{spec}: importing {module_name} raised {problem}{where_raised(error)}") from error
    for part in function_name.split("."):
        if not hasattr(target, part):
            known = [key for key, value in vars(target).items() if callable(value) and not key.startswith("_")]
            hint = f"; it has {', '.join(sorted(known)[:8])}" if known else ""
            raise InputError(f"{spec}: {module_name} has no {function_name!r}{hint}")
        target = getattr(target, part)
    if not callable(target):
        raise InputError(f"{spec}: {function_name} is a {type(target).__name__}; expected a function")
    return target  # type: ignore[no-any-return]


def _code_hash(spec: str, function: Any) -> str:
    """What a bare function has learnt cannot be seen; the file that makes it is the nearest thing."""
    try:
        content = Path(inspect.getfile(inspect.unwrap(function))).read_bytes()
    except (TypeError, OSError):
        content = b""
    return hashlib.blake2b(spec.encode() + b"\0" + content, digest_size=DIGEST_SIZE).hexdigest()
