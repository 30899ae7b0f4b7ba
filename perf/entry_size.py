"""How large an entry of a leaderboard is: a ResNet-50 on all of ImageNet-C, with outcomes that hang together.

    python perf/entry_size.py

Nobody's records come with the library, so outcomes are drawn: an image is right under a condition where a normal number
is below a threshold that gives the accuracy RobustBench published of its Standard_R50 in that cell. The number is the
sum of a part of the image, one of the image and the corruption, and one of its own, so that outcomes are correlated
within images and more so within corruptions. Without any correlation nothing could be saved: that is the last line.
"""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from blemish.metrics.imports import imported_table
from blemish.studies.leaderboard.bits import Bits, packed

IMAGES = 50_000
SHARES = {"as models are": (0.55, 0.2), "hardly correlated": (0.2, 0.05)}
SEEDS = (0, 1, 2)


def accuracies() -> dict[str, float]:
    """Of the published ResNet-50, clean and in each cell."""
    (row,) = (row for row in imported_table("robustbench/imagenet-c").rows if row.model == "Standard_R50")
    return {"clean": 1 - (row.clean or 0) / 100, **{text: 1 - error / 100 for text, error in row.cells.items()}}


def outcomes(of_image: float, of_corruption: float, seed: int) -> NDArray[np.bool_]:
    """Images by conditions."""
    rng = np.random.default_rng(seed)
    image = np.sqrt(of_image) * rng.normal(size=IMAGES)
    groups: dict[str, NDArray[np.float64]] = {}
    columns = []
    for text, accuracy in accuracies().items():
        group = groups.setdefault(text.partition("@")[0], np.sqrt(of_corruption) * rng.normal(size=IMAGES))
        own = np.sqrt(1 - of_image - of_corruption) * rng.normal(size=IMAGES)
        columns.append(image + group + own < NormalDist().inv_cdf(accuracy))
    return np.stack(columns, axis=1)


def named(correct: NDArray[np.bool_], seed: int) -> Bits:
    """With names as the validation images of ImageNet have them: class folders, and numbers in no order."""
    numbers = np.random.default_rng(seed).permutation(IMAGES) + 1
    names = sorted(f"n{1_440_764 + 13_631 * (i // 50):08d}/ILSVRC2012_val_{n:08d}.JPEG" for i, n in enumerate(numbers))
    return Bits(np.array(names), np.repeat(np.arange(1000), 50).astype(np.int32), correct)


def main() -> None:
    """Print sizes."""
    plain = len(packed(named(np.ones((IMAGES, 1), dtype=bool), 0)))
    print(f"names and labels of {IMAGES:,} images: {plain / 1000:.0f} kB")
    for words, shares in SHARES.items():
        for seed in SEEDS:
            size = len(packed(named(outcomes(*shares, seed), seed)))
            print(f"outcomes {words}, seed {seed}: {size / 1000:.0f} kB in all")
    random = np.random.default_rng(0).random((IMAGES, 76)) < 0.5
    print(f"outcomes at random: {len(packed(named(random, 0))) / 1000:.0f} kB in all")


if __name__ == "__main__":
    main()
