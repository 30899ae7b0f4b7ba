"""The orders in which a stream shows labelled images: pure functions of their labels and a seed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError

Rows = NDArray[np.int64]

_PURPOSE = 9_271
_TRIES = 1_000
_LEAST = 10
_SLOTS = 100


def generator(seed: int, number: int) -> np.random.Generator:
    """The random numbers of one place of a stream."""
    return np.random.default_rng([seed, _PURPOSE, number])


def shuffled(count: int, rng: np.random.Generator) -> Rows:
    """All images once, in any order."""
    return rng.permutation(count).astype(np.int64)


def sorted_by_label(labels: Rows, rng: np.random.Generator) -> Rows:
    """Class by class, in the order of their numbers; at random within a class."""
    rows = shuffled(len(labels), rng)
    return rows[np.argsort(labels[rows], kind="stable")]


def _by_class(labels: Rows, rng: np.random.Generator) -> dict[int, Rows]:
    """The images of each class that there is, at random."""
    return {int(label): rng.permutation(np.flatnonzero(labels == label)) for label in np.unique(labels)}


def dirichlet_chunks(labels: Rows, concentration: float, rng: np.random.Generator) -> Rows:
    """The procedure of NOTE (Gong et al., NeurIPS 2022) and of Döbler et al.'s repository.

    There are as many chunks as classes, C. Every class is spread over them in proportions drawn from Dirichlet's law
    with ``concentration`` for each chunk; chunks that hold N / C images or more already get none. This is repeated
    until every chunk has at least ten images (or a tenth of N / C, if that is less: small sets would never end).
    Chunks come one after the other, and in a chunk its classes in a random order, each in one piece.
    """
    total, classes = len(labels), np.unique(labels)
    count = len(classes)
    least = min(_LEAST, total // (10 * count))
    for _ in range(_TRIES):
        chunks: list[list[Rows]] = [[] for _ in range(count)]
        sizes = np.zeros(count, dtype=np.int64)
        for rows in _by_class(labels, rng).values():
            shares = rng.dirichlet(np.full(count, concentration))
            shares = np.where(sizes < total / count, shares, 0.0)
            whole = shares.sum()
            # Where every open chunk drew nothing, as happens with a small concentration, the emptiest one gets all.
            shares = shares / whole if whole > 0 else np.eye(count)[sizes.argmin()]
            cuts = (np.cumsum(shares)[:-1] * len(rows)).astype(np.int64)
            for chunk, part in enumerate(np.split(rows, cuts)):
                if len(part):
                    chunks[chunk].append(part)
                    sizes[chunk] += len(part)
        if sizes.min() >= least:
            return _one_after_the_other(chunks, rng)
    raise InputError(
        f"concentration {concentration:g} over {total:,} images of {count} classes: chunks with {least} images each "
        f"were not found in {_TRIES:,} tries; expected more images, or a larger concentration"
    )


def dirichlet_slots(labels: Rows, concentration: float, rng: np.random.Generator) -> Rows:
    """The procedure of RoTTA (Yuan et al., CVPR 2023): no balancing, no least size.

    There are as many slots as classes, at most 100. Every class is spread over them in proportions drawn from
    Dirichlet's law. Slots come one after the other, and in a slot its classes in a random order, each in one piece.
    """
    count = min(len(np.unique(labels)), _SLOTS)
    slots: list[list[Rows]] = [[] for _ in range(count)]
    for rows in _by_class(labels, rng).values():
        shares = rng.dirichlet(np.full(count, concentration))
        cuts = (np.cumsum(shares)[:-1] * len(rows)).astype(np.int64)
        for slot, part in enumerate(np.split(rows, cuts)):
            if len(part):
                slots[slot].append(part)
    return _one_after_the_other(slots, rng)


def _one_after_the_other(groups: list[list[Rows]], rng: np.random.Generator) -> Rows:
    parts = [group[index] for group in groups for index in rng.permutation(len(group))]
    return np.concatenate(parts).astype(np.int64)


def label_shift(labels: Rows, favour: float, rng: np.random.Generator) -> Rows:
    """Imbalanced label shift (SAR, Niu et al., ICLR 2023): draws with replacement, one class in favour at a time.

    There are as many steps as classes, in a random order of theirs, and twice as many draws as images, shared evenly
    among the steps: for ImageNet's 50,000 that is SAR's 1,000 steps of 100. In a step its class has probability
    r / (r + C − 1) and each other one 1 / (r + C − 1), r being ``favour``.
    """
    classes = np.unique(labels)
    count = len(classes)
    if count < 2:
        raise InputError(f"label shift over images of {count} class; expected at least two")
    members = [np.flatnonzero(labels == label) for label in classes]
    ends = np.linspace(0, 2 * len(labels), count + 1).astype(np.int64)
    parts = []
    for step, chosen in enumerate(rng.permutation(count)):
        size = int(ends[step + 1] - ends[step])
        others = rng.integers(0, count - 1, size)
        others += others >= chosen
        drawn = np.where(rng.random(size) < favour / (favour + count - 1), chosen, others)
        ranks = rng.random(size)
        parts += [members[c][int(rank * len(members[c]))] for c, rank in zip(drawn, ranks, strict=True)]
    return np.array(parts, dtype=np.int64)
