"""On a GPU nothing waits for the device: neither corruptions, nor sequences, nor the way of a batch through a model."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

import blemish
from blemish.benchmarks.condition import parse_condition
from blemish.data.cache import load
from blemish.evaluation.measure import Measurer
from blemish.evaluation.plan import plan_for
from blemish.models.speed import Precision, speed_up
from blemish.ops.fused import kernels_for
from codec_units import skip_by_codec
from execution_jobs import Net, benchmark
from execution_jobs import pictures as source
from frost_files import skip_without_files
from pictures import pictures
from waiting import no_waiting


def skip_where_edges_are_traced(name: str, device: torch.device) -> None:
    if name.endswith("spatter") and kernels_for(device) is None:
        pytest.skip("tracing edges without Triton asks whether it is done")


def test_waiting_is_noticed(device: torch.device) -> None:
    value = torch.ones(1, device=device)
    with no_waiting(), pytest.raises(RuntimeError, match="synchroniz"):
        value.item()


@pytest.mark.parametrize("name", list(blemish.catalog))
def test_corruptions(name: str, device: torch.device) -> None:
    """After a first call, which sends tables and compiles kernels."""
    skip_where_edges_are_traced(name, device)
    images = pictures(8, 3, 96, 96).to(device)
    corruption = skip_without_files(skip_by_codec(blemish.catalog[name], "which works on the CPU"))
    severity = corruption.only_severity or 3.0
    for seed in (0, 1):
        corruption(images, severity=severity, seed=seed)
    with no_waiting():
        corruption(images, severity=severity, seed=2)


@pytest.mark.parametrize("name", list(blemish.sequences))
def test_sequences(name: str, device: torch.device) -> None:
    skip_where_edges_are_traced(name, device)
    images = pictures(4, 3, 96, 96).to(device)
    sequence = blemish.sequences[name]
    for seed in (0, 1):
        list(sequence.frames(images, seed=seed))
    with no_waiting():
        list(sequence.frames(images, seed=2))


@pytest.mark.parametrize("precision", ["float32", "float16"])
@pytest.mark.parametrize("condition", ["clean", "snow@3", "p:tilt@1"])
def test_evaluation(condition: str, precision: Precision, device: torch.device) -> None:
    """All batches of a condition are queued before anything is waited for."""
    model = speed_up(blemish.from_module(Net(), name="net", device="cuda"), precision=precision)
    chosen = benchmark("snow@3")
    images = load(source(sizes=((32, 32),)))
    plan = plan_for(model, images, [parse_condition(condition)], protocol=chosen.protocol, batch_size=16)
    measurer = Measurer(replace(plan, zipf=True))
    counts: list[int] = []
    expected = measurer.queue(plan.conditions[0], images, {}, counts.append)()
    with no_waiting():
        records = measurer.queue(plan.conditions[0], images, {}, counts.append)
    found = records()
    assert found.top5.tolist() == expected.top5.tolist()
    assert found.confidence.tolist() == expected.confidence.tolist()
    assert device.type == model.device.type
