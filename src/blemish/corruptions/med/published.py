"""The settings of MedMNIST-C: a row for each severity and each of its twelve data sets, which serve as presets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from blemish.corruptions.severity import DATA_SETS, PUBLISHED_SIDE, SeverityTable

SOURCE = "Di Salvo, Doerrich and Ledig, MedMNIST-C, 2024: the published generators"


@cache
def data_sets() -> Mapping[str, Any]:
    """What is published of each data set: its task, classes, test images, whether it is gray, and its corruptions."""
    path = resources.files("blemish.corruptions.med").joinpath("medmnist_c.json")
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["datasets"]
    assert tuple(content) == DATA_SETS
    return content


def settings_of(
    name: str, *, rounded: Sequence[str] = (), reciprocal: Sequence[str] = (), **unchanged: tuple[str, float]
) -> SeverityTable:
    """A corruption's table. For each parameter the published name of its numbers, and its value at severity 0."""
    rows = {}
    for data_set, entry in data_sets().items():
        published = entry["corruptions"].get(name)
        if published is not None:
            columns = [(value, *published[column]) for column, value in unchanged.values()]
            rows[data_set] = tuple(tuple(map(float, row)) for row in zip(*columns, strict=True))
    sizes = dict.fromkeys(rows, PUBLISHED_SIDE)
    whole, inverse = frozenset(rounded), frozenset(reciprocal)
    return SeverityTable(tuple(unchanged), rows, sizes, rounded=whole, reciprocal=inverse)
