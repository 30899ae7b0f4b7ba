"""Drawn shapes for tests and demos: discs, squares and triangles in three colours, with exact boxes and masks."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from blemish.core.rng import hash_id
from blemish.data.maps import MapTruth, truth_of
from blemish.data.source import Source
from blemish.data.truth import Boxes, BoxTruth

SHAPES = "demo:shapes"
"""What the set is called where images are named."""

COLOURS = {1: "red", 2: "green", 3: "blue"}
"""The categories. In maps of classes, 0 is what lies behind."""

_COUNT = 60
_SIDES = (96, 128)
_LEVELS = {1: (205, 60, 50), 2: (60, 170, 70), 3: (55, 80, 200)}
_LEAST, _MOST = 14, 40
_GAP = 3


@lru_cache(maxsize=128)
def _drawn(number: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8], Boxes]:
    """The picture, the class of every pixel, and the boxes; the same each time."""
    rng = np.random.default_rng([71, number])
    height, width = _SIDES[number % 2], _SIDES[0]
    shade = rng.uniform(90, 150) + np.linspace(-25, 25, width) * rng.choice([-1, 1])
    grain = rng.normal(0, 4, (height, width))
    picture = np.repeat((shade[None] + grain)[..., None], 3, axis=2)
    classes = np.zeros((height, width), dtype=np.uint8)
    boxes: list[tuple[float, ...]] = []
    for _ in range(int(rng.integers(2, 6))):
        side = int(rng.integers(_LEAST, _MOST))
        top, left = (int(rng.integers(1, length - side - 1)) for length in (height, width))
        kind, colour = int(rng.integers(0, 3)), int(rng.integers(1, 4))
        around = slice(max(0, top - _GAP), top + side + _GAP), slice(max(0, left - _GAP), left + side + _GAP)
        if classes[around].any():
            continue  # shapes do not touch
        mask = _mask(kind, side)
        classes[top : top + side, left : left + side][mask] = colour
        picture[top : top + side, left : left + side][mask] = np.array(_LEVELS[colour]) + rng.normal(0, 3, 3)
        rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
        x, y = left + int(columns[0]), top + int(rows[0])
        w, h = int(columns[-1] - columns[0] + 1), int(rows[-1] - rows[0] + 1)
        boxes.append((x, y, w, h, colour, int(mask.sum())))
    table = np.array(boxes, dtype=np.float64).reshape(-1, 6)
    truth = Boxes(table[:, :4], table[:, 4].astype(np.int64), table[:, 5], np.zeros(len(table), dtype=np.bool_))
    return np.clip(picture + 0.5, 0, 255).astype(np.uint8), classes, truth


def _mask(kind: int, side: int) -> NDArray[np.bool_]:
    """A disc, a square or a triangle that fills so many pixels each way."""
    centre = (np.arange(side) + 0.5) / side
    x, y = centre[None], centre[:, None]
    if kind == 0:
        return np.asarray((x - 0.5) ** 2 + (y - 0.5) ** 2 <= 0.25)
    if kind == 1:
        return np.ones((side, side), dtype=np.bool_)
    return np.asarray(np.abs(x - 0.5) <= y / 2)


def _names(count: int) -> list[str]:
    return [f"shapes{number:03}.png" for number in range(count)]


def shapes_source(count: int = _COUNT) -> Source:
    """The pictures: 96 pixels wide, and every other one 128 high."""
    names = _names(count)
    return Source(
        name="shapes",
        names=names,
        ids=np.array([hash_id(name) for name in names], dtype=np.int64),
        labels=np.zeros(count, dtype=np.int64),
        read=lambda number: Image.fromarray(_drawn(number)[0]),
        stamp=lambda number: f"{SHAPES} {number}",
        reopen=shapes_source if count == _COUNT else None,
    )


def shapes_truth(count: int = _COUNT) -> BoxTruth:
    """The boxes of the shapes; areas are those of the shapes themselves."""
    return BoxTruth(COLOURS, {name: _drawn(number)[2] for number, name in enumerate(_names(count))})


def shapes_maps(count: int = _COUNT) -> MapTruth:
    """The class of every pixel: 0 behind the shapes, 1 to 3 the colours."""
    return truth_of(_names(count), _map_named)


def _map_named(name: str) -> NDArray[np.uint8]:
    return class_map(int(name.removeprefix("shapes").removesuffix(".png")))


def class_map(number: int) -> NDArray[np.uint8]:
    """The class of every pixel of a picture."""
    return _drawn(number)[1]
