"""What a page of several models begins with: a sentence, a ranking in groups, one heatmap; and what others mean."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blemish.core.errors import InputError
from blemish.evaluation.runs import Run
from blemish.metrics.titles import TITLES
from blemish.reports.first_words import first_words, worst_words
from blemish.reports.html import report_page, write_report
from blemish.reports.material import Material, chosen_reading
from blemish.reports.overview import overview
from blemish.reports.ranks import ranked_sets
from blemish.reports.reading import read_all
from blemish.reports.score_cards import card, heatmap
from blemish.reports.score_tables import score_tables, summary_table
from blemish.reports.wording import Wording, page_wording
from report_runs import imagenet_c, pictured_run
from synthetic_runs import FIFTEEN, severities, write_run


def right(count: int, of: int = 20) -> list[bool]:
    return [place < count for place in range(of)]


@pytest.fixture
def four(tmp_path: Path) -> list[Run]:
    """A clear order, but for two that are alike; and one that is lost."""
    rates = {"a": (0.5, 0.9), "z": (0.9, 0.9), "y": (0.9, 0.9), "lost": (0.1, 0.1)}
    return [
        write_run(
            tmp_path,
            name,
            {"clean": clean, "fog@1": low, "fog@3": low, "gaussian_noise@3": low - 0.05},
            images=300,
            seed=seed,
        )
        for seed, (name, (low, clean)) in enumerate(rates.items())
    ]


class TestFirstWords:
    def test_worst_corruption_and_families_by_hand(self, tmp_path: Path) -> None:
        # Noise: 15 of 20 wrong under one and 5 of 20 under the other, 50 %; blur 10 %: five times. Fog: 40 %.
        conditions = {
            "clean": right(20),
            "gaussian_noise@1": right(5),
            "shot_noise@1": right(15),
            "motion_blur@1": right(18),
            "fog@1": right(12),
        }
        (reading,) = read_all([write_run(tmp_path, "m", conditions, images=20)], replicates=20)
        assert re.fullmatch(
            r"Worst: gaussian noise, 75 % \(\d+ to \d+\); noise is 5\.0 × worse than blur \(mean error\)\.",
            worst_words(reading),
        )
        assert worst_words(reading, short=True) == "gaussian noise, 75 %"
        # The mean of 75, 25, 10 and 40.
        (line,) = first_words(ranked_sets([reading], replicates=20))
        assert line.startswith("Mean error 37.5 % (")
        assert "lower is better); 0.0 % errors on clean images. Worst: gaussian noise" in line

    def test_alike_and_without_errors(self, tmp_path: Path) -> None:
        alike = {"clean": right(20), "gaussian_noise@1": right(10), "motion_blur@1": right(10)}
        none = {"clean": right(20), "gaussian_noise@1": right(10), "motion_blur@1": right(20)}
        runs = [write_run(tmp_path, name, conditions, images=20) for name, conditions in (("a", alike), ("b", none))]
        one, other = read_all(runs, replicates=10)
        assert "all families of corruptions are about as bad" in worst_words(one)
        assert "no errors under blur" in worst_words(other)

    def test_sequences(self, tmp_path: Path) -> None:
        conditions = {"clean": 0.8, "p:tilt@1": 0.2, "p:scale@1": 0.05}
        run = write_run(tmp_path, "m", conditions, images=30, benchmark={"metric": "flips"})
        (reading,) = read_all([run], replicates=10)
        assert re.match(r"Worst: p:tilt@1, \d+ % of answers change", worst_words(reading))

    def test_who_is_best(self, four: list[Run]) -> None:
        readings = read_all(four, replicates=20)
        (line,) = first_words(ranked_sets(readings, replicates=20))
        assert re.match(
            r"First: [zy], mean error \d+\.\d % \(.*; lower is better\); not told apart from it: [zy]\. ", line
        )
        (line,) = first_words(ranked_sets([readings[0], readings[1]], replicates=200))
        assert line.startswith("Best: z, mean error ")
        assert "; told apart from all others." in line
        (line,) = first_words(ranked_sets([readings[2], readings[1]], replicates=200))
        assert line.startswith("No model can be told to be best; the first is ")
        (line,) = first_words(ranked_sets([readings[2], readings[3]], replicates=200))
        assert line.startswith("y is the only model with a rank: ")
        assert first_words(ranked_sets([readings[3]], replicates=20)) == []

    def test_what_a_model_was_trained_on_is_said(self, tmp_path: Path) -> None:
        model = {"training": {"corruptions": ["fog"], "augmentations": []}}
        run = write_run(tmp_path, "m", {"clean": right(20), "fog@3": right(10)}, images=20, model=model)
        other = write_run(tmp_path, "n", {"clean": right(20), "fog@3": right(5)}, images=20)
        (line,) = first_words(ranked_sets(read_all([run, other], replicates=50), replicates=50))
        assert re.search(r"m, mean error 50\.0† % \([\d.]+ to [\d.]+; lower is better; † trained on fog\)", line)
        page = report_page([run, other], replicates=20)
        section = page[page.index('<section id="ranking"') : page.index('<section id="overview"')]
        assert "† The model was trained on a corruption in this number" in section


class TestRanking:
    def test_groups_and_what_has_no_rank(self, four: list[Run]) -> None:
        (found,) = ranked_sets(read_all(four, replicates=50), replicates=50)
        rows = found.rows
        assert [row.rank for row in rows] == ["1–2", "1–2", "3", "–"]
        assert {row.reading.label for row in rows[:2]} == {"y", "z"}
        assert [row.letters for row in rows] == ["a", "a", "b", ""]
        assert [row.is_best for row in rows] == [True, False, False, False]
        assert "above chance" in rows[3].why

    def test_on_the_page(self, four: list[Run]) -> None:
        page = report_page(four, replicates=50)
        section = page[page.index('<section id="ranking"') : page.index('<section id="overview"')]
        assert section.count("★ first") == 1
        assert section.count("not told apart") == 1
        assert re.search(r'<tr data-m="\d+" class=" lost">', section)
        assert "no rank: clean accuracy" in section
        assert "paired tests of all 3 pairs over the same 300 images" in section
        # The order of the page is that of the ranking, not the alphabet's.
        assert page.index("<h3>y</h3>") < page.index("<h3>a</h3>") < page.index("<h3>lost (near chance)</h3>")

    def test_runs_that_were_not_measured_alike_have_rankings_of_their_own(self, tmp_path: Path) -> None:
        conditions = {"clean": 0.9, "fog@3": 0.5}
        runs = [
            write_run(tmp_path, name, conditions, seed=seed, protocol={"seed": own})
            for seed, (name, own) in enumerate((("a", 0), ("b", 0), ("c", 7)))
        ]
        assert [len(found.readings) for found in ranked_sets(read_all(runs, replicates=10), replicates=10)] == [2, 1]

    def test_one_model_has_no_ranking(self, tmp_path: Path) -> None:
        page = report_page([write_run(tmp_path, "m", {"clean": 0.9, "fog@3": 0.5})], replicates=5)
        assert '<section id="ranking"' not in page
        assert '<section id="overview"' not in page


class TestOverview:
    def test_cells_are_the_scores(self, four: list[Run]) -> None:
        readings = read_all(four, replicates=10)
        found = overview(readings)
        assert found is not None
        assert {name for rows in found.families.values() for name, _ in rows} == {"fog", "gaussian_noise"}
        cells = dict(found.families["weather"])["fog"]
        assert [cell.error for cell in cells] == [r.scores.find("error", "fog").estimate.value for r in readings]
        clean = dict(found.wholes)["clean images"]
        assert [cell.error for cell in clean] == [r.scores.find("error", "clean").estimate.value for r in readings]

    def test_what_was_not_measured(self, tmp_path: Path) -> None:
        runs = [write_run(tmp_path, name, {"clean": 0.9, f"{name}@3": 0.5}) for name in ("fog", "snow")]
        found = overview(read_all(runs, replicates=5))
        assert found is not None
        by_corruption = {name: [cell.text == "–" for cell in cells] for name, cells in found.families["weather"]}
        assert by_corruption == {"fog": [False, True], "snow": [True, False]}


class TestWording:
    def test_the_baseline_stands_beside_every_relative_number(self, tmp_path: Path) -> None:
        runs = [imagenet_c(tmp_path, "one", 0.7, 0.3, images=40), imagenet_c(tmp_path, "two", 0.6, 0.3, images=40)]
        readings = read_all(runs, replicates=5)
        names = [row[0].text for row in summary_table(readings, wording=page_wording(readings)).rows]
        assert names[0] == "mCE (alexnet = 100), % ↓"
        assert "mean robustness score R ↑" in names
        assert card(readings[0]).unit == " % mCE (alexnet = 100)"
        assert "CE (alexnet = 100) ↓" in heatmap(readings[0], page_wording(readings)).heads
        page = report_page(runs, replicates=5).replace("<wbr>", "")
        page = page[: page.index('<section id="terms"')]  # which says what the numbers are, and holds none
        # Heads, with their names in a span of their own, and cells of tables, axes of charts, and cards.
        named = re.findall(r"<(?:th|td|text|small|dt)\b[^>]*>(?:<span>)?([^<]*\bmCE\b[^<]*)<", page)
        assert len(named) > 10
        assert [text for text in named if "alexnet = 100" not in text] == []
        assert re.search(r'class="first">[^<]* mCE \(alexnet = 100\) \d+\.\d', page)

    def test_tables_for_terminals_and_papers_are_as_they_were(self, tmp_path: Path) -> None:
        readings = read_all([imagenet_c(tmp_path, "one", 0.7, 0.3, images=40)], replicates=5)
        assert [row[0].text for row in score_tables(readings)[0].rows][:2] == ["mCE, %", "clean error, %"]

    @pytest.mark.parametrize("name", TITLES)
    def test_every_metric_has_a_direction(self, name: str) -> None:
        assert Wording(arrows=True)(name, "x")[-1] == ("↑" if TITLES[name].higher_is_better else "↓")


class TestAgainst:
    def titles(self, page: str) -> list[str]:
        section = page[page.index('<section id="differences"') : page.index('<section id="calibration"')]
        return [re.sub("<[^>]*>", "", text) for text in re.findall(r"<h3>(.*?)</h3>", section)]

    def test_the_best_by_default(self, four: list[Run]) -> None:
        best = ranked_sets(read_all(four, replicates=50), replicates=50)[0].best
        assert best is not None
        titles = self.titles(report_page(four, replicates=50))
        assert len(titles) == 3
        assert all(title.endswith(f" minus {best.name}") for title in titles)

    def test_one_that_is_chosen(self, four: list[Run]) -> None:
        titles = self.titles(report_page(four, replicates=10, against="a"))
        assert titles == ["z minus a", "y minus a", "lost (near chance) minus a"]
        by_folder = report_page(four, replicates=10, against=str(four[0].folder))
        assert self.titles(by_folder) == titles
        assert "is near chance: clean accuracy" in by_folder

    def test_the_run_that_is_the_baseline(self, four: list[Run]) -> None:
        page = report_page(four, replicates=10, baseline=four[2])
        assert all(title.endswith(" minus y") for title in self.titles(page))

    def test_one_that_is_not_there(self, four: list[Run]) -> None:
        with pytest.raises(InputError, match="'resnet' names none of the models; expected one of a, z, y, lost"):
            chosen_reading(read_all(four, replicates=5), "resnet")

    def test_partners_overlap(self, tmp_path: Path) -> None:
        runs = [
            write_run(tmp_path, "c", {"clean": 0.8, "fog@3": 0.5}),
            write_run(tmp_path, "p", {"clean": 0.8, "p:tilt@1": 0.1}, images=20, benchmark={"metric": "flips"}),
        ]
        material = Material(read_all(runs, replicates=5), replicates=5)
        assert [partner.label for partner in material.partners] == ["c", "p"]


class TestNearChance:
    def test_grey_with_the_reason(self, four: list[Run]) -> None:
        page = report_page(four, replicates=10)
        cards = re.findall(r'<article class="card (s\d[^"]*)"', page)
        assert [text for text in cards if "lost" in text] == ["s3 lost"]
        lost = page[page.index('<article class="card s3 lost"') :]
        assert re.search(r'class="why small">clean accuracy [^<]*above chance', lost)
        # Its lines are gray, and no scatter is squeezed by it.
        assert re.search(r'<g class="s3 lost" data-m="3">', page)
        section = page[page.index('<section id="standings"') : page.index('<section id="differences"')]
        assert 'data-m="3"' not in re.sub(r"<ul.*?</ul>", "", section, flags=re.DOTALL)
        assert "Not drawn: lost (near chance)." in section
        cells = re.findall(r'<td class="cell lost" data-m="3" style="--v:0"', page)
        assert cells

    def test_it_has_no_worst_images(self, tmp_path: Path) -> None:
        few = {"clean": 0.9, "fog@3": 0.5}
        good = pictured_run(tmp_path, "good", few, names=[f"c{i % 10}/{i}.png" for i in range(100)])
        names = [f"c{i % 10}/{i}.png" for i in range(100)]
        poor = pictured_run(tmp_path, "poor", {"clean": 0.1, "fog@3": 0.1}, names=names)
        page = report_page([good, poor], replicates=5)
        worst = page[page.index('<section id="worst"') : page.index('<section id="protocol"')]
        assert "good" in worst
        assert "poor" not in worst


@pytest.mark.slow
def test_a_page_of_six_models_is_small(tmp_path: Path) -> None:
    """Photographs of 224 pixels under seventy-five conditions; noise is what no format makes small."""
    names = tuple(name if name != "frost" else "frost_drawn" for name in FIFTEEN)
    rng = np.random.default_rng(0)
    more: dict[str, Any] = {"side": 224, "protocol": {"preset": "imagenet"}}
    runs = [pictured_run(tmp_path, f"m{seed}", severities(names), seed=seed, **more) for seed in range(6)]
    for run in runs:
        with np.load(run.folder / "pictures.npz") as found:
            arrays = dict(found)
        noise = rng.normal(0, 12, arrays["images"].shape)
        arrays["images"] = (arrays["images"] + noise).clip(0, 255).astype(np.uint8)
        np.savez(run.folder / "pictures.npz", **arrays)
    assert write_report(runs, tmp_path / "report.html", replicates=10).stat().st_size <= 3e6
