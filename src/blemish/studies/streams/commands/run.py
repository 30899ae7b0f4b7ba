"""``blemish ccc run``: adaptation methods on a stream."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from blemish.studies.adaptation.base import adaptable
from blemish.studies.streams.commands.methods import MethodOptions, OnDevice
from blemish.studies.streams.commands.options import (
    Jpeg,
    Length,
    ShownOptions,
    WalkFile,
    check_figures,
    other_model_text,
    protocol_text,
    read_chosen_walk,
    warn,
)
from blemish.studies.streams.figures import run_figure
from blemish.studies.streams.run import StreamResult, run_stream
from blemish.studies.streams.stream import Stream
from blemish.studies.streams.summaries import run_summary, save_summary
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import Seed
from blemish.terminal.executors import Jobs
from blemish.terminal.images import ImageOptions
from blemish.terminal.models import ModelOptions
from blemish.terminal.option_groups import spread_options
from blemish.terminal.outputs import Overwrite, check_replaceable
from blemish.terminal.printing import say, show
from blemish.terminal.progress import Report, with_progress


@exit_on_input_error
@spread_options
def run_command(
    file: WalkFile,
    model: ModelOptions,
    images: ImageOptions,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for predictions, checkpoints and the summary.")],
    methods: MethodOptions,
    shown: ShownOptions,
    length: Length = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Images per adaptation step.")] = 64,
    window: Annotated[
        int | None, typer.Option(min=1, help="Images of the running mean. Default: 50,000, or a tenth of the stream.")
    ] = None,
    checkpoint: Annotated[int, typer.Option(min=1, help="Batches between checkpoints.")] = 500,
    jobs: Jobs = None,
    jpeg: Jpeg = False,
    seed: Seed = 0,
    figure: Annotated[Path | None, typer.Option(help="Draw the running means: .png, .svg or .pdf.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Run test-time adaptation methods side by side on the stream of a walk.

    Stop whenever you like: the same command goes on from the last checkpoint, with the same result.

    Examples:

      blemish ccc run easy.json -m timm:resnet50 -d imagenet/val --random-crop 224 --jpeg -o easy --methods all

      blemish ccc run walk.json -m python:my_net:build -d cifar10.npz --tuned-for cifar --batch-size 200 -o run
    """
    check_figures(figure)
    check_replaceable(figure, overwrite=overwrite)
    catalog = shown.catalog()
    walk = read_chosen_walk(file, catalog)
    classifier = model.open(catalog=catalog, class_names=images.class_names)
    network = adaptable(classifier)
    of_set = walk.protocol
    image_set = shown.image_set(images, subset=of_set.subset, named=str(of_set.set), model=classifier)
    stream = Stream(
        image_set,
        walk,
        batch=batch_size,
        seed=seed,
        length=length,
        jpeg=jpeg,
        preset=shown.preset,
        device=None if jobs else classifier.device,
        catalog=catalog,
    )
    warn(other_model_text(walk, classifier.describe()), protocol_text(stream, allow_mismatch=shown.allow_mismatch))
    made, left_out = methods.make(network, image_set, classifier)
    warn(*left_out)

    def work(report: Report) -> StreamResult:
        return run_stream(
            stream,
            {name: OnDevice(method, classifier.device) for name, method in made.items()},
            folder=out,
            every=checkpoint,
            workers=jobs or 0,
            model=classifier.describe(),
            settings=methods.describe(),
            progress=report,
        )

    result = with_progress("ccc run", work, first="adapting")
    scores = run_summary(result, walk, window)
    save_summary(out, scores)
    _show(scores)
    if figure is not None:
        run_figure({file.stem: {name: result.correct(name) for name in made}}, figure, window=scores["window"])


def _show(scores: dict[str, Any]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in ("method", "min", "mean", "max", "accuracy"):
        table.add_column(heading, justify="left" if heading == "method" else "right")
    table.add_column("collapse")
    for name, row in scores["methods"].items():
        fall = row["collapse"]
        where = "" if fall is None else f"at image {fall['at']:,} ({fall['step']}), {100 * fall['loss']:.1f} points"
        numbers = (f"{100 * row[key]:.1f}" for key in ("minimum", "mean", "maximum", "accuracy"))
        table.add_row(name, *numbers, where)
    show(table)
    say(f"top-1 in percent, running mean over {scores['window']:,} of {scores['images']:,} images", style="dim")
    if "held" in scores:
        held = scores["held"]
        say(
            f"unadapted over {held['steps']} steps: {100 * held['mean']:.1f} %, target {100 * held['target']:g} %, "
            f"{100 * held['deviation']:.1f} points off a step",
            style="dim",
        )
