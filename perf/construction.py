"""How long benchmark construction takes: python perf/construction.py [--hard] [--seed 0].

CPU seconds of one thread. Algorithm 1 (largest non-overlapping subsets, all of them, lowest mean) on up to 200
corruptions, first on matrices like real ones, in which a corruption has up to three of twenty properties, then on
random graphs, which have no structure to exploit; cores of matrices like real ones; Algorithm 2 on 1,000 benchmarks,
200 models and 5 natural sets.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from blemish.core.errors import InputError
from blemish.studies.construction.cliques import DEFAULT_STEPS
from blemish.studies.construction.core import select_core
from blemish.studies.construction.matrices import OverlapMatrix
from blemish.studies.construction.natural import correlate_with_natural
from blemish.studies.construction.selection import select_non_overlapping

COUNT = 200
NAMES = tuple(f"c{i}" for i in range(COUNT))


def like_real(seed: int) -> OverlapMatrix:
    """Squared cosines of sparse property vectors, with a little noise; below zero counts as zero, as in the score."""
    draw = np.random.default_rng(seed)
    vectors = np.zeros((COUNT, 20))
    for vector in vectors:
        places = draw.choice(20, size=draw.integers(1, 4), replace=False)
        vector[places] = draw.dirichlet(np.ones(len(places)))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    noise = np.triu(draw.normal(0, 0.02, (COUNT, COUNT)), 1)
    scores = np.clip((vectors @ vectors.T) ** 2 + noise + noise.T, 0, None)
    np.fill_diagonal(scores, 1)
    return OverlapMatrix(NAMES, scores)


def without_structure(density: float, seed: int) -> OverlapMatrix:
    """Every pair is under a threshold of ``density`` with that probability."""
    upper = np.triu(np.random.default_rng(seed).random((COUNT, COUNT)), 1)
    return OverlapMatrix(NAMES, upper + upper.T + np.eye(COUNT))


def seconds(work: Callable[[], str]) -> str:
    """What the work says, and its CPU time."""
    start = time.process_time()
    said = work()
    return f"{said} | {time.process_time() - start:.2f} |"


def selection(matrix: OverlapMatrix, threshold: float, steps: int) -> str:
    """Run Algorithm 1."""
    density = (matrix.scores[np.triu_indices(len(matrix.names), 1)] <= threshold).mean()
    try:
        found = select_non_overlapping(matrix, threshold=threshold, steps=steps)
    except InputError:
        return f"{density:.2f} | not finished in {steps:,} steps | – | –"
    count = "over 100,000" if found.count is None else f"{found.count:,}"
    return f"{density:.2f} | {found.size} | {count} | {'yes' if found.proven else 'no'}"


def core(matrix: OverlapMatrix) -> str:
    """Find the smallest set that covers the most."""
    found = select_core(matrix)
    count = "not all listed" if found.count is None else f"{found.count:,}"
    covered = f"{found.coverage} of {len(matrix.names)}"
    return f"{len(found.members)} | {covered} | {'yes' if found.proven else 'no'} | {count}"


def correlations(resamples: int, partial: bool) -> str:
    """Run Algorithm 2."""
    draw = np.random.default_rng(0)
    synthetic, natural = draw.normal(size=(COUNT, 1000)), draw.normal(size=(COUNT, 5))
    control = draw.normal(size=COUNT) if partial else None
    correlate_with_natural(synthetic, natural, names="abcde", control=control, resamples=resamples)
    return f"| {'partial' if partial else 'plain'}, {resamples} resamples"


def main() -> None:
    """Print tables in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hard", action="store_true", help="also the densities that take minutes")
    parser.add_argument("--seed", type=int, default=0, help="of the matrices")
    options = parser.parse_args()
    hard = options.hard
    print("| matrix | threshold | pairs under it | size | largest subsets | lowest mean proven | seconds |")
    print("|---|---:|---:|---:|---:|---|---:|")
    whole = like_real(options.seed)
    for count in (40, 80, COUNT):
        for threshold in (0.1, 0.35) if count < COUNT else (0.05, 0.1, 0.2, 0.35, 0.5):
            part = whole.only(NAMES[:count])
            said = seconds(lambda part=part, threshold=threshold: selection(part, threshold, DEFAULT_STEPS))
            print(f"| like real, {count} corruptions | {threshold:g} | {said}", flush=True)
    for density in (0.3, 0.5, 0.7, *((0.8, 0.9) if hard else ()), 0.97, 0.99):
        said = seconds(
            lambda density=density: selection(without_structure(density, options.seed), density, DEFAULT_STEPS)
        )
        print(f"| random, {COUNT} corruptions | {density:g} | {said}", flush=True)
    print("\n| core of | members | covered | proven | sets as good | seconds |\n|---|---:|---:|---|---:|---:|")
    for count in (40, 80, 120):
        part = whole.only(NAMES[:count])
        print(f"| like real, {count} corruptions | {seconds(lambda part=part: core(part))}", flush=True)
    print("\n| Algorithm 2, 1,000 × 200 × 5 | seconds |\n|---|---:|")
    correlations(0, False)  # imports what it needs
    for resamples in (0, 1000):
        for partial in (False, True):
            print(seconds(lambda resamples=resamples, partial=partial: correlations(resamples, partial)), flush=True)


if __name__ == "__main__":
    main()
