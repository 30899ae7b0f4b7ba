"""mPC, rPC, CD and rCD, against published cells and by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blemish.benchmarks.condition import CLEAN, Condition, parse_condition
from blemish.core.errors import InputError
from blemish.metrics.baselines import Baseline
from blemish.metrics.plan import make_plan
from blemish.metrics.table import Key

SHARED = Path(__file__).resolve().parents[2].parent / "shared"


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    """Cells of Michaelis et al. 2019, unpacked from their repository."""
    path = SHARED / "published" / "detection_c.json"
    if not path.is_file():
        pytest.skip("the published cells (../shared/published) are not beside this checkout")
    return dict(json.loads(path.read_text(encoding="utf-8")))


def numbers(cells: dict[str, list[float]], clean: float, baseline: Baseline | None = None) -> dict[Any, float]:
    """Every metric of a table of cells, by name and what it is of."""
    means: dict[Key, Any] = {("score", "clean"): np.asarray(clean)}
    conditions: list[Condition] = [CLEAN]
    for name, row in cells.items():
        for severity, value in enumerate(row, start=1):
            conditions.append(parse_condition(f"{name}@{severity}"))
            means["score", f"{name}@{severity}"] = np.asarray(value)
    plan = make_plan(conditions, means, baseline, family=lambda condition: condition.group)
    return {(metric.name, metric.of): float(metric.function(means)) for metric in plan.metrics}


def test_mpc_and_rpc_are_those_of_every_published_model(published: dict[str, Any]) -> None:
    corruptions, seen = published["benchmark_corruptions"], 0
    for kinds in published["results"].values():
        for models in kinds.values():
            for entry in models.values():
                found = numbers({name: entry[name] for name in corruptions}, entry["clean_P"])
                assert found["score", ""] == pytest.approx(entry["mPC"], abs=1e-5)  # cut off after five digits
                # The clean number is given to four digits.
                room = entry["rPC"] * 5.1e-5 / entry["clean_P"] + 1e-5
                assert found["rpc", ""] == pytest.approx(entry["rPC"], abs=room)
                seen += 1
    assert seen > 27  # boxes of 27 models, and masks of some


def test_cd_and_rcd_by_hand() -> None:
    """CD = Σ(1 − P) / Σ(1 − P_ref): (.4 + .6) / (.5 + .7); rCD: (.2 + .4) / (.2 + .4), from .2 and .3 when clean."""
    baseline = Baseline("ref", clean=0.3, errors={"fog@1": 0.5, "fog@2": 0.7}, quantity="score")
    found = numbers({"fog": [0.6, 0.4]}, 0.8, baseline)
    assert found["cd", "fog"] == found["mcd", ""] == pytest.approx(1.0 / 1.2)
    assert found["rcd", "fog"] == found["mrcd", ""] == pytest.approx(1.0)
    assert found["rpc", ""] == pytest.approx(0.5 / 0.8)


def test_a_baseline_of_errors_is_no_baseline_of_scores() -> None:
    found = numbers({"fog": [0.6, 0.4]}, 0.8, Baseline("alexnet", clean=0.4, errors={"fog@1": 0.5, "fog@2": 0.7}))
    assert ("rpc", "") in found
    assert ("cd", "fog") not in found


@pytest.mark.parametrize(("cells", "clean", "name"), [([1.5, 2.0], 3.0, "cd"), ([-1.0, 0.5], 0.5, "rpc")])
def test_numbers_without_a_meaning_are_refused(cells: list[float], clean: float, name: str) -> None:
    means: dict[Key, Any] = {("score", "clean"): np.asarray(clean)}
    means |= {("score", f"fog@{s}"): np.asarray(v) for s, v in enumerate(cells, start=1)}
    conditions = [CLEAN, parse_condition("fog@1"), parse_condition("fog@2")]
    baseline = Baseline("ref", clean=0.3, errors={"fog@1": 0.5, "fog@2": 0.7}, quantity="score")
    plan = make_plan(conditions, means, baseline, family=lambda condition: condition.group)
    metric = next(metric for metric in plan.metrics if (metric.name, metric.of) == (name, "fog"))
    with pytest.raises(InputError, match="scores"):
        metric.function(means)
