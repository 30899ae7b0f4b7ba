"""The five photographs of frost: where they are looked up, and how they are known.

In this order: a folder that the user named; the files that ``blemish fetch-frost`` has put into the user's data folder;
those of an installed distribution, which is not imported. The last two count only where they are the reference's, byte
by byte, so that it does not matter which is there. Nothing else is ever used in their place.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import metadata
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from blemish.core.errors import InputError
from blemish.core.reading import read_bytes
from blemish.core.user_folders import data_folder
from blemish.ops.cache import cached

FILES = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")
REFERENCE = "reference"
REFERENCE_DIGEST = "1ccf9cdf7955d7fa"

# The second is a fork of the first, with the same photographs.
_DISTRIBUTIONS = ("imagecorruptions", "imagecorruptions-imaug")

Stamp = tuple[int, ...]


class MissingFrostError(InputError):
    """The reference's photographs of frost are nowhere on this machine."""


@dataclass(frozen=True)
class Photographs:
    """Five photographs, known by their digest. Without a ``folder`` they are the reference's, which are looked up.

    Both travel to workers, where other files are refused. The same photographs are equal wherever they lie.
    """

    folder: Path | None = field(default=None, compare=False)
    digest: str = REFERENCE_DIGEST

    @classmethod
    def of(cls, folder: str | os.PathLike[str]) -> Photographs:
        """Those in a folder, whatever they show."""
        path = Path(folder).expanduser().absolute()
        stamp = _stamp_of(path)
        load(path, stamp)
        return cls(path, _digest(path, stamp))

    @property
    def kind(self) -> str:
        """What protocols call them: ``reference``, or ``custom-`` and the digest."""
        return REFERENCE if self.digest == REFERENCE_DIGEST else f"custom-{self.digest}"

    @property
    def note(self) -> str | None:
        """A word of warning, but for the reference's."""
        if self.digest == REFERENCE_DIGEST:
            return None
        return f"{self.kind} photographs, not comparable with published numbers of frost"

    def check(self) -> None:
        """Refuse to begin where they are missing or have changed."""
        self.find()

    def find(self) -> tuple[Path, Stamp]:
        """The folder that holds them, and a stamp of its files that changes when they do."""
        if self.folder is None:
            return _find_reference()
        stamp = _stamp_of(self.folder)
        if (digest := _digest(self.folder, stamp)) != self.digest:
            raise InputError(f"{self.folder}: photographs of frost with digest {digest}; expected {self.digest}")
        return self.folder, stamp


def _find_reference() -> tuple[Path, Stamp]:
    others = []
    for folder in (fetched_folder(), *_installed()):
        stamp = _stamp(folder)
        if stamp is None:
            continue
        if _digest(folder, stamp) == REFERENCE_DIGEST:
            return folder, stamp
        others.append(folder)
    ignored = f" (other photographs, in {' and '.join(map(str, others))}, do not count)" if others else ""
    raise MissingFrostError(
        f"frost needs the reference's five photographs, which are not on this machine{ignored}; fetch them, 2 MB, "
        "with: blemish fetch-frost (or name a folder that holds them, with --frost or catalog.with_frost; "
        "frost_drawn needs none)"
    )


def fetched_folder() -> Path:
    """Where ``blemish fetch-frost`` puts the photographs: the user's own folder for the data of programs."""
    return _frost_in(data_folder())


@lru_cache(maxsize=16)
def _frost_in(folder: Path) -> Path:
    return folder / "frost"


@lru_cache(maxsize=1)
def _installed() -> tuple[Path, ...]:
    folders: dict[Path, None] = {}
    for name in _DISTRIBUTIONS:
        try:
            files = metadata.distribution(name).files or []
        except metadata.PackageNotFoundError:
            continue
        folders |= {Path(str(file.locate())).parent: None for file in files if file.name == FILES[0]}
    return tuple(folders)


@lru_cache(maxsize=16)
def _paths(folder: Path) -> tuple[str, ...]:
    return tuple(str(folder / name) for name in FILES)


def _stamp(folder: Path) -> Stamp | None:
    """Changes when one of the files does; None where one is not there."""
    try:
        states = [os.stat(path) for path in _paths(folder)]  # noqa: PTH116 — a Path takes three times as long
    except OSError:
        return None
    if not all(stat.S_ISREG(state.st_mode) for state in states):
        return None
    # Copies may keep the time of modification, but not that of the change itself.
    return tuple([number for state in states for number in (state.st_mtime_ns, state.st_ctime_ns, state.st_size)])


def _stamp_of(folder: Path) -> Stamp:
    stamp = _stamp(folder)
    if stamp is None:
        missing = next((name for name in FILES if not (folder / name).is_file()), FILES[0])
        raise _unusable(folder, missing, "no such file")
    return stamp


def _unusable(folder: Path, name: str, error: Exception | str) -> InputError:
    return InputError(
        f"no readable photograph of frost {folder / name} ({error}); expected {', '.join(FILES)} in {folder}"
    )


@lru_cache(maxsize=4)
def _digest(folder: Path, stamp: Stamp) -> str:
    return digest_of([_content(folder, name) for name in FILES])


def _content(folder: Path, name: str) -> bytes:
    try:
        return read_bytes(folder / name)
    except InputError as error:
        raise _unusable(folder, name, error) from error


def digest_of(contents: list[bytes]) -> str:
    """The digest of the five files, in their order."""
    digest = hashlib.blake2b(digest_size=8)
    for content in contents:
        digest.update(content)
    return digest.hexdigest()


@cached()
def load(folder: Path, stamp: Stamp) -> tuple[Tensor, ...]:
    """The photographs in a folder as uint8, (3, height, width) each."""
    pictures = []
    for name in FILES:
        try:
            with Image.open(io.BytesIO(_content(folder, name)), formats=("JPEG", "PNG")) as picture:
                pictures.append(torch.from_numpy(np.array(picture.convert("RGB"))).permute(2, 0, 1).contiguous())
        except InputError:
            raise
        except Exception as error:  # decoders of damaged files raise almost anything
            raise _unusable(folder, name, error) from error
    return tuple(pictures)
