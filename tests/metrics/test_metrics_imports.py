"""The published tables that come with the library, against the files they were made from and numbers printed there."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from blemish.core.errors import InputError
from blemish.metrics.baselines import published_baseline
from blemish.metrics.formulas import mean_corruption_error
from blemish.metrics.imports import (
    TableInfo,
    adaptation_tables,
    import_infos,
    imported_rows,
    imported_table,
    make_table,
)
from blemish.metrics.testbed import line_models

PUBLISHED = Path(__file__).resolve().parents[3] / "shared" / "published"

needs_published = pytest.mark.skipif(
    not PUBLISHED.is_dir(), reason="the published tables (../shared/published) are not beside this checkout"
)


@pytest.mark.parametrize("name", import_infos())
def test_every_table_says_where_it_is_from_and_what_it_can_be_compared_with(name: str) -> None:
    info, table = import_infos()[name], imported_table(name)
    assert info.source
    assert info.licence
    assert info.can
    assert info.cannot
    assert len(table.rows) >= 5
    assert all(0 < row.value.value < 150 for row in table.rows)
    assert all(row.clean is None or 0 <= row.clean <= 100 for row in table.rows)


def test_robustbench_mce_is_what_its_metadata_say() -> None:
    # RobustBench, model_info/imagenet/corruptions: mCE of five models as stated there.
    stated = {"Tian2022Deeper_DeiT-B": 41.7, "Tian2022Deeper_DeiT-S": 47.61, "Erichson2022NoisyMix_new": 59.43}
    rows = {row.model: row for row in imported_table("robustbench/imagenet-c").rows}
    for model, mce in stated.items():
        assert rows[model].value.value == pytest.approx(mce, abs=0.006)
    # README of the tables: Standard_R50 is 76.377, Hendrycks2020AugMix 64.174.
    assert rows["Standard_R50"].value.value == pytest.approx(76.377, abs=0.001)
    assert rows["Hendrycks2020AugMix"].value.value == pytest.approx(64.174, abs=0.001)
    assert "AlexNet" not in rows, "the row that is divided by is no model of the table"


def test_three_dimensional_corruptions_have_their_own_divisor() -> None:
    rows = {row.model: row for row in imported_table("robustbench/imagenet-3dcc").rows}
    assert rows["Tian2022Deeper_DeiT-B"].value.value == pytest.approx(47.967, abs=0.001)  # mce_3d, recomputed there


def test_cifar_is_ranked_by_its_mean_accuracy() -> None:
    rows = {row.model: row for row in imported_table("robustbench/cifar10-c").rows}
    assert 100 - rows["Erichson2022NoisyMix"].value.value == pytest.approx(92.778, abs=0.001)  # stated there
    assert rows["Erichson2022NoisyMix"].clean == pytest.approx(100 - 96.73)


def test_the_testbed_has_the_mce_of_its_lines() -> None:
    """Another way of computing, in tools/fit_testbed.py, from the table before it was rounded."""
    rows = {row.model: row for row in imported_table("testbed/stored").rows}
    models = line_models()
    assert len(models) == len(rows) == 200
    for model in models:
        assert rows[model.name].value.value == pytest.approx(model.mce, abs=2e-3)
        assert rows[model.name].clean == pytest.approx(100 * (1 - model.clean), abs=2e-3)


def test_weights_make_the_formula_of_mce() -> None:
    table = imported_table("testbed/stored")
    row, base = table.rows[17], published_baseline()
    groups = list(dict.fromkeys(text.partition("@")[0] for text in table.weights))
    errors = {g: [row.cells[f"{g}@{s}"] / 100 for s in range(1, 6)] for g in groups}
    known = {g: [base.errors[f"{g}@{s}"] for s in range(1, 6)] for g in groups}
    assert row.value.value == pytest.approx(100 * float(mean_corruption_error(errors, known)))


def test_ranks_move_by_as_many_places_as_the_remark_says() -> None:
    stored, memory = (imported_table(f"testbed/{kind}") for kind in ("stored", "in-memory"))
    shared = list(memory.weights)

    def places(table: object, rows: dict[str, float]) -> dict[str, int]:
        return {model: place for place, model in enumerate(sorted(rows, key=lambda name: rows[name]))}

    one = places(stored, {row.model: sum(row.cells[text] for text in shared) for row in stored.rows})
    other = places(memory, {row.model: sum(row.cells[text] for text in shared) for row in memory.rows})
    assert max(abs(one[model] - other[model]) for model in one) == 59
    assert any("59 places of 200" in text for text in stored.info.cannot)
    assert len(shared) == 70


@needs_published
def test_values_are_those_of_the_files() -> None:
    with (PUBLISHED / "imagenet_testbed_top1.csv").open(newline="") as stream:
        testbed = {row["model"]: row for row in csv.DictReader(stream)}
    for row in imported_rows("testbed_in_memory.csv"):
        assert float(row["fog@3"]) == pytest.approx(
            float(testbed[row["model"]]["imagenet-c.fog.3_in-memory"]), abs=6e-4
        )
    with (PUBLISHED / "robustbench" / "cifar100_corruptions.csv").open(newline="") as stream:
        cifar = {row["model"]: row for row in csv.DictReader(stream)}
    for row in imported_rows("robustbench_cifar100_c.csv"):
        assert float(row["snow@4"]) == pytest.approx(100 * float(cifar[row["model"]]["snow:4"]), abs=1e-6)


@needs_published
def test_adaptation_tables_are_those_of_the_file() -> None:
    published = {t["id"]: t for t in json.loads((PUBLISHED / "tta_tables.json").read_text())["tables"]}
    tables = adaptation_tables()
    assert len(tables) > 40
    for table in tables:
        # A table of several networks has become one of each, whose name stands behind its own.
        source = published.get(table.id) or published[table.id.removesuffix(f"/{table.model}")]
        column = 0 if isinstance(source["model"], str) else source["model"].index(table.model)
        for method, error, deviation in table.rows:
            value = source["rows"][method][column]
            assert error == pytest.approx(value if source["metric"] == "error" else 100 - value)
            assert deviation is None or deviation == source["rows"][method][1]
    assert not any("stored text" in table.source for table in tables)


def test_a_model_at_two_sizes_is_told_apart() -> None:
    names = [row.model for row in imported_table("timm/imagenet-r").rows]
    assert len(names) == len(set(names))
    assert any("pixels)" in name for name in names)


def test_a_claims_interval_is_that_of_its_images() -> None:
    row = next(row for row in imported_table("timm/imagenet-a").rows if row.model.startswith("resnet50.a1_in1k"))
    # results-imagenet-a.csv: the first of the two rows of this model.
    share = row.value.value / 100
    assert row.value.high - row.value.value == pytest.approx(196 * np.sqrt(share * (1 - share) / 7500), rel=1e-3)


def info(**changes: object) -> TableInfo:
    known = {"name": "mine", "title": "Mine", "benchmark": "digits-c", "source": "me", "images": 10}
    return TableInfo(**{**known, "tier": "per-cell", "metric": "error", "cells": "error", **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "rows", "message"),
    [
        ({"images": None}, [{"model": "a", "x@1": "3"}], "of how many images"),
        ({"benchmark": "other"}, [], "no models"),
        ({"benchmark": "other"}, [{"model": "a", "x@1": "3"}, {"model": "a", "x@1": "3"}], "model a twice"),
        ({"benchmark": "other"}, [{"model": "a", "x@1": "101"}], "x@1 of a is '101'; expected a number in percent"),
        ({"benchmark": "other"}, [{"model": "a", "x@1": "nan"}], "x@1 of a is 'nan'"),
        ({}, [{"model": "a", "x@1": "3"}], "mine: no column"),
        (
            {"benchmark": "other", "metric": "mce", "divisor": "b"},
            [{"model": "a", "x@1": "3"}],
            "no row b to divide by",
        ),
    ],
)
def test_bad_tables_are_refused(changes: dict[str, object], rows: list[dict[str, str]], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_table(info(**changes), rows)
