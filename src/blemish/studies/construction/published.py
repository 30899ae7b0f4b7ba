"""Published tables, so that every step can be tried without training anything: the NOC paper's and the testbed's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np

from blemish.core.errors import InputError
from blemish.studies.construction.tables import CLEAN, AccuracyTable

TESTBED = "testbed"
"""The table of the ImageNet testbed: 194 models on ImageNet, ImageNet-C and natural sets."""

PUBLISHED = (
    "imagenet-c",
    "imagenet-noc",
    "imagenet-c-coverage",
    "imagenet-noc-coverage",
    "imagenet-c-pretrained",
    "imagenet-noc-pretrained",
    TESTBED,
)
"""The published tables of accuracies there are."""

PRINTED = (*PUBLISHED[:-1], "imagenet-noc-augmented", "pretrained-mce")
"""The tables of the NOC paper as it prints them: 7, 8, both parts of 1, 5, 6, 4 and 3."""

BASELINE = "alexnet"
"""The row of the model to whose errors corruption errors are relative."""


@dataclass(frozen=True)
class Printed:
    """A table of the NOC paper: relative corruption errors and their means in percent, clean errors as rates.

    ``values`` has a column for each of ``columns``; NaN stands where the paper prints nothing.
    """

    about: str
    models: tuple[str, ...]
    columns: tuple[str, ...]
    values: np.ndarray


@lru_cache(maxsize=2)
def _content(file: str) -> Mapping[str, Any]:
    text = resources.files("blemish.studies.construction").joinpath(file).read_text(encoding="utf-8")
    return dict(json.loads(text))


def _check(name: str, known: tuple[str, ...]) -> None:
    if name not in known:
        raise InputError(f"no published table {name!r}; expected one of {', '.join(known)}")


def printed_table(name: str) -> Printed:
    """One of the NOC paper's tables as it prints it.

    >>> table = printed_table("pretrained-mce")
    >>> table.columns, table.values[table.models.index("resnet50")].tolist()
    (('imagenet_c_mce_percent', 'imagenet_noc_mce_percent'), [105.0, 81.0])
    """
    _check(name, PRINTED)
    content = _content("published.json")
    table = content["tables"][name]
    corruptions = content["benchmarks"][table["benchmark"]]["corruptions"] if "benchmark" in table else []
    models = table["models"]
    plain = [key for key in next(iter(models.values())) if key not in ("clean_error", "relative_ce_percent")]
    columns = (*(["clean_error", *corruptions] if corruptions else []), *plain)
    rows = [
        [*([row["clean_error"], *row["relative_ce_percent"]] if corruptions else []), *(row[key] for key in plain)]
        for row in models.values()
    ]
    return Printed(table["about"], tuple(models), columns, np.array(rows, dtype=np.float64))


def published_table(name: str) -> AccuracyTable:
    """Accuracies that were published, or follow from what was.

    ``testbed`` holds those of the ImageNet testbed (Taori et al. 2020). All others are the NOC paper's tables, of
    ResNet-18s trained on ImageNet-100 or of pretrained classifiers: it prints relative corruption errors, rounded to
    whole percent, from which errors follow as E_c = E_clean + CE (E_c^AlexNet − E_clean^AlexNet). Their row ``alexnet``
    holds the baseline itself.

    >>> published_table("imagenet-c").accuracy("fog", "clean")
    0.746
    """
    _check(name, PUBLISHED)
    if name == TESTBED:
        content = _content("testbed.json")
        values = np.array(list(content["models"].values()))
        return AccuracyTable(tuple(content["models"]), tuple(content["columns"]), values)
    content = _content("published.json")
    table, base = content["tables"][name], content["alexnet_clean"]
    benchmark = content["benchmarks"][table["benchmark"]]
    corruptions, errors = benchmark["corruptions"], benchmark["alexnet_error"]
    rows = {BASELINE: {CLEAN: base, **dict(zip(corruptions, errors, strict=True))}}
    for model, row in table["models"].items():
        clean = row["clean_error"]
        rises = [
            percent / 100 * (error - base) for percent, error in zip(row["relative_ce_percent"], errors, strict=True)
        ]
        rows[model] = {CLEAN: clean, **{c: clean + rise for c, rise in zip(corruptions, rises, strict=True)}}
    return AccuracyTable.of({m: {c: round(1 - e, 12) for c, e in row.items()} for m, row in rows.items()})
