"""Models beside each other: Figure 3 and Table 1 of the ImageNet-C paper, their sequences, and refusals."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from blemish.core.errors import InputError
from blemish.evaluation.runs import Run
from blemish.metrics.published import PublishedModel, published_models
from blemish.reports.html import report_page
from blemish.reports.reading import Reading, firsts, read_all
from blemish.reports.score_tables import score_tables
from blemish.reports.standing_charts import standing_section
from blemish.reports.standings import standing_tables, standings
from blemish.reports.tables import Table
from report_runs import HOSTILE, SIZES, imagenet_c
from synthetic_runs import severities, write_run

TEN = ("gaussian_noise", "shot_noise", "motion_blur", "zoom_blur", "snow")
TEN += ("brightness", "translate", "rotate", "tilt", "scale")


def imagenet_p(folder: Path, name: str, flips: float) -> Run:
    benchmark = {"name": "imagenet-p", "title": "ImageNet-P", "metric": "mfr", "baseline": "alexnet"}
    conditions = {"clean": 0.75, **{f"p:{sequence}@1": flips for sequence in TEN}}
    own = {"model": {"weights": name}, "protocol": SIZES, "benchmark": benchmark}
    return write_run(folder / "p", name, conditions, images=20, classes=1000, **own)


def read(runs: list[Run]) -> list[Reading]:
    return read_all(runs, replicates=50)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> list[Reading]:
    """Two models on ImageNet-C, one of them on ImageNet-P as well, and a third on ImageNet-P alone."""
    folder = tmp_path_factory.mktemp("three")
    both = [imagenet_c(folder, "plain", 0.7, 0.1), imagenet_c(folder, "tough", 0.75, 0.55)]
    return read([*both, imagenet_p(folder, "tough", 0.05), imagenet_p(folder, "other", 0.1)])


def column(table: Table, name: str) -> dict[str, str]:
    place = table.columns.index(name)
    return {row[0].text: row[place].text for row in table.rows}


class TestTables:
    def test_runs_of_one_model_are_one_model(self, three: list[Reading]) -> None:
        models = {model.name: model for model in standings(three)}
        assert list(models) == ["plain", "tough", "other"]
        assert {name: model.get("mfr") is not None for name, model in models.items()} == {
            "plain": False,
            "tough": True,
            "other": True,
        }
        assert models["other"].get("mce") is None
        clean = models["tough"].get("clean_error")
        assert clean is not None
        assert clean == three[1].get("error", "condition", "clean")  # that of the corruptions' run

    def test_table_1(self, three: list[Reading]) -> None:
        table, effective = standing_tables(three)
        assert table.columns[:6] == ("model", "clean error", "mCE", "relative mCE", "mFR", "gaussian_noise")
        # By clean error; the published AlexNet has 43.5 % (Table 6 of the NOC paper), and 100 % of everything relative.
        assert [row[0].text for row in table.rows] == ["alexnet (baseline)", "plain", "tough", "other"]
        assert {cell.text for cell in table.rows[0][2:]} == {"100.0"}
        for reading in three[:2]:
            for name, head in (("mce", "mCE"), ("relative_mce", "relative mCE")):
                value = reading.scores.find(name).estimate.value
                assert column(table, head)[reading.run.name] == f"{value:.1f}"
            fog = reading.scores.find("ce", "fog").estimate.value
            assert column(table, "fog")[reading.run.name] == f"{fog:.1f}"
        assert column(table, "mFR")["plain"] == "–"
        assert {row[0].text for row in effective.rows} == {"plain", "tough"}

    def test_which_models_lie_above(self, three: list[Reading]) -> None:
        _, effective = standing_tables(three)
        verdicts = {(row[0].text, row[1].text): row[2].text for row in effective.rows}
        # Accuracies of 0.65 and 0.325 on average, where the lines have about 0.35 and 0.42.
        assert verdicts["tough", "all 200 models"] == "above"
        assert verdicts["tough", "the 78 of standard training"] == "above"
        assert "Taori et al. 2020" in effective.notes[0]

    def test_published_models_stand_beside(self, three: list[Reading]) -> None:
        table, _ = standing_tables(three, published_models("leaderboard"))
        # The leaderboard of the reference repository: ResNet-50 has mCE 76.7, clean error 23.85 and mFR 58.
        assert column(table, "mCE")["resnet50 (published)"] == "76.7"
        assert column(table, "clean error")["resnet50 (published)"] == "23.9"
        assert column(table, "mFR")["resnet50 (published)"] == "58.0"
        assert column(table, "fog")["resnet50 (published)"] == "–"

    def test_benchmarks_without_a_baseline(self, tmp_path: Path) -> None:
        runs = [
            write_run(tmp_path, name, severities(("fog", "snow"), clean=clean), protocol={"preset": "cifar"})
            for name, clean in (("one", 0.9), ("two", 0.8))
        ]
        (table,) = standing_tables(read(runs))
        assert table.columns == ("model", "clean error", "mean error", "residual robustness", "fog", "snow")
        assert table.notes == ("No effective robustness of one, two: synthetic has other conditions than ImageNet-C.",)
        assert standing_tables(read(runs[:1])) == []

    def test_parts_of_benchmarks_have_no_mce(self, tmp_path: Path) -> None:
        part = {"name": "imagenet-c (5 of 75 conditions)", "part_of": {"name": "imagenet-c", "conditions": 75}}
        whole = imagenet_c(tmp_path, "whole", 0.7, 0.3)
        runs = [whole, write_run(tmp_path, "part", severities(("fog",)), benchmark=part, classes=1000)]
        table, effective = standing_tables(read_all(runs, baseline="alexnet", replicates=20))
        assert column(table, "mCE")["part"] == "–"
        assert column(table, "fog")["part"] != "–"
        refusal = "No effective robustness of part: only 5 of the 75 conditions of imagenet-c were measured."
        assert refusal in effective.notes

    def test_a_published_baseline_of_other_sizes_is_no_baseline(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "net", severities(), protocol={"preset": "cifar"}, benchmark={"metric": "error"})
        (reading,) = read_all([run], baseline="alexnet", replicates=20)
        assert reading.get("mce", "benchmark") is None
        with pytest.raises(InputError, match=r"measured on images of 224 pixels, and this run has the preset cifar"):
            reading.scores.find("mce")
        assert reading.scores.baseline is None
        assert reading.scores.remarks == ()
        summary = score_tables([reading])[0]
        assert "Relative to no baseline: mean error." in summary.notes


class TestFirsts:
    def test_runs_of_other_benchmarks_are_not_held_against_each_other(self, three: list[Reading]) -> None:
        assert [first.label for first in firsts(three)] == [three[i].label for i in (0, 0, 2, 2)]
        assert not any("not measured in the same way" in note for note in score_tables(three)[0].notes)
        page = report_page([reading.run for reading in three], replicates=20)
        assert "3 models in 4 runs" in page
        assert "not comparable" not in page


class TestPage:
    def test_charts(self, three: list[Reading]) -> None:
        section = standing_section(three, published_models("leaderboard"))
        assert section is not None
        charts = section.data["charts"]
        assert [chart.identity for chart in charts] == [
            *("standing-clean_error-mce", "standing-clean_error-relative_mce", "standing-mce-mfr", "effective-chart"),
        ]
        figure = charts[0]
        assert "<title>alexnet (baseline): 43.5, 100.0</title>" in figure.svg
        assert "<title>resnet50 (published): 23.9, 76.7</title>" in figure.svg
        for number, reading in enumerate(three[:2]):
            clean, mce = (reading.scores.find(*of).estimate.value for of in (("error", "clean"), ("mce", "")))
            own = re.search(rf'<g class="s{number}" data-m="{number}">(.*?)</g>', figure.svg)
            assert own is not None
            assert f"<title>{reading.run.name}: {clean:.1f}, {mce:.1f}</title>" in own[1]
            assert f'class="strong">{number + 1}</text>' in own[1]
        assert charts[-1].svg.count("<polyline") == 2
        # An accuracy is read off an axis of logits as what it is.
        assert f"<title>tough: {100 - three[1].scores.find('error', 'clean').estimate.value:.1f}, " in charts[-1].svg
        assert "plain: " in figure.description

    def test_one_model_alone(self, three: list[Reading]) -> None:
        section = standing_section(three[:1])
        assert section is not None  # a line says something about it
        assert standing_section(three[3:]) is None

    def test_hostile_names_are_text(self, tmp_path: Path) -> None:
        folder = tmp_path / "runs"
        runs = [imagenet_c(folder, "one", 0.7, 0.3, model={"name": HOSTILE}), imagenet_c(folder, "two", 0.6, 0.3)]
        page = report_page(runs, replicates=20)
        assert "<img src=x" not in page
        section = standing_section(read(runs))
        assert section is not None
        assert all("<img" not in chart.svg for chart in section.data["charts"])


class TestPublished:
    def test_files(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.csv"
        path.write_text("model,mce,clean_error\nnet,70.5,20\nother,,21\n")
        assert published_models(path) == (
            PublishedModel("net", clean_error=20.0, mce=70.5),
            PublishedModel("other", clean_error=21.0),
        )

    def test_the_testbed(self) -> None:
        models = {model.name: model for model in published_models("testbed")}
        assert len(models) == 200
        assert models["resnet50"].clean_error == pytest.approx(23.87)

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("", "columns nothing; expected model and some of clean_error"),
            ("model\nnet\n", "columns model; expected"),
            ("model,accuracy\nnet,5\n", "columns accuracy; expected"),
            ("model,mce\nnet,many\n", "line 2: mce is 'many'; expected a number in percent"),
            ("model,mce\nnet,-1\n", "line 2: mce is '-1'"),
            ("model,mce\n,5\n", "line 2: a model without a name"),
            ("model,mce\nnet,5,6\n", "line 2: 3 cells; expected 2"),
        ],
    )
    def test_files_that_cannot_be_used(self, content: str, message: str, tmp_path: Path) -> None:
        path = tmp_path / "bad.csv"
        path.write_text(content)
        with pytest.raises(InputError, match=message):
            published_models(path)

    def test_unknown_tables(self) -> None:
        with pytest.raises(InputError, match=r"published numbers 'leaderbord'; did you mean leaderboard"):
            published_models("leaderbord")
