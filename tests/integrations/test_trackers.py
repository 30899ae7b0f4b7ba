"""Scores in MLflow, TensorBoard and Weights & Biases."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from blemish import score
from blemish.integrations.trackers import log_to_mlflow, log_to_tensorboard, log_to_wandb, tracked
from blemish.metrics.scores import Scores
from foreign import foreign
from synthetic_runs import severities, write_run

MCE = "imagenet-c/mce"


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Scores:
    folder = tmp_path_factory.mktemp("results")
    benchmark = {"name": "imagenet-c", "baseline": "alexnet", "metric": "mce"}
    return score(write_run(folder, "net", severities(), images=40, benchmark=benchmark), replicates=100)


def test_names_and_numbers(scores: Scores) -> None:
    numbers = tracked(scores)
    assert numbers[MCE] == scores.find("mce").estimate.value
    assert numbers[f"{MCE}_low"] == scores.find("mce").estimate.low
    assert numbers[f"{MCE}_high"] == scores.find("mce").estimate.high
    assert numbers["imagenet-c/ce.fog"] == scores.find("ce", "fog").estimate.value
    assert numbers["imagenet-c/error.fog.3"] == scores.find("error", "fog@3").estimate.value
    assert len(tracked(scores, intervals=False)) == len(scores.rows)
    assert len(numbers) == 3 * len(scores.rows)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_mlflow(scores: Scores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow = foreign("mlflow")
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    with mlflow.start_run() as run:
        log_to_mlflow(scores, step=3)
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, MCE)
    assert [(entry.step, entry.value) for entry in history] == [(3, scores.find("mce").estimate.value)]
    kept = mlflow.MlflowClient().get_run(run.info.run_id).data.metrics
    assert kept == tracked(scores)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard(scores: Scores, tmp_path: Path) -> None:
    foreign("tensorboard")
    events = foreign("tensorboard.backend.event_processing.event_accumulator")
    with foreign("torch.utils.tensorboard").SummaryWriter(str(tmp_path)) as writer:
        log_to_tensorboard(scores, writer, step=3)
    read = events.EventAccumulator(str(tmp_path), size_guidance={events.SCALARS: 0}).Reload()
    assert set(read.Tags()["scalars"]) == tracked(scores).keys()
    (entry,) = read.Scalars(MCE)
    assert (entry.step, entry.value) == (3, pytest.approx(scores.find("mce").estimate.value))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_wandb(scores: Scores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an account: a run that stays on the disk."""
    monkeypatch.setattr(sys, "exit", sys.exit)  # which it puts its own in the place of
    monkeypatch.setenv("WANDB_SILENT", "true")
    wandb = foreign("wandb")
    run: Any = wandb.init(mode="offline", dir=str(tmp_path), project="blemish")
    try:
        log_to_wandb(scores, run, step=3)
        log_to_wandb(scores)  # to the active run; only now those of step 3 are complete
        kept = {name: run.summary[name] for name in tracked(scores)}
    finally:
        run.finish()
    assert kept == tracked(scores)
