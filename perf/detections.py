"""How much processor time it takes to resample the AP of detections: synthetic boxes, as many as COCO's val2017 has.

python perf/detections.py [--images 5000] [--boxes 30] [--replicates 100] [--threads 2]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch

from blemish.metrics.detections import Side, match

CLASSES = 80
TRUE = 7.3  # boxes of the truth in an image of val2017: 36,781 in 5,000
CONDITIONS = 76


def main() -> None:
    """Print how long matching and resampling take."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("images", 5000), ("boxes", 30), ("replicates", 100), ("threads", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    rng = np.random.default_rng(0)
    owners = np.repeat(np.arange(asked.images), rng.poisson(TRUE, asked.images))
    sizes = np.exp(rng.normal(4, 1, (len(owners), 2)))
    truth = Side(
        owners, rng.integers(0, CLASSES, len(owners)), np.concatenate([rng.uniform(0, 500, sizes.shape), sizes], axis=1)
    )
    count = asked.images * asked.boxes
    near = rng.integers(0, len(owners), count)  # most are near something true, as a detector's are
    spread = truth.boxes[near] * (1 + rng.normal(0, 0.15, (count, 4)))
    spread[:, 2:] = np.maximum(spread[:, 2:], 1)
    found = Side(owners[near], truth.labels[near], spread)
    scores = rng.random(count)
    areas, crowd = sizes.prod(1), np.zeros(len(owners), dtype=np.bool_)
    for ranges in (("all",), ("small", "medium", "large")):
        match(asked.images, found, scores, truth, areas, crowd, ranges=ranges).weighted(np.ones((1, asked.images)))
        start = time.process_time()
        matches = match(asked.images, found, scores, truth, areas, crowd, ranges=ranges)
        matched = time.process_time() - start
        weights = rng.multinomial(asked.images, np.full(asked.images, 1 / asked.images), asked.replicates)
        start = time.process_time()
        matches.weighted(weights)
        each = (time.process_time() - start) / asked.replicates
        minutes = CONDITIONS * (matched + 1000 * each) / 60
        print(
            f"{', '.join(ranges)}: matching {matched:.2f} s, a resample {1000 * each:.2f} ms, "
            f"{CONDITIONS} conditions with 1,000 resamples {minutes:.1f} min (processor time)"
        )


if __name__ == "__main__":
    main()
