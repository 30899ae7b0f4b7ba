"""Ranks, corrected p-values and intervals of means over cells, against plain computations and simulations."""

from __future__ import annotations

from itertools import combinations
from statistics import NormalDist

import numpy as np
import pytest

from blemish.core.errors import InputError
from blemish.core.statistics import Estimate
from blemish.metrics.cells import equal_weights, interval_of_cells, interval_of_claim, mce_weights, weighted
from blemish.metrics.ranking import holm, p_values_of_intervals, pareto, ranks


def test_holm_rejects_what_the_steps_of_its_paper_reject() -> None:
    values = np.random.default_rng(0).random(40) ** 6
    for alpha in (0.001, 0.01, 0.05, 0.2):
        rejected = set[int]()
        for step, i in enumerate(np.argsort(values)):
            if values[i] > alpha / (len(values) - step):
                break
            rejected.add(int(i))
        assert set(np.flatnonzero(holm(values) <= alpha).tolist()) == rejected


def test_holm_by_hand() -> None:
    # Holm 1979: sorted p times m, m − 1, …; never falling; at most 1.
    assert holm([0.02, 0.9, 0.001, 0.03]).tolist() == pytest.approx([0.06, 0.9, 0.004, 0.06])
    assert holm([]).tolist() == []
    with pytest.raises(InputError, match="0 to 1"):
        holm([1.5])


def plain(values: list[float], significant: set[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Ranks by counting, written as they are defined."""
    found = []
    for i, value in enumerate(values):
        told = [j for j in range(len(values)) if (min(i, j), max(i, j)) in significant]
        better = sum(values[j] < value for j in told)
        worse = sum(values[j] > value for j in told)
        found.append((1 + better, len(values) - worse))
    order = sorted(range(len(values)), key=lambda i: values[i])
    cuts = [
        all((min(i, j), max(i, j)) in significant for i in order[:place] for j in order[place:])
        for place in range(1, len(values))
    ]
    group = {i: 1 + sum(cuts[:place]) for place, i in enumerate(order)}
    return [(*ends, group[i]) for i, ends in enumerate(found)]


def test_ranks_are_those_of_counting() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        count = int(rng.integers(1, 9))
        values = rng.permutation(count).astype(float).tolist()
        table = np.ones((count, count))
        for i, j in combinations(range(count), 2):
            table[i, j] = rng.choice([1e-9, 0.5], p=[0.7, 0.3])
        significant = {(i, j) for i, j in combinations(range(count), 2) if table[i, j] < 1e-6}
        assert [(r.first, r.last, r.group) for r in ranks(values, table)] == plain(values, significant)


def test_correction_takes_differences_back() -> None:
    values, table = [1.0, 2.0, 3.0], np.full((3, 3), 0.03)
    assert [str(rank) for rank in ranks(values, table)] == ["1–3", "1–3", "1–3"], "0.03 is 0.09 for three tests"
    table[:] = 0.01
    assert [str(rank) for rank in ranks(values, table)] == ["1", "2", "3"]


def test_equal_models_share_a_rank() -> None:
    assert [(r.first, r.last, r.group) for r in ranks([1.0, 1.0], np.zeros((2, 2)))] == [(1, 2, 1), (1, 2, 1)]


def test_intervals_without_width_tell_nothing() -> None:
    table = p_values_of_intervals([Estimate(1, 1, 1), Estimate(50, 49, 51), Estimate(60, 59, 61)])
    assert table[0, 1] == 1
    # (60 − 50) over √2 standard deviations of 1 / 1.96 each.
    assert table[1, 2] == pytest.approx(1.2e-43, rel=0.2)


def test_pareto_by_looking_at_all_pairs() -> None:
    points = np.random.default_rng(2).integers(0, 6, (60, 3)).astype(float).tolist()
    slow = [not any(all(np.less_equal(q, p)) and any(np.less(q, p)) for q in points) for p in points]
    assert pareto(points) == slow


def test_intervals_of_cells_cover_simulated_benchmarks() -> None:
    """Outcomes of the same images under many conditions: correlated, as real ones are; the interval may be too wide."""
    rng, images = np.random.default_rng(3), 400
    conditions = [f"{name}@{level}" for name in "abc" for level in range(1, 6)]
    thresholds = np.linspace(-1, 1.2, len(conditions))
    weights = equal_weights(conditions)
    for shared in (0.3, 0.95):
        covered, claimed = 0, 0
        for _ in range(200):
            hard = rng.normal(size=(images, 1)) * np.sqrt(shared)
            wrong = hard + rng.normal(size=(images, len(conditions))) * np.sqrt(1 - shared) < thresholds
            errors = dict(zip(conditions, wrong.mean(0), strict=True))
            truth = 100 * np.mean([NormalDist().cdf(t) for t in thresholds])
            interval = interval_of_cells(errors, weights, images)
            claim = interval_of_claim(interval.value, weights, images)
            assert claim.width >= interval.width
            covered += interval.low <= truth <= interval.high
            claimed += claim.low <= truth <= claim.high
        assert covered >= 186, "95 % of 200, less two standard deviations"
        assert claimed >= 186


def test_weights_sum_to_what_all_errors_give() -> None:
    assert weighted({"a@1": 1, "a@2": 1, "b": 1}, equal_weights(["a@1", "a@2", "b"])) == pytest.approx(100)
    weights = mce_weights(["a@1", "b@1"], {"a@1": 0.5, "b@1": 0.25})
    assert weighted({"a@1": 0.5, "b@1": 0.25}, weights) == pytest.approx(100), "the baseline's own mCE"
    with pytest.raises(InputError, match="under b@1"):
        mce_weights(["a@1", "b@1"], {"a@1": 0.5})
    with pytest.raises(InputError, match="no errors"):
        mce_weights(["a@1"], {"a@1": 0.0})
    with pytest.raises(InputError, match="cannot be reached"):
        interval_of_claim(350, weights, 100)
