"""Which copies of a picture are to be made: those that are missing, damaged, or made of what it was before."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from pathlib import Path

from blemish.core.errors import InputError
from blemish.core.files import Digest, digest_of, file_digest
from blemish.core.printable import first_few
from blemish.core.reading import read_bytes
from blemish.export.journal import Entry, SourceFile

_SHOWN = 3


@dataclass(frozen=True)
class Checked:
    """A picture and its copies: the bytes of its file, and which copies are there as they were made.

    ``content`` is empty where nothing has to be made. ``is_news`` says that the journal knows another source.
    """

    name: str
    source: SourceFile
    content: bytes
    intact: Set[str]
    is_news: bool

    def entry(self, copies: Mapping[str, Digest]) -> Entry | None:
        """The line for the journal, after further copies were made; None where it knows everything."""
        return Entry(self.name, self.source, copies) if copies or self.is_news else None


def check_picture(
    path: Path, name: str, wanted: Mapping[str, Path], known: Entry | None, *, quick: bool = False
) -> Checked:
    """Compare a picture and its copies with what the journal knows of them; ``wanted`` are the copies to be there.

    ``quick`` trusts a picture of the size and time that are known, and copies of the size that is known. A picture that
    has changed is refused where there are copies beside the wanted ones: they would be of another picture.
    """
    before, copies = (None, {}) if known is None else (known.source, known.copies)
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from error
    if quick and before is not None and (status.st_size, status.st_mtime_ns) == (before.size, before.time):
        intact = _intact(wanted, copies, quick=True)
        if len(intact) == len(wanted):
            return Checked(name, before, b"", intact, is_news=False)
    content = read_bytes(path)
    source = SourceFile(len(content), status.st_mtime_ns, digest_of(content).hash)
    return Checked(name, source, content, intact_copies(path, source, wanted, known, quick=quick), before != source)


def intact_copies(
    path: Path, source: SourceFile, wanted: Mapping[str, Path], known: Entry | None, *, quick: bool
) -> set[str]:
    """Which of the wanted copies of a source are there, as the journal knows them; none of a source that has changed.

    It is refused where there are copies beside the wanted ones: they would be of another source.
    """
    before, copies = (None, {}) if known is None else (known.source, known.copies)
    if before is None or before.hash == source.hash:
        return _intact(wanted, copies, quick=quick)
    if others := sorted(copies.keys() - wanted.keys()):
        raise InputError(
            f"{path}: changed after its copies in {first_few(others, _SHOWN)} were made; "
            "name these as well to make all of them again, or choose another destination"
        )
    return set()


def _intact(wanted: Mapping[str, Path], copies: Mapping[str, Digest], *, quick: bool) -> set[str]:
    return {key for key, path in wanted.items() if key in copies and is_intact(path, copies[key], quick=quick)}


def is_intact(path: Path, known: Digest, *, quick: bool) -> bool:
    """Whether a file is what was written; ``quick`` compares sizes only."""
    try:
        same_size = path.is_file() and path.stat().st_size == known.size
    except OSError:
        return False
    return same_size and (quick or file_digest(path) == known)
