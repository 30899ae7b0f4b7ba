"""Work of all kinds done by an executor, against the same work done here: what must not differ."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from blemish.data.cache import load
from blemish.data.open import open_source
from blemish.data.source import Source
from blemish.evaluation.executors import Executor
from blemish.export import corrupt_arrays, corrupt_tree, make_recipe
from blemish.models.open import open_model
from blemish.models.resnet import small_net
from blemish.studies.overlap.harness import Plan, train_all
from blemish.studies.overlap.training import Schedule
from blemish.studies.streams.calibration import Bench, calibrate
from blemish.studies.streams.images import from_source
from blemish.studies.streams.info import WalkInfo
from blemish.studies.streams.stream import Stream
from blemish.studies.streams.walks import Walk, WalkStep
from blemish.studies.streams.webdataset import materialise
from execution_jobs import once

KILL = "BLEMISH_TEST_KILL"
CPU = torch.device("cpu")


class KillingNet(nn.Module):
    """A small network that kills the worker that trains it, once, in its second epoch."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.net, self.calls = small_net(classes), 0

    def forward(self, images: Tensor) -> Tensor:
        self.calls += 1
        flag = os.environ.get(KILL)
        in_worker = multiprocessing.parent_process() is not None or "RAY_JOB_ID" in os.environ
        if flag and in_worker and self.calls == 5 and once(Path(flag)):
            os.kill(os.getpid(), signal.SIGKILL)
        return self.net(images)  # type: ignore[no-any-return]


def training_images() -> Tensor:
    generator = torch.Generator().manual_seed(5)
    base = torch.randint(0, 256, (3, 3, 16, 16), generator=generator)
    noise = torch.randint(-40, 41, (48, 3, 16, 16), generator=generator)
    return (base[torch.arange(48) % 3] + noise).clamp(0, 255).to(torch.uint8)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def check_training(executor: Executor, folder: Path, *, killed: bool) -> None:
    """The same weights, though a worker is killed in the middle; its successor goes on from its last epoch."""
    schedule = Schedule(epochs=3, batch=16, rate=0.05)
    plan = Plan(("gaussian_noise", "fog"), "execution_checks:KillingNet", 3, schedule, schedule, preset="cifar")
    images, labels = training_images(), torch.arange(48) % 3
    epochs: list[tuple[str, int]] = []
    found = {}
    for name in ("here", "there"):
        place = executor if name == "there" else None
        epochs.clear()
        trained = train_all(
            plan, images, labels, folder / name, device=CPU, executor=place, again=training_images,
            report=lambda title, done, *_: epochs.append((title, done)),
        )  # fmt: skip
        found[name] = {net.name: torch.load(net.weights, weights_only=True)["weights"] for net in trained}
    assert found["here"].keys() == found["there"].keys() == {"standard", "gaussian_noise", "fog"}
    for net, weights in found["here"].items():
        for key, values in weights.items():
            assert torch.equal(values, found["there"][net][key]), (net, key)
    every = sorted((net, done) for net in found["here"] for done in (1, 2, 3))
    # Epochs that were finished before the worker died are not repeated; of a cluster, the last word may be lost.
    assert (sorted(set(epochs)) if executor.reach == "cluster" else sorted(epochs)) == every
    assert not list((folder / "there").glob("models/unfinished*"))
    assert killed == Path(os.environ[KILL]).exists()


def calibration_images(count: int) -> Source:
    return replace(open_source("demo:digits").take(np.arange(count)), reopen=partial(calibration_images, count))


def check_calibration(executor: Executor, folder: Path) -> None:
    """The same surfaces, image by image, and the same files."""
    names, grid = ("contrast", "gaussian_noise", "fog"), (0.0, 2.5, 5.0)
    source = calibration_images(20)
    images = load(source)
    for name in ("here", "there"):
        model = open_model("demo:plain", device="cpu")
        bench = Bench(model, images, batch_size=16, grid=grid)
        steps: list[int] = []
        surfaces = calibrate(
            bench, names, folder=folder / name,
            executor=executor if name == "there" else None, source=source,
            progress=lambda done, _, steps=steps: steps.append(done),
        )  # fmt: skip
        assert list(surfaces) == [(a, b) for a in names for b in names if a != b]
        assert steps == [1, 2, 3, 4, 5, 6]
    assert len(contents(folder / "here")) == 7
    assert contents(folder / "here") == contents(folder / "there")


def check_materialised_stream(executor: Executor, folder: Path) -> None:
    """The same shards."""
    steps = (WalkStep("fog", 2.0, "contrast", 0.0, 30, 0.5, 0), WalkStep("fog", 1.0, "contrast", 2.0, 25, 0.5, 0))
    stream = Stream(from_source(open_source("demo:digits")), Walk(steps, WalkInfo(target=0.5), closed=False), batch=8)
    for name in ("here", "there"):
        place = executor if name == "there" else None
        assert materialise(stream, folder / name, shard_images=15, executor=place).written == 55
    assert len(contents(folder / "here")) == 5
    assert contents(folder / "here") == contents(folder / "there")


def check_corrupted_copies(executor: Executor, folder: Path) -> None:
    """The same trees and arrays."""
    levels = np.random.default_rng(0).integers(0, 256, (6, 32, 40, 3), dtype=np.uint8)
    for i, picture in enumerate(levels):
        path = folder / "pictures" / f"class{i % 2}" / f"{i}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture).save(path)
    np.save(folder / "arrays.npy", levels)
    recipe = make_recipe(["gaussian_noise", "fog"], [1, 4], file_format="png")
    works: list[Callable[..., object]] = [
        partial(corrupt_tree, folder / "pictures"), partial(corrupt_arrays, folder / "arrays.npy")
    ]  # fmt: skip
    for number, work in enumerate(works):
        for name in ("here", "there"):
            work(folder / name / str(number), recipe, executor=executor if name == "there" else None)
    assert len(contents(folder / "here")) == 24 + 2 + 2 + 2
    assert contents(folder / "here") == contents(folder / "there")
