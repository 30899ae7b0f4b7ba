"""Images that lie decoded in one array: single ones as pictures, or many at a time as levels."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PIL import Image


class BlockReader:
    """The ``read`` of a source whose images are an array, (N, H, W) or (N, H, W, C) of uint8.

    It gives pictures as any other does; those who want levels get them without a picture in between. ``rows`` are the
    places of its images in the array, by default all. ``check`` is called before pixels are touched, and may refuse.
    """

    def __init__(
        self,
        images: NDArray[np.uint8],
        rows: NDArray[np.int64] | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._images, self._check = images, check
        self._rows = np.arange(len(images)) if rows is None else rows
        height, width = images.shape[1:3]
        self.shape = (images.shape[3] if images.ndim == 4 else 1, height, width)

    def __call__(self, row: int) -> Image.Image:
        """One image as a picture."""
        self._check()
        levels = np.asarray(self._images[self._rows[row]])
        return Image.fromarray(levels.reshape(levels.shape[:2]) if self.shape[0] == 1 else levels)

    def fill(self, out: NDArray[np.uint8], first: int) -> None:
        """Put as many images as there is room for into ``out``, (B, C, H, W), from the one at place ``first`` on."""
        self._check()
        rows = self._rows[first : first + len(out)]
        start, last = int(rows[0]), int(rows[-1])
        neighbours = last - start == len(rows) - 1 and bool((np.diff(rows) == 1).all())
        levels = self._images[start : last + 1] if neighbours else self._images[rows]
        out[...] = levels.reshape(len(out), *self.shape[1:], self.shape[0]).transpose(0, 3, 1, 2)

    def take(self, rows: NDArray[np.int64]) -> BlockReader:
        """A reader of the images at these places."""
        return BlockReader(self._images, self._rows[rows], self._check)
