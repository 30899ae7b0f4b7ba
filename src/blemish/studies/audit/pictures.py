"""The clean images themselves: some that are there twice, or values of another range."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from blemish.core.printable import first_few
from blemish.data.images import Images
from blemish.studies.audit.findings import Check, Finding

_SHOWN = 3
_THUMB = 16
# Root mean square difference of thumbnails, in levels, below which two pictures are the same; and how much a picture
# has to vary for that to mean anything.
_SAME = 1.0
_VARIES = 12.0
_SHARE = 0.005
# White is 255; what never leaves this was scaled to 0 … 1 before it became whole numbers.
_DARK = 1
# Of many pictures, one at least is brighter than gray, unless values were halved, or what is shown is dark.
_HALF, _MANY = 127, 50


def check_twice(images: Images) -> Check:
    """Are images there more than once, to the pixel or nearly?"""
    exact: dict[bytes, list[int]] = defaultdict(list)
    for row in range(len(images)):
        exact[images.digests[row].tobytes() + images.shapes[row].tobytes()].append(row)
    groups = [rows for rows in exact.values() if len(rows) > 1]
    first = [rows[0] for rows in exact.values()]
    near = _near_pairs(images, first)
    spare = sum(len(rows) - 1 for rows in groups)
    pairs = [(rows[0], row) for rows in groups for row in rows[1:]] + near
    said = f"{len(images):,} images compared with each other"
    if not pairs:
        return Check("duplicates", said)
    conflicts = sum(images.labels[one] != images.labels[other] for one, other in pairs)
    what = [f"{spare} are there again pixel by pixel"] * bool(spare) + [f"{len(near)} nearly so"] * bool(near)
    shown = first_few([f"{images.names[one]} = {images.names[other]}" for one, other in pairs], _SHOWN)
    also = f"; {conflicts} pairs have different labels" if conflicts else ""
    many = len(pairs) > _SHARE * len(images)
    finding = Finding(
        "duplicates",
        "images are there more than once",
        f"of {len(images):,} images {' and '.join(what)} ({shown}){also}",
        "leave them out: intervals take images to be independent, and two labels for one image cannot both be right",
        "certain" if spare else "very likely",
        "problem" if many or conflicts else "note",
        {"exact": float(spare), "near": float(len(near)), "conflicts": float(conflicts), "images": float(len(images))},
    )
    return Check("duplicates", said, (finding,))


def _near_pairs(images: Images, rows: list[int]) -> list[tuple[int, int]]:
    """Pairs of images whose thumbnails are the same; exact copies are left out."""
    thumbs = np.stack([_thumbnail(images.image(row)) for row in rows])
    vary = thumbs.std(axis=1) >= _VARIES
    index, thumbs = np.asarray(rows)[vary], thumbs[vary]
    pairs = []
    for i in range(len(index) - 1):
        distance = np.sqrt(((thumbs[i + 1 :] - thumbs[i]) ** 2).mean(axis=1))
        pairs += [(int(index[i]), int(index[i + 1 + other])) for other in np.flatnonzero(distance < _SAME)]
    return pairs


def _thumbnail(levels: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The mean levels of a grid of cells, in three channels."""
    channels, height, width = levels.shape
    rows = np.arange(_THUMB + 1) * height // _THUMB
    columns = np.arange(_THUMB + 1) * width // _THUMB
    sums = np.zeros((channels, height + 1, width + 1))
    sums[:, 1:, 1:] = levels.cumsum(1, dtype=np.float64).cumsum(2)
    low_r, high_r = rows[:-1], np.maximum(rows[1:], rows[:-1] + 1)
    low_c, high_c = columns[:-1], np.maximum(columns[1:], columns[:-1] + 1)
    cells = (
        sums[:, high_r][:, :, high_c]
        - sums[:, low_r][:, :, high_c]
        - sums[:, high_r][:, :, low_c]
        + sums[:, low_r][:, :, low_c]
    ) / ((high_r - low_r)[:, None] * (high_c - low_c))
    return np.broadcast_to(cells, (3, _THUMB, _THUMB)).reshape(-1).astype(np.float32)


def check_levels(images: Images) -> Check:
    """Do the images use the levels from 0 to 255, or were they scaled to 0 … 1 before they became whole numbers?"""
    brightest = int(images.pixels.max()) if len(images.pixels) else 0
    if brightest > _DARK:
        dim = brightest <= _HALF and len(images) >= _MANY
        return Check("value-range", f"levels up to {brightest}", (_dim(images, brightest),) if dim else ())
    finding = Finding(
        "value-range",
        "the images are black: their values were scaled to 0 … 1 before they became whole numbers",
        f"no level above {brightest} in {len(images):,} images, where white is 255",
        "give floats in 0 … 1, or whole numbers from 0 to 255",
        numbers={"brightest": float(brightest)},
    )
    return Check("value-range", "levels", (finding,))


def _dim(images: Images, brightest: int) -> Finding:
    return Finding(
        "value-range",
        "the images use a part of the levels only",
        f"no level above {brightest} in {len(images):,} images, where white is 255",
        "look whether values were halved, or had another range, when the images were made; dark images may be right",
        level="note",
        numbers={"brightest": float(brightest)},
    )
