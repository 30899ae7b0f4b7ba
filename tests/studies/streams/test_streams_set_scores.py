"""Scores over all runs of a set: means and intervals worked by hand, tables, and the page."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from blemish.core.errors import InputError
from blemish.studies.streams.info import WalkInfo
from blemish.studies.streams.levels import SETS
from blemish.studies.streams.set_page import Setting, set_page
from blemish.studies.streams.set_runs import FinishedRun, SetRun
from blemish.studies.streams.set_scores import column_scores, mean_over_seeds, running_means, scores_json
from blemish.studies.streams.set_tables import accuracy_table, gain_table, run_table, walk_table, window_table
from blemish.studies.streams.walks import Walk, WalkStep

STEP = WalkStep("fog", 2.0, "snow", 0.0, 100, 0.4, 0)
SEAMS = {"count": 4, "jumping": 1, "mean": 0.0625, "largest": 0.25, "closing": None}


def finished(
    accuracies: dict[str, float], seed: int, speed: int, name: str = "easy", target: float = 0.4, **changes: Any
) -> FinishedRun:
    """A run with these accuracies, whose windows lie a tenth around them."""
    fall = {"at": 420, "until": 999, "loss": 0.125, "to_the_end": True, "step": "fog@2"}
    methods = {
        method: {
            "accuracy": value,
            "minimum": value - 0.1,
            "mean": value,
            "maximum": value + 0.1,
            "collapse": fall if value < accuracies.get("none", 0) else None,
        }
        for method, value in accuracies.items()
    }
    running = {"at": [100, 600, 1000], **{method: [value, value, value] for method, value in accuracies.items()}}
    held = {"target": target, "mean": 0.41, "bias": 0.01, "deviation": 0.03, "steps": 10}
    scores = {"images": 1000, "window": 100, "methods": methods, "running": running, "held": held, "seams": SEAMS}
    walk = Walk((STEP,), WalkInfo())
    return FinishedRun(SetRun(SETS[name], target, seed, speed, walk), {**scores, **changes})


def nine(name: str = "easy") -> list[FinishedRun]:
    """Accuracies of "none" are .30, .40, .50 for the seeds at every speed; tent has .1, .2, .3 more at the speeds."""
    return [
        finished({"none": base, "tent": base + more}, seed, speed, name)
        for seed, base in ((43, 0.3), (44, 0.4), (45, 0.5))
        for speed, more in ((1000, 0.1), (2000, 0.2), (5000, 0.3))
    ]


class TestMeans:
    def test_by_hand(self) -> None:
        """Seeds .3, .4, .5: mean .4, deviation .1; t for 2 degrees of freedom and 95 % is 4.3027, so ± .24842."""
        (column,) = column_scores(nine())
        none, tent = column.methods["none"], column.methods["tent"]
        assert none.accuracy.value == pytest.approx(0.4)
        assert none.accuracy.high - 0.4 == pytest.approx(4.302653 * 0.1 / math.sqrt(3), abs=1e-6)
        # The speeds differ by .1 for every seed alike, which leaves nothing uncertain about the gain.
        assert tent.gain is not None
        assert (tent.gain.value, tent.gain.width) == (pytest.approx(0.2), pytest.approx(0, abs=1e-12))
        assert none.gain is None
        assert tent.minimum.value == pytest.approx(0.5)
        assert (none.collapsed, tent.collapsed) == (0, 0)

    def test_a_single_seed_has_no_interval(self) -> None:
        found = mean_over_seeds({(43, 1000): 0.2, (43, 2000): 0.4})
        assert found.value == pytest.approx(0.3)
        assert math.isnan(found.low)

    def test_runs_that_are_missing_are_named(self) -> None:
        with pytest.raises(InputError, match="no value for seed 44 at speed 1000; expected one for each"):
            mean_over_seeds({(43, 1000): 0.2, (43, 2000): 0.2, (44, 2000): 0.2})
        with pytest.raises(InputError, match="no value for any run"):
            mean_over_seeds({})

    def test_sets_and_targets_are_columns(self) -> None:
        runs = [*nine(), *(finished({"none": 0.2}, 43, 5000, "ccc-5k", target) for target in (0.2, 0.3))]
        assert [column.column for column in column_scores(runs)] == ["easy", "ccc-5k, 20 %", "ccc-5k, 30 %"]
        assert runs[-1].run.folder == "ccc-5k-30/seed-43-speed-5000"
        assert runs[0].run.folder == "easy/seed-43-speed-1000"

    def test_curves_go_as_far_as_all_runs_do(self) -> None:
        """One run rises from 0 to 1 over 100 … 1000 images, the other is at 1 over 100 … 550."""
        rising = {"at": [100, 1000], "none": [0.0, 1.0]}
        short = {"at": [100, 550], "none": [1.0, 1.0]}
        runs = [finished({"none": 0.5}, seed, 1000, running=each) for seed, each in ((43, rising), (44, short))]
        at, means = running_means(column_scores(runs)[0])
        assert (at[0], at[-1]) == (100, 550)
        assert means["none"][0] == pytest.approx(0.5)
        assert means["none"][-1] == pytest.approx(0.75)


class TestTables:
    def test_methods_by_sets(self) -> None:
        columns = column_scores([*nine(), *nine("medium")])
        table = accuracy_table(columns)
        assert table.title == "Accuracy over all images, mean of 9 runs"
        assert table.columns == ("method", "easy", "medium")
        assert [str(cell) for cell in table.rows[0]] == ["none", "40.0 [15.2, 64.8]", "40.0 [15.2, 64.8]"]
        gain = "+20.0 [+20.0, +20.0]"
        assert [[str(cell) for cell in row] for row in gain_table(columns).rows] == [["tent", gain, gain]]

    def test_a_method_that_only_some_sets_have(self) -> None:
        columns = column_scores([finished({"none": 0.4, "bn": 0.5}, 43, 1000), finished({"none": 0.4}, 43, 1, "hard")])
        rows = [[str(cell) for cell in row] for row in accuracy_table(columns).rows]
        assert rows == [["none", "40.0", "40.0"], ["bn", "50.0", "–"]]

    def test_runs_windows_and_walks(self) -> None:
        (column,) = column_scores(nine())
        assert run_table(column).columns[:3] == ("method", "43 · 1,000", "43 · 2,000")
        assert [cell.text for cell in run_table(column).rows[1][1:4]] == ["40.0", "50.0", "60.0"]
        assert window_table(column).title == "easy: accuracy over the last 100 images"
        assert [cell.text for cell in window_table(column).rows[1]] == ["tent", "50.0", "60.0", "70.0", "0 of 9"]
        walks = [cell.text for cell in walk_table([column]).rows[0]]
        assert walks == ["easy", "43 · 1,000", "1,000", "40.0", "41.0", "3.0", "1 of 4", "0.06", "0.25"]

    def test_numbers_for_other_programs(self) -> None:
        runs = [finished({"none": 0.4}, 43, 1000)]
        found = json.loads(json.dumps(scores_json(column_scores(runs)), allow_nan=False))
        assert found["easy"]["methods"]["none"]["accuracy"] == {"value": 0.4, "low": None, "high": None}
        assert found["easy"]["runs"][0]["seams"] == SEAMS


SETTING = Setting("<b>net</b>", "val (50 images)", {"window": "100 images"})


class TestPage:
    def test_what_it_holds(self) -> None:
        runs = [*nine(), *(finished({"none": 0.4, "tent": 0.2}, seed, 5, "hard") for seed in (43, 44))]
        page = set_page(column_scores(runs), setting=SETTING, warnings=["not easy as it is defined"])
        assert "&lt;b&gt;net&lt;/b&gt;" in page
        assert "<b>net</b>" not in page
        for text in (
            "11 runs over easy; hard, on val (50 images).",
            "not easy as it is defined",
            "hard, seed 43, 5 a step: tent falls behind at image 420 (fog@2), to the end, by 12.5 points at worst",
            "reference paths, independent ends; the release of Press et al., NeurIPS 2023",
            "15.2, 64.8",
        ):
            assert text in page, text
        # A chart of all runs for each set, and one for each run.
        assert page.count('<svg class="plot') == 2 + 9 + 2
        assert set_page(column_scores(runs), setting=SETTING, warnings=["not easy as it is defined"]) == page

    def test_one_run_and_no_collapse(self) -> None:
        page = set_page(column_scores([finished({"none": 0.4}, 43, 1000)]), setting=SETTING)
        assert "1 run over easy, on" in page
        assert "no method stays behind" in page
        assert page.count('<svg class="plot') == 1
