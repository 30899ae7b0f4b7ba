"""``blemish build select``, ``sweep``, ``coverage`` and ``balance``: benchmarks that do not overlap."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from blemish.benchmarks.files import load_benchmark
from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.marks import MADE_WITH
from blemish.studies.construction.benchmark_files import make_benchmark, write_benchmark
from blemish.studies.construction.cliques import DEFAULT_STEPS
from blemish.studies.construction.commands.common import (
    Covering,
    Figure,
    MatrixFile,
    Percent,
    Steps,
    TableCorruptions,
    check_output,
    draw,
    shown,
    write_rows,
)
from blemish.studies.construction.coverage import (
    COVERING_SCORE,
    Gained,
    balance,
    coverage_by_overlap,
    coverage_by_training,
    mean_corruption_errors,
)
from blemish.studies.construction.figures import balance_figure, overlap_figure, sweep_figure
from blemish.studies.construction.matrices import read_matrix
from blemish.studies.construction.selection import APPENDIX_B, DEFAULT_LIMIT, select_non_overlapping, sweep_thresholds
from blemish.studies.construction.tables import STANDARD, read_table
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import Plugins, chosen_catalog
from blemish.terminal.lists import listed, numbers
from blemish.terminal.outputs import Overwrite
from blemish.terminal.printing import say


@exit_on_input_error
def select_command(
    source: MatrixFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="The benchmark file to write (.toml).")],
    threshold: Annotated[
        float, typer.Option(help="No two corruptions of the benchmark overlap more, from 0 to 1.")
    ] = 0.1,
    optima: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all subsets of the largest size as well.")
    ] = None,
    max_optima: Annotated[
        int, typer.Option(max=1_000_000, help="List at most this many of them; the choice is exact anyway.")
    ] = DEFAULT_LIMIT,
    steps: Steps = DEFAULT_STEPS,
    plugins: Plugins = None,
    figure: Figure = None,
    overwrite: Overwrite = False,
) -> None:
    """The largest benchmark of corruptions that do not overlap; of several, the one with the lowest mean score.

    Exact, also for hundreds of corruptions. The benchmark file is one that "blemish run" takes.

    Examples:

      blemish build select overlap.csv -o non-overlapping.toml --threshold 0.1

      blemish build select overlap.csv -o nob.toml --threshold 0.2 --optima all.json --figure chosen.png
    """
    check_output(out, ".toml", figures=[figure], overwrite=overwrite)
    check_output(optima, ".json", overwrite=overwrite)
    matrix = read_matrix(source)
    selection = select_non_overlapping(matrix, threshold=threshold, limit=max_optima, steps=steps)
    title = f"{selection.size} corruptions with overlapping scores of at most {threshold:g}"
    write_benchmark(make_benchmark(out.stem, selection.members, title=title, catalog=chosen_catalog(plugins)), out)
    say(selection.explain())
    say("  " + ", ".join(selection.members), style="cyan")
    say(f"wrote {out}")
    if optima is not None:
        content = {"made_with": MADE_WITH, "threshold": threshold, "size": selection.size, "count": selection.count}
        content["subsets"] = selection.optima
        write_bytes(optima, (json.dumps(content, indent=1) + "\n").encode())
        say(f"wrote {optima}: {len(selection.optima):,} subsets")
    # The chosen ones first, so that their block is easy to see.
    rest = [name for name in matrix.names if name not in selection.members]
    ordered = matrix.only([*selection.members, *rest])
    draw(figure, lambda: overlap_figure(ordered, chosen=selection.members, title=title))


@exit_on_input_error
def sweep_command(
    source: MatrixFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="The table to write (.csv): a row for each threshold.")],
    thresholds: Annotated[
        str, typer.Option(help="Numbers from 0 to 1, separated by commas. Default: those of the paper's Appendix B.")
    ] = ",".join(f"{value:g}" for value in APPENDIX_B),
    steps: Steps = DEFAULT_STEPS,
    figure: Figure = None,
    overwrite: Overwrite = False,
) -> None:
    """The non-overlapping benchmark at several thresholds: how size and overlap grow.

    Examples:

      blemish build sweep overlap.csv -o sweep.csv --figure sweep.png
    """
    check_output(out, ".csv", figures=[figure], overwrite=overwrite)
    swept = sweep_thresholds(
        read_matrix(source), thresholds=numbers(thresholds, "--thresholds", such_as="0.1,0.2"), steps=steps
    )
    rows, lines = [], []
    for item in swept:
        if item.selection is None:
            rows.append([f"{item.threshold:g}", "–", "–", "–", item.reason])
            lines.append([item.threshold, 0, "", "", "", item.reason])
            continue
        selection = item.selection
        count = "more than listed" if selection.count is None else str(selection.count)
        rows.append(
            [f"{item.threshold:g}", str(selection.size), count, f"{selection.mean:.3f}", ", ".join(selection.members)]
        )
        note = "" if selection.proven else f"lowest mean not proven; none below {selection.mean_bound:.6g}"
        members = " ".join(selection.members)
        lines.append([item.threshold, selection.size, selection.count or "", f"{selection.mean:.6g}", members, note])
    shown(["threshold", "size", "largest subsets", "mean score", "benchmark"], rows)
    write_rows(out, ["threshold", "size", "largest_subsets", "mean_score", "benchmark", "note"], lines)
    say(f"wrote {out}")
    draw(figure, lambda: sweep_figure(swept))


@exit_on_input_error
def coverage_command(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="An overlap matrix; with --row, an accuracy table.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The table to write (.csv): a row for each corruption.")],
    benchmark: Annotated[
        str | None,
        typer.Option("--benchmark", "-b", help='The benchmark: a name from "blemish benchmarks", or a .toml file.'),
    ] = None,
    corruptions: TableCorruptions = None,
    covering: Covering = COVERING_SCORE,
    row: Annotated[
        str | None, typer.Option(help="Instead: the row of a model trained on all of a benchmark's corruptions.")
    ] = None,
    percent: Percent = False,
    plugins: Plugins = None,
    overwrite: Overwrite = False,
) -> None:
    """Which corruptions does a benchmark cover?

    From an overlap matrix: those that overlap one of its members enough. From an accuracy table: those to which a model
    trained on the whole benchmark (--row) is more robust than the standard one.

    Examples:

      blemish build coverage overlap.csv -c fog,jpeg_compression,elastic_transform -o covered.csv

      blemish build coverage accuracies.csv --row trained_on_all -o covered.csv
    """
    check_output(out, ".csv", overwrite=overwrite)
    if [benchmark is None, not corruptions, row is None].count(False) != 1:
        raise InputError(
            "expected either --benchmark or --corruption, with an overlap matrix, or --row, with an accuracy table"
        )
    if row is not None:
        table = read_table(source, unit="percent" if percent else "fraction")
        header, rows = gained_rows(coverage_by_training(table, row), row)
    else:
        names = listed(corruptions)
        if benchmark is not None:
            names = list(load_benchmark(benchmark, catalog=chosen_catalog(plugins)).groups)
        coverage = coverage_by_overlap(read_matrix(source), names, threshold=covering)
        header = ["corruption", "overlaps most with", "score", "covered"]
        rows = [
            [c.corruption, c.by or "–", "undefined" if math.isnan(c.score) else f"{c.score:.4f}", _yes(c.covered)]
            for c in coverage
        ]
    shown(header, rows)
    covered = sum(row[-1] == "yes" for row in rows)
    say(f"{covered} of {len(rows)} corruptions are covered")
    write_rows(out, header, rows)
    say(f"wrote {out}")


def gained_rows(gained: Sequence[Gained], model: str) -> tuple[list[str], list[list[str]]]:
    """What a model trained on a whole benchmark is more robust to, as the header and the rows of a table."""
    header = ["corruption", STANDARD, model, "gain", "covered"]
    return header, [
        [g.corruption, f"{g.standard:.4f}", f"{g.trained:.4f}", f"{g.gain:+.4f}", _yes(g.covered)] for g in gained
    ]


def _yes(value: bool) -> str:
    return "yes" if value else "no"


@exit_on_input_error
def balance_command(
    source: Annotated[Path, typer.Argument(metavar="TABLE", help="A .csv table of accuracies.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The table to write (.csv): the mCE of each model.")],
    baseline: Annotated[str, typer.Option(help="The row to whose errors corruption errors are relative.")] = "alexnet",
    plain: Annotated[
        bool,
        typer.Option(
            "--plain", help="Plain CE, E / E_base. Default: relative to the clean error, as in the NOC paper."
        ),
    ] = False,
    percent: Percent = False,
    figure: Figure = None,
    overwrite: Overwrite = False,
) -> None:
    """How evenly does a benchmark weigh its corruptions? The spread of mCE over models trained on one of them each.

    Examples:

      blemish build table imagenet-c -o accuracies.csv

      blemish build balance accuracies.csv -o balance.csv --figure balance.png
    """
    check_output(out, ".csv", figures=[figure], overwrite=overwrite)
    table = read_table(source, unit="percent" if percent else "fraction")
    trained = [model for model in table.models if model in table.settings]
    if not trained:
        raise InputError(
            f"{source}: no row is named like a column; expected a row for the model trained on each corruption"
        )
    balanced = balance(mean_corruption_errors(table, baseline=baseline, models=trained, relative=not plain))
    ordered = sorted(balanced.scores.items(), key=lambda item: item[1])
    shown(["trained on", "mCE"], [[name, f"{value:.1f}"] for name, value in ordered])
    say(f"standard deviation {balanced.std:.2f}, range {balanced.range:.2f} (the smaller, the more balanced)")
    write_rows(out, ["trained_on", "mce_percent"], [[name, f"{value:.6g}"] for name, value in ordered])
    say(f"wrote {out}")
    draw(figure, lambda: balance_figure(balanced))
