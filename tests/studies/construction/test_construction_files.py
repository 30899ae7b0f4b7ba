"""Benchmarks made of names: every corruption at the severities it was published with."""

from __future__ import annotations

from dataclasses import replace

import pytest

import blemish
from blemish.studies.construction.benchmark_files import make_benchmark
from own_corruptions import shaded


def names(benchmark: blemish.Benchmark) -> list[str]:
    """The conditions but for the clean one."""
    return [str(condition) for condition in benchmark.conditions[1:]]


def test_built_in_corruptions_have_their_published_severities() -> None:
    made = make_benchmark("mine", ["fog", "noc:hue", "syn2nat:flip", "lp:l2"])
    fog, l2 = ([f"{name}@{level}" for level in range(1, 6)] for name in ("fog", "lp:l2"))
    assert names(made) == [*fog, "noc:hue@1-5", "syn2nat:flip@5", *l2]


def test_given_severities_hold_for_all() -> None:
    assert names(make_benchmark("mine", ["fog", "noc:hue"], severities=[2, 3.5])) == [
        *("fog@2", "fog@3.5"),
        *("noc:hue@2", "noc:hue@3.5"),
    ]


@pytest.mark.parametrize(
    ("settings", "levels"),
    [
        ({}, ["1", "2", "3", "4", "5"]),
        ({"severities": (2, 2.5)}, ["2", "2.5"]),
        ({"severities": "0.5-3"}, ["0.5-3"]),
        ({"only_severity": 4.0}, ["4"]),
    ],
)
def test_a_users_own_corruption(settings: dict[str, object], levels: list[str]) -> None:
    """From 1 to 5 unless it says otherwise; its severities are its own business, not its name's."""
    mine = replace(shaded, name="noc:mine", **settings)
    catalog = blemish.catalog.extended(mine)
    made = make_benchmark("mine", ["noc:mine"], catalog=catalog)
    assert names(made) == [f"noc:mine@{level}" for level in levels]
    assert made.conditions[1].steps[0].unit is mine
