"""Files that are complete or not there: what killed processes leave, what living ones are writing, and full disks."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from blemish.core.errors import InputError, StorageError
from blemish.core.files import (
    STAGING,
    PartFile,
    digest_of,
    file_digest,
    part_file,
    part_files,
    remove_abandoned,
    write_bytes,
    write_files,
)
from blemish.core.folders import held_folder, part_folder, temporary_folder
from blemish.core.locks import is_abandoned

pytest.importorskip("fcntl", reason="no locks on files here")

_AT_WORK = {
    "file": "from blemish.core.files import part_file\nwith part_file(Path(sys.argv[1]) / 'x.pt') as part: wait()",
    "staged": (
        "from blemish.core.files import part_file\nfrom blemish.core.folders import held_folder\n"
        "folder = Path(sys.argv[1])\n"
        "with held_folder(folder), part_file(folder / 'x.pt', destination=folder) as part: wait()"
    ),
    "folder": (
        "from blemish.core.folders import part_folder\n"
        "with part_folder(Path(sys.argv[1]) / 'group') as made: (made / 'y').touch(); wait()"
    ),
    "temporary": "from blemish.core.folders import temporary_folder\nwith temporary_folder(): wait()",
}


@contextlib.contextmanager
def process_at_work(what: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has begun to write, and waits."""
    code = "import sys\nfrom pathlib import Path\ndef wait(): print('ready', flush=True); sys.stdin.read()\n"
    process = subprocess.Popen(
        [sys.executable, "-c", code + _AT_WORK[what], str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(folder)},
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def tidied(what: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the next process does there."""
    if what == "file":
        write_bytes(folder / "x.pt", b"whole")
    elif what == "folder":
        with part_folder(folder / "group"):
            pass
    elif what == "temporary":
        monkeypatch.setattr("tempfile.tempdir", str(folder))
        with temporary_folder():
            pass
    else:
        with held_folder(folder):
            pass


def everything(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


@pytest.mark.parametrize("what", _AT_WORK)
def test_only_what_killed_processes_left_is_removed(tmp_path: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    others = {".x.pt.part", ".x.pt.123.part", ".hidden", "data"}
    for name in others:
        (tmp_path / name).write_text("mine")
    with process_at_work(what, tmp_path) as process:
        at_work = everything(tmp_path) - others
        assert at_work
        with contextlib.suppress(StorageError):  # a held folder is refused
            tidied(what, tmp_path, monkeypatch)
        assert at_work <= everything(tmp_path)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert at_work <= everything(tmp_path)
        tidied(what, tmp_path, monkeypatch)
    assert everything(tmp_path) - {"x.pt"} == others


def test_a_part_of_another_process_in_the_same_folder_is_left_alone(tmp_path: Path) -> None:
    """Shares of the work hold a folder at the same time."""
    with (
        held_folder(tmp_path, "0-of-2"),
        part_file(tmp_path / "a", destination=tmp_path) as first,
        held_folder(tmp_path, "1-of-2"),
    ):
        first.write(b"one")
        with held_folder(tmp_path, "0-of-3"):
            pass
        assert first.path.exists()
        first.finish()
    assert everything(tmp_path) == {"a"}


def test_an_interrupted_file_is_gone(tmp_path: Path) -> None:
    def interrupted() -> None:
        with part_file(tmp_path / "x") as part:
            part.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert everything(tmp_path) == set()


def test_a_file_that_was_interrupted_before_anybody_could_remove_it(tmp_path: Path) -> None:
    """Its lock is still held, by this process itself."""
    with held_folder(tmp_path):
        part = PartFile(tmp_path / "x", destination=tmp_path)
        assert part.path.exists()
    assert everything(tmp_path) == set()


def test_many_files_at_once(tmp_path: Path) -> None:
    contents = [(tmp_path / "deep" / str(number) / "x", bytes([number]) * number) for number in range(150)]
    with held_folder(tmp_path):
        written = dict(write_files(iter(contents), destination=tmp_path))
    for path, content in contents:
        assert path.read_bytes() == content
        assert written[path] == digest_of(content) == file_digest(path)
    assert not (tmp_path / STAGING).exists()


def test_a_disk_that_is_full_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with (
        held_folder(tmp_path),
        pytest.raises(StorageError, match=r"cannot write .*/3: No space .*\(the disk at /\S* has"),
    ):
        list(write_files(((tmp_path / str(number), b"x") for number in (3, 4, 5)), destination=tmp_path))
    assert everything(tmp_path) == set()


def test_names_of_any_length(tmp_path: Path) -> None:
    name = "ä" * 125 + ".html"
    write_bytes(tmp_path / name, b"x")
    write_bytes(tmp_path / name, b"y")
    assert (tmp_path / name).read_bytes() == b"y"
    with pytest.raises(StorageError, match="File name too long"):
        write_bytes(tmp_path / f"{name}{name}", b"x")
    assert everything(tmp_path) == {name}


def test_a_file_without_locks_is_abandoned_when_it_is_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("blemish.core.locks.try_lock", lambda _: None)
    path = tmp_path / f".x.{16 * '0'}.part"
    path.touch()
    assert not is_abandoned(path)
    os.utime(path, (0, 0))
    assert is_abandoned(path)
    remove_abandoned(part_files(tmp_path))
    assert not path.exists()


# Links


@pytest.fixture
def thesis(tmp_path: Path) -> Path:
    (tmp_path / "thesis" / "chapters").mkdir(parents=True)
    for name in ("one.tex", f".one.tex.{16 * '0'}.part", "chapters/two.tex"):
        (tmp_path / "thesis" / name).write_text("years of work")
    return tmp_path / "thesis"


@pytest.mark.parametrize("where", [STAGING, "unfinished", "records/deep/link", f".x.{16 * '0'}.part"])
@pytest.mark.parametrize("target", ["thesis", "thesis/one.tex", "nowhere"])
def test_folders_with_links_out_of_them_are_refused(tmp_path: Path, thesis: Path, where: str, target: str) -> None:
    link = tmp_path / "out" / where
    link.parent.mkdir(parents=True)
    link.symlink_to(tmp_path / target)
    before = everything(thesis)
    with pytest.raises(InputError, match=f"{link.name} is a link to .*{target}"), held_folder(tmp_path / "out"):
        pass
    assert everything(thesis) == before


def test_links_that_are_fine(tmp_path: Path) -> None:
    """The folder itself, a file in it, and what is not a part of the results."""
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to("real")
    (tmp_path / "out" / "a").touch()
    (tmp_path / "out" / "b").symlink_to("a")
    with held_folder(tmp_path / "out"):
        pass
    (tmp_path / "out" / "data").symlink_to(tmp_path)
    with held_folder(tmp_path / "out", names={"fog"}):
        pass
    with pytest.raises(InputError, match="data is a link"), held_folder(tmp_path / "out"):
        pass


def test_a_link_to_a_folder_inside_is_refused(tmp_path: Path) -> None:
    """What stands in the staging folder is removed."""
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "x").touch()
    (tmp_path / STAGING).symlink_to("records")
    with pytest.raises(InputError, match="is a link to"), held_folder(tmp_path):
        pass
    assert (tmp_path / "records" / "x").exists()


def test_links_among_left_overs_are_removed_and_not_followed(tmp_path: Path, thesis: Path) -> None:
    """Links that appear after a folder was looked at."""
    out = tmp_path / "out"
    with held_folder(out):
        (out / STAGING / "deep").mkdir()
        for link in (out / STAGING / f"{16 * '0'}.part", out / STAGING / "x", out / STAGING / "deep" / "y"):
            link.symlink_to(thesis)
    assert everything(out) == set()
    assert everything(thesis) == {"one.tex", f".one.tex.{16 * '0'}.part", "chapters", "chapters/two.tex"}


def test_locks_are_not_written_through_links(tmp_path: Path, thesis: Path) -> None:
    from blemish.core.locks import locked

    (tmp_path / "lock").symlink_to(thesis / "one.tex")
    with pytest.raises(StorageError, match="cannot write to"), locked(tmp_path / "lock", tmp_path):
        pass
    assert (thesis / "one.tex").read_text() == "years of work"
