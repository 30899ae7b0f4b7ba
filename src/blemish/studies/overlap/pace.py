"""How many networks to train at once: the number that is quickest, found by training some for a moment."""

from __future__ import annotations

import time
from collections.abc import Sequence

import torch
from torch import Tensor

from blemish.studies.overlap.plan import ARCHITECTURES, Plan
from blemish.studies.overlap.trainees import make_net
from blemish.studies.overlap.training import Trainer

_BATCHES = 8


def faster_size(plan: Plan, names: Sequence[str], images: Tensor, device: torch.device) -> int:
    """One by one, half of the networks at a time, or all at once: whichever trains ``names`` soonest.

    Corrupting is part of it. A network outside this package, and a CPU, take one at a time.
    """
    if len(names) < 2 or plan.architecture not in ARCHITECTURES or device.type == "cpu":
        return 1
    sizes = sorted({1, -(-len(names) // 2), len(names)})
    return min(sizes, key=lambda size: _all_seconds(plan, names, images, device, size))


def _all_seconds(plan: Plan, names: Sequence[str], images: Tensor, device: torch.device, size: int) -> float:
    groups = [names[begin : begin + size] for begin in range(0, len(names), size)]
    try:
        return sum(group_seconds(plan, group, images, device) for group in groups)
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
        return float("inf")


def group_seconds(plan: Plan, names: Sequence[str], images: Tensor, device: torch.device) -> float:
    """How long a few steps of networks that are trained at once take, corruption included, after a warm-up."""
    schedule = plan.fine_tune or plan.schedule
    count = min(len(images), _BATCHES * schedule.batch)
    corruptors = [plan.corruptor(name, schedule) for name in names]
    net = make_net(plan, len(names), None)
    labels = torch.zeros(count, dtype=torch.int64)
    trainer = Trainer(net, corruptors, images[:count].to(device), labels, schedule, device)
    trainer.run_epoch()
    start = time.perf_counter()
    trainer.run_epoch()  # waits for the device, because it returns a number
    return time.perf_counter() - start
