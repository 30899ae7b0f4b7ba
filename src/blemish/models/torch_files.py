"""Torch models in one file: TorchScript, exported programs, pickled modules.

Only TorchScript without load-time code is read by default. The other two are pickles at heart: reading them can run
anything, so the user has to allow it.
"""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from blemish.models.base import Classifier
from blemish.models.hashing import hash_files
from blemish.models.torch_module import from_module, read_safely
from blemish.types import InputError

__all__ = ["load_exported_program", "load_torch_file", "load_torchscript"]

# TorchScript is a language of its own that hardly reaches outside the model. These are the ways out: methods that run
# while the file is read, operators that write files, and operators that other libraries have registered.
_WAYS_OUT = {
    "__setstate__": re.compile(r"\b__setstate__\b"),
    "save": re.compile(r"\bsave\s*\("),
    "from_file": re.compile(r"\bfrom_file\s*\("),
    "an operator of another library": re.compile(r"\bops\.(?!(?:aten|prim|quantized|prepacked|torchvision)\.)\w+\.\w+"),
}


def load_torch_file(path: Path, *, device: torch.device, allow_pickle: bool) -> Classifier:
    """The model in a ``.pt`` or ``.pth`` file, whichever of the kinds that share these endings it is."""
    members = _members(path)
    if any("/code/" in member for member in members):
        return load_torchscript(path, device=device, allow_pickle=allow_pickle)
    if any(member.endswith("archive_format") for member in members):
        return load_exported_program(path, device=device, allow_pickle=allow_pickle)
    found = _unpickled(path) if allow_pickle else read_safely(path)
    if isinstance(found, nn.Module):
        return from_module(found, name=path.stem, device=device)
    raise InputError(
        f"{path}: holds {_kind(found)}, not a model. Name the function that builds the model, and give the file as its "
        "weights: model python:package.module:function, weights FILE"
    )


def load_torchscript(path: Path, *, device: torch.device, allow_pickle: bool) -> Classifier:
    """A TorchScript archive; one that would run code while it is read, or can write files, has to be allowed."""
    code = _code(path)
    if not allow_pickle:
        _refuse_ways_out(path, code)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # torch would rather have exported programs
            module = torch.jit.load(path, map_location="cpu").eval().to(device)  # type: ignore[no-untyped-call]
    except (RuntimeError, ValueError, OSError) as error:
        raise InputError(f"{path}: not a readable TorchScript file ({_first_line(error)})") from error
    return _classifier(path, "torchscript", module, device)


def load_exported_program(path: Path, *, device: torch.device, allow_pickle: bool) -> Classifier:
    """A program that ``torch.export.save`` wrote. Its batch size must be dynamic."""
    if not allow_pickle:
        raise InputError(
            f"{path}: torch reads exported programs with pickle, which can run code from the file; if you trust it, "
            "allow pickles (--allow-pickle), or save the model as TorchScript or ONNX"
        )
    try:
        program = torch.export.load(path)
        module = program.module()
    except Exception as error:  # damaged archives fail in many ways inside torch
        raise InputError(f"{path}: not a readable exported program ({_first_line(error)})") from error
    return _classifier(path, "exported", module.to(device), device)


def _classifier(path: Path, kind: str, module: Callable[[Tensor], Tensor], device: torch.device) -> Classifier:
    def forward(values: Tensor) -> Tensor:
        try:
            return module(values)
        except (RuntimeError, AssertionError) as error:
            if isinstance(error, torch.cuda.OutOfMemoryError):
                raise
            shape = tuple(values.shape)
            raise InputError(f"{path}: the model refuses an input of shape {shape}: {_first_line(error)}") from error

    return Classifier(name=path.stem, kind=kind, forward=forward, weights=hash_files([path]), device=device)


def _members(path: Path) -> list[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except (zipfile.BadZipFile, OSError):
        return []  # torch's older format is a bare pickle


def _code(path: Path) -> list[str]:
    try:
        # torch's own reader, so that what is looked at is what would be run.
        reader: Any = torch._C.PyTorchFileReader(str(path))
        code = [reader.get_record(name).decode("latin-1") for name in reader.get_all_records() if "code/" in name]
    except (RuntimeError, OSError) as error:
        raise InputError(f"{path}: not a readable TorchScript file ({_first_line(error)})") from error
    if not code:
        raise InputError(f"{path}: not a TorchScript file (there is no TorchScript in it)")
    return code


def _refuse_ways_out(path: Path, code: list[str]) -> None:
    found = [what for what, pattern in _WAYS_OUT.items() if any(pattern.search(text) for text in code)]
    if found:
        raise InputError(
            f"{path}: its TorchScript uses {', '.join(found)}, so reading or running it could reach outside the model; "
            "if you trust the file, allow pickles (--allow-pickle)"
        )


def _unpickled(path: Path) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=False)
    except Exception as error:  # a pickle can raise anything
        raise InputError(f"{path}: cannot be unpickled ({type(error).__name__}: {_first_line(error)})") from error


def _kind(found: Any) -> str:
    if isinstance(found, dict):
        keys = ", ".join(str(key) for key in list(found)[:3])
        return f"a dictionary ({keys}, …)" if len(found) > 3 else f"a dictionary ({keys})"
    return f"a {type(found).__name__}"


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
