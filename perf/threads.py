"""What a second core brings: python perf/threads.py [--only fog …].

A batch of 32 pictures of 224 × 224 pixels, severity 3, with one thread and with two, in turns; the least wall-clock
time of each. On a machine that others use as well a ratio is too high rather than too low.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time

import torch

import blemish
from cpu_settings import settle
from images import scenes

SIDE, BATCH, ROUNDS = 224, 32, 25


def least(name: str, batch: torch.Tensor) -> tuple[float, float]:
    """The least seconds with one thread and with two."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for threads, taken in zip((1, 2), times, strict=True):
            torch.set_num_threads(threads)
            start = time.perf_counter()
            blemish.corrupt(batch, name, severity=3)
            taken.append(time.perf_counter() - start)
    return min(times[0]), min(times[1])


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=blemish.catalog.plain())
    options = parser.parse_args()
    settle()
    batch = torch.from_numpy(scenes(BATCH, SIDE)).permute(0, 3, 1, 2).contiguous()
    print("| corruption | one thread, ms | two threads, ms | ratio |\n|---|---:|---:|---:|")
    ratios = []
    for name in options.only:
        one, two = least(name, batch)
        ratios.append(two / one)
        print(f"| {name} | {1e3 * one:.2f} | {1e3 * two:.2f} | {two / one:.2f} |", flush=True)
    print(f"| **geometric mean** | | | **{math.exp(statistics.fmean(map(math.log, ratios))):.2f}** |")


if __name__ == "__main__":
    main()
