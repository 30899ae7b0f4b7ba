"""How hard ImageNet-NOC's corruptions are at the ends of their ranges: python perf/noc_difficulty.py RESULTS.

RESULTS come from `blemish run perf/noc-difficulty.toml …`. The paper chose its ranges for R = .95 and .5 of ResNet-18.
"""

from __future__ import annotations

import sys

import numpy as np

import blemish


def main() -> None:
    """Print R at both ends, with standard errors over images."""
    for run in blemish.find_runs(sys.argv[1:]):
        clean = run.records(run.conditions[0]).correct
        print(f"{run.name}, {len(clean)} images, clean accuracy {100 * clean.mean():.1f} %\n")
        print("| corruption | R at severity 1 | R at severity 5 |\n|---|---:|---:|")
        for name in dict.fromkeys(condition.group for condition in run.conditions[1:]):
            cells = [_robustness(clean, run, f"{name}@{severity}") for severity in (1, 5)]
            print(f"| {name.removeprefix('noc:')} | {cells[0]} | {cells[1]} |")


def _robustness(clean: np.ndarray, run: blemish.Run, text: str) -> str:
    correct = run.records(blemish.parse_condition(text)).correct
    ratio = correct.mean() / clean.mean()
    error = (correct - ratio * clean).std(ddof=1) / np.sqrt(len(clean)) / clean.mean()
    return f"{ratio:.2f} ± {error:.2f}"


if __name__ == "__main__":
    main()
