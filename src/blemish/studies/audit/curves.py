"""Do errors rise with severity, and were severities made for images of this size?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from blemish.benchmarks.condition import Condition
from blemish.corruptions.severity import PRESETS, nearest_preset
from blemish.studies.audit.findings import Check, Finding
from blemish.studies.audit.significance import ALPHA, holm, paired

Outcomes = Mapping[Condition, NDArray[np.bool_]]
"""Which images are right, by condition; the images are the same for all."""

_FIFTEEN = (
    *("gaussian_noise", "shot_noise", "impulse_noise", "defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    *("snow", "frost", "fog", "brightness", "contrast", "elastic_transform", "pixelate", "jpeg_compression"),
)
_EXTRA = ("speckle_noise", "gaussian_blur", "spatter", "saturate")
# Corruptions whose errors rise step by step in published tables, by preset, and the steps that are exceptions, named by
# the severity before. ImageNet-C on disk, 200 models of the testbed: better by half a point or more are 198 after
# elastic_transform@2, 199 after saturate@2, 169 after snow@2, 10 after snow@4, and at most one after any other.
# CIFAR-10-C, 23 models of RobustBench: 7, 14 and 19 after glass_blur@1, 2 and 4, and at most two after any other.
_STEPS: Mapping[str, tuple[tuple[str, ...], frozenset[tuple[str, float]]]] = {
    "imagenet": (
        (*_FIFTEEN, *_EXTRA),
        frozenset([("elastic_transform", 2.0), ("saturate", 2.0), ("snow", 2.0), ("snow", 4.0)]),
    ),
    "cifar": (
        _FIFTEEN,
        frozenset(
            [
                *(("glass_blur", 1.0), ("glass_blur", 2.0), ("glass_blur", 4.0), ("elastic_transform", 1.0)),
                *(("snow", 2.0), ("snow", 4.0), ("frost", 3.0)),
            ]
        ),
    ),
}
# How far from the size that a table is for images may be: ImageNet-C's own presets are 32, 64, 224 and 299.
_FITS = 1.5


def by_severity(conditions: Iterable[Condition]) -> dict[str, list[Condition]]:
    """Conditions of one corruption at several fixed severities, weakest first."""
    groups: dict[str, list[Condition]] = defaultdict(list)
    for condition in conditions:
        if condition.steps and condition.other is None and condition.severity is not None:
            groups[condition.group].append(condition)
    return {
        name: sorted(group, key=lambda condition: condition.severity or 0.0)
        for name, group in groups.items()
        if len(group) > 1
    }


def ends(conditions: Iterable[Condition]) -> list[Condition]:
    """Of each corruption with several severities, the weakest and the strongest."""
    return [condition for group in by_severity(conditions).values() for condition in (group[0], group[-1])]


def check_curves(outcomes: Outcomes, *, preset: str | None) -> Check:
    """Do errors rise: from the weakest to the strongest severity, and step by step where published ones do?"""
    groups = by_severity(outcomes)
    if not groups:
        return Check("severity-curves", skipped="no corruption at several severities")
    pairs = [(group[0], group[-1]) for group in groups.values()]
    steady, exceptions = _STEPS.get(preset or "", ((), frozenset()))
    for name in (name for name in groups if name in steady):
        steps = zip(groups[name][:-1], groups[name][1:], strict=True)
        pairs += [pair for pair in steps if pair not in pairs and (name, pair[0].severity) not in exceptions]
    fallen = holm([paired(outcomes[strong], outcomes[weak]) for weak, strong in pairs])
    images = len(next(iter(outcomes.values())))
    said = f"{len(groups)} corruptions on {images:,} images"
    falling = [pair for pair, falls in zip(pairs, fallen, strict=True) if falls]
    return Check("severity-curves", said, tuple(_fall(outcomes, *pair) for pair in falling))


def _fall(outcomes: Outcomes, weak: Condition, strong: Condition) -> Finding:
    before, after = (1 - float(outcomes[condition].mean()) for condition in (weak, strong))
    p = paired(outcomes[strong], outcomes[weak])
    return Finding(
        "severity-curves",
        f"{weak.group}: errors fall where severity rises",
        f"error {before:.1%} at {weak}, {after:.1%} at {strong} (p = {p:.1g} on the same "
        f"{len(outcomes[weak]):,} images)",
        "look whether severities were exchanged, in a stored set or in a corruption of your own; a curve that falls "
        "has no severity",
        "very likely" if p < ALPHA**2 else "likely",
        numbers={"weak": before, "strong": after, "p": p},
    )


def check_table(shapes: Sequence[tuple[int, int]], preset: str | None, conditions: Iterable[Condition]) -> Check:
    """Is the severity table made for images of this size?"""
    if not any(condition.steps for condition in conditions):
        return Check("severity-table", skipped="nothing is corrupted")
    if not shapes:
        return Check("severity-table", skipped="the size of the images is not known")
    side = int(np.median([min(shape) for shape in shapes]))
    if preset is not None and preset not in PRESETS:
        return Check("severity-table", skipped=f"the settings of {preset} are for images of any size")
    fitting = nearest_preset(side, side)
    used = preset or fitting
    made_for = PRESETS[used]
    said = f"{used}, made for {made_for} pixels; images of {side}"
    numbers = {"side": float(side), "made_for": float(made_for)}
    if 1 / _FITS <= side / made_for <= _FITS:
        return Check("severity-table", said)
    if used != fitting:
        finding = Finding(
            "severity-table",
            "the severity table is for images of another size",
            f"preset {used} is made for images of {made_for} pixels, and these have {side}: the same severity is "
            "another one",
            f"--preset {fitting}, or bring the images to {made_for} pixels (--resize, --crop)",
            numbers=numbers,
        )
    else:
        finding = Finding(
            "severity-table",
            "no severity table was published for images of this size",
            f"images of {side} pixels get the severities of {used}, made for {made_for}",
            "compare such numbers only with those of images of the same size",
            level="note",
            numbers=numbers,
        )
    return Check("severity-table", said, (finding,))
