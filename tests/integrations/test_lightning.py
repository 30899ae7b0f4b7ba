"""A network that is measured while Lightning trains it."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from blemish import find_runs, open_run, score
from blemish.benchmarks.benchmark import Benchmark
from blemish.benchmarks.condition import parse_condition
from blemish.core.errors import InputError
from blemish.metrics.baselines import Baseline
from blemish.models.base import Preprocessing
from foreign import foreign
from toy_runs import CLASSES, source

lightning = foreign("lightning.pytorch")

pytestmark = [
    pytest.mark.slow,
    # Lightning's own advice, of workers and of intervals of logging; and what older parts of it call.
    pytest.mark.filterwarnings("ignore::UserWarning:lightning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

from blemish.integrations.lightning import RobustnessCallback  # noqa: E402

FOGS = Benchmark("fogs", "", "mce", tuple(parse_condition(text) for text in ("fog@1", "fog@2")))
MINE = Baseline("mine", clean=0.4, errors={"fog@1": 0.5, "fog@2": 0.75})
RGB = Preprocessing(mean=(0.5,) * 3, std=(0.5,) * 3)


class Net(lightning.LightningModule):  # type: ignore[misc, name-defined]
    """A small network with dropout and batch norm: what is measured must not train it."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Flatten(), nn.Linear(3 * 32 * 32, CLASSES), nn.BatchNorm1d(CLASSES), nn.Dropout(0.2)
        )
        self.modes: list[bool] = []

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.net(images)
        return scores

    def training_step(self, batch: Any, _: int) -> Tensor:
        self.modes.append(self.training and self.net[2].training)
        return nn.functional.cross_entropy(self(batch[0]), batch[1])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.01)


def train(folder: Path, callbacks: list[Any], *, epochs: int = 4, accelerator: str = "cpu", **settings: Any) -> Net:
    lightning.seed_everything(0, verbose=False)
    data = TensorDataset(torch.rand(12, 3, 32, 32), torch.arange(12) % CLASSES)
    net = Net()
    trainer = lightning.Trainer(
        default_root_dir=folder,
        max_epochs=epochs,
        accelerator=accelerator,
        devices=1,
        callbacks=callbacks,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **{"logger": None, **settings},
    )
    trainer.fit(net, DataLoader(data, batch_size=4, shuffle=True))
    return net


def callback(**settings: Any) -> RobustnessCallback:
    every = settings.pop("every_n_epochs", 2)
    return RobustnessCallback(FOGS, every, data=source(), preprocessing=RGB, baseline=MINE, **settings)


def test_numbers_are_logged_and_records_kept(tmp_path: Path) -> None:
    logger = foreign("lightning.pytorch.loggers").CSVLogger(tmp_path, name="logs")
    measured = callback()
    train(tmp_path, [measured], logger=logger)
    assert sorted(measured.runs) == [1, 3]
    folder = Path(logger.log_dir)
    with (folder / "metrics.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row.get("robustness/mce")]
    assert [int(row["step"]) for row in rows] == [6, 12]
    for epoch, row in zip((1, 3), rows, strict=True):
        (run,) = find_runs([folder / "robustness" / f"epoch-{epoch:03d}"])
        scores = score(open_run(run.folder), baseline=MINE)
        assert float(row["robustness/mce"]) == pytest.approx(scores.find("mce").estimate.value)
        assert float(row["robustness/error"]) == pytest.approx(scores.find("error").estimate.value)
        assert float(row["robustness/clean_error"]) == pytest.approx(scores.find("error", "clean").estimate.value)
        assert run.info.model.weights == measured.runs[epoch].info.model.weights
    assert measured.runs[1].info.model.weights != measured.runs[3].info.model.weights


def test_a_list_of_conditions_and_weights_in_half_precision(tmp_path: Path) -> None:
    measured = RobustnessCallback(["fog@1", "contrast@2"], data=source(), preprocessing=RGB)
    train(tmp_path, [measured], epochs=1, precision="bf16-true")
    assert list(measured.runs[0]) == ["clean", "fog@1", "contrast@2"]
    assert measured.runs[0].info.model.kind == "torch (bfloat16)"


def test_training_goes_on_as_without_it(tmp_path: Path) -> None:
    alone = train(tmp_path / "alone", [])
    beside = train(tmp_path / "beside", [callback(every_n_epochs=1)])
    assert all(beside.modes)
    assert len(beside.modes) == len(alone.modes) == 12
    states = zip(alone.state_dict().items(), beside.state_dict().items(), strict=True)
    assert all(name == other and torch.equal(one, two) for (name, one), (other, two) in states)


def test_on_a_gpu(tmp_path: Path, device: torch.device) -> None:
    measured = callback(every_n_epochs=1)
    net = train(tmp_path, [measured], epochs=1, logger=False, accelerator=device.type)
    assert all(net.modes)
    assert measured.scores[0].find("error").estimate.value > 0


def test_without_a_logger_the_records_are_below_the_root(tmp_path: Path) -> None:
    train(tmp_path, [callback()], epochs=2, logger=False)
    assert [run.folder.parent.name for run in find_runs([tmp_path / "robustness" / "epoch-001"])] == ["epoch-001"]


def test_a_metric_that_cannot_be_computed_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    measured = RobustnessCallback(FOGS, 1, data=source(), preprocessing=RGB, out=tmp_path / "out")
    train(tmp_path, [measured], epochs=1, logger=False)
    assert "epoch 0: mce of fogs is not logged:" in caplog.text
    assert measured.scores[0].find("error").estimate.value > 0


def test_results_of_another_training_are_refused_before_it_begins(tmp_path: Path) -> None:
    train(tmp_path, [callback(out=tmp_path / "out")], epochs=2, logger=False)
    with pytest.raises(InputError, match="holds results of epoch 1 already, and this training begins with epoch 0"):
        train(tmp_path, [callback(out=tmp_path / "out")], epochs=2, logger=False)


def test_images_that_do_not_fit_are_refused_before_it_begins(tmp_path: Path) -> None:
    measured = RobustnessCallback(FOGS, 1, data=source(), preprocessing=Preprocessing(channels="gray"))
    with pytest.raises(InputError, match="refuses an input of shape"):
        train(tmp_path, [measured], logger=False)
    assert not (tmp_path / "robustness").exists()


@pytest.mark.parametrize("every", [0, 1.5, True, "2"])
def test_refusals(every: Any) -> None:
    with pytest.raises(InputError, match=r"every_n_epochs .*; expected a whole number from 1"):
        callback(every_n_epochs=every)


def test_the_first_of_two_processes_measures(tmp_path: Path) -> None:
    tests = Path(__file__).resolve().parents[1]
    paths = os.pathsep.join([str(tests), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-W", "ignore", str(tests / "ddp_training.py"), str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": paths, "CUDA_VISIBLE_DEVICES": ""}
    subprocess.run(command, env=env, capture_output=True, check=True, timeout=300)
    assert [(tmp_path / f"rank-{rank}.txt").read_text() for rank in range(2)] == ["0 1", ""]
    assert len(list((tmp_path / "robustness").glob("epoch-*/Net/run.json"))) == 2
