"""The 2D experiment of the MSCR paper: python perf/mscr_2d.py B_sep.npz [--runs 60] [--jobs 2] [--folder DIR].

Prints the tables of docs/research/mscr-2d.md: separation, random forest and 1-nearest-neighbour per ε_train beside the
published values, all nine rows of Table 2, and the effect of k and of the number of runs. With --folder, finished runs
are kept and not made again.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np

from blemish.core.statistics import MeanEstimate
from blemish.studies.separation.exact import separation
from blemish.studies.separation.experiment import experiment, forest, nearest_neighbour
from blemish.studies.separation.published import published_matrix
from blemish.studies.separation.sample_size import effect_of_k, effect_of_runs
from blemish.studies.separation.scores import Matrix

PUBLISHED = published_matrix("2d")


def agrees(ours: MeanEstimate, percent: float, half_width: float) -> bool:
    """Whether a published value lies within the combined 95 % interval √(a² + b²)."""
    return abs(100 * ours.value - percent) <= float(np.hypot(100 * ours.half_width, half_width))


def compare(matrix: Matrix) -> None:
    """Clean and robust accuracy and MSCR beside the published values; a cross where they do not agree."""
    at = matrix.protocol.epsilon_min
    robust = PUBLISHED.row(PUBLISHED.epsilon_min)
    columns = (
        ("clean", matrix.accuracy(0.0), PUBLISHED.accuracy[0], PUBLISHED.half_width[0]),
        ("robust", matrix.accuracy(at), PUBLISHED.accuracy[robust], PUBLISHED.half_width[robust]),
        ("MSCR", matrix.mscr(), PUBLISHED.mscr, PUBLISHED.mscr_half_width),
    )
    print("| ε_train |" + "".join(f" {name} % | published |" for name, *_ in columns))
    print("|---|" + "---|---|" * len(columns))
    for k, eps in enumerate(matrix.protocol.eps_train):
        row = f"| {eps:.4g} |"
        for _, ours, means, halves in columns:
            mark = "" if agrees(ours[k], means[k], halves[k]) else " ✗"
            row += f" {100 * ours[k].value:.3f} ± {100 * ours[k].half_width:.3f}{mark} |"
            row += f" {means[k]:.3f} ± {halves[k]:.3f} |"
        print(row)
    print()


def whole(matrix: Matrix) -> None:
    """All rows of Table 2: our means, the best of a row in bold, a cross where the published mean does not agree."""
    eps = matrix.protocol.eps_train
    print("| ε_test |" + "".join(f" {value:.4g} |" for value in eps) + " best, published | largest difference |")
    print("|---|" + "---|" * (len(eps) + 2))
    inside = total = 0
    rows = [(f"{value:.4g}", matrix.accuracy(value)) for value in matrix.protocol.eps_test]
    rows.append(("MSCR", matrix.mscr()))
    means, halves = [*PUBLISHED.accuracy, PUBLISHED.mscr], [*PUBLISHED.half_width, PUBLISHED.mscr_half_width]
    for (title, ours), mean, half in zip(rows, means, halves, strict=True):
        best = int(np.argmax([value.value for value in ours]))
        cells, away = [], []
        for k, value in enumerate(ours):
            same = agrees(value, mean[k], half[k])
            inside, total = inside + same, total + 1
            text = f"{100 * value.value:.3f}"
            cells.append((f"**{text}**" if k == best else text) + ("" if same else " ✗"))
            away.append(100 * value.value - mean[k])
        largest = max(away, key=abs)
        print(f"| {title} | " + " | ".join(cells) + f" | {eps[int(np.argmax(mean))]:.4g} | {largest:+.3f} |")
    print(f"\n{inside} of {total} within the combined 95 % intervals\n")


def plain(matrix: Matrix) -> None:
    """A table without published values."""
    print("| ε_train | clean % | robust % | MSCR % |\n|---|---|---|---|")
    at = matrix.protocol.epsilon_min
    rows = zip(matrix.protocol.eps_train, matrix.accuracy(0.0), matrix.accuracy(at), matrix.mscr(), strict=True)
    for eps, *values in rows:
        print(f"| {eps:.4g} |" + "".join(f" {100 * v.value:.3f} ± {100 * v.half_width:.3f} |" for v in values))
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
    eps_train = [at if eps == PUBLISHED.epsilon_min else eps for eps in PUBLISHED.eps]
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
            eps_test=eps_train,
            k=10,
            runs=runs,
            draws=draws,
            folder=None if args.folder is None else args.folder / name,
            jobs=args.jobs,
        )
        print(f"{name}: {runs} runs, {draws} draws, {time.perf_counter() - begun:.0f} s\n")
        compare(matrix) if name in ("forest", "baseline") else plain(matrix)
        if name == "forest":
            whole(matrix)
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
