"""What a second core brings: python perf/threads.py [--only fog …] [--batch 32].

A batch of pictures of 224 × 224 pixels, severity 3, with one thread and with two, in turns; the least wall-clock
time of each. On a machine that others use as well the second thread waits for a core, and the ratio says little. The
last column says what sharing costs: the CPU time of the process with two threads over that with one.
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

SIDE, BATCH, ROUNDS = 224, 32, 25  # so many rounds of BATCH pictures, fewer of more


def least(name: str, batch: torch.Tensor) -> list[tuple[float, float]]:
    """With one thread and with two: the least seconds by the clock, and of the process's CPU time."""
    times: list[list[tuple[float, float]]] = [[], []]
    for _ in range(max(6, ROUNDS * BATCH // len(batch))):
        for threads, taken in zip((1, 2), times, strict=True):
            torch.set_num_threads(threads)
            start, work = time.perf_counter(), time.process_time()
            blemish.corrupt(batch, name, severity=3)
            taken.append((time.perf_counter() - start, time.process_time() - work))
    return [(min(wall for wall, _ in taken), min(work for _, work in taken)) for taken in times]


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=blemish.catalog.plain())
    parser.add_argument("--batch", type=int, default=BATCH)
    options = parser.parse_args()
    settle()
    batch = torch.from_numpy(scenes(options.batch, SIDE)).permute(0, 3, 1, 2).contiguous()
    print("| corruption | one thread, ms | two threads, ms | ratio | CPU time, ratio |")
    print("|---|---:|---:|---:|---:|")
    ratios = []
    for name in options.only:
        (one, alone), (two, shared) = least(name, batch)
        ratios.append((two / one, shared / alone))
        shown = " | ".join(f"{ratio:.2f}" for ratio in ratios[-1])
        print(f"| {name} | {1e3 * one:.2f} | {1e3 * two:.2f} | {shown} |", flush=True)
    means = [math.exp(statistics.fmean(map(math.log, column))) for column in zip(*ratios, strict=True)]
    print(f"| **geometric mean** | | | **{means[0]:.2f}** | **{means[1]:.2f}** |")


if __name__ == "__main__":
    main()
