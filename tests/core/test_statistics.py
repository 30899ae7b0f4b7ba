"""Quantiles and intervals against scipy, published tables and numbers worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from blemish.core.errors import InputError
from blemish.core.statistics import (
    estimate_mean,
    normal_quantile,
    student_quantile,
    unanimous_interval,
    wilson_interval,
)

LEVELS = (0.001, 0.1, 0.4999, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 0.999999, 1 - 1e-9)
FREEDOMS = (*range(1, 61), 0.3, 1.5, 2.25, 7.9, 99, 100.5, 999, 12_345, 1e5, 123_456.7, 1e6)


class TestQuantiles:
    @pytest.mark.parametrize("level", LEVELS)
    def test_student_is_that_of_scipy(self, level: float) -> None:
        stats = pytest.importorskip("scipy.stats")
        wanted = stats.t.isf((1 - level) / 2, np.array(FREEDOMS))
        np.testing.assert_allclose([student_quantile(freedom, level) for freedom in FREEDOMS], wanted, rtol=1e-8)

    @pytest.mark.parametrize("level", [1e-12, *LEVELS, 1 - 1e-15])
    def test_student_in_closed_form(self, level: float) -> None:
        """One degree of freedom is the Cauchy law, t = tan(π level / 2); two have t² = 2 level² / (1 − level²)."""
        assert student_quantile(1, level) == pytest.approx(1 / math.tan(math.pi * (1 - level) / 2), rel=1e-9, abs=1e-15)
        assert student_quantile(2, level) == pytest.approx(
            level * math.sqrt(2 / ((1 - level) * (1 + level))), rel=1e-9, abs=0
        )

    @given(freedom=st.floats(0.5, 1e7), level=st.floats(1e-6, 1 - 1e-6))
    def test_student_lies_above_the_normal_quantile_and_nears_it(self, freedom: float, level: float) -> None:
        z, t = normal_quantile(level), student_quantile(freedom, level)
        assert z * (1 - 1e-9) <= t
        assert student_quantile(2 * freedom, level) <= t * (1 + 1e-9)
        assert student_quantile(1e12, level) == pytest.approx(z, rel=1e-8)

    @pytest.mark.parametrize("level", LEVELS)
    def test_normal_is_that_of_scipy(self, level: float) -> None:
        stats = pytest.importorskip("scipy.stats")
        assert normal_quantile(level) == pytest.approx(stats.norm.ppf((1 + level) / 2), rel=1e-12)

    def test_refusals(self) -> None:
        for freedom in (0, -1, math.nan, math.inf):
            with pytest.raises(InputError, match="degrees of freedom; expected a finite number above 0"):
                student_quantile(freedom)
        for level in (0, 1, 95, math.nan):
            with pytest.raises(InputError, match="expected a number between 0 and 1"):
                student_quantile(3, level)


class TestMeans:
    def test_by_hand(self) -> None:
        """1, 2, 3, 4 has deviation √(5/3) and t(3) = 3.182446305."""
        found = estimate_mean([1, 2, 3, 4])
        half = 3.182446305 * math.sqrt(5 / 3) / 2
        assert (found.value, found.count) == (2.5, 4)
        assert found.deviation == pytest.approx(math.sqrt(5 / 3))
        assert (found.low, found.high, found.half_width) == pytest.approx((2.5 - half, 2.5 + half, half), rel=1e-9)

    def test_a_single_value_has_no_interval(self) -> None:
        found = estimate_mean([1.0])
        assert found.value == 1
        assert np.isnan([found.low, found.high, found.half_width, found.deviation]).all()

    @pytest.mark.parametrize("values", [[], [[1.0, 2.0]], 3.0])
    def test_refusals(self, values: object) -> None:
        with pytest.raises(InputError, match="expected a row of numbers"):
            estimate_mean(values)  # type: ignore[arg-type]


class TestShares:
    @pytest.mark.parametrize("level", [0.5, 0.95, 0.999])
    @pytest.mark.parametrize("images", [1, 40, 50_000])
    def test_unanimous_interval_is_that_of_the_binomial_test(self, images: int, level: float) -> None:
        stats = pytest.importorskip("scipy.stats")
        for right in (0, images):
            wanted = stats.binomtest(right, images).proportion_ci(level, method="exact")
            found = unanimous_interval(right / images, images, level=level)
            assert (found.low, found.high) == pytest.approx((wanted.low, wanted.high), abs=1e-12)

    def test_wilson_published(self) -> None:
        """Newcombe (1998), table I, method 3: 81/263 gives .2553 to .3662, 15/148 gives .0624 to .1605, 1/29 gives
        .0061 to .1718 and 0/20 gives 0 to .1611."""
        for correct, images, low, high in (
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (1, 29, 0.0061, 0.1718),
            (0, 20, 0.0, 0.1611),
        ):
            found = wilson_interval(correct, images)
            assert (round(found.low, 4), round(found.high, 4)) == (low, high)

    @given(images=st.integers(1, 10_000), share=st.floats(0, 1), level=st.floats(0.5, 0.999))
    def test_wilson_holds_the_share(self, images: int, share: float, level: float) -> None:
        correct = round(share * images)
        found = wilson_interval(correct, images, level=level)
        mirrored = wilson_interval(images - correct, images, level=level)
        assert 0 <= found.low <= found.value <= found.high <= 1
        assert found.width > 0
        assert mirrored.low == pytest.approx(1 - found.high, abs=1e-12)

    def test_wilson_ends_at_none_and_at_all(self) -> None:
        assert wilson_interval(0, 10).low == 0
        assert wilson_interval(10, 10).high == 1

    def test_refusals(self) -> None:
        for value, images, level in ((0.5, 10, 0.95), (0.0, 0, 0.95), (0.0, 10, 1.0)):
            with pytest.raises(InputError, match="expected"):
                unanimous_interval(value, images, level=level)
        with pytest.raises(InputError, match="3 of 2 images"):
            wilson_interval(3, 2)
        with pytest.raises(InputError, match="level 95"):
            wilson_interval(1, 2, level=95)
