"""How hard the corruptions of a run are at each of their severities: python perf/difficulty.py RESULTS.

RESULTS come from `blemish run perf/noc-difficulty.toml …`, or from `perf/sensor-difficulty.toml`. The paper of
ImageNet-NOC chose its ranges for R = .95 and .5 of ResNet-18; we chose those of our own corruptions of cameras so too.
"""

from __future__ import annotations

import sys

import numpy as np

import blemish


def main() -> None:
    """Print R, the accuracy relative to that on clean images, with standard errors over images."""
    for run in blemish.find_runs(sys.argv[1:]):
        clean = run.records(run.conditions[0]).correct
        print(f"{run.name}, {len(clean)} images, clean accuracy {100 * clean.mean():.1f} %\n")
        severities = sorted({f"{condition.severity:g}" for condition in run.conditions[1:]})
        print(f"| corruption | {' | '.join(f'R at severity {severity}' for severity in severities)} |")
        print("|---|" + "---:|" * len(severities))
        for name in dict.fromkeys(condition.group for condition in run.conditions[1:]):
            cells = [_robustness(clean, run, f"{name}@{severity}") for severity in severities]
            print(f"| {name.partition(':')[2]} | {' | '.join(cells)} |")


def _robustness(clean: np.ndarray, run: blemish.Run, text: str) -> str:
    correct = run.records(blemish.parse_condition(text)).correct
    ratio = correct.mean() / clean.mean()
    error = (correct - ratio * clean).std(ddof=1) / np.sqrt(len(clean)) / clean.mean()
    return f"{ratio:.2f} ± {error:.2f}"


if __name__ == "__main__":
    main()
