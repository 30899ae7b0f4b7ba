"""Digits as small colour pictures, drawn by code: data that is always at hand, and the same everywhere.

Each is written with a few strokes, in a hand of its own: slant, size, position, wobble and width of the pen are drawn
from a hash of its number.
"""

from __future__ import annotations

import colorsys
import itertools
import math
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from blemish.core.errors import InputError
from blemish.core.rng import hash_id
from blemish.data.source import Source

SIDE = 32

Split = Literal["train", "test"]
Points = NDArray[np.float64]

_COUNT = 1800
_TEST_SHARE = 0.445
_FAINT, _STRONG = 0.1, 0.6


def digits_source(split: Split = "test", *, palette: int = 0) -> Source:
    """Digits 0 … 9 of 32×32 pixels, about 1,000 to train on and 800 to test.

    The split is a hash of the number, so it never changes. Every picture has its own colours of paper and ink;
    ``palette`` numbers other choices of them.
    """
    if split not in ("train", "test"):
        raise InputError(f"split {split!r}; expected train or test")
    rows = np.array(
        [row for row in range(_COUNT) if (_share(str(row)) < _TEST_SHARE) == (split == "test")], dtype=np.int64
    )
    return Source(
        name=f"digits-{split}",
        names=tuple(f"digit-{row:04d}" for row in rows.tolist()),
        ids=rows,
        labels=rows % 10,
        read=lambda index: _picture(int(rows[index]), palette),
        classes=tuple("0123456789"),
    )


def _arc(x: float, y: float, wide: float, high: float, start: float, end: float) -> list[tuple[float, float]]:
    """Points on an ellipse, with angles in degrees from the right, clockwise on the page."""
    angles = np.radians(np.linspace(start, end, 13))
    return [(x + wide * math.cos(a), y + high * math.sin(a)) for a in angles]


# Strokes in a box of 1 × 1, with y downwards; some digits are written in two ways.
_GLYPHS: dict[int, tuple[list[list[tuple[float, float]]], ...]] = {
    0: ([_arc(0.5, 0.5, 0.32, 0.46, -90, 270)],),
    1: ([[(0.28, 0.26), (0.54, 0.04), (0.54, 0.96)]], [[(0.5, 0.04), (0.5, 0.96)]]),
    2: ([[*_arc(0.5, 0.3, 0.3, 0.26, 190, 385), (0.2, 0.96), (0.84, 0.96)]],),
    3: ([[*_arc(0.46, 0.28, 0.28, 0.24, 200, 440), *_arc(0.46, 0.73, 0.32, 0.24, -80, 160)]],),
    4: (
        [[(0.64, 0.96), (0.64, 0.04), (0.16, 0.66), (0.88, 0.66)]],
        [[(0.24, 0.06), (0.2, 0.56), (0.86, 0.56)], [(0.68, 0.1), (0.66, 0.96)]],
    ),
    5: ([[(0.82, 0.05), (0.28, 0.05), (0.24, 0.46), *_arc(0.48, 0.67, 0.32, 0.29, -125, 150)]],),
    6: ([[(0.7, 0.05), (0.36, 0.34), *_arc(0.5, 0.68, 0.29, 0.28, 200, 560)]],),
    7: (
        [[(0.16, 0.06), (0.86, 0.06), (0.42, 0.96)]],
        [[(0.16, 0.06), (0.86, 0.06), (0.42, 0.96)], [(0.34, 0.5), (0.78, 0.5)]],
    ),
    8: ([_arc(0.5, 0.27, 0.26, 0.22, 90, 450), _arc(0.5, 0.73, 0.31, 0.24, -90, 270)],),
    9: ([[*_arc(0.5, 0.32, 0.28, 0.27, 0, -340), (0.78, 0.32), (0.7, 0.66), (0.46, 0.96)]],),
}


@lru_cache(maxsize=4096)
def _cover(row: int) -> NDArray[np.float64]:
    """How much of each pixel is ink, 0 … 1."""
    ways = _GLYPHS[row % 10]
    strokes = ways[int(_share(f"{row} way") * len(ways))]
    pen = 0.035 + 0.06 * _share(f"{row} pen")
    away = np.full((SIDE, SIDE), np.inf)
    for number, stroke in enumerate(strokes):
        points = _handwritten(np.array(stroke), row, number)
        for start, end in itertools.pairwise(points):
            away = np.minimum(away, _distance(start, end))
    return ((pen - away) * SIDE / 1.5 + 0.5).clip(0, 1)


def _handwritten(points: Points, row: int, stroke: int) -> Points:
    """A stroke as one hand writes it, in units of the picture's side."""

    def between(low: float, high: float, name: str) -> float:
        return low + (high - low) * _share(f"{row} {name}")

    bends = np.linspace(0, 1, len(points))
    for axis in (0, 1):
        for wave in (1, 2, 3):
            phase = 2 * math.pi * _share(f"{row} {stroke} {axis} {wave} phase")
            size = between(0.0, 0.13, f"{stroke} {axis} {wave} size") / wave
            points[:, axis] += size * np.sin(2 * math.pi * wave * bends + phase)
    x, y = (points - 0.5).T
    turn = math.radians(between(-22, 22, "turn"))
    x = x * between(0.32, 0.74, "width") + y * between(-0.3, 0.15, "slant")
    y = y * between(0.42, 0.86, "height")
    turned = np.stack([x * math.cos(turn) - y * math.sin(turn), x * math.sin(turn) + y * math.cos(turn)], axis=1)
    return turned + 0.5 + [between(-0.07, 0.07, "right"), between(-0.05, 0.05, "down")]


def _distance(start: Points, end: Points) -> NDArray[np.float64]:
    """The distance of every pixel from a straight piece, in units of the picture's side."""
    y, x = (np.mgrid[:SIDE, :SIDE] + 0.5) / SIDE
    along = end - start
    share = ((x - start[0]) * along[0] + (y - start[1]) * along[1]) / max(float(along @ along), 1e-12)
    share = share.clip(0, 1)
    return np.asarray(np.hypot(x - start[0] - share * along[0], y - start[1] - share * along[1]))


def _share(name: str) -> float:
    """A number in [0, 1) that belongs to a name."""
    return (hash_id(f"digits {name}") % 2**32) / 2**32


def _colours(name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Paper and ink of a picture: any hue, and ink that ranges from faint to strong."""
    hue = _share(f"{name} hue")
    paper = np.array(colorsys.hsv_to_rgb(hue, 0.4 * _share(f"{name} paper"), 0.65 + 0.3 * _share(f"{name} light")))
    dark = np.array(colorsys.hsv_to_rgb((hue + 0.3 + 0.4 * _share(f"{name} ink")) % 1, 0.6, 0.2))
    strength = _FAINT + (_STRONG - _FAINT) * _share(f"{name} strength")
    return paper, paper + strength * (dark - paper)


def _picture(row: int, palette: int) -> Image.Image:
    """Ink on paper."""
    paper, ink = _colours(f"{row} {palette}")
    return Image.fromarray(np.rint((paper + _cover(row)[..., None] * (ink - paper)) * 255).astype(np.uint8))
