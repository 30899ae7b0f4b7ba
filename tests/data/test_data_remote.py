"""Images that lie elsewhere: addresses, pieces, attempts and the cache, with a file system in memory.

What real servers do is tried in test_data_remote_servers.py.
"""

from __future__ import annotations

import gc
import io
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import blemish.data.fetching as fetching
from blemish.core.errors import InputError, StorageError
from blemish.data.cache import load
from blemish.data.fetching import RemoteFile, is_address, shown_address
from blemish.data.open import open_source
from blemish.data.source import Source
from image_tables import encoded, image_table
from tar_files import tar_bytes


def parquet_bytes(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(table, buffer, row_group_size=2)
    return buffer.getvalue()


def array_bytes(array: np.ndarray[Any, Any]) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def levels(source: Source) -> list[int]:
    return [int(np.asarray(source.read(i))[0, 0, 0]) for i in range(len(source))]


class Memory(fsspec.get_filesystem_class("memory")):  # type: ignore[misc]
    """fsspec's files in memory, with versions, a count of what was asked for, and faults."""

    protocol = "memory"
    faults: list[Any]
    asked: list[tuple[str, int]]

    def info(self, path: str, **kwargs: Any) -> Any:
        info = super().info(path, **kwargs)
        file = self.store.get(info["name"])
        return info if file is None else {**info, "ETag": str(file.modified)}

    def cat_file(self, path: str, start: Any = None, end: Any = None, **kwargs: Any) -> bytes:
        Memory.asked.append((path, start))
        content = super().cat_file(path, start=start, end=end, **kwargs)
        fault = Memory.faults.pop(0) if Memory.faults else None
        if isinstance(fault, Exception):
            raise fault
        return content if fault is None else fault(content)


@pytest.fixture(autouse=True)
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A file system at memory://b, no waiting between attempts, small pieces, and a cache of the test's own."""
    monkeypatch.setattr(fetching, "SCHEMES", (*fetching.SCHEMES, "memory"))
    monkeypatch.setattr(fetching, "_PAUSES", (0, 0, 0))
    monkeypatch.setattr(fetching, "_PIECE", 100)
    monkeypatch.setenv("BLEMISH_REMOTE_CACHE", str(tmp_path / "cache"))
    Memory.faults, Memory.asked = [], []
    fsspec.register_implementation("memory", Memory, clobber=True)
    system = Memory()
    system.store.clear()
    yield system
    system.store.clear()
    fsspec.register_implementation("memory", "fsspec.implementations.memory.MemoryFileSystem", clobber=True)


class TestFormats:
    def test_shards(self, memory: Any, tmp_path: Path) -> None:
        for number in range(3):
            memory.pipe_file(f"/b/set/v-{number}.tar", tar_bytes(range(4 * number, 4 * number + 4)))
            (tmp_path / f"v-{number}.tar").write_bytes(tar_bytes(range(4 * number, 4 * number + 4)))
        local = load(open_source(tmp_path / "v-{0..2}.tar"))
        for address in ("memory://b/set/v-{0..2}.tar", "memory://b/set", "memory://b/set/*.tar"):
            source = open_source(address)
            assert levels(source) == list(range(12))
            assert load(source).fingerprint == local.fingerprint
        assert open_source("memory://b/set/v-1.tar").name == open_source(tmp_path / "v-1.tar").name

    def test_parquet(self, memory: Any) -> None:
        for number in range(2):
            content = parquet_bytes(image_table([2 * number, 2 * number + 1], [0, 1], ["a", "b"]))
            memory.pipe_file(f"/b/set/{number}.parquet", content)
        source = open_source("memory://b/set/{0..1}.parquet")
        assert levels(source) == [0, 1, 2, 3]
        assert source.classes == ("a", "b")
        assert open_source("memory://b/set", mapping={"a": 7, "b": 3}).labels.tolist() == [7, 3, 7, 3]

    def test_arrays(self, memory: Any) -> None:
        images = np.arange(4 * 8 * 8 * 3).reshape(4, 8, 8, 3).astype(np.uint8)
        memory.pipe_file("/b/x.npy", array_bytes(images))
        memory.pipe_file("/b/y.npy", array_bytes(np.array([3, 1, 2, 0])))
        source = open_source("memory://b/x.npy", labels="memory://b/y.npy")
        assert source.labels.tolist() == [3, 1, 2, 0]
        assert source.name == "x"
        np.testing.assert_array_equal(np.asarray(source.read(2)), images[2])
        buffer = io.BytesIO()
        np.savez(buffer, images=images, labels=np.array([0, 1, 2, 3]))
        memory.pipe_file("/b/z.npz", buffer.getvalue())
        assert load(open_source("memory://b/z.npz").take([2])).batch([0]).shape == (1, 3, 8, 8)

    def test_an_array_is_held_for_as_long_as_it_is_in_use(
        self, memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        images = np.full((2, 8, 8, 3), 5, np.uint8)
        for name in "abc":
            memory.pipe_file(f"/b/{name}.npy", array_bytes(images))
        size = len(array_bytes(images))
        np.save(tmp_path / "y.npy", np.array([0, 1]))
        monkeypatch.setenv("BLEMISH_REMOTE_CACHE_GB", str(2.5 * size / 2**30))
        first = open_source("memory://b/a.npy", labels=tmp_path / "y.npy").take([1])
        for name in "bcb":
            assert levels(open_source(f"memory://b/{name}.npy", labels=tmp_path / "y.npy")) == [5, 5]
            gc.collect()
        (kept,) = {*(tmp_path / "cache").iterdir()} & {Path(first.read._images.filename)}  # type: ignore[attr-defined]
        assert levels(first) == [5]
        del first
        gc.collect()
        for name in "bc":
            open_source(f"memory://b/{name}.npy", labels=tmp_path / "y.npy")
            gc.collect()
        assert not kept.exists()

    def test_processes_reopen_them(self, memory: Any) -> None:
        memory.pipe_file("/b/v.tar", tar_bytes(range(4)))
        source = open_source("memory://b/v.tar")
        asked = len(Memory.asked)
        again = pickle.loads(pickle.dumps(source.take([3, 0])))
        assert levels(again) == [3, 0]
        assert len(Memory.asked) == asked


class TestFetching:
    def test_pieces_make_the_whole(self, memory: Any) -> None:
        content = bytes(range(250)) * 3 + b"end"
        memory.pipe_file("/b/x.tar", content)
        with RemoteFile("memory://b/x.tar").held() as path:
            assert path.read_bytes() == content
        assert sorted(start for _, start in Memory.asked) == list(range(0, 753, 100))

    @pytest.mark.parametrize(
        "faults",
        [
            [ConnectionResetError("reset")],
            [None, TimeoutError("late"), None, OSError("gone"), RuntimeError("closed")],
            [lambda content: content[:30]],
            [None, lambda content: content[:-1], lambda content: content[:0], lambda content: content + b"x"],
        ],
        ids=["first piece", "several", "a short one", "short, empty, long"],
    )
    def test_what_fails_is_tried_again(self, memory: Any, faults: list[Any]) -> None:
        content = bytes(range(250)) * 2
        memory.pipe_file("/b/x.tar", content)
        Memory.faults = list(faults)
        with RemoteFile("memory://b/x.tar").held() as path:
            assert path.read_bytes() == content
        assert not Memory.faults

    @pytest.mark.parametrize(
        ("fault", "message"),
        [
            (
                ConnectionResetError("reset by peer"),
                r"cannot be fetched \(ConnectionResetError: reset by peer\); tried 4",
            ),
            (lambda content: content[:30], r"30 bytes of 100 came\); tried 4 times"),
        ],
    )
    def test_a_short_read_is_an_error(self, memory: Any, tmp_path: Path, fault: Any, message: str) -> None:
        memory.pipe_file("/b/x.tar", bytes(500))
        Memory.faults = [None, *[fault] * 20]
        with (
            pytest.raises(StorageError, match=rf"memory://b/x\.tar: .*{message}"),
            RemoteFile("memory://b/x.tar").held(),
        ):
            pass
        assert list((tmp_path / "cache").iterdir()) == []

    def test_a_server_that_gives_the_whole_file(self, memory: Any) -> None:
        content = bytes(range(250)) * 2
        memory.pipe_file("/b/x.tar", content)
        Memory.faults = [lambda _: content]
        with RemoteFile("memory://b/x.tar").held() as path:
            assert path.read_bytes() == content
        assert len(Memory.asked) == 1

    @pytest.mark.parametrize("error", [PermissionError("denied"), type("Refused", (Exception,), {"status": 403})("no")])
    def test_what_will_not_pass_is_not_tried_again(self, memory: Any, error: Exception) -> None:
        memory.pipe_file("/b/x.tar", bytes(500))
        Memory.faults = [error]
        with (
            pytest.raises(InputError, match=r"memory://b/x\.tar: cannot be read"),
            RemoteFile("memory://b/x.tar").held(),
        ):
            pass
        assert len(Memory.asked) == 1

    def test_a_file_that_changes_while_it_is_fetched(self, memory: Any, tmp_path: Path) -> None:
        memory.pipe_file("/b/x.tar", bytes(500))
        file = RemoteFile("memory://b/x.tar")

        def change(content: bytes) -> bytes:
            memory.pipe_file("/b/x.tar", b"x" * 500)
            return content

        Memory.faults = [None, change]
        with pytest.raises(InputError, match="was changed while it was being fetched"), file.held():
            pass
        assert list((tmp_path / "cache").iterdir()) == []

    def test_a_later_version_is_fetched(self, memory: Any) -> None:
        memory.pipe_file("/b/v.tar", tar_bytes([1, 2]))
        first = load(open_source("memory://b/v.tar")).fingerprint
        memory.pipe_file("/b/v.tar", tar_bytes([3, 4]))
        source = open_source("memory://b/v.tar")
        assert levels(source) == [3, 4]
        assert load(source).fingerprint != first
        assert len(Memory.asked) > 0

    def test_a_file_without_a_version_is_not_taken_from_another_run(
        self, memory: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(fetching, "_VERSIONS", ())
        memory.pipe_file("/b/v.tar", tar_bytes([1, 2]))
        assert levels(open_source("memory://b/v.tar")) == [1, 2]
        memory.pipe_file("/b/v.tar", tar_bytes([3, 4]))
        assert levels(open_source("memory://b/v.tar")) == [3, 4]

    def test_a_set_that_is_larger_than_the_cache(
        self, memory: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for number in range(6):
            memory.pipe_file(f"/b/v-{number}.tar", tar_bytes([2 * number, 2 * number + 1]))
        size = len(tar_bytes([0, 1]))
        monkeypatch.setenv("BLEMISH_REMOTE_CACHE_GB", str(2.5 * size / 2**30))
        source = open_source("memory://b/v-{0..5}.tar")
        images = load(source, workers=4)
        assert [int(images.image(row)[0, 0, 0]) for row in range(12)] == list(range(12))
        assert sum(path.stat().st_size for path in (tmp_path / "cache").iterdir()) <= 2.5 * size


class TestMessages:
    def test_addresses_are_named(self, memory: Any, tmp_path: Path) -> None:
        memory.pipe_file("/b/v.tar", b"no archive" * 100)
        with pytest.raises(InputError, match=r"^memory://b/v\.tar, byte 0: not a tar archive") as caught:
            open_source("memory://b/v.tar")
        assert str(tmp_path) not in str(caught.value)
        table = pa.table({"image": [encoded(1), b"nonsense"], "label": [0, 1]})
        memory.pipe_file("/b/x.parquet", parquet_bytes(table))
        with pytest.raises(InputError, match=r"row 1 of memory://b/x\.parquet: not a readable picture"):
            open_source("memory://b/x.parquet").read(1)
        memory.pipe_file("/b/x.parquet", b"PAR1")
        with pytest.raises(InputError, match=r"^memory://b/x\.parquet: not a readable Parquet file"):
            open_source("memory://b/x.parquet")

    @pytest.mark.parametrize(
        ("address", "message"),
        [
            ("memory://b/nowhere.tar", r"memory://b/nowhere\.tar: no such file"),
            ("memory://b/nowhere", "no such file"),
            ("memory://b/x-*.tar", r"no such files; expected \.tar, \.parquet"),
            ("memory://b/empty.tar", "an empty file"),
            ("memory://b/folder", r"no such files; expected"),
            ("memory://b/{a,b}.npy", "2 array files; expected one"),
            ("memory://b/both", r"files of several kinds \(\.parquet, \.tar\)"),
            ("memory://b/parts", "1 of 2 files of val; some are missing"),
        ],
    )
    def test_refused(self, memory: Any, address: str, message: str) -> None:
        memory.pipe_file("/b/empty.tar", b"")
        memory.pipe_file("/b/folder/readme.txt", b"about")
        for name in ("a.npy", "b.npy", "both/a.tar", "both/b.parquet", "parts/val-00000-of-00002.parquet"):
            memory.pipe_file(f"/b/{name}", b"x")
        with pytest.raises(InputError, match=message):
            open_source(address)

    def test_settings_that_mean_nothing(self, memory: Any) -> None:
        memory.pipe_file("/b/v.tar", tar_bytes([1]))
        for setting in ({"labels": "y.npy"}, {"mapping": "imagenet"}, {"columns": ("a", "b")}):
            with pytest.raises(InputError, match=r"given for memory://b/v\.tar"):
                open_source("memory://b/v.tar", **setting)  # type: ignore[arg-type]

    @pytest.mark.parametrize("text", ["much", "0", "-3", "nan", "inf"])
    def test_a_bound_that_is_none(self, memory: Any, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
        monkeypatch.setenv("BLEMISH_REMOTE_CACHE_GB", text)
        memory.pipe_file("/b/v.tar", tar_bytes([1]))
        with pytest.raises(InputError, match="expected a number of gigabytes"):
            open_source("memory://b/v.tar")

    def test_secrets_are_not_shown(self) -> None:
        assert shown_address("https://me:word@h.org:99/a/v.tar?sig=1#x") == "https://h.org:99/a/v.tar"
        assert shown_address("s3://bucket/v-{0..3}.tar") == "s3://bucket/v-{0..3}.tar"

    @pytest.mark.parametrize("final", [True, False])
    def test_nor_are_those_in_the_messages_of_libraries(self, memory: Any, final: bool) -> None:
        memory.pipe_file("/b/x.tar", bytes(500))
        text = "403, message='Forbidden', url='https://me:word@h.org/x.tar?signature=hidden&more'"
        Memory.faults = [(PermissionError if final else OSError)(text)] * 9
        with pytest.raises((InputError, StorageError), match=r"https://h\.org/x\.tar") as caught:
            open_source("memory://b/x.tar")
        assert "hidden" not in str(caught.value)
        assert "word" not in str(caught.value)

    def test_what_is_an_address(self) -> None:
        assert is_address("s3://b/x.tar")
        assert is_address("HTTPS://h.org/x.tar")
        assert not is_address("hf:cifar10:test")
        assert not is_address("folder/s3")
        assert not is_address(Path("s3://b/x.tar"))
