"""Resampling: what it draws, that it can be repeated, and that its intervals cover."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blemish.core import resampling
from blemish.core.errors import InputError
from blemish.core.resampling import Bootstrap, Swaps, stream_of
from blemish.core.statistics import percentile_interval
from blemish.metrics import corruption_error
from blemish.metrics.paired import mcnemar_p_value, swap_p_value


class TestWeights:
    def test_resamples_hold_as_many_images(self) -> None:
        (block,) = Bootstrap(50, 20).blocks()
        assert block.shape == (20, 50)
        assert (block.sum(1) == 50).all()
        assert len(np.unique(block, axis=0)) == 20
        # A multinomial count has mean 1 and variance 1 − 1/n.
        (many,) = Bootstrap(100, 2000, seed=1).blocks()
        assert abs(many.mean() - 1) < 1e-6
        assert abs(many.var() - 0.99) < 0.02

    def test_signs(self) -> None:
        (block,) = Swaps(500, 200).blocks()
        assert set(np.unique(block)) == {-1, 1}
        assert abs(block.mean()) < 0.01

    def test_equal_seeds_equal_weights_and_streams_differ(self) -> None:
        def first(**settings: int) -> list[float]:
            return list(next(iter(Bootstrap(30, 4, **settings).blocks()))[0])

        assert first(seed=3) == first(seed=3)
        assert first(seed=3) != first(seed=4)
        assert first(seed=3) != first(seed=3, stream=1)
        assert stream_of("") == 0 != stream_of("natural:imagenet-a")

    def test_blocks_change_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        correct = np.random.default_rng(0).random((40, 3)) < 0.5
        whole = Bootstrap(40, 25).accuracies(correct)
        monkeypatch.setattr(resampling, "_ROOM", 100)
        assert sum(1 for _ in Bootstrap(40, 25).blocks()) == 13
        assert (Bootstrap(40, 25).accuracies(correct) == whole).all()
        # Fewer replicates are a beginning of more.
        assert (Bootstrap(40, 10).accuracies(correct) == whole[:10]).all()

    def test_accuracies_are_weighted_means(self) -> None:
        correct = np.random.default_rng(0).random((40, 3)) < 0.5
        boot = Bootstrap(40, 5, seed=7)
        (block,) = boot.blocks()
        for row, found in zip(block, boot.accuracies(correct), strict=True):
            wanted = np.repeat(correct, row.astype(int), axis=0).mean(0)
            np.testing.assert_allclose(found, wanted, rtol=1e-12)

    def test_memory_is_bounded(self) -> None:
        """Fifty thousand images need as little for a hundred replicates as for a thousand: one block."""
        correct = np.zeros((50_000, 4), dtype=bool)
        tracemalloc.start()
        Bootstrap(50_000, 400).accuracies(correct)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 200e6

    def test_refusals(self) -> None:
        for settings_ in ({"images": 0}, {"images": 3, "replicates": 0}, {"images": 3, "seed": -1}):
            with pytest.raises(InputError, match="expected"):
                Bootstrap(**settings_)
        with pytest.raises(InputError, match="2 values for 3 images"):
            Bootstrap(3).accuracies(np.zeros(2))
        with pytest.raises(InputError, match=r"level 95; expected a number between 0 and 1"):
            percentile_interval(0.0, np.zeros(3), level=95)


class TestIntervals:
    def test_coverage(self) -> None:
        """400 runs of 200 images under three correlated conditions: the interval of a CE-like mean holds the truth."""
        truth = np.array([0.3, 0.5, 0.6])
        base = np.array([0.6, 0.7, 0.9])
        wanted = float(corruption_error(truth, base))
        rng = np.random.default_rng(20240)
        covered = 0
        for run in range(400):
            hard = rng.random((200, 1))
            wrong = np.where(rng.random((200, 3)) < 0.5, hard, rng.random((200, 3))) < truth
            replicates = corruption_error(1 - Bootstrap(200, 300, seed=run).accuracies(~wrong), base)
            found = percentile_interval(float(corruption_error(wrong.mean(0), base)), replicates)
            covered += found.low <= wanted <= found.high
        assert 0.93 <= covered / 400 <= 0.97

    def test_width_follows_the_number_of_images(self) -> None:
        """Four times the images, half the width: 2 · 1.96 · √(p(1 − p)/n)."""
        for count in (400, 1600):
            correct = np.arange(count) % 4 != 0
            found = percentile_interval(0.75, Bootstrap(count, 2000).accuracies(correct))
            assert found.width == pytest.approx(2 * 1.96 * np.sqrt(0.75 * 0.25 / count), rel=0.08)

    @settings(max_examples=30)
    @given(st.integers(2, 50), st.integers(0, 1000))
    def test_it_surrounds_the_mean(self, count: int, seed: int) -> None:
        correct = np.random.default_rng(seed).random(count) < 0.5
        found = percentile_interval(correct.mean(), Bootstrap(count, 200, seed=seed).accuracies(correct))
        assert 0 <= found.low <= found.value <= found.high <= 1


class TestPairedTests:
    @pytest.mark.parametrize(("first", "second"), [(0, 0), (3, 9), (9, 3), (12, 12), (400, 480), (20_000, 20_500)])
    def test_mcnemar_is_the_binomial_test(self, first: int, second: int) -> None:
        stats = pytest.importorskip("scipy.stats")
        wanted = stats.binomtest(first, first + second).pvalue if first + second else 1.0
        assert mcnemar_p_value(first, second) == pytest.approx(wanted, rel=1e-6)

    def test_mcnemar_by_hand(self) -> None:
        # 2 · (C(5,0) + C(5,1)) / 2⁵ = 12/32.
        assert mcnemar_p_value(1, 4) == pytest.approx(0.375)
        with pytest.raises(InputError, match="expected 0 or more"):
            mcnemar_p_value(-1, 2)

    def test_the_observed_counts_as_a_swap(self) -> None:
        assert swap_p_value(1.0, np.zeros(99)) == 0.01
        assert swap_p_value(0.0, np.zeros(99)) == 1.0
        assert swap_p_value(0.5, np.array([0.5 - 1e-9, -0.5, 0.1])) == 0.75
