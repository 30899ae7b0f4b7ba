"""Errors against distance: areas by hand, intervals, and what is refused; and the command as a user meets it."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from blemish.benchmarks.benchmark import Benchmark
from blemish.benchmarks.condition import parse_condition
from blemish.core.errors import InputError
from blemish.evaluation.header import protocol_info
from blemish.evaluation.runs import Run
from blemish.studies.perceptual.curves import ErrorCurves, area_weights, error_curves
from command_line import invoke
from synthetic_runs import write_run

CONDITIONS = ("fog@1", "fog@5", "cbar:sparkles@3")
BENCHMARK = Benchmark("axis", "", "error", tuple(map(parse_condition, CONDITIONS)))
CATALOGUE = {"fog": "imagenet-c", "cbar:sparkles": "cbar"}
DISTANCES = {"fog@1": 0.1, "fog@5": 0.3, "cbar:sparkles@3": 0.15}


class TestAreaWeights:
    @pytest.mark.parametrize(
        ("distances", "up_to", "weights"),
        [
            # Two trapezia of width ½ each, over a length of 1.
            ([0, 0.5, 1], 1, [0.25, 0.5, 0.25]),
            # The second is cut in its middle: e(0.75) = (e₁ + e₂)/2; (0.25 e₀ + 0.25 e₁ + 0.1875 e₁ + 0.0625 e₂)/0.75.
            ([0, 0.5, 1], 0.75, [0.25 / 0.75, 0.4375 / 0.75, 0.0625 / 0.75]),
            # Two conditions at the same distance: a step.
            ([0, 0.5, 0.5, 1], 1, [0.25, 0.25, 0.25, 0.25]),
            ([0, 0.5], 0.5, [0.5, 0.5]),
        ],
    )
    def test_by_hand(self, distances: list[float], up_to: float, weights: list[float]) -> None:
        found = area_weights(distances, up_to)
        assert found is not None
        assert found.tolist() == pytest.approx(weights)
        assert found.sum() == pytest.approx(1)

    def test_nothing_is_extrapolated(self) -> None:
        assert area_weights([0, 0.5], 0.51) is None

    @pytest.mark.parametrize(("distances", "up_to"), [([0, 0.5], 0), ([0.1, 0.5], 0.3), ([0, 0.5, 0.4], 0.3), ([], 1)])
    def test_refusals(self, distances: list[float], up_to: float) -> None:
        with pytest.raises(InputError):
            area_weights(distances, up_to)


def run(folder: Path, **protocol: object) -> Run:
    """100 images: 20 wrong when clean, 40 and 80 in fog, 60 with sparkles."""
    wrong = {"clean": 20, "fog@1": 40, "fog@5": 80, "cbar:sparkles@3": 60}
    outcomes = {text: np.arange(100) >= count for text, count in wrong.items()}
    settings = {"corruptions": protocol_info(BENCHMARK).corruptions, **protocol}
    return write_run(folder, "net", outcomes, protocol=settings)


def curves_of(measured: Run, **settings: object) -> ErrorCurves:
    chosen = {"measure": "d", "up_to": 0.2, "catalogue": CATALOGUE, "replicates": 200, **settings}
    return error_curves(measured, BENCHMARK, DISTANCES, **chosen)  # type: ignore[arg-type]


def test_curves_and_areas(tmp_path: Path) -> None:
    found = curves_of(run(tmp_path))
    fog, sparkles = found.curves
    assert fog.distances == (0, 0.1, 0.3)
    assert [error.value for error in fog.errors] == pytest.approx([0.2, 0.4, 0.8])
    assert sparkles.reach == 0.15
    # Fog up to 0.3: (0.1 · 0.3 + 0.2 · 0.6) / 0.3 = 0.5. Up to 0.2, where its error is 0.6: (0.03 + 0.05) / 0.2 = 0.4.
    own, common = found.own[0].error, found.common[0].error
    assert own is not None
    assert common is not None
    assert (own.value, common.value) == (pytest.approx(0.5), pytest.approx(0.4))
    assert common.low < 0.4 < common.high
    # Sparkles end before 0.2; up to their own end the mean is (0.2 + 0.6) / 2.
    assert found.own[1].error is not None
    assert found.own[1].error.value == pytest.approx(0.4)
    assert found.common[1].error is None
    by_name = {area.of: area for area in found.catalogues}
    assert (by_name["imagenet-c"].corruptions, by_name["imagenet-c"].left_out) == (1, 0)
    assert by_name["cbar"].error is None
    assert (by_name["all"].corruptions, by_name["all"].left_out) == (1, 1)
    assert by_name["all"].error == common


def test_the_interval_is_that_of_a_share(tmp_path: Path) -> None:
    """The clean error is 20 of 100: a deviation of 4 points, so 95 % are about 20 ± 7.8."""
    clean = curves_of(run(tmp_path), replicates=2000).curves[0].errors[0]
    assert clean.low == pytest.approx(0.2 - 0.078, abs=0.02)
    assert clean.high == pytest.approx(0.2 + 0.078, abs=0.02)


def test_other_pixels_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'protocol\.storage is "jpeg85" there and "raw" here'):
        curves_of(run(tmp_path / "a", storage="jpeg85"))
    with pytest.raises(InputError, match=r"protocol\.corruptions\.fog is 7 there"):
        curves_of(run(tmp_path / "b", corruptions={"fog": 7, "cbar:sparkles": 1}))
    curves_of(run(tmp_path / "c", seed=5))  # other draws of the same strength


DATA = ("-d", "demo:digits", "-n", "20")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("results")
    only = ("--only", "contrast,gaussian_noise")
    assert invoke("run", "digits-c", "-m", "demo:plain", *DATA, *only, "-o", out)[0] == 0
    return out


class TestCommand:
    def test_distances_errors_and_a_figure(self, results: Path, tmp_path: Path) -> None:
        out = tmp_path / "axis"
        words = ("perceptual", "digits-c", *DATA, "--only", "contrast,gaussian_noise", "-o", out)
        code, output, errors = invoke(*words, "--records", results, "--replicates", 50)
        assert code == 0, errors
        assert "error against distance" in output
        for name in ("distances.csv", "errors.csv", "areas.csv", "perceptual.png"):
            assert (out / name).is_file()
        with (out / "distances.csv").open() as stream:
            rows = list(csv.DictReader(stream))
        assert len(rows) == 2 * 5 * 2
        noise = [float(r["distance"]) for r in rows if (r["corruption"], r["measure"]) == ("gaussian_noise", "ssim")]
        assert noise == sorted(noise)
        assert invoke(*words)[0] == 0  # again, from what is there, without records

    def test_corruptions_at_severities(self, tmp_path: Path) -> None:
        out = tmp_path / "axis"
        code, output, errors = invoke("perceptual", "-c", "fog,laion:glitched", "-s", "1,3", *DATA, "-o", out)
        assert code == 0, errors
        assert "laion:glitched" in output
        assert not (out / "errors.csv").exists()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ([], "a benchmark or corruptions (-c); expected one of the two"),
            (["digits-c", "-c", "fog"], "a benchmark or corruptions (-c); expected one of the two"),
            (["digits-c", "-s", "3"], "--severity with a benchmark"),
            (["-c", "fog", "--only", "fog@3"], "--only with -c"),
            (["-c", "fog", "--measure", "lpips"], "--measure 'lpips'; expected one of ssim, ms_ssim"),
            (["-c", "fog", "--up-to", "0"], "--up-to 0; expected a distance above 0"),
            (["-c", "fog", "--records", "gone"], "gone: no such folder"),
            (["imagenet-p"], "no distance from a clean image of the same view"),
        ],
    )
    def test_refusals(
        self, arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        code, _, errors = invoke("perceptual", *arguments, *DATA, "-o", "axis")
        assert code == 2
        assert message in errors
        assert not list(tmp_path.iterdir())
