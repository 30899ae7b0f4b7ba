"""What each of two processes counts, in a module of its own, which spawned processes can import."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import distributed

from foreign import let_torchvision_be_imported

SEVERITIES = (1, 2)
BATCHES = {
    # (process, severity): predictions; all labels are 0.
    (0, 1): [0, 0, 0, 1],
    (0, 2): [0, 1],
    (1, 1): [1, 1],
    (1, 2): [1, 1, 1, 0, 1, 1],
}


def count(rank: int, folder: str, baseline: list[float]) -> None:
    """Count this process's batches, and write what the metric says of all of them."""
    let_torchvision_be_imported()  # as torchmetrics does, where it is installed
    from blemish.integrations.torchmetrics import CorruptionError
    from blemish.metrics.baselines import Baseline

    distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    try:
        errors = {f"fog@{severity}": error for severity, error in zip(SEVERITIES, baseline, strict=True)}
        metric = CorruptionError("fog", severities=SEVERITIES, baseline=Baseline("mine", errors=errors))
        for severity in SEVERITIES:
            preds = torch.tensor(BATCHES[rank, severity])
            metric.update(preds, torch.zeros_like(preds), severity)
        (Path(folder) / f"{rank}.txt").write_text(repr(float(metric.compute())))
    finally:
        distributed.destroy_process_group()
