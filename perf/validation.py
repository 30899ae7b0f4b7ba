"""Results on imagenet-c beside AlexNet's published errors: python perf/validation.py RESULTS.

Prints the correlation over the 75 conditions, and where errors fall although the severity rises, for both.
"""

from __future__ import annotations

import sys

import numpy as np

import blemish
from blemish.metrics.baselines import published_baseline

SEVERITIES = (1, 2, 3, 4, 5)


def main() -> None:
    """Read, compare and print."""
    published = published_baseline("alexnet").errors
    for run in blemish.find_runs(sys.argv[1:]):
        names = [c.group for c in run.conditions if c.severity == 1]
        ours = np.array([[_error(run, f"{name}@{s}") for s in SEVERITIES] for name in names])
        theirs = np.array([[published[f"{name}@{s}"] for s in SEVERITIES] for name in names])
        ranks = [np.argsort(np.argsort(values.ravel())) for values in (ours, theirs)]
        print(f"{run.name}: Pearson {np.corrcoef(ours.ravel(), theirs.ravel())[0, 1]:.2f}, ", end="")
        print(f"Spearman {np.corrcoef(*ranks)[0, 1]:.2f}")
        for title, values in (("here", ours), ("AlexNet, published", theirs)):
            falls = [f"{names[i]} {j + 1} to {j + 2}" for i, j in np.argwhere(np.diff(values, axis=1) < 0)]
            print(f"  falls, {title}: {', '.join(falls) or 'none'}")


def _error(run: blemish.Run, text: str) -> float:
    return 1 - float(run.records(blemish.parse_condition(text)).correct.mean())


if __name__ == "__main__":
    main()
