"""Non-overlapping benchmarks (NOC paper, Algorithm 1): the largest subsets under a threshold, then the lowest mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from blemish.core.errors import InputError
from blemish.studies.construction.cliques import DEFAULT_STEPS, largest_cliques
from blemish.studies.construction.graphs import Graph
from blemish.studies.construction.matrices import OverlapMatrix
from blemish.studies.construction.min_weight_clique import min_weight_clique

APPENDIX_B = (0.0, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5)
"""The thresholds of the paper's Appendix B."""

DEFAULT_LIMIT = 10_000
"""How many of the largest subsets are listed at most."""

_TIE = 1e-12
_STARTS = 20  # listed subsets from which a search for a lighter one sets out
_COMPARED = 100_000  # subsets that are compared one by one, whether listed or not


@dataclass(frozen=True)
class Selection:
    """The benchmark that Algorithm 1 selects, and how it came about.

    ``optima`` are the largest subsets: all ``count`` of them, or some where there are more than were to be listed
    (``count`` is None where their number is not known). ``ties`` counts those that share the lowest mean, None where
    not all were compared one by one. ``proven`` is false only where the search for the lowest mean was stopped early;
    no subset of this size can then have a mean below ``mean_bound``. ``undefined`` are pairs without a score, which
    never stand together.
    """

    threshold: float
    members: tuple[str, ...]
    mean: float
    optima: tuple[tuple[str, ...], ...]
    count: int | None
    ties: int | None
    proven: bool
    mean_bound: float
    undefined: tuple[tuple[str, str], ...]

    @property
    def size(self) -> int:
        """How many corruptions it holds."""
        return len(self.members)

    def explain(self) -> str:
        """What was found, in words."""
        number = f"more than {len(self.optima):,}" if self.count is None else f"{self.count:,}"
        if self.count == 1:
            text = f"one largest subset under {self.threshold:g}: {self.size} corruptions"
        else:
            text = f"{number} largest subsets under {self.threshold:g}, of {self.size} corruptions each"
        text += f"; lowest mean overlap {self.mean:.4f}"
        if self.ties is not None and self.ties > 1:
            text += f", shared by {self.ties:,} (the first in the order of the matrix is taken)"
        if not self.proven:
            text += f"; a lower one is not ruled out (none below {self.mean_bound:.4f} exists): allow more steps"
        if self.undefined:
            text += f"; {len(self.undefined)} pairs without a defined score were kept apart"
        return text


def select_non_overlapping(
    matrix: OverlapMatrix, *, threshold: float, limit: int = DEFAULT_LIMIT, steps: int = DEFAULT_STEPS
) -> Selection:
    """The largest subset whose scores are all at most ``threshold``; among several, the one with the lowest mean.

    Exact: the largest subsets are the maximum cliques of the graph "score ≤ threshold". At most ``limit`` of them are
    listed, whatever their number; where there are too many to compare one by one, the lowest mean is found by branch
    and bound. ``steps`` bounds each of the searches.
    """
    check_threshold(threshold)
    if limit < 1 or steps < 1:
        raise InputError(f"a limit of {limit} and {steps} steps; expected at least 1 of each")
    scores = matrix.scores
    below = scores <= threshold  # false where undefined
    np.fill_diagonal(below, False)
    if not below.any():
        raise InputError(_infeasible(matrix, threshold))
    graph = Graph([sum(1 << int(u) for u in np.flatnonzero(row)) for row in below])
    largest = largest_cliques(graph, limit=max(limit, _COMPARED), steps=steps)
    pairs = largest.size * (largest.size - 1) / 2
    starts, least, ties = _min_weight_listed(largest.cliques, scores)
    best = starts[0]
    proven, bound = True, least
    if largest.count is None or largest.count > len(largest.cliques):
        # A step of this search costs more the larger the subsets are.
        result = min_weight_clique(graph, scores, starts, steps=max(1, steps // (1 + largest.size // 10)))
        best, least, ties = tuple(result.clique), result.weight, None
        proven, bound = result.proven, result.bound
    return Selection(
        threshold=threshold,
        members=tuple(matrix.names[v] for v in best),
        mean=least / pairs,
        optima=tuple(tuple(matrix.names[v] for v in clique) for clique in largest.cliques[:limit]),
        count=largest.count,
        ties=ties,
        proven=proven,
        mean_bound=bound / pairs,
        undefined=tuple(key for key in matrix.undefined if key[0] != key[1]),
    )


def check_threshold(threshold: float) -> None:
    """Refuse what is no overlapping score to compare with."""
    if not 0 <= threshold <= 1:
        raise InputError(f"an overlapping threshold of {threshold:g}; expected a number from 0 to 1")


def _min_weight_listed(
    cliques: Sequence[tuple[int, ...]], scores: np.ndarray
) -> tuple[list[tuple[int, ...]], float, int | None]:
    """The listed clique with the least weight first and some others after it, that weight, and how many have it."""
    members = np.array(cliques)
    weights = np.where(np.isnan(scores), 0, scores)  # undefined pairs are in no clique
    np.fill_diagonal(weights, 0)
    sums = np.empty(len(cliques))
    for start in range(0, len(cliques), 10_000):
        part = members[start : start + 10_000]
        inside = np.zeros((len(part), len(scores)))
        np.put_along_axis(inside, part, 1, axis=1)
        sums[start : start + 10_000] = (inside @ weights * inside).sum(axis=1) / 2
    least = float(sums.min())
    tied = sums <= least + _TIE
    order = np.argsort(np.where(tied, least, sums), kind="stable")
    return [tuple(int(v) for v in members[i]) for i in order[:_STARTS]], least, int(tied.sum())


def _infeasible(matrix: OverlapMatrix, threshold: float) -> str:
    outside = matrix.scores[~np.eye(len(matrix.names), dtype=bool)]
    known = outside[~np.isnan(outside)]
    if not known.size:
        return f"no pair of the {len(matrix.names)} corruptions has a defined score; expected at least one"
    least = float(known.min())
    first, second = next((a, b) for a, b in matrix.pairs() if matrix.scores[matrix.index(a), matrix.index(b)] == least)
    return (
        f"no two corruptions have a score of at most {threshold:g}; the least is {least:.4g}, of {first} and {second}. "
        "Expected a threshold of at least that"
    )


@dataclass(frozen=True)
class Swept:
    """One threshold of a sweep: its selection, or the reason why there is none."""

    threshold: float
    selection: Selection | None
    reason: str


def sweep_thresholds(
    matrix: OverlapMatrix,
    *,
    thresholds: Sequence[float] = APPENDIX_B,
    limit: int = DEFAULT_LIMIT,
    steps: int = DEFAULT_STEPS,
) -> list[Swept]:
    """Algorithm 1 at several thresholds, as in the paper's Appendix B."""
    if not thresholds:
        raise InputError("no thresholds; expected numbers from 0 to 1")
    for threshold in thresholds:
        check_threshold(threshold)
    swept = []
    for threshold in sorted(set(thresholds)):
        try:
            selection = select_non_overlapping(matrix, threshold=threshold, limit=limit, steps=steps)
        except InputError as error:
            swept.append(Swept(threshold, None, str(error)))
        else:
            swept.append(Swept(threshold, selection, ""))
    return swept
