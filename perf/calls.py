"""What a call costs beside the pixels: python perf/calls.py.

CPU time of one call on one thread, the least over fifteen rounds of forty calls. A picture of 8 × 8 pixels has next to
no pixels, so what a call on it takes is what every call takes; kinds of images are compared at 224 × 224.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from PIL import Image

import blemish
from cpu_settings import settle
from images import scenes

SIDE, CALLS, ROUNDS = 224, 40, 15


def microseconds(call: Callable[[], object]) -> float:
    """The least CPU time of a call."""
    best = float("inf")
    for _ in range(ROUNDS + 1):
        start = time.process_time()
        for _ in range(CALLS):
            call()
        best = min(best, time.process_time() - start)
    return best / CALLS * 1e6


def main() -> None:
    """Print two tables in Markdown."""
    settle()
    picture = scenes(1, SIDE)[0]
    tensor = torch.from_numpy(picture).permute(2, 0, 1).contiguous()
    small = tensor[:, :8, :8].contiguous()
    print("| corruption | 8 × 8 pixels, µs |\n|---|---:|")
    for name in blemish.catalog.plain():
        taken = microseconds(lambda name=name: blemish.corrupt(small, name, 3, ids=7))
        print(f"| {name} | {taken:.0f} |", flush=True)
    pil, last = Image.fromarray(picture), torch.from_numpy(picture).permute(2, 0, 1)
    corrupt = blemish.Corrupt("contrast", 3)
    kinds: dict[str, Callable[[], object]] = {
        "a uint8 tensor (C, H, W), with an id": lambda: blemish.corrupt(tensor, "contrast", 3, ids=7),
        "`Corrupt`, with an id": lambda: corrupt(tensor, id=7),
        "`Corrupt`, without an id: the content is hashed": lambda: corrupt(tensor),
        "a tensor whose channels come last in memory": lambda: blemish.corrupt(last, "contrast", 3, ids=7),
        "a NumPy array (H, W, C)": lambda: blemish.corrupt(picture, "contrast", 3, ids=7),
        "a PIL picture": lambda: blemish.corrupt(pil, "contrast", 3, ids=7),
        "a float32 tensor": lambda values=tensor / 255: blemish.corrupt(values, "contrast", 3, ids=7),
    }
    print("\n| contrast of 224 × 224 pixels as … | µs |\n|---|---:|")
    for kind, call in kinds.items():
        print(f"| {kind} | {microseconds(call):.0f} |", flush=True)


if __name__ == "__main__":
    main()
