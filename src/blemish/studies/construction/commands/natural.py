"""``blemish build natural``: do benchmarks predict robustness to natural corruptions?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from blemish.benchmarks.condition import SEQUENCES
from blemish.core.errors import InputError
from blemish.studies.construction.benchmark_files import read_group
from blemish.studies.construction.commands.common import Figure, Percent, check_output, draw, shown, write_rows
from blemish.studies.construction.figures import correlation_figure
from blemish.studies.construction.natural import (
    Floats,
    GroupCorrelation,
    correlate_with_natural,
    mean_residuals,
    natural_residuals,
)
from blemish.studies.construction.tables import CLEAN, AccuracyTable, as_accuracies, read_columns, read_numbers
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import Plugins, Seed, chosen_catalog
from blemish.terminal.outputs import Overwrite
from blemish.terminal.printing import say
from blemish.terminal.results import Level

_NATURAL = "natural:"


@exit_on_input_error
def natural_command(
    source: Annotated[
        Path, typer.Argument(metavar="TABLE", help="A .csv table of many models (blemish score --by-model).")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The table to write (.csv).")],
    groups: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="GROUP", help="Benchmarks: built-in names, files, or folders of files; each is a group of its own."
        ),
    ] = None,
    scores: Annotated[
        list[str] | None,
        typer.Option(
            "--score",
            metavar="COLUMN",
            help="A column that is compared as it is, such as imagenet-p:mfr: no loss from clean; more is worse.",
        ),
    ] = None,
    natural: Annotated[
        list[str] | None,
        typer.Option(
            "--natural",
            metavar="COLUMN[=CLEAN]",
            help="A natural set, and the clean accuracies for its classes. Default: all columns natural:….",
        ),
    ] = None,
    clean: Annotated[str, typer.Option(help="The column of clean accuracies.")] = CLEAN,
    partial: Annotated[
        bool, typer.Option("--partial", help="Control for clean accuracy (partial correlation).")
    ] = False,
    complete_only: Annotated[bool, typer.Option("--complete-only", help="Leave out models with empty cells.")] = False,
    resamples: Annotated[
        int, typer.Option("--replicates", help="For intervals: how often models are drawn again; 0 for none.")
    ] = 1000,
    level: Level = 0.95,
    seed: Seed = 0,
    percent: Percent = False,
    plugins: Plugins = None,
    figure: Figure = None,
    overwrite: Overwrite = False,
) -> None:
    """Correlate robustness to synthetic benchmarks with robustness to natural sets, over models.

    The table has a row for each model and the columns clean, one per corruption, and two per natural set: natural:NAME,
    and clean:NAME for the clean accuracies on its classes (without it, clean). "blemish score --by-model" writes such a
    table from results, and "blemish build table testbed" a published one. Robustness is what is lost: clean accuracy
    less accuracy. ImageNet-P has no accuracies: its mFR enters as it is (--score).

    Examples:

      blemish build table testbed -o models.csv

      blemish build natural models.csv imagenet-c -o result.csv

      blemish build natural models.csv n6k1 n6k2 -o result.csv --natural imagenet-v2 --natural imagenet-a=clean-a

      blemish build natural models.csv --score imagenet-p:mfr -o result.csv --partial --figure partial.png
    """
    check_output(out, ".csv", figures=[figure], overwrite=overwrite)
    if not groups and not scores:
        raise InputError("nothing to compare with natural sets; expected benchmarks, folders of them, or --score")
    known = read_columns(source)
    pairs = _natural_pairs(natural, known, clean)
    inputs = _Found(source, _groups(groups or [], plugins), scores or [], pairs, clean)
    table, values = inputs.read(complete_only=complete_only, unit="percent" if percent else "fraction")
    names = [name.removeprefix(_NATURAL) for name in pairs]
    results = {
        name: correlate_with_natural(
            synthetic,
            natural_residuals(table, pairs),
            names=names,
            control=table.columns([clean])[:, 0] if partial else None,
            resamples=resamples,
            level=level,
            seed=seed,
        )
        for name, synthetic in values.items()
    }
    kind = "partial correlation, clean accuracy held fixed" if partial else "correlation"
    say(
        f"mean {kind} over {len(table.models)} models (below: {100 * level:g} % interval over models)"
        if resamples
        else f"mean {kind} over {len(table.models)} models"
    )
    _show({name: result.group for name, result in results.items()}, names)
    rows = [
        [name, count, how, g.natural, f"{g.mean:.6g}", f"{g.p_value:.3g}", *_cells(g.low, g.high)]
        for (name, result), (count, how) in zip(results.items(), map(inputs.kind, results), strict=True)
        for g in result.group
    ]
    write_rows(out, ["group", "benchmarks", "scored_by", "natural", "correlation", "p_value", "low", "high"], rows)
    say(f"wrote {out}")
    draw(figure, lambda: correlation_figure({name: r.group for name, r in results.items()}, title=f"Mean {kind}"))


@dataclass(frozen=True)
class _Found:
    """What is to be compared with what, by the names of a table's columns."""

    source: Path
    groups: dict[str, list[tuple[str, ...]]]
    scores: list[str]
    pairs: dict[str, str]
    clean: str

    def read(self, *, complete_only: bool, unit: str) -> tuple[AccuracyTable, dict[str, Floats]]:
        """The accuracies, and for each group the scores of its benchmarks, (models, benchmarks)."""
        if twice := sorted(set(self.groups) & set(self.scores)):
            raise InputError(f"{twice[0]} is the name of a group and of a score; expected different names")
        members = [name for group in self.groups.values() for benchmark in group for name in benchmark]
        columns = list(dict.fromkeys([self.clean, *members, *self.pairs, *self.pairs.values()]))
        wanted = [*columns, *(name for name in self.scores if name not in columns)]
        models, names, values = read_numbers(self.source, columns=wanted, complete_only=complete_only)
        count = len(columns)
        table = as_accuracies(self.source, models, columns, values[:, :count], unit=unit)
        residuals = {name: mean_residuals(table, group, clean=self.clean) for name, group in self.groups.items()}
        return table, residuals | {name: values[:, [names.index(name)]] for name in self.scores}

    def kind(self, name: str) -> tuple[int, str]:
        """Of a group: how many benchmarks it has, and what is compared of them."""
        return (len(self.groups[name]), "mean loss of accuracy") if name in self.groups else (1, "the column as it is")


def _groups(paths: list[Path], plugins: list[str] | None) -> dict[str, list[tuple[str, ...]]]:
    catalog = chosen_catalog(plugins)
    named = {path.stem if path.suffix == ".toml" else path.name: read_group(path, catalog=catalog) for path in paths}
    if len(named) < len(paths):
        raise InputError("two groups have the same name; expected different file or folder names")
    for name, group in named.items():
        if any(member.startswith(SEQUENCES) for benchmark in group for member in benchmark):
            raise InputError(
                f"{name} has sequences, which have no accuracy to lose; expected --score {name}:mfr instead"
            )
    return named


def _natural_pairs(natural: list[str] | None, known: list[str], clean: str) -> dict[str, str]:
    """The column of each natural set, and that of its clean accuracies."""
    sets = natural or [name for name in known if name.startswith(_NATURAL)]
    if not sets:
        raise InputError(f"no columns {_NATURAL}… in the table; expected --natural to name the natural sets")
    return dict(_natural_pair(text, known, clean) for text in sets)


def _natural_pair(text: str, known: list[str], clean: str) -> tuple[str, str]:
    column, _, own = (part.strip() for part in text.partition("="))
    if not column:
        raise InputError(f"--natural {text!r}; expected COLUMN or COLUMN=CLEAN")
    if column not in known and f"{_NATURAL}{column}" in known:
        column = f"{_NATURAL}{column}"
    same_classes = f"clean:{column.removeprefix(_NATURAL)}"
    return column, own or (same_classes if same_classes in known else clean)


def _cells(low: float | None, high: float | None) -> list[str]:
    return ["" if value is None else f"{value:.6g}" for value in (low, high)]


def _show(groups: dict[str, tuple[GroupCorrelation, ...]], names: list[str]) -> None:
    rows = []
    for name, group in groups.items():
        rows.append([name, *(f"{g.mean:.3f}" for g in group), f"{sum(g.mean for g in group) / len(group):.3f}"])
        if group[0].low is not None:
            rows.append(["", *(f"{g.low:.2f}…{g.high:.2f}" for g in group), ""])
    shown(["group", *names, "mean"], rows)
