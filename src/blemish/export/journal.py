"""The second half of a manifest: size and digest of every source, and of every file that was made of it.

One line of JSON for each source, appended when all its copies are on the disk. A run may be killed at any moment:
copies that no line knows are made again. At the end of a run the lines are sorted, and equal sets have equal files.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from blemish.core.errors import StorageError
from blemish.core.files import Digest, part_file, unwritable

JOURNAL = "blemish-files.jsonl"


@dataclass(frozen=True)
class SourceFile:
    """A source as it was when copies of it were made; ``time`` is that of its last change, in nanoseconds."""

    size: int
    time: int
    hash: str


@dataclass(frozen=True)
class Entry:
    """A source and the digests of its copies, by the folder of their condition.

    Without a source the copies are of one that the manifest itself describes.
    """

    name: str
    source: SourceFile | None
    copies: Mapping[str, Digest]

    def joined(self, later: Entry) -> Entry:
        """What is known after a later line: copies of another content than the later one's are no more."""
        same = self.source is None or later.source is None or self.source.hash == later.source.hash
        return Entry(self.name, later.source, {**self.copies, **later.copies} if same else later.copies)


class Journal:
    """The lines in a folder that is held. Reading one is a seek: millions of digests need not be in memory."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / JOURNAL
        self._open()

    def _open(self) -> None:
        self._offsets: dict[str, list[int]] = {}
        self._sorted, self._end = True, 0
        try:
            self._stream: BinaryIO = self._path.open("r+b" if self._path.exists() else "w+b")
            self._read()
            self._stream.truncate(self._end)  # the line that a killed run was writing
        except OSError as error:
            raise StorageError(f"{self._path}: cannot be used ({error.strerror or error})") from error

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def _read(self) -> None:
        last = ""
        for line in self._stream:
            if not line.endswith(b"\n"):
                break
            entry = _parsed(line)
            if entry is not None:
                self._offsets.setdefault(entry.name, []).append(self._end)
            self._sorted = self._sorted and entry is not None and last < entry.name
            last = entry.name if entry is not None else last
            self._end += len(line)

    def names(self) -> list[str]:
        """The sources that copies were made of."""
        return sorted(self._offsets)

    def entry(self, name: str) -> Entry | None:
        """What is known of a source."""
        known: Entry | None = None
        for offset in self._offsets.get(name, ()):
            self._stream.seek(offset)
            line = _parsed(self._stream.readline())
            if line is not None:
                known = line if known is None else known.joined(line)
        return known

    def add(self, entry: Entry) -> None:
        """Write down what was made of a source; everything before stands."""
        line = _line(entry)
        try:
            self._stream.seek(self._end)
            self._stream.write(line)
            self._stream.flush()
        except OSError as error:
            raise unwritable(self._path, error) from error
        self._offsets.setdefault(entry.name, []).append(self._end)
        self._end += len(line)
        self._sorted = False

    def forget(self, name: str) -> None:
        """Leave out a source; on the disk from the next `sort` on."""
        if self._offsets.pop(name, None) is not None:
            self._sorted = False

    def sort(self) -> None:
        """Bring the lines into order, one for each source."""
        if self._sorted:
            return
        with part_file(self._path, destination=self._folder) as part:
            for entry in self._entries():
                part.write(_line(entry))
            self._stream.close()
            part.finish()
        self._open()

    def counts(self, condition_of: Callable[[str], str | None]) -> Counter[str]:
        """How many sources have copies of each condition."""
        return Counter(
            condition
            for entry in self._entries()
            for key in entry.copies
            if (condition := condition_of(key)) is not None
        )

    def _entries(self) -> Iterator[Entry]:
        for name in self.names():
            entry = self.entry(name)
            if entry is not None:
                yield entry


def _line(entry: Entry) -> bytes:
    source = entry.source
    content = {
        "name": entry.name,
        "source": None if source is None else [source.size, source.time, source.hash],
        "copies": {key: [digest.size, digest.hash] for key, digest in sorted(entry.copies.items())},
    }
    text = json.dumps(content, separators=(",", ":")).removeprefix("{").encode("ascii")
    return _checked(text) + text + b"\n"


def _checked(text: bytes) -> bytes:
    """How a line begins: with a digest of everything that follows."""
    return f'{{"check":"{hashlib.blake2b(text, digest_size=8).hexdigest()}",'.encode("ascii")


def _parsed(line: bytes) -> Entry | None:
    """The entry of a line; None for a damaged one, whose copies are then made again."""
    try:
        text = line.removesuffix(b"\n")[len(_checked(b"")) :]
        content = json.loads(line)
        if not line.startswith(_checked(text)) or not _is_inside(content["name"]):
            return None
        copies = {key: Digest(*digest) for key, digest in content["copies"].items() if _is_inside(key)}
        source = None if content["source"] is None else SourceFile(*content["source"])
        return Entry(content["name"], source, copies)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _is_inside(name: Any) -> bool:
    """Whether a name stays in its folder, whoever wrote it down."""
    if not isinstance(name, str) or not name or "\0" in name:
        return False
    path = PurePosixPath(name)
    return not path.is_absolute() and ".." not in path.parts
