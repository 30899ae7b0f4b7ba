"""Scikit-learn's handwritten digits as small colour pictures: real data that is always at hand."""

from __future__ import annotations

import colorsys
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from blemish.data.source import Source
from blemish.rng import hash_id
from blemish.types import InputError, optional_import

__all__ = ["SIDE", "digits_source"]

SIDE = 32

Split = Literal["train", "test"]

_FULL = 16  # a pixel of the 8×8 scans counts 0 … 16 inked cells
_TEST_SHARE = 0.445
_FAINT, _STRONG = 0.15, 0.6


def digits_source(split: Split = "test", *, palette: int = 0) -> Source:
    """Handwritten digits 0 … 9 of 32×32 pixels, about 1,000 to train on and 800 to test.

    The split is a hash of the position in scikit-learn's order, so it never changes. The scans of 8×8 pixels are from
    the UCI set of Alpaydin and Kaynak (1998). Every picture has its own colours of paper and ink; ``palette`` numbers
    other choices of them.
    """
    if split not in ("train", "test"):
        raise InputError(f"split {split!r}; expected train or test")
    scans, labels = _scans()
    rows = np.array([row for row in range(len(labels)) if _is_test(row) == (split == "test")], dtype=np.int64)
    return Source(
        name=f"digits-{split}",
        names=tuple(f"digit-{row:04d}" for row in rows.tolist()),
        ids=rows,
        labels=labels[rows],
        read=lambda index: _picture(scans[rows[index]], f"{rows[index]} {palette}"),
        classes=tuple("0123456789"),
    )


@lru_cache(maxsize=1)
def _scans() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    found = optional_import("sklearn.datasets").load_digits()
    return np.asarray(found.images, dtype=np.float64), np.asarray(found.target, dtype=np.int64)


def _share(what: str) -> float:
    """A number in [0, 1) that belongs to a name."""
    return (hash_id(f"digits {what}") % 2**32) / 2**32


def _is_test(row: int) -> bool:
    return _share(str(row)) < _TEST_SHARE


def _colours(name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Paper and ink of a picture: any hue, and ink that ranges from faint to strong."""
    hue = _share(f"{name} hue")
    paper = np.array(colorsys.hsv_to_rgb(hue, 0.4 * _share(f"{name} paper"), 0.65 + 0.3 * _share(f"{name} light")))
    dark = np.array(colorsys.hsv_to_rgb((hue + 0.3 + 0.4 * _share(f"{name} ink")) % 1, 0.6, 0.2))
    strength = _FAINT + (_STRONG - _FAINT) * _share(f"{name} strength")
    return paper, paper + strength * (dark - paper)


def _picture(scan: NDArray[np.float64], name: str) -> Image.Image:
    """Ink on paper: the scan enlarged smoothly, its strokes sharpened, and coloured."""
    levels = np.pad(np.rint(scan * (255 / _FULL)).astype(np.uint8), 1)  # a margin: many touch the edge
    large = np.asarray(Image.fromarray(levels).resize((SIDE, SIDE), Image.Resampling.BICUBIC), dtype=np.float64) / 255
    cover = ((large - 0.2) / 0.7).clip(0, 1)
    cover = cover * cover * (3 - 2 * cover)
    paper, ink = _colours(name)
    return Image.fromarray(np.rint((paper + cover[..., None] * (ink - paper)) * 255).astype(np.uint8))
