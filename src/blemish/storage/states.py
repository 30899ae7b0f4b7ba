"""Files that torch.save wrote, read with their checksums: torch itself takes changed numbers for good ones."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from blemish.models.torch_archive import torch_kind
from blemish.types import InputError

__all__ = ["DamagedFileError", "read_state"]


class DamagedFileError(InputError):
    """A file that is there, but does not hold what was written."""


def read_state(path: Path, keys: Sequence[str]) -> dict[str, Any]:
    """The mapping that a file holds, with at least these keys; its tensors on the CPU, wherever they were.

    Every byte is compared with its checksum first.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: not readable ({error.strerror or error})") from error
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            changed = archive.testzip()
        if torch_kind(path) != "saved":  # some versions of torch.load would run TorchScript, whatever they are told
            raise InputError("TorchScript, or an exported program")
        if changed is None:
            state = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except MemoryError:
        raise
    except Exception as error:  # damage can make a reader of archives and pickles fail in any way
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DamagedFileError(f"{path}: damaged ({reason})") from error
    if changed is not None:
        raise DamagedFileError(f"{path}: damaged (the checksum of {changed} does not fit)")
    missing = [key for key in keys if not isinstance(state, dict) or key not in state]
    if missing:
        raise DamagedFileError(f"{path}: damaged (without {', '.join(missing)})")
    return dict(state)
