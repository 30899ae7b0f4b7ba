"""Corruption error and mCE as metrics of torchmetrics."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import multiprocessing

from blemish import load_benchmark, score
from blemish.core.errors import InputError
from blemish.metrics.baselines import Baseline, published_baseline
from distributed_counts import BATCHES, count
from foreign import foreign
from synthetic_runs import severities, write_run

foreign("torchmetrics")

pytestmark = pytest.mark.slow

from blemish.integrations.torchmetrics import CorruptionError, MeanCorruptionError  # noqa: E402

MINE = Baseline("mine", errors={"fog@1": 0.5, "fog@2": 0.75})


def fog() -> CorruptionError:
    return CorruptionError("fog", severities=(1, 2), baseline=MINE)


def test_corruption_error_by_hand() -> None:
    """Errors of 1/4 and 2/4 against 1/2 and 3/4: CE = (0.25 + 0.5) / (0.5 + 0.75) = 0.6."""
    metric = fog()
    metric.update(torch.tensor([0, 0]), torch.tensor([0, 0]), 1)
    metric.update(torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([0, 0]), 1)
    metric.update(torch.tensor([1, 1, 0, 0]), torch.tensor([1, 1, 1, 1]), 2)
    assert metric.compute().item() == pytest.approx(0.6)
    metric.reset()
    assert metric.images.tolist() == metric.wrong.tolist() == [0, 0]
    for severity in (1, 2):
        metric.update(torch.tensor([1]), torch.tensor([0]), severity)
    assert metric.compute().item() == pytest.approx(2 / 1.25)


def test_mce_is_that_of_score(tmp_path: Path) -> None:
    """The records of a run, counted batch by batch, give the mCE and the CEs that `blemish.score` gives."""
    run = write_run(tmp_path, "net", severities(), images=40, benchmark={"baseline": "alexnet", "metric": "mce"})
    metric = MeanCorruptionError("imagenet-c")
    for condition in run.conditions[1:]:
        records = run.records(condition)
        for rows in np.array_split(np.arange(len(records)), 3):
            preds, target = torch.from_numpy(records.top5[rows, 0]), torch.from_numpy(records.labels[rows])
            metric.update(preds.long(), target.long(), str(condition))
    scores = score(run, replicates=100)
    assert metric.compute().item() == pytest.approx(scores.find("mce").estimate.value / 100, rel=1e-6)
    errors = metric.corruption_errors()
    assert errors["fog"] == pytest.approx(scores.find("ce", "fog").estimate.value / 100)
    assert list(errors) == list(load_benchmark("imagenet-c").groups)


def test_alexnet_against_itself_is_one() -> None:
    """AlexNet's published errors of fog, in ten thousands of images, by counting as many."""
    metric = CorruptionError("fog")
    base = published_baseline("alexnet")
    for severity in range(1, 6):
        wrong = round(10_000 * float(base.errors_of([metric.conditions[severity - 1]])[0]))
        preds = torch.zeros(10_000, dtype=torch.int64)
        preds[:wrong] = 1
        metric.update(preds, torch.zeros_like(preds), severity)
    assert metric.compute().item() == pytest.approx(1, abs=1e-3)


def test_two_processes_are_summed(tmp_path: Path) -> None:
    """By hand: at severity 1 3 of 6 are wrong, at 2 6 of 8; with the baseline 0.5 and 0.75, CE = 1.25 / 1.25 = 1.

    The mean of the CEs of the processes would be another number: (0.75 / 1.25 + (1 + 5 / 6) / 1.25) / 2.
    """
    assert sum(len(batch) for batch in BATCHES.values()) == 14
    multiprocessing.spawn(count, args=(str(tmp_path), [0.5, 0.75]), nprocs=2)
    said = [float((tmp_path / f"{rank}.txt").read_text()) for rank in range(2)]
    assert said == pytest.approx([1.0, 1.0])


def test_copies_and_devices() -> None:
    metric = pickle.loads(pickle.dumps(fog()))
    metric.update(torch.tensor([1]), torch.tensor([0]), 1)
    assert metric.clone().wrong.tolist() == [1, 0]
    assert metric.higher_is_better is False


def test_on_a_gpu(device: torch.device) -> None:
    metric = fog().to(device)
    for severity in (1, 2):
        metric.update(torch.tensor([1, 0], device=device), torch.tensor([0, 0], device=device), severity)
    result = metric.compute()
    assert result.device.type == device.type
    assert result.item() == pytest.approx(1 / 1.25)


def test_refusals() -> None:
    metric = fog()
    metric.update(torch.tensor([0]), torch.tensor([0]), 1)
    with pytest.raises(InputError, match=r"no images under fog@2; expected an update under each of the 2 conditions"):
        metric.compute()
    with pytest.raises(InputError, match="severity 3; expected one of 1, 2"):
        metric.update(torch.tensor([0]), torch.tensor([0]), 3)
    with pytest.raises(InputError, match=r"predictions of shape \(2,\) and labels of shape \(3,\)"):
        metric.update(torch.tensor([0, 1]), torch.tensor([0, 1, 2]), 1)
    with pytest.raises(InputError, match="predictions of shape"):
        metric.update(torch.tensor([0.5, 0.5]), torch.tensor([0, 1]), 1)
    with pytest.raises(InputError, match="baseline mine has no errors of fog@3"):
        CorruptionError("fog", severities=(3,), baseline=MINE)
    with pytest.raises(InputError, match="'fog@9' is none of the benchmark's; did you mean fog@"):
        MeanCorruptionError().update(torch.tensor([0]), torch.tensor([0]), "fog@9")
    with pytest.raises(InputError, match="benchmark digits-c names no baseline"):
        MeanCorruptionError("digits-c")
    with pytest.raises(InputError, match="no severities"):
        CorruptionError("fog", severities=())
    with pytest.raises(
        InputError, match="measured on images of 224 pixels, and this run has the preset cifar; expected"
    ):
        MeanCorruptionError("cifar10-c", baseline="alexnet")


def test_a_list_of_conditions() -> None:
    metric = MeanCorruptionError(["fog@1", "contrast"], baseline="alexnet")
    assert [str(condition) for condition in metric.conditions] == ["fog@1", *(f"contrast@{k}" for k in range(1, 6))]
