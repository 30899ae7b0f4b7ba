"""``blemish perceptual``: how far corrupted images are from clean ones, and errors against that distance."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import torch
import typer

from blemish.benchmarks.benchmark import Benchmark, only
from blemish.benchmarks.condition import Condition, step_of
from blemish.benchmarks.files import load_benchmark
from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.optional import optional_import
from blemish.core.statistics import check_level
from blemish.corruptions.base import Corruption
from blemish.corruptions.catalog import Catalog, catalogue_of
from blemish.corruptions.severity import check_severity
from blemish.data.cache import load
from blemish.evaluation.runs import find_runs
from blemish.models.torch_module import device_named
from blemish.studies.perceptual.curves import ErrorCurves, error_curves
from blemish.studies.perceptual.distances import MS_SSIM, SSIM, Distances, Measure, measure_distances
from blemish.studies.perceptual.figures import distance_figure, error_figure
from blemish.studies.perceptual.lpips import read_lpips
from blemish.studies.perceptual.tables import (
    areas_csv,
    catalogue_table,
    corruption_table,
    distance_table,
    distances_csv,
    errors_csv,
)
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import (
    DEFAULT_SEVERITIES,
    Corruptions,
    Frost,
    Only,
    Plugins,
    Severities,
    Tiles,
    check_files,
    chosen_catalog,
    chosen_conditions,
    chosen_names,
    chosen_severities,
)
from blemish.terminal.images import ImageOptions, Limit, balanced_part
from blemish.terminal.models import BatchSize, Device
from blemish.terminal.option_groups import spread_options
from blemish.terminal.outputs import Overwrite, check_replaceable
from blemish.terminal.printing import say
from blemish.terminal.progress import Report, with_progress
from blemish.terminal.protocol import ProtocolOptions
from blemish.terminal.results import Level, Replicates, deliver

_TABLES = ("distances.csv", "errors.csv", "areas.csv")
_FIGURE = "perceptual.png"
_LPIPS = "LPIPS"


@exit_on_input_error
@spread_options
def perceptual_command(
    images: ImageOptions,
    protocol: ProtocolOptions,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for distances, tables and a figure.")],
    benchmark: Annotated[
        str | None, typer.Argument(metavar="[BENCHMARK]", help='A name from "blemish benchmarks", or a file.')
    ] = None,
    corruptions: Corruptions = None,
    severities: Severities = None,
    patterns: Only = None,
    limit: Limit = None,
    records: Annotated[
        list[Path] | None,
        typer.Option(
            "--records", metavar="DIR", help="Folders that blemish run made: errors are drawn against distance."
        ),
    ] = None,
    measure: Annotated[
        str, typer.Option(help="Which distance tables and the figure show: ssim, ms_ssim or lpips.")
    ] = MS_SSIM.name,
    up_to: Annotated[float, typer.Option("--up-to", help="The distance up to which errors are averaged.")] = 0.2,
    lpips: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="ALEXNET LINEAR", help="Also measure LPIPS, with these weights: AlexNet's, and its own (v0.1)."
        ),
    ] = None,
    level: Level = 0.95,
    replicates: Replicates = 1000,
    device: Device = "auto",
    batch_size: BatchSize = None,
    plugins: Plugins = None,
    frost: Frost = None,
    tiles: Tiles = None,
    overwrite: Overwrite = False,
) -> None:
    """Put the severities of all corruptions on one scale: the distance that corrupted images have from clean ones.

    Takes the conditions of a benchmark, or corruptions (-c) at severities (-s). Distances are 1 − SSIM, 1 − MS-SSIM
    and, with its weights, LPIPS. With --records, a model's errors are drawn against distance, and averaged up to the
    same distance for all corruptions. Stop whenever you like: the same command goes on where it stopped.

    Examples:

      blemish perceptual imagenet-c -d imagenet/val -n 200 -o axis

      blemish perceptual -c all -s 1,3,5 -d imagenet/val -n 50 -o axis-all --resize 256 --crop 224

      blemish perceptual imagenet-c -d imagenet/val -n 200 -o axis --records results
    """
    check_level(level)
    check_replaceable(*(out / name for name in (*_TABLES, _FIGURE)), overwrite=overwrite)
    if not (up_to > 0 and math.isfinite(up_to)):
        raise InputError(f"--up-to {up_to:g}; expected a distance above 0, such as 0.2")
    catalog = chosen_catalog(plugins, frost, tiles)
    chosen = protocol.apply(_conditions(benchmark, corruptions, severities, patterns, catalog))
    units = {step.name: step.unit for condition in chosen.conditions for step in condition.steps}
    known = {name: unit for name, unit in units.items() if isinstance(unit, Corruption)}
    check_files(known.values())
    chosen_device = device_named(device)
    measures = _measures(lpips, chosen_device)
    if measure not in (names := [item.name for item in measures]):
        raise InputError(f"--measure {measure!r}; expected one of {', '.join(names)}; lpips needs --lpips")
    shown = measures[names.index(measure)]
    runs = find_runs(records) if records else []
    source = balanced_part(images.open(), limit)

    def work(report: Report) -> list[Distances]:
        loaded = load(source, resize=chosen.protocol.resize, crop=chosen.protocol.view, progress=report)
        return measure_distances(
            loaded, chosen, folder=out, measures=measures, device=chosen_device, batch_size=batch_size, report=report
        )

    distances = with_progress("perceptual", work, first="reading images", kept="finished conditions are kept.")
    catalogue = {c.group: _catalogue(c, known) for c in chosen.conditions if c.steps}
    means = {str(item.condition): item.mean(shown.name).value for item in distances}
    files = {_TABLES[0]: distances_csv(distances, measures, catalogue, level)}

    def read(report: Report) -> list[ErrorCurves]:
        return [
            error_curves(
                run,
                chosen,
                means,
                measure=shown.title,
                up_to=up_to,
                catalogue=catalogue,
                level=level,
                replicates=replicates,
                report=report,
            )
            for run in runs
        ]

    models = with_progress("perceptual", read, first="reading records", unit=None, kept="distances are kept.")
    tables = [distance_table(distances, shown)]
    if models:
        files |= zip(_TABLES[1:], (errors_csv(models), areas_csv(models)), strict=True)
        tables += [*map(corruption_table, models), catalogue_table(models)]
    for name, content in files.items():
        write_bytes(out / name, content.encode())
    try:
        optional_import("matplotlib")
    except InputError as error:
        say(f"no figure: {error}", style="yellow")
    else:
        if models:
            error_figure(models, shown, catalogue, out / _FIGURE)
        else:
            distance_figure(distances, shown, catalogue, out / _FIGURE)
        files[_FIGURE] = ""
    deliver(tables, None)
    say(f"wrote {', '.join(files)} in {out}", style="dim")


def _conditions(
    benchmark: str | None,
    corruptions: list[str] | None,
    severities: list[str] | None,
    patterns: list[str] | None,
    catalog: Catalog,
) -> Benchmark:
    """The conditions of a benchmark, or of corruptions at severities."""
    if (benchmark is None) == (not corruptions):
        raise InputError("a benchmark or corruptions (-c); expected one of the two")
    if benchmark is not None:
        if severities:
            raise InputError("--severity with a benchmark; expected --only, such as --only fog@3")
        whole = load_benchmark(benchmark, catalog=catalog)
        chosen = chosen_conditions(patterns)
        return only(whole, chosen) if chosen else whole
    if patterns:
        raise InputError("--only with -c; expected -s for severities")
    levels = [check_severity(level) for level in chosen_severities(severities) or DEFAULT_SEVERITIES]
    units = [catalog[name] for name in chosen_names(corruptions, catalog)]
    conditions = [
        Condition((step_of(unit, level),)) for unit in units for level in levels if level > 0 and unit.supports(level)
    ]
    return Benchmark("corruptions", "", "error", tuple(conditions))


def _measures(lpips: tuple[Path, Path] | None, device: torch.device) -> list[Measure]:
    if lpips is None:
        return [SSIM, MS_SSIM]
    network = read_lpips(*lpips, device=device)
    return [SSIM, MS_SSIM, Measure("lpips", _LPIPS, network, network.digest)]


def _catalogue(condition: Condition, units: dict[str, Corruption]) -> str:
    """The catalogue of a condition's corruption; chains are their own."""
    names = condition.names()
    return catalogue_of(units[names[0]]) if len(names) == 1 else "chains"
