"""The 2D experiment of the MSCR paper: python perf/mscr_2d.py B_sep.npz [--runs 60] [--jobs 2] [--folder DIR].

Prints the tables of docs/mscr.md: separation, random forest and 1-nearest-neighbour per ε_train beside the published
values, and the effect of k and of the number of runs. With --folder, finished runs are kept and not made again.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from blemish.studies.separation.exact import separation
from blemish.studies.separation.experiment import experiment, forest, nearest_neighbour
from blemish.studies.separation.sample_size import effect_of_k, effect_of_runs
from blemish.studies.separation.scores import Matrix

# Siedel et al. 2022, Table 2: accuracies and MSCR in percent, with 95 % intervals over 1,200 runs.
EPS_TRAIN = (0, 0.001, 0.002, None, 0.007, 0.01, 0.015, 0.02, 0.03)  # None stands for ε_min
CLEAN = (99.531, 99.652, 99.699, 99.748, 99.784, 99.769, 99.504, 98.990, 97.347)
CLEAN_HALF = (0.014, 0.011, 0.011, 0.010, 0.009, 0.010, 0.016, 0.028, 0.060)
ROBUST = (99.405, 99.525, 99.583, 99.669, 99.729, 99.716, 99.486, 99.005, 97.435)
ROBUST_HALF = (0.013, 0.011, 0.010, 0.009, 0.008, 0.008, 0.012, 0.022, 0.052)
MSCR = (-0.126, -0.127, -0.116, -0.080, -0.055, -0.053, -0.018, 0.015, 0.090)
MSCR_HALF = (0.007, 0.006, 0.006, 0.005, 0.005, 0.006, 0.010, 0.015, 0.024)


def compare(matrix: Matrix) -> None:
    """Ours beside the published values; a cross where they differ by more than the combined 95 % interval."""
    at = matrix.protocol.epsilon_min
    columns = (
        ("clean", matrix.accuracy(0.0), CLEAN, CLEAN_HALF),
        ("robust", matrix.accuracy(at), ROBUST, ROBUST_HALF),
        ("MSCR", matrix.mscr(), MSCR, MSCR_HALF),
    )
    print("| ε_train |" + "".join(f" {name} % | published |" for name, *_ in columns))
    print("|---|" + "---|---|" * len(columns))
    inside = total = 0
    for k, eps in enumerate(matrix.protocol.eps_train):
        row = f"| {eps:.6g} |"
        for _, ours, means, halves in columns:
            ok = abs(100 * ours[k].value - means[k]) <= np.hypot(100 * ours[k].half_width, halves[k])
            inside, total = inside + ok, total + 1
            row += f" {100 * ours[k].value:.3f} ± {100 * ours[k].half_width:.3f}{'' if ok else ' ✗'} |"
            row += f" {means[k]:.3f} ± {halves[k]:.3f} |"
        print(row)
    print(f"\n{inside} of {total} within the combined 95 % intervals\n")


def plain(matrix: Matrix) -> None:
    """A table without published values."""
    print("| ε_train | clean % | robust % | MSCR % |\n|---|---|---|---|")
    at = matrix.protocol.epsilon_min
    rows = zip(matrix.protocol.eps_train, matrix.accuracy(0.0), matrix.accuracy(at), matrix.mscr(), strict=True)
    for eps, *values in rows:
        print(f"| {eps:.6g} |" + "".join(f" {100 * v.value:.3f} ± {100 * v.half_width:.3f} |" for v in values))
    print()


def main() -> None:
    """Run everything and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", choices=["forest", "baseline", "independent", "1nn", "k"])
    args = parser.parse_args()
    with np.load(args.data) as file:
        points, labels = file["x"], file["y"]
    found = separation(points, labels)
    at = found.epsilon_min
    print(f"{found.points} points, 2r = {found.distance:.6f}, ε_min = {at:.6f} (published 0.008026 and 0.004013)\n")
    eps_train = [at if eps is None else eps for eps in EPS_TRAIN]
    for name, train, draws, runs, radii in (
        ("forest", forest(), "shared", args.runs, eps_train),
        ("baseline", forest(), "shared", 8 * args.runs, [0]),  # fits without noise are cheap
        ("independent", forest(), "independent", max(2, args.runs // 4), [0.03]),
        ("1nn", nearest_neighbour(), "shared", 4 * args.runs, eps_train),
    ):
        if args.only not in (None, name):
            continue
        begun = time.perf_counter()
        matrix = experiment(
            points,
            labels,
            train,
            model=name,
            epsilon_min=at,
            eps_train=radii,
            k=10,
            runs=runs,
            draws=draws,
            folder=None if args.folder is None else args.folder / name,
            jobs=args.jobs,
        )
        print(f"{name}: {runs} runs, {draws} draws, {time.perf_counter() - begun:.0f} s\n")
        compare(matrix) if name in ("forest", "baseline") else plain(matrix)
        if name == "forest":
            print("| runs | mean MSCR % at ε_train = 0 | 95 % interval ± |\n|---|---|---|")
            for row in effect_of_runs(matrix):
                print(f"| {row.count} | {100 * row.value:.3f} | {100 * row.half_width:.3f} |")
            print()
    if args.only in (None, "k"):
        print("| k | robust accuracy % | deviation of a run | share of it due to the draws |\n|---|---|---|---|")
        for row in effect_of_k(
            points, labels, forest(), epsilon=0.001, ks=(1, 2, 5, 10, 20), runs=max(2, args.runs // 4)
        ):
            values = (100 * row.robust.value, 100 * row.robust.deviation, row.share_of_draws)
            print(f"| {row.k} | " + " | ".join(f"{value:.3f}" for value in values) + " |")


if __name__ == "__main__":
    main()
