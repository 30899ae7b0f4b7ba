"""``blemish ccc run``: adaptation methods on a stream."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import typer
from rich.table import Table

from blemish.core.files import write_bytes
from blemish.studies.adaptation.base import Method, adaptable
from blemish.studies.adaptation.methods import METHODS, Settings, make_method
from blemish.studies.adaptation.norm import UnsuitedError
from blemish.studies.streams.commands.options import (
    Length,
    RandomCrop,
    WalkFile,
    check_figures,
    chosen_images,
    read_chosen_walk,
)
from blemish.studies.streams.figures import run_figure
from blemish.studies.streams.images import ImageSet, from_source
from blemish.studies.streams.run import StreamResult, run_stream
from blemish.studies.streams.scores import default_window, find_collapse, held_accuracy, segment_accuracies, summary
from blemish.studies.streams.stream import Stream
from blemish.studies.streams.walks import Walk
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import Frost, Plugins, Preset, Seed, chosen_catalog
from blemish.terminal.executors import Jobs
from blemish.terminal.images import Crop, ImageOptions, Limit, Resize
from blemish.terminal.lists import listed
from blemish.terminal.models import ModelOptions
from blemish.terminal.option_groups import spread_options
from blemish.terminal.outputs import Overwrite, check_replaceable
from blemish.terminal.printing import say, show
from blemish.terminal.progress import Report, with_progress

__all__ = ["run_command"]

SUMMARY = "summary.json"
_CLEAN, _CLEAN_BATCH = 2000, 64
_USUAL = ("none", "bn", "tent", "eta", "rdumb")


@exit_on_input_error
@spread_options
def run_command(
    file: WalkFile,
    model: ModelOptions,
    images: ImageOptions,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for predictions, checkpoints and the summary.")],
    methods: Annotated[
        str | None,
        typer.Option(
            help=f"Separated by commas: {', '.join(METHODS)}; or all, as far as the network suits them. "
            f"Default: {','.join(_USUAL)}."
        ),
    ] = None,
    settings: Annotated[str, typer.Option(help="The methods' settings for imagenet or cifar.")] = "imagenet",
    reset: Annotated[int, typer.Option(min=1, help="Batches between RDumb's resets.")] = 1000,
    length: Length = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Images per adaptation step.")] = 64,
    window: Annotated[
        int | None, typer.Option(min=1, help="Images of the running mean. Default: 50,000, or a tenth of the stream.")
    ] = None,
    checkpoint: Annotated[int, typer.Option(min=1, help="Batches between checkpoints.")] = 500,
    jobs: Jobs = None,
    jpeg: Annotated[bool, typer.Option("--jpeg", help="JPEG of quality 85 at the end, as in the release.")] = False,
    seed: Seed = 0,
    figure: Annotated[Path | None, typer.Option(help="Draw the running means: .png, .svg or .pdf.")] = None,
    preset: Preset = None,
    limit: Limit = None,
    resize: Resize = None,
    crop: Crop = None,
    random_crop: RandomCrop = None,
    plugins: Plugins = None,
    frost: Frost = None,
    overwrite: Overwrite = False,
) -> None:
    """Run test-time adaptation methods side by side on the stream of a walk.

    Stop whenever you like: the same command goes on from the last checkpoint, with the same result.

    Examples:

      blemish ccc run easy.json -m timm:resnet50 -d imagenet/val --random-crop 224 --jpeg -o easy --methods all

      blemish ccc run walk.json -m python:my_net:build -d cifar10.npz --settings cifar --batch-size 200 -o run
    """
    check_figures(figure)
    check_replaceable(figure, overwrite=overwrite)
    catalog = chosen_catalog(plugins, frost)
    walk = read_chosen_walk(file, catalog)
    classifier = model.open(catalog=catalog)
    network = adaptable(classifier)
    sides = (resize, crop) if random_crop is None else (random_crop, random_crop)
    source = chosen_images(images, limit=limit, model=classifier, resize=sides[0], crop=sides[1])
    image_set = from_source(source, resize=resize, crop=crop, random=random_crop)
    _note_other_model(walk, classifier.describe())
    named = methods not in (None, "all")
    names = listed(methods) if named else tuple(METHODS) if methods == "all" else _USUAL
    on_device = None if jobs else classifier.device
    stream = Stream(
        image_set,
        walk,
        batch=batch_size,
        seed=seed,
        length=length,
        jpeg=jpeg,
        preset=preset,
        device=on_device,
        catalog=catalog,
    )
    clean = _clean_batches(image_set, classifier.device) if "eata" in names else None
    changes: dict[str, dict[str, Any]] = {"rdumb": {"every": reset}}
    made: dict[str, Method] = {}
    lacks: dict[str, list[str]] = {}
    for name in names:
        try:
            made[name] = make_method(
                name, network, settings=cast(Settings, settings), clean=clean, **changes.get(name, {})
            )
        except UnsuitedError as error:
            if named:
                raise
            lacks.setdefault(error.lack, []).append(name)
    for lack, unsuited in lacks.items():
        say(f"left out, because {lack}: {', '.join(unsuited)}", style="yellow")

    def work(report: Report) -> StreamResult:
        return run_stream(
            stream,
            {name: _OnDevice(method, classifier.device) for name, method in made.items()},
            folder=out,
            every=checkpoint,
            workers=jobs or 0,
            model=classifier.describe(),
            settings={"methods": settings, "reset": reset},
            progress=report,
        )

    result = with_progress("ccc run", work, first="adapting")
    scores = _scores(result, walk, window)
    write_bytes(out / SUMMARY, (json.dumps(scores, indent=1) + "\n").encode())
    _show(scores)
    if figure is not None:
        run_figure({file.stem: {name: result.correct(name) for name in made}}, figure, window=scores["window"])


def _note_other_model(walk: Walk, model: dict[str, Any]) -> None:
    """Other models may follow a walk, as published ones do; a forgotten option should not go unnoticed."""
    now = json.loads(json.dumps(model))
    before = (walk.protocol.get("calibration") or {}).get("model") or now
    # Its name and training do not decide what a model says.
    different = [key for key in now if key not in ("name", "training") and before.get(key) != now[key]]
    if different:
        say(
            f"the walk was calibrated with another model ({before.get('name')}; other {', '.join(different)}), so the "
            "unadapted accuracy need not be the target",
            style="yellow",
        )


class _OnDevice:
    """A method whose batches may come from worker processes, on the CPU."""

    def __init__(self, method: Any, device: Any) -> None:
        self.method, self.device = method, device
        self.state_dict, self.load_state_dict = method.state_dict, method.load_state_dict

    def adapt(self, batch: Any) -> Any:
        return self.method.adapt(batch.to(self.device, non_blocking=True))


def _clean_batches(images: ImageSet, device: Any) -> list[Any]:
    """Clean images for EATA: 2,000, or all of fewer."""
    rows = np.random.default_rng(0).permutation(len(images))[:_CLEAN].astype(np.int64)
    parts = [rows[i : i + _CLEAN_BATCH] for i in range(0, len(rows), _CLEAN_BATCH)]
    return [images.load(part, part, 0).to(device) for part in parts]


def _scores(result: StreamResult, walk: Walk, window: int | None) -> dict[str, Any]:
    size = min(window or default_window(len(result.labels)), len(result.labels))
    scores: dict[str, Any] = {"images": len(result.labels), "window": size, "methods": {}}
    target = walk.protocol.get("target")
    base = result.correct("none") if "none" in result.predictions else None
    if base is not None and target is not None:
        scores["held"] = {"target": target, **held_accuracy(base, walk, float(target))._asdict()}
    for name in result.predictions:
        correct = result.correct(name)
        fall = None if base is None or name == "none" else find_collapse(correct, base, size)
        step = None if fall is None else str(walk.steps[walk.step_at(fall.at % len(walk))])
        scores["methods"][name] = {
            **summary(correct, size)._asdict(),
            "collapse": None if fall is None else {**fall._asdict(), "step": step},
            "segments": [vars(segment) for segment in segment_accuracies(correct, walk)],
        }
    return scores


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
