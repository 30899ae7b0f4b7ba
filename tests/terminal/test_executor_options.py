"""The options that say where work is done: what they choose, what they refuse, and that results are the same."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import torch
import typer
from typer.testing import CliRunner

from blemish.cli.main import app
from blemish.core.errors import InputError, WorkerError
from blemish.evaluation.executors import Processes
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.executors import chosen_executor, own_device

runner = CliRunner()


def invoke(*arguments: object) -> tuple[int, str]:
    result = runner.invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "160"})
    return result.exit_code, result.output


@pytest.mark.parametrize(
    ("jobs", "gpus", "device", "cards", "expected"),
    [
        (None, None, "auto", 2, None),
        (1, None, "cuda", 2, None),
        (3, None, "cpu", 2, Processes(3)),
        (3, None, "auto", 0, Processes(3)),
        (3, None, "auto", 2, Processes(3, ("cuda:0", "cuda:1"))),
        (2, None, "cuda:1", 2, Processes(2, ("cuda:1",))),
        (None, "all", "auto", 2, Processes(None, ("cuda:0", "cuda:1"))),
        (None, "1", "auto", 2, Processes(None, ("cuda:0",))),
        (4, "all", "cuda", 2, Processes(4, ("cuda:0", "cuda:1"))),
    ],
)
def test_what_options_choose(
    monkeypatch: pytest.MonkeyPatch, jobs: int | None, gpus: str | None, device: str, cards: int, expected: object
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cards)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cards > 0)
    assert chosen_executor(jobs, gpus, None, device) == expected


def test_a_process_per_gpu() -> None:
    assert Processes(devices=("cuda:0", "cuda:1")).workers == 2
    assert Processes(devices=("cuda:0", "cuda:1")).device == torch.device("cuda:0")


@pytest.mark.parametrize(("gpus", "message"), [("3", "torch sees 2"), ("none", "expected all"), ("0", "expected all")])
def test_gpus_that_are_not_there(monkeypatch: pytest.MonkeyPatch, gpus: str, message: str) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(InputError, match=message):
        chosen_executor(None, gpus, device="auto")


def test_devices_that_contradict_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="--gpus all with --device cpu"):
        chosen_executor(None, "all", device="cpu")
    with pytest.raises(InputError, match="--device cuda, but torch sees no GPU"):
        chosen_executor(2, device="cuda")


def test_lost_workers_are_told_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Without a traceback, and with another exit code than bad input, which trying again does not mend."""

    @exit_on_input_error
    def command() -> None:
        raise WorkerError("failed: fog@3; all others are done")

    with pytest.raises(typer.Exit) as stopped:
        command()
    assert stopped.value.exit_code == 1
    assert capsys.readouterr().err.strip() == "error: failed: fog@3; all others are done"


def test_the_device_of_the_coordinator() -> None:
    assert own_device("cuda", None) == "cuda"
    assert own_device("cuda", "auto") == "auto"


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="ray is installed")
def test_without_ray(tmp_path: Path) -> None:
    code, output = invoke(
        "run", "imagenet-c", "-m", "demo:plain", "-d", "demo:digits", "-o", tmp_path, "--ray", "local"
    )
    assert code == 2
    assert "pip install 'blemish[ray]'" in output


def test_the_same_records_from_two_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for jobs in (1, 2):
        code, output = invoke(
            "run", "cifar10-c", "-m", "demo:plain", "-d", "demo:digits", "-o", tmp_path / str(jobs), "-n", 40,
            "--only", "fog@3,contrast@1", "--batch-size", 8, "--device", "cpu", "-j", jobs,
        )  # fmt: skip
        assert code == 0, output
    found = [
        {path.name: path.read_bytes() for path in (tmp_path / str(jobs)).glob("*/records/*")} for jobs in (1, 2)
    ]  # fmt: skip
    assert len(found[0]) == 3
    assert found[0] == found[1]


def test_overlap_in_two_processes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(24) % 3
    images = (rng.integers(0, 60, (24, 32, 32, 3)) + 60 * labels[:, None, None, None]).astype(np.uint8)
    np.savez(tmp_path / "data.npz", images=images, labels=labels)
    code, output = invoke(
        "train-overlap", "-c", "gaussian_noise,fog", "-d", tmp_path / "data.npz", "-t", tmp_path / "data.npz",
        "-o", tmp_path / "out", "--arch", "small_net", "--epochs", 1, "--batch-size", 8, "--device", "cpu", "-j", 2,
    )  # fmt: skip
    assert code == 0, output
    assert (tmp_path / "out" / "overlap.csv").is_file()
    assert len(list((tmp_path / "out" / "networks" / "models").glob("*.pt"))) == 3
