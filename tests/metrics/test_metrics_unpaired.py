"""What can be told of models from intervals alone, against plain computations and simulations."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest

from blemish.core.errors import InputError
from blemish.core.statistics import Estimate
from blemish.metrics.cells import equal_weights, interval_of_cells, interval_of_claim, mce_weights, weighted
from blemish.metrics.rank_groups import rank_groups, rank_ranges
from blemish.metrics.unpaired import p_values_of_intervals, pareto


def test_ranges_are_those_of_groups_and_of_counting() -> None:
    rng = np.random.default_rng(1)
    for _ in range(100):
        count = int(rng.integers(1, 9))
        values = rng.permutation(count).astype(float).tolist()
        table = np.triu(rng.choice([1e-9, 0.5], (count, count), p=[0.7, 0.3]), 1)
        table += table.T
        ranges, groups = rank_ranges(values, table), rank_groups(values, table)
        assert [(p.index, p.rank) for p in ranges] == [(p.index, p.rank) for p in groups]
        for place in ranges:
            others = [j for j in range(count) if j != place.index and table[place.index, j] < 1e-6]
            assert place.low == 1 + sum(values[j] < place.value for j in others)
            assert place.high == count - sum(values[j] > place.value for j in others)


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
