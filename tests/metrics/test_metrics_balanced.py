"""Balanced errors, and MedMNIST-C's scores: every class counts the same, however many images it has."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from blemish.benchmarks.files import load_benchmark
from blemish.core.errors import InputError
from blemish.data.open import open_source
from blemish.metrics import compare, score
from blemish.metrics.baselines import Baseline, baseline_from_run, published_baseline
from blemish.metrics.formulas import balanced_accuracy, class_hits
from conftest import SHARED
from synthetic_runs import severities, write_run

QUICK = {"replicates": 200}
MED = {"name": "medmnist-c/octmnist", "metric": "mbe", "baseline": "alexnet/octmnist"}
OCT = (
    *("med:pixelate", "med:jpeg_compression", "med:speckle_noise", "med:defocus_blur", "med:motion_blur"),
    "med:contrast_down",
)
PRESET = {"preset": "octmnist"}


def recalls(correct: np.ndarray, labels: np.ndarray) -> float:
    """The mean recall, class by class."""
    return float(np.mean([correct[labels == label].mean() for label in np.unique(labels)]))


def test_by_hand() -> None:
    """Three of four, one of two, and none of one: recalls .75, .5 and 0."""
    labels = np.array([5, 5, 5, 5, 9, 9, 11])
    correct = np.array([1, 1, 1, 0, 0, 1, 0], dtype=bool)
    hits = class_hits(correct, labels)
    assert hits.shape == (7, 6)
    assert float(balanced_accuracy(hits.mean(0))) == pytest.approx(1.25 / 3)


def test_a_class_that_was_not_drawn_does_not_count() -> None:
    hits = class_hits([True, False, True], [0, 0, 1])
    assert float(balanced_accuracy(hits[:2].mean(0))) == 0.5


def test_scores_of_a_run(tmp_path: Path) -> None:
    """BE and relative BE by their formulas, from the records and AlexNet's published numbers."""
    run = write_run(
        tmp_path, "m", severities(OCT), images=130, classes=4, benchmark=MED, protocol=PRESET, data={"classes": 4}
    )
    found = score(run, **QUICK)
    alexnet = published_baseline("alexnet/octmnist")

    def error(text: str) -> float:
        records = next(run.records(condition) for condition in run.conditions if str(condition) == text)
        return 1 - recalls(records.correct, records.labels)

    clean, ratios, relative = error("clean"), [], []
    for name in OCT:
        mean = np.mean([error(f"{name}@{severity}") for severity in range(1, 6)])
        ratios.append(mean / alexnet.means[name])
        relative.append((mean - clean) / (alexnet.means[name] - 0.20199999999999996))
        assert found.find("balanced_error", name).estimate.value == pytest.approx(100 * mean)
        assert found.find("be", name).estimate.value == pytest.approx(100 * ratios[-1])
        assert found.find("relative_be", name).estimate.value == pytest.approx(100 * relative[-1])
    assert found.find("mbe").estimate.value == pytest.approx(100 * np.mean(ratios))
    assert found.find("relative_mbe").estimate.value == pytest.approx(100 * np.mean(relative))
    assert found.headline == found.find("mbe")
    assert found.find("balanced_error", "clean").estimate.value == pytest.approx(100 * clean)
    assert not found.select(name="ce")
    assert found.baseline == "alexnet/octmnist"
    # Published: .202 clean; (.3124 + .2964 + .386 + .3084 + .4892 + .4196) / 6 = .3687 corrupted.
    assert any("20.2 % on clean images, 36.9 % over all corruptions" in remark for remark in found.remarks)
    for row in found.rows:
        assert row.estimate.low <= row.estimate.value <= row.estimate.high, row


def test_rare_classes_count_as_much_as_frequent_ones(tmp_path: Path) -> None:
    """Of 10 images of 3 classes, 4, 3 and 3: only the first class is known, so 1 − ⅓."""
    first = np.arange(10) % 3 == 0
    run = write_run(
        tmp_path, "m", {"clean": first, "fog@1": first}, images=10, classes=3, benchmark={"metric": "balanced_error"}
    )
    found = score(run, **QUICK)
    assert found.find("balanced_error", "fog@1").estimate.value == pytest.approx(200 / 3)
    assert found.find("error", "fog@1").estimate.value == pytest.approx(60)


def test_agreement_of_all_images_has_an_interval(tmp_path: Path) -> None:
    """That of 9 images for 3 classes of which the rarest has 3: wider than that of the error of all 10."""
    right = np.ones(10, dtype=bool)
    run = write_run(
        tmp_path, "m", {"clean": right, "fog@1": right}, images=10, classes=3, benchmark={"metric": "balanced_error"}
    )
    interval = score(run, **QUICK).find("balanced_error", "clean").estimate
    plain = score(run, **QUICK).find("error", "clean").estimate
    assert (interval.low, interval.value) == (0, 0)
    assert interval.high > plain.high > 20


def test_the_baseline_itself_is_a_hundred_percent(tmp_path: Path) -> None:
    conditions = severities(("fog", "snow"))
    run = write_run(tmp_path, "m", conditions, images=101, classes=7, benchmark={"metric": "mbe"})
    found = score(run, baseline=run, **QUICK)
    assert found.find("mbe").estimate.value == pytest.approx(100)
    assert found.find("relative_mbe").estimate.value == pytest.approx(100)
    assert baseline_from_run(run).balanced


def test_plain_and_balanced_errors_are_not_divided_by_each_other(tmp_path: Path) -> None:
    conditions = severities(("fog",))
    balanced = write_run(tmp_path, "b", conditions, benchmark={"metric": "mbe"})
    plain = write_run(tmp_path, "p", conditions, benchmark={"metric": "mce"})
    with pytest.raises(InputError, match="holds plain errors; expected balanced ones"):
        score(balanced, baseline=plain, **QUICK).find("mbe")
    with pytest.raises(InputError, match="holds balanced errors; expected plain ones"):
        score(plain, baseline=balanced, **QUICK).find("mce")


def test_an_easier_corruption_than_none_has_no_relative_error(tmp_path: Path) -> None:
    """On PneumoniaMNIST, AlexNet is better under contrast_up than without: by .0056 (published)."""
    benchmark = {"metric": "mbe", "baseline": "alexnet/pneumoniamnist"}
    conditions = severities(("med:contrast_up", "med:pixelate"))
    run = write_run(tmp_path, "m", conditions, classes=2, benchmark=benchmark, protocol={"preset": "pneumoniamnist"})
    found = score(run, **QUICK)
    assert found.find("relative_be", "med:pixelate")
    with pytest.raises(InputError, match=r"is -0\.0055\d*; expected more than 0"):
        found.find("relative_be", "med:contrast_up")
    with pytest.raises(InputError, match="not known of med:contrast_up"):
        found.find("relative_mbe")
    assert found.find("mbe")


def test_another_data_sets_baseline_does_not_fit(tmp_path: Path) -> None:
    run = write_run(tmp_path, "m", severities(OCT), classes=4, benchmark=MED, protocol={"preset": "pathmnist"})
    with pytest.raises(InputError, match="was measured on octmnist, and this run has the preset pathmnist"):
        score(run, **QUICK).find("mbe")


def test_two_models(tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path, name, severities(OCT, worst=worst), classes=4, benchmark=MED, protocol=PRESET)
        for name, worst in (("a", 0.3), ("b", 0.6))
    ]
    found = compare(*runs, **QUICK)
    (row,) = [row for row in found.rows if (row.scope, row.name) == ("benchmark", "mbe")]
    assert row.difference.high < 0
    assert row.p_value < 0.05


def test_published_numbers() -> None:
    """Against the file that was read from the authors' package, where it is at hand."""
    path = SHARED / "published" / "medmnist_c.json"
    if not path.exists():
        pytest.skip("the published numbers of MedMNIST-C are not beside this checkout")
    published = json.loads(path.read_text())["alexnet"]
    for name in published:
        baseline = published_baseline(f"alexnet/{name}")
        assert isinstance(baseline, Baseline)
        assert baseline.clean == published[name]["clean"]
        assert baseline.means == {f"med:{key}": value for key, value in published[name]["corrupted"].items()}
        assert load_benchmark(f"medmnist-c/{name}").baseline == baseline.name
    with pytest.raises(InputError, match="alexnet/ and a data set of MedMNIST-C"):
        published_baseline("alexnet/imagenet")


def test_files_of_medmnist_are_read(tmp_path: Path) -> None:
    """They hold three splits, labels as a column, gray images without an axis of channels."""
    rng = np.random.default_rng(0)
    splits = {
        f"{split}_{what}": values
        for split, count in (("train", 5), ("val", 3), ("test", 4))
        for what, values in (
            ("images", rng.integers(0, 256, (count, 28, 28), dtype=np.uint8)),
            ("labels", rng.integers(0, 2, (count, 1), dtype=np.uint8)),
        )
    }
    np.savez(tmp_path / "breastmnist.npz", **splits)
    source = open_source(tmp_path / "breastmnist.npz")
    assert source.labels.tolist() == splits["test_labels"][:, 0].tolist()
    assert np.array_equal(np.array(source.read(2).convert("L")), splits["test_images"][2])
    splits["test_labels"] = rng.integers(0, 2, (4, 14), dtype=np.uint8)
    np.savez(tmp_path / "chestmnist.npz", **splits)
    with pytest.raises(
        InputError, match=r"labels of shape \(4, 14\) for 4 images; expected one per image, or --task multilabel"
    ):
        open_source(tmp_path / "chestmnist.npz")
