"""Were pictures JPEG once? Then the frequencies of their blocks are multiples of a step, as the format rounds them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from blemish.data.images import Images
from blemish.studies.audit.findings import Check, Finding

# Sets of pictures of at most this side were published without loss.
_SMALL_SIDE = 48
_FEWEST = 30
_LOSSY = (".jpg", ".jpeg", ".webp")

_BLOCK = 8
# Low frequencies, where pictures have most; and steps, of which those below are hidden by the rounding of levels.
_FREQUENCIES = ((0, 1), (1, 0), (1, 1), (0, 2), (2, 0))
_STEPS = range(2, 61)
_FEWEST_VALUES = 150
_CLEARLY = 0.3
_LUMA = np.array([0.299, 0.587, 0.114])


def check_jpeg(images: Images) -> Check:
    """Were small pictures, which are published without loss, stored as JPEG on the way?"""
    if all(name.lower().endswith(_LOSSY) for name in images.names):
        return Check("jpeg", skipped="the files are JPEG")
    side = int(images.shapes[:, 1:].min(axis=1).max())
    if side > _SMALL_SIDE:
        return Check("jpeg", skipped="pictures of this size are mostly photographs, which were all JPEG once")
    if len(images) < _FEWEST or side < 2 * _BLOCK:
        return Check("jpeg", skipped=f"too few images, or too small ones ({len(images)} of {side} pixels)")
    aligned, beside = grid(images, 0), grid(images, _BLOCK // 2)
    said = f"frequencies of blocks in {len(images)} images"
    if aligned < _CLEARLY or beside > aligned / 2:
        return Check("jpeg", said)
    finding = Finding(
        "jpeg",
        "the images were JPEG once",
        f"the frequencies of their blocks of eight pixels are multiples of steps (by {aligned:.2f}, where 1 is always "
        f"and 0 is chance), though pictures of {side} pixels are published without loss",
        "take the images as they were published: networks can lose many points on lossy copies",
        "very likely",
        numbers={"grid": aligned, "beside": beside},
    )
    return Check("jpeg", said, (finding,))


def grid(images: Images, offset: int) -> float:
    """How nearly the low frequencies of blocks are multiples of a step: about 1 for JPEG, 0 or less for others.

    For values v and a step q it is the mean of cos(2πv / q) over those that do not round to 0, for the step that fits
    best; the median over some frequencies. Blocks begin ``offset`` pixels from the edge: JPEG's at 0.
    """
    blocks = np.concatenate([_blocks(images.image(row), offset) for row in range(len(images))])
    wave = _cosines()
    fits = []
    for u, v in _FREQUENCIES:
        values = np.abs(np.einsum("y,nyx,x->n", wave[u], blocks, wave[v]))
        best = -1.0
        for step in _STEPS:
            large = values[values >= step / 2]
            if len(large) >= _FEWEST_VALUES:
                best = max(best, float(np.cos(2 * math.pi * large / step).mean()))
        fits.append(best)
    return float(np.median(fits))


def _blocks(levels: NDArray[np.uint8], offset: int) -> NDArray[np.float64]:
    """The whole blocks of a picture's luma."""
    plane = levels.astype(np.float64)
    gray = plane[0] if len(plane) == 1 else np.tensordot(_LUMA, plane, axes=1)
    gray = gray[offset:, offset:]
    down, across = (side // _BLOCK for side in gray.shape)
    cut = gray[: down * _BLOCK, : across * _BLOCK].reshape(down, _BLOCK, across, _BLOCK)
    return np.asarray(cut.swapaxes(1, 2).reshape(-1, _BLOCK, _BLOCK))


def _cosines() -> NDArray[np.float64]:
    """The orthonormal waves of the discrete cosine transform."""
    places = np.arange(_BLOCK)
    waves = np.cos(math.pi * np.outer(places, 2 * places + 1) / (2 * _BLOCK)) * math.sqrt(2 / _BLOCK)
    waves[0] /= math.sqrt(2)
    return np.asarray(waves)
