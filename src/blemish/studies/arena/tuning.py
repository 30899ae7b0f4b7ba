"""Choosing a method's learning rate and batch size without labels, beside what an oracle would have chosen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from blemish.studies.arena.scores import Entrant, Scored

SIGNALS: Mapping[str, int] = {"entropy": -1, "consistency": 1, "density": 1, "concentration": 1}
"""What can be seen without labels, and whether more of it (1) or less (−1) is held to be better."""


@dataclass(frozen=True)
class Choice:
    """The settings of one method that were tried: the published ones, the best and the worst, and by each signal."""

    method: str
    published: Entrant | None
    oracle: Entrant
    worst: Entrant
    by: Mapping[str, Entrant]
    tried: tuple[Entrant, ...]


def choices(setting: Scored) -> list[Choice]:
    """Of each method of which several settings were tried, what each rule chooses. Ties go to the published ones."""
    groups: dict[str, list[Entrant]] = {}
    for entrant in setting.entrants.values():
        groups.setdefault(entrant.label.partition("@")[0], []).append(entrant)
    chosen = []
    for method, tried in groups.items():
        if len(tried) < 2:
            continue
        tried.sort(key=lambda entrant: (not entrant.published, entrant.label))
        by = {
            name: max(known, key=lambda entrant, n=name, s=sign: s * entrant.signals[n])  # type: ignore[misc]
            for name, sign in SIGNALS.items()
            if (known := [entrant for entrant in tried if math.isfinite(entrant.signals.get(name, math.nan))])
        }
        chosen.append(
            Choice(
                method,
                next((entrant for entrant in tried if entrant.published), None),
                min(tried, key=lambda entrant: entrant.error.value),
                max(tried, key=lambda entrant: entrant.error.value),
                by,
                tuple(tried),
            )
        )
    return chosen
