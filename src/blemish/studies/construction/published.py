"""The accuracies that the NOC paper published, so that every step can be tried without training anything."""

from __future__ import annotations

import json
from importlib import resources

from blemish.core.errors import InputError
from blemish.studies.construction.tables import CLEAN, AccuracyTable

__all__ = ["BASELINE", "PUBLISHED", "published_table"]

PUBLISHED = ("imagenet-c", "imagenet-noc")
"""The published tables there are."""

BASELINE = "alexnet"
"""The row of the model to whose errors corruption errors are relative."""


def published_table(name: str) -> AccuracyTable:
    """Accuracies of ResNet-18s trained on ImageNet-100, one per corruption of ImageNet-C or ImageNet-NOC.

    The paper prints relative corruption errors, rounded to whole percent, from which errors follow as
    E_c = E_clean + CE (E_c^AlexNet − E_clean^AlexNet). The row ``alexnet`` holds the baseline itself.

    >>> published_table("imagenet-c").accuracy("fog", "clean")
    0.746
    """
    if name not in PUBLISHED:
        raise InputError(f"no published table {name!r}; expected {' or '.join(PUBLISHED)}")
    text = resources.files("blemish.studies.construction").joinpath("published.json").read_text(encoding="utf-8")
    content = json.loads(text)
    part, base = content[name], content["alexnet_clean"]
    corruptions, errors = part["corruptions"], part["alexnet_error"]
    rows = {BASELINE: {CLEAN: base, **dict(zip(corruptions, errors, strict=True))}}
    for model, row in part["models"].items():
        clean = row["clean_error"]
        rises = [
            percent / 100 * (error - base) for percent, error in zip(row["relative_ce_percent"], errors, strict=True)
        ]
        rows[model] = {CLEAN: clean, **{c: clean + rise for c, rise in zip(corruptions, rises, strict=True)}}
    return AccuracyTable.of({m: {c: round(1 - e, 12) for c, e in row.items()} for m, row in rows.items()})
