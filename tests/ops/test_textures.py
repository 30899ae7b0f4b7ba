"""Frost textures: where they are looked up, what they are called, how they are scaled and cut."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

import blemish
from blemish.ops import textures
from blemish.ops.textures import FROST_VARIABLE, PROCEDURAL, Textures, cut, frost_kind, frost_textures
from blemish.rng import Words, as_ids

CPU = torch.device("cpu")
NAMES = ["frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg"]
SIZES = [(40, 30), (25, 70), (33, 33), (64, 28), (30, 45)]


@pytest.fixture(autouse=True)
def _nothing_remembered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No directory named, and the installed distribution looked up anew."""
    monkeypatch.delenv(FROST_VARIABLE, raising=False)
    textures._installed.cache_clear()
    yield
    textures._installed.cache_clear()


def draw_pictures(folder: Path, seed: int = 0) -> Path:
    """Five noisy pictures of different sizes."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    for name, size in zip(NAMES, SIZES, strict=True):
        Image.fromarray(rng.integers(0, 256, (*size, 3), dtype=np.uint8)).save(folder / name)
    return folder


def pixels(path: Path) -> NDArray[np.uint8]:
    """(3, H, W)."""
    with Image.open(path) as picture:
        return np.array(picture.convert("RGB")).transpose(2, 0, 1)


def digest(folder: Path) -> str:
    return hashlib.blake2b(b"".join((folder / name).read_bytes() for name in NAMES), digest_size=8).hexdigest()


def assert_pixels_of(folder: Path) -> None:
    """The textures in use are the pictures in a folder."""
    found = frost_textures(1.0, 8, 8, CPU)
    assert found.sizes == SIZES
    for sheet, name, (height, width) in zip(found.sheets, NAMES, SIZES, strict=True):
        np.testing.assert_array_equal(sheet[:, :height, :width].numpy(), pixels(folder / name))


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
def _not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def distribution(name: str) -> Any:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr("blemish.ops.textures.metadata.distribution", distribution)


@pytest.fixture
def reference() -> Path:
    """The folder of the photographs, if a real imagecorruptions is installed."""
    folder = textures._installed()
    if folder is None:
        pytest.skip("the reference's frost photographs are not installed (pip install --no-deps imagecorruptions)")
    return folder


class TestLookup:
    def test_the_variable_comes_first(self, install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        install()
        mine = draw_pictures(tmp_path / "mine", seed=1)
        monkeypatch.setenv(FROST_VARIABLE, str(mine))
        assert frost_kind() == f"custom-{digest(mine)}"
        assert_pixels_of(mine)

    def test_then_the_installed_distribution_which_is_not_imported(self, install: Install) -> None:
        folder = install()
        assert frost_kind() == f"custom-{digest(folder)}"
        assert_pixels_of(folder)
        assert "imagecorruptions" not in sys.modules

    def test_an_empty_variable_is_none(self, install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = install()
        monkeypatch.setenv(FROST_VARIABLE, "")
        assert_pixels_of(folder)

    @pytest.mark.usefixtures("_not_installed")
    def test_then_our_own(self) -> None:
        assert frost_kind() == "procedural"
        assert frost_textures(1.0, 8, 8, CPU).sizes == [(512, 512)] * 5

    def test_the_word_procedural_asks_for_our_own(self, install: Install, monkeypatch: pytest.MonkeyPatch) -> None:
        install()
        monkeypatch.setenv(FROST_VARIABLE, PROCEDURAL)
        assert frost_kind() == "procedural"
        assert frost_textures(1.0, 8, 8, CPU).sizes == [(512, 512)] * 5

    @pytest.mark.parametrize("broken", [{"missing": "frost1.png"}, {"missing": "frost5.jpg"}, {"record": False}])
    def test_an_incomplete_distribution_does_not_count(self, install: Install, broken: dict[str, Any]) -> None:
        install(**broken)
        assert frost_kind() == "procedural"

    def test_the_variable_may_change(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for seed in (1, 2, 1):
            folder = draw_pictures(tmp_path / str(seed), seed)
            monkeypatch.setenv(FROST_VARIABLE, str(folder))
            assert frost_kind() == f"custom-{digest(folder)}"
            assert_pixels_of(folder)

    def test_files_that_change_change_pixels_and_name(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(FROST_VARIABLE, str(draw_pictures(tmp_path, seed=1)))
        assert_pixels_of(tmp_path)
        draw_pictures(tmp_path, seed=2)
        assert frost_kind() == f"custom-{digest(tmp_path)}"
        assert_pixels_of(tmp_path)

    def test_the_reference_is_known_wherever_it_lies(
        self, reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert frost_kind() == "reference"
        for name in NAMES:
            (tmp_path / name).write_bytes((reference / name).read_bytes())
        monkeypatch.setenv(FROST_VARIABLE, str(tmp_path))
        assert frost_kind() == "reference"
        with (tmp_path / NAMES[2]).open("ab") as file:
            file.write(b"\0")
        assert frost_kind() == f"custom-{digest(tmp_path)}"

    def test_pictures_of_any_mode_become_rgb(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        draw_pictures(tmp_path)
        for name, mode in (("frost1.png", "L"), ("frost2.png", "RGBA"), ("frost3.png", "P")):
            with Image.open(tmp_path / name) as picture:
                other = picture.convert(mode)
            other.save(tmp_path / name)
        monkeypatch.setenv(FROST_VARIABLE, str(tmp_path))
        assert_pixels_of(tmp_path)


class TestErrors:
    @pytest.mark.parametrize("name", NAMES)
    def test_a_missing_file_is_named(self, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        draw_pictures(tmp_path)
        (tmp_path / name).unlink()
        monkeypatch.setenv(FROST_VARIABLE, str(tmp_path))
        for call in (frost_kind, lambda: frost_textures(1.0, 8, 8, CPU)):
            with pytest.raises(blemish.InputError) as error:
                call()
            message = str(error.value)
            assert str(tmp_path / name) in message.split(";")[0]
            assert all(expected in message for expected in NAMES)
            assert FROST_VARIABLE in message

    def test_a_missing_folder_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(FROST_VARIABLE, str(tmp_path / "nowhere"))
        with pytest.raises(blemish.InputError, match="nowhere"):
            frost_kind()

    def test_a_file_that_is_no_picture_is_named(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        draw_pictures(tmp_path)
        (tmp_path / "frost4.jpg").write_bytes(b"not a picture")
        monkeypatch.setenv(FROST_VARIABLE, str(tmp_path))
        with pytest.raises(blemish.InputError, match=r"no readable frost texture .*frost4\.jpg"):
            frost_kind()

    def test_the_corruption_says_so_too(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv(FROST_VARIABLE, str(tmp_path))
        with pytest.raises(blemish.InputError, match=r"frost1\.png"):
            blemish.catalog["frost"](torch.zeros(1, 3, 32, 32, dtype=torch.uint8), severity=1)


def bilinear(image: NDArray[np.uint8], factor: float) -> NDArray[np.float64]:
    """Output pixel i samples at (i + ½)/factor − ½, no further out than the edges; as many as fit."""
    image = image.astype(np.float64)
    for axis in (1, 2):
        size = image.shape[axis]
        place = np.clip((np.arange(int(size * factor)) + 0.5) / factor - 0.5, 0, size - 1)
        low = np.floor(place).astype(int)
        high = np.minimum(low + 1, size - 1)
        share = np.expand_dims(place - low, [i for i in range(3) if i != axis])
        image = image.take(low, axis) * (1 - share) + image.take(high, axis) * share
    return image


class TestScaling:
    @pytest.mark.parametrize(
        ("scale", "height", "width"),
        [(1.0, 8, 8), (0.5, 8, 8), (0.5, 12, 10), (0.2, 32, 32), (1.0, 20, 50), (1.0, 90, 20), (1.0, 100, 75)],
    )
    def test_textures_are_scaled_and_enlarged_beyond_the_image(
        self, scale: float, height: int, width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Each by the preset's scale, or by what it takes to be two pixels larger than the image both ways."""
        monkeypatch.setenv(FROST_VARIABLE, str(draw_pictures(tmp_path)))
        found = frost_textures(scale, height, width, CPU)
        assert found.sheets.dtype == torch.uint8
        assert found.sheets.shape[:2] == (5, 3)
        for sheet, name, size in zip(found.sheets, NAMES, found.sizes, strict=True):
            source = pixels(tmp_path / name)
            factor = max(scale, (height + 2) / source.shape[1], (width + 2) / source.shape[2])
            expected = bilinear(source, factor)
            assert size == expected.shape[1:]
            assert size[0] > height
            assert size[1] > width
            # Rounded to the nearest level, with some room for float32.
            difference = sheet[:, : size[0], : size[1]].numpy() - expected
            assert abs(difference).max() <= 0.5 + 1e-3
            assert not sheet[:, size[0] :].any()
            assert not sheet[:, :, size[1] :].any()

    @pytest.mark.usefixtures("_not_installed")
    def test_our_own_are_enlarged_too(self) -> None:
        assert frost_textures(1.0, 510, 300, CPU).sizes == [(512, 512)] * 5
        assert frost_textures(1.0, 300, 766, CPU).sizes == [(768, 768)] * 5
        assert frost_textures(0.3, 64, 64, CPU).sizes == [(153, 153)] * 5

    @pytest.mark.parametrize("size", [(8, 8), (40, 40), (63, 20)])
    def test_crops_stay_inside_and_reach_both_ends(
        self, size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The reference never uses the last possible row and column."""
        monkeypatch.setenv(FROST_VARIABLE, str(draw_pictures(tmp_path)))
        frost = blemish.catalog["frost"]
        count = 4000
        params = frost.table.at([3.0] * count, "imagenet")
        crop = frost.draw(blemish.Shape(3, *size), params, Words(0, as_ids(range(count)), "frost"))
        used = frost_textures(1.0, *size, CPU)
        for texture, (height, width) in enumerate(used.sizes):
            chosen = crop.texture == texture
            assert chosen.sum() > 600
            for start, room in ((crop.top[chosen], height - size[0]), (crop.left[chosen], width - size[1])):
                assert (start.min(), start.max()) == (0, room - 1)


def texture_set() -> Textures:
    sheets = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (5, 3, 50, 60), dtype=np.uint8))
    return Textures(sheets, [(50, 60)] * 5)


class _Elsewhere(str):
    """A device that torch takes for the CPU, and that says it is another."""

    type = "cuda"
    __slots__ = ()


class _Sheets:
    """Sheets on such a device."""

    device = _Elsewhere("cpu")

    def __init__(self, sheets: Tensor) -> None:
        self.sheets = sheets

    def __getitem__(self, index: Any) -> Tensor:
        return self.sheets[index]


class TestCut:
    chosen, top, left = torch.tensor([[4, 0, 2, 2, 1], [0, 41, 7, 8, 41], [3, 0, 11, 43, 43]])

    def test_crops_are_slices(self) -> None:
        used = texture_set()
        found = cut(used, self.chosen, self.top, self.left, 9, 17)
        assert found.shape == (5, 3, 9, 17)
        for b, c, y, x in np.ndindex(5, 3, 9, 17):
            assert found[b, c, y, x] == used.sheets[self.chosen[b], c, self.top[b] + y, self.left[b] + x]

    def test_the_gather_of_a_gpu_gives_the_same(self) -> None:
        used = texture_set()
        expected = cut(used, self.chosen, self.top, self.left, 9, 17)
        elsewhere: Any = Textures(_Sheets(used.sheets), used.sizes)  # type: ignore[arg-type]
        assert torch.equal(cut(elsewhere, self.chosen, self.top, self.left, 9, 17), expected)

    def test_on_a_gpu(self, device: torch.device) -> None:
        used = texture_set()
        there = cut(Textures(used.sheets.to(device), used.sizes), self.chosen, self.top, self.left, 9, 17)
        assert torch.equal(there.cpu(), cut(used, self.chosen, self.top, self.left, 9, 17))


@pytest.mark.usefixtures("_not_installed")
def test_our_own_textures_are_five_different_sheets_of_bluish_ice() -> None:
    sheets = frost_textures(1.0, 8, 8, CPU).sheets.double()
    red, green, blue = sheets.mean((0, 2, 3)).tolist()
    assert red < green < blue
    assert (sheets.std((1, 2, 3)) > 20).all()
    for i in range(5):
        for j in range(i):
            assert (sheets[i] - sheets[j]).abs().mean() > 20
