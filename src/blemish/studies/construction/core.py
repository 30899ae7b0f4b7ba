"""A core: the smallest set without overlaps that covers as many of all corruptions as any such set can.

Algorithm 1 of the NOC paper takes the largest sets without overlaps. A core asks for coverage first: of all sets whose
scores are at most a threshold, those that cover the most; of these the smallest; of these the most balanced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.studies.construction.cliques import DEFAULT_STEPS
from blemish.studies.construction.coverage import COVERING_SCORE, coverage_by_overlap
from blemish.studies.construction.graphs import Graph, members
from blemish.studies.construction.matrices import OverlapMatrix
from blemish.studies.construction.most_covering import all_covering, most_covering
from blemish.studies.construction.selection import DEFAULT_LIMIT, check_threshold

_DIGITS = 12


@dataclass(frozen=True)
class Core:
    """The set that was chosen, what it covers, and how sure that is.

    ``covered`` names for every covered corruption outside the set the member that overlaps it most; ``uncovered`` is
    the rest. No set without overlaps covers more than ``most`` corruptions, members included. If ``proven``, this one
    covers as many, and no smaller set does. ``count`` is how many sets are as good, None where not all were listed, so
    that a more balanced one may exist. ``balance`` is what the tie was broken by, ``mean`` the mean score.
    """

    threshold: float
    covering: float
    members: tuple[str, ...]
    covered: Mapping[str, str]
    uncovered: tuple[str, ...]
    most: int
    proven: bool
    count: int | None
    balance: float | None
    mean: float

    @property
    def coverage(self) -> int:
        """How many corruptions are members or covered by one."""
        return len(self.members) + len(self.covered)

    def explain(self) -> str:
        """What was found, in words."""
        total = self.coverage + len(self.uncovered)
        text = f"{len(self.members)} corruptions, no two of which overlap by more than {self.threshold:g}, "
        text += f"cover {self.coverage} of {total}"
        if self.proven:
            text += ": no such set covers more, and no smaller one as many"
        elif self.most == self.coverage:
            text += ": no such set covers more; a smaller one is not ruled out: allow more steps"
        else:
            text += f"; more is not ruled out (none covers more than {self.most}): allow more steps"
        if self.count is None:
            text += "; not all sets that are as good were compared"
        elif self.count > 1:
            by = "the lowest mean score" if self.balance is None else f"the best balance ({self.balance:.4g})"
            text += f"; of {self.count:,} that are as good, this one has {by}"
        return text


def select_core(
    matrix: OverlapMatrix,
    *,
    threshold: float = 0.1,
    covering: float = COVERING_SCORE,
    balance: Callable[[Sequence[str]], float] | None = None,
    limit: int = DEFAULT_LIMIT,
    steps: int = DEFAULT_STEPS,
) -> Core:
    """The smallest set with all scores at most ``threshold`` that covers as many corruptions as any such set can.

    A member covers itself and what it overlaps by more than ``covering``. Branch and bound: a corruption is covered by
    one of few, or by none. Of the best sets, at most ``limit`` are compared: the least ``balance`` wins, a function of
    a set's names, then the lowest mean score, then the order of the matrix. ``steps`` bounds the search and the
    listing, each.
    """
    check_threshold(threshold)
    if not 0 <= covering < 1:
        raise InputError(f"a covering score of {covering:g}; expected a number from 0 to below 1")
    if limit < 1 or steps < 1:
        raise InputError(f"a limit of {limit} and {steps} steps; expected at least 1 of each")
    scores = matrix.scores
    usable = ~np.isnan(np.diagonal(scores))
    if not usable.any():
        raise InputError("no corruption has a defined score; expected at least one")
    below, above = scores <= threshold, scores > covering  # false where undefined
    np.fill_diagonal(below, False)
    graph, covers, candidates = Graph(_rows(below)), _rows(above), _rows(usable[None])[0]
    best = most_covering(graph, covers, candidates, steps=steps)
    listed, complete = [best.chosen], False
    if best.proven:
        listed, complete = all_covering(graph, covers, candidates, best, limit=limit, steps=steps)
    value, mean, names = min(_ranked(matrix, list(members(chosen)), balance) for chosen in listed)
    covered, uncovered = _covered(matrix, names, covering)
    return Core(
        threshold=threshold,
        covering=covering,
        members=names,
        covered=covered,
        uncovered=uncovered,
        most=best.most,
        proven=best.proven,
        count=len(listed) if complete else None,
        balance=None if balance is None else value,
        mean=mean,
    )


def _rows(table: NDArray[np.bool_]) -> list[int]:
    return [sum(1 << int(u) for u in np.flatnonzero(row)) for row in table]


def _ranked(
    matrix: OverlapMatrix, chosen: list[int], balance: Callable[[Sequence[str]], float] | None
) -> tuple[float, float, tuple[str, ...]]:
    """Balance, mean score and names of a set; rounded, so that sums in another order are a tie."""
    names = tuple(matrix.names[v] for v in chosen)
    inside = matrix.scores[np.ix_(chosen, chosen)][np.triu_indices(len(chosen), 1)]
    value = 0.0 if balance is None else balance(names)
    return round(value, _DIGITS), round(float(inside.mean()) if len(inside) else 0.0, _DIGITS), names


def _covered(matrix: OverlapMatrix, names: Sequence[str], covering: float) -> tuple[dict[str, str], tuple[str, ...]]:
    if len(names) == len(matrix.names):
        return {}, ()
    coverage = coverage_by_overlap(matrix, names, threshold=covering)
    covered = {item.corruption: item.by for item in coverage if item.covered and item.by is not None}
    return covered, tuple(item.corruption for item in coverage if item.corruption not in covered)


def mutual_coverage(
    matrix: OverlapMatrix, benchmarks: Mapping[str, Sequence[str]], *, covering: float = COVERING_SCORE
) -> dict[tuple[str, str], tuple[int, int]]:
    """For each two benchmarks, how many corruptions of the second are in the first or covered by it, and of how many.

    Only corruptions of the matrix count.
    """
    known = {title: [name for name in names if name in matrix.names] for title, names in benchmarks.items()}
    if empty := [title for title, names in known.items() if not names]:
        raise InputError(f"no corruption of {empty[0]} is in the matrix; expected at least one")
    result = {}
    for first, names in known.items():
        inside = {*names, *_covered(matrix, names, covering)[0]}
        for second, others in known.items():
            result[first, second] = (sum(name in inside for name in others), len(others))
    return result
