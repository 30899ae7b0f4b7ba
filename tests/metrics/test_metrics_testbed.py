"""Effective robustness: the lines as data, their formulas, and which runs they say nothing about."""

from __future__ import annotations

import importlib.util
import json
import math
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy import stats

from blemish.core.errors import InputError
from blemish.core.statistics import Estimate
from blemish.evaluation.runs import Run
from blemish.metrics import score
from blemish.metrics.effective import EFFECTIVE, position, why_no_line
from blemish.metrics.testbed import Line, effective_robustness, fit_line, line_models, logit, published_lines
from conftest import SHARED
from synthetic_runs import severities, write_run

TABLE = SHARED / "published" / "imagenet_testbed_top1.csv"
AS_PUBLISHED = {"preset": "imagenet", "storage": "jpeg85", "resize": 256, "crop": 224, "frost": "reference"}
FLAT = Line("flat", 10, slope=1, intercept=-1, spread=0.1, middle=1, scatter=4, lowest=0.3, highest=0.9)


def imagenet_c(folder: Path, name: str = "net", *, clean: float = 0.75, worst: float = 0.2, **more: Any) -> Run:
    """A whole run of ImageNet-C as it was published."""
    settings = {"protocol": AS_PUBLISHED, "benchmark": {"name": "imagenet-c", "metric": "mce", "baseline": "alexnet"}}
    settings |= {"classes": 1000, "images": 200}
    return write_run(folder, name, more.pop("conditions", severities(clean=clean, worst=worst)), **{**settings, **more})


class TestLines:
    def test_a_fit_against_scipy(self) -> None:
        rng = np.random.default_rng(0)
        clean = rng.uniform(0.3, 0.9, 40)
        corrupted = 1 / (1 + np.exp(-(1.2 * logit(clean) - 1.5 + rng.normal(0, 0.2, 40))))
        line = fit_line(np.stack([clean, corrupted], axis=1), name="mine")
        expected = stats.linregress(logit(clean), logit(corrupted))
        assert (line.slope, line.intercept) == pytest.approx((expected.slope, expected.intercept))
        residuals = logit(corrupted) - expected.intercept - expected.slope * logit(clean)
        assert line.spread == pytest.approx(math.sqrt((residuals**2).sum() / 38))
        # At an accuracy of one half, whose logit is 0, the line is as uncertain as its intercept.
        assert line.uncertainty(0.5) == pytest.approx(stats.t.ppf(0.975, 38) * expected.intercept_stderr)
        assert line.band(0.5) == pytest.approx(math.hypot(line.uncertainty(0.5), stats.t.ppf(0.975, 38) * line.spread))

    def test_by_hand(self) -> None:
        """The logit of 0.8 is log 4; less 1 that is 0.386, and its accuracy 1 / (1 + e/4) = 0.5954."""
        assert float(FLAT.expected(0.8)) == pytest.approx(1 / (1 + math.e / 4))
        assert float(effective_robustness(0.6, 0.8, FLAT)) == pytest.approx(0.6 - 1 / (1 + math.e / 4))

    @pytest.mark.parametrize(
        ("rows", "message"),
        [
            ([[0.5, 0.4], [0.6, 0.5]], "expected at least 3 rows of two"),
            ([[0.5, 0.4], [0.6, 0.5], [1.0, 0.6]], "an accuracy of 0 or 100 %"),
            ([[0.5, 0.4], [0.5, 0.5], [0.5, 0.6]], "models of one clean accuracy"),
        ],
    )
    def test_what_has_no_line(self, rows: list[list[float]], message: str) -> None:
        with pytest.raises(InputError, match=message):
            fit_line(rows, name="none")

    def test_shipped_lines_are_those_of_the_shipped_models(self) -> None:
        models, lines = line_models(), published_lines()
        assert len(models) == lines["all"].models == 200
        # Taori et al. (2020) count 78 standard models.
        assert sum(model.standard for model in models) == lines["standard"].models == 78
        for name, line in lines.items():
            chosen = [m for m in models if name == "all" or m.standard]
            again = fit_line([[m.clean, m.corrupted] for m in chosen], name=name)
            assert asdict(line) == pytest.approx(asdict(again))

    def test_models_by_what_is_known_of_them(self) -> None:
        """ResNet-50: 76.13 % clean, torchvision's; mCE of 78.2 against the published AlexNet (docs/metrics.md)."""
        known = {model.name: model for model in line_models()}
        assert known["resnet50"].clean == pytest.approx(0.7613)
        assert known["resnet50"].mce == pytest.approx(78.2, abs=0.05)
        assert known["resnet50"].standard
        assert not known["resnet50_augmix"].standard
        # Augmentation is what lifts models off the line (Taori et al. 2020; Hendrycks et al. 2021).
        residuals = {name: model.residual(published_lines()["standard"]) for name, model in known.items()}
        assert residuals["resnet50"] < residuals["resnet50_augmix"] < residuals["resnet50_deepaugment_augmix"]

    def test_the_tool_makes_the_shipped_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        if not TABLE.is_file():
            pytest.skip(f"{TABLE} is not beside this checkout")
        tool = load_tool()
        monkeypatch.setattr(tool, "TARGET", tmp_path / "testbed.json")
        shipped = json.loads(Path(tool.blemish.__file__).parent.joinpath("metrics", "testbed.json").read_text())
        tool.main(TABLE)
        made = json.loads((tmp_path / "testbed.json").read_text())
        # Fits may differ in their last digits with other versions of what they are computed with.
        lines, expected = made.pop("lines"), shipped.pop("lines")
        assert lines.keys() == expected.keys()
        for name, line in expected.items():
            assert lines[name].pop("name") == line.pop("name")
            assert lines[name] == pytest.approx(line, rel=1e-9)
        assert made == shipped


def load_tool() -> ModuleType:
    path = Path(__file__).parents[2] / "tools" / "fit_testbed.py"
    spec = importlib.util.spec_from_file_location("fit_testbed", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TestRuns:
    def test_effective_robustness_of_a_run(self, tmp_path: Path) -> None:
        run = imagenet_c(tmp_path)
        scores = score(run, replicates=200)
        clean = 1 - scores.find("error", "clean").estimate.value / 100
        corrupted = 1 - scores.find("error").estimate.value / 100
        for metric, name in EFFECTIVE.items():
            found = scores.find(metric).estimate
            expected = 100 * float(effective_robustness(corrupted, clean, published_lines()[name]))
            assert found.value == pytest.approx(expected)
            assert found.low < found.value < found.high

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"protocol": {**AS_PUBLISHED, "storage": "raw"}}, "raw pixels"),
            ({"protocol": {**AS_PUBLISHED, "preset": "inception"}}, "preset inception, crop 224; expected imagenet"),
            ({"protocol": {**AS_PUBLISHED, "crop": None, "square": 299}}, "crop none; expected imagenet and 224"),
            ({"protocol": {**AS_PUBLISHED, "frost": "custom-1"}}, "frost with custom-1 photographs"),
            ({"classes": 100}, "100 classes, where ImageNet has 1000"),
            ({"model": {"outputs": 10}}, "10 outputs of the model"),
            ({"conditions": severities(("fog", "snow"))}, "imagenet-c has other conditions than ImageNet-C"),
            (
                {
                    "conditions": severities(("fog", "snow")),
                    "benchmark": {"part_of": {"name": "imagenet-c", "conditions": 75}},
                },
                "only 10 of the 75 conditions of imagenet-c were measured",
            ),
        ],
    )
    def test_runs_that_are_not_imagenet_c_in_full(self, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
        run = imagenet_c(tmp_path, **changes)
        assert message in str(why_no_line(run))
        scores = score(run, replicates=20)
        assert not scores.select(name="effective_robustness")
        if run.info.benchmark.name == "imagenet-c":
            with pytest.raises(InputError, match=r"effective_robustness cannot be computed"):
                scores.find("effective_robustness")

    def test_stored_images_as_published_will_do(self, tmp_path: Path) -> None:
        stored = {**AS_PUBLISHED, "storage": "as stored", "pixels": "stored", "frost": None}
        assert why_no_line(imagenet_c(tmp_path, protocol=stored)) is None

    def test_beyond_the_models_of_a_line(self, tmp_path: Path) -> None:
        scores = score(imagenet_c(tmp_path, clean=0.4, worst=0.1), replicates=20)
        assert scores.select(name="effective_robustness")
        assert not scores.select(name="effective_robustness_standard")
        with pytest.raises(InputError, match=r"lies beyond those of the line's 78 models \(56\.5 to 84\.7 %\)"):
            scores.find("effective_robustness_standard")

    def test_unfinished_runs(self, tmp_path: Path) -> None:
        conditions: dict[str, Any] = {**severities(clean=0.75), "fog@3": None}
        scores = score(imagenet_c(tmp_path, conditions=conditions), replicates=20)
        with pytest.raises(InputError, match=r"no records of fog@3"):
            scores.find("effective_robustness")

    def test_other_benchmarks_are_left_in_peace(self, tmp_path: Path) -> None:
        scores = score(write_run(tmp_path, "net", severities(("fog",))), replicates=20)
        assert not any("effective_robustness" in item.names for item in scores.missing)

    def test_training_on_a_corruption_marks_it(self, tmp_path: Path) -> None:
        run = imagenet_c(tmp_path, model={"training": {"corruptions": ["fog"], "augmentations": []}})
        assert score(run, replicates=20).find("effective_robustness").trained_on


class TestPositions:
    @pytest.mark.parametrize(
        ("value", "half", "verdict"),
        [(10, 2, "above"), (-10, 2, "below"), (1, 2, "cannot be told"), (-1, 2, "cannot be told")],
    )
    def test_which_side(self, value: float, half: float, verdict: str) -> None:
        corrupted = float(FLAT.expected(0.75)) + value / 100
        found = position(FLAT, 0.75, corrupted, Estimate(value, value - half, value + half))
        assert found.verdict == verdict
        assert found.overall.low < found.effective.low
        assert found.overall.high > found.effective.high

    def test_an_uncertain_line_leaves_it_open(self) -> None:
        """The images alone would say above; with only ten models far away, the line may be elsewhere."""
        corrupted = float(FLAT.expected(0.35)) + 0.02
        sure = Estimate(2.0, 1.9, 2.1)
        assert position(FLAT, 0.35, corrupted, sure).verdict == "cannot be told"

    def test_the_scatter_of_the_models(self) -> None:
        line = published_lines()["all"]
        for model in line_models():
            value = 100 * float(effective_robustness(model.corrupted, model.clean, line))
            found = position(line, model.clean, model.corrupted, Estimate(value, value, value))
            assert found.beyond_scatter == (abs(model.residual(line)) > line.band(model.clean))
        ranks = sorted(model.residual(line) for model in line_models())
        assert found.higher_than == sum(rank < line_models()[-1].residual(line) for rank in ranks)
