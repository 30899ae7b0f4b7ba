"""The numbers and statements of the two papers, from the tables they print."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blemish.core.errors import InputError
from blemish.studies.construction.coverage import balance, coverage_by_training, mean_corruption_errors
from blemish.studies.construction.overlap import overlap_matrix, robustness_scores
from blemish.studies.construction.published import PRINTED, PUBLISHED, printed_table, published_table
from blemish.studies.construction.selection import APPENDIX_B, select_non_overlapping
from blemish.studies.construction.tables import read_table
from conftest import SHARED

FOLDER = SHARED / "published"
PACKAGE = Path(__file__).parents[3] / "src/blemish/studies/construction"


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


def test_coverage_by_training() -> None:
    """NOC paper, Table 1: NOC covers all of ImageNet-C; ImageNet-C covers all of NOC but border and hue."""
    noc_on_c, c_on_noc = published_table("imagenet-c-coverage"), published_table("imagenet-noc-coverage")
    assert all(item.covered for item in coverage_by_training(noc_on_c, "m_inoc"))
    found = coverage_by_training(c_on_noc, "m_ic")
    assert {item.corruption for item in found if not item.covered} == {"noc:border", "noc:hue"}


def test_names_of_tables() -> None:
    with pytest.raises(InputError, match="no published table 'imagenet-d'; expected one of imagenet-c, imagenet-noc,"):
        published_table("imagenet-d")
    with pytest.raises(InputError, match="no published table 'testbed'"):
        printed_table("testbed")
    for name in PUBLISHED:
        table = published_table(name)
        assert "standard" in table.models or "resnet18" in table.models
    assert {name for name in PRINTED if name not in PUBLISHED} == {"imagenet-noc-augmented", "pretrained-mce"}


@pytest.mark.parametrize(("name", "key"), [("imagenet-c-pretrained", "imagenet_c"), ("imagenet-noc-pretrained", "noc")])
def test_the_pretrained_classifiers_are_those_of_tables_5_and_6(name: str, key: str) -> None:
    rows = published("noc_pretrained.json")[key]["rows"]
    table = printed_table(name)
    assert table.models == tuple(rows)
    for model, values in zip(table.models, table.values.tolist(), strict=True):
        row = rows[model]
        assert values == [row["clean_error"], *row["relative_ce_percent"], row["printed_mce"]]


def test_table_3_is_the_last_column_of_tables_5_and_6() -> None:
    both = [printed_table(name).values[:, -1] for name in ("imagenet-c-pretrained", "imagenet-noc-pretrained")]
    assert printed_table("pretrained-mce").models == printed_table("imagenet-c-pretrained").models
    assert np.array_equal(printed_table("pretrained-mce").values, np.transpose(both))


@pytest.mark.parametrize("name", [name for name in PRINTED if name != "pretrained-mce"])
def test_printed_means_are_means_of_the_printed_numbers(name: str) -> None:
    """Up to the rounding of each CE to whole percent, or its truncation, and of the mean once more."""
    table = printed_table(name)
    first, last = 1, table.columns.index("mce_percent")
    means = table.values[:, first:last].mean(axis=1)
    assert np.abs(means - table.values[:, last]).max() < 1.5


def numbers(line: str) -> list[float]:
    return [float(text) for text in re.findall(r"\d+(?:\.\d+)?", line.replace("3x3", ""))]


def test_tables_1_3_and_4_are_those_of_the_papers_text() -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted((SHARED / "seeds").glob("*.txt"))]
    text = next((text for text in texts if "INCREASING THE COVERAGE AND BALANCE" in text), None)
    if text is None:
        pytest.skip("the paper's text is not beside this checkout")

    def row(start: str, table: str) -> list[float]:
        part = text[text.index(f"\n{table}: ") :]
        return numbers(re.search(rf"^{start}\t(.*)$", part, re.MULTILINE).group(1))  # type: ignore[union-attr]

    for name, model, start in (
        ("imagenet-c-coverage", "standard", "standard"),
        ("imagenet-c-coverage", "m_inoc", r"m_\{INOC\}"),
        ("imagenet-noc-coverage", "m_ic", r"m_\{IC\}"),
    ):
        table = printed_table(name)
        assert table.values[table.models.index(model)].tolist() == row(start, "Table 1")
    augmented = printed_table("imagenet-noc-augmented")
    for values, start in zip(
        augmented.values.tolist(), ("Standard", r"SIN\+", "Augmix", r"ANT \^\{3x3\}", "DeepAugment"), strict=True
    ):
        assert values[1:] == row(start, "Table 4")
    means = printed_table("pretrained-mce").values
    assert means[:, 0].tolist() == row(r"mCE\.IC", "Table 3")
    assert means[:, 1].tolist() == row(r"mCE\.INOC", "Table 3")


def test_ranks_of_table_4_are_those_of_its_scores() -> None:
    table = printed_table("imagenet-noc-augmented")
    columns = dict(zip(table.columns, table.values.T.tolist(), strict=True))
    for scores, ranks in (("mce_percent", "rank"), ("imagenet_c_mce_percent", "imagenet_c_rank")):
        assert [sorted(columns[scores]).index(value) + 1 for value in columns[scores]] == columns[ranks]
    assert np.isnan(columns["clean_error"]).all()


def test_the_testbed_is_a_part_of_its_table() -> None:
    """194 models; every column against the table of the testbed, of a corruption the mean over its severities."""
    path = FOLDER / "imagenet_testbed_top1.csv"
    if not path.is_file():
        pytest.skip("the testbed's table is not beside this checkout")
    table = published_table("testbed")
    assert len(table.models) == 194
    source = {
        "clean": ["val"],
        "fog": [f"imagenet-c.fog.{level}_on-disk" for level in range(1, 6)],
        "spatter": [f"imagenet-c.spatter.{level}_on-disk" for level in range(1, 6)],
        "natural:imagenet-a": ["imagenet-a"],
        "clean:imagenet-a": ["val-on-imagenet-a-classes"],
        "natural:imagenet-v2": ["imagenetv2-matched-frequency"],
        "natural:imagenet-sketch": ["imagenet-sketch"],
        "natural:objectnet": ["objectnet-1.0-beta"],
        "clean:objectnet": ["val-on-objectnet-classes"],
        "natural:imagenet-r": ["imagenet-r"],
        "clean:imagenet-r": ["val-on-imagenet-r-classes"],
    }
    whole = read_table(path, unit="percent", columns=[*itertools.chain(*source.values())], complete_only=True)
    for column, parts in source.items():
        means = whole.columns(parts).mean(axis=1)
        expected = [means[whole.row(model)] for model in table.models]
        assert table.columns([column])[:, 0] == pytest.approx(expected, abs=1e-6)


def test_the_testbeds_licence_comes_with_its_numbers() -> None:
    content = json.loads((PACKAGE / "testbed.json").read_text())
    assert "Copyright (c) 2020 Rohan Taori" in content["licence"]
    assert "permission notice shall be included" in content["licence"]
    assert "Taori" in content["about"]


def test_the_folder_is_named_nowhere_in_the_package() -> None:
    for name in ("published.json", "testbed.json"):
        assert "shared" not in (PACKAGE / name).read_text()
