"""The manifest of a corrupted set: a file that states how its images were made.

`blemish.core.typed` tells how to add an entry that older manifests do not have.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from blemish.core.errors import InputError
from blemish.core.reading import read_json
from blemish.core.typed import optional_field, read_typed

MANIFEST = "blemish.json"


@dataclass(frozen=True)
class CopiesInfo:
    """What decides the copies of one corruption besides the severity, or the frames of one sequence.

    ``textures`` is the kind of a corruption's photographs, and ``code`` a digest of the code of a user's own. In sets
    with labels of places, which are those of the clean pictures, ``moves`` says whether pixels are where they were.
    """

    version: int
    textures: str | None = optional_field()
    code: str | None = optional_field()
    sequence: str | None = optional_field()
    difficulty: int | None = optional_field()
    moves: str | None = optional_field()


@dataclass(frozen=True, kw_only=True)
class SetInfo:
    """Everything that decides the pixels of a set.

    ``source`` names the folder of the pictures; of an array, ``shape`` and ``images``, a digest, tell which it was.
    ``corruptions`` are by the names of their folders or files.
    """

    layout: str = ""
    seed: int = 0
    preset: str = ""
    format: str | None = optional_field()
    source: str | None = optional_field()
    resize: int | None = optional_field()
    crop: int | str | None = optional_field()
    shape: tuple[int, ...] | None = optional_field()
    images: str | None = optional_field()
    corruptions: dict[str, CopiesInfo] = field(default_factory=dict)
    severities: tuple[int | float, ...]


@dataclass(frozen=True)
class Manifest:
    """The whole file; the versions of the libraries are for the record, and are not compared."""

    protocol: SetInfo
    made_with: dict[str, str] = field(default_factory=dict)


def read_manifest(path: Path) -> Manifest:
    """A manifest, or an error that names it."""
    try:
        return read_typed(Manifest, read_json(path))
    except InputError as error:
        raise InputError(f"{path}: not a readable manifest ({str(error).removeprefix(f'{path}: ')})") from error
