"""timm's published accuracies, as they ship with the package."""

from __future__ import annotations

import csv

import pytest

from blemish.metrics.timm_table import timm_results
from conftest import SHARED


def test_a_model_has_the_numbers_of_the_published_tables() -> None:
    """results-imagenet.csv and its neighbours, huggingface/pytorch-image-models."""
    (row,) = timm_results()["eva02_large_patch14_448.mim_m38m_ft_in22k_in1k"]
    assert (row.size, row.crop, row.interpolation, row.parameters) == (448, 1.0, "bicubic", 305.08)
    assert row.accuracies["imagenet"] == pytest.approx(0.90056)
    assert row.accuracies["imagenet-a"] == pytest.approx(0.88627)
    assert row.accuracies["imagenet-real"] == pytest.approx(0.91144)


def test_models_are_there_at_several_sizes_and_some_without_a_set() -> None:
    rows = [row for rows in timm_results().values() for row in rows]
    assert (len(timm_results()), len(rows)) == (1266, 1556)
    assert [row.name for row in rows if "imagenet-a" not in row.accuracies] == ["resnet50.tv_in1k"]
    assert all(0 <= rate <= 1 for row in rows for rate in row.accuracies.values())


def test_the_data_are_those_of_the_published_files() -> None:
    path = SHARED / "published" / "timm" / "results-sketch.csv"
    if not path.is_file():
        pytest.skip("timm's tables (../shared/published/timm) are not beside this checkout")
    with path.open(encoding="utf-8", newline="") as stream:
        published = sorted((row["model"], int(row["img_size"]), float(row["top1"])) for row in csv.DictReader(stream))
    rows = [row for rows in timm_results().values() for row in rows]
    ours = sorted((row.name, row.size, round(100 * row.accuracies["imagenet-sketch"], 3)) for row in rows)
    assert ours == published
