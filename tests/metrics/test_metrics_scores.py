"""Scores of runs on disk: every number against a direct computation, and nothing dropped in silence."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blemish.benchmarks.benchmark import METRICS
from blemish.benchmarks.condition import parse_condition
from blemish.core.errors import InputError
from blemish.evaluation.runs import Run, record_path
from blemish.metrics import (
    TITLES,
    baseline_from_run,
    calibration_error,
    mean_corruption_error,
    precise_enough,
    published_baseline,
    score,
)
from blemish.metrics.looks import enough_replicates, look_levels
from synthetic_runs import FIFTEEN, Outcome, severities, write_run

MCE = {"metric": "mce", "baseline": "alexnet"}
QUICK = {"replicates": 50}


def error(run: Run, text: str) -> float:
    return float(1 - run.records(parse_condition(text)).correct.mean())


class TestCorruptions:
    def test_all_numbers(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", severities(), benchmark=MCE)
        found = score(run, **QUICK)
        errors = {name: [error(run, f"{name}@{s}") for s in range(1, 6)] for name in FIFTEEN}
        base = published_baseline()
        table = {name: [base.errors[f"{name}@{s}"] for s in range(1, 6)] for name in FIFTEEN}
        clean = error(run, "clean")
        assert found.headline is not None
        assert found.headline.estimate.value == pytest.approx(100 * float(mean_corruption_error(errors, table)))
        fog = np.mean(errors["fog"])
        for name, wanted in {
            "error": 100 * fog,
            "accuracy": 100 * (1 - fog),
            "ce": 100 * fog / np.mean(table["fog"]),
            "relative_ce": 100 * (fog - clean) / (np.mean(table["fog"]) - 0.435),
            "robustness": (1 - fog) / (1 - clean),
            "residual": 100 * (fog - clean),
        }.items():
            assert found.find(name, "fog").estimate.value == pytest.approx(wanted), name
        records = run.records(parse_condition("fog@3"))
        ece = calibration_error(records.confidence, records.correct)
        assert found.find("ece", "fog@3").estimate.value == pytest.approx(100 * ece)
        assert found.find("confidence", "fog@3").estimate.value == pytest.approx(
            100 * records.confidence.mean(), rel=1e-6
        )
        noise = np.mean([errors[name] for name in ("gaussian_noise", "shot_noise", "impulse_noise")])
        assert found.find("error", "noise").estimate.value == pytest.approx(100 * noise)
        assert found.find("error", "clean").estimate.value == pytest.approx(100 * clean)
        assert found.reliability["fog@3"].counts.sum() == 100
        assert not found.missing
        assert len(found.select(scope="condition", name="error")) == 76
        assert [row.of for row in found.select(scope="family", name="ce")] == ["noise", "blur", "weather", "digital"]
        for row in found.rows:
            assert row.estimate.low <= row.estimate.value <= row.estimate.high, row

    def test_every_headline_has_a_title(self) -> None:
        assert set(METRICS) <= set(TITLES)

    def test_the_baseline_itself_is_a_hundred_percent(self, tmp_path: Path) -> None:
        conditions = {**severities(("fog", "snow")), "p:tilt@1": 0.2, "p:shot_noise@1": 0.3}
        run = write_run(tmp_path, "m", conditions, benchmark={"metric": "mce"})
        found = score(run, baseline=run, **QUICK)
        for name in ("mce", "relative_mce", "mfr", "mt5d"):
            assert found.find(name).estimate.value == 100, name
        assert found.baseline == "m"
        assert found.remarks == ()
        assert baseline_from_run(run).clean == error(run, "clean")

    def test_published_means_and_ranges(self, tmp_path: Path) -> None:
        """Extra corruptions, known as means over severities, and NOC's, at a severity drawn for each image."""
        spatter = write_run(tmp_path, "a", severities(("spatter",)), benchmark=MCE)
        mean = np.mean([error(spatter, f"spatter@{s}") for s in range(1, 6)])
        assert score(spatter, **QUICK).find("mce").estimate.value == pytest.approx(100 * mean / 0.717512)
        noc = write_run(
            tmp_path,
            "b",
            {"clean": 0.8, "noc:border@1-5": 0.6},
            benchmark={"metric": "relative_mce", "baseline": "alexnet"},
        )
        rise = error(noc, "noc:border@1-5") - error(noc, "clean")
        headline = score(noc, **QUICK).headline
        assert headline is not None
        assert headline.estimate.value == pytest.approx(100 * rise / (0.67 - 0.435))

    def test_seed_and_order_of_images(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", severities(("fog",)), benchmark=MCE)
        assert score(run, **QUICK).as_dict() == score(run, **QUICK).as_dict()
        assert score(run, **QUICK).rows != score(run, seed=1, **QUICK).rows
        json.dumps(score(run, **QUICK).as_dict(), allow_nan=False)

    def test_level_widens(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", severities(("fog",)))
        narrow, wide = (score(run, level=level).find("error").estimate for level in (0.5, 0.99))
        assert wide.low < narrow.low < narrow.value < narrow.high < wide.high


@settings(max_examples=10, deadline=None)
@given(order=st.permutations(range(12)))
def test_the_order_of_images_changes_nothing(order: list[int], tmp_path_factory: pytest.TempPathFactory) -> None:
    """The same images with the same outcomes, written in another order: equal to the last digit, intervals too."""
    names = np.array([f"c{i % 2}/{i:02d}" for i in range(12)])
    correct = {"clean": np.arange(12) % 4 != 0, "fog@1": np.arange(12) % 3 == 0, "fog@2": np.arange(12) % 5 == 0}
    results = []
    for rows in (np.arange(12), np.array(order)):
        outcomes = {text: values[rows] for text, values in correct.items()}
        run = write_run(tmp_path_factory.mktemp("run"), "m", outcomes, images=12, names=names[rows].tolist())
        found = score(run, **QUICK)
        results.append([row for row in found.rows if row.name in ("error", "robustness", "residual")])
    assert results[0] == results[1]


class TestSequences:
    def test_by_hand(self, tmp_path: Path) -> None:
        """Two images: one flips once in 30 steps by swapping its first two classes, the other never."""
        still = np.tile(np.arange(5), (31, 1))
        swapped = still.copy()
        swapped[10:, :2] = [1, 0]
        top5 = np.stack([swapped, still])
        run = write_run(
            tmp_path, "m", {"clean": [True, True], "p:tilt@1": top5, "p:shot_noise@1": top5}, images=2, zipf=True,
            benchmark={"metric": "mfr", "baseline": "alexnet"},
        )  # fmt: skip
        found = score(run, **QUICK)
        # Temporal: 1 flip of 30 in one of two images. Noise: 21 of 30 frames differ from the first in one of two.
        assert found.find("flips", "p:tilt@1").estimate.value == pytest.approx(100 / 60)
        assert found.find("flips", "p:shot_noise@1").estimate.value == pytest.approx(100 * 21 / 60)
        assert found.find("fr", "p:tilt@1").estimate.value == pytest.approx(100 / 60 / 0.0705)
        wanted = (1 / 60 / 0.0705 + 21 / 60 / 0.3006) / 2
        assert found.find("mfr").estimate.value == pytest.approx(100 * wanted)
        # A swap of the first two is a distance of 2.
        assert found.find("ut5d", "p:tilt@1").estimate.value == pytest.approx(2 / 60)
        zipf = run.records(parse_condition("p:tilt@1")).zipf
        assert zipf is not None
        frames = zipf.reshape(2, 31)[:, 1:]
        assert found.find("zipf", "p:tilt@1").estimate.value == pytest.approx(float(frames.mean()), rel=1e-6)
        assert [(item.names, item.of) for item in found.missing] == [(("mt5d",), "")]
        assert any("not re-checked" in remark for remark in found.remarks)
        assert any("video" in remark for remark in found.remarks)

    def test_without_zipf_it_is_said_once(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", {"clean": 0.9, "p:tilt@1": 0.1, "p:scale@1": 0.1}, benchmark={"metric": "flips"})
        found = score(run, **QUICK)
        assert {item.names: item.why for item in found.missing} == {
            ("mfr", "mt5d"): "no baseline was given (--baseline, or baseline=)",
            ("zipf",): "no Zipf distances of p:tilt@1 (and likewise for 1 more)",
        }
        assert found.headline is not None


class TestNatural:
    def test_accuracy_same_classes_and_gap(self, tmp_path: Path) -> None:
        conditions = {"clean": 0.9, "natural:imagenet-a": 0.2, "clean:imagenet-a": 0.9}
        run = write_run(tmp_path, "m", conditions, benchmark={"metric": "natural_gap"})
        found = score(run, replicates=500)
        natural, same = (1 - error(run, text) for text in ("natural:imagenet-a", "clean:imagenet-a"))
        gap = found.find("natural_gap", "natural:imagenet-a").estimate
        assert gap.value == pytest.approx(100 * (same - natural))
        assert found.find("accuracy", "natural:imagenet-a").estimate.value == pytest.approx(100 * natural)
        assert found.headline is not None
        # Different images, so the variances add: 100 in one set, 50 in the other.
        wanted = 2 * 1.96 * np.sqrt(natural * (1 - natural) / 100 + same * (1 - same) / 50)
        assert gap.width == pytest.approx(100 * wanted, rel=0.2)

    def test_without_the_same_classes_there_is_no_gap(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", {"clean": 0.9, "natural:imagenet-a": 0.2}, benchmark={"metric": "natural_gap"})
        found = score(run, **QUICK)
        with pytest.raises(InputError, match="natural_gap cannot be computed: no records of clean:imagenet-a"):
            found.find("natural_gap")


class TestMissing:
    def test_unfinished_conditions_are_named(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", {**severities(("fog", "snow")), "fog@4": None}, benchmark=MCE)
        found = score(run, **QUICK)
        assert found.headline is None
        with pytest.raises(InputError, match="mce cannot be computed: not known of fog"):
            found.find("mce")
        with pytest.raises(InputError, match="ce of fog cannot be computed: no records of fog@4"):
            found.find("ce", "fog")
        assert found.find("ce", "snow").estimate.value > 0
        listed = {(name, item.of) for item in found.missing for name in item.names}
        assert {("error", "fog@4"), ("error", "fog"), ("error", "weather"), ("error", "")} <= listed
        with pytest.raises(InputError, match="does not apply"):
            found.find("mfr")

    def test_no_baseline(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", severities(("fog", "snow")), benchmark={"metric": "mce"})
        found = score(run, **QUICK)
        assert [(item.names, item.of, item.why) for item in found.missing] == [
            (("mce", "relative_mce"), "", "no baseline was given (--baseline, or baseline=)")
        ]
        run = write_run(tmp_path, "n", {"clean": 0.9, "fog@1": 0.8, "lp:l2@1": 0.8}, benchmark=MCE)
        with pytest.raises(InputError, match="baseline alexnet has no errors of lp:l2@1"):
            score(run, **QUICK).find("ce", "lp:l2")

    def test_nothing_at_all(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", {"clean": None, "fog@1": None})
        with pytest.raises(InputError, match="no condition is finished"):
            score(run)

    def test_clean_accuracy_of_zero(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", {"clean": np.zeros(20, bool), "fog@1": np.ones(20, bool)}, images=20)
        with pytest.raises(InputError, match="robustness of fog cannot be computed: the clean accuracy is 0"):
            score(run, **QUICK).find("robustness", "fog")

    def test_a_baseline_that_does_not_suffer(self, tmp_path: Path) -> None:
        easy = write_run(tmp_path, "easy", {"clean": np.arange(100) > 10, "fog@1": np.arange(100) > 10})
        run = write_run(tmp_path, "m", {"clean": 0.8, "fog@1": 0.5})
        found = score(run, baseline=easy, **QUICK)
        assert found.find("mce").estimate.value > 0
        with pytest.raises(InputError, match="fog: the baseline's rise of the error above its clean error is 0"):
            found.find("relative_mce")

    def test_an_image_missing_in_one_condition_is_named(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", {"clean": 0.8, "fog@1": 0.5}, images=10)
        other = write_run(
            tmp_path, "n", {"clean": 0.8, "fog@1": 0.5}, images=9, model={"name": "m"}, data={"images": 10}
        )
        fog = parse_condition("fog@1")
        record_path(run.folder, fog).write_bytes(record_path(other.folder, fog).read_bytes())
        with pytest.raises(InputError, match=r"image c9/000009\.png is among the records of clean, but not of fog@1"):
            score(run)

    def test_doubled_images_are_named(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", {"clean": 0.8}, names=["a", "b", "a"])
        with pytest.raises(InputError, match="clean: image a has several records"):
            score(run)


class TestMarks:
    def test_a_level_that_is_none(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", severities(("fog",)))
        for level in (0.0, 1.0, 95.0, float("nan")):
            with pytest.raises(InputError, match="expected a number between 0 and 1"):
                score(run, level=level)

    def test_images_that_all_agree(self, tmp_path: Path) -> None:
        """0 errors in 40 images is no proof of 0 %: the exact interval ends at 1 − 0.025^(1/40) = 8.8 %."""
        outcomes = {"clean": [True] * 40, "fog@1": [False] * 40, "clean:imagenet-a": [True] * 20}
        found = score(write_run(tmp_path, "m", outcomes, images=40), **QUICK)
        for name, of, low, high in (
            ("error", "clean", 0, 8.8097),
            ("accuracy", "clean", 91.1903, 100),
            ("error", "fog@1", 91.1903, 100),
            ("error", "fog", 91.1903, 100),
            ("error", "", 91.1903, 100),
            ("accuracy", "clean:imagenet-a", 83.1567, 100),  # 0.025^(1/20)
        ):
            shown = found.find(name, of).estimate
            assert (shown.low, shown.high) == pytest.approx((low, high), abs=1e-4), (name, of)
        residual = found.find("residual").estimate  # at the ends, both rates are as far off as they may be
        assert (residual.low, residual.high) == pytest.approx((100 - 2 * 8.8097, 100), abs=1e-4)

    @pytest.mark.parametrize("metric", [MCE, {"metric": "error"}])
    def test_part_of_a_benchmark(self, tmp_path: Path, metric: dict[str, str]) -> None:
        part = {"part_of": {"name": "imagenet-c", "conditions": 75}}
        found = score(write_run(tmp_path, "m", {"clean": 0.8, "fog@3": 0.5}, benchmark={**metric, **part}), **QUICK)
        title = TITLES[metric["metric"]].title
        assert found.remarks[0] == f"only 1 of the 75 conditions of imagenet-c: not its {title}"
        assert found.as_dict()["remarks"][0] == found.remarks[0]

    def test_trained_on(self, tmp_path: Path) -> None:
        training = {"training": {"corruptions": ["fog"], "augmentations": []}}
        run = write_run(tmp_path, "m", severities(("fog", "snow", "contrast")), benchmark=MCE, model=training)
        found = score(run, **QUICK)
        marked = {row.of for row in found.rows if row.trained_on}
        assert marked == {"", "fog", "weather", *(f"fog@{s}" for s in range(1, 6))}

    @pytest.mark.parametrize(("seen", "tested"), [("frost", "frost_drawn"), ("frost_drawn", "frost")])
    def test_a_variant_of_what_was_trained_on_is_marked(self, tmp_path: Path, seen: str, tested: str) -> None:
        training = {"training": {"corruptions": [seen], "augmentations": []}}
        run = write_run(tmp_path, "m", severities((tested, "snow")), model=training)
        assert {row.of for row in score(run, **QUICK).select(scope="corruption") if row.trained_on} == {tested}

    def test_drawn_frost_is_not_divided_by_the_published_errors_of_frost(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", severities(("frost_drawn", "snow")), benchmark=MCE)
        found = score(run, **QUICK)
        assert {row.of for row in found.select(scope="corruption", name="ce")} == {"snow"}
        with pytest.raises(InputError, match="baseline alexnet has no errors of frost_drawn@1"):
            found.find("ce", "frost_drawn")
        with pytest.raises(InputError, match="not known of frost_drawn"):
            found.find("mce")

    def test_remarks_on_the_published_baseline(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", severities(("frost",)), benchmark=MCE)
        said = " ".join(score(run, **QUICK).remarks)
        for words in ("JPEG of quality 85", "raw pixels", "custom-0123456789abcdef photographs", "this data has 10"):
            assert words in said
        faithful = {"storage": "jpeg85", "frost": "reference"}
        run = write_run(tmp_path, "n", severities(("frost",)), benchmark=MCE, protocol=faithful, data={"classes": 1000})
        assert len(score(run, **QUICK).remarks) == 2


class TestSequential:
    def test_levels_add_up(self) -> None:
        assert sum(look_levels(0.05, look) for look in range(1, 10_000)) == pytest.approx(0.05, rel=1e-3)
        assert enough_replicates(look_levels(0.05, 5)) == 12_000
        for wrong in ((0.0, 1), (0.05, 0)):
            with pytest.raises(InputError, match="expected"):
                look_levels(*wrong)

    def test_width_is_that_of_the_score(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", {**severities(("fog",)), "p:tilt@1": 0.1}, images=200, benchmark=MCE)
        share = look_levels(0.05, 2)
        headline = score(run, level=1 - share, replicates=enough_replicates(share)).headline
        assert headline is not None
        done, width = precise_enough(run, width=headline.estimate.width + 0.01, look=2)
        assert (done, width) == (True, headline.estimate.width)
        assert precise_enough(run, width=width - 0.01, look=2) == (False, width)
        assert precise_enough(run, width=width, look=3)[1] > width

    def test_few_images_are_never_enough(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", {"clean": np.ones(20, bool), "fog@1": np.ones(20, bool)}, images=20)
        done, width = precise_enough(run, width=50, look=1)
        # All 20 are right: 1 − (α/2)^(1/20) with α = 0.05 / 2, in percent.
        assert (done, width) == (False, pytest.approx(100 * (1 - 0.0125 ** (1 / 20))))

    def test_images_that_agree_have_exact_widths(self, tmp_path: Path) -> None:
        """An image counts once, however many conditions it was seen under: at most 1 − (α/2)^(1/200) do otherwise."""
        right = np.ones(200, bool)
        outcomes = {"clean": right, "fog@1": right, "snow@1": right}
        far = 1 - 0.0125 ** (1 / 200)
        run = write_run(tmp_path, "error", outcomes, images=200)
        assert precise_enough(run, width=1, look=1) == (False, pytest.approx(100 * far))
        assert precise_enough(run, width=3, look=1) == (True, pytest.approx(100 * far))
        run = write_run(tmp_path, "m", outcomes, images=200, benchmark={"metric": "robustness"})
        # From fewer corrupted images right to fewer clean ones.
        exact = pytest.approx(TITLES["robustness"].scale * (1 / (1 - far) - (1 - far)))
        assert precise_enough(run, width=0.01, look=1) == (False, exact)
        assert precise_enough(run, width=10, look=1) == (True, exact)

    def test_score_widens_by_itself(self, tmp_path: Path) -> None:
        """What the documentation promises: a run with a goal needs no level of its own to be corrected for looks."""
        run = write_run(tmp_path, "m", severities(("fog",)), images=200, benchmark=MCE)
        run = replace(run, info=replace(run.info, until=True))
        headline = score(run, level=0.95).headline
        assert headline is not None
        assert headline.estimate.width == precise_enough(run, width=1, look=run.stages)[1]

    def test_refusals(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", severities(("fog",)), benchmark={"metric": "mce"})
        with pytest.raises(InputError, match="mce cannot be computed: no baseline was given"):
            precise_enough(run, width=1, look=1)
        with pytest.raises(InputError, match="width 0; expected more than 0"):
            precise_enough(run, width=0, look=1)


def test_clean_images_that_natural_sets_share_are_resampled_together(tmp_path: Path) -> None:
    """Two sets with the same clean images and no error of their own: the mean gap varies as much as either gap."""
    right = np.random.default_rng(0).random(100) < 0.7
    conditions: dict[str, Outcome] = {"clean": 0.7}
    for name in ("imagenet-a", "imagenet-r"):
        conditions |= {f"clean:{name}": right, f"natural:{name}": np.ones(200, dtype=bool)}
    run = write_run(tmp_path, "m", conditions, images=200, benchmark={"metric": "natural_gap"})
    scores = score(run)
    mean = scores.find("natural_gap")
    single = scores.find("natural_gap", "natural:imagenet-a")
    assert mean.estimate.width == pytest.approx(single.estimate.width, rel=1e-6)
