"""What a file of torch is, by its beginning and its directory: nothing in it is loaded, so nothing in it can run."""

from __future__ import annotations

import tarfile
import zipfile
from pathlib import Path
from typing import Any, Literal

import torch

from blemish.core.errors import InputError, refused
from blemish.core.memory import check_fits
from blemish.core.reading import open_regular

TorchKind = Literal["torchscript", "exported", "saved"]

_ZIP = b"PK\x03\x04"
_PICKLE = b"\x80"
# torch.export has written two layouts.
_EXPORTED = ("archive_format", "serialized_exported_program.json")


def torch_kind(path: Path) -> TorchKind:
    """TorchScript, a program of ``torch.export``, or what ``torch.save`` wrote; anything else is refused.

    What ``torch.save`` wrote may be tensors, or objects that run code when they are read; only reading it without
    running anything (``weights_only``) can tell.
    """
    with open_regular(path) as stream:
        start = stream.read(len(_ZIP))
    if start == _ZIP:
        return _archive_kind(path)
    # The name of its first member can make a tar begin like a pickle; torch would unpack it.
    if not start.startswith(_PICKLE) or tarfile.is_tarfile(path):
        raise InputError(f"{path}: not a torch file; expected what torch.save writes, an archive or a pickle")
    return "saved"


def _archive_kind(path: Path) -> TorchKind:
    unreadable = (zipfile.BadZipFile, NotImplementedError, ValueError, OSError)
    with refused(f"{path}: not a readable torch file", *unreadable), zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    # torch does not compress what it saves, so a small file that claims much is not one of those.
    check_fits(str(path), sum(member.file_size for member in members))
    # Both readers are asked: a crafted archive can show them different directories, and torch believes its own.
    names = [f"/{name}" for name in (*(member.filename for member in members), *_records(path))]
    if any("/code/" in name or name.endswith("/constants.pkl") for name in names):
        return "torchscript"
    return "exported" if any(name.endswith(_EXPORTED) for name in names) else "saved"


def _records(path: Path) -> list[str]:
    try:
        reader: Any = torch._C.PyTorchFileReader(str(path))
        return [str(name) for name in reader.get_all_records()]
    except (RuntimeError, OSError, UnicodeDecodeError):
        return []  # then torch cannot load it either
