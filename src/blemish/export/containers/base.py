"""What a container is: files of many pictures beside other things, which are written again with corrupted pictures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, ClassVar, Protocol

from blemish.corruptions.severity import severity_text
from blemish.export.journal import SourceFile


class Change(Protocol):
    """From the file of a picture to that of its copy."""

    def __call__(self, content: bytes, where: str, number: int) -> bytes:
        """The copy of a picture, which messages call ``where``, and whose id is ``number``."""
        ...

    def stored(self, name: str) -> str:
        """The name that fits the format of the copy."""
        ...


@dataclass(frozen=True)
class Shard:
    """A file of a container: its name below the destination, where it lies, and the number of its first picture.

    ``count`` is how many rows, or pictures, there are in it.
    """

    name: str
    path: Path
    first: int
    count: int


class Container(ABC):
    """Files of one kind. It can be sent to workers."""

    name: ClassVar[str]
    """What the manifest calls the layout."""

    noun: ClassVar[str] = "rows"

    @abstractmethod
    def shards(self) -> Sequence[Shard]:
        """Its files."""

    @abstractmethod
    def mark(self) -> str:
        """Which source it is."""

    @abstractmethod
    def rewrite(self, shard: Shard, sink: IO[bytes], change: Change) -> None:
        """Write a file with changed pictures, and all else as it is."""

    def source(self) -> SourceFile | None:
        """What tells the source from what it may be later; None where that are its files."""
        return None

    def untouched(self) -> Sequence[str]:
        """Columns, or fields of samples, that hold pictures too and stay as they are."""
        return ()

    def copy_name(self, shard: Shard, corruption: str, severity: float) -> str:
        """The name of a copy below the destination."""
        return f"{corruption}/{severity_text(severity)}/{shard.name}"
