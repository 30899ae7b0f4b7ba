"""Calibrating severities: known curves, noise, monotone repair, and the command on real data."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from typer.testing import CliRunner

from blemish.benchmarks.files import load_benchmark
from blemish.cli.main import app
from blemish.core.errors import InputError
from blemish.studies.construction.severities import crossing, isotonic, match_range


def thresholds(count: int = 4000, seed: int = 0) -> NDArray[np.float64]:
    """The severity at which each image is lost: uniform in 0 … 8, so that R(s) = 1 − s/8."""
    return np.random.default_rng(seed).uniform(0, 8, count)


def test_a_known_curve() -> None:
    lost = np.linspace(0, 8, 4001)[1:]
    found = match_range("c", np.ones(4000, dtype=bool), lambda s: lost > s, tolerance=0.01)
    assert found.lower.severity == pytest.approx(0.4, abs=0.02)  # 1 − s/8 = .95
    assert found.upper.severity == pytest.approx(4.0, abs=0.02)  # 1 − s/8 = .5
    assert found.lower.reached
    assert found.upper.reached
    assert found.upper.low < 4 < found.upper.high
    assert found.upper.robustness == pytest.approx(0.5, abs=0.01)


def test_wrong_clean_images_do_not_count() -> None:
    """With a clean accuracy of .8, R = .5 is an accuracy of .4."""
    lost = np.where(np.arange(5000) % 5 == 0, 0.0, np.linspace(0, 8, 5001)[1:])
    found = match_range("c", lost > 0, lambda s: lost > s, tolerance=0.01)
    assert found.upper.severity == pytest.approx(4.0, abs=0.03)


def test_intervals_cover_the_truth() -> None:
    """Over 200 samples of 200 images, the 95 % interval of the upper end (s = 4) misses it about one time in twenty."""
    missed = 0
    for seed in range(200):
        lost = thresholds(200, seed)
        upper = match_range("c", np.ones(200, dtype=bool), lambda s, lost=lost: lost > s).upper  # type: ignore[misc]
        missed += not upper.low <= 4 <= upper.high
    assert 2 <= missed <= 22


def test_targets_that_are_not_reached() -> None:
    found = match_range("c", np.ones(100, dtype=bool), lambda s: np.arange(100) >= 2 * s)
    assert found.lower.reached
    assert not found.upper.reached
    assert found.upper.severity == 5
    assert found.upper.robustness == pytest.approx(0.9)


def test_a_useless_measurement_is_not_repeated_for_ever() -> None:
    seen: list[float] = []

    def noisy(severity: float) -> NDArray[np.bool_]:
        seen.append(severity)
        return np.random.default_rng(round(1e6 * severity)).random(50) < 1 - severity / 8

    match_range("c", np.ones(50, dtype=bool), noisy, tolerance=1e-9)
    assert len(seen) == len(set(seen)) < 40


@settings(max_examples=50)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_isotonic_is_monotone_and_keeps_the_mean(values: list[float]) -> None:
    found = isotonic(values)
    assert (np.diff(found) <= 1e-12).all()
    assert found.mean() == pytest.approx(np.mean(values))
    if all(a >= b for a, b in itertools.pairwise(values)):
        np.testing.assert_allclose(found, values)


def test_crossings_by_hand() -> None:
    assert crossing([0, 1, 2], [1.0, 0.6, 0.2], 0.4) == pytest.approx(1.5)
    assert crossing([0, 1, 2], [1.0, 0.9, 0.8], 0.5) == 2
    assert crossing([0, 1, 2], [1.0, 0.5, 0.7], 0.6) == pytest.approx(1.0)  # .5 and .7 become .6


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"targets": (0.5, 0.95)}, "1 > first > second > 0"),
        ({"tolerance": 0}, "tolerance 0"),
    ],
)
def test_what_is_refused(settings: dict[str, object], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        match_range("c", np.ones(10, dtype=bool), lambda _: np.ones(10, dtype=bool), **settings)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no clean image"):
        match_range("c", np.zeros(10, dtype=bool), lambda _: np.ones(10, dtype=bool))


def test_the_command_writes_a_benchmark_that_runs(tmp_path: Path) -> None:
    pytest.importorskip("tomli_w", reason="tomli-w is not installed, which writes benchmark files")
    out = tmp_path / "mine.toml"
    common = ["-m", "demo:plain", "-d", "demo:digits", "-n", "120"]
    drawn = tmp_path / "ranges.png"
    arguments = ["build", "match-severities", "-c", "fog", *common, "-o", str(out), "--figure", str(drawn)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert drawn.read_bytes().startswith(b"\x89PNG")
    benchmark = load_benchmark(out)
    step = benchmark.conditions[1].steps[0]
    assert 0 < step.low < step.high < 5
    results = tmp_path / "results"
    ran = CliRunner().invoke(app, ["run", str(out), *common, "-o", str(results)])
    assert ran.exit_code == 0, ran.output
    refused = CliRunner().invoke(
        app, ["build", "match-severities", "-c", "syn2nat:invert", *common, "-o", str(out.with_name("other.toml"))]
    )
    assert refused.exit_code == 2
    assert "one severity only" in refused.output
