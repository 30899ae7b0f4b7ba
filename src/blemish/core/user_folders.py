"""Where a user's own files of programs belong, as each system has it."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from pathlib import Path

_NAME = "blemish"


def data_folder() -> Path:
    """For what was fetched once and is wanted again."""
    return _folder("XDG_DATA_HOME", "~/.local/share", "~/Library/Application Support", "share")


def cache_folder() -> Path:
    """For what can be made again."""
    return _folder("XDG_CACHE_HOME", "~/.cache", "~/Library/Caches", "cache")


def _folder(variable: str, linux: str, mac: str, fallback: str) -> Path:
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = mac
    else:
        base = os.environ.get(variable) or linux
    return _own(os.path.expanduser(base), fallback)  # noqa: PTH111 — a Path takes three times as long


@lru_cache(maxsize=16)
def _own(base: str, fallback: str) -> Path:
    homeless = base.startswith("~")
    return (Path(sys.prefix) / fallback if homeless else Path(base)) / _NAME
