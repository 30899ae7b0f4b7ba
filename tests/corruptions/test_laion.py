"""LAION-C's distortions against recordings of its own generator, whose draws are given to ours."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

import blemish
from blemish.core.errors import InputError
from blemish.corruptions.draws import Field
from blemish.corruptions.laion import LAION_C, pieces
from blemish.corruptions.laion.patterns import glitch_of
from blemish.ops.tiles import DRAWN_DIGEST, TileBank, _digest, _drawn

UNITS = {corruption.name.removeprefix("laion:"): corruption for corruption in LAION_C}
SEVERITIES = (1, 3, 5)


class Recorded:
    """The tiles with which the recordings were made, in place of a bank."""

    def __init__(self, arrays: dict[str, np.ndarray]) -> None:
        self.arrays = arrays

    def at(self, side: int, device: torch.device) -> Tensor:
        return torch.from_numpy(self.arrays[f"bank|{side}"]).permute(0, 3, 1, 2).contiguous().to(device)

    common = at


@pytest.fixture(scope="module")
def recorded(golden: Path) -> dict[str, np.ndarray]:
    with np.load(golden / "laion_c_224.npz") as arrays:
        return {name: arrays[name] for name in arrays.files}


def draw_of(name: str, severity: int, arrays: dict[str, np.ndarray]) -> object:
    key = f"{name}|{severity}|0|"
    if name == "luminance_checkerboard":
        params = UNITS[name].table.at([severity], "any")
        low, high = params["low"].item(), params["high"].item()
        uniform = (torch.from_numpy(arrays[key + "draw0_uniform"]) - low) / (high - low)
        return Field(uniform.to(torch.float32)[None, None])
    if name == "geometric_shapes":
        shapes = torch.from_numpy(arrays[key + "draw0_shapes"].astype(np.int64))[None]
        kind, x, y, size = shapes[..., :4].unbind(-1)
        return pieces.Shapes(kind, x, y, size - 6, shapes[..., 4:7], shapes[..., 7])
    if name == "stickers":
        tile, place = (
            torch.from_numpy(arrays[key + draw].astype(np.int64))[None] for draw in ("draw0_tile", "draw1_row_column")
        )
        return pieces.Pastes(tile, *place.unbind(-1))
    return ()


def differing(name: str, severity: int, arrays: dict[str, np.ndarray]) -> float:
    """The share of values that are not the reference's."""
    unit = UNITS[name]
    images = torch.from_numpy(arrays["image|0"]).permute(2, 0, 1)[None]
    params, draw = unit.table.at([severity], "any"), draw_of(name, severity, arrays)
    if name in ("mosaic", "stickers"):
        apply = {"mosaic": pieces._Mosaic, "stickers": pieces._Stickers}[name](Recorded(arrays))  # type: ignore[arg-type]
        result = apply(images, params, draw)  # type: ignore[arg-type]
    else:
        result = unit.render(images, params, draw)
    return float((result[0].permute(1, 2, 0).numpy() != arrays[f"{name}|{severity}|0|out"]).mean())


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("name", ["glitched", "vertical_lines", "luminance_checkerboard", "stickers"])
def test_exactly_the_references_pixels(name: str, severity: int, recorded: dict[str, np.ndarray]) -> None:
    assert differing(name, severity, recorded) == 0


@pytest.mark.parametrize("severity", SEVERITIES)
@pytest.mark.parametrize("name", ["mosaic", "geometric_shapes"])
def test_nearly_the_references_pixels(name: str, severity: int, recorded: dict[str, np.ndarray]) -> None:
    """Colours halfway between two tiles, and stars that reach beyond the first row or column, are rounded elsewhere."""
    assert differing(name, severity, recorded) < 0.001


def test_a_glitch_comes_gradually() -> None:
    """Below severity 1, where nothing is published, every other row darkens."""
    images = torch.full((1, 3, 32, 32), 200, dtype=torch.uint8)
    dark, light = UNITS["glitched"](images, severity=0.25)[0, 1, :2, 0].tolist()
    assert (dark, light) == (150, 200)
    assert UNITS["glitched"](images, severity=1)[:, :, ::2].max() == 0


def test_the_published_glitch() -> None:
    """The first and last bands at level 4 (severity 2), from the facts of the reference's generator at 224 pixels."""
    glitch = glitch_of(4, 224, 224)
    assert (len(glitch.bands), glitch.bands[0], glitch.bands[-1]) == (8, (-18, 145, 200), (-6, 94, 119))
    assert glitch[1:] == (0, -6, 0)


def test_drawn_tiles_are_known_by_their_digest() -> None:
    assert _digest(_drawn()) == DRAWN_DIGEST
    means = _drawn().to(torch.float32).mean((2, 3))
    assert len(means.round().unique(dim=0)) == len(means)  # a colour of its own for each


def pictures(folder: Path) -> None:
    folder.mkdir()
    for number, colour in enumerate(["red", "lime", "blue", "white", "black"]):
        Image.new("RGB", (60 + number, 50), colour).save(folder / f"{colour}.png")


def test_tiles_of_ones_own(tmp_path: Path) -> None:
    pictures(tmp_path / "tiles")
    catalog = blemish.catalog.with_tiles(tmp_path / "tiles")
    images = torch.full((1, 3, 32, 32), 200, dtype=torch.uint8)
    images[:, 0] = 255
    out = catalog["laion:mosaic"](images, severity=3)
    assert set(out.unique().tolist()) == {255}  # (255, 200, 200) is nearest to white
    assert not torch.equal(out, blemish.catalog["laion:mosaic"](images, severity=3))
    assert blemish.catalog["laion:mosaic"].files.kind == "drawn"  # type: ignore[union-attr]
    kind = catalog["laion:stickers"].files.kind  # type: ignore[union-attr]
    assert kind == f"custom-{TileBank.of(tmp_path / 'tiles').digest}"


def test_other_pictures_in_the_folder_are_refused(tmp_path: Path) -> None:
    pictures(tmp_path / "tiles")
    bank = TileBank.of(tmp_path / "tiles")
    moved = TileBank(tmp_path / "others", bank.digest)
    (tmp_path / "others").mkdir()
    Image.new("RGB", (50, 50), "teal").save(tmp_path / "others" / "a.png")
    with pytest.raises(InputError, match=f"expected {bank.digest}"):
        moved.check()


def test_folders_without_pictures(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no pictures in it"):
        TileBank.of(tmp_path)
    (tmp_path / "a.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match=r"a\.png: not a readable picture"):
        TileBank.of(tmp_path)


def test_stronger_ones_add_to_weaker_ones() -> None:
    green = torch.tensor([0, 255, 0], dtype=torch.uint8).view(1, 3, 1, 1)
    images = green.expand(1, 3, 224, 224).contiguous()
    for name in ("geometric_shapes", "stickers"):
        untouched = [(UNITS[name](images, severity=severity) == green).all(1) for severity in (1, 2, 5)]
        assert all((weaker | ~stronger).all() for weaker, stronger in itertools.pairwise(untouched))


@pytest.mark.parametrize("side", [32, 448])
def test_as_much_is_black_between_lines_at_any_size(side: int) -> None:
    """A white image's lines stand upright, one pixel wide: 60 of 224 columns at severity 5, and 178 at severity 2."""
    images = torch.full((1, 3, side, side), 255, dtype=torch.uint8)
    for severity, lines in ((2, 178), (5, 60)):
        columns = (UNITS["vertical_lines"](images, severity=severity) > 0).all(1)[0, 0]
        assert int(columns.sum()) == round(lines * side / 224)


@pytest.mark.parametrize("name", ["laion:stickers", "laion:geometric_shapes"])
def test_a_severity_too_small_for_a_single_piece(name: str) -> None:
    """Alone and beside another image: nothing is pasted."""
    image = torch.full((1, 3, 64, 64), 90, dtype=torch.uint8)
    corruption = blemish.catalog[name]
    assert torch.equal(corruption(image, severity=1e-3), image)
    beside = corruption(image.expand(3, -1, -1, -1), severity=[1e-3, 0, 3])
    assert torch.equal(beside[:2], image.expand(2, -1, -1, -1))
    assert not torch.equal(beside[2:], image)
