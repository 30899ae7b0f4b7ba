"""``blemish build severities``: severity ranges that are as hard for your model as NOC's were for its authors'."""

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
from blemish.data.open import open_source
from blemish.data.source import Source, stratified_order
from blemish.evaluation.fitting import fit
from blemish.evaluation.measure import measure
from blemish.evaluation.plan import plan_for
from blemish.models.base import Classifier
from blemish.models.open import open_model
from blemish.studies.construction.benchmark_files import write_benchmark
from blemish.studies.construction.commands.common import Figure, check_output, draw, shown, write_rows
from blemish.studies.construction.figures import severity_figure
from blemish.studies.construction.severities import SeverityRange, calibrate_range
from blemish.terminal.commands import (
    AllowCode,
    Frost,
    check_frost,
    chosen_catalog,
    chosen_names,
    exit_on_input_error,
    say,
)
from blemish.terminal.outputs import Overwrite
from blemish.terminal.progress import Report, with_progress

__all__ = ["severities_command"]

_HEADER = ("corruption", "end", "target", "severity", "low", "high", "robustness", "reached")


@exit_on_input_error
def severities_command(
    corruptions: Annotated[str, typer.Option("--corruptions", "-c", help="Names or families, separated by commas.")],
    model: Annotated[str, typer.Option("--model", "-m", help="What blemish run takes.")],
    data: Annotated[str, typer.Option("--data", "-d", help="Clean images: what blemish run takes.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The ranges: a .csv table, or a .toml benchmark to run.")],
    lower: Annotated[float, typer.Option(help="Robustness score at the lower end.")] = 0.95,
    upper: Annotated[float, typer.Option(help="Robustness score at the upper end.")] = 0.5,
    limit: Annotated[int, typer.Option("--limit", "-n", min=2, help="Images to calibrate on, from all classes.")] = 500,
    tolerance: Annotated[float, typer.Option(help="How narrow to make the bracket around a severity.")] = 0.05,
    preset: Annotated[str | None, typer.Option(help="Severity table. Default: by image size.")] = None,
    resize: Annotated[int | None, typer.Option(help="First bring the shorter side to this many pixels.")] = None,
    crop: Annotated[int | None, typer.Option(help="Then cut a centre square of this side.")] = None,
    mapping: Annotated[str | None, typer.Option(help="Class order, as for blemish run.")] = None,
    seed: Annotated[int, typer.Option(help="Of the corruptions.")] = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda or auto.")] = "auto",
    allow_code: AllowCode = False,
    frost: Frost = None,
    figure: Figure = None,
    overwrite: Overwrite = False,
) -> None:
    """Find the severities between which a model falls from R = 0.95 to R = 0.5, for every corruption.

    R is accuracy relative to the clean accuracy. Each severity is measured on the same images with the same draws, and
    halving stops when evaluation noise is larger than what is left to tell. A .csv names both ends with intervals; a
    .toml is a benchmark that draws a severity from the range for every image.

    Examples:

      blemish build severities -c noc -m timm:resnet18 -d imagenet/val --resize 256 --crop 224 -o mine.toml

      blemish build severities -c fog,snow -m demo:plain -d demo:digits -o ranges.csv
    """
    check_output(out, ".csv", ".toml", figures=[figure], overwrite=overwrite)
    catalog = chosen_catalog(frost)
    names = chosen_names(corruptions, catalog)
    fixed = [name for name in names if catalog[name].only_severity is not None]
    if fixed:
        raise InputError(f"{', '.join(fixed[:5])} exist at one severity only; expected corruptions with a range")
    check_frost(catalog[name] for name in names)
    protocol = Protocol(preset=preset, seed=seed, resize=resize, crop=crop)
    classifier = open_model(model, device=device, allow_code=allow_code)
    images = _images(classifier, open_source(data, mapping=mapping), limit, protocol)
    correct = _measuring(classifier, images, protocol)
    clean = correct(CLEAN)
    say(f"clean accuracy {100 * clean.mean():.1f} % on {len(clean)} images", style="dim")

    def work(report: Report) -> list[SeverityRange]:
        found = []
        for number, name in enumerate(names):
            report(number, len(names), name)
            found.append(
                calibrate_range(
                    name,
                    clean,
                    lambda severity, name=name: correct(Condition((step_of(catalog[name], severity),))),  # type: ignore[misc]
                    targets=(lower, upper),
                    tolerance=tolerance,
                )
            )
        return found

    ranges = with_progress("build severities", work, unit=None, kept="nothing is kept.")
    _write(ranges, out, protocol, catalog)
    if frost is not None and "frost" in names and out.suffix.lower() != ".csv":
        say(f"a benchmark file names no folder: run it with --frost {frost}", style="yellow")
    shown(_HEADER[:-1], ([*map(str, row[:2]), *(f"{value:.3g}" for value in row[2:7])] for row in _rows(ranges)))
    _explain(ranges)
    draw(figure, lambda: severity_figure(ranges))


def _images(model: Classifier, source: Source, limit: int, protocol: Protocol) -> Images:
    source = fit(model, source, resize=protocol.resize, crop=protocol.crop).source
    if limit < len(source):
        source = source.take(np.sort(stratified_order(source.labels, source.ids)[:limit]))
    return load(source, resize=protocol.resize, crop=protocol.crop)


def _measuring(model: Classifier, images: Images, protocol: Protocol) -> Callable[[Condition], NDArray[np.bool_]]:
    def correct(condition: Condition) -> NDArray[np.bool_]:
        ((_, records),) = measure(plan_for(model, images, [condition], protocol=protocol))
        return records.correct

    return correct


def _rows(ranges: list[SeverityRange]) -> list[tuple[object, ...]]:
    return [
        (found.corruption, end, at.target, at.severity, at.low, at.high, at.robustness, at.reached)
        for found in ranges
        for end, at in (("lower", found.lower), ("upper", found.upper))
    ]


def _write(ranges: list[SeverityRange], out: Path, protocol: Protocol, catalog: Catalog) -> None:
    if out.suffix.lower() == ".csv":
        write_rows(out, _HEADER, _rows(ranges))
    else:
        # Ends are rounded to the hundredth, which is finer than any calibration can tell.
        steps = [
            step_of(catalog[found.corruption], round(found.lower.severity, 2), round(found.upper.severity, 2))
            for found in ranges
        ]
        steps = [replace(step, low=max(step.low, 0.01), high=max(step.high, 0.01)) for step in steps]
        conditions = tuple(Condition((step,)) for step in steps)
        title = "Severities calibrated to a model"
        write_benchmark(Benchmark(out.stem, title, "robustness", conditions, protocol), out)
    say(f"wrote {out}")


def _explain(ranges: list[SeverityRange]) -> None:
    short = [found.corruption for found in ranges if not found.upper.reached]
    if short:
        say(f"even severity 5 leaves more than the upper target: {', '.join(short)}", style="yellow")
