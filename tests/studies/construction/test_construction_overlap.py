"""Overlapping scores by hand, intervals against a plain loop, and comparisons of matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blemish.core.errors import InputError
from blemish.studies.construction.compare import compare_matrices
from blemish.studies.construction.matrices import OverlapMatrix
from blemish.studies.construction.overlap import overlap_intervals, overlap_matrix, robustness_scores
from blemish.studies.construction.tables import AccuracyTable


def table(**rows: tuple[float, float, float]) -> AccuracyTable:
    return AccuracyTable.of({m: dict(zip(("clean", "fog", "snow"), row, strict=True)) for m, row in rows.items()})


def test_the_score_by_hand() -> None:
    """Robustness: standard (.5, .4), fog (.9, .5), snow (.6, .8). So ½ (.1/.4 for snow + .1/.4 for fog) = .25."""
    made = table(standard=(0.8, 0.4, 0.32), fog=(0.8, 0.72, 0.4), snow=(0.5, 0.3, 0.4))
    assert robustness_scores(made).round(12).tolist() == [[1, 0.5, 0.4], [1, 0.9, 0.5], [1, 0.6, 0.8]]
    assert overlap_matrix(made).score("fog", "snow") == pytest.approx(0.25)
    found = overlap_matrix(made)
    assert np.diag(found.scores).tolist() == [1, 1]
    assert found.scores[0, 1] == found.scores[1, 0]


def test_harm_counts_as_no_overlap() -> None:
    made = table(standard=(0.8, 0.4, 0.4), fog=(0.8, 0.7, 0.2), snow=(0.8, 0.3, 0.7))
    assert overlap_matrix(made).score("fog", "snow") == 0


def test_one_good_direction_outweighs_a_small_harm() -> None:
    """½ (−.1/.3 + .2/.3) = 1/6: the maximum with zero is taken of the mean, not of each ratio."""
    made = table(standard=(1, 0.4, 0.4), fog=(1, 0.7, 0.3), snow=(1, 0.6, 0.7))
    assert overlap_matrix(made).score("fog", "snow") == pytest.approx(1 / 6)


@pytest.mark.parametrize("own", [0.4, 0.404, 0.3])
def test_no_gain_on_the_own_corruption_is_undefined(own: float) -> None:
    made = table(standard=(1, 0.4, 0.4), fog=(1, own, 0.5), snow=(1, 0.5, 0.7))
    found = overlap_matrix(made)
    assert np.isnan(found.scores[0]).all()
    assert found.scores[1, 1] == 1
    reason = found.undefined["fog", "snow"]
    assert "training on fog" in reason
    assert "at least 0.01" in reason
    with pytest.raises(InputError, match="is undefined: training on fog"):
        overlap_matrix(made).score("fog", "snow")


def test_a_corruption_that_is_undefined_twice_keeps_a_reason_for_each_pair() -> None:
    made = table(standard=(1, 0.4, 0.4), fog=(1, 0.4, 0.5), snow=(1, 0.5, 0.4))
    assert set(overlap_matrix(made).undefined) == {("fog", "fog"), ("fog", "snow"), ("snow", "snow")}


def test_bad_tables_are_explained() -> None:
    with pytest.raises(InputError, match="lacks a row snow"):
        overlap_matrix(table(standard=(1, 0.4, 0.4), fog=(1, 0.5, 0.5)))
    with pytest.raises(InputError, match="lacks the rows standard, snow"):
        overlap_matrix(table(fog=(1, 0.5, 0.5)))
    with pytest.raises(InputError, match="accuracy 0 under clean"):
        overlap_matrix(table(standard=(0, 0.4, 0.4), fog=(1, 0.5, 0.5), snow=(1, 0.5, 0.5)))
    good = table(standard=(1, 0.4, 0.4), fog=(1, 0.5, 0.5), snow=(1, 0.5, 0.5))
    with pytest.raises(InputError, match="expected at least two"):
        overlap_matrix(good, corruptions=["fog"])
    with pytest.raises(InputError, match="least gain of 0"):
        overlap_matrix(good, least_gain=0)
    with pytest.raises(InputError, match="no column"):
        overlap_matrix(good, clean="klean")


@given(st.lists(st.floats(0.05, 1), min_size=16, max_size=16))
def test_a_matrix_is_always_one(values: list[float]) -> None:
    """Symmetric, not negative, one on the diagonal or undefined: its own constructor checks all of it."""
    names = ("a", "b", "c")
    made = AccuracyTable(("standard", *names), ("clean", *names), np.array(values).reshape(4, 4))
    found = overlap_matrix(made)
    assert np.isnan(found.scores).sum() == 2 * len(found.undefined) - sum(a == b for a, b in found.undefined)


class TestIntervals:
    models, settings = ("standard", "fog", "snow"), ("clean", "fog", "snow")

    def correct(self, images: int = 400) -> np.ndarray:
        rates = np.array([[0.9, 0.4, 0.4], [0.9, 0.8, 0.5], [0.9, 0.6, 0.8]])
        return np.random.default_rng(1).random((3, 3, images)) < rates[..., None]

    def test_against_a_plain_loop(self) -> None:
        """The same images drawn for all models and settings; scores from a table per draw."""
        correct = self.correct()
        found = overlap_intervals(correct, self.models, self.settings, resamples=300, seed=3)
        draw = np.random.default_rng(8)
        loop = []
        for _ in range(2000):
            picks = draw.integers(0, correct.shape[2], correct.shape[2])
            again = AccuracyTable(self.models, self.settings, correct[:, :, picks].mean(axis=2))
            loop.append(overlap_matrix(again).score("fog", "snow"))
        low, high = np.quantile(loop, [0.025, 0.975])
        # Two independent bootstraps: their ends differ by the noise of 300 draws, a fraction of the interval's width.
        assert found.low[0, 1] == pytest.approx(low, abs=0.2 * (high - low))
        assert found.high[0, 1] == pytest.approx(high, abs=0.2 * (high - low))
        assert found.low[0, 1] < found.matrix.score("fog", "snow") < found.high[0, 1]

    def test_seeded_and_certain_on_the_diagonal(self) -> None:
        first, second = (overlap_intervals(self.correct(), self.models, self.settings, seed=s) for s in (0, 0))
        assert np.array_equal(first.low, second.low)
        assert np.diag(first.low).tolist() == np.diag(first.high).tolist() == [1, 1]
        other = overlap_intervals(self.correct(), self.models, self.settings, seed=1)
        assert not np.array_equal(first.low, other.low)

    def test_too_small_a_gain_leaves_the_interval_open(self) -> None:
        correct = self.correct()
        correct[1, 1] = correct[0, 1]
        correct[1, 0] = correct[0, 0]
        found = overlap_intervals(correct, self.models, self.settings, resamples=200)
        assert np.isnan(found.low[0, 1])
        assert found.undefined_share[0, 1] == 1
        assert found.low[1, 1] == 1

    def test_bad_input(self) -> None:
        with pytest.raises(InputError, match="expected true or false"):
            overlap_intervals(np.zeros((3, 3, 4)), self.models, self.settings)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="3 models × 2 settings"):
            overlap_intervals(self.correct(), self.models, self.settings[:2])
        with pytest.raises(InputError, match="level 95"):
            overlap_intervals(self.correct(), self.models, self.settings, level=95)
        with pytest.raises(InputError, match="1 resamples"):
            overlap_intervals(self.correct(), self.models, self.settings, resamples=1)


def square(*upper: float) -> OverlapMatrix:
    scores = np.eye(4)
    scores[np.triu_indices(4, 1)] = upper
    return OverlapMatrix(("a", "b", "c", "d"), np.maximum(scores, scores.T))


class TestCompare:
    def test_correlations_and_disagreements(self) -> None:
        first, second = square(0.1, 0.2, 0.3, 0.4, 0.5, 0.6), square(0.1, 0.2, 0.3, 0.4, 0.6, 0.5)
        found = compare_matrices(first, second, threshold=0.3)
        # By hand: ranks 1…6 against 1 2 3 4 6 5, so 1 − 6 · 2 / (6 · 35).
        assert found.spearman == pytest.approx(1 - 12 / 210)
        assert found.pearson == pytest.approx(np.corrcoef([1, 2, 3, 4, 5, 6], [1, 2, 3, 4, 6, 5])[0, 1])
        assert {item.pair for item in found.largest[:2]} == {("b", "d"), ("c", "d")}
        assert found.same_benchmark is True
        assert compare_matrices(first, second).same_benchmark is None

    def test_order_does_not_matter_and_undefined_pairs_are_skipped(self) -> None:
        first = square(0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
        scores = first.scores.copy()
        scores[0, 1] = scores[1, 0] = np.nan
        second = OverlapMatrix(first.names, scores, {("a", "b"): "why"}).only(["d", "c", "b", "a"])
        found = compare_matrices(first, second)
        assert found.pairs == 5
        assert found.pearson == pytest.approx(1)

    def test_ties_share_ranks(self) -> None:
        # scipy 1.17: spearmanr([1, 1, 2, 3, 4, 4], [1, 2, 3, 4, 5, 6]) = 0.9710083124552246
        found = compare_matrices(square(0.1, 0.1, 0.2, 0.3, 0.4, 0.4), square(0.1, 0.2, 0.3, 0.4, 0.5, 0.6))
        assert found.spearman == pytest.approx(0.9710083124552246)

    def test_different_benchmarks(self) -> None:
        found = compare_matrices(square(0, 1, 1, 1, 1, 1), square(1, 1, 1, 1, 1, 0), threshold=0.1)
        assert found.same_benchmark is False

    def test_too_little_in_common(self) -> None:
        other = OverlapMatrix(("a", "b", "x"), np.eye(3))
        with pytest.raises(InputError, match="share 2 corruptions"):
            compare_matrices(square(*[0.1] * 6), other)
        with pytest.raises(InputError, match="are equal"):
            compare_matrices(square(*[0.1] * 6), square(*[0.1] * 6))
