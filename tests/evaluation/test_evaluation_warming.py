"""First uses while images are read: everything is called once, nothing is measured, and failures are the run's."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import blemish
from blemish.benchmarks.condition import CLEAN, parse_condition
from blemish.core.types import Shape
from blemish.data.array_source import array_source
from blemish.evaluation import warming as module
from blemish.evaluation.warming import Warming, warming

CONDITIONS = [CLEAN, *map(parse_condition, ("contrast@3", "fog@2+gaussian_noise@1", "p:brightness@1"))]


class Net(nn.Module):
    """Notes the sizes of the batches that it is shown."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: list[tuple[int, ...]] = []
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, values: Tensor) -> Tensor:
        self.shown.append(tuple(values.shape))
        return self.weight * values.flatten(1)[:, :4]


def classifier(net: nn.Module) -> blemish.Classifier:
    return blemish.from_module(net, name="net", preprocessing=blemish.Preprocessing())


def all_of(warm: Warming) -> Warming:
    """Wait for everything, which a run does not."""
    with warm:
        warm._thread.join()
    return warm


def test_everything_is_called_once() -> None:
    net = Net()
    model = classifier(net)
    warm = all_of(Warming(model, CONDITIONS, blemish.Protocol(storage="jpeg85"), Shape(3, 32, 40), batch_size=5))
    assert warm.done == 5  # the library of records, the network, and three conditions with steps
    assert net.shown == [(5, 3, 32, 40)]
    assert model.outputs_seen is None  # the first batch of the run is still looked at


def test_frames_are_cropped() -> None:
    net = Net()
    warm = all_of(
        Warming(classifier(net), CONDITIONS[-1:], blemish.Protocol(), Shape(3, 40, 40), batch_size=3, crop=32)
    )
    assert warm.done == 3
    assert net.shown == [(3, 3, 32, 32)]


def test_failures_are_left_to_the_run() -> None:
    class Failing(nn.Module):
        def forward(self, values: Tensor) -> Tensor:
            raise ValueError(f"no {len(values)}")

    model = classifier(Failing())
    assert all_of(Warming(model, CONDITIONS, blemish.Protocol(), Shape(3, 32, 32), batch_size=2)).done == 4


def test_functions_of_others_are_not_called() -> None:
    model = replace(classifier(Net()), module=None)
    assert all_of(Warming(model, CONDITIONS, blemish.Protocol(), Shape(3, 32, 32), batch_size=2)).done == 4


def test_leaving_stops_it() -> None:
    began, go_on = threading.Event(), threading.Event()

    class Slow(nn.Module):
        def forward(self, values: Tensor) -> Tensor:
            began.set()
            go_on.wait(30)
            return values.flatten(1)

    warm = Warming(classifier(Slow()), CONDITIONS, blemish.Protocol(), Shape(3, 32, 32), batch_size=2)
    with warm:
        began.wait(30)
        warm._stop.set()
        go_on.set()
    assert warm.done == 2  # the library of records, and what was under way


@pytest.fixture
def source(tmp_path: Path) -> blemish.Source:
    levels = np.random.default_rng(0).integers(0, 256, (10, 32, 32, 3), dtype=np.uint8)
    np.savez(tmp_path / "images.npz", images=levels, labels=np.arange(10) % 4)
    return array_source(tmp_path / "images.npz")


def test_when_there_is_something_to_do(source: blemish.Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU is only pretended: the thread is not started."""
    benchmark = replace(blemish.load_benchmark("imagenet-c"), protocol=blemish.Protocol())
    on_gpu = replace(classifier(Net()), device=torch.device("cuda"))
    found = warming(on_gpu, benchmark, source, tmp_path, 0, None)
    assert isinstance(found, Warming)
    assert (found._shape, found._batch_size) == (Shape(3, 32, 32), 10)
    asked = warming(on_gpu, benchmark, source, tmp_path, 0, 4)
    assert isinstance(asked, Warming)
    assert asked._batch_size == 4
    pictures = replace(source, read=lambda i: source.read(i))  # whose size only decoding tells
    for model, images in ((classifier(Net()), source), (on_gpu, pictures)):
        assert not isinstance(warming(model, benchmark, images, tmp_path, 0, None), Warming)
    monkeypatch.setattr(module, "record_path", lambda *_: Path(__file__))
    assert not isinstance(warming(on_gpu, benchmark, source, tmp_path, 0, None), Warming)
