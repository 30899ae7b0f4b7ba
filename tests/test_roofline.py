"""The table of counts behind perf/roofline.py covers the catalog."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

import blemish

PERF = Path(__file__).resolve().parents[1] / "perf"


@pytest.fixture(scope="module")
def counts() -> ModuleType:
    spec = importlib.util.spec_from_file_location("roofline_counts", PERF / "roofline_counts.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_corruption_is_counted(counts: ModuleType) -> None:
    assert set(counts.COUNTS) == set(blemish.catalog)


def test_the_benchmark_is_the_papers(counts: ModuleType) -> None:
    conditions = blemish.load_benchmark("imagenet-c").conditions
    assert set(counts.BENCHMARK) == {name for condition in conditions for name in condition.names()}


def test_counts_are_of_this_world(counts: ModuleType) -> None:
    for name, count in counts.COUNTS.items():
        assert 0 < count.operations < 1500, name  # the most: 21 turns of 16 taps
        assert 0 <= count.more_bytes <= 4, name
        assert count.what, name
