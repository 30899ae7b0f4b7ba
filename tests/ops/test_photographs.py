"""The photographs of frost: where they are looked up, how they are known, and what is refused."""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import blemish
from blemish.ops import photographs, textures
from blemish.ops.photographs import MissingFrostError, Photographs, fetched_folder
from blemish.ops.textures import frost_textures
from frost_files import NAMES, SIZES, digest, draw_pictures

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A user who has fetched nothing, and installed distributions looked up anew."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sys, "platform", "linux")
    photographs._installed.cache_clear()
    textures._scaled.clear()
    yield
    photographs._installed.cache_clear()
    textures._scaled.clear()


def pretend_reference(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the pictures in a folder count as the reference's."""
    monkeypatch.setattr(photographs, "REFERENCE_DIGEST", digest(folder))


def assert_pixels_of(folder: Path, found: Photographs) -> None:
    textures = frost_textures(found, 1.0, 8, 8, CPU)
    assert textures.sizes == SIZES
    for sheet, name, (height, width) in zip(textures.sheets, NAMES, SIZES, strict=True):
        with Image.open(folder / name) as picture:
            expected = np.array(picture.convert("RGB")).transpose(2, 0, 1)
        np.testing.assert_array_equal(sheet[:, :height, :width].numpy(), expected)


Install = Callable[..., Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Puts a distribution called imagecorruptions in front of any other, as pip would."""

    def run(*, missing: str = "", record: bool = True) -> Path:
        site = tmp_path / "site"
        folder = draw_pictures(site / "imagecorruptions" / "frost", seed=7)
        (site / "imagecorruptions" / "__init__.py").write_text("raise RuntimeError('imported')")
        info = site / "imagecorruptions-99.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: imagecorruptions\nVersion: 99\n")
        if record:
            files = ["__init__.py", *(f"frost/{name}" for name in NAMES)]
            (info / "RECORD").write_text("".join(f"imagecorruptions/{file},,\n" for file in files))
        if missing:
            (folder / missing).unlink()
        monkeypatch.syspath_prepend(str(site))
        return folder

    return run


@pytest.fixture
def reference(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the reference's photographs, where they are."""
    monkeypatch.undo()
    try:
        return Photographs().find()[0]
    except MissingFrostError:
        pytest.skip("the reference's photographs of frost are not on this machine (blemish fetch-frost)")


class TestLookup:
    def test_fetched_ones_come_before_installed_ones(
        self, install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        installed = install()
        pretend_reference(installed, monkeypatch)
        assert Photographs().find()[0] == installed
        fetched = draw_pictures(tmp_path / "home" / "blemish" / "frost", seed=7)
        assert fetched == fetched_folder()
        assert Photographs().find()[0] == fetched
        assert "imagecorruptions" not in sys.modules

    def test_photographs_that_are_not_the_references_do_not_count(self, install: Install, tmp_path: Path) -> None:
        installed = install()
        fetched = draw_pictures(tmp_path / "home" / "blemish" / "frost", seed=1)
        with pytest.raises(MissingFrostError) as error:
            Photographs().find()
        assert f"{fetched} and {installed}" in str(error.value)

    @pytest.mark.parametrize("broken", [{"missing": "frost1.png"}, {"missing": "frost5.jpg"}, {"record": False}])
    def test_an_incomplete_distribution_does_not_count(
        self, install: Install, broken: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pretend_reference(draw_pictures(tmp_path / "same", seed=7), monkeypatch)
        installed = install(**broken)
        with pytest.raises(MissingFrostError) as error:
            Photographs().check()
        assert str(installed) not in str(error.value)

    @pytest.mark.parametrize("value", ["procedural", "FOLDER"])
    def test_no_variable_of_the_environment_decides_pixels(
        self, value: str, reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        images = torch.zeros(1, 3, 32, 32, dtype=torch.uint8)
        before = blemish.corrupt(images, "frost", severity=3)
        folder = draw_pictures(tmp_path / "mine")
        monkeypatch.setenv("BLEMISH_FROST_DIR", str(folder) if value == "FOLDER" else value)
        assert torch.equal(blemish.corrupt(images, "frost", severity=3), before)
        assert Photographs().find()[0] == reference

    def test_the_reference_is_known_wherever_it_lies(self, reference: Path, tmp_path: Path) -> None:
        for name in NAMES:
            (tmp_path / name).write_bytes((reference / name).read_bytes())
        assert Photographs.of(tmp_path).kind == "reference"
        with (tmp_path / NAMES[2]).open("ab") as file:
            file.write(b"\0")
        assert Photographs.of(tmp_path).kind == f"custom-{digest(tmp_path)}"

    def test_users_without_a_home(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("XDG_DATA_HOME")
        monkeypatch.setattr(os.path, "expanduser", lambda path: path)
        assert fetched_folder().is_relative_to(sys.prefix)

    def test_folders_of_other_systems(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "platform", "darwin")
        assert "Library" in fetched_folder().parts
        monkeypatch.setattr(sys, "platform", "win32")
        monkeypatch.setenv("LOCALAPPDATA", "/users/me/local")
        assert fetched_folder() == Path("/users/me/local/blemish/frost")

    def test_once_read_they_are_kept(self, install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
        """Their digest says what they are: files that vanish from then on change nothing, but for who asks for them."""
        installed = install()
        pretend_reference(installed, monkeypatch)
        before = frost_textures(Photographs(), 1.0, 8, 8, CPU)
        (installed / NAMES[0]).unlink()
        assert frost_textures(Photographs(), 1.0, 8, 8, CPU) is before
        with pytest.raises(MissingFrostError):
            Photographs().check()
        with pytest.raises(MissingFrostError):
            frost_textures(Photographs(), 1.0, 9, 9, CPU)


class TestNamedFolders:
    def test_pixels_and_kind(self, tmp_path: Path) -> None:
        for seed in (1, 2, 1):
            folder = draw_pictures(tmp_path / str(seed), seed)
            found = Photographs.of(folder)
            assert found.kind == f"custom-{digest(folder)}"
            assert_pixels_of(folder, found)

    def test_a_relative_folder_is_the_same_from_elsewhere(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        draw_pictures(tmp_path / "mine")
        monkeypatch.chdir(tmp_path)
        found = Photographs.of("mine")
        monkeypatch.chdir("/")
        assert_pixels_of(tmp_path / "mine", pickle.loads(pickle.dumps(found)))

    def test_files_that_change_are_refused(self, tmp_path: Path) -> None:
        """Also where they keep their size and time, as cp -p does."""
        found = Photographs.of(draw_pictures(tmp_path, seed=1))
        assert_pixels_of(tmp_path, found)
        file = tmp_path / NAMES[0]
        state, content = file.stat(), bytearray(file.read_bytes())
        content[-1] ^= 1
        file.write_bytes(content)
        os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
        with pytest.raises(blemish.InputError, match=f"digest {digest(tmp_path)}; expected {found.digest}"):
            frost_textures(found, 1.0, 8, 8, CPU)

    def test_pictures_of_any_mode_become_rgb(self, tmp_path: Path) -> None:
        draw_pictures(tmp_path)
        for name, mode in (("frost1.png", "L"), ("frost2.png", "RGBA"), ("frost3.png", "P")):
            with Image.open(tmp_path / name) as picture:
                other = picture.convert(mode)
            other.save(tmp_path / name)
        assert_pixels_of(tmp_path, Photographs.of(tmp_path))

    @pytest.mark.parametrize("name", NAMES)
    def test_a_missing_file_is_named(self, name: str, tmp_path: Path) -> None:
        found = Photographs.of(draw_pictures(tmp_path))
        (tmp_path / name).unlink()
        for call in (lambda: Photographs.of(tmp_path), found.check):
            with pytest.raises(blemish.InputError) as error:
                call()
            message = str(error.value)
            assert str(tmp_path / name) in message.split(";")[0]
            assert all(expected in message for expected in NAMES)

    def test_a_missing_folder_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(blemish.InputError, match="nowhere"):
            blemish.catalog.with_frost(tmp_path / "nowhere")

    def test_a_file_that_is_no_picture_is_named(self, tmp_path: Path) -> None:
        draw_pictures(tmp_path)
        (tmp_path / "frost4.jpg").write_bytes(b"not a picture")
        with pytest.raises(blemish.InputError, match=r"no readable photograph of frost .*frost4\.jpg"):
            Photographs.of(tmp_path)

    def test_a_pipe_is_not_waited_for(self, tmp_path: Path) -> None:
        draw_pictures(tmp_path)
        (tmp_path / "frost2.png").unlink()
        os.mkfifo(tmp_path / "frost2.png")
        with pytest.raises(blemish.InputError, match=r"frost2\.png"):
            Photographs.of(tmp_path)
