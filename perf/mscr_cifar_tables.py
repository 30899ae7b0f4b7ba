"""Tables and figures from the records of perf/mscr_cifar.py, beside Table 3 of the MSCR paper.

    python perf/mscr_cifar_tables.py RECORDS.npz … [--figures DIR]

Prints accuracies by training and test radius in each norm, MSCR at ε_min of the copy and at the paper's, and what the
lossy copy changes. Only rounds in which every radius is there count. Figures: the trade-off (6b) and the matrix (7).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from blemish.core.errors import InputError
from blemish.core.statistics import MeanEstimate, estimate_mean
from blemish.corruptions.lp import radius
from blemish.reports.figure_files import save_figure
from blemish.studies.separation.experiment import Protocol
from blemish.studies.separation.figures import epsilon_matrix, tradeoff_curve
from blemish.studies.separation.published import published_matrix
from blemish.studies.separation.scores import Matrix, mscr_of
from network_records import Records

PUBLISHED = published_matrix("cifar10")


def matrix_of(records: Records, norm: str) -> Matrix:
    """Accuracies (runs, ε_test, ε_train) of a norm, over the rounds that are complete; ε_min is that of the copy."""
    protocol = records.protocol
    eps_train = [eps for eps in protocol["eps_train"][norm] if eps > 0]
    names = protocol["sets"]["noise"]
    tested = [eps for eps in map(float, _radii(names, norm)) if eps > 0]
    runs = sorted({int(facts["run"]) for facts in records.facts.values()})
    tables = []
    for run in runs:
        cells = [f"none-run{run}", *(f"{norm}-{eps:g}-run{run}" for eps in eps_train)]
        if not all(cell in records.facts for cell in cells):
            continue
        columns = [records.accuracies(cell, "noise") for cell in cells]
        rows = ["linf:0", *(f"{norm}:{text}" for text in _radii(names, norm) if float(text) > 0)]
        tables.append([[column[row] for column in columns] for row in rows])
    if not tables:
        raise InputError(f"no round is complete in {norm}; expected every ε_train of at least one run")
    at = next(eps for eps in tested if f"{eps:g}" == f"{protocol['epsilon_min']['copy'][norm]:g}")
    described = Protocol(
        model=protocol["net"],
        norm=norm,  # type: ignore[arg-type]
        epsilon_min=at,
        eps_train=(0.0, *eps_train),
        eps_test=(0.0, *tested),
        k=protocol["k"],
        seed=protocol["seed"],
        test_share=protocol["test_images"] / (protocol["test_images"] + protocol["train_images"]),
        clip=protocol["clip"],
        draws="independent",
        data=" ".join(protocol["data"]),
    )
    return Matrix(described, np.array(tables))


def _radii(names: list[str], norm: str) -> list[str]:
    return [name.partition(":")[2] for name in names if name.startswith(f"{norm}:")]


def percent(estimate: MeanEstimate) -> str:
    """A share in percent, with its interval where several runs give one."""
    half = "" if np.isnan(estimate.half_width) else f" ± {100 * estimate.half_width:.2f}"
    return f"{100 * estimate.value:.2f}{half}"


def accuracy_table(matrix: Matrix) -> None:
    """Accuracies by test radius (rows) and training radius (columns); the best of a row in bold."""
    eps = matrix.protocol.eps_train
    published = matrix.protocol.norm == PUBLISHED.norm
    print("| ε_test |" + "".join(f" {value:.4g} |" for value in eps) + (" best, published |" if published else ""))
    print("|---|" + "---|" * (len(eps) + published))
    for value in matrix.protocol.eps_test:
        row = matrix.accuracy(value)
        best = int(np.argmax([cell.value for cell in row]))
        cells = [f"**{percent(cell)}**" if k == best else percent(cell) for k, cell in enumerate(row)]
        if published:
            known = value in PUBLISHED.eps
            cells.append(f"{eps_of_best(PUBLISHED.accuracy[PUBLISHED.row(value)]):.4g}" if known else "–")
        print(f"| {value:.4g} | " + " | ".join(cells) + " |")
    print()


def eps_of_best(row: tuple[float, ...]) -> float:
    """The published training radius with the highest accuracy of a row.

    The last of equals: the column of 0.01 repeats that of 0.02 by a slip in print, and the bold type is at 0.02.
    """
    return PUBLISHED.eps[max(k for k, value in enumerate(row) if value == max(row))]


def mscr_table(matrix: Matrix) -> None:
    """Clean accuracy and MSCR by training radius, at ε_min of the copy and, in L∞, at the paper's."""
    protocol = matrix.protocol
    there = PUBLISHED.epsilon_min if PUBLISHED.epsilon_min in protocol.eps_test and protocol.norm == "linf" else None
    head = ["ε_train", "clean %", f"MSCR % at ε = {protocol.epsilon_min:.6g}"]
    if there is not None:
        head += [f"MSCR % at ε = {there:.6g}", "published clean %", "published MSCR %"]
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    clean, own = matrix.accuracy(0.0), matrix.mscr()
    other = None if there is None else matrix.mscr(there)
    for k, eps in enumerate(protocol.eps_train):
        cells = [f"{eps:.4g}", percent(clean[k]), percent(own[k])]
        if other is not None:
            column = PUBLISHED.eps.index(eps)
            cells += [percent(other[k]), f"{PUBLISHED.accuracy[0][column]:.2f}", f"{PUBLISHED.mscr[column]:.2f}"]
        print("| " + " | ".join(cells) + " |")
    print()


def matched_table(records: Records) -> None:
    """Networks of both norms, sorted by the mean square of their noise: does its norm matter?"""
    columns = ("clean", "mscr", "mscr_l2", "mean_corruption_error")
    print("| trained with | runs | clean % | MSCR % (L∞) | MSCR % (L2) | mean corruption error % |")
    print("|---|" + "---|" * 5)
    groups: dict[tuple[str, float], list[dict[str, float]]] = {}
    for facts in records.facts.values():
        groups.setdefault((facts["norm"], facts["eps"]), []).append(facts)
    same = {("linf", eps): eps for eps in records.protocol["eps_train"]["linf"]}
    same |= {("l2", eps): eps / radius("l2", 1.0, 3072) for eps in records.protocol["eps_train"]["l2"]}
    for key in sorted(groups, key=lambda item: (round(same[item], 4), item[0])):
        values = [percent(estimate_mean([facts[name] for facts in groups[key]])) for name in columns]
        sign = {"linf": "L∞", "l2": "L2"}[key[0]]
        name = "no noise" if key[1] == 0 else f"{sign} {key[1]:.4g} (L∞ {same[key]:.4g})"
        print(f"| {name} | {len(groups[key])} | " + " | ".join(values) + " |")
    print()


def copy_note(matrix: Matrix) -> None:
    """What it changes that the copy's ε_min is not the paper's."""
    if matrix.protocol.norm != "linf" or PUBLISHED.epsilon_min not in matrix.protocol.eps_test:
        return
    here, there = matrix.protocol.epsilon_min, PUBLISHED.epsilon_min
    clean, own, other = (matrix.accuracies[:, matrix.protocol.eps_test.index(eps)] for eps in (0.0, here, there))
    change = [
        estimate_mean([mscr_of(c, o) - mscr_of(c, a) for c, a, o in zip(*columns, strict=True)])
        for columns in zip(clean.T, own.T, other.T, strict=True)
    ]
    largest = max(change, key=lambda value: abs(value.value))
    print(
        f"2r is {2 * here:.6f} ({2 * here * 255:g}/255) in the copy and {2 * there:.6f} (54/255) in CIFAR-10: MSCR at "
        f"the paper's ε_min less MSCR at the copy's is {percent(change[0])} percentage points at ε_train = 0, and "
        f"{percent(largest)} where it differs most\n"
    )


def main() -> None:
    """Print the tables and draw the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path, nargs="+")
    parser.add_argument("--figures", type=Path)
    options = parser.parse_args()
    records = Records.read(*options.records)
    slowest = max(facts["train_seconds"] for facts in records.facts.values())
    print(f"{len(records.facts)} networks ({records.protocol['net']}), at most {slowest:.1f} s of training each\n")
    matrices = {}
    for norm, title in (("linf", "L∞"), ("l2", "L2")):
        matrix = matrices[title] = matrix_of(records, norm)
        print(f"{title}: {len(matrix.accuracies)} runs\n")
        accuracy_table(matrix)
        mscr_table(matrix)
        copy_note(matrix)
    matched_table(records)
    if options.figures:
        options.figures.mkdir(parents=True, exist_ok=True)
        save_figure(tradeoff_curve(matrices), options.figures / "mscr-cifar-tradeoff.png")
        save_figure(epsilon_matrix(matrices["L∞"]), options.figures / "mscr-cifar-matrix.png")
        print(f"drew mscr-cifar-tradeoff.png and mscr-cifar-matrix.png in {options.figures}")


if __name__ == "__main__":
    main()
