"""MedMNIST-C's corruptions against recordings of its own generator, whose draws are given to ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import blemish
from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.draws import Field
from blemish.corruptions.imagenet_c.blur import Angle
from blemish.corruptions.med import MED, artefacts
from blemish.corruptions.med.characters import Words
from blemish.corruptions.med.published import data_sets
from blemish.corruptions.severity import DATA_SETS
from blemish.ops.blots import blot_masks
from blemish.ops.raster import pixel_table
from conftest import SHARED
from pictures import pictures

UNITS = {corruption.name.removeprefix("med:"): corruption for corruption in MED}
FILE = SHARED / "golden" / "medmnist_c_224.npz"
Recording = Mapping[str, NDArray[Any]]


def load() -> Recording:
    with np.load(FILE) as arrays:
        return {name: arrays[name] for name in arrays.files}


CASES = sorted({tuple(key.split("|")[:3]) for key in load() if key.endswith("|out")}) if FILE.exists() else []

# By a NumPy rewrite of the reference's formulas these are exact; elsewhere float32 and float64 may round apart.
EXACT = {
    *("brightness_up", "brightness_down", "contrast_up", "contrast_down", "gamma_corr_up", "gamma_corr_down"),
    *("stain_deposit", "bubble", "black_corner"),
}


@pytest.fixture(scope="module")
def recorded(golden: Path) -> Recording:
    assert golden == FILE.parent
    return load()


def whole(values: NDArray[Any]) -> torch.Tensor:
    """With the batch in front, int64."""
    return torch.from_numpy(np.array(values).astype(np.int64))[None]


def words_of(numbers: list[int]) -> Words:
    """Words, then for each its letters' number, size, the letters, x, y and colour."""
    count, rest = numbers[0], numbers[1:]
    rows: list[list[int]] = []
    text = torch.zeros(1, count, 10, dtype=torch.int64)
    for word in range(count):
        length = rest[0]
        text[0, word, :length] = torch.tensor(rest[2 : 2 + length])
        rows.append([*rest[:2], *rest[2 + length : 7 + length]])
        rest = rest[7 + length :]
    assert not rest
    table = torch.tensor(rows)[None]
    return Words(
        torch.tensor([count]), table[..., 0], table[..., 1], text, table[..., 2], table[..., 3], table[..., 4:]
    )


def rendered(data_set: str, name: str, severity: str, image: str, arrays: Recording) -> NDArray[np.int64]:
    """What ours makes of the recorded draws."""
    key = f"{data_set}/{name}|{severity}|{image}|"
    pixels = arrays[f"image|{image}"]
    levels = torch.from_numpy(pixels if pixels.ndim == 3 else pixels[..., None]).permute(2, 0, 1)[None].contiguous()
    unit = UNITS[name]
    params = unit.table.at([float(severity)], data_set)
    draw: Any = ()
    if name == "stain_deposit":
        places = whole(arrays[key + "draw1_index_x_y"])
        masks = arrays[key + "draw2_masks"].astype(bool)
        assert masks.shape[-1] == int(params["side"])
        number = torch.tensor([len(masks)])
        stains = artefacts.Stains(number, torch.arange(len(masks))[None], places[..., 1], places[..., 2])
        out = artefacts.stained(levels, stains, pixel_table([(mask, 0) for mask in masks], levels.device))
        return out[0].permute(1, 2, 0).numpy().astype(int)
    if name == "bubble":
        radius, x, y = whole(arrays[key + "draw0_radius_x_y"]).unbind(-1)
        draw = artefacts.Bubbles(torch.tensor([radius.shape[1]]), radius, x, y)
    elif name == "characters":
        draw = words_of(arrays[key + "draw0_integers"].tolist())
    elif name == "motion_blur":
        draw = Angle(torch.as_tensor(arrays[key + "draw0_uniform"]).view(1))
    elif name == "gaussian_noise":
        noise = torch.from_numpy(arrays[key + "draw0_normal"] / float(params["sigma"]))
        draw = Field(noise.float().permute(2, 0, 1)[None])
    out = unit.render(levels, params, draw)[0].permute(1, 2, 0).numpy().astype(int)
    return out[..., 0] if pixels.ndim == 2 else out


def difference(data_set: str, name: str, severity: str, image: str, arrays: Recording) -> NDArray[np.int64]:
    """How many levels apart our values are from the reference's."""
    expected = arrays[f"{data_set}/{name}|{severity}|{image}|out"].astype(int)
    return np.abs(rendered(data_set, name, severity, image, arrays) - expected)


@pytest.mark.parametrize(("unit", "severity", "image"), CASES)
def test_the_references_pixels(unit: str, severity: str, image: str, recorded: Recording) -> None:
    data_set, name = unit.split("/")
    if name == "characters":
        pytest.skip("letters are drawn with a font of our own; see the next test")
    found = difference(data_set, name, severity, image, recorded)
    if name in EXACT:
        assert found.max() == 0
    else:
        assert (found <= 1).mean() >= 0.995
        assert (found == 0).mean() >= 0.995


@pytest.mark.parametrize("severity", ["1", "3", "5"])
def test_letters_stand_where_the_references_do(severity: str, recorded: Recording) -> None:
    """Each changed pixel has one of the reference's within two pixels, and the other way round; as much ink in all."""
    clean = recorded["image|0"].astype(int)
    out = rendered("dermamnist", "characters", severity, "0", recorded)
    theirs = recorded[f"dermamnist/characters|{severity}|0|out"].astype(int)
    ours, reference = (np.abs(image - clean).max(2) > 12 for image in (out, theirs))
    for here, there in ((ours, reference), (reference, ours)):
        near = np.lib.stride_tricks.sliding_window_view(np.pad(there, 2), (5, 5)).any((2, 3))
        assert near[here].mean() > 0.97
    ink, wanted = (np.abs(image - clean).sum() for image in (out, theirs))
    assert ink == pytest.approx(wanted, rel=0.3)


def test_settings_are_the_published_ones() -> None:
    """Against the facts that were read from the reference, where they are at hand."""
    path = SHARED / "facts" / "medmnist_c_parameters.json"
    if not path.exists():
        pytest.skip("the facts of MedMNIST-C are not beside this checkout")
    facts = json.loads(path.read_text())["datasets"]
    assert tuple(facts) == DATA_SETS == tuple(data_sets())
    assert sum(len(entry["corruptions"]) for entry in facts.values()) == 131
    renamed = {"kernel_size": "size", "max_marks": "marks", "max_bubbles": "most", "max_words": "words"}
    renamed |= {"max_letters": "letters", "radius_factor": "factor"}
    for data_set, entry in facts.items():
        assert (entry["classes"], entry["test_images"]) == tuple(
            data_sets()[data_set][key] for key in ("classes", "test_images")
        )
        for name, settings in entry["corruptions"].items():
            found = UNITS[name].table.at([1.0, 2.0, 3.0, 4.0, 5.0], data_set)
            for parameter, values in settings.items():
                if name == "zoom_blur":
                    continue
                if parameter == "max_font_scale":
                    parameter, values = "size", [int(100 * value + 1e-9) for value in values]
                if name == "bubble" and parameter == "max_radius":
                    parameter = "radius"
                assert found[renamed.get(parameter, parameter)].tolist() == pytest.approx(values), (data_set, name)


def test_zoom_factors_are_the_published_ones() -> None:
    """How many factors there are, and the last: 12 up to 1.11, 16 to 1.15, 11 to 1.2, 13 to 1.24, 11 to 1.3."""
    found = UNITS["zoom_blur"].table.at([1.0, 2.0, 3.0, 4.0, 5.0], "dermamnist")
    factors = [
        np.arange(1, stop, step) for stop, step in zip(*(found[k].tolist() for k in ("stop", "step")), strict=True)
    ]
    assert [len(own) for own in factors] == [12, 16, 11, 13, 11]
    assert [round(own[-1], 6) for own in factors] == [1.11, 1.15, 1.2, 1.24, 1.3]


def test_presets_are_data_sets() -> None:
    images = pictures(2, 3, 64, 64)
    unit = UNITS["brightness_up"]
    by_default = unit(images, severity=3)
    assert torch.equal(by_default, unit(images, severity=3, preset="pathmnist"))
    assert torch.equal(by_default, unit(images, severity=3, preset="imagenet"))
    assert not torch.equal(by_default, unit(images, severity=3, preset="breastmnist"))
    with pytest.raises(blemish.InputError, match="no settings for 'octmnist'; expected one of pathmnist, bloodmnist"):
        UNITS["saturate"](images, severity=3, preset="octmnist")
    with pytest.raises(blemish.InputError, match="unknown preset 'cats'"):
        unit(images, severity=3, preset="cats")
    with pytest.raises(blemish.InputError, match="no settings for 'pathmnist'; expected one of imagenet"):
        blemish.catalog["fog"](images, severity=3, preset="pathmnist")
    sensor = blemish.catalog["sensor:color_quant"]
    assert torch.equal(sensor(images, severity=3, preset="pathmnist"), sensor(images, severity=3))


def test_noise_of_gray_images_is_averaged_over_channels() -> None:
    """Pillow's weights .299, .587, .114: the deviation shrinks to √(Σ w²) = .67 of the parameter."""
    gray = torch.full((4, 1, 128, 128), 128, dtype=torch.uint8)
    out = UNITS["gaussian_noise"](gray, severity=3, preset="chestmnist").double() / 255
    assert float(out.std()) == pytest.approx(0.12 * np.sqrt(0.299**2 + 0.587**2 + 0.114**2), rel=0.02)


@pytest.mark.parametrize("name", ["jpeg_compression", "pixelate", "defocus_blur", "motion_blur", "zoom_blur"])
def test_gray_images_are_colour_images_of_equal_channels(name: str) -> None:
    gray = pictures(2, 1, 64, 64)
    colour = UNITS[name](gray.expand(-1, 3, -1, -1), severity=3)
    assert torch.equal(UNITS[name](gray, severity=3).expand(-1, 3, -1, -1), colour)


def test_black_corners_are_milder_at_5_than_at_4() -> None:
    images = torch.full((1, 3, 64, 64), 200, dtype=torch.uint8)
    black = [float((UNITS["black_corner"](images, severity=s) == 0).double().mean()) for s in (0.01, 4, 5)]
    assert 0 == black[0] < black[2] < black[1]


def test_black_corners_come_gradually_on_oblong_images() -> None:
    """The circle of severity 0 reaches beyond the corners of any image, and that of 1 is the published one."""
    images = torch.full((1, 3, 64, 160), 200, dtype=torch.uint8)
    black = [float((UNITS["black_corner"](images, severity=s) == 0).double().mean()) for s in (0.1, 0.4, 0.7, 1)]
    assert 0 == black[0] < black[1] < black[2] < black[3] < 0.7


@pytest.mark.parametrize(("side", "low", "high"), [(24, 0.45, 0.8), (32, 0.45, 0.8), (7, 0.4, 0.85)])
def test_blots_are_round_and_ragged(side: int, low: float, high: float) -> None:
    """Their published shares of the square are .48 to .78 at 24 pixels, and .47 to .61 at 32."""
    masks = blot_masks(side)
    assert masks.shape == (10, side, side)
    shares = masks.mean((1, 2))
    assert low < shares.min() < shares.max() < high
    assert masks[:, side // 2, side // 2].all()
    assert len({mask.tobytes() for mask in masks}) == 10


def test_draws_are_in_their_ranges() -> None:
    """MedMNIST-C's own: 1 to M stains, 7 to M bubbles of radius 3 to M, 1 to M words of 3 to M letters."""
    ids, shape = torch.arange(4000), Shape(3, 224, 224)
    rng = CounterRng(0, ids, "test")

    def drawn(name: str, data_set: str, severity: float) -> Any:
        params = UNITS[name].table.at([severity] * len(ids), data_set)
        return UNITS[name].draw(shape, params, rng)

    stains = drawn("stain_deposit", "pathmnist", 5.0)
    assert set(stains.number.tolist()) == {1, 2, 3, 4, 5}
    assert (stains.x.min(), stains.x.max()) == (10, 224 - 32 - 10)
    assert set(drawn("stain_deposit", "pathmnist", 1.0).number.tolist()) == {1}
    bubbles = drawn("bubble", "bloodmnist", 4.0)
    assert set(bubbles.number.tolist()) == set(range(7, 13))
    assert set(bubbles.radius.unique().tolist()) == set(range(3, 13))
    assert ((bubbles.x >= bubbles.radius) & (bubbles.x <= 224 - bubbles.radius)).all()
    words = drawn("characters", "dermamnist", 5.0)
    assert set(words.number.tolist()) == set(range(1, 7))
    assert set(words.letters.unique().tolist()) == set(range(3, 11))
    assert set(words.size.unique().tolist()) == set(range(14, 19))
    assert (words.x >= 10).all()
    assert (words.x <= 224 - 8 * words.letters).all()
    assert (words.y.min(), words.y.max()) == (10, 214)
