"""``blemish ccc``: continuously changing corruptions, from calibration to walks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.statistics import Estimate, wilson_interval
from blemish.corruptions.catalog import catalog
from blemish.data.cache import load
from blemish.studies.streams.adaptive import Refinement
from blemish.studies.streams.calibration import Bench, calibrate, read_calibration
from blemish.studies.streams.certainty import certain_rises, mean_interval
from blemish.studies.streams.commands.options import (
    ClassMapping,
    Crop,
    Data,
    Device,
    Labels,
    Mean,
    Model,
    PathRule,
    Preset,
    Resize,
    Size,
    Std,
    Weights,
    check_figures,
    chosen_images,
    grid_of,
    model_of,
    names_of,
    path_rule,
    shares,
)
from blemish.studies.streams.commands.run import materialise_command, run_command
from blemish.studies.streams.figures import surface_figure, walk_figure
from blemish.studies.streams.levels import SETS, find_set
from blemish.studies.streams.paths import SeverityPath
from blemish.studies.streams.surface import Surface, monotonicity, repaired
from blemish.studies.streams.walks import Walk, find_paths, make_walk, usable_corruptions
from blemish.terminal.commands import AllowCode, Frost, check_frost, chosen_catalog, exit_on_input_error, say
from blemish.terminal.executors import Gpus, Jobs, Ray, chosen_executor, own_device
from blemish.terminal.outputs import Overwrite, check_replaceable
from blemish.terminal.progress import Report, with_progress

__all__ = ["calibrate_command", "ccc_app", "walk_command"]

ccc_app = typer.Typer(
    no_args_is_help=True,
    help="Continuously changing corruptions (CCC): calibrate a model, plan a walk, run adaptation methods on it.",
)

Corruptions = Annotated[str | None, typer.Option("--corruptions", "-c", help="Names, separated by commas.")]
Level = Annotated[str | None, typer.Option("--set", help=f"A published set, for its corruptions: {', '.join(SETS)}.")]


def _corruptions(names: str | None, published: str | None) -> tuple[str, ...]:
    if names is not None and published is not None:
        raise InputError("--corruptions and --set; expected one or the other")
    if published is not None:
        return find_set(published).corruptions
    return tuple(catalog[name].name for name in names_of(names))


@exit_on_input_error
def calibrate_command(
    model: Model,
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the surfaces, one file per pair.")],
    corruptions: Corruptions = None,
    published: Level = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Images, in proportion from all classes.")] = 5000,
    targets: Annotated[
        str | None,
        typer.Option(help="Accuracies that walks will hold, such as 0.4,0.2: only cells near them are measured."),
    ] = None,
    margin: Annotated[float, typer.Option(help="How near: within this share of a target.")] = 0.08,
    objective: PathRule = "pointwise",
    step: Annotated[float, typer.Option(help="Between two severities of the grid 0 … 5.")] = 0.25,
    batch_size: Annotated[int, typer.Option(min=1, help="Images at a time.")] = 256,
    seed: Annotated[int, typer.Option(help="Of the random draws.")] = 0,
    preset: Preset = None,
    device: Device = "auto",
    weights: Weights = None,
    size: Size = None,
    mean: Mean = None,
    std: Std = None,
    allow_code: AllowCode = False,
    labels: Labels = None,
    mapping: ClassMapping = None,
    resize: Resize = None,
    crop: Crop = None,
    frost: Frost = None,
    jobs: Jobs = None,
    gpus: Gpus = None,
    ray: Ray = None,
) -> None:
    """Measure a model under every ordered pair of corruptions, over a grid of severities.

    Stop whenever you like: the same command continues where it stopped. Then plan a walk with "blemish ccc walk".

    Examples:

      blemish ccc calibrate -m timm:resnet50 -d imagenet/val --resize 256 --crop 224 --set easy -o surfaces

      blemish ccc calibrate -m python:my_net:build -d cifar10.npz -c fog,snow,contrast -n 500 --targets 0.4 -o surfaces
    """
    names = _corruptions(corruptions, published) or SETS["ccc-50k"].corruptions
    known = chosen_catalog(frost)
    check_frost(known[name] for name in names)
    executor = chosen_executor(jobs, gpus, ray, device)
    classifier = model_of(model, weights, size, mean, std, own_device(device, ray), allow_code=allow_code)
    source = chosen_images(data, labels, mapping, limit=limit, model=classifier, resize=resize, crop=crop)
    images, grid = load(source, resize=resize, crop=crop), grid_of(step)
    wanted = shares(targets, "--targets")
    how = Refinement(wanted, margin, objective=path_rule(objective)) if wanted else None

    each = len(images) * len(grid) ** 2

    def work(report: Report) -> dict[tuple[str, str], Surface]:
        bench = Bench(classifier, images, seed, preset, batch_size, grid, known)
        report(0, None, "calibrating")
        return calibrate(
            bench,
            names,
            folder=out,
            refinement=how,
            model=classifier.describe(),
            progress=lambda done, total: report(done * each, total * each),
            executor=executor,
            source=source,
            resize=resize,
            crop=crop,
        )

    surfaces = with_progress("ccc calibrate", work, first="reading images")
    cells = sum(surface.evaluated for surface in surfaces.values())
    everything = sum(surface.accuracy.size for surface in surfaces.values())
    say(f"{len(surfaces)} surfaces in {out}, {cells} of {everything} cells measured on {len(images)} images each")
    rises = [monotonicity(surface) for surface in surfaces.values()]
    worst = max(rises, key=lambda found: found.largest)
    share = sum(found.steps for found in rises) / sum(found.of for found in rises)
    say(f"accuracy rises with severity at {100 * share:.1f} % of steps, by {100 * worst.largest:.1f} points at most")
    _describe_certainty(list(surfaces.values()))


def _describe_certainty(surfaces: Sequence[Surface]) -> None:
    """How well cells are known, and whether rises are real: both say whether more images are needed."""
    halves = [wilson_interval(surface.images / 2, surface.images).width / 2 for surface in surfaces]
    say(f"a cell is known to within {100 * max(halves):.1f} points (95 %, at an accuracy of one half)", style="dim")
    found = certain_rises(surfaces)
    say(
        f"{found.rises} of {found.neighbours} steps between measured cells rise, {found.certain} of them more than by "
        "chance (image by image, 5 % for all together)",
        style="dim",
    )


@exit_on_input_error
def walk_command(
    calibration: Annotated[Path, typer.Argument(metavar="SURFACES", help="A folder that blemish ccc calibrate made.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The walk, a .json file.")],
    target: Annotated[float | None, typer.Option(help="Accuracy to hold, such as 0.4. Default: the set's.")] = None,
    published: Level = None,
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
    names = _corruptions(corruptions, published if corruptions is None else None)
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


ccc_app.command("calibrate")(calibrate_command)
ccc_app.command("walk")(walk_command)
ccc_app.command("run")(run_command)
ccc_app.command("materialise")(materialise_command)
