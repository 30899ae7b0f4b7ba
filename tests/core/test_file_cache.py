"""A bounded folder of files that can be fetched again, shared by threads and processes."""

from __future__ import annotations

import multiprocessing
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import blemish.core.file_cache as file_cache
from blemish.core.errors import StorageError
from blemish.core.file_cache import FileCache
from blemish.core.files import PartFile
from blemish.core.locks import locked
from cache_processes import KILO, fetch_slowly, hold


def writer(content: bytes, told: list[str] | None = None) -> Any:
    def fetch(part: PartFile) -> None:
        if told is not None:
            told.append(part.final.name)
        part.stream.seek(0)
        part.write(content)

    return fetch


def use(cache: FileCache, name: str, told: list[str] | None = None, *, size: int = KILO) -> bytes:
    with cache.held(name, size, writer(name[:1].encode() * size, told)) as path:
        return path.read_bytes()


@pytest.fixture
def cache(tmp_path: Path) -> FileCache:
    return FileCache(tmp_path / "cache", 3 * KILO, advice="make it larger")


def names(cache: FileCache) -> set[str]:
    return {path.name for path in cache.folder.iterdir()}


def test_a_file_is_fetched_once(cache: FileCache) -> None:
    told: list[str] = []
    assert use(cache, "a", told) == b"a" * KILO
    assert use(cache, "a", told) == b"a" * KILO
    assert told == ["a"]
    assert names(cache) == {"a"}


def test_the_longest_unused_goes(cache: FileCache) -> None:
    for name in "abc":
        use(cache, name)
        time.sleep(0.01)
    use(cache, "a")
    use(cache, "d")
    assert names(cache) == {"a", "c", "d"}


def test_the_time_of_change_stays(cache: FileCache) -> None:
    """Readers tell by it whether a file is still the same."""
    with cache.held("a", KILO, writer(b"a" * KILO)) as path:
        before = path.stat().st_mtime_ns
    time.sleep(0.01)
    use(cache, "a")
    assert path.stat().st_mtime_ns == before


def test_files_in_use_stay(cache: FileCache) -> None:
    with cache.held("a", KILO, writer(b"a" * KILO)) as held:
        for name in "bcdef":
            use(cache, name)
        assert held.read_bytes() == b"a" * KILO
    assert "a" in names(cache)
    use(cache, "g", size=3 * KILO)
    assert names(cache) == {"g"}


def test_a_cache_that_is_full_of_files_in_use(cache: FileCache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_cache, "_PATIENCE", 0.1)
    with (
        cache.held("a", 2 * KILO, writer(b"a" * 2 * KILO)),
        pytest.raises(StorageError, match=r"is full of files in use: 1000 bytes more are needed .*; make it larger"),
    ):
        use(cache, "b", size=2 * KILO)
    assert names(cache) == {"a"}


def test_a_file_that_is_larger_than_all(cache: FileCache) -> None:
    with pytest.raises(StorageError, match=r"a: a file of 3\.9 KiB, more than the 2\.9 KiB that .*make it larger"):
        use(cache, "a", size=4 * KILO)


def test_a_fetch_that_fails_leaves_nothing(cache: FileCache) -> None:
    def fail(part: PartFile) -> None:
        part.write(b"half")
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError, match="gone"), cache.held("a", KILO, fail):
        pass
    assert names(cache) == set()
    assert use(cache, "a") == b"a" * KILO


@pytest.mark.parametrize("content", [b"x" * (KILO + 1)])
def test_more_than_was_told(cache: FileCache, content: bytes) -> None:
    with pytest.raises(StorageError, match="1,001 bytes of 1,000 came"), cache.held("a", KILO, writer(content)):
        pass
    assert names(cache) == set()


def test_a_damaged_file_is_fetched_again(cache: FileCache) -> None:
    use(cache, "a")
    (cache.folder / "a").write_bytes(b"short")
    assert use(cache, "a") == b"a" * KILO


def test_a_link_is_not_followed(cache: FileCache, tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(b"m" * KILO)
    cache.folder.mkdir()
    (cache.folder / "a").symlink_to(tmp_path / "mine")
    with pytest.raises(StorageError, match="cannot use"):
        use(cache, "a")
    assert (tmp_path / "mine").read_bytes() == b"m" * KILO


def test_what_a_killed_process_left_is_removed(cache: FileCache) -> None:
    cache.folder.mkdir()
    left = cache.folder / f".a.{'0' * 16}.part"
    left.write_bytes(b"half")
    assert use(cache, "a") == b"a" * KILO
    assert names(cache) == {"a"}


def test_threads_fetch_a_file_once_and_never_exceed_the_bound(cache: FileCache) -> None:
    told: list[str] = []
    largest = 0

    def work(i: int) -> bytes:
        nonlocal largest
        content = use(cache, "abcde"[i % 5], told)
        # Files come and go under this lock; without it, one that goes and one that comes could both be counted.
        with locked(cache.folder / file_cache._LOCK, cache.folder, patience=60):
            largest = max(largest, sum(path.stat().st_size for path in cache.folder.glob("[a-e]")))
        return content

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(work, range(60)))
    assert found == ["abcde"[i % 5].encode() * KILO for i in range(60)]
    assert largest <= 3 * KILO


def test_no_file_gets_its_name_while_another_thread_counts(cache: FileCache) -> None:
    """It would be counted by neither of its names."""
    begun, go_on = threading.Event(), threading.Event()

    def fetch(part: PartFile) -> None:
        begun.set()
        assert go_on.wait(60)
        part.stream.seek(0)
        part.write(b"a" * KILO)

    def hold_it() -> None:
        with cache.held("a", KILO, fetch):
            pass

    thread = threading.Thread(target=hold_it)
    thread.start()
    assert begun.wait(60)
    with locked(cache.folder / file_cache._LOCK, cache.folder, patience=60):
        go_on.set()
        thread.join(0.3)
        assert not (cache.folder / "a").exists()
    thread.join(60)
    assert (cache.folder / "a").read_bytes() == b"a" * KILO


def test_processes_share_it(tmp_path: Path) -> None:
    """Both ask at the same time: one fetches, the other waits for it."""
    context = multiprocessing.get_context("spawn")
    started, counter = context.Event(), context.Value("i", 0)
    both = [context.Process(target=fetch_slowly, args=(tmp_path / "cache", started, counter)) for _ in range(2)]
    for process in both:
        process.start()
    started.set()
    for process in both:
        process.join(60)
    assert [process.exitcode for process in both] == [0, 0]
    assert counter.value == 1


def test_a_file_that_another_process_uses_stays(cache: FileCache) -> None:
    context = multiprocessing.get_context("spawn")
    held, done = context.Event(), context.Event()
    other = context.Process(target=hold, args=(cache.folder, held, done))
    other.start()
    try:
        assert held.wait(60)
        for name in "bcd":
            use(cache, name)
        assert "a" in names(cache)
    finally:
        done.set()
        other.join(60)
    for name in "efg":
        use(cache, name)
    assert "a" not in names(cache)
