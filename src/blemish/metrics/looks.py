"""Intervals that stay valid however often one looks at a run that takes more and more images.

Stopping at the first look at which an interval is narrow favours samples that happen to vary little. With level
1 − α/(k(k + 1)) at look k, the chance that *any* of the intervals of all looks misses is at most Σ α/(k(k + 1)) = α,
whatever rule decides when to stop.
"""

from __future__ import annotations

import math

from blemish.core.errors import InputError
from blemish.core.statistics import check_level
from blemish.evaluation.runs import Run

_IN_TAILS = 20


def look_levels(alpha: float, look: int) -> float:
    """The part of α that is spent at a look, counted from 1: α / (k(k + 1)). Over all looks it adds up to α.

    >>> look_levels(0.05, 1), round(look_levels(0.05, 2), 6)
    (0.025, 0.008333)
    """
    if not 0 < alpha < 1:
        raise InputError(f"alpha {alpha:g}; expected a number between 0 and 1, such as 0.05")
    if look < 1:
        raise InputError(f"look {look}; expected 1 or more")
    return alpha / (look * (look + 1))


def enough_replicates(alpha: float, replicates: int = 1000) -> int:
    """As many replicates as leave twenty outside an interval of level 1 − α, and no fewer than asked for.

    >>> enough_replicates(0.05), enough_replicates(0.0025)
    (1000, 8000)
    """
    return max(replicates, math.ceil(_IN_TAILS / alpha - 1e-9))


def level_and_replicates(level: float, replicates: int, *runs: Run) -> tuple[float, int]:
    """The level of intervals, and as many replicates as it needs: those asked for, unless a run grew until it sufficed.

    Then the level is the last look's, which is higher: at it, the intervals of all looks together hold at the level
    asked for.
    """
    check_level(level)
    looks = [run.stages for run in runs if run.info.until]
    if not looks:
        return level, replicates
    share = look_levels(1 - level, max(looks))
    return 1 - share, enough_replicates(share, replicates)
