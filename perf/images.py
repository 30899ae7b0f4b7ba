"""The pictures every timing uses: the demo scene in many positions, so that content is natural and varied."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blemish.data.demo import demo_picture


def scenes(count: int, side: int) -> NDArray[np.uint8]:
    """(N, H, W, 3) uint8 crops of the demo scene, every other one mirrored."""
    large = np.array(demo_picture(2 * side))
    places = [(i * 37 % side, i * 53 % side) for i in range(count)]
    crops = [large[y : y + side, x : x + side, :: -1 if i % 2 else 1] for i, (y, x) in enumerate(places)]
    return np.stack([crop[:, ::-1] if i % 3 == 0 else crop for i, crop in enumerate(crops)])
