"""Finding the members of a tar archive, which are then read in place: nothing is ever unpacked to disk.

Stricter than tarfile: links, devices, damaged headers and archives that are cut off are refused, since images that are
silently left out change the results.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from typing import IO, NamedTuple, cast

from blemish.core.errors import InputError, refused
from blemish.core.memory import check_fits
from blemish.core.reading import open_regular

_MAX_READ = 2**16
_REFUSED = {
    tarfile.LNKTYPE: "a link",
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a pipe",
}
_PACKED = {b"\x1f\x8b": "gzip", b"BZ": "bzip2", b"\xfd7": "xz", b"\x28\xb5": "zstd"}
# What tarfile raises for headers that are damaged in one way or another.
_DAMAGE = (tarfile.TarError, ValueError, IndexError, OverflowError, RecursionError)


class Member(NamedTuple):
    """A file in an archive: its name, which is nothing but a name, and where its bytes lie."""

    name: str
    start: int
    size: int


def list_members(path: str | os.PathLike[str]) -> list[Member]:
    """The files in a tar archive, in their order."""
    name = os.fspath(path)
    with refused(f"{name}: not a readable archive", OSError), open_regular(name) as stream:
        return list(_members(name, stream, os.fstat(stream.fileno()).st_size))


def read_member(path: str | os.PathLike[str], member: Member) -> bytes:
    """The bytes of a file in an archive."""
    name = os.fspath(path)
    check_fits(f"{name}: {member.name}", member.size)
    # A handle of its own, so that threads do not move each other's position.
    with refused(f"{name}: not a readable archive", OSError), open_regular(name) as stream:
        stream.seek(member.start)
        content = stream.read(member.size)
    if len(content) != member.size:
        raise InputError(f"{name}: {member.name} is cut off; was the archive changed since it was opened?")
    return content


class _Headers:
    """A file of which headers are read, and nothing long: damaged ones ask for any number of bytes."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.seek, self.tell, self._read = stream.seek, stream.tell, stream.read

    def read(self, size: int) -> bytes:
        if not 0 <= size <= _MAX_READ:
            raise tarfile.ReadError(f"{size:,} bytes about a name; expected at most {_MAX_READ:,}")
        return self._read(size)


def _members(name: str, stream: IO[bytes], total: int) -> Iterator[Member]:
    end, reason = 0, ""
    try:
        headers = cast(IO[bytes], _Headers(stream))
        with tarfile.TarFile(fileobj=headers, encoding="utf-8", errors="surrogateescape") as archive:
            while (entry := archive.next()) is not None:
                archive.members.clear()  # type: ignore[attr-defined]  # it keeps them all, and there may be millions
                _check_entry(f"{name}, byte {entry.offset}", entry, total)
                if entry.isreg():
                    yield Member(entry.name, entry.offset_data, entry.size)
                end = archive.offset
    except InputError:
        raise
    except _DAMAGE as error:
        reason = f" ({error})"
    _check_end(name, stream, end, reason)


def _check_entry(where: str, entry: tarfile.TarInfo, total: int) -> None:
    """Refuse what is neither a folder nor a plain file that lies in the archive as a whole."""
    if entry.issparse() or any(key.startswith("GNU.sparse") for key in entry.pax_headers):
        raise InputError(f"{where}: a sparse file; expected plain files")
    if not (entry.isreg() or entry.isdir()):
        kind = _REFUSED.get(entry.type, f"of unknown kind {entry.type!r}")
        raise InputError(f"{where}: {entry.name!r} is {kind}; expected plain files")
    if entry.size < 0:
        raise InputError(f"{where}: a member without a usable size; the archive is damaged")
    if (left := total - entry.offset_data) < entry.size:
        raise InputError(f"{where}: a member claims {entry.size:,} bytes, but the archive ends after {left:,}")


def _check_end(name: str, stream: IO[bytes], end: int, reason: str) -> None:
    """Raise unless the archive ends where tarfile could not read on: it takes damaged headers as the end too."""
    stream.seek(end)
    header = stream.read(tarfile.BLOCKSIZE)
    where = f"{name}, byte {end}"
    if end == 0 and (packed := _PACKED.get(header[:2])):
        raise InputError(f"{where}: compressed with {packed}, so that images cannot be read at random; uncompress it")
    if not header or (header.strip(b"\0") and len(header) < tarfile.BLOCKSIZE):
        raise InputError(f"{where}: the archive is cut off")
    if reason or header.strip(b"\0"):
        raise InputError(f"{where}: not a tar archive, or a damaged one{reason}")
    # Nothing but padding may follow the end mark: archives that were joined would lose all but the first.
    if stream.read(2**20).strip(b"\0"):
        raise InputError(f"{name}: goes on after its end mark; expected a single archive, not several joined")
