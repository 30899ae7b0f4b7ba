"""Comparing overlap matrices of two architectures or two ways of training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from blemish.core.errors import InputError
from blemish.core.statistics import ranks
from blemish.studies.construction.matrices import OverlapMatrix
from blemish.studies.construction.selection import Selection, select_non_overlapping


@dataclass(frozen=True)
class Disagreement:
    """A pair of corruptions that two matrices score differently."""

    pair: tuple[str, str]
    first: float
    second: float

    @property
    def difference(self) -> float:
        """The second score less the first."""
        return self.second - self.first


@dataclass(frozen=True)
class Agreement:
    """How far two matrices agree on the pairs that both define.

    ``selections`` holds the non-overlapping benchmark of each, and is empty where no threshold was given.
    """

    names: tuple[str, ...]
    pairs: int
    pearson: float
    spearman: float
    mean_difference: float
    largest: tuple[Disagreement, ...]
    selections: tuple[Selection, ...]

    @property
    def same_benchmark(self) -> bool | None:
        """Whether the same benchmark is selected from both; None where none was asked for."""
        if not self.selections:
            return None
        first, second = self.selections
        return set(first.members) == set(second.members)


def compare_matrices(
    first: OverlapMatrix, second: OverlapMatrix, *, threshold: float | None = None, largest: int = 10
) -> Agreement:
    """Correlation of two matrices over the pairs of their common corruptions, and where they differ most.

    With a ``threshold``, also the non-overlapping benchmark that each gives for the common corruptions.
    """
    names = [name for name in first.names if name in second.names]
    if len(names) < 3:
        raise InputError(f"the matrices share {len(names)} corruptions; expected at least three")
    one, other = first.only(names), second.only(names)
    upper = np.triu_indices(len(names), 1)
    scores = np.column_stack([one.scores[upper], other.scores[upper]])
    defined = np.flatnonzero(~np.isnan(scores).any(axis=1))
    values = scores[defined]
    if len(values) < 3:
        raise InputError(f"the matrices share {len(values)} defined scores; expected at least three")
    pairs = one.pairs()
    differences = [Disagreement(pairs[k], *scores[k].tolist()) for k in defined]
    selections = (
        () if threshold is None else tuple(select_non_overlapping(m, threshold=threshold) for m in (one, other))
    )
    return Agreement(
        names=tuple(names),
        pairs=len(values),
        pearson=_correlation(values),
        spearman=_correlation(np.column_stack([ranks(column) for column in values.T])),
        mean_difference=float((values[:, 1] - values[:, 0]).mean()),
        largest=tuple(sorted(differences, key=lambda item: (-abs(item.difference), item.pair))[:largest]),
        selections=selections,
    )


def _correlation(values: np.ndarray) -> float:
    if (values.std(axis=0) == 0).any():
        raise InputError("all scores of one matrix are equal; expected scores that differ, to correlate them")
    return float(np.corrcoef(values.T)[0, 1])
