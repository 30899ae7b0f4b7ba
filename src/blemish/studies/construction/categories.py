"""Categories of corruptions that overlap alike (Syn2Nat paper, section 4)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.optional import optional_import
from blemish.core.reading import read_json
from blemish.core.rng import check_seed
from blemish.core.typed import read_typed
from blemish.studies.construction.matrices import OverlapMatrix
from blemish.studies.construction.tables import CLEAN, AccuracyTable, check_names

STOP_ABOVE = 0.5
"""The mean correlation of same-category pairs at which the paper stops adding categories."""


@dataclass(frozen=True)
class Categories:
    """Corruptions by category: a partition, with names of categories and members in a fixed order.

    >>> Categories({"blurs": ("defocus_blur",), "noises": ("shot_noise", "impulse_noise")}).of("shot_noise")
    'noises'
    """

    members: Mapping[str, tuple[str, ...]]

    def __post_init__(self) -> None:
        """Refuse empty categories and corruptions in two of them."""
        check_names(list(self.members), "category")
        for name, corruptions in self.members.items():
            if not corruptions:
                raise InputError(f"category {name} is empty; expected at least one corruption")
        check_names(list(self.corruptions), "corruption")
        object.__setattr__(self, "members", {name: tuple(names) for name, names in self.members.items()})

    @property
    def corruptions(self) -> tuple[str, ...]:
        """All corruptions, category after category."""
        return tuple(corruption for names in self.members.values() for corruption in names)

    def of(self, corruption: str) -> str:
        """The category of a corruption."""
        for name, corruptions in self.members.items():
            if corruption in corruptions:
                return name
        raise InputError(f"{corruption!r} is in no category; expected one of {', '.join(self.corruptions)}")

    def labels(self, corruptions: Sequence[str]) -> list[str]:
        """The categories of several corruptions."""
        return [self.of(corruption) for corruption in corruptions]


@dataclass(frozen=True)
class CategoryCheck:
    """Mean Pearson correlation of same- and of different-category pairs, and how many pairs there are of each.

    A mean is None where there is no such pair.
    """

    same: float | None
    different: float | None
    same_pairs: int
    different_pairs: int


def same_and_different(vectors: NDArray[np.float64], names: Sequence[str], categories: Categories) -> CategoryCheck:
    """Correlate the rows of ``vectors``, one for each name, and average over pairs by category."""
    constant = [name for name, row in zip(names, vectors, strict=True) if np.ptp(row) == 0]
    if constant:
        raise InputError(f"all values of {', '.join(constant)} are equal; expected some that differ, to correlate them")
    correlations = np.atleast_2d(np.corrcoef(vectors))
    labels = np.array(categories.labels(names))
    upper = np.triu(np.ones((len(names), len(names)), dtype=bool), k=1)
    equal = labels[:, None] == labels[None, :]
    same, different = correlations[upper & equal], correlations[upper & ~equal]
    return CategoryCheck(
        float(same.mean()) if same.size else None,
        float(different.mean()) if different.size else None,
        same.size,
        different.size,
    )


def find_categories(
    matrix: OverlapMatrix,
    *,
    count: int | None = None,
    stop_above: float = STOP_ABOVE,
    restarts: int = 100,
    seed: int = 0,
) -> tuple[Categories, list[tuple[int, CategoryCheck]]]:
    """K-means on the rows of the matrix with K = 2, 3, … until same-category pairs correlate above ``stop_above``.

    Returns the categories, numbered from 1 in the order of the matrix, and what was found for every K on the way. With
    ``count``, that many categories without asking.
    """
    if matrix.undefined:
        first, second = next(iter(matrix.undefined))
        raise InputError(
            f"{len(matrix.undefined)} scores are undefined, the first of {first} and {second}; expected a "
            "matrix without such, for example its part .defined()"
        )
    names = matrix.names
    if len(names) < 3:
        raise InputError(f"{len(names)} corruptions; expected at least three to categorise")
    if not -1 <= stop_above < 1:
        raise InputError(f"a correlation of {stop_above:g} to stop at; expected a number from −1 to below 1")
    if count is not None and not 1 <= count <= len(names):
        raise InputError(f"{count} categories of {len(names)} corruptions; expected 1 to {len(names)}")
    path: list[tuple[int, CategoryCheck]] = []
    for number in range(2, len(names)) if count is None else [count]:
        categories = _cluster(matrix, number, restarts, seed)
        path.append((number, same_and_different(matrix.scores, names, categories)))
        same = path[-1][1].same
        if count is not None or (same is not None and same > stop_above):
            return categories, path
    best = max((check.same for _, check in path if check.same is not None), default=float("nan"))
    raise InputError(
        f"no number of categories from 2 to {len(names) - 1} lifts the mean correlation of same-category pairs above "
        f"{stop_above:g}; the highest is {best:.3f}. Expected a lower value to stop at, or a number of categories"
    )


def _cluster(matrix: OverlapMatrix, number: int, restarts: int, seed: int) -> Categories:
    cluster = optional_import("sklearn.cluster")
    seed = check_seed(seed, least=0, most=2**32 - 1)  # all that it takes
    fitted = cluster.KMeans(n_clusters=number, n_init=restarts, max_iter=1000, random_state=seed).fit(matrix.scores)
    members: dict[int, list[str]] = {}  # in the order of their first corruptions
    for name, label in zip(matrix.names, fitted.labels_, strict=True):
        members.setdefault(label, []).append(name)
    return Categories({f"category {number}": tuple(names) for number, names in enumerate(members.values(), start=1)})


def check_categories(table: AccuracyTable, categories: Categories, *, clean: str = CLEAN) -> CategoryCheck:
    """The paper's empirical check: do models that resist one corruption resist others of its category?

    Each corruption has a vector, its residual robustness A_clean − A_c over all models; pairs of them are correlated.
    """
    if len(table.models) < 3:
        raise InputError(f"{len(table.models)} models; expected at least three to correlate over")
    names = list(categories.corruptions)
    residuals = table.columns([clean]) - table.columns(names)
    return same_and_different(residuals.T, names, categories)


def write_categories(categories: Categories, path: Path) -> None:
    """Write categories as JSON: a list of corruptions for every category."""
    content = {name: list(names) for name, names in categories.members.items()}
    write_bytes(path, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace"))


def read_categories(path: Path) -> Categories:
    """Categories from JSON: an object with a list of corruptions for every category."""
    content = read_json(path)
    try:
        return Categories(read_typed(dict[str, tuple[str, ...]], content))
    except InputError as error:
        example = '{"blurs": ["motion_blur", "zoom_blur"], "noises": [...]}'
        raise InputError(f"{path}: {error} (expected JSON such as {example})") from error
