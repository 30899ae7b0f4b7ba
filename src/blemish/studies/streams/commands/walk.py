"""``blemish ccc walk``: from corruption to corruption, at one accuracy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.statistics import Estimate
from blemish.studies.streams.calibration import read_calibration
from blemish.studies.streams.certainty import mean_interval
from blemish.studies.streams.commands.options import (
    PathRule,
    PublishedSet,
    check_figures,
    chosen_corruptions,
    path_rule,
)
from blemish.studies.streams.figures import surface_figure, walk_figure
from blemish.studies.streams.levels import find_set
from blemish.studies.streams.paths import SeverityPath
from blemish.studies.streams.surface import Surface, repaired
from blemish.studies.streams.walks import Walk, find_paths, make_walk, usable_corruptions
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import Corruptions, Plugins, chosen_catalog
from blemish.terminal.outputs import Overwrite, check_replaceable
from blemish.terminal.printing import say

__all__ = ["walk_command"]


@exit_on_input_error
def walk_command(
    calibration: Annotated[Path, typer.Argument(metavar="SURFACES", help="A folder that blemish ccc calibrate made.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The walk, a .json file.")],
    target: Annotated[float | None, typer.Option(help="Accuracy to hold, such as 0.4. Default: the set's.")] = None,
    published: PublishedSet = None,
    corruptions: Corruptions = None,
    objective: PathRule = "pointwise",
    speed: Annotated[
        int | None, typer.Option(min=1, help="Images per step. Default: the set's first, or 1000.")
    ] = None,
    images: Annotated[int | None, typer.Option(min=1, help="At least so many. Default: the set's, or 100,000.")] = None,
    seed: Annotated[int, typer.Option(help="43, 44 and 45 are the release's.")] = 43,
    start: Annotated[str | None, typer.Option(help="The corruption to begin with.")] = None,
    end: Annotated[str | None, typer.Option(help="The corruption to end with.")] = None,
    closed: Annotated[
        bool | None, typer.Option("--closed/--open", help="End where it began, so that a stream can repeat it.")
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="Leave out corruptions that alone stay farther than this from the target.")
    ] = None,
    repair: Annotated[bool, typer.Option("--repair", help="First make accuracy fall with severity.")] = False,
    figure: Annotated[Path | None, typer.Option(help="Also draw the walk: .png, .svg or .pdf.")] = None,
    surface: Annotated[
        Path | None, typer.Option(help="Also draw the surface and path of the walk's first pair.")
    ] = None,
    plugins: Plugins = None,
    overwrite: Overwrite = False,
) -> None:
    """Plan a walk from corruption to corruption that holds a model at one accuracy.

    Examples:

      blemish ccc walk surfaces --set easy -o easy.json --figure easy.png

      blemish ccc walk surfaces --target 0.4 -c fog,snow,contrast --speed 500 --images 50000 --closed -o walk.json
    """
    rule = path_rule(objective)
    check_figures(figure, surface)
    check_replaceable(out, figure, surface, overwrite=overwrite)
    known, protocol = read_calibration(calibration)
    if repair:
        known = {pair: repaired(plane) for pair, plane in known.items()}
    chosen = None if published is None else find_set(published)
    goal = target if target is not None else _only_target(published)
    names = chosen_corruptions(corruptions, None if corruptions else published, chosen_catalog(plugins))
    if tolerance is not None:
        names = usable_corruptions(known, goal, tolerance=tolerance, names=names)
    paths = find_paths(known, goal, objective=rule, names=names)
    walk = make_walk(
        paths,
        images=images or (chosen.images if chosen else 100_000),
        speed=speed or (chosen.speeds[0] if chosen else 1000),
        seed=seed,
        start=start,
        end=end,
        closed=(chosen.closed if chosen else False) if closed is None else closed,
        protocol={"set": published, "repair": repair, "calibration": protocol},
    )
    write_bytes(out, walk.to_json().encode())
    cells = _cells(known, walk)
    _describe(walk, list(paths.values()), out, None if repair else _walk_interval(cells))
    _note_guesses(cells)
    if chosen is not None and chosen.subset is not None:
        say(f"{chosen.name} shows {chosen.subset:,} images again and again: run it with --limit {chosen.subset}", "dim")
    if figure is not None:
        walk_figure(walk, figure)
    if surface is not None:
        first = walk.steps[0]
        surface_figure([known[first.first, first.second]], surface, targets=(goal,), objective=rule)


def _only_target(published: str | None) -> float:
    targets = () if published is None else find_set(published).targets
    if len(targets) != 1:
        choice = f"; {published} has {', '.join(f'{value:g}' for value in targets)}" if targets else ", such as 0.4"
        raise InputError(f"no target accuracy; expected --target{choice}")
    return targets[0]


def _cells(surfaces: Mapping[tuple[str, str], Surface], walk: Walk) -> list[tuple[Surface, tuple[int, int]]]:
    """For each step of a walk its surface and the cell in it."""
    planes = [surfaces[step.first, step.second] for step in walk.steps]
    return [
        (plane, (plane.grid.index(step.first_severity), plane.grid.index(step.second_severity)))
        for plane, step in zip(planes, walk.steps, strict=True)
    ]


def _walk_interval(cells: Sequence[tuple[Surface, tuple[int, int]]]) -> Estimate | None:
    """The interval of a walk's mean accuracy; all its steps were calibrated on the same images."""
    if _guesses(cells) or cells[0][0].images < 2:
        return None
    return mean_interval(plane.right(cell) for plane, cell in cells)


def _guesses(cells: Sequence[tuple[Surface, tuple[int, int]]]) -> int:
    return sum(plane.measured is not None and not plane.measured[cell] for plane, cell in cells)


def _note_guesses(cells: Sequence[tuple[Surface, tuple[int, int]]]) -> None:
    """Cells were chosen for other targets, another objective or a surface without repair: the accuracy may be off."""
    if guessed := _guesses(cells):
        say(
            f"{guessed} of {len(cells)} steps have an accuracy that was interpolated, not measured: calibrate with "
            "--targets and --objective as here, or without --targets",
            style="yellow",
        )


def _describe(walk: Walk, paths: Sequence[SeverityPath], out: Path, mean: Estimate | None) -> None:
    kind = "closed" if walk.closed else "open"
    say(f"wrote {out}: {len(walk):,} images in {len(walk.steps)} steps, {kind}, {walk.protocol['objective']} paths")
    target = float(walk.protocol["target"])
    deviation = np.average(
        [abs(step.accuracy - target) for step in walk.steps], weights=[step.images for step in walk.steps]
    )
    within = "" if mean is None else f" ({100 * mean.low:.1f} … {100 * mean.high:.1f} at 95 %)"
    say(
        f"calibrated accuracy {100 * walk.accuracy:.1f} %{within}, target {100 * target:g} %, "
        f"{100 * deviation:.1f} off a step"
    )
    worst = max(paths, key=lambda path: path.deviation)
    say(f"worst path: {worst.first} to {worst.second}, {100 * worst.deviation:.1f} points off", style="dim")
