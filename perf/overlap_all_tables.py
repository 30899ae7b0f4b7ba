"""What the networks of perf/overlap_all.py say: the matrix, and what follows from it.

    python perf/overlap_all_tables.py OUT RECORDS.npz … [--scratch RECORDS.npz …] [--resamples 50]

RECORDS are those of fine-tuned networks of one or more seeds, in any number of files. Corruptions that a network is
missing for, of any seed, are left out and named. Writes to OUT: accuracies.csv (means over seeds), overlap.csv (from
these), correct-seedN.npz and overlap-seedN.csv, categories.json, core.toml, two figures, and catalogues-32.json, the
counts that the package ships. Prints, in Markdown, how far seeds agree, what Algorithm 1 chooses and how stable that
is, how published benchmarks cover each other, the core and what a seed makes of a core that others chose, and, with
--scratch, how far fine-tuning misleads.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from blemish.benchmarks.files import load_benchmark
from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.resampling import Bootstrap
from blemish.reports.figure_files import save_figure
from blemish.studies.construction.benchmark_files import make_benchmark, write_benchmark
from blemish.studies.construction.categories import find_categories, write_categories
from blemish.studies.construction.compare import compare_matrices
from blemish.studies.construction.core import Core, mutual_coverage, select_core
from blemish.studies.construction.coverage import balance_by
from blemish.studies.construction.figures import SAVING, agreement_figure, overlap_figure
from blemish.studies.construction.gather import Correct, write_correct
from blemish.studies.construction.matrices import OverlapMatrix, write_matrix
from blemish.studies.construction.overlap import overlap_intervals, overlap_matrix
from blemish.studies.construction.selection import select_non_overlapping, sweep_thresholds
from blemish.studies.construction.stability import choice_stability
from blemish.studies.construction.tables import STANDARD, AccuracyTable, write_table
from network_records import Records

BENCHMARKS = (
    "imagenet-c",
    "imagenet-c-extra",
    "imagenet-noc",
    "imagenet-syn2nat",
    "imagenet-c-bar",
    "cifar10-c-bar",
    "opticsbench",
    "laion-c",
    "noc-candidates",
    "syn2nat-candidates",
    "c-bar-candidates",
)

# Resamples that intervals need; choices take much longer, and are made again for --resamples only.
FEWEST = 200


def by_seed(paths: Sequence[Path]) -> dict[int, Records]:
    """The records of each seed, whatever the number of files."""
    files: defaultdict[int, list[Path]] = defaultdict(list)
    for path in paths:
        files[int(Records.read(path).protocol["seed"])].append(path)
    return {seed: Records.read(*files[seed]) for seed in sorted(files)}


def complete(records: dict[int, Records]) -> list[str]:
    """The corruptions that there is a network for in every seed; the others are named."""
    trained = next(iter(records.values())).protocol["trained"]
    for seed, found in records.items():
        if found.protocol["trained"] != trained:
            raise InputError(f"seed {seed}: networks of other corruptions; expected those of {next(iter(records))}")
        if STANDARD not in found.correct:
            raise InputError(f"seed {seed}: the standard network is missing; expected its records")
    names = [name for name in trained if all(name in found.correct for found in records.values())]
    if left := [name for name in trained if name not in names]:
        print(f"left out, as not every seed has a network for them: {', '.join(left)}\n")
    if len(names) < 2:
        raise InputError(f"{len(names)} corruptions have a network in every seed; expected two at least")
    return names


def correct_of(records: Records, names: Sequence[str]) -> Correct:
    """Correctness image by image of the networks of these corruptions; settings are named like the networks."""
    settings = [text.partition("@")[0] for text in records.protocol["sets"]["corrupted"]]
    models = [STANDARD, *names]
    kept = [k for k, name in enumerate(settings) if name == "clean" or name in models]
    rows = np.stack([records.right(name, "corrupted")[kept] for name in models])
    return Correct(rows, tuple(models), tuple(settings[k] for k in kept))


def mean_table(found: Sequence[Correct]) -> AccuracyTable:
    """Mean accuracies over seeds."""
    values = np.mean([one.correct.mean(axis=2) for one in found], axis=0)
    return AccuracyTable(found[0].models, found[0].settings, values)


def write_counts(tuned: dict[int, Records], found: dict[int, Correct], path: Path) -> None:
    """How many test images every network of every seed classified correctly: all that accuracies and scores need."""
    first = next(iter(found.values()))
    images = first.correct.shape[2]
    protocol = next(iter(tuned.values())).protocol
    schedule = protocol["fine_tune"]
    about = (
        f"Right answers of {protocol['net'].partition(':')[2]} networks, each fine-tuned for {schedule['epochs']} "
        f"epochs on one corruption from the standard network of its seed, on {protocol['train_images']:,} training and "
        f"{images:,} test images of a JPEG copy of CIFAR-10: one table per seed, models in rows, settings in columns."
    )
    counts = {seed: one.correct.sum(axis=2).tolist() for seed, one in found.items()}
    rows = {
        str(seed): {name: " ".join(map(str, row)) for name, row in zip(first.models, table, strict=True)}
        for seed, table in counts.items()
    }
    content = {"about": about, "images": images, "settings": list(first.settings), "seeds": rows}
    write_bytes(path, (json.dumps(content, indent=1) + "\n").encode())


def print_rows(header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table in Markdown."""
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print()


def seeds_table(matrices: dict[int, OverlapMatrix]) -> None:
    """How far the matrices of single seeds agree."""
    rows = []
    for one, other in itertools.combinations(matrices, 2):
        try:
            found = compare_matrices(matrices[one], matrices[other])
        except InputError as error:
            print(f"seeds {one} and {other}: {error}\n")
            continue
        largest = found.largest[0]
        pair = " – ".join(largest.pair)
        rows.append(
            [
                f"{one} and {other}",
                found.pairs,
                f"{found.pearson:.3f}",
                f"{found.spearman:.3f}",
                f"{found.mean_difference:+.3f}",
                f"{pair}: {largest.first:.2f}, {largest.second:.2f}",
            ]
        )
    if rows:
        print_rows(["seeds", "pairs", "Pearson", "Spearman", "mean difference", "largest difference"], rows)


def resampled(found: Sequence[Correct], resamples: int, least_gain: float) -> Iterator[OverlapMatrix]:
    """Matrices of mean accuracies over seeds, from test images that are drawn again, the same for all networks."""
    first = found[0]
    images = first.correct.shape[2]
    drawn = [Bootstrap(images, resamples).accuracies(one.correct.reshape(-1, images).T) for one in found]
    for values in np.mean(drawn, axis=0).reshape(resamples, *first.correct.shape[:2]):
        yield overlap_matrix(AccuracyTable(first.models, first.settings, values), least_gain=least_gain)


def stability_table(
    reference: OverlapMatrix,
    matrices: dict[int, OverlapMatrix],
    found: dict[int, Correct],
    resamples: int,
    least_gain: float,
    evenly: Callable[[Sequence[str]], float],
) -> None:
    """How stable Algorithm 1's choice and the core are; ties are broken by the balance in the mean of seeds."""

    def largest(matrix: OverlapMatrix) -> tuple[str, ...]:
        return select_non_overlapping(matrix, threshold=0.1).members

    def core(matrix: OverlapMatrix) -> tuple[str, ...]:
        return select_core(matrix, balance=evenly).members

    drawn = {f"mean of seeds, {resamples} resamples": list(resampled(list(found.values()), resamples, least_gain))}
    for seed, one in found.items():
        drawn[f"seed {seed}, {resamples} resamples"] = list(resampled([one], resamples, least_gain))
    groups = {f"{len(matrices)} seeds": list(matrices.values()), **drawn}
    ways: dict[str, Callable[[OverlapMatrix], tuple[str, ...]]] = {"Algorithm 1 at .1": largest, "core": core}
    rows = []
    for title, choose in ways.items():
        for group, others in groups.items():
            stable = choice_stability(reference, others, choose)
            always = [name for name, share in stable.shares().items() if share == 1]
            rows.append(
                [
                    title,
                    group,
                    f"{stable.same:.2f}",
                    f"{stable.likeness:.2f}",
                    f"{np.mean(stable.replaced):.2f}",
                    " ".join(f"{size}×{count}" for size, count in stable.sizes.items()),
                    ", ".join(always) or "–",
                ]
            )
    print_rows(["choice", "from", "the same", "in common", "covered", "sizes", "always chosen"], rows)


def baseline_table(table: AccuracyTable, matrix: OverlapMatrix, core: Core, least_gain: float) -> None:
    """The same scores, with another baseline: networks fine-tuned on corruptions that hardly change the images.

    The standard network was not trained as long as the others; these were, on what is almost clean.
    """
    names = [
        name for name in matrix.names if table.accuracy(STANDARD, name) > 0.995 * table.accuracy(STANDARD, "clean")
    ]
    if not names:
        return
    values = table.values.copy()
    values[table.row(STANDARD)] = np.mean([table.values[table.row(name)] for name in names], axis=0)
    other = overlap_matrix(AccuracyTable(table.models, table.settings, values), least_gain=least_gain)
    found = compare_matrices(matrix, other)
    there = mutual_coverage(other, {"core": core.members, "all": other.names})["core", "all"]
    print(
        f"fine-tuned on {' and '.join(names)} in place of the standard network: Pearson {found.pearson:.3f}, mean "
        f"difference {found.mean_difference:+.3f}; the core covers {there[0]}, "
        f"pairs of it above .1: {above(other, core.members)}, at most {highest(other, core.members):.2f} in place of "
        f"{highest(matrix, core.members):.2f}\n"
    )


def held_out_table(found: dict[int, Correct], matrices: dict[int, OverlapMatrix], least_gain: float) -> None:
    """A core that was chosen from other seeds, as a seed scores it that had no part in the choice.

    A core is the best of very many sets, so that noise which happens to help it counts in its favour where it was
    chosen: here it does not.
    """
    rows = []
    for seed, matrix in matrices.items():
        others = [one for other, one in found.items() if other != seed]
        if not others:
            return
        core = select_core(overlap_matrix(mean_table(others), least_gain=least_gain))
        there = mutual_coverage(matrix, {"core": core.members, "all": matrix.names})["core", "all"]
        rows.append(
            [
                seed,
                len(core.members),
                f"{core.coverage} of {len(matrix.names)}",
                f"{there[0]} of {there[1]}",
                f"{above(matrix, core.members)} of {len(core.members) * (len(core.members) - 1) // 2}",
                select_core(matrix).coverage,
            ]
        )
    header = ["left out", "members", "covered as chosen", "covered by the one left out", "pairs above .1 there"]
    print_rows([*header, "covered by its own core"], rows)


def above(matrix: OverlapMatrix, names: Sequence[str]) -> int:
    """How many pairs of some corruptions overlap by more than .1."""
    return int((inside(matrix, names) > 0.1).sum())


def highest(matrix: OverlapMatrix, names: Sequence[str]) -> float:
    """The highest score of some corruptions."""
    return float(np.nanmax(inside(matrix, names)))


def inside(matrix: OverlapMatrix, names: Sequence[str]) -> NDArray[np.float64]:
    """The scores of all pairs of some corruptions."""
    return matrix.only(names).scores[np.triu_indices(len(names), 1)]


def gains_table(found: dict[int, Correct]) -> None:
    """How much training on a corruption helps against it: scores divide by that, so small gains make them noisy."""
    tables = [mean_table([one]) for one in found.values()]
    names = [name for name in tables[0].models if name != STANDARD]
    gains = {name: float(np.mean([own_gain(table, name) for table in tables])) for name in names}
    rows = []
    for least, most in itertools.pairwise((-1.0, 0.01, 0.02, 0.05, 0.1, np.inf)):
        inside = [name for name in names if least <= gains[name] < most]
        rows.append([f"below {most:g}" if least < 0 else f"from {least:g}", len(inside), ", ".join(inside) or "–"])
    print_rows(["gain in robustness to itself", "corruptions", ""], rows)


def own_gain(table: AccuracyTable, name: str) -> float:
    """How much the robustness score for a corruption is raised by training on it."""
    before, after = (table.accuracy(m, name) / table.accuracy(m, "clean") for m in (STANDARD, name))
    return after - before


def coverage_table(matrix: OverlapMatrix, core: Core) -> None:
    """How many corruptions of each published benchmark are in another or covered by it."""
    sets = {name: load_benchmark(name).groups for name in BENCHMARKS}
    known = {name: groups for name, groups in sets.items() if set(groups) & set(matrix.names)}
    known["core"] = core.members
    known["all"] = matrix.names
    shares = mutual_coverage(matrix, known)
    rows = [
        [first, *(f"{shares[first, second][0]} of {shares[first, second][1]}" for second in known)]
        for first in known
        if first != "all"
    ]
    print_rows(["covers ↓ of →", *known], rows)


def scratch_table(tuned: dict[int, Records], scratch: Sequence[Path], folder: Path, least_gain: float) -> None:
    """Scores of a sample of corruptions from scratch beside those of the same seed by fine-tuning."""
    rows = []
    for seed, records in by_seed(scratch).items():
        if seed not in tuned:
            raise InputError(f"seed {seed} from scratch, but not fine-tuned; expected both")
        names = [name for name in complete({seed: records}) if name in tuned[seed].correct]
        print(f"from scratch, seed {seed}: {', '.join(names)}\n")
        tables = [mean_table([correct_of(one, names)]) for one in (records, tuned[seed])]
        long, short = (overlap_matrix(table, least_gain=least_gain) for table in tables)
        try:
            found = compare_matrices(long, short, threshold=0.1, largest=len(long.pairs()))
        except InputError as error:
            print(f"seed {seed}, from scratch and fine-tuned: {error}\n")
            continue
        write_matrix(long, folder / f"overlap-scratch-seed{seed}.csv")
        scores = [(d.first, d.second) for d in found.largest]
        figure = agreement_figure(found, scores, names=("from scratch", "fine-tuned"))
        save_figure(figure, folder / f"scratch-seed{seed}.png", **SAVING)
        weak = [d for d in found.largest if d.first < 0.5]
        lost = np.mean([d.second < 0.1 for d in weak if d.first >= 0.1]) if weak else float("nan")
        rows.append(
            [
                seed,
                found.pairs,
                f"{found.pearson:.3f}",
                f"{found.spearman:.3f}",
                f"{found.mean_difference:+.3f}",
                f"{lost:.2f}",
                "; ".join(f"{' – '.join(d.pair)}: {d.first:.2f}, {d.second:.2f}" for d in found.largest[:3]),
            ]
        )
    header = ["seed", "pairs", "Pearson", "Spearman", "fine-tuned less scratch", ".1 to .5 that vanish (< .1)"]
    print_rows([*header, "largest differences (scratch, fine-tuned)"], rows)


def main() -> None:
    """Write the files and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("records", type=Path, nargs="+")
    parser.add_argument("--scratch", type=Path, nargs="*", default=[])
    parser.add_argument("--resamples", type=int, default=50)
    # Scores divide by gains: those of gains below this one are mostly the noise of seeds.
    parser.add_argument("--least-gain", type=float, default=0.02, help="scores of smaller gains are undefined")
    options = parser.parse_args()
    tuned = by_seed(options.records)
    names = complete(tuned)
    found = {seed: correct_of(records, names) for seed, records in tuned.items()}
    least = options.least_gain
    matrices = {seed: overlap_matrix(mean_table([one]), least_gain=least) for seed, one in found.items()}
    table = mean_table(list(found.values()))
    matrix = overlap_matrix(table, least_gain=least)
    options.out.mkdir(parents=True, exist_ok=True)
    write_table(table, options.out / "accuracies.csv")
    write_counts(tuned, found, options.out / "catalogues-32.json")
    write_matrix(matrix, options.out / "overlap.csv")
    for seed, one in found.items():
        write_correct(one, options.out / f"correct-seed{seed}.npz")
        write_matrix(matrices[seed], options.out / f"overlap-seed{seed}.csv")
    undefined = sorted({name for name in matrix.names if np.isnan(matrix.scores[matrix.index(name)]).all()})
    print(f"{len(matrix.names)} corruptions, {len(found)} seeds; scores undefined: {', '.join(undefined) or 'none'}\n")
    for seed, one in found.items():
        clean = one.correct[:, one.settings.index("clean")].mean(axis=1)
        said = f"fine-tuned {clean[1:].mean():.4f}, at least {clean[1:].min():.4f}"
        print(f"seed {seed}: clean accuracy {clean[0]:.4f}, {said}")
    print()
    gains_table(found)
    for seed, one in found.items():
        spread = overlap_intervals(
            one.correct, one.models, one.settings, resamples=max(FEWEST, options.resamples), least_gain=least
        )
        width = (spread.high - spread.low)[np.triu_indices(len(matrix.names), 1)]
        print(f"seed {seed}: median width of the 95 % intervals of scores {np.nanmedian(width):.3f}")
    print()
    seeds_table(matrices)
    swept = [item for item in sweep_thresholds(matrix) if item.selection is not None]
    rows = [[f"{i.threshold:g}", s.size, f"{s.mean:.3f}", ", ".join(s.members)] for i in swept if (s := i.selection)]
    print_rows(["threshold", "size", "mean score", "Algorithm 1"], rows)
    evenly = balance_by(table, baseline=STANDARD)
    core = select_core(matrix, balance=evenly)
    print(f"core: {core.explain()}\n")
    families = [[name, ", ".join(c for c, by in core.covered.items() if by == name) or "–"] for name in core.members]
    print_rows(["core", "covers"], families)
    print(f"not covered: {', '.join(core.uncovered) or 'none'}\n")
    title = f"{len(core.members)} corruptions that cover {core.coverage} of {len(matrix.names)}"
    write_benchmark(make_benchmark("blemish-core", core.members, title=title), options.out / "core.toml")
    coverage_table(matrix, core)
    held_out_table(found, matrices, least)
    baseline_table(table, matrix, core, least)
    stability_table(matrix, matrices, found, options.resamples, least, evenly)
    try:
        categories, _ = find_categories(matrix.defined())
    except InputError as error:
        print(f"no categories: {error}\n")
    else:
        write_categories(categories, options.out / "categories.json")
        print_rows(["category", "corruptions"], [[name, ", ".join(c)] for name, c in categories.members.items()])
    ordered = [n for m in core.members for n in (m, *(c for c, by in core.covered.items() if by == m))]
    drawn = matrix.only([*ordered, *core.uncovered])
    save_figure(overlap_figure(drawn, chosen=core.members, title=title), options.out / "overlap-all.png", **SAVING)
    if options.scratch:
        scratch_table(tuned, options.scratch, options.out, least)


if __name__ == "__main__":
    main()
