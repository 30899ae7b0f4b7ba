"""Images per CPU-second of a CCC stream against the peer package, side by side: python perf/ccc.py [--pairs 20].

A step of a walk is two corruptions in a row. For a sample of ordered pairs of the release's fourteen corruptions, both
libraries corrupt the same 224 × 224 pictures at severities 2 and 2, one thread each, and take turns; the best of
several rounds counts. The peer takes one picture at a time, because it cannot do otherwise; the stream takes 32.
"""

from __future__ import annotations

import argparse
import math
import random
import statistics
import time
from importlib import metadata

import imagecorruptions
import numpy as np
import torch

import blemish
from blemish.studies.streams.images import from_tensor
from blemish.studies.streams.info import WalkInfo
from blemish.studies.streams.levels import LEVELS
from blemish.studies.streams.stream import Stream
from blemish.studies.streams.walks import Walk, WalkStep
from cpu_settings import settle
from images import scenes

SIDE, BATCH, SEVERITY = 224, 32, 2


def seconds(work: object) -> float:
    """CPU time of one call."""
    start = time.process_time()
    work()  # type: ignore[operator]
    return time.process_time() - start


def main() -> None:
    """Print a table in Markdown, and the mean over pairs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    settle()
    try:
        import cv2

        cv2.setNumThreads(1)
    except ImportError:
        pass
    pictures = scenes(BATCH, SIDE)
    images = from_tensor(torch.from_numpy(pictures).permute(0, 3, 1, 2).contiguous(), np.zeros(BATCH, dtype=np.int64))
    names = LEVELS["easy"].corruptions
    pairs = [(first, second) for first in names for second in names if first != second]
    chosen = random.Random(options.seed).sample(pairs, min(options.pairs, len(pairs)))
    peer_name = next(name for name in ("imagecorruptions-imaug", "imagecorruptions") if _there(name))
    print(f"blemish {blemish.__version__}, {peer_name} {metadata.version(peer_name)}, torch {torch.__version__},")
    print(f"{SIDE} px, severity {SEVERITY} twice,")
    print("images per CPU-second on one thread\n\n| pair | peer | blemish stream | ratio |\n|---|---:|---:|---:|")
    times: list[tuple[float, float]] = []
    for first, second in chosen:
        walk = Walk((WalkStep(first, SEVERITY, second, SEVERITY, BATCH, 0.5, 0),), WalkInfo())
        stream = Stream(images, walk, batch=BATCH)
        few = pictures[: 2 if "zoom_blur" in (first, second) else 6]

        def peer(first: str = first, second: str = second, few: np.ndarray = few) -> None:
            for picture in few:
                once = imagecorruptions.corrupt(picture, corruption_name=first, severity=SEVERITY)
                imagecorruptions.corrupt(once, corruption_name=second, severity=SEVERITY)

        def ours(stream: Stream = stream) -> None:
            stream.at(0, BATCH)

        ours()
        rounds = [(seconds(peer) / len(few), seconds(ours) / BATCH) for _ in range(options.rounds)]
        times.append((min(r[0] for r in rounds), min(r[1] for r in rounds)))
        theirs, mine = times[-1]
        print(f"| {first} + {second} | {1 / theirs:,.0f} | {1 / mine:,.0f} | {theirs / mine:.1f} |", flush=True)
    theirs, mine = (statistics.fmean(column) for column in zip(*times, strict=True))
    geometric = math.exp(statistics.fmean(math.log(a / b) for a, b in times))
    print(
        f"| **a walk that visits all of them alike** | {1 / theirs:,.0f} | {1 / mine:,.0f} | **{theirs / mine:.1f}** |"
    )
    print(f"| geometric mean of ratios | | | {geometric:.1f} |")


def _there(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


if __name__ == "__main__":
    main()
