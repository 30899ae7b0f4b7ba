"""Is it quicker to train networks side by side? python perf/overlap_pace.py [--count 10] [--side 32].

Networks for overlap, one per corruption, trained for a few batches of 256 synthetic images: one by one, and several at
once as one network of grouped layers. Corrupting half of every batch on the device is part of it, and is also left out
for comparison. Seconds for all networks; the warm-up is not counted.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import torch

from blemish.studies.overlap.pace import faster_size, group_seconds
from blemish.studies.overlap.plan import Plan
from blemish.studies.overlap.training import Schedule
from overlap_cifar import CORRUPTIONS


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", type=int, default=32)
    parser.add_argument("--preset", default="cifar")
    options = parser.parse_args()
    device = torch.device("cuda")
    images = torch.randint(0, 256, (2048, 3, options.side, options.side), dtype=torch.uint8)
    sizes = (1, 2, 5, 10)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {len(CORRUPTIONS)} networks, 8 batches of 256\n")
    print(f"| architecture | corrupted | {' | '.join(f'{size} at once' for size in sizes)} | chosen |")
    print(f"|---|---|{'---:|' * (len(sizes) + 1)}")
    for architecture in ("small_net", "resnet18_small"):
        for corrupted in (0.0, 0.5):
            plan = Plan(CORRUPTIONS, architecture, 10, Schedule(epochs=4), preset=options.preset)
            plan = replace(plan, schedule=replace(plan.schedule, corrupted=corrupted))
            row = []
            for size in sizes:
                groups = [CORRUPTIONS[begin : begin + size] for begin in range(0, len(CORRUPTIONS), size)]
                row.append(sum(group_seconds(plan, group, images, device) for group in groups))
            chosen = faster_size(plan, CORRUPTIONS, images, device)
            shown = " | ".join(f"{value:.2f}" for value in row)
            print(f"| {architecture} | {'half' if corrupted else 'none'} | {shown} | {chosen} |", flush=True)


if __name__ == "__main__":
    main()
