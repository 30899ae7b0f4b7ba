"""Correlation with natural sets: against SciPy and plain loops, the published testbed, and speed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from blemish.core.errors import InputError
from blemish.studies.construction import natural as module
from blemish.studies.construction.natural import (
    compare_groups,
    correlate_with_natural,
    mean_residuals,
    natural_residuals,
)
from blemish.studies.construction.tables import AccuracyTable, read_table
from conftest import SHARED


def scores(models: int = 30, benchmarks: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    draw = np.random.default_rng(2)
    clean = draw.normal(size=models)
    synthetic = draw.normal(size=(models, benchmarks)) + clean[:, None]
    natural = draw.normal(size=(models, 2)) + synthetic[:, :2] / 2
    return synthetic, natural, clean


def test_residuals_by_hand() -> None:
    table = AccuracyTable.of(
        {
            "a": {"clean": 0.8, "fog": 0.6, "snow": 0.4, "v2": 0.7, "a": 0.2, "clean-a": 0.9},
            "b": {"clean": 0.7, "fog": 0.6, "snow": 0.3, "v2": 0.5, "a": 0.1, "clean-a": 0.8},
        }
    )
    assert mean_residuals(table, [("fog", "snow"), ("fog",)]) == pytest.approx(np.array([[0.3, 0.2], [0.25, 0.1]]))
    assert natural_residuals(table, {"v2": "clean", "a": "clean-a"}) == pytest.approx(
        np.array([[0.1, 0.7], [0.2, 0.7]])
    )


def test_against_scipy() -> None:
    synthetic, natural, _ = scores()
    found = correlate_with_natural(synthetic, natural, names=["x", "y"])
    for i in range(4):
        for j in range(2):
            expected = scipy.stats.pearsonr(synthetic[:, i], natural[:, j])
            assert found.correlations[i, j] == pytest.approx(expected.statistic, abs=1e-12)
            assert found.p_values[i, j] == pytest.approx(expected.pvalue, rel=1e-9)
    assert found.group[1].mean == pytest.approx(found.correlations[:, 1].mean())
    assert found.group[1].p_value == pytest.approx(found.p_values[:, 1].mean())
    assert found.low is None


def test_partial_correlation_is_that_of_residuals() -> None:
    """Regress both on the control and correlate what is left; one degree of freedom less for the p-value."""
    synthetic, natural, clean = scores()
    found = correlate_with_natural(synthetic, natural, names=["x", "y"], control=clean)
    design = np.column_stack([np.ones(len(clean)), clean])

    def rest(values: np.ndarray) -> np.ndarray:
        return values - design @ np.linalg.lstsq(design, values, rcond=None)[0]

    for i in range(4):
        for j in range(2):
            r = np.corrcoef(rest(synthetic[:, i]), rest(natural[:, j]))[0, 1]
            assert found.correlations[i, j] == pytest.approx(r, abs=1e-10)
            t = r * np.sqrt((len(clean) - 3) / (1 - r * r))
            assert found.p_values[i, j] == pytest.approx(2 * scipy.stats.t.sf(abs(t), len(clean) - 3), rel=1e-6)


@pytest.mark.parametrize("partial", [False, True])
def test_intervals_against_a_plain_loop(partial: bool) -> None:
    """The same draws of models, each correlated anew."""
    synthetic, natural, clean = scores()
    control = clean if partial else None
    found = correlate_with_natural(synthetic, natural, names=["x", "y"], control=control, resamples=200, seed=5)
    counts = np.random.default_rng(5).multinomial(30, np.full(30, 1 / 30), size=200)
    loop = []
    for row in counts:
        picks = np.repeat(np.arange(30), row)
        again = None if control is None else control[picks]
        loop.append(
            correlate_with_natural(synthetic[picks], natural[picks], names=["x", "y"], control=again).correlations
        )
    low, high = np.quantile(loop, [0.025, 0.975], axis=0)
    assert found.low == pytest.approx(low, abs=1e-4)  # resamples are in single precision
    assert found.high == pytest.approx(high, abs=1e-4)
    means = np.mean(loop, axis=1)
    assert [g.low for g in found.group] == pytest.approx(np.quantile(means, 0.025, axis=0), abs=1e-4)


def test_groups_are_compared_on_the_same_models() -> None:
    synthetic, natural, _ = scores()
    found = compare_groups(synthetic[:, 2:], synthetic[:, :2], natural, resamples=500)
    means = [
        correlate_with_natural(group, natural, names=["x", "y"]).correlations.mean()
        for group in (synthetic[:, 2:], synthetic[:, :2])
    ]
    assert found.value == pytest.approx(means[1] - means[0], abs=1e-5)
    assert found.low < found.value < found.high
    same = compare_groups(synthetic, synthetic, natural, resamples=50)
    assert (same.value, same.low, same.high) == (0, 0, 0)


def test_bad_input() -> None:
    synthetic, natural, clean = scores()
    for arguments, said in (
        ((synthetic[:3], natural[:3]), "3 models; expected at least 4"),
        ((synthetic, natural[:5]), "over the same models"),
        ((np.zeros_like(synthetic), natural), "score the same on benchmark 1"),
        ((np.where(synthetic > 0, np.nan, 0), natural), "not a finite number"),
    ):
        with pytest.raises(InputError, match=said):
            correlate_with_natural(*arguments, names=["x", "y"])
    for settings, said in (
        ({"control": clean[:3]}, "a control of shape"),
        ({"control": np.ones(30)}, "score the same on control"),
        ({"level": 95.0}, "level 95"),
        ({"resamples": 1}, "1 resamples"),
    ):
        with pytest.raises(InputError, match=said):
            correlate_with_natural(synthetic, natural, names=["x", "y"], **settings)  # type: ignore[arg-type]
    table = AccuracyTable.of({"a": {"clean": 0.8, "fog": 0.6}})
    with pytest.raises(InputError, match="no benchmarks"):
        mean_residuals(table, [])
    with pytest.raises(InputError, match="holds a corruption twice"):
        mean_residuals(table, [("fog", "fog")])
    with pytest.raises(InputError, match="no natural sets"):
        natural_residuals(table, {})


def test_a_thousand_benchmarks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Benchmarks and resamples are columns of a few products; `perf/construction.py` measures the time."""
    shapes: list[tuple[tuple[int, ...], ...]] = []
    weighted = module._weighted

    def counted(weights: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        shapes.append((weights.shape, first.shape, second.shape))
        return weighted(weights, first, second)

    monkeypatch.setattr(module, "_weighted", counted)
    draw = np.random.default_rng(0)
    synthetic, natural = draw.normal(size=(200, 1000)), draw.normal(size=(200, 5))
    found = correlate_with_natural(synthetic, natural, names="abcde", resamples=1000)
    # Once for the models as they are, and once for all resamples.
    assert shapes == [((200, draws), (200, 1000), (200, 5)) for draws in (1, 1000)]
    assert found.correlations.shape == (1000, 5)
    assert found.low is not None


NOISES, BLURS = ("gaussian_noise", "shot_noise", "impulse_noise"), ("defocus_blur", "motion_blur", "zoom_blur")


@pytest.fixture(scope="module")
def testbed() -> AccuracyTable:
    """The models of the ImageNet testbed with all of ImageNet-C on disk, means over severities."""
    path = SHARED / "published" / "imagenet_testbed_top1.csv"
    if not path.is_file():
        pytest.skip("the testbed's table is not beside this checkout")
    names = (*NOISES, *BLURS, "glass_blur", "snow", "frost", "fog", "brightness", "contrast")
    names += ("elastic_transform", "pixelate", "jpeg_compression")
    return _testbed(path, names)


def _testbed(path: Path, names: tuple[str, ...]) -> AccuracyTable:
    columns = [f"imagenet-c.{name}.{level}_on-disk" for name in names for level in range(1, 6)]
    others = ["val", "imagenetv2-matched-frequency", "imagenet-sketch", "imagenet-a", "val-on-imagenet-a-classes"]
    table = read_table(path, unit="percent", columns=[*columns, *others], complete_only=True)
    means = table.columns(columns).reshape(len(table.models), len(names), 5).mean(axis=2)
    return AccuracyTable(table.models, (*names, *others), np.hstack([means, table.columns(others)]))


def test_the_testbed(testbed: AccuracyTable) -> None:
    """200 models; values against NumPy on the same table, and the paper's direction: more categories predict better."""
    assert len(testbed.models) == 200
    natural = {
        "imagenetv2-matched-frequency": "val",
        "imagenet-a": "val-on-imagenet-a-classes",
        "imagenet-sketch": "val",
    }
    one = mean_residuals(testbed, [NOISES, BLURS], clean="val")
    mixed = mean_residuals(
        testbed, [("gaussian_noise", "defocus_blur", "fog"), ("shot_noise", "zoom_blur", "frost")], clean="val"
    )
    target = natural_residuals(testbed, natural)
    found = correlate_with_natural(one, target, names=list(natural))
    values = {name: testbed.values[:, testbed.column(name)] for name in testbed.settings}
    by_hand = np.corrcoef(
        values["val"] - np.mean([values[name] for name in NOISES], axis=0),
        values["val-on-imagenet-a-classes"] - values["imagenet-a"],
    )[0, 1]
    assert found.correlations[0, 1] == pytest.approx(by_hand)
    assert (found.p_values < 0.001).all()
    difference = compare_groups(one, mixed, target)
    assert difference.low > 0
