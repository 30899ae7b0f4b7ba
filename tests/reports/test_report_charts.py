"""Charts as SVG: where marks lie, what is hollow, what is gray, and more models than colours."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from blemish.core.statistics import Estimate
from blemish.metrics.calibration import FEW, reliability
from blemish.reports.answers import gather, read_pictures
from blemish.reports.charts import Line, Point, curve, dots, reliability_chart, scatter, time_lines
from blemish.reports.examples import Subject, examples, shown_levels
from blemish.reports.svg import Axis, Frame, dashes, mark, nice_axis
from report_runs import pictured_run
from synthetic_runs import severities

AT = re.compile(r'transform="translate\(([-\d.]+) ([-\d.]+)\)')


def places(svg: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in AT.findall(svg)]


class TestAxes:
    @pytest.mark.parametrize(
        ("low", "high", "ticks"),
        [
            (0, 100, ["0", "20", "40", "60", "80", "100"]),
            (41.2, 43.9, ["41", "42", "43", "44"]),
            (5, 5, ["5", "6"]),
            (-3, 12, ["-5", "0", "5", "10", "15"]),
            (0, 0, ["0", "0.2"]),
        ],
    )
    def test_round_numbers(self, low: float, high: float, ticks: list[str]) -> None:
        axis = nice_axis(low, high)
        assert [text for _, text in axis.ticks] == ticks
        assert axis.low <= low <= high <= axis.high

    def test_where_a_point_lies_by_hand(self) -> None:
        # 100 wide between 10 and 110, 50 high between 5 and 55; y grows upwards.
        hundred = Axis(0, 100, ())
        frame = Frame(120, 60, hundred, hundred, left=10, right=10, top=5, bottom=5)
        assert frame.at(0, 0) == (10, 55)
        assert frame.at(25, 50) == (35, 30)
        assert frame.at(100, 100) == (110, 5)
        assert frame.at(200, -5) == (110, 55)  # beyond the edge, at the edge


class TestMarks:
    def test_sixty_models_differ_in_colour_mark_or_dashes(self) -> None:
        looks = {(n % 8, re.findall(r'd="([^"]*)"', mark(0, 0, n, 3, ""))[0], dashes(n)) for n in range(60)}
        assert len(looks) == 60

    def test_curves(self) -> None:
        points = {0.0: Estimate(10, 5, 15), 5.0: Estimate(60, 50, 70)}
        chart = curve("c", "fog", [("a", 0, points), ("b (near chance)", 1, points)])
        one, other = re.findall(r'<g class="(s\d[^"]*)" data-m="(\d)"', chart.svg)
        assert (one, other) == (("s0", "0"), ("s1 lost", "1"))
        assert "<title>a: 60.0 % (50.0 to 70.0) at severity 5</title>" in chart.svg
        assert "lower is better. a: 10, 60" in chart.description
        (left, low), (right, high) = places(chart.svg)[:2]
        assert left < right
        assert low > high  # a larger error is further up

    def test_dots(self) -> None:
        models = {"a": [Estimate(50, 40, 60), None], "b": [Estimate(25, 20, 30), Estimate(10, 5, 15)]}
        chart = dots("d", "families", ["noise", "blur"], models)
        assert re.findall(r"<title>(.*?):", chart.svg) == ["a, noise", "b, noise", "b, blur"]
        a, b, blur = places(chart.svg)
        assert b[0] < a[0]
        assert a[1] < b[1] < blur[1]

    def test_scatter_with_lines_behind(self) -> None:
        here = Estimate(50, 45, 55)
        points = [Point("<a>", "1", 0, here, here)]
        line = Line("all", [40, 60], [40, 60], dotted=True)
        chart = scatter("s", "t", points, [("old", "b", 50, 50)], titles=("x", "y"), lines=[line])
        assert "<title>&lt;a&gt;: 50.0, 50.0</title>" in chart.svg
        assert "<title>old: 50.0, 50.0</title>" in chart.svg
        assert 'stroke-dasharray="2 4"' in chart.svg

    def test_lines_over_a_stream(self) -> None:
        lines = [Line("none", [0, 100], [40, 30]), Line("tent", [0, 100], [40, 50], series=0)]
        chart = time_lines("l", "t", lines, titles=("images", "accuracy, %"), wide=True)
        assert "none: 40.0 at first, 30.0 at least, 30.0 at the end" in chart.description
        assert chart.svg.count("<polyline") == 2


class TestCalibration:
    def test_bins_with_few_answers_are_hollow(self) -> None:
        # By hand: nine answers around 0.5 and ten around 0.9, in bins of a fifteenth.
        confidence = np.concatenate([np.full(FEW - 1, 0.5), np.full(FEW, 0.9), np.full(FEW, 0.97)])
        bins = reliability(confidence, np.ones(len(confidence)))
        chart = reliability_chart("r", "m", [("clean", 0, bins)], model=3)
        hollow = re.findall(r'<path class="mark"[^>]*fill="var\(--paper\)"[^>]*><title>([^<]*)', chart.svg)
        full = re.findall(r'<path class="mark"[^>]*fill="var\(--series\)"[^>]*><title>([^<]*)', chart.svg)
        assert hollow == ["clean: 50 % sure, 100 % right (9 answers, too few to tell)"]
        assert len(full) == 2
        # The line goes through the others only.
        lines = re.findall(r'<polyline points="([^"]*)"', chart.svg)
        assert [len(points.split()) for points in lines] == [2, 2]
        assert chart.model == 3


class TestLevels:
    def subject(self, folder: Path, conditions: dict[str, float]) -> Subject:
        run = pictured_run(folder, "m", conditions)
        answers = gather(run)
        assert answers is not None
        return Subject("m", run, answers, read_pictures(run), 0)

    def test_each_corruption_at_the_nearest_severity(self, tmp_path: Path) -> None:
        conditions = {"clean": 0.9, "fog@1": 0.8, "fog@3": 0.6, "fog@5": 0.4, "contrast@2": 0.7, "contrast@5": 0.3}
        found = shown_levels(self.subject(tmp_path, conditions))
        assert {level: [str(c) for c in some] for level, some in found.items()} == {
            "1": ["fog@1", "contrast@2"],
            "2": ["fog@1", "contrast@2"],
            "3": ["fog@3", "contrast@2"],
            "5": ["fog@5", "contrast@5"],
        }

    def test_five_of_many(self, tmp_path: Path) -> None:
        conditions = {"clean": 0.9, **{f"fog@{level / 2:g}": 0.5 for level in range(1, 11)}}
        assert list(shown_levels(self.subject(tmp_path, conditions))) == ["0.5", "1.5", "2.5", "4", "5"]

    def test_nothing_to_choose_from(self, tmp_path: Path) -> None:
        subject = self.subject(tmp_path, {"clean": 0.9, "fog@3": 0.5, "contrast@3": 0.5})
        assert shown_levels(subject) == {}
        (example, *_) = examples([subject])
        assert [tile.title for tile in example.tiles] == [
            f"{c}, severity\N{NO-BREAK SPACE}3" for c in ("fog", "contrast")
        ]

    def test_fewer_images_where_there_are_many_conditions(self, tmp_path: Path) -> None:
        few = examples([self.subject(tmp_path / "few", {"clean": 0.9, "fog@1": 0.5, "fog@3": 0.5})])
        names = (
            "fog",
            "contrast",
            "brightness",
            "pixelate",
            "jpeg_compression",
            "gaussian_noise",
            "shot_noise",
            "snow",
        )
        many = examples([self.subject(tmp_path / "many", severities((*names, "snow")))])
        assert len(few) == 4
        assert len(many) == 4
        names += (
            "snow",
            "zoom_blur",
            "defocus_blur",
            "impulse_noise",
            "elastic_transform",
            "motion_blur",
            "frost_drawn",
        )
        assert len(examples([self.subject(tmp_path / "more", severities(names))])) == 2


class TestClassNames:
    def test_numbers_of_imagenet(self, tmp_path: Path) -> None:
        def named(folder: str, rate: float, benchmark: str) -> Subject:
            run = pictured_run(
                tmp_path / folder,
                "m",
                {"clean": rate, "fog@3": rate},
                model={"outputs": 1000},
                benchmark={"name": benchmark},
            )
            answers = gather(run)
            assert answers is not None
            return Subject("m", run, answers, read_pictures(run), 0)

        good = named("good", 0.9, "imagenet-c")
        assert good.is_taken_for_imagenet
        # The first class of ImageNet, n01440764, is the tench.
        assert good.classes is not None
        assert good.classes[0] == "tench"
        assert named("lost", 0.0, "imagenet-c").classes is None
        assert named("other", 0.9, "mine").classes is None
