"""Published accuracies of timm's pretrained models, on ImageNet and on natural shifts, and the input of each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import MappingProxyType

SETS = (
    "imagenet",
    "imagenet-real",
    "imagenet-v2",
    "imagenet-sketch",
    "imagenet-a",
    "imagenet-a-clean",
    "imagenet-r",
    "imagenet-r-clean",
)
"""What the accuracies are on. The clean sets are the classes of A and of R among ImageNet's validation images."""


@dataclass(frozen=True)
class TimmResult:
    """A row of timm's tables: a model, the side of its input, how much of a picture is cut out, and how it is resized.

    ``parameters`` are in millions, ``accuracies`` are top-1 rates by the name of the set (`SETS`), where there is one.
    """

    name: str
    size: int
    crop: float
    interpolation: str
    parameters: float
    accuracies: Mapping[str, float]


@cache
def timm_results() -> Mapping[str, tuple[TimmResult, ...]]:
    """The rows by the name of the model with the tag of its weights, such as ``resnet50.a1_in1k``.

    Some models are there several times, with inputs of different sizes.
    """
    path = resources.files("blemish.metrics") / "timm.json"
    results: dict[str, list[TimmResult]] = {}
    for name, size, crop, interpolation, parameters, *percent in json.loads(path.read_text(encoding="utf-8"))["rows"]:
        rates = {key: value / 100 for key, value in zip(SETS, percent, strict=True) if value is not None}
        row = TimmResult(name, size, crop, interpolation, parameters, MappingProxyType(rates))
        results.setdefault(name, []).append(row)
    return MappingProxyType({name: tuple(rows) for name, rows in results.items()})
