"""Parts of benchmarks have other names, models near chance are told, and a relative CE that means nothing is none."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blemish.core.errors import InputError
from blemish.evaluation.runs import Run
from blemish.metrics import baseline_from_run, compare, precise_enough, relative_corruption_error, score
from blemish.reports.compare_tables import comparison_tables
from blemish.reports.html import report_page
from blemish.reports.protocol import protocol_rows
from blemish.reports.reading import read_all
from blemish.reports.score_tables import score_tables, summary_table
from blemish.reports.table_files import comparison_csv, comparison_json, scores_csv, scores_json
from synthetic_runs import severities, write_run

QUICK: dict[str, Any] = {"replicates": 50}
MCE = {"metric": "mce", "baseline": "alexnet"}
PART = {"name": "imagenet-c (5 of 75 conditions)", "part_of": {"name": "imagenet-c", "conditions": 75}}
HEADLINES = {
    "mce": ("mean_ce", "mean CE over 5 of 75 conditions"),
    "relative_mce": ("mean_relative_ce", "mean relative CE over 5 of 75 conditions"),
    "error": ("error", "mean error over 5 of 75 conditions"),
    "robustness": ("robustness", "mean robustness score R over 5 of 75 conditions"),
}


def part(folder: Path, name: str = "m", metric: str = "mce", **more: Any) -> Run:
    benchmark = {**MCE, **PART, "metric": metric}
    return write_run(folder, name, severities(("fog",)), benchmark=benchmark, **more)


class TestParts:
    @pytest.mark.parametrize("metric", HEADLINES)
    def test_the_headline_has_another_name(self, tmp_path: Path, metric: str) -> None:
        name, title = HEADLINES[metric]
        found = score(part(tmp_path, metric=metric), **QUICK)
        assert found.metric == name
        assert found.headline is not None
        entry = found.as_dict()
        assert entry["metric"] == entry["headline"]["name"] == name
        assert entry["headline"]["title"] == title
        assert entry["part"] == {"conditions": 5, "whole": 75, "benchmark": "imagenet-c"}

    def test_no_output_calls_it_mce(self, tmp_path: Path) -> None:
        readings = read_all([part(tmp_path)], **QUICK)
        columns = [line.split(",")[2] for line in scores_csv(readings).splitlines()]
        assert "mean_ce" in columns
        assert not {"mce", "relative_mce"} & set(columns)
        names = {row["name"] for row in json.loads(scores_json(readings))[0]["rows"]}
        assert "mean_relative_ce" in names
        assert not {"mce", "relative_mce"} & names
        heads = [str(cell) for table in score_tables(readings) for row in table.rows for cell in row]
        heads += [column for table in score_tables(readings) for column in table.columns]
        assert "mean CE over 5 of 75 conditions, %" in heads
        assert not [text for text in heads if "mCE" in text]

    def test_the_protocol_names_the_number_of_the_part(self, tmp_path: Path) -> None:
        rows = protocol_rows(read_all([part(tmp_path)], replicates=5))["Benchmark"]
        assert {row.name: row.values for row in rows}["metric"] == ["mean_ce"]

    def test_the_value_is_that_of_the_formula(self, tmp_path: Path) -> None:
        here = score(part(tmp_path), **QUICK)
        whole = score(write_run(tmp_path, "w", severities(("fog",)), benchmark=MCE), **QUICK)
        assert here.find("mean_ce").estimate == whole.find("mce").estimate
        with pytest.raises(InputError, match="mce does not apply"):
            here.find("mce")

    def test_sequences(self, tmp_path: Path) -> None:
        benchmark = {"metric": "mfr", "baseline": "alexnet", "part_of": {"name": "imagenet-p", "conditions": 10}}
        run = write_run(tmp_path, "m", {"clean": 0.8, "p:tilt@1": 0.1}, benchmark=benchmark)
        found = score(run, **QUICK)
        assert found.as_dict()["headline"]["title"] == "mean flip rate FR over 1 of 10 conditions"
        assert not found.select(name="mfr")

    def test_until_it_is_precise_enough(self, tmp_path: Path) -> None:
        run = part(tmp_path)
        assert precise_enough(run, width=1000, look=1)[0]

    def test_whole_and_part_beside_each_other_are_two_rows(self, tmp_path: Path) -> None:
        whole = write_run(tmp_path, "w", severities(), benchmark=MCE)
        rows = {row[0].text: row for row in summary_table(read_all([whole, part(tmp_path)], **QUICK)).rows}
        assert [str(cell) for cell in rows["mCE, %"]][2] == "–"
        assert [str(cell) for cell in rows["mean CE over 5 of 75 conditions, %"]][1] == "–"
        assert [str(cell) for cell in rows["mean error, %"]][2] == "–"
        assert [str(cell) for cell in rows["mean error over 5 of 75 conditions, %"]][1] == "–"

    def test_the_page(self, tmp_path: Path) -> None:
        page = report_page([part(tmp_path)], **QUICK)
        assert "mean CE over 5 of 75 conditions (alexnet = 100)</small>" in page
        assert "% mCE" not in page

    def test_two_parts_compared(self, tmp_path: Path) -> None:
        found = compare(part(tmp_path, "a"), part(tmp_path, "b", seed=1), **QUICK)
        assert found.metric == "mean_ce"
        assert found.headline is not None
        table = comparison_tables(found, "a", "b")[0]
        assert table.title == "The means over 5 of 75 conditions"
        assert table.rows[0][0].text == "mean CE, %"
        assert "\nmce," not in comparison_csv(found)
        assert json.loads(comparison_json(found))["part"]["whole"] == 75

    def test_what_two_runs_have_in_common_is_a_part(self, tmp_path: Path) -> None:
        whole = write_run(tmp_path, "w", severities(), benchmark=MCE)
        for first, second in ((whole, part(tmp_path, "a")), (part(tmp_path, "b"), whole)):
            found = compare(first, second, allow_mismatch=True, **QUICK)
            assert str(found.part) == "over 5 of 75 conditions"
            assert found.metric == "mean_ce"
        assert compare(whole, whole, **QUICK).part is None


def test_web_scale_training_is_said(tmp_path: Path) -> None:
    known = {"card": {"training_data": ["WebLI"], "web_scale": True}}
    run = write_run(tmp_path, "siglip", severities(), model=known)
    assert "siglip: learnt from WebLI, web-scale data" in score(run, **QUICK).remarks[0]
    small = write_run(
        tmp_path, "net", severities(), model={"card": {"training_data": ["ImageNet-1k"], "web_scale": False}}
    )
    assert score(small, **QUICK).remarks == ()


class TestNearChance:
    @pytest.fixture
    def poor(self, tmp_path: Path) -> Run:
        return write_run(tmp_path, "poor", severities(clean=0.1, worst=0.1), benchmark=MCE, images=200)

    def test_scores_say_so(self, poor: Run) -> None:
        found = score(poor, **QUICK)
        assert found.near_chance
        assert found.chance is not None
        assert found.chance.chance == pytest.approx(0.1, abs=0.02)
        assert "not above chance" in found.remarks[0]
        entry = found.as_dict()
        assert entry["near_chance"] is True
        assert entry["chance"]["images"] == 200

    def test_tables_mark_it(self, poor: Run, tmp_path: Path) -> None:
        good = write_run(tmp_path, "good", severities(), benchmark=MCE, images=200)
        readings = read_all([good, poor], **QUICK)
        assert summary_table(readings).columns == ("metric", "good", "poor (near chance)")
        assert any("not above chance" in note for note in summary_table(readings).notes)
        lines = scores_csv(readings).splitlines()
        assert lines[0].endswith(",near_chance")
        assert all(line.endswith("near chance") == line.startswith("poor,") for line in lines[1:])
        assert [entry["near_chance"] for entry in json.loads(scores_json(readings))] == [False, True]
        found = compare(good, poor, **QUICK)
        assert found.near_chance == (False, True)
        assert json.loads(comparison_json(found))["near_chance"] == [False, True]
        assert comparison_csv(found).splitlines()[1].endswith(",second")

    def test_the_page_warns(self, poor: Run) -> None:
        page = report_page([poor], **QUICK)
        assert "<h3>poor (near chance)</h3>" in page
        assert "not above chance (" in page
        assert "normalisation" in page

    def test_relative_errors_mean_nothing(self, poor: Run, tmp_path: Path) -> None:
        """Without this they are about 0, as if nothing could harm the model."""
        found = score(poor, **QUICK)
        assert not found.select(name="relative_mce")
        assert not found.select(name="relative_ce")
        assert not found.select(name="residual")
        with pytest.raises(InputError, match=r"relative_mce cannot be computed: .* nothing left to lose"):
            found.find("relative_mce")
        assert found.find("mce").estimate.value > 100
        good = write_run(tmp_path, "good", severities(), benchmark=MCE, images=200)
        both = compare(good, poor, **QUICK)
        assert not [row for row in both.rows if row.name.startswith("relative")]
        assert [item for item in both.missing if "relative_mce" in item.names]

    def test_as_a_baseline(self, poor: Run, tmp_path: Path) -> None:
        good = write_run(tmp_path, "good", severities(), images=200)
        found = score(good, baseline=poor, **QUICK)
        assert baseline_from_run(poor).near_chance
        with pytest.raises(InputError, match="baseline poor is near chance"):
            found.find("relative_mce")
        assert any("The baseline, poor, is near chance" in remark for remark in found.remarks)

    def test_without_clean_images(self, tmp_path: Path) -> None:
        found = score(write_run(tmp_path, "m", {"clean": None, "fog@1": 0.1}), **QUICK)
        assert found.chance is None
        assert not found.near_chance


class TestRelativeErrors:
    def test_a_clean_error_near_100_percent(self) -> None:
        found = relative_corruption_error([[1.0, 1.0], [0.9, 0.9]], [0.995, 0.5], [0.6, 0.8], baseline_clean=0.5)
        assert math.isnan(found[0])
        assert found[1] == pytest.approx(2.0)

    @pytest.mark.parametrize("right", [0, 1])
    def test_of_a_run(self, tmp_path: Path, right: int) -> None:
        """One of 9 images right is 11 %, but some resamples hold none of it."""
        outcome = np.arange(9) < right
        run = write_run(tmp_path, "m", {"clean": outcome, "fog@1": outcome, "fog@2": outcome}, images=9)
        found = score(run, baseline=write_run(tmp_path, "b", {"clean": 0.9, "fog@1": 0.6, "fog@2": 0.3}), **QUICK)
        why = "the clean error is above 99 %" + (" in some resamples" if right else "")
        with pytest.raises(InputError, match=f"relative_mce cannot be computed: {why}"):
            found.find("relative_mce")
        for row in found.rows:
            assert math.isfinite(row.estimate.value)

    def test_a_baseline_that_hardly_suffers(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"rises by 0.2 points .* at least 0.5 to divide by"):
            relative_corruption_error([0.3], 0.2, [0.202], baseline_clean=0.2)
        base = write_run(tmp_path, "b", {"clean": np.arange(400) < 300, "fog@1": np.arange(400) < 299}, images=400)
        run = write_run(tmp_path, "m", {"clean": 0.8, "fog@1": 0.5}, images=400)
        with pytest.raises(InputError, match=r"fog: the baseline's error rises by 0\.25 points"):
            score(run, baseline=base, **QUICK).find("relative_mce")
