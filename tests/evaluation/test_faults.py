"""What goes wrong on real machines, outputs: full disks, unwritable places, two runs at once.

Each has to be detected and explained, and nothing may be silently wrong afterwards.
"""

from __future__ import annotations

import contextlib
import errno
import multiprocessing
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from blemish.core.errors import StorageError
from blemish.core.files import STAGING, write_bytes
from blemish.core.folders import held_folder
from blemish.evaluation.executors import processes
from blemish.evaluation.records import read_records
from blemish.evaluation.runs import record_path
from execution_jobs import compete
from fault_runs import FOG, RUN, invoke, the_run
from until import PATIENCE, until


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "blemish", *(str(item) for item in arguments)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "300"},
    )


@contextlib.contextmanager
def no_file_beyond(size: int) -> Iterator[None]:
    """No file can grow beyond so many bytes, in this process and in those that it starts."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pictures in class folders, and an array file of four."""
    from blemish.data.demo import demo_picture

    folder = tmp_path_factory.mktemp("pictures")
    for name in ("a/one.png", "b/two.png"):
        (folder / "tree" / name).parent.mkdir(parents=True)
        demo_picture(96).save(folder / "tree" / name)
    np.save(folder / "array.npy", np.stack([np.asarray(demo_picture(64))] * 4))
    return folder


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    assert invoke(*RUN, "--limit", 60, "-o", folder)[0] == 0
    return folder


# A full disk


def test_a_run_on_a_full_disk_is_continued_when_there_is_room(small_disk: Path, results: Path) -> None:
    (small_disk / "filler").write_bytes(b"x" * 36_000)
    code, said = invoke(*RUN, "--limit", 60, "-o", small_disk / "out")
    assert code == 2
    assert "error: cannot write" in said
    assert "No space left on device" in said
    for path in (small_disk / "out").rglob("*.parquet"):
        read_records(path)  # whatever stands there is complete
    (small_disk / "filler").unlink()
    assert invoke(*RUN, "--limit", 60, "-o", small_disk / "out")[0] == 0
    expected, found = the_run(results), the_run(small_disk / "out")
    for condition in expected.conditions:
        assert record_path(found.folder, condition).read_bytes() == record_path(expected.folder, condition).read_bytes()


@pytest.mark.usefixtures("spawned_workers")  # which inherit the limit
@pytest.mark.parametrize(
    ("arguments", "largest"),
    [
        ([*RUN, "--limit", "60", "-o", "OUT"], 3_000),
        ([*RUN, "--limit", "60", "-o", "OUT", "--jobs", "2"], 3_000),
        (["corrupt", "TREE", "-o", "OUT", "-c", "fog", "-s", "1"], 600),
        (["corrupt", "ARRAY", "-o", "OUT", "-c", "fog", "-s", "1"], 3_000),
        (["corrupt", "TREE", "-o", "OUT", "--sequence", "p:tilt"], 600),
        (["report", "RESULTS", "-o", "OUT/page.html"], 10_000),
        (["score", "RESULTS", "--json", "-o", "OUT/scores.json"], 1_000),
        (["show", "-o", "OUT.png", "-c", "fog"], 1_000),
    ],
    ids=lambda value: " ".join(value[:4]) if isinstance(value, list) else "",
)
def test_files_that_cannot_be_finished(
    pictures: Path, results: Path, tmp_path: Path, arguments: list[str], largest: int
) -> None:
    """The system refuses to let a file grow, as it does where a quota ends: the same path as for a full disk."""
    names = {"TREE": pictures / "tree", "ARRAY": pictures / "array.npy", "RESULTS": results}
    out = tmp_path / "out"
    filled = [str(names.get(item, item)).replace("OUT", str(out)) for item in arguments]
    assert invoke("show", "-o", tmp_path / "first.png", "-c", "fog")[0] == 0  # kernels are compiled into files, too
    (tmp_path / "first.png").unlink()
    with no_file_beyond(largest):
        code, said = invoke(*filled)
    assert code == 2, said
    assert "File too large" in said
    left = files(tmp_path)
    assert not [name for name in left if ".part" in name or STAGING in name]
    assert not [name for name in left if name.endswith((".npy", ".html", "scores.json", ".png"))]
    assert invoke(*filled)[0] == 0  # nothing stands in its way


def test_an_atomic_file_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x").write_bytes(b"before")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"cannot write .*x: No space left on device"):
        write_bytes(tmp_path / "x", b"afterwards")
    assert files(tmp_path) == {"x": b"before"}


# Places that cannot be written to


@pytest.mark.parametrize(
    "arguments",
    [
        [*RUN, "--limit", "20", "-o"],
        ["corrupt", "TREE", "-o", "OUT", "-c", "fog"],
        ["corrupt", "ARRAY", "-o", "OUT", "-c", "fog"],
        ["corrupt", "TREE", "-o", "OUT", "--sequence", "p:tilt"],
        ["train-overlap", "-d", "demo:digits", "-t", "demo:digits", "-c", "fog,contrast", "-n", "50", "-o"],
        ["demo", "--out"],
        ["report", "RESULTS", "-o", "OUT/page.html"],
        ["score", "RESULTS", "-o", "OUT/scores.json"],
        ["equivalence", "-d", "ARRAY", "--stored", "TREE", "-o", "OUT/page.html"],
    ],
    ids=lambda arguments: " ".join(arguments[:4]),
)
@pytest.mark.parametrize("place", ["a file", "a system folder"])
def test_unwritable_places(pictures: Path, results: Path, tmp_path: Path, arguments: list[str], place: str) -> None:
    (tmp_path / "file").write_text("mine")
    out = tmp_path / "file" if place == "a file" else Path("/proc/blemish")
    if place == "a system folder" and not Path("/proc").is_dir():
        pytest.skip("no /proc here")
    names = {"TREE": pictures / "tree", "ARRAY": pictures / "array.npy", "RESULTS": results}
    filled = [str(names.get(item, item)).replace("OUT", str(out)) for item in arguments]
    code, said = invoke(*filled, *([out] if arguments[-1].startswith("-") else []))
    assert code == 2
    assert str(out) in said
    assert any(reason in said for reason in ("is a file; expected a folder", "cannot write", "Not a directory"))
    assert (tmp_path / "file").read_text() == "mine"


# Two runs at once


@pytest.mark.parametrize(
    "arguments",
    [
        ["corrupt", "TREE", "-o", "OUT", "-c", "fog"],
        ["corrupt", "ARRAY", "-o", "OUT", "-c", "fog"],
        ["corrupt", "TREE", "-o", "OUT", "--sequence", "p:tilt"],
        ["train-overlap", "-d", "demo:digits", "-t", "demo:digits", "-c", "fog,contrast", "-n", "50", "-o", "OUT"],
    ],
    ids=lambda arguments: " ".join(arguments[:4]),
)
def test_a_second_run_into_a_folder_is_refused(pictures: Path, tmp_path: Path, arguments: list[str]) -> None:
    names = {"TREE": pictures / "tree", "ARRAY": pictures / "array.npy", "OUT": tmp_path / "out"}
    filled = [str(names.get(item, item)) for item in arguments]
    held = tmp_path / "out" / "networks" if arguments[0] == "train-overlap" else tmp_path / "out"
    with held_folder(held):
        code, said = invoke(*filled)
    assert code == 2
    assert f"another run is writing to {held}; wait for it, or choose another folder" in said


def test_two_runs_in_processes_of_their_own(tmp_path: Path) -> None:
    arguments = ["fog" if item == "fog@1" else item for item in RUN] + ["-o", str(tmp_path)]
    first = subprocess.Popen([sys.executable, "-m", "blemish", *arguments], stdout=subprocess.DEVNULL)
    try:
        # Written once the folder is held; the file of the lock itself is there a moment before that.
        until(lambda: [*tmp_path.glob("*/run.json")], first)
        os.kill(first.pid, 19)  # stopped, so that it cannot be done before the second begins
        second = command(*arguments)
        os.kill(first.pid, 18)
        assert second.returncode == 2
        assert "another run is writing to" in second.stderr
        assert first.wait(PATIENCE) == 0
    finally:
        first.kill()
        first.wait()
    assert the_run(tmp_path).finished(FOG)
    assert invoke(*arguments)[0] == 0


CCC = ["-m", "python:quarter_net:build", "--device", "cpu", "-d", "data.npz"]


def test_streams_are_held_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from quarter_nets import NET

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    Path("quarter_net.py").write_text(NET)
    images = np.random.default_rng(0).integers(60, 180, (40, 16, 16, 3)).astype(np.uint8)
    np.savez("data.npz", images=images, labels=np.arange(40) % 4)
    calibrate = ["ccc", "calibrate", *CCC, "-c", "contrast,pixelate", "-n", "10", "--targets", "0.3", "-o", "cal"]
    with held_folder(Path("cal")):
        code, said = invoke(*calibrate)
    assert (code, "another run is writing to cal" in said) == (2, True)
    assert invoke(*calibrate)[0] == 0
    assert not (Path("cal") / STAGING).exists()
    walk = ["ccc", "walk", "cal", "--target", "0.3", "--speed", "5", "--length", "40", "-o", "walk.json"]
    assert invoke(*walk)[0] == 0
    with held_folder(Path("run")):
        code, said = invoke("ccc", "run", "walk.json", *CCC, "--methods", "none", "-o", "run")
    assert (code, "another run is writing to run" in said) == (2, True)
    shards = ["ccc", "materialise", "walk.json", "-d", "data.npz", "-o", "shards", "--shard-images", "20", "--anyway"]
    with held_folder(Path("shards"), "0-of-2"):
        code, said = invoke(*shards, "--part", "0/2")
        assert (code, "another run is writing to shards" in said) == (2, True)
        assert invoke(*shards, "--part", "1/2")[0] == 0  # shares of the work may go on at the same time
    assert invoke(*shards, "--part", "0/2")[0] == 0


def test_only_one_of_many_holds_a_folder(tmp_path: Path) -> None:
    """The lock is removed with its folder at the end of a run, just when another may have opened it."""
    context = processes._context
    seen: multiprocessing.Queue[str] = context.Queue()
    folder = tmp_path / "out"
    folder.mkdir()
    workers = [context.Process(target=compete, args=(folder, 60, seen)) for _ in range(3)]
    for worker in workers:
        worker.start()
    heard = [seen.get(timeout=PATIENCE)]
    while heard.count("done") < len(workers):
        heard.append(seen.get(timeout=PATIENCE))
    for worker in workers:
        worker.join(PATIENCE)
    assert heard == ["done"] * len(workers)
