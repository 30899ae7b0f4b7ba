"""Files of tensors and numbers that a run goes on from, sealed: torch itself takes changed numbers for good ones."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from blemish.core.errors import InputError, StorageError, first_line
from blemish.core.reading import read_bytes
from blemish.core.torch_archive import torch_kind

_SEAL = "seal"


# The states of several networks; what does not fit into memory fails anyway.
_MAX_BYTES = 2**40


class DamagedFileError(StorageError):
    """A file that is there, but does not hold what was written."""


def state_bytes(state: Mapping[str, Any]) -> bytes:
    """The content of a file that holds a mapping, for `read_state`; ``seal`` in it is a digest of everything else."""
    buffer = io.BytesIO()
    torch.save({**state, _SEAL: _seal(state)}, buffer)
    return buffer.getvalue()


def read_state(path: Path, keys: Sequence[str], *, sealed: bool = True) -> dict[str, Any]:
    """The mapping that a file holds, with at least these keys; its tensors on the CPU, wherever they were.

    Every byte is compared with its checksum first, and what was read with the seal; ``sealed=False`` also takes files
    from before there were seals.
    """
    content = read_bytes(path, most=_MAX_BYTES)
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
        raise DamagedFileError(f"{path}: damaged ({first_line(error)})") from error
    if changed is not None:
        raise DamagedFileError(f"{path}: damaged (the checksum of {changed} does not fit)")
    missing = [key for key in (*keys, *([_SEAL] if sealed else [])) if not isinstance(state, dict) or key not in state]
    if missing:
        raise DamagedFileError(f"{path}: damaged (without {', '.join(missing)})")
    entries = dict(state)
    seal = entries.pop(_SEAL, None)
    if seal != _seal(entries) and (sealed or seal is not None):
        raise DamagedFileError(f"{path}: damaged (changed since it was written: its seal does not fit)")
    return entries


def _seal(state: Mapping[str, Any]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    _feed(digest, dict(state))
    return digest.hexdigest()


def _feed(digest: Any, value: Any) -> None:
    """Everything that decides what a value is: its kind, its size and its content."""
    if isinstance(value, Tensor):
        digest.update(f"tensor {value.dtype} {tuple(value.shape)};".encode())
        digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    elif isinstance(value, Mapping):
        digest.update(f"mapping {len(value)};".encode())
        for key, item in value.items():
            _feed(digest, key)
            _feed(digest, item)
    elif isinstance(value, (list, tuple)):
        digest.update(f"{type(value).__name__} {len(value)};".encode())
        for item in value:
            _feed(digest, item)
    elif value is None or isinstance(value, (bool, int, float, str, bytes)):
        digest.update(f"{type(value).__name__} {value!r};".encode())
    else:
        raise TypeError(f"a state with a {type(value).__name__} in it; expected tensors, numbers, texts and lists")
