"""``blemish build categories``, ``generate``, ``unbalance`` and ``syn2nat``: benchmarks from categories."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from blemish.benchmarks.benchmark import Benchmark
from blemish.studies.construction.benchmark_files import make_benchmark, read_group, write_benchmark, write_groups
from blemish.studies.construction.categories import (
    STOP_ABOVE,
    CategoryCheck,
    check_categories,
    find_categories,
    read_categories,
    write_categories,
)
from blemish.studies.construction.commands.common import Figure, MatrixFile, Percent, check_output, draw, shown
from blemish.studies.construction.figures import overlap_figure, tree_figure
from blemish.studies.construction.generation import (
    DRAWS,
    count_benchmarks,
    generate_benchmarks,
    select_least_overlapping,
)
from blemish.studies.construction.matrices import read_matrix
from blemish.studies.construction.substitution import group_by_std, unbalanced
from blemish.studies.construction.tables import read_table
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import Plugins, Seed, Severities, chosen_catalog, chosen_severities
from blemish.terminal.outputs import Overwrite
from blemish.terminal.printing import say

CategoryFile = Annotated[
    Path, typer.Argument(metavar="CATEGORIES", help="A .json file: for every category a list of corruptions.")
]


def _mean(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


@exit_on_input_error
def categories_command(
    source: MatrixFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="The category file to write (.json).")],
    count: Annotated[
        int | None, typer.Option(help="This many categories. Default: increase until they are alike.")
    ] = None,
    stop_above: Annotated[
        float, typer.Option(help="Stop when overlap vectors of the same category correlate above this, on average.")
    ] = STOP_ABOVE,
    restarts: Annotated[int, typer.Option(min=1, max=1_000_000, help="Of K-means.")] = 100,
    seed: Seed = 0,
    models: Annotated[
        Path | None, typer.Option(metavar="TABLE", help="Check on these models' accuracies whether categories hold.")
    ] = None,
    percent: Percent = False,
    figure: Figure = None,
    tree: Annotated[Path | None, typer.Option(metavar="FILE", help="Also draw a dendrogram.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Split corruptions into categories that overlap alike: K-means on the rows of the matrix.

    Corruptions with undefined scores are left out, and named. With --models, an accuracy table of any models, residual
    robustness is correlated over models: it should be higher within categories than between them.

    Examples:

      blemish build categories overlap.csv -o categories.json --figure blocks.png --tree tree.png
    """
    check_output(out, ".json", figures=[figure, tree], overwrite=overwrite)
    matrix = read_matrix(source)
    kept = matrix.defined()
    if left_out := [name for name in matrix.names if name not in kept.names]:
        say(f"left out, because scores are undefined: {', '.join(left_out)}", style="yellow")
    categories, path = find_categories(kept, count=count, stop_above=stop_above, restarts=restarts, seed=seed)
    shown(["categories", "same", "different"], [[str(k), _mean(c.same), _mean(c.different)] for k, c in path])
    for name, members in categories.members.items():
        say(f"{name}: {', '.join(members)}")
    if models is not None:
        table = read_table(models, unit="percent" if percent else "fraction")
        _tell(check_categories(table, categories), len(table.models))
    write_categories(categories, out)
    say(f"wrote {out}: {len(categories.members)} categories")
    draw(figure, lambda: overlap_figure(kept, categories=categories, title="Overlapping scores by category"))
    draw(tree, lambda: tree_figure(kept, categories=categories))


def _tell(check: CategoryCheck, models: int) -> None:
    say(
        f"over {models} models, residual robustness correlates {_mean(check.same)} within categories and "
        f"{_mean(check.different)} between them"
    )


def _benchmarks(
    prefix: str,
    benchmarks: Sequence[Sequence[str]],
    severities: list[str] | None,
    plugins: list[str] | None,
    title: str = "",
) -> list[Benchmark]:
    """Benchmarks with numbered names, at these severities or at those that each catalogue was published with."""
    levels, catalog = chosen_severities(severities), chosen_catalog(plugins)
    width = len(str(len(benchmarks)))
    return [
        make_benchmark(f"{prefix}-{number:0{width}d}", members, title=title, severities=levels, catalog=catalog)
        for number, members in enumerate(benchmarks, start=1)
    ]


@exit_on_input_error
def generate_command(
    source: CategoryFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="A new folder for the benchmark files.")],
    n: Annotated[int, typer.Option("--categories", help="How many categories are represented.")],
    k: Annotated[int, typer.Option("--per-category", help="How many corruptions represent each.")],
    count: Annotated[int, typer.Option(max=1_000_000, help="How many different benchmarks.")] = 1000,
    draw: Annotated[
        str, typer.Option(metavar="|".join(DRAWS), help="; ".join(f"{name}: {how}" for name, how in DRAWS.items()))
    ] = "uniform",
    seed: Seed = 0,
    severities: Severities = None,
    plugins: Plugins = None,
) -> None:
    """Random benchmarks with k corruptions of each of n categories: all different.

    Every possible one is equally likely, or, with --draw categories-first, categories are drawn before corruptions, as
    in the Syn2Nat paper. That differs only where n is less than the number of categories: it prefers small ones. The
    title of each file says how it was drawn.

    Examples:

      blemish build generate categories.json -o n6k2 --categories 6 --per-category 2

      blemish build generate categories.json -o few --categories 2 --per-category 2 --count 10 --seed 1

      blemish build generate categories.json -o paper --categories 2 --per-category 3 --draw categories-first
    """
    categories = read_categories(source)
    drawn_sets = generate_benchmarks(categories, n=n, k=k, count=count, seed=seed, draw=draw)
    title = f"{n} of {len(categories.members)} categories, {k} corruptions of each; drawn {draw}, seed {seed}"
    write_groups({"": _benchmarks(f"n{n}k{k}", drawn_sets, severities, plugins, title)}, out)
    possible = count_benchmarks(categories, n=n, k=k)
    say(f"wrote {len(drawn_sets):,} benchmarks to {out}, of {possible:,} that there are, drawn {draw}: {DRAWS[draw]}")


@exit_on_input_error
def unbalance_command(
    source: CategoryFile,
    group: Annotated[
        Path, typer.Argument(metavar="GROUP", help="A folder of balanced benchmarks (blemish build generate).")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="A new folder; benchmarks go to std-0.58, std-0.82, …")],
    times: Annotated[int, typer.Option(min=1, help="Substitute 1 to this many corruptions of each.")] = 5,
    seed: Seed = 0,
    severities: Severities = None,
    plugins: Plugins = None,
) -> None:
    """Substitute corruptions so that categories are represented less and less evenly, and group by how uneven.

    A substitution keeps the represented categories and strictly increases the standard deviation (std) of their
    numbers of representatives.

    Examples:

      blemish build unbalance categories.json n6k2 -o uneven --times 5
    """
    categories = read_categories(source)
    balanced = read_group(group, catalog=chosen_catalog(plugins))
    groups = group_by_std(unbalanced(balanced, categories, times=times, seed=seed), categories)
    if not groups:
        say("no substitution is possible: no category has a corruption to spare", style="yellow")
        raise typer.Exit(1)
    names = [f"std-{spread.std:.2f}" for spread in groups]
    written = {
        name: _benchmarks(f"{group.name}-{name}", spread.benchmarks, severities, plugins)
        for name, spread in zip(names, groups, strict=True)
    }
    write_groups(written, out)
    shown(["group", "benchmarks"], [[name, str(len(spread))] for name, spread in written.items()])
    say(f"wrote {len(groups)} groups to {out}")


@exit_on_input_error
def syn2nat_command(
    matrix: MatrixFile,
    source: CategoryFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="The benchmark file to write (.toml).")],
    per_category: Annotated[
        int | None, typer.Option(help="Corruptions per category. Default: as many as possible.")
    ] = None,
    severities: Severities = None,
    plugins: Plugins = None,
    figure: Figure = None,
    overwrite: Overwrite = False,
) -> None:
    """The benchmark with all categories, k corruptions of each, whose same-category members overlap least.

    This is how ImageNet-Syn2Nat was selected.

    Examples:

      blemish build syn2nat overlap.csv categories.json -o syn2nat.toml
    """
    check_output(out, ".toml", figures=[figure], overwrite=overwrite)
    overlap, categories = read_matrix(matrix), read_categories(source)
    selection = select_least_overlapping(overlap, categories, k=per_category)
    (benchmark,) = _benchmarks(out.stem, [selection.members], severities, plugins)
    mean = (
        "no pairs within a category"
        if selection.mean is None
        else f"mean overlap within categories {selection.mean:.4f}"
    )
    title = f"all {len(categories.members)} categories, {selection.k} corruptions of each"
    write_benchmark(Benchmark(out.stem, title, benchmark.metric, benchmark.conditions), out)
    say(f"{title}; {mean}" + ("" if selection.proven else " (a lower one is not ruled out)"))
    say("  " + ", ".join(selection.members), style="cyan")
    say(f"wrote {out}")
    draw(figure, lambda: overlap_figure(overlap, categories=categories, chosen=selection.members, title=title))
