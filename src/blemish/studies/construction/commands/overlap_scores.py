"""``blemish build overlap-scores`` and ``compare``: from accuracies to overlapping scores."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from blemish.core.errors import InputError
from blemish.studies.construction.commands.common import (
    Figure,
    Percent,
    TableCorruptions,
    check_output,
    draw,
    shown,
    write_rows,
)
from blemish.studies.construction.compare import compare_matrices
from blemish.studies.construction.figures import agreement_figure, overlap_figure
from blemish.studies.construction.gather import read_correct
from blemish.studies.construction.matrices import OverlapMatrix, read_matrix, write_matrix
from blemish.studies.construction.overlap import LEAST_GAIN, OverlapIntervals, overlap_intervals, overlap_matrix
from blemish.studies.construction.tables import read_table
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import Seed
from blemish.terminal.lists import listed
from blemish.terminal.outputs import Overwrite
from blemish.terminal.printing import say
from blemish.terminal.results import Level


@exit_on_input_error
def overlap_scores_command(
    source: Annotated[
        Path, typer.Argument(metavar="TABLE", help="A .csv table of accuracies, or .npz of correctness.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The matrix to write (.csv or .json).")],
    percent: Percent = False,
    corruptions: TableCorruptions = None,
    clean: Annotated[str, typer.Option(help="The column of clean accuracies.")] = "clean",
    least_gain: Annotated[
        float, typer.Option(help="A smaller gain of robustness by training on a corruption makes its scores undefined.")
    ] = LEAST_GAIN,
    intervals: Annotated[
        Path | None, typer.Option(metavar="FILE", help="From .npz: write every score with its interval.")
    ] = None,
    resamples: Annotated[
        int, typer.Option("--replicates", help="For intervals: how often the test images are drawn again.")
    ] = 1000,
    level: Level = 0.95,
    seed: Seed = 0,
    figure: Figure = None,
    overwrite: Overwrite = False,
) -> None:
    """Overlapping scores of all pairs of corruptions, from accuracies.

    Does training on one corruption help against another? The table has a row "standard" and one row for the model
    trained on each corruption, named like its column; the column "clean" holds accuracies on clean images. Scores are 1
    for a corruption with itself and 0 where training on either does not help against the other.

    For intervals give an .npz file with the arrays correct (models × settings × images, true or false), models and
    settings (their names).

    Examples:

      blemish build table imagenet-c -o accuracies.csv

      blemish build overlap-scores accuracies.csv -o overlap.csv --figure overlap.png

      blemish build overlap-scores correct.npz -o overlap.csv --intervals intervals.csv
    """
    check_output(out, ".csv", ".json", figures=[figure], overwrite=overwrite)
    check_output(intervals, ".csv", overwrite=overwrite)
    if source.suffix.lower() == ".npz":
        computed = _from_correctness(source, corruptions, clean, least_gain, resamples, level, seed)
        matrix = computed.matrix
        if intervals is not None:
            write_intervals(computed, intervals)
    else:
        if intervals is not None:
            raise InputError("--intervals needs to know which images were classified correctly; expected an .npz file")
        table = read_table(source, unit="percent" if percent else "fraction")
        matrix = overlap_matrix(table, corruptions=listed(corruptions) or None, clean=clean, least_gain=least_gain)
    write_matrix(matrix, out)
    say(f"wrote {out}: {len(matrix.names)} corruptions")
    _summarise(matrix)
    draw(figure, lambda: overlap_figure(matrix))


def _from_correctness(
    source: Path, corruptions: list[str] | None, clean: str, least_gain: float, resamples: int, level: float, seed: int
) -> OverlapIntervals:
    known = read_correct(source)
    return overlap_intervals(
        known.correct,
        known.models,
        known.settings,
        corruptions=listed(corruptions) or None,
        level=level,
        resamples=resamples,
        seed=seed,
        clean=clean,
        least_gain=least_gain,
    )


def write_intervals(intervals: OverlapIntervals, path: Path) -> None:
    """The interval of every pair, and in how many resamples its score was undefined."""
    matrix = intervals.matrix
    rows = []
    for first, second in matrix.pairs():
        i, j = matrix.index(first), matrix.index(second)
        cells = [matrix.scores[i, j], intervals.low[i, j], intervals.high[i, j], intervals.undefined_share[i, j]]
        rows.append([first, second, *("undefined" if np.isnan(cell) else f"{cell:.6g}" for cell in cells)])
    write_rows(path, ["first", "second", "score", "low", "high", "undefined_share"], rows)
    say(f"wrote {path}: {100 * intervals.level:g} % intervals of {len(rows)} pairs")


def _summarise(matrix: OverlapMatrix) -> None:
    defined = [(matrix.score(*key), key) for key in matrix.pairs() if not np.isnan(_score(matrix, key))]
    rows = [[f"{first} – {second}", f"{score:.3f}"] for score, (first, second) in sorted(defined, reverse=True)[:8]]
    shown(["pairs that overlap most", "score"], rows)
    reasons = list(dict.fromkeys(matrix.undefined.values()))
    for reason in reasons:
        say(f"undefined: {reason}", style="yellow")


def _score(matrix: OverlapMatrix, key: tuple[str, str]) -> float:
    return float(matrix.scores[matrix.index(key[0]), matrix.index(key[1])])


@exit_on_input_error
def compare_command(
    first: Annotated[Path, typer.Argument(metavar="MATRIX", help="An overlap matrix, .csv or .json.")],
    second: Annotated[Path, typer.Argument(metavar="MATRIX", help="Another, for example of another architecture.")],
    threshold: Annotated[
        float | None, typer.Option(help="Also compare the benchmarks that both select at this threshold.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write all pairs with both scores (.csv).")] = None,
    figure: Figure = None,
    overwrite: Overwrite = False,
) -> None:
    """Compare two overlap matrices: their correlation, where they differ most, whether they select the same benchmark.

    Examples:

      blemish build compare scratch.csv finetuned.csv --threshold 0.1 --figure agreement.png
    """
    check_output(out, ".csv", figures=[figure], overwrite=overwrite)
    one, other = read_matrix(first), read_matrix(second)
    agreement = compare_matrices(one, other, threshold=threshold, largest=len(one.pairs()))
    say(
        f"{len(agreement.names)} common corruptions, {agreement.pairs} pairs: Pearson {agreement.pearson:.3f}, "
        f"Spearman {agreement.spearman:.3f}, mean difference {agreement.mean_difference:+.3f}"
    )
    rows = [
        [" – ".join(d.pair), f"{d.first:.3f}", f"{d.second:.3f}", f"{d.difference:+.3f}"]
        for d in agreement.largest[:10]
    ]
    shown(["largest differences", "first", "second", "difference"], rows)
    if agreement.selections:
        same = "the same benchmark is selected" if agreement.same_benchmark else "different benchmarks are selected"
        say(f"at threshold {threshold:g} {same}:")
        for path, selection in zip((first, second), agreement.selections, strict=True):
            say(f"  {path.name}: {', '.join(selection.members)}")
    if out is not None:
        lines = [[*d.pair, repr(d.first), repr(d.second), repr(d.difference)] for d in agreement.largest]
        write_rows(out, ["first", "second", first.name, second.name, "difference"], lines)
        say(f"wrote {out}")
    scores = [(d.first, d.second) for d in agreement.largest]
    draw(figure, lambda: agreement_figure(agreement, scores, names=(first.stem, second.stem)))
