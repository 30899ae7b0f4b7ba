"""Two runs beside each other: differences, tests, and refusals that name the field."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from blemish.benchmarks.condition import parse_condition
from blemish.core.errors import InputError
from blemish.metrics import compare, protocol_differences, score
from blemish.metrics.paired import swapped_means
from blemish.metrics.table import Table
from synthetic_runs import severities, write_run

MCE = {"metric": "mce", "baseline": "alexnet"}
QUICK = {"replicates": 50}


class TestDifferences:
    def test_second_less_first(self, tmp_path: Path) -> None:
        conditions = {**severities(("fog", "snow")), "p:tilt@1": 0.1}
        better = {**severities(("fog", "snow"), clean=0.85, worst=0.5), "p:tilt@1": 0.05}
        one = write_run(tmp_path, "one", conditions, benchmark=MCE, images=300)
        two = write_run(tmp_path, "two", better, benchmark=MCE, images=300, seed=1)
        found = compare(one, two)
        scores = [score(run, **QUICK) for run in (one, two)]
        for row in found.rows:
            first, second = (part.find(row.name, row.of).estimate.value for part in scores)
            assert (row.first, row.second) == pytest.approx((first, second))
            assert row.difference.value == pytest.approx(second - first, abs=1e-9)
        headline = found.headline
        assert headline is not None
        assert headline.name == "mce"
        assert headline.difference.high < 0
        assert headline.p_value == pytest.approx(1 / 1001)
        assert found.find("error", "fog@3").test == "mcnemar"
        assert found.find("error", "fog").test == "swap"
        assert found.find("flips", "p:tilt@1").p_value < 0.01
        json.dumps(found.as_dict(), allow_nan=False)
        with pytest.raises(InputError, match="no mt5d to compare"):
            found.find("mt5d")

    def test_pairing_narrows(self, tmp_path: Path) -> None:
        """Models that fail on the same images: the interval of their difference is narrower than of either."""
        one = write_run(tmp_path, "one", {"clean": 0.8, "fog@1": 0.5}, images=400)
        two = write_run(tmp_path, "two", {"clean": 0.8, "fog@1": 0.5}, images=400, seed=1)
        alone = score(one).find("error", "fog").estimate.width
        assert compare(one, two).find("error", "fog").difference.width < alone

    def test_a_level_that_is_none(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", {"clean": 0.9, "fog@1": 0.5})
        with pytest.raises(InputError, match="level 95; expected a number between 0 and 1"):
            compare(run, run, level=95)

    def test_a_run_equals_itself(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "one", {**severities(("fog",)), "p:tilt@1": 0.1}, benchmark=MCE)
        for row in compare(run, run, **QUICK).rows:
            assert (row.difference.value, row.difference.low, row.difference.high, row.p_value) == (0, 0, 0, 1), row

    def test_natural_sets(self, tmp_path: Path) -> None:
        sets = {"natural:imagenet-a": 0.2, "clean:imagenet-a": 0.8}
        one = write_run(tmp_path, "one", {"clean": 0.8, **sets}, benchmark={"metric": "natural_gap"})
        two = write_run(
            tmp_path, "two", {"clean": 0.8, **sets, "natural:imagenet-a": 0.6}, benchmark={"metric": "natural_gap"}
        )
        headline = compare(one, two).headline
        assert headline is not None
        assert headline.difference.value < -20
        assert headline.p_value < 0.01

    def test_swapping_one_image_by_hand(self) -> None:
        """One image, right for the first model alone: a swap gives (1, 0) or (0, 1)."""
        tables = [
            Table(
                "", np.array(["a"]), {("correct", "clean"): np.array([right]), ("confidence", "clean"): np.array([0.5])}
            )
            for right in (True, False)
        ]
        one, two = swapped_means(*tables, replicates=50, seed=0)
        pairs = set(zip(one["correct", "clean"].tolist(), two["correct", "clean"].tolist(), strict=True))
        assert pairs == {(1.0, 0.0), (0.0, 1.0)}

    def test_equal_models_are_rarely_told_apart(self, tmp_path: Path) -> None:
        """Forty pairs of models that do not differ: p-values are not small more often than they should be."""
        runs = [write_run(tmp_path, f"m{i}", {"clean": 0.8, "fog@1": 0.5}, images=60, seed=i) for i in range(80)]
        pairs = zip(runs[::2], runs[1::2], strict=True)
        values = [compare(one, two, replicates=200).find("robustness").p_value for one, two in pairs]
        assert sum(value < 0.1 for value in values) <= 9  # of 4 expected; more than 9 has probability 0.005
        assert 0.35 < np.mean(values) < 0.65


class TestRefusals:
    @pytest.mark.parametrize(
        ("part", "change", "message"),
        [
            ("protocol", {"seed": 1}, "protocol.seed is 0 and 1"),
            ("protocol", {"preset": "cifar"}, 'protocol.preset is not set and "cifar"'),
            ("protocol", {"storage": "jpeg85"}, 'protocol.storage is "raw" and "jpeg85"'),
            ("protocol", {"resize": 256}, "protocol.resize is not set and 256"),
            ("protocol", {"crop": 224}, "protocol.crop is not set and 224"),
            ("protocol", {"pixels": "stored"}, 'protocol.pixels is "generated" and "stored"'),
            ("protocol", {"corruptions": {"frost": 2}}, "protocol.corruptions.frost is 1 and 2"),
            ("protocol", {"frost": "reference"}, 'protocol.frost is "custom-0123456789abcdef" and "reference"'),
            ("data", {"fingerprint": "x"}, 'data.fingerprint is "0123456789abcdef" and "x"'),
            ("data", {"selection": "5 of 9"}, 'data.selection is "all" and "5 of 9"'),
            ("data", {"others": {"imagenet-a": "f"}}, 'data.others.imagenet-a is not set and "f"'),
        ],
    )
    def test_fields_are_named_with_both_values(
        self, tmp_path: Path, part: str, change: dict[str, object], message: str
    ) -> None:
        conditions = {"clean": 0.8, "frost@1": 0.5}
        one = write_run(tmp_path, "one", conditions)
        two = write_run(tmp_path, "two", conditions, **{part: change})
        assert protocol_differences(one, two) == [message]
        with pytest.raises(InputError) as caught:
            compare(one, two)
        assert message in str(caught.value)
        assert compare(one, two, allow_mismatch=True, **QUICK).protocol_differences == (message,)

    def test_what_changes_no_number_is_no_difference(self, tmp_path: Path) -> None:
        one = write_run(tmp_path, "one", {"clean": 0.8, "fog@1": 0.5, "fog@2": 0.5})
        two = write_run(tmp_path, "two", {"clean": 0.8, "fog@2": 0.5, "fog@1": 0.5}, benchmark={"title": "Other"})
        assert protocol_differences(one, two) == []
        assert compare(one, two, **QUICK).images == 100

    def test_anyway_takes_what_both_have(self, tmp_path: Path) -> None:
        one = write_run(tmp_path, "one", {"clean": 0.8, "fog@1": 0.5, "fog@2": 0.4}, images=50)
        two = write_run(tmp_path, "two", {"clean": 0.8, "fog@1": 0.5, "snow@1": 0.4}, images=40)
        with pytest.raises(
            InputError, match=r"benchmark\.conditions: fog@2 in the first alone, snow@1 in the second alone"
        ):
            compare(one, two)
        found = compare(one, two, allow_mismatch=True, **QUICK)
        assert found.images == 40
        assert {row.of for row in found.rows if row.scope == "condition"} == {"clean", "fog@1"}
        first = one.records(parse_condition("fog@1"))
        shared = np.isin(first.images, two.records(parse_condition("fog@1")).images)
        assert found.find("accuracy", "fog@1").first == pytest.approx(100 * first.correct[shared].mean())

    def test_other_images_are_named(self, tmp_path: Path) -> None:
        one = write_run(tmp_path, "one", {"clean": 0.8}, names=["a", "b"])
        two = write_run(tmp_path, "two", {"clean": 0.8}, names=["a", "c"])
        with pytest.raises(InputError, match=r"image b of one has no records in .*two"):
            compare(one, two)
        three = write_run(tmp_path, "three", {"clean": 0.8}, names=["c", "d"])
        with pytest.raises(InputError, match="no images in common"):
            compare(one, three, allow_mismatch=True)

    def test_nothing_in_common(self, tmp_path: Path) -> None:
        one = write_run(tmp_path, "one", {"clean": None, "fog@1": 0.5})
        two = write_run(tmp_path, "two", {"clean": 0.5, "fog@1": None})
        with pytest.raises(InputError, match="no finished condition in common"):
            compare(one, two)
