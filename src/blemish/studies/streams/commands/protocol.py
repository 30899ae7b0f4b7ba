"""``blemish ccc protocol``: all runs of the sets, three seeds at three speeds each, and what they come to together."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.folders import held_folder
from blemish.core.marks import MADE_WITH
from blemish.reports.html import check_report_path
from blemish.studies.adaptation.base import adaptable
from blemish.studies.streams.calibration import read_calibration
from blemish.studies.streams.commands.methods import MethodOptions, OnDevice
from blemish.studies.streams.commands.options import (
    Jpeg,
    ShownOptions,
    Surfaces,
    changes_text,
    guesses_text,
    other_model_text,
    protocol_text,
    share_of,
    warn,
)
from blemish.studies.streams.images import image_list
from blemish.studies.streams.levels import LEVELS, SEEDS, SETS, find_set
from blemish.studies.streams.planning import Pair, WalkCell, walk_cells
from blemish.studies.streams.scores import default_window
from blemish.studies.streams.set_page import Setting, write_set_page
from blemish.studies.streams.set_runs import (
    FinishedRun,
    RunSettings,
    SetRun,
    finish_runs,
    planned_runs,
)
from blemish.studies.streams.set_scores import column_scores, scores_json
from blemish.studies.streams.set_tables import INTERVALS, accuracy_table
from blemish.studies.streams.stream import Stream
from blemish.studies.streams.surface import Surface
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import check_files
from blemish.terminal.executors import Jobs
from blemish.terminal.images import ImageOptions
from blemish.terminal.lists import listed, whole_numbers
from blemish.terminal.models import ModelOptions
from blemish.terminal.option_groups import spread_options
from blemish.terminal.printing import say
from blemish.terminal.progress import Report, with_progress
from blemish.terminal.results import deliver

PAGE, NUMBERS = "report.html", "scores.json"


@exit_on_input_error
@spread_options
def protocol_command(
    calibration: Surfaces,
    model: ModelOptions,
    images: ImageOptions,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for all runs, the page and the numbers.")],
    methods: MethodOptions,
    shown: ShownOptions,
    set_names: Annotated[str, typer.Option("--set", help=f"Separated by commas: {', '.join(SETS)}.")] = ",".join(
        LEVELS
    ),
    seeds: Annotated[str, typer.Option(help="Of the walks, separated by commas; streams get the same.")] = ",".join(
        map(str, SEEDS)
    ),
    speeds: Annotated[
        str | None, typer.Option(help="Images per step, separated by commas. Default: the set's three.")
    ] = None,
    length: Annotated[
        int | None, typer.Option("--length", min=1, help="At least so many images per run. Default: the set's.")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Images per adaptation step.")] = 64,
    window: Annotated[
        int | None, typer.Option(min=1, help="Images of the running mean. Default: 50,000, or a tenth of a run.")
    ] = None,
    checkpoint: Annotated[int, typer.Option(min=1, help="Batches between checkpoints.")] = 500,
    part: Annotated[str, typer.Option(help="Do a share of the runs: 0/3 … 2/3 in three processes.")] = "0/1",
    jobs: Jobs = None,
    jpeg: Jpeg = False,
) -> None:
    """Run adaptation methods on all walks of the sets, three seeds at three speeds each, and average over the runs.

    Stop whenever you like: the same command skips the runs that are over and goes on with the others. When all are, it
    prints methods × sets and writes a page.

    Examples:

      blemish ccc protocol surfaces -m timm:resnet50 -d imagenet/val --random-crop 224 --jpeg --methods all -o nine

      blemish ccc protocol surfaces -m demo:plain -d demo:digits --set hard-smooth --length 500 --speeds 10,20 -o small
    """
    check_report_path(out / PAGE)
    number, parts = share_of(part)
    catalog = shown.catalog()
    surfaces, protocol = read_calibration(calibration)
    sets = [find_set(name) for name in dict.fromkeys(listed(set_names))]
    if not sets:
        raise InputError(f"--set {set_names}; expected names such as easy,hard")
    check_files(catalog[name] for name in dict.fromkeys(name for chosen in sets for name in chosen.corruptions))
    runs = planned_runs(
        surfaces,
        protocol,
        sets,
        seeds=whole_numbers(seeds, "--seeds"),
        speeds=whole_numbers(speeds, "--speeds"),
        images=length,
    )
    classifier = model.open(catalog=catalog, class_names=images.class_names)
    network = adaptable(classifier)
    image_sets = {
        subset: shown.image_set(images, subset=subset, named=name, model=classifier)
        for subset, name in {chosen.subset: chosen.name for chosen in sets}.items()
    }
    streams = [
        Stream(
            image_sets[run.of.subset],
            run.walk,
            batch=batch_size,
            seed=run.seed,
            jpeg=jpeg,
            preset=shown.preset,
            device=None if jobs else classifier.device,
            catalog=catalog,
        )
        for run in runs
    ]

    def fresh(stream: Stream) -> dict[str, OnDevice]:
        made, _ = methods.make(network, stream.images, classifier)
        return {name: OnDevice(method, classifier.device) for name, method in made.items()}

    first, left_out = methods.make(network, streams[0].images, classifier)
    warnings = warn(
        *changes_text([run.walk for run in runs]),
        *_guesses(surfaces, runs),
        *(protocol_text(stream, allow_mismatch=shown.allow_mismatch) for stream in streams),
        other_model_text(runs[0].walk, classifier.describe()),
        *left_out,
    )
    shared = RunSettings(
        methods=list(first),
        model=classifier.describe(),
        settings=methods.describe(),
        window=window or default_window(min(len(run.walk) for run in runs)),
        every=checkpoint,
        workers=jobs or 0,
    )

    def work(report: Report) -> list[FinishedRun | None]:
        with held_folder(out, f"{number}-of-{parts}"):
            return finish_runs(runs, streams, out, shared, fresh, part=number, parts=parts, progress=report)

    finished = with_progress("ccc protocol", work, first="adapting")
    over = [run for run in finished if run is not None]
    if len(over) < len(runs):
        say(f"{len(over)} of {len(runs)} runs are over; the page is made by the part that finds all of them over")
        return
    columns = column_scores(over)
    numbers = {"made_with": MADE_WITH, "level": 0.95, "sets": scores_json(columns)}
    write_bytes(out / NUMBERS, (json.dumps(numbers, indent=1) + "\n").encode())
    setting = Setting(classifier.name, _shown_images(streams), _lines(streams, shared))
    write_set_page(columns, out / PAGE, setting=setting, warnings=warnings)
    deliver([accuracy_table(columns)], None)
    say(INTERVALS, style="dim")
    say(f"wrote {out / PAGE} and {out / NUMBERS}")


def _guesses(surfaces: Mapping[Pair, Surface], runs: Sequence[SetRun]) -> list[str | None]:
    """For each set how many steps of its walks were not measured, if any."""
    columns: dict[str, list[WalkCell]] = {}
    for run in runs:
        columns.setdefault(run.column, []).extend(walk_cells(surfaces, run.walk))
    return [guesses_text(cells, f"steps of {column}") for column, cells in columns.items()]


def _shown_images(streams: Sequence[Stream]) -> str:
    sources = {stream.images.fingerprint: stream.images for stream in streams}
    return ", ".join(f"{images.name} ({len(images):,} images)" for images in sources.values())


def _lines(streams: Sequence[Stream], shared: RunSettings) -> dict[str, str]:
    """What the page says of how images were shown and methods run."""
    stream = streams[0]  # all are shown alike, but for which images
    said, calibration = stream.describe(), stream.walk.protocol.calibration
    settings = shared.settings
    assert calibration is not None
    return {
        "methods": ", ".join(shared.methods),
        "settings": f"{settings.methods}; batches of {stream.batch}; RDumb: margin {settings.rdumb_margin:.3g} · "
        f"ln(classes), afresh every {settings.reset:,} batches",
        "images": f"{said.preparation}; {'JPEG of quality 85' if stream.jpeg else 'not stored as JPEG'}; severities "
        f"{said.preset or 'by image size'}",
        "list of images": ", ".join(dict.fromkeys(image_list(stream.images.names) for stream in streams)),
        "calibration": f"{calibration.images} images, seed {calibration.seed}, "
        f"model {None if calibration.model is None else calibration.model.name}",
        "window": f"{shared.window:,} images",
    }
