"""How stable is a choice of corruptions? The same choice from resampled test images, and from other training seeds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.studies.construction.coverage import COVERING_SCORE
from blemish.studies.construction.matrices import OverlapMatrix
from blemish.studies.construction.overlap import LEAST_GAIN, resampled_scores
from blemish.studies.construction.tables import CLEAN

Choose = Callable[[OverlapMatrix], Sequence[str]]


@dataclass(frozen=True)
class Stability:
    """The choices from several matrices beside a reference; a choice is empty where none could be made.

    ``replaced`` are for each choice the shares of the reference's members that are in it or covered by it, as the
    reference's matrix scores them: another member of the same family counts.
    """

    names: tuple[str, ...]
    reference: tuple[str, ...]
    choices: tuple[tuple[str, ...], ...]
    replaced: tuple[float, ...]

    @property
    def same(self) -> float:
        """How often exactly the reference came out."""
        return sum(set(choice) == set(self.reference) for choice in self.choices) / len(self.choices)

    @property
    def likeness(self) -> float:
        """Members in common with the reference over members of either (Jaccard), on average."""
        chosen = set(self.reference)
        return float(np.mean([len(chosen & set(choice)) / len(chosen | set(choice)) for choice in self.choices]))

    @property
    def sizes(self) -> dict[int, int]:
        """How often a choice had so many members."""
        return dict(sorted(Counter(map(len, self.choices)).items()))

    def shares(self) -> dict[str, float]:
        """How often each corruption was chosen."""
        counts = Counter(name for choice in self.choices for name in choice)
        return {name: counts[name] / len(self.choices) for name in self.names}


def choice_stability(
    reference: OverlapMatrix,
    others: Iterable[OverlapMatrix],
    choose: Choose,
    *,
    covering: float = COVERING_SCORE,
) -> Stability:
    """What is chosen from a matrix, and from others of the same corruptions.

    ``choose`` takes a matrix and names the chosen corruptions; an `InputError` of it is an empty choice, but for the
    reference.
    """
    chosen = tuple(choose(reference))
    choices = []
    for matrix in others:
        if set(matrix.names) != set(reference.names):
            raise InputError("matrices of different corruptions; expected the same in all of them")
        try:
            choices.append(tuple(choose(matrix)))
        except InputError:
            choices.append(())
    if not choices:
        raise InputError("no matrices to compare with; expected at least one")
    replaced = tuple(_replaced(reference, chosen, choice, covering) for choice in choices)
    return Stability(reference.names, chosen, tuple(choices), replaced)


def _replaced(matrix: OverlapMatrix, chosen: Sequence[str], choice: Sequence[str], covering: float) -> float:
    rows, columns = ([matrix.index(name) for name in names] for names in (chosen, choice))
    covered = matrix.scores[np.ix_(rows, columns)] > covering  # a member covers itself
    return float(covered.any(axis=1).mean()) if columns else 0.0


def resampled_matrices(
    correct: NDArray[np.bool_],
    models: Sequence[str],
    settings: Sequence[str],
    *,
    resamples: int = 100,
    seed: int = 0,
    clean: str = CLEAN,
    least_gain: float = LEAST_GAIN,
) -> Iterator[OverlapMatrix]:
    """Matrices from resampled test images, the same for all models and settings; see `overlap_intervals`."""
    scores, matrix = resampled_scores(
        correct, models, settings, resamples=resamples, seed=seed, clean=clean, least_gain=least_gain
    )
    names = matrix.names
    for table in scores:
        missing = np.argwhere(np.isnan(np.triu(table)))
        yield OverlapMatrix(names, table, {(names[i], names[j]): "undefined in this resample" for i, j in missing})
