"""How far severities jump between the paths of walks, by rule: python perf/ccc_seams.py SURFACES [--targets 0.5 0.3].

SURFACES is a folder that blemish ccc calibrate made. For each target, rule and choice of ends, walks of many seeds are
planned over the corruptions that can hold the target, open ones and closed ones, and described in a table: the share of
seams that jump, the mean and the largest jump, that of the closed walks' own seams, and how far steps and means of
paths are from the target. No model is run.
"""

from __future__ import annotations

import argparse
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from blemish.studies.streams.calibration import read_calibration
from blemish.studies.streams.planning import PathRule, calibrated_for, make_walk, usable_corruptions
from blemish.studies.streams.walks import Walk

ROWS: tuple[tuple[Any, Any, float], ...] = (
    ("reference", "independent", 0.0),
    ("mean", "independent", 0.0),
    ("mean", "joint", 0.04),
    ("pointwise", "independent", 0.0),
    ("pointwise", "joint", 0.004),
    ("pointwise", "joint", 0.04),
    ("pointwise", "joint", 0.4),
)

HEADS = (
    "paths",
    "ends",
    "weight",
    "seams that jump",
    "mean jump",
    "largest",
    "closed walks' own, mean",
    "largest",
    "off a step",
    "mean of a path off",
)


def described(walks: list[Walk], target: float) -> str:
    """A row of numbers over some walks."""
    seams = [walk.seams for walk in walks]
    count = sum(each.count for each in seams)
    jumping = sum(each.jumping for each in seams) / count
    mean = sum(each.mean * each.count for each in seams) / count
    closing = [each.closing for each in seams if each.closing is not None]
    paths = [
        [step.accuracy for step in steps]
        for walk in walks
        for _, steps in groupby(walk.steps, lambda step: step.segment)
    ]
    off = np.mean([np.abs(np.array(path) - target).mean() for path in paths])
    of_means = np.mean([abs(np.mean(path) - target) for path in paths])
    return (
        f"{100 * jumping:.0f} % | {mean:.2f} | {max(each.largest for each in seams):g} | {np.mean(closing):.2f} | "
        f"{max(closing):g} | {100 * off:.2f} | {100 * of_means:.3f}"
    )


def main() -> None:
    """Plan the walks and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("surfaces", type=Path)
    parser.add_argument("--targets", type=float, nargs="+", default=[0.5])
    parser.add_argument("--tolerance", type=float, default=0.04, help="how near a corruption alone must come")
    parser.add_argument("--steps", type=int, default=1000, help="steps of each walk, at least")
    parser.add_argument("--seeds", type=int, default=10)
    options = parser.parse_args()
    surfaces, protocol = read_calibration(options.surfaces)
    for target in options.targets:
        names = usable_corruptions(surfaces, target, tolerance=options.tolerance)
        print(
            f"\ntarget {100 * target:g} %, {len(names)} corruptions ({', '.join(names)}), {options.seeds} seeds, ",
            end="",
        )
        print(f"open and closed walks of at least {options.steps} steps; jumps in severities, deviations in points\n")
        print(
            "| paths | ends | weight | seams that jump | mean jump | largest | closed walks' own, mean | largest | ",
            end="",
        )
        print("off a step | mean of a path off |\n|---|---|---:|---:|---:|---:|---:|---:|---:|---:|")
        for objective, ends, weight in ROWS:
            rule = PathRule(target, objective, ends, weight, measured_only=calibrated_for(protocol, target))
            walks = [
                make_walk(surfaces, rule, images=options.steps, speed=1, names=names, seed=seed, closed=closed)
                for seed in range(options.seeds)
                for closed in (False, True)
            ]
            shown = f"{weight:g}" if ends == "joint" else "–"
            print(f"| {objective} | {ends} | {shown} | {described(walks, target)} |", flush=True)


if __name__ == "__main__":
    main()
