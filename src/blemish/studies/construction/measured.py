"""Tables that blemish's own study measured: 128 corruptions of all catalogues, on images of 32 pixels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Any

import numpy as np

from blemish.core.errors import InputError
from blemish.studies.construction.tables import AccuracyTable

CATALOGUES = "catalogues-32"

_SEEDS = 3

MEASURED = (CATALOGUES, *(f"{CATALOGUES}-seed{seed}" for seed in range(_SEEDS)))
"""The tables there are: the means over the seeds of training, and those of each seed."""


@lru_cache(maxsize=1)
def _content() -> Mapping[str, Any]:
    file = resources.files("blemish.studies.construction").joinpath(f"{CATALOGUES}.json")
    return dict(json.loads(file.read_text(encoding="utf-8")))


def measured_table(name: str = CATALOGUES) -> AccuracyTable:
    """Accuracies of a standard network and of those fine-tuned on each corruption, under all of them.

    Scores from training that helps by less than .02 are mostly noise: give `overlap_matrix` ``least_gain=0.02``.

    >>> table = measured_table()
    >>> len(table.models), len(table.settings)
    (129, 129)
    """
    if name not in MEASURED:
        raise InputError(f"no measured table {name!r}; expected one of {', '.join(MEASURED)}")
    content = _content()
    seeds = range(_SEEDS) if name == CATALOGUES else [MEASURED.index(name) - 1]
    tables = [content["seeds"][str(seed)] for seed in seeds]
    counts = [[[int(count) for count in row.split()] for row in table.values()] for table in tables]
    return AccuracyTable(tuple(tables[0]), tuple(content["settings"]), np.mean(counts, axis=0) / content["images"])


def about_measured() -> str:
    """What was trained, and on what."""
    return str(_content()["about"])
