"""``blemish ccc run`` and ``materialise``: adaptation methods on a stream, and a stream as files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np
import typer
from rich.table import Table

from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.corruptions.catalog import Catalog
from blemish.export.outcome import Outcome
from blemish.studies.adaptation.base import Method, adaptable
from blemish.studies.adaptation.methods import METHODS, Settings, make_method
from blemish.studies.adaptation.norm import UnsuitedError
from blemish.studies.streams.commands.options import (
    ClassMapping,
    Crop,
    Data,
    Device,
    Labels,
    Limit,
    Mean,
    Model,
    Preset,
    RandomCrop,
    Resize,
    Size,
    Std,
    Weights,
    check_figures,
    chosen_images,
    model_of,
    names_of,
)
from blemish.studies.streams.figures import run_figure
from blemish.studies.streams.images import ImageSet, from_source
from blemish.studies.streams.run import StreamResult, run_stream
from blemish.studies.streams.scores import default_window, find_collapse, held_accuracy, segment_accuracies, summary
from blemish.studies.streams.stream import Stream
from blemish.studies.streams.walks import Walk, read_walk
from blemish.studies.streams.webdataset import SHARD_IMAGES, materialise
from blemish.terminal.commands import AllowCode, Frost, check_frost, chosen_catalog, exit_on_input_error, say
from blemish.terminal.executors import Jobs, Ray, chosen_executor
from blemish.terminal.outputs import Overwrite, check_replaceable
from blemish.terminal.printing import show
from blemish.terminal.progress import Report, with_progress

__all__ = ["materialise_command", "run_command"]

SUMMARY = "summary.json"
_CLEAN, _CLEAN_BATCH = 2000, 64
_USUAL = ("none", "bn", "tent", "eta", "rdumb")

WalkFile = Annotated[Path, typer.Argument(metavar="WALK", help="A file that blemish ccc walk wrote.")]
Length = Annotated[int | None, typer.Option(min=1, help="Images to show. Default: the walk, once.")]


@exit_on_input_error
def run_command(
    walk: WalkFile,
    model: Model,
    data: Data,
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
    workers: Annotated[int, typer.Option(min=0, help="Processes that corrupt images. The result is the same.")] = 0,
    jpeg: Annotated[bool, typer.Option("--jpeg", help="JPEG of quality 85 at the end, as in the release.")] = False,
    seed: Annotated[int, typer.Option(help="Of the order of images and their random draws.")] = 0,
    figure: Annotated[Path | None, typer.Option(help="Draw the running means: .png, .svg or .pdf.")] = None,
    preset: Preset = None,
    device: Device = "auto",
    weights: Weights = None,
    size: Size = None,
    mean: Mean = None,
    std: Std = None,
    allow_code: AllowCode = False,
    limit: Limit = None,
    labels: Labels = None,
    mapping: ClassMapping = None,
    resize: Resize = None,
    crop: Crop = None,
    random_crop: RandomCrop = None,
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
    path = read_walk(walk)
    catalog = _ready_catalog(path, frost)
    classifier = model_of(model, weights, size, mean, std, device, allow_code=allow_code)
    network = adaptable(classifier)
    sides = (resize, crop) if random_crop is None else (random_crop, random_crop)
    source = chosen_images(data, labels, mapping, limit=limit, model=classifier, resize=sides[0], crop=sides[1])
    images = from_source(source, resize=resize, crop=crop, random=random_crop)
    _note_other_model(path, classifier.describe())
    named = methods not in (None, "all")
    names = names_of(methods) if named else tuple(METHODS) if methods == "all" else _USUAL
    on_device = None if workers else classifier.device
    stream = Stream(
        images,
        path,
        batch=batch_size,
        seed=seed,
        length=length,
        jpeg=jpeg,
        preset=preset,
        device=on_device,
        catalog=catalog,
    )
    clean = _clean_batches(images, classifier.device) if "eata" in names else None
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
            workers=workers,
            model=classifier.describe(),
            settings={"methods": settings, "reset": reset},
            progress=report,
        )

    result = with_progress("ccc run", work, first="adapting")
    scores = _scores(result, path, window)
    write_bytes(out / SUMMARY, (json.dumps(scores, indent=1) + "\n").encode())
    _show(scores)
    if figure is not None:
        run_figure({walk.stem: {name: result.correct(name) for name in made}}, figure, window=scores["window"])


def _ready_catalog(walk: Walk, frost: Path | None) -> Catalog:
    """The corruptions of a walk, refused where one lacks its photographs; other ones than calibrated with are noted."""
    catalog = chosen_catalog(frost)
    check_frost(catalog[name] for name in walk.corruptions)
    before = (walk.protocol.get("calibration") or {}).get("frost")
    if "frost" in walk.corruptions and before not in (None, catalog.frost_kind):
        say(f"the walk was calibrated with {before} photographs of frost; these are {catalog.frost_kind}", "yellow")
    return catalog


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


@exit_on_input_error
def materialise_command(
    walk: WalkFile,
    data: Data,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the shards.")],
    length: Length = None,
    shard_images: Annotated[int, typer.Option(min=1, help="Images per shard.")] = SHARD_IMAGES,
    part: Annotated[str, typer.Option(help="Do a share of the work: 0/4 … 3/4 in four processes.")] = "0/1",
    seed: Annotated[int, typer.Option(help="Of the order of images and their random draws.")] = 0,
    preset: Preset = None,
    limit: Limit = None,
    labels: Labels = None,
    mapping: ClassMapping = None,
    resize: Resize = None,
    crop: Crop = None,
    random_crop: RandomCrop = None,
    frost: Frost = None,
    jobs: Jobs = None,
    ray: Ray = None,
) -> None:
    """Write the stream of a walk as WebDataset shards, with the release's names and fields.

    Stop whenever you like: the same command continues where it stopped.

    Examples:

      blemish ccc materialise easy.json -d imagenet/val --random-crop 224 -o baseline_40_transition+speed_1000_seed_43
    """
    number, _, parts = part.partition("/")
    if not all(re.fullmatch("[0-9]{1,9}", text) for text in (number, parts)):
        raise InputError(f"--part {part}; expected a share such as 0/4")
    executor = chosen_executor(jobs, ray=ray)
    path = read_walk(walk)
    catalog = _ready_catalog(path, frost)
    source = chosen_images(data, labels, mapping, limit=limit)
    stream = Stream(
        from_source(source, resize=resize, crop=crop, random=random_crop),
        path,
        seed=seed,
        length=length,
        preset=preset,
        catalog=catalog,
    )

    def work(report: Report) -> Outcome:
        return materialise(
            stream,
            out,
            shard_images=shard_images,
            part=int(number),
            parts=int(parts),
            progress=report,
            executor=executor,
        )

    outcome = with_progress("ccc materialise", work, first="writing shards")
    say(f"wrote {outcome.written:,} images to {out}, {outcome.skipped:,} were there already")
