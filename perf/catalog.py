"""Images per CPU-second of everything in the catalog and of every sequence: python perf/catalog.py [sensor: fog …].

With words, only of what begins with one of them. Programs that a corruption starts count as well.

One thread, batches of 32 pictures of 224 × 224 pixels, severity 3 (or the only one there is), the best of three runs.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable

import torch

import blemish
from cpu_settings import settle
from images import scenes

SIDE, BATCH, FLOOR = 224, 32, 400


def rate(work: Callable[[], int]) -> float:
    """Images per second of CPU time, the best of three runs after one that does not count."""
    work()
    best = 0.0
    for _ in range(3):
        start = _spent()
        images = work()
        best = max(best, images / (_spent() - start))
    return best


def _spent() -> float:
    """CPU time of this process and of those that it started and waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def main() -> None:
    """Print a table in Markdown, slowest first, and name what is too slow."""
    settle()
    tensors = torch.from_numpy(scenes(BATCH, SIDE)).permute(0, 3, 1, 2).contiguous()
    rates: dict[str, float] = {}
    words = tuple(sys.argv[1:]) or ("",)
    for name, corruption in blemish.catalog.items():
        if not name.startswith(words):
            continue
        try:
            corruption.check_files()
        except blemish.InputError as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue

        def corrupt(corruption: blemish.Corruption = corruption) -> int:
            return len(corruption(tensors, severity=corruption.only_severity or 3))

        rates[name] = rate(corrupt)
    for name, sequence in blemish.sequences.items():
        if not name.startswith(words):
            continue

        def play(sequence: blemish.PerturbationSequence = sequence) -> int:
            return sum(len(frame) for frame in sequence.frames(tensors[:4]))

        rates[name] = rate(play)
    print("| name | images or frames per CPU-second |\n|---|---:|")
    for name, value in sorted(rates.items(), key=lambda item: item[1]):
        print(f"| {name} | {value:,.0f} |")
    slow = [name for name, value in rates.items() if value < FLOOR]
    print(f"\nbelow {FLOOR}: {', '.join(slow) or 'none'}")


if __name__ == "__main__":
    main()
