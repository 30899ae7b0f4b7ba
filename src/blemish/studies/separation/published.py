"""The accuracy matrices that the MSCR paper published: Tables 2 and 3, every ε_test and every ε_train."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources

from blemish.core.errors import InputError
from blemish.core.typed import read_typed

PUBLISHED = ("2d", "cifar10")
"""The published matrices there are."""

Rows = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class PublishedMatrix:
    """Means and half widths of 95 % intervals in percent, as printed; ``accuracy[ε_test][ε_train]``, both as in eps."""

    title: str
    model: str
    runs: int
    k: int
    norm: str
    separation: float
    epsilon_min: float
    eps: tuple[float, ...]
    accuracy: Rows
    half_width: Rows
    mscr: tuple[float, ...]
    mscr_half_width: tuple[float, ...]
    remarks: tuple[str, ...]

    def row(self, eps_test: float) -> int:
        """The number of the row of a test radius."""
        if eps_test not in self.eps:
            raise InputError(
                f"ε_test = {eps_test:g} was not published; expected one of {', '.join(map(str, self.eps))}"
            )
        return self.eps.index(eps_test)


def published_matrix(name: str) -> PublishedMatrix:
    """Table 2 (``2d``: random forest) or Table 3 (``cifar10``: WRN-28-10) of Siedel et al. 2022.

    >>> table = published_matrix("2d")
    >>> table.accuracy[table.row(0.015)][0], table.mscr[0]
    (97.871, -0.126)
    """
    if name not in PUBLISHED:
        raise InputError(f"no published matrix {name!r}; expected {' or '.join(PUBLISHED)}")
    text = resources.files("blemish.studies.separation").joinpath("published.json").read_text(encoding="utf-8")
    part = json.loads(text)[name]
    return read_typed(PublishedMatrix, part)
