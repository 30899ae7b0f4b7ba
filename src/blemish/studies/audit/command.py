"""``blemish audit``: is a measurement set up as it should be?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from blemish.benchmarks.benchmark import Protocol
from blemish.benchmarks.files import load_benchmark
from blemish.core.errors import InputError
from blemish.evaluation.runs import find_runs
from blemish.studies.audit.audit import IMAGES, audit
from blemish.studies.audit.findings import Audit
from blemish.studies.audit.of_runs import audit_run
from blemish.studies.audit.shown import audit_json, audit_lines
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import Frost, Plugins, Tiles, chosen_catalog
from blemish.terminal.images import OptionalImageOptions
from blemish.terminal.models import BatchSize, OptionalModelOptions, SpeedOptions
from blemish.terminal.option_groups import spread_options
from blemish.terminal.printing import complain, console, emit, say
from blemish.terminal.progress import Report, with_progress
from blemish.terminal.protocol import ProtocolOptions

FOUND = 4
"""The exit code where a problem was found."""


@exit_on_input_error
@spread_options
def audit_command(
    model: OptionalModelOptions,
    speed: SpeedOptions,
    images: OptionalImageOptions,
    protocol: ProtocolOptions,
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="The folder of a run, or of several; instead of --model.")
    ] = None,
    benchmark: Annotated[
        str | None,
        typer.Option("--benchmark", "-b", help="The benchmark that is to be run: its sizes, and its severities."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many images the model is shown.")] = IMAGES,
    accuracy: Annotated[
        float | None, typer.Option(metavar="PERCENT", help="The clean accuracy that the model should have.")
    ] = None,
    difference: Annotated[
        float | None, typer.Option(metavar="POINTS", help="The difference between models that is to be told apart.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON with all digits.")] = False,
    batch_size: BatchSize = None,
    plugins: Plugins = None,
    frost: Frost = None,
    tiles: Tiles = None,
) -> None:
    """Look for what makes numbers wrong: in a model with its images before a run, or in the results of one.

    Normalisation, channels, sizes, labels, batch norm, duplicates, severities and the number of images are checked, on
    a few hundred images. Exit code 0 if nothing is wrong, 4 if something is, 2 for bad input.

    Examples:

      blemish audit -m demo:plain -d demo:digits

      blemish audit -m timm:resnet50 -d imagenet/val -b imagenet-c --difference 1

      blemish audit results --json
    """
    if folder is not None:
        audits = _of_results(folder, model, images, accuracy=accuracy, difference=difference, benchmark=benchmark)
    else:
        catalog = chosen_catalog(plugins, frost, tiles)
        chosen = None if benchmark is None else load_benchmark(benchmark, catalog=catalog)
        source = images.open()
        classifier = model.open(catalog=catalog, class_names=images.class_names)
        if source is None or classifier is None:
            missing = " and ".join(["--model"] * (classifier is None) + ["--data"] * (source is None))
            raise InputError(f"no {missing}; expected a model and its images, or the folder of a run")
        if source.note:
            complain(f"{source.name}: {source.note}", style="dim")
        made = speed.apply(classifier)
        used = protocol.apply_to(Protocol() if chosen is None else chosen.protocol)

        def work(report: Report) -> Audit:
            return audit(
                made,
                source,
                chosen,
                images=limit,
                accuracy=accuracy,
                difference=difference,
                protocol=used,
                batch_size=batch_size,
                report=report,
            )

        audits = [with_progress("audit", work, first="reading images", unit=None, kept="nothing is kept.")]
    if as_json:
        emit(audit_json(audits))
    else:
        _print(audits)
    if any(each.problems for each in audits):
        raise typer.Exit(FOUND)


def _print(audits: list[Audit]) -> None:
    width = console().width
    for number, each in enumerate(audits):
        if number:
            say("")
        for text, style in audit_lines(each, width):
            say(text, style=style)


def _of_results(
    folder: Path,
    model: OptionalModelOptions,
    images: OptionalImageOptions,
    *,
    accuracy: float | None,
    difference: float | None,
    benchmark: str | None,
) -> list[Audit]:
    given = {"--model": model.model, "--data": images.data, "--benchmark": benchmark}
    if both := [option for option, value in given.items() if value is not None]:
        raise InputError(f"{folder} and {both[0]}; expected the folder of a run, or a model and its images")
    runs = find_runs([folder])

    def work(report: Report) -> list[Audit]:
        return [audit_run(run, accuracy=accuracy, difference=difference, report=report) for run in runs]

    return with_progress("audit", work, first="reading records", unit=None, kept="nothing is kept.")
