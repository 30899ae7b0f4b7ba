"""Finding the members of a tar archive, which are then read in place: nothing is ever unpacked to disk.

Stricter than most readers: links, devices, damaged headers and archives that are cut off are refused, since images that
are silently left out change the results.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import IO, NamedTuple

from blemish.core.errors import InputError
from blemish.core.memory import check_fits
from blemish.core.reading import open_regular

__all__ = ["Member", "list_members", "read_member"]

_BLOCK = 512
_MAX_EXTRA = 2**20
_FILES = (b"0", b"\0", b"7")
_FOLDER, _LONG_NAME, _LONG_LINK, _EXTENDED, _GLOBAL = b"5", b"L", b"K", b"x", b"g"
_REFUSED = {
    b"1": "a link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"6": "a pipe",
    b"S": "a sparse file",
}
_PACKED = {b"\x1f\x8b": "gzip", b"BZ": "bzip2", b"\xfd7": "xz", b"\x28\xb5": "zstd"}


class Member(NamedTuple):
    """A file in an archive: its name, which is nothing but a name, and where its bytes lie."""

    name: str
    start: int
    size: int


def list_members(path: str | os.PathLike[str]) -> list[Member]:
    """The files in a tar archive, in their order."""
    name = os.fspath(path)
    try:
        with open_regular(name) as stream:
            return list(_members(name, stream, os.fstat(stream.fileno()).st_size))
    except OSError as error:
        raise InputError(f"{name}: not a readable archive ({error.strerror or error})") from error


def read_member(path: str | os.PathLike[str], member: Member) -> bytes:
    """The bytes of a file in an archive."""
    name = os.fspath(path)
    check_fits(f"{name}: {member.name}", member.size)
    try:
        with open_regular(name) as stream:  # a handle of its own, so that threads do not move each other's place
            stream.seek(member.start)
            content = stream.read(member.size)
    except OSError as error:
        raise InputError(f"{name}: not a readable archive ({error.strerror or error})") from error
    if len(content) != member.size:
        raise InputError(f"{name}: {member.name} is cut off; was the archive changed since it was opened?")
    return content


def _members(name: str, stream: IO[bytes], total: int) -> Iterator[Member]:
    place = 0
    extra: dict[str, str] = {}
    while True:
        stream.seek(place)
        header = stream.read(_BLOCK)
        if header and not header.strip(b"\0"):
            _check_end(name, stream)
            return
        where = f"{name}, byte {place}"
        _check_header(where, header, place)
        kind = header[156:157]
        about = kind in (_LONG_NAME, _LONG_LINK, _EXTENDED, _GLOBAL)
        size = _size(where, header, None if about else extra.get("size"))
        start = place + _BLOCK
        if start + size > total:
            raise InputError(f"{where}: a member claims {size:,} bytes, but the archive ends after {total - start:,}")
        if about:
            content = _extra(where, stream, size)
            if kind == _LONG_NAME:
                extra["path"] = _text(content.rstrip(b"\0"))
            elif kind == _EXTENDED:
                extra.update(_records(where, content))
        else:
            if kind in _FILES:
                yield Member(extra.get("path") or _name(header), start, size)
            elif kind != _FOLDER:
                what = _REFUSED.get(kind, f"of unknown kind {kind!r}")
                raise InputError(f"{where}: {_name(header)!r} is {what}; expected plain files")
            extra = {}
        place = start + -(-size // _BLOCK) * _BLOCK


def _check_end(name: str, stream: IO[bytes]) -> None:
    """Nothing but padding may follow the end mark: archives that were joined would lose all but the first."""
    if stream.read(_MAX_EXTRA).strip(b"\0"):
        raise InputError(f"{name}: goes on after its end mark; expected a single archive, not several joined")


def _check_header(where: str, header: bytes, place: int) -> None:
    packed = _PACKED.get(header[:2]) if place == 0 else None
    if packed is not None and not _sum_fits(header):
        raise InputError(f"{where}: compressed with {packed}, so that images cannot be read at random; uncompress it")
    if len(header) < _BLOCK:
        raise InputError(f"{where}: the archive is cut off")
    if not _sum_fits(header):
        raise InputError(f"{where}: not a tar archive, or a damaged one")


def _sum_fits(header: bytes) -> bool:
    body = header[:148] + b" " * 8 + header[156:]  # the sum counts its own field as spaces
    try:
        stated = int(header[148:156].strip(b" \0") or b"0", 8)
    except ValueError:
        return False
    # Some old programs added the bytes as signed numbers.
    return stated == sum(body) or stated == sum(byte - 256 if byte > 127 else byte for byte in body)


def _size(where: str, header: bytes, stated: str | None) -> int:
    field = header[124:136]
    try:
        if stated is not None:
            size = int(stated)
        elif field[0] & 0x80:  # binary, for sizes that eleven octal digits cannot hold
            size = int.from_bytes(field, "big", signed=False) - (0x80 << 88)
        else:
            size = int(field.strip(b" \0") or b"0", 8)
    except ValueError:
        size = -1
    if size < 0:
        raise InputError(f"{where}: a member without a usable size; the archive is damaged")
    return size


def _extra(where: str, stream: IO[bytes], size: int) -> bytes:
    if size > _MAX_EXTRA:
        raise InputError(f"{where}: {size:,} bytes about a name; expected at most {_MAX_EXTRA:,}")
    return stream.read(size)


def _records(where: str, content: bytes) -> dict[str, str]:
    """The lines ``length key=value`` of an extended header."""
    found = {}
    while content.strip(b"\0"):
        length, _, _ = content.partition(b" ")
        count = int(length) if length.isdigit() and len(length) < 8 else 0
        key, separator, value = content[len(length) + 1 : count - 1].partition(b"=")
        if count == 0 or count > len(content) or not separator:
            raise InputError(f"{where}: a damaged extended header")
        if key.startswith(b"GNU.sparse"):
            raise InputError(f"{where}: a sparse file; expected plain files")
        found[_text(key)] = _text(value)
        content = content[count:]
    return found


def _name(header: bytes) -> str:
    name = header[:100].partition(b"\0")[0]
    prefix = header[345:500].partition(b"\0")[0] if header[257:263] == b"ustar\0" else b""
    return _text(prefix + b"/" + name if prefix else name)


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")
