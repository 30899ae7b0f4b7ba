"""``blemish build core`` and ``stability``: the least set that covers the most, and how stable choices are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from blemish.core.errors import InputError
from blemish.studies.construction.benchmark_files import make_benchmark, write_benchmark
from blemish.studies.construction.cliques import DEFAULT_STEPS
from blemish.studies.construction.commands.common import (
    Covering,
    Figure,
    MatrixFile,
    Percent,
    Steps,
    check_output,
    draw,
    shown,
    write_rows,
)
from blemish.studies.construction.core import Core, select_core
from blemish.studies.construction.coverage import COVERING_SCORE, balance_by
from blemish.studies.construction.figures import overlap_figure
from blemish.studies.construction.gather import Correct, read_correct
from blemish.studies.construction.matrices import OverlapMatrix, read_matrix
from blemish.studies.construction.overlap import overlap_matrix
from blemish.studies.construction.selection import select_non_overlapping
from blemish.studies.construction.stability import Stability, choice_stability, resampled_matrices
from blemish.studies.construction.tables import STANDARD, AccuracyTable, read_table
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import Plugins, Seed, chosen_catalog
from blemish.terminal.outputs import Overwrite
from blemish.terminal.printing import say

Threshold = Annotated[float, typer.Option(help="No two corruptions of a benchmark overlap more, from 0 to 1.")]


@exit_on_input_error
def core_command(
    source: MatrixFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="The benchmark file to write (.toml).")],
    threshold: Threshold = 0.1,
    covering: Covering = COVERING_SCORE,
    accuracies: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The table of accuracies, to break ties by balance instead of mean score."),
    ] = None,
    baseline: Annotated[
        str, typer.Option(help="With --accuracies: the row to whose errors corruption errors are relative.")
    ] = STANDARD,
    percent: Percent = False,
    covered: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write what covers each corruption (.csv) as well.")
    ] = None,
    steps: Steps = DEFAULT_STEPS,
    plugins: Plugins = None,
    figure: Figure = None,
    overwrite: Overwrite = False,
) -> None:
    """The smallest benchmark without overlaps that covers as many of all corruptions as any such benchmark can.

    Exact, or with a bound that is said. Of several, the most balanced one (--accuracies) or the one with the lowest
    mean score is taken. What stays uncovered is listed.

    Examples:

      blemish build core overlap.csv -o core.toml --accuracies accuracies.csv --covered covered.csv
    """
    check_output(out, ".toml", figures=[figure], overwrite=overwrite)
    check_output(covered, ".csv", overwrite=overwrite)
    matrix = read_matrix(source)
    weigh = None
    if accuracies is not None:
        table = read_table(accuracies, unit="percent" if percent else "fraction")
        weigh = balance_by(table, baseline=baseline)
    core = select_core(matrix, threshold=threshold, covering=covering, balance=weigh, steps=steps)
    title = f"{len(core.members)} corruptions that cover {core.coverage} of {len(matrix.names)}"
    write_benchmark(make_benchmark(out.stem, core.members, title=title, catalog=chosen_catalog(plugins)), out)
    say(core.explain())
    _show(core)
    say(f"wrote {out}")
    if covered is not None:
        rows = [[name, name, "1"] for name in core.members]
        rows += [[name, by, f"{matrix.score(name, by):.6g}"] for name, by in core.covered.items()]
        rows += [[name, "", ""] for name in core.uncovered]
        write_rows(covered, ["corruption", "covered_by", "score"], rows)
        say(f"wrote {covered}")
    families = [name for member in core.members for name in (member, *_family(core, member))]
    ordered = matrix.only([*families, *core.uncovered])
    draw(figure, lambda: overlap_figure(ordered, chosen=core.members, title=title))


def _family(core: Core, member: str) -> list[str]:
    return [name for name, by in core.covered.items() if by == member]


def _show(core: Core) -> None:
    shown(["member", "covers"], [[name, ", ".join(_family(core, name)) or "–"] for name in core.members])
    if core.uncovered:
        say(f"not covered: {', '.join(core.uncovered)}", style="yellow")


@exit_on_input_error
def stability_command(
    sources: Annotated[
        list[Path], typer.Argument(metavar="CORRECT.npz…", help="Correctness image by image, a file per training seed.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The table to write (.csv): a row for each corruption.")],
    threshold: Threshold = 0.1,
    core: Annotated[bool, typer.Option("--core", help="Of the core instead of the largest benchmark.")] = False,
    covering: Covering = COVERING_SCORE,
    resamples: Annotated[
        int, typer.Option("--replicates", min=2, max=100_000, help="How often test images are drawn again.")
    ] = 100,
    steps: Steps = DEFAULT_STEPS,
    seed: Seed = 0,
    overwrite: Overwrite = False,
) -> None:
    """How stable is the choice of a benchmark? Choose again from resampled test images, and from each training seed.

    The reference is chosen from the accuracies of all seeds together. Twins replace each other easily, so it is also
    told how much of the reference a choice covers.

    Examples:

      blemish build stability seed0.npz seed1.npz seed2.npz -o stability.csv --threshold 0.1
    """
    check_output(out, ".csv", overwrite=overwrite)
    measured = [read_correct(source) for source in sources]
    reference = overlap_matrix(_mean_table(measured))

    def choose(matrix: OverlapMatrix) -> tuple[str, ...]:
        if core:
            return select_core(matrix, threshold=threshold, covering=covering, steps=steps).members
        return select_non_overlapping(matrix, threshold=threshold, steps=steps).members

    def judged(matrices: list[OverlapMatrix]) -> Stability:
        return choice_stability(reference, matrices, choose, covering=covering)

    drawn = [
        judged(list(resampled_matrices(one.correct, one.models, one.settings, resamples=resamples, seed=seed)))
        for one in measured
    ]
    columns = {f"{source.stem}_resampled": one for source, one in zip(sources, drawn, strict=True)}
    if len(measured) > 1:
        columns["seeds"] = judged([overlap_matrix(_mean_table([one])) for one in measured])
    say(f"chosen from all: {', '.join(drawn[0].reference)}")
    rows = [
        [title, f"{one.same:.2f}", f"{one.likeness:.2f}", f"{np.mean(one.replaced):.2f}", _sizes(one)]
        for title, one in columns.items()
    ]
    shown(["choices", "the same", "members in common", "of it covered", "sizes"], rows)
    shares = [one.shares() for one in columns.values()]
    lines = [
        [name, "yes" if name in drawn[0].reference else "no", *(f"{share[name]:.4g}" for share in shares)]
        for name in reference.names
    ]
    write_rows(out, ["corruption", "chosen", *columns], lines)
    say(f"wrote {out}")


def _mean_table(measured: list[Correct]) -> AccuracyTable:
    first = measured[0]
    for one in measured:
        if (one.models, one.settings) != (first.models, first.settings):
            raise InputError("the files hold other models or settings; expected the same in all of them")
    return AccuracyTable(first.models, first.settings, np.mean([one.correct.mean(axis=2) for one in measured], axis=0))


def _sizes(stability: Stability) -> str:
    return ", ".join(f"{size} ({count})" for size, count in stability.sizes.items())
