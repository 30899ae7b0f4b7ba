"""Scores of the arena for other programs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from blemish.core.statistics import Estimate
from blemish.metrics.rank_groups import Place
from blemish.studies.arena.scores import Entrant, Scored
from blemish.studies.arena.tuning import choices


def scores_json(settings: Sequence[Scored]) -> dict[str, Any]:
    """All of it, intervals that do not exist as nothing."""
    return {setting.name: _setting_json(setting) for setting in settings}


def _setting_json(setting: Scored) -> dict[str, Any]:
    return {
        "title": setting.title,
        "source": setting.source,
        "images": setting.images,
        "streams": setting.streams,
        "batch": setting.batch,
        "device": setting.device,
        "window": setting.window,
        "unfinished": dict(setting.unfinished),
        "methods": {label: _entrant_json(entrant) for label, entrant in setting.entrants.items()},
        "running": {"at": list(setting.at), **{label: list(curve) for label, curve in setting.curves.items()}},
        "choices": {
            choice.method: {
                "oracle": choice.oracle.label,
                "worst": choice.worst.label,
                "by": {name: entrant.label for name, entrant in choice.by.items()},
            }
            for choice in choices(setting)
        },
    }


def _entrant_json(entrant: Entrant) -> dict[str, Any]:
    place = entrant.place
    return {
        **{name: _plain(getattr(entrant, name)) for name in ("error", "gain", "clean", "forgetting")},
        "by_run": list(entrant.by_run),
        "by_condition": dict(entrant.by_condition),
        "behind": [fall._asdict() for fall in entrant.behind],
        "rank": None if place is None else _place(place),
        "signals": {name: value if math.isfinite(value) else None for name, value in entrant.signals.items()},
        **{name: getattr(entrant, name) for name in ("adapted", "passes", "seconds", "memory", "invalid", "published")},
    }


def _place(place: Place) -> Mapping[str, Any]:
    return {"low": place.low, "high": place.high, "groups": place.letters}


def _plain(estimate: Estimate | None) -> dict[str, float | None] | None:
    if estimate is None:
        return None
    return {name: value if math.isfinite(value) else None for name, value in asdict(estimate).items()}
