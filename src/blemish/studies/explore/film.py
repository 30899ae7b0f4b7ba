"""A walk from corruption to corruption, as a film of one picture.

A walk of `blemish ccc walk` is shown as it is. Without one there is a walk of the same form that holds the sum of both
severities in place of a model's accuracy, which nothing here was calibrated for.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from blemish.core.errors import InputError
from blemish.corruptions.catalog import Catalog, catalog
from blemish.studies.streams.info import WalkInfo
from blemish.studies.streams.walks import Walk, WalkStep, read_walk

STEP = 0.25
"""How much a severity changes from frame to frame, as on the grid of CCC."""

MOST_FRAMES = 2000

_SUM, _STAYS, _SEED = 3.0, 6, 43


def film_walk(path: Path | None, catalog: Catalog = catalog) -> tuple[Walk | None, str]:
    """The walk of a file, or one through ImageNet-C's corruptions that can be made here; and what it is."""
    if path is not None:
        walk = read_walk(path, catalog=catalog)
        for name in walk.corruptions:
            catalog[name].check_files()
        if len(walk.steps) > MOST_FRAMES:
            note = f"The first {MOST_FRAMES} of the {len(walk.steps)} steps of {path.name}, a frame for each."
            return Walk(walk.steps[:MOST_FRAMES], walk.protocol), note
        return walk, f"The steps of {path.name}, a frame for each."
    names = [name for name in catalog.plain() if _can_be_made(name, catalog) and catalog[name].only_severity is None]
    if len(names) < 2:
        return None, ""
    note = (
        f"While one corruption fades, the next one grows; the two severities add up to {_SUM:g}. CCC's own walks "
        "hold a model's accuracy instead: blemish ccc walk makes one, and --walk shows it."
    )
    return _even_walk(names), note


def _can_be_made(name: str, catalog: Catalog) -> bool:
    try:
        catalog[name].check_files()
    except InputError:
        return False
    return True


def _even_walk(names: Sequence[str]) -> Walk:
    """Some corruptions one after the other; while one fades, the next one grows by as much."""
    order = random.Random(_SEED).sample(list(names), min(_STAYS, len(names)))
    pairs = list(zip(order, [*order[1:], order[0]], strict=True)) if len(order) > 2 else [(order[0], order[1])]
    steps = []
    count = round(_SUM / STEP)
    for segment, (first, second) in enumerate(pairs):
        for step in range(count):
            level = step * STEP
            steps.append(WalkStep(first, _SUM - level, second, level, 1, float("nan"), segment))
    return Walk(tuple(steps), WalkInfo(corruptions=tuple(order), seed=_SEED), closed=len(order) > 2)


def frames_of(walk: Walk) -> list[dict[str, Any]]:
    """The frames of a film: what is done to the picture, as the text of a condition, and both corruptions in words."""
    return [
        {
            "c": str(step),
            "parts": [[step.first, step.first_severity], [step.second, step.second_severity]],
            "accuracy": step.accuracy if step.accuracy == step.accuracy else None,
        }
        for step in walk.steps
    ]
