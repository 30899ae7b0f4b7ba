"""What a gate requires, what an interval decides, and what never passes without a word."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blemish.core.errors import InputError
from blemish.core.statistics import Estimate
from blemish.metrics import score
from blemish.metrics.gate import Gate, gate
from blemish.metrics.gate_rules import Decision, Rule, Status, decide, images_that_decide, read_rule
from synthetic_runs import severities, write_run

MCE = {"metric": "mce", "baseline": "alexnet"}
FOUR_OF_FIVE = (1 + 0.841621 / 1.959964) ** 2
QUICK = {"replicates": 1}  # raised to 400, which an interval of 95 % needs


class TestRules:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("mce < 60", Rule("mce", "", "<", 60.0)),
            ("  mce<=60.5% ", Rule("mce", "", "<=", 60.5)),
            ("fog@3 accuracy > 0.7", Rule("accuracy", "fog@3", ">", 70.0)),
            ("fog@3.0 accuracy >= 70", Rule("accuracy", "fog@3", ">=", 70.0)),
            ("clean error < 0.5 %", Rule("error", "clean", "<", 0.5)),
            ("fog@2+snow@1 error < 50", Rule("error", "fog@2+snow@1", "<", 50.0)),
            ("natural:imagenet-a accuracy > 5", Rule("accuracy", "natural:imagenet-a", ">", 5.0)),
            ("my family error < 50", Rule("error", "my family", "<", 50.0)),
            ("robustness > 0.9", Rule("robustness", "", ">", 0.9)),  # shown without a unit
            ("effective_robustness > −2", Rule("effective_robustness", "", ">", -2.0)),
            ("effective_robustness > 0.5 points", Rule("effective_robustness", "", ">", 0.5)),
            ("error > 0", Rule("error", "", ">", 0.0)),  # 0 is the same in both units
        ],
    )
    def test_read(self, text: str, expected: Rule) -> None:
        found = read_rule(text)
        assert (found.name, found.of, found.sign) == (expected.name, expected.of, expected.sign)
        assert found.bound == pytest.approx(expected.bound, abs=1e-9)
        assert read_rule(str(found)) == found  # what is printed can be typed

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("", "expected .OF. METRIC SIGN NUMBER"),
            ("mce", "expected .OF. METRIC"),
            ("mce = 60", "a sign of < <= > >="),
            ("mce < 60 < 70", "expected .OF. METRIC"),
            ("mce < 6e1", "expected .OF. METRIC"),
            ("mce < nan", "expected .OF. METRIC"),
            ("mce < 0,7", "expected .OF. METRIC"),
            ("mce < " + "9" * 400, "a finite number"),
            ("mCE < 60", "no metric 'mCE'; did you mean mce"),
            ("acuracy > 0.7", "no metric 'acuracy'; did you mean accuracy"),
            ("qqqqqq > 7", "docs/metrics.md"),
            ("error < 0.5", "0.5 may be 0.5 % or 50 %"),
            ("accuracy > 1", "1 may be 1 % or 100 %"),
            ("residual < -0.5", "-0.5 may be -0.5 % or -50 %"),
            ("accuracy > 170", "from 0 to 100 %"),
            ("error > -3", "from 0 to 100 %"),
            ("robustness > 90 %", "robustness is shown without a unit, not in %"),
            ("mce < 60 points", "mce is shown in %, not in points"),
            ("fog@x error < 5", "condition 'fog@x'; expected"),
        ],
    )
    def test_refused(self, text: str, message: str) -> None:
        with pytest.raises(InputError, match=message):
            read_rule(text)


class TestDecisions:
    """By hand: which side of the bound both ends and the value are on."""

    @pytest.mark.parametrize(
        ("numbers", "sign", "bound", "status"),
        [
            ((58, 56, 59.9), "<", 60, Status.PASSED),
            ((58, 56, 60), "<", 60, Status.UNDECIDED),
            ((58, 56, 60), "<=", 60, Status.PASSED),
            ((62, 60, 64), "<", 60, Status.FAILED),
            ((62, 60, 64), "<=", 60, Status.UNDECIDED),
            ((62, 60.1, 64), "<=", 60, Status.FAILED),
            ((72, 70.1, 74), ">", 70, Status.PASSED),
            ((72, 70, 74), ">", 70, Status.UNDECIDED),
            ((68, 66, 70), ">", 70, Status.FAILED),
            ((68, 66, 70), ">=", 70, Status.UNDECIDED),
            ((59, 61, 62), "<", 60, Status.UNDECIDED),  # the value contradicts its interval
            ((60, 60, 60), "<=", 60, Status.PASSED),
            ((60, 60, 60), "<", 60, Status.FAILED),
            ((0.55 * 100, 0.55 * 100, 0.55 * 100), "<=", 55, Status.PASSED),  # 55.00000000000001
        ],
    )
    def test_by_interval(self, numbers: tuple[float, float, float], sign: str, bound: float, status: Status) -> None:
        assert decide(Estimate(*numbers), sign, bound).status is status

    def test_by_point(self) -> None:
        wide = Estimate(58, 40, 90)
        assert decide(wide, "<", 60, by_point=True) == Decision(Status.PASSED)
        assert decide(wide, "<", 58, by_point=True) == Decision(Status.FAILED)
        assert decide(wide, "<=", 58, by_point=True) == Decision(Status.PASSED)

    def test_how_many_images(self) -> None:
        # Below the bound: the upper end is 6 away, the bound 2: (6/2)² = 9 times as many bring it there on average.
        # Four times out of five it does with (1 + 0.8416 / 1.96)² as many, where 0.8416 is the normal law's 80 % point.
        assert decide(Estimate(58, 57, 64), "<", 60).times == pytest.approx(9 * FOUR_OF_FIVE)
        # Above it: the lower end is 5 away, the bound 2: 6.25 times.
        assert decide(Estimate(62, 57, 63), "<", 60).times == pytest.approx(6.25 * FOUR_OF_FIVE)
        assert decide(Estimate(62, 57, 63), ">", 60).times == pytest.approx(6.25 * FOUR_OF_FIVE)
        wider = decide(Estimate(62, 57, 63), ">", 60, level=0.99).times
        assert wider == pytest.approx(6.25 * (1 + 0.841621 / 2.575829) ** 2)
        assert images_that_decide(100, 6.25) == 625
        assert images_that_decide(3, 1.1) == 4

    @pytest.mark.parametrize("rate", [0.53, 0.56])
    def test_so_many_images_decide_four_times_out_of_five(self, rate: float) -> None:
        rng = np.random.default_rng(0)

        def estimate(images: int) -> Estimate:
            right = rng.binomial(images, rate) / images
            far = 1.96 * math.sqrt(right * (1 - right) / images)
            return Estimate(*(100 * x for x in (right, right - far, right + far)))

        far = 1.96 * math.sqrt(rate * (1 - rate) / 100)
        times = decide(Estimate(100 * rate, 100 * (rate - far), 100 * (rate + far)), ">", 50).times
        assert times is not None
        again = [decide(estimate(round(100 * times)), ">", 50).status for _ in range(1000)]
        assert 0.76 < np.mean([status is Status.PASSED for status in again]) < 0.84

    def test_where_all_answers_agree_the_exact_interval_decides(self) -> None:
        # Of 10 images all are right: [69.15, 100]. 0.025^(1/n) is above 0.99 from n = 368 on.
        found = decide(Estimate(100, 69.1503, 100), ">", 99, share=True)
        assert found.times is not None
        assert images_that_decide(10, found.times) == 368
        assert 0.025 ** (1 / 368) > 0.99 > 0.025 ** (1 / 367)

    def test_on_the_bound_no_number_decides(self) -> None:
        assert decide(Estimate(60, 55, 65), "<", 60) == Decision(Status.UNDECIDED, None)
        assert decide(Estimate(60, 55, 65), ">=", 60) == Decision(Status.UNDECIDED, None)


def only(found: Gate) -> Any:
    (verdict,) = found.verdicts
    return verdict


class TestGate:
    def test_numbers_are_those_of_score(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", severities(("fog", "snow")), benchmark=MCE, images=200)
        found = gate(run, ["fog@3 accuracy > 0.1"])
        own = score(run).find("accuracy", "fog@3").estimate
        assert only(found).estimate == own
        assert only(found).status is found.status is Status.PASSED
        json.dumps(found.as_dict(), allow_nan=False)

    def test_undecided_names_a_number_of_images(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", {"clean": 0.9, "fog@1": [True] * 52 + [False] * 48}, images=100)
        verdict = only(gate(run, ["fog@1 accuracy > 50 %"]))
        assert verdict.status is Status.UNDECIDED
        # Value 52, bound 50: (distance of the lower end / 2)² times as many, and twice that to be sure enough.
        expected = 100 * ((52 - verdict.estimate.low) / 2) ** 2 * FOUR_OF_FIVE
        assert verdict.images == pytest.approx(expected, abs=1)
        assert "an estimate" in verdict.why
        exact = only(gate(run, ["fog@1 accuracy > 52 %"], **QUICK))
        assert (exact.status, exact.images) == (Status.UNDECIDED, None)
        assert "no number of images decides" in exact.why
        assert only(gate(run, ["fog@1 accuracy > 50 %"], by_point=True, **QUICK)).status is Status.PASSED

    def test_few_images_that_are_all_right_do_not_pass(self, tmp_path: Path) -> None:
        right = [True] * 10
        run = write_run(tmp_path, "m", {"clean": right, "fog@1": right, "fog@2": right}, images=10)
        for of in ("clean ", "fog@1 ", "fog ", ""):
            verdict = only(gate(run, [f"{of}accuracy > 99 %"], **QUICK))
            # Exact: 0.025^(1/10) is 0.6915, however many conditions an image was seen under.
            assert (verdict.status, round(verdict.estimate.low, 2)) == (Status.UNDECIDED, 69.15)
        residual = only(gate(run, ["residual < 2"], **QUICK))
        assert residual.status is Status.UNDECIDED
        assert "0 [-30.85, 30.85] %" in residual.why

    def test_the_worst_counts(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", {"clean": 0.9, "fog@1": [True] * 52 + [False] * 48}, images=100)
        passed, undecided, failed = "clean error < 50", "fog error < 50", "fog error < 5"
        assert gate(run, [passed], **QUICK).status is Status.PASSED
        assert gate(run, [passed, undecided], **QUICK).status is Status.UNDECIDED
        assert gate(run, [passed, undecided, failed], **QUICK).status is Status.FAILED

    def test_missing_conditions_are_named_and_do_not_pass(self, tmp_path: Path) -> None:
        conditions = {**severities(("fog", "snow")), "fog@3": None}
        run = write_run(tmp_path, "m", conditions, benchmark=MCE)
        found = gate(run, ["mce < 900", "fog@3 error < 100", "fog ce < 900", "snow error < 99"], **QUICK)
        assert [v.status for v in found.verdicts] == [*[Status.UNKNOWN] * 3, Status.PASSED]
        assert all("no records of fog@3" in v.why for v in found.verdicts[:3])
        assert found.status is Status.FAILED
        assert "m: no records yet of fog@3" in found.notes

    def test_a_part_of_a_benchmark_has_no_mce(self, tmp_path: Path) -> None:
        whole = {"part_of": {"name": "imagenet-c", "conditions": 75}}
        run = write_run(tmp_path, "m", severities(("fog",)), benchmark=MCE | whole)
        found = gate(run, ["mce < 900", "mean_ce < 900"], **QUICK)
        assert [v.status for v in found.verdicts] == [Status.UNKNOWN, Status.PASSED]
        assert "only 5 of the 75 conditions of imagenet-c" in found.verdicts[0].why
        assert "over 5 of 75 conditions" in found.verdicts[1].why

    def test_without_a_baseline_the_reason_is_told(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", severities(("fog",)))
        found = gate(run, ["mce < 60", "fog ce < 60"], **QUICK)
        assert all("no baseline was given" in v.why for v in found.verdicts)
        assert found.status is Status.FAILED

    def test_near_chance_fails_whatever_is_asked(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", {"clean": 0.1, "fog@1": 0.1}, images=300)
        good = write_run(tmp_path, "good", {"clean": 0.9, "fog@1": 0.5}, images=300)
        for point in (False, True):
            found = gate(run, ["error < 100"], by_point=point, **QUICK)
            assert only(found).status is Status.FAILED
            assert "near chance" in only(found).why
        assert "m is near chance" in only(gate(good, against=run, max_drop=1, **QUICK)).why
        assert only(gate(good, against=run, max_drop=1, **QUICK)).status is Status.FAILED

    def test_training_on_a_corruption_is_told(self, tmp_path: Path) -> None:
        model = {"training": {"corruptions": ["fog"], "augmentations": []}}
        run = write_run(tmp_path, "m", {"clean": 0.9, "fog@1": 0.9}, model=model)
        assert "trained on a corruption" in only(gate(run, ["fog error < 50"], **QUICK)).why

    @pytest.mark.parametrize(
        ("rule", "message"),
        [
            ("fgo error < 50", "no 'fgo'; did you mean fog"),
            ("fog@4 error < 50", "no 'fog@4'"),
            ("ce < 50", "ce does not apply to the whole benchmark; known of it: error, "),
            ("fog@1 mce < 50", "mce does not apply to fog@1"),
        ],
    )
    def test_rules_that_make_no_sense_for_the_run(self, rule: str, message: str, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", {"clean": 0.9, "fog@1": 0.5}, benchmark=MCE)
        with pytest.raises(InputError, match=message):
            gate(run, [rule], **QUICK)

    def test_a_name_with_two_meanings(self, tmp_path: Path) -> None:
        families = {"families": {"fog": "snow", "snow": "snow"}}
        run = write_run(tmp_path, "m", {"clean": 0.9, "fog@1": 0.7, "snow@1": 0.3}, benchmark=families)
        with pytest.raises(InputError, match="snow is the name of a corruption and of a family"):
            gate(run, ["snow error < 50"], **QUICK)


class TestAgainst:
    RIGHT = (True,) * 90 + (False,) * 10
    WORSE = (True,) * 70 + (False,) * 30

    def test_error_may_rise_and_accuracy_fall_by_so_much(self, tmp_path: Path) -> None:
        for metric in ("error", "accuracy"):
            runs = [
                write_run(tmp_path / metric, name, {"clean": 0.9, "fog@1": outcome}, benchmark={"metric": metric})
                for name, outcome in (("old", self.RIGHT), ("new", self.WORSE))
            ]
            old, new = runs
            # 90 of 100 before, 70 now: 20 points worse, whatever the direction of the metric.
            verdict = only(gate(new, against=old, max_drop=1.5, **QUICK))
            assert verdict.status is Status.FAILED
            assert verdict.estimate.value == pytest.approx(20)
            assert "points" in verdict.why
            assert only(gate(new, against=old, max_drop=20.5, **QUICK)).status is Status.UNDECIDED
            assert only(gate(new, against=old, max_drop=20.5, by_point=True, **QUICK)).status is Status.PASSED
            assert only(gate(old, against=new, max_drop=0, **QUICK)).status is Status.PASSED
            same = only(gate(old, against=old, max_drop=0, **QUICK))
            assert same.status is Status.PASSED
            assert "says nothing of other images" in same.why

    def test_other_protocols_are_refused(self, tmp_path: Path) -> None:
        old = write_run(tmp_path, "old", {"clean": 0.9, "fog@1": 0.5})
        new = write_run(tmp_path, "new", {"clean": 0.9, "fog@1": 0.5}, protocol={"seed": 3})
        with pytest.raises(InputError, match=r"protocol\.seed is 0 and 3"):
            gate(new, against=old, max_drop=50)

    def test_missing_conditions_of_either_do_not_pass(self, tmp_path: Path) -> None:
        full = write_run(tmp_path, "full", {"clean": 0.9, "fog@1": 0.5, "snow@1": 0.5})
        part = write_run(tmp_path, "part", {"clean": 0.9, "fog@1": 0.5, "snow@1": None})
        for new, old in ((full, part), (part, full)):
            found = gate(new, against=old, max_drop=50, **QUICK)
            assert only(found).status is Status.UNKNOWN
            assert found.status is Status.FAILED
            assert "no records of snow@1" in only(found).why
            assert "part: no records yet of snow@1" in found.notes

    def test_settings_that_make_no_sense(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", {"clean": 0.9, "fog@1": 0.5})
        robust = write_run(tmp_path, "r", {"clean": 0.9, "fog@1": 0.5}, benchmark={"metric": "robustness"})
        for target, settings, message in (
            (run, {}, "nothing is required"),
            (run, {"max_drop": 1.0}, "without --against"),
            (run, {"against": run}, "without --max-drop"),
            (run, {"against": run, "max_drop": -1.0}, "expected 0 or more"),
            (run, {"against": run, "max_drop": float("nan")}, "expected 0 or more"),
            (robust, {"against": robust, "max_drop": 1.5}, "robustness lies between 0 and 1"),
        ):
            with pytest.raises(InputError, match=message):
                gate(target, **settings)
