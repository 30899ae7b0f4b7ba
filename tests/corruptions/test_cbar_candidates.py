"""C̄'s candidates that were not chosen: against their descriptions, with the libraries that the authors used."""

from __future__ import annotations

import colorsys
import math

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image, ImageEnhance
from scipy import ndimage
from torch import Tensor

import blemish
from blemish.corruptions.cbar.candidates import CANDIDATES, colour, patterns, warps
from blemish.corruptions.draws import Field
from pictures import pictures

SIDE = 64


def rendered(name: str, images: Tensor, draw: object, severity: float = 3.0) -> NDArray[np.uint8]:
    """Our pixels of the first image, (H, W, C), from a given draw."""
    corruption = blemish.catalog[f"cbar:{name}"]
    params = corruption.table.at([severity], "imagenet")
    return corruption.render(images[:1], params, draw)[0].permute(1, 2, 0).numpy()


def parameter(name: str, key: str, severity: float = 3.0) -> float:
    return float(blemish.catalog[f"cbar:{name}"].table.at([severity], "imagenet")[key])


def photo(images: Tensor) -> NDArray[np.uint8]:
    return images[0].permute(1, 2, 0).numpy()


def close(ours: NDArray[np.uint8], expected: NDArray[np.floating | np.integer], *, share: float = 0.995) -> None:
    """Within one level everywhere, and equal nearly everywhere."""
    difference = np.abs(ours.astype(float) - np.floor(np.asarray(expected, dtype=float) + 1e-6))
    assert difference.max() <= 1
    assert (difference == 0).mean() >= share


def test_all_are_marked() -> None:
    assert len(CANDIDATES) == 15
    assert all("not chosen" in corruption.source for corruption in CANDIDATES)


@pytest.mark.parametrize("severity", [1.0, 5.0])
def test_quadrilaterals_are_pillows(severity: float) -> None:
    images = pictures(1, 3, SIDE, SIDE)
    moves = np.random.default_rng(3).uniform(-1, 1, (4, 2))
    reach = parameter("quadrilateral_no_bars", "reach", severity) * SIDE
    corners = np.array([[0, 0], [0, SIDE], [SIDE, SIDE], [SIDE, 0]]) + reach * moves
    check_over_original(
        images,
        Image.Transform.QUAD,
        corners.ravel().tolist(),
        rendered("quadrilateral_no_bars", images, warps.Corners(torch.from_numpy(moves)[None]), severity),
    )


@pytest.mark.parametrize("signs", [(1, 1, 1, 1, 1, 1), (1, -1, -1, 1, -1, 1), (-1, 1, -1, -1, 1, -1)])
def test_perspectives_are_pillows(signs: tuple[int, ...]) -> None:
    images = pictures(1, 3, SIDE, SIDE)
    names = ("offset", "shift", "power", "denominator")
    offset, shift, power, denominator = (parameter("perspective_no_bars", key) for key in names)
    ox, oy, sx, sy, px, py = signs
    coefficients = (
        *(2 ** (px * power), ox * offset, sx * shift * SIDE),
        *(oy * offset, 2 ** (py * power), sy * shift * SIDE),
        *(denominator / SIDE, denominator / SIDE),
    )
    draw = warps.Signs(torch.tensor(signs, dtype=torch.float64).view(1, 6, 1, 1))
    check_over_original(
        images, Image.Transform.PERSPECTIVE, coefficients, rendered("perspective_no_bars", images, draw)
    )


def check_over_original(images: Tensor, kind: Image.Transform, data: object, ours: NDArray[np.uint8]) -> None:
    """Pillow's bilinear transform, over the image where a white mask is empty."""
    picture = Image.fromarray(photo(images))
    mask = Image.new("L", picture.size, 255)
    moved, seen = (np.array(one.transform(one.size, kind, data, Image.Resampling.BILINEAR)) for one in (picture, mask))
    assert 0 < (seen == 255).mean() <= 1
    close(ours, np.where(seen[..., None] == 255, moved, photo(images)))


def test_chromatic_abberation_is_scipys_shift() -> None:
    images = pictures(1, 3, SIDE, SIDE)
    angles = np.array([0.3, 2.5, 4.4])
    distance = parameter("chromatic_abberation", "distance") * SIDE
    channels = [
        ndimage.shift(
            photo(images)[..., k].astype(float),
            (distance * math.cos(a), distance * math.sin(a)),
            order=3,
            prefilter=False,
            mode="constant",
        )
        for k, a in enumerate(angles)
    ]
    ours = rendered("chromatic_abberation", images, patterns.Angles(torch.from_numpy(angles)[None]))
    # Near the border versions of SciPy differ in what they take from outside.
    inside = slice(math.ceil(distance) + 4, -math.ceil(distance) - 4)
    close(ours[inside, inside], np.floor(np.stack(channels, axis=-1) + 0.5)[inside, inside])


@pytest.mark.parametrize("sign", [1, -1])
def test_colour_balance_is_pillows(sign: int) -> None:
    images = pictures(1, 3, SIDE, SIDE)
    factor = 1 + sign * parameter("color_balance", "amount")
    expected = np.array(ImageEnhance.Color(Image.fromarray(photo(images))).enhance(factor))
    ours = rendered("color_balance", images, Field(torch.full((1, 1, 1, 1), float(sign))))
    # Pillow rounds the gray image to whole levels first.
    assert np.abs(ours.astype(int) - expected).max() <= 2


def test_hue_shift_is_in_hsv() -> None:
    images = pictures(1, 3, 8, 8)
    turns = parameter("hue_shift", "turns")
    ours = rendered("hue_shift", images, Field(torch.full((1, 1, 1, 1), -1.0)))
    for colour_in, found in zip(photo(images).reshape(-1, 3), ours.reshape(-1, 3), strict=True):
        h, s, v = colorsys.rgb_to_hsv(*(colour_in / 255.0))
        expected = np.array(colorsys.hsv_to_rgb((h - turns) % 1, s, v)) * 255
        assert np.abs(found - expected).max() <= 1.01


def test_voronoi_by_hand() -> None:
    images = torch.full((1, 1, SIDE, SIDE), 100, dtype=torch.uint8)
    seed, density, size = 3.7, 0.8, 9.0
    numbers = (torch.full((1, 1, 1, 1), value, dtype=torch.float64) for value in (seed, density, size, -1.0))
    ours = rendered("voronoi_noise", images, patterns.Cells(*numbers), 1.0)[..., 0]
    intensity = -parameter("voronoi_noise", "intensity", 1.0)
    for row, place in [(0, 0), (13, 40), (63, 7)]:
        v = np.array([place, row]) / size + 1
        cell, part = np.floor(v), v % 1
        nearest = 1.0
        for p in np.ndindex(3, 3):
            near = np.array(p) - 1
            word = np.array([[13.85, 47.77], [99.41, 88.48]]) @ (cell + near)
            point = (np.sin(word) * np.sqrt(word) * seed * 0.0025) % 1
            nearest = min(nearest, float(np.linalg.norm(near + point - part)))
        t = density * nearest
        assert ours[row, place] == pytest.approx(100 + intensity * (t * t * (3 - 2 * t) - 0.5), abs=1)


def test_dither_row_by_row() -> None:
    images = pictures(1, 1, 8, 12)
    levels = parameter("color_dither", "levels")
    expected = images[0, 0].double().numpy() / 255
    for row in expected:
        for place in range(len(row)):
            old = row[place]
            row[place] = round(old * (levels - 1)) / (levels - 1)
            error = old - row[place]
            for step, weight in ((1, 7), (-1, 3), (0, 5), (1, 1)):
                if 0 <= place + step < len(row):
                    row[place + step] += error * weight / 16
    close(rendered("color_dither", images, ())[..., 0], np.clip(expected, 0, 1) * 255, share=0.9)


def test_film() -> None:
    """Both films at full strength, by their formulas."""
    images = pictures(1, 3, 16, 16)
    x = photo(images) / 255
    luma = (x @ [0.2126, 0.7152, 0.0722])[..., None]
    k = np.clip(10 * (luma - 0.45), 0, 1)
    bleached = (1 - k) * 2 * x * luma + k * (1 - 2 * (1 - luma) * (1 - x))
    close(rendered("bleach_bypass", images, (), 5.0), np.clip(bleached, 0, 1) * 255, share=0.98)
    r, g, b = (1 - (x[..., i] - (x.sum(-1) - x[..., i]) / 2) for i in range(3))
    strips = np.stack([x[..., 0] * g * b, x[..., 1] * r * b, x[..., 2] * r * g], axis=-1)
    close(rendered("technicolor", images, (), 5.0), np.clip(strips, 0, 1) * 255, share=0.98)


def test_pseudocolor_shows_its_colours() -> None:
    """A gray ramp through five colours: at its quarters the mix is that of the colours themselves."""
    gray = torch.tensor([0, 51, 102, 153, 204, 255, 0, 0], dtype=torch.uint8).expand(1, 3, 8, 8)
    palette = torch.rand(1, 5, 3, generator=torch.Generator().manual_seed(0))
    draw = colour.Palette(torch.full((1, 1, 1, 1), 0.5), palette)
    ours = rendered("pseudocolor", gray, draw, 5.0)[0].astype(float) / 255
    for place, number, level in ((0, 0, 0.0), (5, 4, 1.0)):
        np.testing.assert_allclose(ours[place], 0.5 * level + 0.5 * palette[0, number].numpy(), atol=1 / 255)


def test_a_fish_eye_of_index_one_is_a_window() -> None:
    images = pictures(2, 3, 48, 48)
    change = blemish.corrupt(images, "cbar:fish_eye", severity=0.001).int() - images.int()
    assert change.abs().double().mean() < 1
    centre = torch.zeros(1, 1, 2, dtype=torch.float64) + 30
    ours = rendered("fish_eye", pictures(1, 3, SIDE, SIDE), warps.Lenses(centre), 5.0)
    changed = np.abs(ours.astype(int) - photo(pictures(1, 3, SIDE, SIDE))).max(-1) > 0
    rows, columns = np.nonzero(changed)
    # A lens of 0.05 of the side, but at least three pixels, and what it shows comes from nearer its centre.
    assert np.hypot(rows - 30, columns - 30).max() < 3.2


def test_a_drop_moves_what_is_near() -> None:
    images = pictures(1, 3, SIDE, SIDE)
    numbers = (torch.full((1, 1, 1), value, dtype=torch.float64) for value in (30.0, 34.0, 8.0, 1.0))
    changed = np.abs(rendered("water_drop", images, warps.Drop(*numbers)).astype(int) - photo(images)).max(-1) > 0
    rows, columns = np.nonzero(changed)
    assert np.hypot(rows - 30, columns - 34).max() < SIDE // 2
    assert changed.mean() > 0.5
