"""``blemish build match-severities``: severity ranges as hard for your model as NOC's were for its authors'."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import NDArray

from blemish.benchmarks.benchmark import Benchmark, Protocol
from blemish.benchmarks.condition import CLEAN, Condition, step_of
from blemish.core.errors import InputError
from blemish.corruptions.catalog import Catalog
from blemish.data.cache import Images, load
from blemish.evaluation.fitting import fit
from blemish.evaluation.measure import measure
from blemish.evaluation.plan import plan_for
from blemish.models.base import Classifier
from blemish.studies.construction.benchmark_files import write_benchmark
from blemish.studies.construction.commands.common import Figure, check_output, draw, shown, write_rows
from blemish.studies.construction.figures import severity_figure
from blemish.studies.construction.severities import SeverityRange, match_range
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import (
    Frost,
    Plugins,
    Preset,
    RequiredCorruptions,
    Seed,
    Tiles,
    check_files,
    chosen_catalog,
    chosen_names,
)
from blemish.terminal.images import Crop, ImageOptions, Limit, Resize, balanced_part
from blemish.terminal.models import BatchSize, ModelOptions, SpeedOptions
from blemish.terminal.option_groups import spread_options
from blemish.terminal.outputs import Overwrite
from blemish.terminal.printing import say
from blemish.terminal.progress import Report, with_progress

_HEADER = ("corruption", "end", "target", "severity", "low", "high", "robustness", "reached")


@exit_on_input_error
@spread_options
def match_severities_command(
    corruptions: RequiredCorruptions,
    model: ModelOptions,
    speed: SpeedOptions,
    images: ImageOptions,
    out: Annotated[Path, typer.Option("--out", "-o", help="The ranges: a .csv table, or a .toml benchmark to run.")],
    lower: Annotated[float, typer.Option(help="Robustness score at the lower end.")] = 0.95,
    upper: Annotated[float, typer.Option(help="Robustness score at the upper end.")] = 0.5,
    limit: Limit = 500,
    batch_size: BatchSize = None,
    tolerance: Annotated[float, typer.Option(help="How narrow to make the bracket around a severity.")] = 0.05,
    seed: Seed = 0,
    preset: Preset = None,
    resize: Resize = None,
    crop: Crop = None,
    plugins: Plugins = None,
    frost: Frost = None,
    tiles: Tiles = None,
    figure: Figure = None,
    overwrite: Overwrite = False,
) -> None:
    """Find the severities between which a model falls from R = 0.95 to R = 0.5, for every corruption.

    R is accuracy relative to the clean accuracy. Each severity is measured on the same images with the same draws, and
    halving stops when evaluation noise is larger than what is left to tell. A .csv names both ends with intervals; a
    .toml is a benchmark that draws a severity from the range for every image.

    Examples:

      blemish build match-severities -c noc -m timm:resnet18 -d imagenet/val --resize 256 --crop 224 -o mine.toml

      blemish build match-severities -c fog,snow -m demo:plain -d demo:digits -o ranges.csv
    """
    check_output(out, ".csv", ".toml", figures=[figure], overwrite=overwrite)
    catalog = chosen_catalog(plugins, frost, tiles)
    names = chosen_names(corruptions, catalog)
    fixed = [name for name in names if catalog[name].only_severity is not None]
    if fixed:
        raise InputError(f"{', '.join(fixed[:5])} exist at one severity only; expected corruptions with a range")
    check_files(catalog[name] for name in names)
    protocol = Protocol(preset=preset, seed=seed, resize=resize, crop=crop)
    classifier = speed.apply(model.open(catalog=catalog, class_names=images.class_names))
    source = fit(classifier, images.open(), resize=resize, crop=crop).source
    measured = load(balanced_part(source, limit), resize=resize, crop=crop)
    correct = _measuring(classifier, measured, protocol, batch_size)

    clean = correct(CLEAN)
    say(f"clean accuracy {100 * clean.mean():.1f} % on {len(clean)} images", style="dim")

    def work(report: Report) -> list[SeverityRange]:
        made = []
        for number, name in enumerate(names):
            report(number, len(names), name)
            made.append(
                match_range(
                    name,
                    clean,
                    lambda severity, name=name: correct(Condition((step_of(catalog[name], severity),))),  # type: ignore[misc]
                    targets=(lower, upper),
                    tolerance=tolerance,
                )
            )
        return made

    ranges = with_progress("build match-severities", work, unit=None, kept="nothing is kept.")
    _write(ranges, out, protocol, catalog)
    if frost is not None and "frost" in names and out.suffix.lower() != ".csv":
        say(f"a benchmark file names no folder: run it with --frost {frost}", style="yellow")
    shown(_HEADER[:-1], ([*map(str, row[:2]), *(f"{value:.3g}" for value in row[2:7])] for row in _rows(ranges)))
    _explain(ranges)
    draw(figure, lambda: severity_figure(ranges))


def _measuring(
    model: Classifier, images: Images, protocol: Protocol, batch_size: int | None
) -> Callable[[Condition], NDArray[np.bool_]]:
    def correct(condition: Condition) -> NDArray[np.bool_]:
        plan = plan_for(model, images, [condition], protocol=protocol, batch_size=batch_size)
        ((_, records),) = measure(plan)
        return records.correct

    return correct


def _rows(ranges: list[SeverityRange]) -> list[tuple[object, ...]]:
    return [
        (each.corruption, end, at.target, at.severity, at.low, at.high, at.robustness, at.reached)
        for each in ranges
        for end, at in (("lower", each.lower), ("upper", each.upper))
    ]


def _write(ranges: list[SeverityRange], out: Path, protocol: Protocol, catalog: Catalog) -> None:
    if out.suffix.lower() == ".csv":
        write_rows(out, _HEADER, _rows(ranges))
    else:
        # Ends are rounded to the hundredth, which is finer than can be told.
        steps = [
            step_of(catalog[each.corruption], round(each.lower.severity, 2), round(each.upper.severity, 2))
            for each in ranges
        ]
        steps = [replace(step, low=max(step.low, 0.01), high=max(step.high, 0.01)) for step in steps]
        conditions = tuple(Condition((step,)) for step in steps)
        title = "Severities matched to a model"
        write_benchmark(Benchmark(out.stem, title, "robustness", conditions, protocol), out)
    say(f"wrote {out}")


def _explain(ranges: list[SeverityRange]) -> None:
    short = [each.corruption for each in ranges if not each.upper.reached]
    if short:
        say(f"even severity 5 leaves more than the upper target: {', '.join(short)}", style="yellow")
