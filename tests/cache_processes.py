"""What other processes do with a cache of files that a test shares with them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from blemish.core.file_cache import FileCache
from blemish.core.files import PartFile

KILO = 1000


def fetch_slowly(folder: Path, started: Any, counter: Any) -> None:
    """Use a file that takes a while to be fetched, and count who fetches it."""

    def fetch(part: PartFile) -> None:
        with counter.get_lock():
            counter.value += 1
        part.stream.seek(0)
        for _ in range(10):
            part.write(b"a" * (KILO // 10))
            time.sleep(0.02)

    started.wait(60)
    with FileCache(folder, 3 * KILO, advice="").held("a", KILO, fetch) as path:
        assert path.read_bytes() == b"a" * KILO


def hold(folder: Path, held: Any, done: Any) -> None:
    """Hold a file until it is no longer needed."""
    with FileCache(folder, 3 * KILO, advice="").held("a", KILO, _write):
        held.set()
        done.wait(60)


def _write(part: PartFile) -> None:
    part.stream.seek(0)
    part.write(b"a" * KILO)
