"""Error consistency: Cohen's κ by hand, within conditions, with intervals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from blemish.metrics.compare import compare
from blemish.metrics.consistency import cohen_kappa, error_consistency
from blemish.metrics.table import Table
from command_line import invoke
from synthetic_runs import write_run

IMAGES = 1000


def table(**columns: NDArray[np.bool_]) -> Table:
    names = np.array([f"{i:04d}" for i in range(IMAGES)])
    return Table("", names, {("correct", name.replace("_at_", "@")): values for name, values in columns.items()})


def right(start: int, stop: int) -> NDArray[np.bool_]:
    """Right on the images from ``start`` to ``stop``."""
    return (np.arange(IMAGES) >= start) & (np.arange(IMAGES) < stop)


class TestKappa:
    @pytest.mark.parametrize(
        ("agreement", "first", "second", "kappa"),
        [
            # c_exp = .6 · .6 + .4 · .4 = .52; (.8 − .52) / .48.
            (0.8, 0.6, 0.6, 0.28 / 0.48),
            # Independent errors agree as expected: .9 · .7 + .1 · .3 = .66.
            (0.66, 0.9, 0.7, 0),
            # As far apart as accuracies of one half can be.
            (0, 0.5, 0.5, -1),
            # Both always right, and both always wrong: 1 by definition.
            (1, 1, 1, 1),
            (1, 0, 0, 1),
        ],
    )
    def test_by_hand(self, agreement: float, first: float, second: float, kappa: float) -> None:
        assert float(cohen_kappa(agreement, first, second)) == pytest.approx(kappa)

    def test_published_bounds(self) -> None:
        """For accuracies p and q, agreement lies between |p + q − 1| and 1 − |p − q| (Geirhos et al. 2020)."""
        p, q = 0.8, 0.6
        low, high = cohen_kappa([abs(p + q - 1), 1 - abs(p - q)], p, q)
        assert -1 <= low < 0 < high <= 1


class TestTables:
    def test_within_conditions_then_the_mean(self) -> None:
        """Fog: both are right on 600 of 1,000 and share 500, so agreement is .8: κ = .5833. Snow: the same images."""
        one = table(clean=right(0, 900), fog_at_1=right(0, 600), fog_at_3=right(0, 600), snow_at_1=right(0, 300))
        other = table(clean=right(0, 900), fog_at_1=right(100, 700), fog_at_3=right(0, 600), snow_at_1=right(0, 300))
        found = error_consistency(one, other, replicates=300)
        assert found is not None
        by_condition = {item.condition: item for item in found.conditions}
        assert by_condition["fog@1"].kappa.value == pytest.approx(0.28 / 0.48)
        assert by_condition["fog@1"].observed == pytest.approx(0.8)
        assert by_condition["fog@1"].accuracies == (0.6, 0.6)
        assert found.corruptions["fog"].value == pytest.approx((0.28 / 0.48 + 1) / 2)
        assert found.mean.value == pytest.approx((0.28 / 0.48 + 2) / 3)  # without the clean images

    def test_independent_errors_give_zero_within_the_interval(self) -> None:
        rng = np.random.default_rng(0)
        one, other = (table(fog_at_1=rng.random(IMAGES) < 0.7) for _ in range(2))
        found = error_consistency(one, other, replicates=500)
        assert found is not None
        assert found.mean.low < 0 < found.mean.high
        assert found.mean.width == pytest.approx(4 * 1 / np.sqrt(IMAGES), rel=0.25)  # κ of independents: sd ≈ 1/√n

    def test_nothing_but_clean_images(self) -> None:
        assert error_consistency(table(clean=right(0, 5)), table(clean=right(0, 5))) is None


class TestRuns:
    def test_in_a_comparison(self, tmp_path: Path) -> None:
        runs = [
            write_run(tmp_path, name, {"clean": 0.9, "fog@3": 0.5}, images=300, seed=s) for s, name in enumerate("ab")
        ]
        found = compare(*runs, replicates=100).consistency
        assert found is not None
        assert found.people is None
        one, other = (run.correct(run.conditions[1]) for run in runs)
        expected = cohen_kappa((one == other).mean(), one.mean(), other.mean())
        assert found.mean.value == pytest.approx(float(expected))

    def test_as_a_user_meets_it(self, tmp_path: Path) -> None:
        chosen = {"metric": "accuracy", "reference": "human-16"}
        for seed, name in enumerate(("one", "two")):
            write_run(tmp_path, name, {"clean": 0.9, "human:contrast@1": 0.5}, seed=seed, benchmark=chosen)
        code, output, _ = invoke("compare", tmp_path / "one", tmp_path / "two", "--replicates", 50)
        assert code == 0
        assert "Error consistency (Cohen's κ)" in output
        assert "Between people, at the published levels that count: 0.42." in output
        entry = json.loads(invoke("compare", tmp_path / "one", tmp_path / "two", "--replicates", 50, "--json")[1])
        assert entry["consistency"]["conditions"][1]["condition"] == "human:contrast@1"
