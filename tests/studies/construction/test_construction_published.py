"""The numbers and statements of the two papers, from the tables they print."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blemish.core.errors import InputError
from blemish.studies.construction.coverage import balance, coverage_by_training, mean_corruption_errors
from blemish.studies.construction.overlap import overlap_matrix, robustness_scores
from blemish.studies.construction.published import PUBLISHED, published_table
from blemish.studies.construction.selection import APPENDIX_B, select_non_overlapping
from blemish.studies.construction.tables import AccuracyTable
from conftest import SHARED

FOLDER = SHARED / "published"


def published(name: str) -> Any:
    path = FOLDER / name
    if not path.is_file():
        pytest.skip(f"{name} is not beside this checkout")
    return json.loads(path.read_text())


@pytest.mark.parametrize(("name", "key", "prefix"), [("imagenet-c", "imagenet_c", ""), ("imagenet-noc", "noc", "noc:")])
def test_the_packaged_tables_are_the_published_ones(name: str, key: str, prefix: str) -> None:
    """Accuracies give back the printed relative CE and clean errors of Tables 7 and 8, with AlexNet's error rates."""
    source, alexnet = published("noc_training.json")[key], published("alexnet.json")
    table = published_table(name)
    errors = [np.mean(alexnet[key][column]) for column in source["columns"]]
    for model, row in source["rows"].items():
        name_here = model if model == "standard" else prefix + model
        assert 1 - table.accuracy(name_here, "clean") == pytest.approx(row["clean_error"])
        for column, error, percent in zip(source["columns"], errors, row["relative_ce_percent"], strict=True):
            rise = table.accuracy(name_here, "clean") - table.accuracy(name_here, prefix + column)
            assert 100 * rise / (error - alexnet["clean"]) == pytest.approx(percent, abs=1e-3)


def test_figure_3_of_imagenet_c() -> None:
    """NOC paper, Figure 3 as stated in its text and recomputed from Table 7."""
    matrix = overlap_matrix(published_table("imagenet-c"))
    noises = ("gaussian_noise", "shot_noise", "impulse_noise")
    assert [round(matrix.score(a, b), 2) for a, b in itertools.combinations(noises, 2)] == [0.97, 0.96, 0.96]
    assert round(matrix.score("fog", "contrast"), 2) == 0.49
    assert round(matrix.score("snow", "frost"), 2) == 0.47
    assert round(matrix.score("elastic_transform", "gaussian_noise"), 2) == 0.11
    assert not matrix.undefined


def test_figure_3_of_imagenet_noc() -> None:
    """No pair of ImageNet-NOC exceeds .07, so that at the paper's threshold of .1 all eight are selected."""
    matrix = overlap_matrix(published_table("imagenet-noc"))
    off_diagonal = matrix.scores[~np.eye(8, dtype=bool)]
    assert 0.06 < off_diagonal.max() < 0.07
    found = select_non_overlapping(matrix, threshold=0.1)
    assert found.members == matrix.names
    assert found.count == 1


def test_robustness_of_the_published_models() -> None:
    """The standard model's R lies at .67 to .82 on NOC, and training on a corruption brings it to .96 and above."""
    table = published_table("imagenet-noc").only(models=["standard", *published_table("imagenet-noc").settings[1:]])
    robustness = robustness_scores(table)[:, 1:]
    assert 0.665 < robustness[0].min() < robustness[0].max() < 0.825
    own = np.diag(robustness[1:])
    assert 0.955 < own.min() < own.max() < 1


@pytest.mark.parametrize("threshold", APPENDIX_B)
def test_algorithm_1_on_imagenet_c_against_brute_force(threshold: float) -> None:
    """All 2 ** 15 subsets."""
    matrix = overlap_matrix(published_table("imagenet-c"))
    allowed = matrix.scores <= threshold
    best: list[tuple[int, ...]] = []
    for size in range(15, 1, -1):
        best = [
            subset
            for subset in itertools.combinations(range(15), size)
            if all(allowed[i, j] for i, j in itertools.combinations(subset, 2))
        ]
        if best:
            break
    means = [np.mean([matrix.scores[i, j] for i, j in itertools.combinations(subset, 2)]) for subset in best]
    found = select_non_overlapping(matrix, threshold=threshold)
    assert set(found.optima) == {tuple(matrix.names[i] for i in subset) for subset in best}
    assert found.mean == pytest.approx(min(means), abs=1e-12)
    assert found.ties == sum(mean < min(means) + 1e-12 for mean in means)


def test_what_algorithm_1_selects_from_imagenet_c() -> None:
    """Computed by the brute force above from Table 7."""
    matrix = overlap_matrix(published_table("imagenet-c"))
    sizes = [select_non_overlapping(matrix, threshold=threshold).size for threshold in APPENDIX_B]
    assert sizes == [3, 3, 3, 3, 5, 6, 8]
    found = select_non_overlapping(matrix, threshold=0.2)
    assert found.members == ("snow", "brightness", "contrast", "elastic_transform", "jpeg_compression")


@pytest.mark.parametrize(("key", "std", "spread"), [("imagenet_c", 12.1, 40), ("noc", 3.7, 11)])
def test_balance_of_the_printed_scores(key: str, std: float, spread: float) -> None:
    """NOC paper, section 5.3: from the mCE of Tables 2.a and 2.b, which are whole percent."""
    rows = published("noc_training.json")[key]["rows"]
    found = balance({model: row["printed_mce"] for model, row in rows.items() if model != "standard"})
    assert round(found.std, 1) == std
    assert found.range == spread


@pytest.mark.parametrize(("name", "std", "spread"), [("imagenet-c", 12.1, 40), ("imagenet-noc", 3.8, 12)])
def test_balance_from_accuracies(name: str, std: float, spread: float) -> None:
    """The same from unrounded mCE, which moves NOC's 3.7 and 11 to 3.8 and 11.6."""
    scores = mean_corruption_errors(published_table(name), baseline="alexnet")
    found = balance(scores)
    assert round(found.std, 1) == std
    assert round(found.range) == spread


@pytest.mark.parametrize(("name", "key", "prefix"), [("imagenet-c", "imagenet_c", ""), ("imagenet-noc", "noc", "noc:")])
def test_mean_corruption_errors_round_to_the_printed_ones(name: str, key: str, prefix: str) -> None:
    rows = published("noc_training.json")[key]["rows"]
    models = [model if model == "standard" else prefix + model for model in rows]
    found = mean_corruption_errors(published_table(name), baseline="alexnet", models=models)
    for model, row in zip(models, rows.values(), strict=True):
        # The printed CE are rounded to whole percent before they are averaged here, and again after it there.
        assert found[model] == pytest.approx(row["printed_mce"], abs=1.01)


def from_relative(name: str, model: str, clean_error: float, percent: Sequence[int]) -> AccuracyTable:
    """A published table with one more model, given as the paper prints it."""
    table = published_table(name)
    base = table.accuracy("alexnet", "clean")
    rises = [p / 100 * (base - table.accuracy("alexnet", c)) for p, c in zip(percent, table.settings[1:], strict=True)]
    row = [1 - clean_error, *(1 - clean_error - rise for rise in rises)]
    return AccuracyTable((*table.models, model), table.settings, np.vstack([table.values, row]))


def test_coverage_by_training() -> None:
    """NOC paper, Table 1: NOC covers all of ImageNet-C; ImageNet-C covers all of NOC but border and hue."""
    noc_on_c = from_relative(
        "imagenet-c", "m_inoc", 0.199, [92, 94, 93, 102, 112, 86, 78, 69, 81, 67, 41, 97, 63, 71, 53]
    )
    assert all(item.covered for item in coverage_by_training(noc_on_c, "m_inoc"))
    c_on_noc = from_relative("imagenet-noc", "m_ic", 0.239, [44, 15, 39, 58, 79, 49, 72, 117])
    found = coverage_by_training(c_on_noc, "m_ic")
    assert {item.corruption for item in found if not item.covered} == {"noc:border", "noc:hue"}


def test_there_are_two_tables() -> None:
    with pytest.raises(InputError, match="expected imagenet-c or imagenet-noc"):
        published_table("imagenet-d")
    assert all("standard" in published_table(name).models for name in PUBLISHED)


def test_the_folder_is_named_nowhere_in_the_package() -> None:
    text = (Path(__file__).parents[3] / "src/blemish/studies/construction/published.json").read_text()
    assert "shared" not in text
