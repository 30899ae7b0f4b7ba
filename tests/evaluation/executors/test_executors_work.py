"""Training, calibration and materialisation in worker processes: the same results as without them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from blemish.core.errors import InputError
from blemish.evaluation.executors import Processes
from blemish.models.base import Classifier
from blemish.models.portable import portable
from blemish.studies.overlap.harness import Plan, train_all
from blemish.studies.overlap.training import Schedule
from execution_checks import (
    KILL,
    check_calibration,
    check_corrupted_copies,
    check_materialised_stream,
    check_training,
    training_images,
)

TWO = Processes(2, threads=1)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KILL, str(tmp_path / "killed"))
    check_training(TWO, tmp_path, killed=True)


def test_calibration(tmp_path: Path) -> None:
    check_calibration(TWO, tmp_path)


def test_streams(tmp_path: Path) -> None:
    check_materialised_stream(TWO, tmp_path)


def test_corrupted_copies(tmp_path: Path) -> None:
    check_corrupted_copies(TWO, tmp_path)


def test_a_network_that_cannot_be_built_is_told(tmp_path: Path) -> None:
    plan = Plan((), "execution_checks:nothing", 3, Schedule(epochs=1, batch=16))
    with pytest.raises(InputError, match=r"execution_checks:nothing"):
        train_all(plan, training_images(), torch.arange(48) % 3, tmp_path, device=torch.device("cpu"), executor=TWO)
    assert not list(tmp_path.glob("models/*"))


def test_other_weights_are_noticed() -> None:
    model = Classifier("mine", "torch", torch.nn.Flatten(), "first", reopen=_other)
    with pytest.raises(InputError, match=r"model mine: a worker has other weights \(second\)"):
        portable(model).open(torch.device("cpu"))


def _other(device: torch.device) -> Classifier:
    return Classifier("mine", "torch", torch.nn.Flatten(), "second", device=device)
