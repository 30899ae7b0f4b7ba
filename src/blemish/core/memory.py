"""How much memory there is, so that files that claim more are refused before they are read."""

from __future__ import annotations

import os
from pathlib import Path

from blemish.core.errors import InputError

_MEMINFO = Path("/proc/meminfo")
_CGROUP = Path("/sys/fs/cgroup")
_UNKNOWN = 8 * 2**30


def available_memory() -> int:
    """Bytes that can be taken without swapping; a guess of 8 GiB where the system does not say."""
    limits = [value for value in (_system(), _container()) if value is not None]
    return min(limits) if limits else _UNKNOWN


def _system() -> int | None:
    try:
        for line in _MEMINFO.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
        return None
    except (OSError, ValueError, IndexError):
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # not on Windows
        return None


def _container() -> int | None:
    try:
        limit = int((_CGROUP / "memory.max").read_text(encoding="ascii"))
        used = int((_CGROUP / "memory.current").read_text(encoding="ascii"))
    except (OSError, ValueError):  # no container, or "max"
        return None
    return max(0, limit - used)


def check_fits(name: str, size: int) -> None:
    """Refuse to read what does not fit into memory: small compressed files can claim any size."""
    free = available_memory()
    if size > free:
        raise InputError(f"{name} claims {shown_bytes(size)}, but {shown_bytes(free)} of memory are free; not read")


def shown_bytes(size: int) -> str:
    """A number of bytes for people.

    >>> shown_bytes(3 * 2**29)
    '1.5 GiB'
    """
    for unit, scale in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size >= scale:
            return f"{size / scale:.1f} {unit}"
    return f"{size} bytes"
