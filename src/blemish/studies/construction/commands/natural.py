"""``blemish build natural``: do benchmarks predict robustness to natural corruptions?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blemish.core.errors import InputError
from blemish.studies.construction.benchmark_files import read_group
from blemish.studies.construction.commands.common import Figure, Percent, check_output, draw, shown, write_rows
from blemish.studies.construction.figures import correlation_figure
from blemish.studies.construction.natural import (
    GroupCorrelation,
    correlate_with_natural,
    mean_residuals,
    natural_residuals,
)
from blemish.studies.construction.tables import CLEAN, read_table
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import Plugins, Seed, chosen_catalog
from blemish.terminal.outputs import Overwrite
from blemish.terminal.printing import say
from blemish.terminal.results import Level

__all__ = ["natural_command"]


@exit_on_input_error
def natural_command(
    source: Annotated[Path, typer.Argument(metavar="TABLE", help="A .csv table of accuracies of many models.")],
    groups: Annotated[
        list[Path],
        typer.Argument(metavar="GROUP", help="Benchmark files, or folders of them, each a group of its own."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The table to write (.csv).")],
    natural: Annotated[
        list[str],
        typer.Option(
            "--natural", metavar="COLUMN[=CLEAN]", help="A natural set, and the clean accuracies for its classes."
        ),
    ],
    clean: Annotated[str, typer.Option(help="The column of clean accuracies.")] = CLEAN,
    partial: Annotated[
        bool, typer.Option("--partial", help="Control for clean accuracy (partial correlation).")
    ] = False,
    complete_only: Annotated[bool, typer.Option("--complete-only", help="Leave out models with empty cells.")] = False,
    resamples: Annotated[int, typer.Option(help="For intervals: how often models are drawn again; 0 for none.")] = 1000,
    level: Level = 0.95,
    seed: Seed = 0,
    percent: Percent = False,
    plugins: Plugins = None,
    figure: Figure = None,
    overwrite: Overwrite = False,
) -> None:
    """Correlate robustness to synthetic benchmarks with robustness to natural sets, over models.

    The table has a row for each model and the columns clean, one per corruption, and one per natural set. Robustness is
    what is lost: clean accuracy less accuracy. A set that has fewer classes needs a column of clean accuracies on these
    classes: --natural imagenet-a=val-on-imagenet-a-classes.

    Examples:

      blemish build natural models.csv n6k1 n6k2 -o result.csv --natural imagenet-v2 --natural imagenet-a=clean-a

      blemish build natural models.csv n6k2 -o partial.csv --natural imagenet-v2 --partial --figure partial.png
    """
    check_output(out, ".csv", figures=[figure], overwrite=overwrite)
    pairs = dict(_natural_pair(text, clean) for text in natural)
    catalog = chosen_catalog(plugins)
    named = {path.stem if path.suffix == ".toml" else path.name: read_group(path, catalog=catalog) for path in groups}
    if len(named) < len(groups):
        raise InputError("two groups have the same name; expected different file or folder names")
    corruptions = [name for group in named.values() for benchmark in group for name in benchmark]
    columns = list(dict.fromkeys([clean, *corruptions, *pairs, *pairs.values()]))
    unit = "percent" if percent else "fraction"
    table = read_table(source, unit=unit, columns=columns, complete_only=complete_only)
    control = table.columns([clean])[:, 0] if partial else None
    found = {
        name: correlate_with_natural(
            mean_residuals(table, group, clean=clean),
            natural_residuals(table, pairs),
            names=list(pairs),
            control=control,
            resamples=resamples,
            level=level,
            seed=seed,
        )
        for name, group in named.items()
    }
    kind = "partial correlation, clean accuracy held fixed" if partial else "correlation"
    say(
        f"mean {kind} over {len(table.models)} models (below: {100 * level:g} % interval over models)"
        if resamples
        else kind
    )
    _show({name: result.group for name, result in found.items()}, list(pairs))
    rows = [
        [name, len(named[name]), g.natural, f"{g.mean:.6g}", f"{g.p_value:.3g}", *_cells(g.low, g.high)]
        for name, result in found.items()
        for g in result.group
    ]
    write_rows(out, ["group", "benchmarks", "natural", "correlation", "p_value", "low", "high"], rows)
    say(f"wrote {out}")
    draw(figure, lambda: correlation_figure({name: r.group for name, r in found.items()}, title=f"Mean {kind}"))


def _natural_pair(text: str, clean: str) -> tuple[str, str]:
    column, _, own = text.partition("=")
    if not column.strip():
        raise InputError(f"--natural {text!r}; expected COLUMN or COLUMN=CLEAN")
    return column.strip(), own.strip() or clean


def _cells(low: float | None, high: float | None) -> list[str]:
    return ["" if value is None else f"{value:.6g}" for value in (low, high)]


def _show(groups: dict[str, tuple[GroupCorrelation, ...]], names: list[str]) -> None:
    rows = []
    for name, group in groups.items():
        rows.append([name, *(f"{g.mean:.3f}" for g in group), f"{sum(g.mean for g in group) / len(group):.3f}"])
        if group[0].low is not None:
            rows.append(["", *(f"{g.low:.2f}…{g.high:.2f}" for g in group), ""])
    shown(["group", *names, "mean"], rows)
