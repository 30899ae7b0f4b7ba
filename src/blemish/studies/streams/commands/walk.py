"""``blemish ccc walk``: from corruption to corruption, at one accuracy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, cast

import numpy as np
import typer

from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.statistics import Estimate
from blemish.studies.streams.calibration import read_calibration
from blemish.studies.streams.certainty import mean_interval
from blemish.studies.streams.commands.options import (
    ObjectiveName,
    SetName,
    Surfaces,
    changes_text,
    check_figures,
    chosen_corruptions,
    guesses_text,
    path_rule,
    warn,
)
from blemish.studies.streams.figures import surface_figure, walk_figure
from blemish.studies.streams.levels import WalkSet, find_set
from blemish.studies.streams.paths import path_over
from blemish.studies.streams.planning import (
    ENDS,
    Ends,
    PathRule,
    WalkCell,
    calibrated_for,
    make_walk,
    usable_corruptions,
    walk_cells,
)
from blemish.studies.streams.seams import SEAM_WEIGHT
from blemish.studies.streams.surface import repaired
from blemish.studies.streams.walks import Seams, Walk
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import Corruptions, Plugins, chosen_catalog
from blemish.terminal.outputs import Overwrite, check_replaceable
from blemish.terminal.printing import say


@exit_on_input_error
def walk_command(
    calibration: Surfaces,
    out: Annotated[Path, typer.Option("--out", "-o", help="The walk, a .json file.")],
    target: Annotated[float | None, typer.Option(help="Accuracy to hold, such as 0.4. Default: the set's.")] = None,
    set_name: SetName = None,
    corruptions: Corruptions = None,
    objective: ObjectiveName = None,
    ends: Annotated[
        str | None,
        typer.Option(
            help="joint: paths of the walk are chosen together, so that they meet; independent: each for itself. "
            "Default: the set's, or joint (independent with the release's rule).",
        ),
    ] = None,
    seam_weight: Annotated[
        float,
        typer.Option(help="For joint ends: what a jump by one severity counts, beside deviations in shares of 1."),
    ] = SEAM_WEIGHT,
    speed: Annotated[
        int | None, typer.Option(min=1, help="Images per step. Default: the set's first, or 1000.")
    ] = None,
    length: Annotated[
        int | None, typer.Option(min=1, help="At least so many images. Default: the set's, or 100,000.")
    ] = None,
    seed: Annotated[int, typer.Option(help="43, 44 and 45 are the release's.")] = 43,
    start: Annotated[str | None, typer.Option(help="The corruption to begin with.")] = None,
    end: Annotated[str | None, typer.Option(help="The corruption to end with.")] = None,
    closed: Annotated[
        bool | None, typer.Option("--closed/--not-closed", help="End where it began, so that a stream can repeat it.")
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

      blemish ccc walk surfaces --target 0.4 -c fog,snow,contrast --speed 500 --length 50000 --closed -o walk.json
    """
    chosen = None if set_name is None else find_set(set_name)
    rule = path_rule(objective, chosen)
    check_figures(figure, surface)
    check_replaceable(out, figure, surface, overwrite=overwrite)
    known, measured = read_calibration(calibration)
    if repair:
        known = {pair: repaired(plane) for pair, plane in known.items()}
    goal = target if target is not None else _only_target(chosen)
    names = chosen_corruptions(corruptions, chosen, chosen_catalog(plugins))
    if tolerance is not None:
        names = usable_corruptions(known, goal, tolerance=tolerance, names=names)
    settings = PathRule(
        goal,
        rule,
        _chosen_ends(ends, chosen, rule),
        seam_weight,
        measured_only=not repair and calibrated_for(measured, goal),
    )
    walk = make_walk(
        known,
        settings,
        images=length or (chosen.images if chosen else 100_000),
        speed=speed or (chosen.speeds[0] if chosen else 1000),
        names=names,
        seed=seed,
        start=start,
        end=end,
        closed=(chosen.closed if chosen else False) if closed is None else closed,
        repair=repair,
        calibration=measured,
    )
    if chosen is not None:
        others = {"--start": start, "--end": end, "--repair": repair}
        walk = chosen.marked(walk, others=[f"with {option}" for option, value in others.items() if value])
        warn(*changes_text([walk]))
    write_bytes(out, walk.to_json().encode())
    cells = walk_cells(known, walk)
    _describe(walk, out, None if repair else _walk_interval(cells))
    warn(guesses_text(cells))
    if figure is not None:
        walk_figure(walk, figure)
    if surface is not None:
        plane = cells[0][0]
        first = [cell for step, (_, cell) in zip(walk.steps, cells, strict=True) if step.segment == 0]
        surface_figure([(plane, [path_over(plane, first, goal, rule)])], surface)


def _only_target(chosen: WalkSet | None) -> float:
    targets = () if chosen is None else chosen.targets
    if len(targets) != 1:
        has = f"; {chosen.name} has {', '.join(f'{value:g}' for value in targets)}" if chosen else ", such as 0.4"
        raise InputError(f"no target accuracy; expected --target{has}")
    return targets[0]


def _chosen_ends(text: str | None, chosen: WalkSet | None, objective: str) -> Ends:
    """How ends are chosen: as was said, or as the set does, or together where the rule lets them be."""
    if text is not None and text not in ENDS:
        raise InputError(f"--ends {text}; expected one of {', '.join(ENDS)}")
    if chosen is not None and text not in (None, chosen.ends):
        raise InputError(f"--ends {text} with --set {chosen.name}, whose paths have {chosen.ends} ends")
    usual = "independent" if objective == "reference" else "joint"
    return cast(Ends, text or (usual if chosen is None else chosen.ends))


def _walk_interval(cells: Sequence[WalkCell]) -> Estimate | None:
    """The interval of a walk's mean accuracy; all its steps were calibrated on the same images."""
    if not all(plane.known[cell] for plane, cell in cells) or cells[0][0].images < 2:
        return None
    return mean_interval(plane.right(cell) for plane, cell in cells)


def _describe(walk: Walk, out: Path, mean: Estimate | None) -> None:
    kind = "closed" if walk.closed else "open"
    made = walk.protocol
    say(
        f"wrote {out}: {len(walk):,} images in {len(walk.steps)} steps, {kind}, {made.objective} paths, "
        f"{made.ends} ends"
    )
    assert made.target is not None
    target = made.target
    weights = [step.images for step in walk.steps]
    deviation = np.average([abs(step.accuracy - target) for step in walk.steps], weights=weights)
    within = "" if mean is None else f" ({100 * mean.low:.1f} … {100 * mean.high:.1f} at 95 %)"
    say(
        f"calibrated accuracy {100 * walk.accuracy:.1f} %{within}, target {100 * target:g} %, "
        f"{100 * deviation:.1f} off a step"
    )
    say(_seams_text(walk.seams))
    first, second, worst = max(_path_deviations(walk, target), key=lambda path: path[2])
    say(f"worst path: {first} to {second}, {100 * worst:.1f} points off", style="dim")


def _seams_text(seams: Seams) -> str:
    if not seams.count:
        return "one path, and no seam"
    closing = "" if seams.closing is None else f", {seams.closing:g} from its end to its beginning"
    return (
        f"seams between paths: {seams.jumping} of {seams.count} jump, by {seams.largest:g} in severity at most, "
        f"{seams.mean:.2f} on average{closing}"
    )


def _path_deviations(walk: Walk, target: float) -> list[tuple[str, str, float]]:
    """The corruptions of each path of a walk, and how far its steps are from the target on average."""
    groups = [list(steps) for _, steps in groupby(walk.steps, lambda step: step.segment)]
    return [
        (steps[0].first, steps[0].second, float(np.mean([abs(step.accuracy - target) for step in steps])))
        for steps in groups
    ]
