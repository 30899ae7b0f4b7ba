"""``blemish ccc calibrate``: a model under every ordered pair of corruptions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from blemish.core.errors import InputError
from blemish.core.statistics import wilson_interval
from blemish.data.cache import load
from blemish.studies.streams.adaptive import Refinement
from blemish.studies.streams.calibration import Bench, calibrate
from blemish.studies.streams.certainty import certain_rises
from blemish.studies.streams.commands.options import (
    Jpeg,
    ObjectiveName,
    RandomCrop,
    SetName,
    chosen_corruptions,
    chosen_images,
    grid_of,
    path_rule,
    shares,
)
from blemish.studies.streams.images import preparation, prepared_source
from blemish.studies.streams.levels import SETS, find_set
from blemish.studies.streams.surface import Surface, monotonicity
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import Corruptions, Frost, Plugins, Preset, Seed, Tiles, check_files, chosen_catalog
from blemish.terminal.executors import Gpus, Jobs, Ray, chosen_executor, own_device
from blemish.terminal.images import Crop, ImageOptions, Limit, Resize
from blemish.terminal.models import BatchSize, ModelOptions, SpeedOptions
from blemish.terminal.option_groups import spread_options
from blemish.terminal.printing import say
from blemish.terminal.progress import Report, with_progress


@exit_on_input_error
@spread_options
def calibrate_command(
    model: ModelOptions,
    speed: SpeedOptions,
    images: ImageOptions,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the surfaces, one file per pair.")],
    corruptions: Corruptions = None,
    set_name: SetName = None,
    limit: Limit = 5000,
    targets: Annotated[
        str | None,
        typer.Option(help="Accuracies that walks will hold, such as 0.4,0.2: only cells near them are measured."),
    ] = None,
    margin: Annotated[float, typer.Option(help="How near: within this share of a target.")] = 0.08,
    objective: ObjectiveName = None,
    step: Annotated[float, typer.Option(help="Between two severities of the grid 0 … 5.")] = 0.25,
    batch_size: BatchSize = None,
    seed: Seed = 0,
    preset: Preset = None,
    resize: Resize = None,
    crop: Crop = None,
    random_crop: RandomCrop = None,
    jpeg: Jpeg = False,
    plugins: Plugins = None,
    frost: Frost = None,
    tiles: Tiles = None,
    jobs: Jobs = None,
    gpus: Gpus = None,
    ray: Ray = None,
) -> None:
    """Measure a model under every ordered pair of corruptions, over a grid of severities.

    Stop whenever you like: the same command continues where it stopped. Then plan a walk with "blemish ccc walk". Show
    images here as the stream will: with the same --random-crop, --jpeg, --resize and --crop.

    Examples:

      blemish ccc calibrate -m timm:resnet50 -d imagenet/val --random-crop 224 --jpeg --set easy -o surfaces

      blemish ccc calibrate -m python:my_net:build -d cifar10.npz -c fog,snow,contrast -n 500 --targets 0.4 -o surfaces
    """
    if corruptions and set_name is not None:
        raise InputError("--corruption and --set; expected one or the other")
    chosen = None if set_name is None else find_set(set_name)
    rule = path_rule(objective, chosen)
    catalog = chosen_catalog(plugins, frost, tiles)
    names = chosen_corruptions(corruptions, chosen, catalog) or SETS["ccc-50k"].corruptions
    check_files(catalog[name] for name in names)
    prepared = preparation(resize, crop, random_crop)
    executor = chosen_executor(jobs, gpus, ray, model.device)
    classifier = speed.apply(
        model.open(catalog=catalog, device=own_device(model.device, ray), class_names=images.class_names)
    )
    source = chosen_images(
        images, limit=limit, model=classifier, resize=random_crop or resize, crop=random_crop or crop
    )
    if random_crop is not None:
        source = prepared_source(source, random_crop, seed=seed)
    loaded, grid = load(source, resize=resize, crop=crop), grid_of(step)
    wanted = shares(targets, "--targets")
    how = Refinement(wanted, margin, objective=rule) if wanted else None
    each = len(loaded) * len(grid) ** 2

    def work(report: Report) -> dict[tuple[str, str], Surface]:
        bench = Bench(classifier, loaded, seed, preset, batch_size, grid, catalog, jpeg, prepared)
        report(0, None, "calibrating")
        return calibrate(
            bench,
            names,
            folder=out,
            refinement=how,
            progress=lambda done, total: report(done * each, total * each),
            executor=executor,
            source=source,
            resize=resize,
            crop=crop,
        )

    surfaces = with_progress("ccc calibrate", work, first="reading images")
    cells = sum(surface.evaluated for surface in surfaces.values())
    everything = sum(surface.accuracy.size for surface in surfaces.values())
    say(f"{len(surfaces)} surfaces in {out}, {cells} of {everything} cells measured on {len(loaded)} images each")
    rises = [monotonicity(surface) for surface in surfaces.values()]
    worst = max(rises, key=lambda rise: rise.largest)
    share = sum(rise.steps for rise in rises) / sum(rise.of for rise in rises)
    say(f"accuracy rises with severity at {100 * share:.1f} % of steps, by {100 * worst.largest:.1f} points at most")
    _describe_certainty(list(surfaces.values()))


def _describe_certainty(surfaces: Sequence[Surface]) -> None:
    """How well cells are known, and whether rises are real: both say whether more images are needed."""
    halves = [wilson_interval(surface.images / 2, surface.images).width / 2 for surface in surfaces]
    say(f"a cell is known to within {100 * max(halves):.1f} points (95 %, at an accuracy of one half)", style="dim")
    tested = certain_rises(surfaces)
    say(
        f"{tested.rises} of {tested.neighbours} steps between measured cells rise, {tested.certain} of them more than "
        "by chance (image by image, 5 % for all together)",
        style="dim",
    )
