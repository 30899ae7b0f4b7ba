"""Intervals where resamples cannot differ, because all images agree: by hand, against all that so many images allow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from blemish.metrics import score
from blemish.metrics.baselines import published_baseline
from blemish.metrics.gate import gate
from blemish.metrics.gate_rules import Status
from synthetic_runs import write_run

MCE = {"metric": "mce", "baseline": "alexnet"}
QUICK = {"replicates": 50}
FAR = 1 - 0.025 ** (1 / 40)  # the share of all images that may do otherwise, where 40 agree
RIGHT, WRONG = np.ones(40, bool), np.zeros(40, bool)


def outcomes(clean: np.ndarray, **corrupted: np.ndarray) -> dict[str, np.ndarray]:
    return {"clean": clean, **{f"{name}@{s}": value for name, value in corrupted.items() for s in range(1, 6)}}


class TestOneModel:
    def test_corruption_errors(self, tmp_path: Path) -> None:
        """With all errors raised to FAR, CE is FAR over the baseline's mean error, and mCE the mean of CEs."""
        run = write_run(tmp_path, "m", outcomes(RIGHT, fog=RIGHT, snow=RIGHT), images=40, benchmark=MCE)
        found = score(run, **QUICK)
        base = published_baseline("alexnet")
        ends = {
            name: 100 * FAR / np.mean([base.errors[f"{name}@{severity}"] for severity in range(1, 6)])
            for name in ("fog", "snow")
        }
        for name, end in ends.items():
            shown = found.find("ce", name).estimate
            assert (shown.value, shown.low, shown.high) == pytest.approx((0, 0, end))
        # Errors may rise while the clean error does not, or the other way round.
        relative = found.find("relative_ce", "fog").estimate
        rise = np.mean([base.errors[f"fog@{severity}"] for severity in range(1, 6)]) - base.clean_error()
        assert (relative.low, relative.value, relative.high) == pytest.approx((-100 * FAR / rise, 0, 100 * FAR / rise))

    def test_all_right_under_one_and_all_wrong_under_the_other(self, tmp_path: Path) -> None:
        """The mean error is ½, and one image in 1 / FAR could move it: both conditions upwards, or both downwards."""
        run = write_run(tmp_path, "m", outcomes(RIGHT, fog=RIGHT, snow=WRONG), images=40)
        shown = score(run, **QUICK).find("error").estimate
        assert (shown.low, shown.value, shown.high) == pytest.approx((50 - 50 * FAR, 50, 50 + 50 * FAR))

    def test_no_flips(self, tmp_path: Path) -> None:
        still = np.tile(np.arange(5), (40, 31, 1))
        run = write_run(tmp_path, "m", {"p:tilt@1": still}, images=40)
        shown = score(run, **QUICK).find("flips", "p:tilt@1").estimate
        assert (shown.value, shown.low, shown.high) == pytest.approx((0, 0, 100 * FAR))

    def test_one_image_that_does_otherwise_leaves_the_bootstrap(self, tmp_path: Path) -> None:
        nearly = RIGHT.copy()
        nearly[3] = False
        run = write_run(tmp_path, "m", outcomes(RIGHT, fog=nearly), images=40, benchmark=MCE)
        shown = score(run, **QUICK).find("ce", "fog").estimate
        assert shown.low <= shown.value < shown.high
        assert shown.value > 0

    def test_balanced_errors_count_the_rarest_class(self, tmp_path: Path) -> None:
        """44 images of ten classes, of which six have four: as if there were 40."""
        benchmark = {"name": "medmnist-c/breastmnist", "metric": "mbe", "baseline": "alexnet/breastmnist"}
        right = np.ones(44, bool)
        corrupted = {"clean": right} | {f"med:pixelate@{s}": right for s in range(1, 6)}
        run = write_run(tmp_path, "m", corrupted, images=44, benchmark=benchmark, protocol={"preset": "breastmnist"})
        found = score(run, **QUICK)
        error, ratio = found.find("balanced_error", "med:pixelate"), found.find("be", "med:pixelate")
        assert error.estimate.high == pytest.approx(100 * FAR)
        base = published_baseline("alexnet/breastmnist")
        mean = base.means["med:pixelate"]
        assert (ratio.estimate.value, ratio.estimate.high) == pytest.approx((0, 100 * FAR / mean))


def test_a_gate_is_not_passed_by_few_images_that_are_all_right(tmp_path: Path) -> None:
    """An interval of no width would let any bound pass."""
    run = write_run(tmp_path, "m", outcomes(RIGHT, fog=RIGHT, snow=RIGHT), images=40, benchmark=MCE)
    verdict = gate(run, ["fog ce < 5"]).verdicts[0]
    assert verdict.status is Status.UNDECIDED
    assert verdict.images is not None
    all_right = np.ones(verdict.images, bool)
    more = write_run(
        tmp_path, "more", outcomes(all_right, fog=all_right, snow=all_right), images=verdict.images, benchmark=MCE
    )
    assert gate(more, ["fog ce < 5"]).verdicts[0].status is Status.PASSED
