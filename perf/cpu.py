"""CPU time per image against the peer package, side by side in one run: python perf/cpu.py [--severity 3].

Both libraries get the same uint8 pictures, one thread, and the best of several repetitions; see README.md.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable, Sequence
from importlib import metadata

import cv2
import imagecorruptions
import numpy as np
import torch

import blemish
from cpu_settings import settle
from images import scenes

SIDE, BATCH, SINGLES = 224, 32, 8


def seconds(rivals: Sequence[Callable[[], object]], repetitions: int) -> list[float]:
    """The least CPU time of each over several rounds in which they take turns, so that a slow spell hits all."""
    times: list[list[float]] = [[] for _ in rivals]
    for _ in range(repetitions + 1):
        for work, taken in zip(rivals, times, strict=True):
            start = time.process_time()
            work()
            taken.append(time.process_time() - start)
    return [min(taken[1:]) for taken in times]  # the first round warms up


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--severity", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=7)
    parser.add_argument("--only", nargs="*", default=blemish.catalog.plain())
    options = parser.parse_args()
    settle()
    cv2.setNumThreads(1)
    pictures = scenes(BATCH, SIDE)
    tensors = torch.from_numpy(pictures).permute(0, 3, 1, 2).contiguous()
    print(f"blemish {blemish.__version__}, imagecorruptions-imaug {metadata.version('imagecorruptions-imaug')},")
    print(f"torch {torch.__version__}, {SIDE} px, severity {options.severity}, images per CPU-second on one thread\n")
    print("| corruption | peer | blemish, batch of 32 | ratio | blemish, one by one | ratio |")
    print("|---|---:|---:|---:|---:|---:|")
    ratios: list[tuple[float, float]] = []
    for name in options.only:
        few = pictures[: 2 if name == "zoom_blur" else BATCH]

        def peer(name: str = name, few: np.ndarray = few) -> None:
            for picture in few:
                imagecorruptions.corrupt(picture, corruption_name=name, severity=options.severity)

        def batch(name: str = name) -> None:
            blemish.corrupt(tensors, name, severity=options.severity)

        def singles(name: str = name) -> None:
            for number, tensor in enumerate(tensors[:SINGLES]):
                blemish.corrupt(tensor, name, severity=options.severity, ids=number)

        taken = seconds([peer, batch, singles], options.repetitions)
        rates = [count / second for count, second in zip((len(few), BATCH, SINGLES), taken, strict=True)]
        ratios.append((rates[1] / rates[0], rates[2] / rates[0]))
        row = f"{rates[0]:,.0f} | {rates[1]:,.0f} | {ratios[-1][0]:.1f} | {rates[2]:,.0f} | {ratios[-1][1]:.1f}"
        print(f"| {name} | {row} |", flush=True)
    means = [math.exp(statistics.fmean(map(math.log, column))) for column in zip(*ratios, strict=True)]
    print(f"| **geometric mean** | | | **{means[0]:.1f}** | | **{means[1]:.1f}** |")
    print(f"| lowest | | | {min(r[0] for r in ratios):.2f} | | {min(r[1] for r in ratios):.2f} |")


if __name__ == "__main__":
    main()
