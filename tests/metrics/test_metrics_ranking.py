"""Runs ranked by their headline: the same p-values as comparing pair by pair, and what has no rank."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from blemish.core.errors import InputError
from blemish.evaluation.runs import Run
from blemish.metrics.compare import compare
from blemish.metrics.rank_groups import rank_groups
from blemish.metrics.ranking import comparable, rank_runs
from blemish.metrics.table import Table
from synthetic_runs import severities, write_run

NAMES = ("fog", "snow", "gaussian_noise")
CLEAN = {"good": (0.9, 0.7), "twin": (0.9, 0.7), "bad": (0.8, 0.3), "worse": (0.7, 0.2)}


def test_as_if_compared_pair_by_pair(tmp_path: Path) -> None:
    """The signs are drawn once for all models; `compare` draws the same for each pair."""
    runs = [
        write_run(tmp_path, name, severities(NAMES, clean=clean, worst=worst), seed=number, images=150)
        for number, (name, (clean, worst)) in enumerate(CLEAN.items())
    ]
    ranking = rank_runs(runs, replicates=400)
    p_values = np.ones((4, 4))
    for one, other in combinations(range(4), 2):
        row = compare(runs[one], runs[other], replicates=400).find("error")
        p_values[one, other] = p_values[other, one] = row.p_value
    values = [
        100 * float(np.mean([1 - run[f"{c}@{s}"].correct.mean() for c in NAMES for s in range(1, 6)])) for run in runs
    ]
    expected = rank_groups(values, p_values)
    assert [(p.index, p.rank, p.letters) for p in ranking.places] == [(p.index, p.rank, p.letters) for p in expected]
    assert [p.value for p in ranking.places] == pytest.approx([p.value for p in expected])
    assert (ranking.metric, ranking.pairs, ranking.swaps) == ("error", 6, 400)
    # The twins are alike; the others are worse than both.
    assert {runs[p.index].name: p.rank for p in ranking.places}["good"] == "1–2"
    assert {runs[p.index].name: p.low for p in ranking.places}["bad"] == 3


def test_swaps_suffice_for_many_pairs(tmp_path: Path) -> None:
    """With the ten swaps that were asked for, no p could be below 1/11, and nothing would ever be told apart."""
    runs = [
        write_run(tmp_path, f"m{number}", {"clean": 0.9, "fog@3": level}, seed=number, images=200)
        for number, level in enumerate((0.9, 0.5, 0.1))
    ]
    ranking = rank_runs(runs, replicates=10)
    assert ranking.swaps == 120
    assert [place.rank for place in ranking.places] == ["1", "2", "3"]


def test_what_has_no_rank(tmp_path: Path) -> None:
    fine = write_run(tmp_path, "fine", {"clean": 0.9, "fog@3": 0.5}, images=100)
    lost = write_run(tmp_path, "lost", {"clean": 0.1, "fog@3": 0.1}, images=100)
    half = write_run(tmp_path, "half", {"clean": 0.9, "fog@3": None}, images=100)
    ranking = rank_runs([lost, fine, half], replicates=50)
    assert [place.index for place in ranking.places] == [1]
    assert "above chance" in ranking.unranked[0]
    assert ranking.unranked[2] == "no records of fog@3"
    with pytest.raises(InputError, match="no model is better than chance"):
        rank_runs([lost], replicates=50)


def test_without_a_baseline_the_mean_error_stands_in(tmp_path: Path) -> None:
    runs = [write_run(tmp_path, n, severities(NAMES), images=60, benchmark={"metric": "mce"}) for n in ("a", "b")]
    assert rank_runs(runs, replicates=50).metric == "error"
    relative = rank_runs(runs, replicates=50, baseline=runs[1])
    assert relative.metric == "mce"
    assert {runs[p.index].name: p.value for p in relative.places}["b"] == pytest.approx(100)


def test_runs_that_were_not_measured_alike(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path, "a", {"clean": 0.9, "fog@3": 0.5}),
        write_run(tmp_path, "b", {"clean": 0.9, "fog@3": 0.5}, protocol={"seed": 7}),
        write_run(tmp_path, "c", {"clean": 0.9, "fog@3": 0.6}),
    ]
    assert comparable(runs) == [[0, 2], [1]]
    with pytest.raises(InputError, match=r"a and b were not measured in the same way: protocol\.seed is 0 and 7"):
        rank_runs(runs)


def test_runs_that_are_headed_by_other_numbers(tmp_path: Path) -> None:
    """An mCE and a mean error are no neighbours in a ranking, whichever run comes first."""
    conditions = {"clean": 0.9, "fog@3": 0.5}
    plain = write_run(tmp_path, "plain", conditions)
    divided = write_run(tmp_path, "divided", conditions, benchmark={"metric": "mce", "baseline": "alexnet"})
    assert comparable([plain, divided]) == [[0], [1]]
    with pytest.raises(InputError, match=r"benchmark\.metric is .error. and .mce."):
        rank_runs([plain, divided], replicates=50)


class Squares:
    """A column whose number is no mean over images: the square of one, which weights of both signs make nonsense of."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: np.ndarray) -> Squares:
        return Squares(self.values[rows])

    def joined(self, other: Squares) -> Squares:
        return Squares(np.concatenate([self.values, other.values]))

    def weighted(self, weights: np.ndarray) -> np.ndarray:
        return ((weights @ self.values) / weights.sum(axis=1))[:, None] ** 2


def test_numbers_that_are_no_means_are_counted_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As AP of detections is: the p-value is that of changing answers between two models, done by hand."""
    rng = np.random.default_rng(3)
    names = np.array([f"{number:03}" for number in range(40)])
    first = rng.random(40)
    columns = {"a": first, "b": first + rng.normal(0.05, 0.2, 40)}
    runs = [write_run(tmp_path, name, {"clean": 0.9, "fog@3": 0.5}, images=40) for name in columns]

    def tables(run: Run, *_: object, **__: object) -> list[Table]:
        return [Table("", names, {("boxes", text): Squares(columns[run.name]) for text in ("clean", "fog@3")})]

    monkeypatch.setattr("blemish.metrics.ranking.read_tables", tables)
    monkeypatch.setattr("blemish.metrics.ranking.headline_name", lambda _: "ap")
    seen: list[float] = []
    monkeypatch.setattr(
        "blemish.metrics.ranking.rank_groups", lambda values, p, **_: seen.append(p[0, 1]) or rank_groups(values, p)
    )
    assert rank_runs(runs, replicates=2000).metric == "ap"
    swaps = rng.random((20000, 40)) < 0.5
    sides = [np.where(swaps, columns[x], columns[y]).mean(axis=1) ** 2 for x, y in ("ab", "ba")]
    observed = abs(np.mean(columns["a"]) ** 2 - np.mean(columns["b"]) ** 2)
    expected = float(np.mean(abs(sides[0] - sides[1]) >= observed))
    assert 0.01 < expected < 0.9
    assert seen[0] == pytest.approx(expected, abs=0.04)
