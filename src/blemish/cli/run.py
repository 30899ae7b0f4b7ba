"""``blemish run``: a model on a benchmark, measured and kept as records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from blemish.benchmarks.benchmark import Benchmark, only
from blemish.benchmarks.files import load_benchmark
from blemish.core.errors import InputError
from blemish.core.progress import READING, ProgressReport
from blemish.corruptions.base import Corruption
from blemish.data.natural import natural_source
from blemish.data.open import open_stored
from blemish.data.source import Source
from blemish.data.subsets import chosen_classes, only_classes
from blemish.evaluation.run import evaluate
from blemish.evaluation.runs import Run
from blemish.metrics.references import reference_named
from blemish.metrics.sequential import precise_enough
from blemish.models.speed import compile_seconds
from blemish.reports.reading import read_all
from blemish.reports.score_tables import summary_table
from blemish.tasks.opening import open_task
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import Frost, Only, Plugins, Tiles, check_files, chosen_catalog, chosen_conditions
from blemish.terminal.executors import Gpus, Jobs, Ray, chosen_executor, own_device
from blemish.terminal.images import Classes, ImageOptions, Limit
from blemish.terminal.lists import listed
from blemish.terminal.models import BatchSize, ModelOptions, SpeedOptions
from blemish.terminal.option_groups import spread_options
from blemish.terminal.printing import say
from blemish.terminal.progress import with_progress
from blemish.terminal.protocol import ProtocolOptions
from blemish.terminal.results import deliver

_IMAGES = "Images"
_TASK = "Task"
_CLASSES = "classification"


@exit_on_input_error
@spread_options
def run_command(
    benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK", help='A name from "blemish benchmarks", or a file.')],
    model: ModelOptions,
    speed: SpeedOptions,
    images: ImageOptions,
    protocol: ProtocolOptions,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the results; each model gets a folder of its own in it.")
    ],
    classes: Classes = None,
    limit: Limit = None,
    until: Annotated[
        float | None,
        typer.Option(
            min=0, help="Go on with more images until the interval of the headline number is narrower than this."
        ),
    ] = None,
    patterns: Only = None,
    batch_size: BatchSize = None,
    stored: Annotated[
        Path | None,
        typer.Option(rich_help_panel=_IMAGES, help="Take corrupted images from here: an ImageNet-C or CIFAR-10-C set."),
    ] = None,
    natural: Annotated[
        list[str] | None,
        typer.Option(rich_help_panel=_IMAGES, help="A natural set, such as imagenet-r=FOLDER. May be repeated."),
    ] = None,
    cache: Annotated[
        Path | None, typer.Option(rich_help_panel=_IMAGES, help="Folder for decoded images that exceed memory.")
    ] = None,
    allow_chance: Annotated[
        bool, typer.Option("--anyway", help="Go on even if the model is not better than chance on clean images.")
    ] = False,
    zipf: Annotated[bool, typer.Option("--zipf", help="Also keep the Zipf distance of whole rankings.")] = False,
    plugins: Plugins = None,
    frost: Frost = None,
    tiles: Tiles = None,
    jobs: Jobs = None,
    gpus: Gpus = None,
    ray: Ray = None,
    task: Annotated[
        str,
        typer.Option(
            rich_help_panel=_TASK,
            help="What the model is asked: classification, detection, segmentation or multilabel.",
        ),
    ] = _CLASSES,
    annotations: Annotated[
        Path | None,
        typer.Option(
            rich_help_panel=_TASK,
            help="Of detection: COCO's, such as instances_val2017.json. Of segmentation: a folder of maps of classes. "
            "Of multilabel: a file with a row of 0 and 1 per image, where the images have none.",
        ),
    ] = None,
    output_names: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_TASK,
            help="Of an ONNX model: its boxes, scores and labels, or class scores. Labels are the numbers of "
            "categories, or places among --class-names, from 0.",
        ),
    ] = None,
) -> None:
    """Measure how a classifier holds up, condition by condition, and keep what it said of every image.

    Stop whenever you like, even with kill -9: the same command continues where it stopped. Then read the results with
    "blemish score", "blemish compare" and "blemish report".

    Examples:

      blemish run digits-c -m demo:plain -d demo:digits -o try --limit 100

      blemish run imagenet-c -m timm:resnet50 -d imagenet/val -o results

      blemish run imagenet-c -m timm:resnet50 -d imagenet/val -o quick --limit 1000

      blemish run cifar10-c -m python:my_net:build --weights net.pt -d cifar10_test.npz -o results

      blemish run imagenet-c -m timm:resnet50 -d imagenet/val -o results --precision float16 --compile --gpus all

      blemish run coco-c --task detection -m torchvision:retinanet_resnet50_fpn -d val2017 --annotations boxes.json -o r

      blemish run mine.toml -m model.onnx --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225 -d val -o results
    """
    if until is not None and not until > 0:
        raise InputError(f"--until {until:g}; expected the width of an interval, such as 0.5")
    executor = chosen_executor(jobs, gpus, ray, model.device)
    sets = _natural_sets(natural or [])
    catalog = chosen_catalog(plugins, frost, tiles)
    chosen = _adjusted(load_benchmark(benchmark, catalog=catalog), sets, chosen_conditions(patterns))
    chosen = protocol.apply(chosen)
    if chosen.reference is not None:
        reference_named(chosen.reference)  # refused before any work where there is none
    if stored is None:
        units = {step.name: step.unit for condition in chosen.conditions for step in condition.steps}
        check_files(unit for unit in units.values() if isinstance(unit, Corruption))
    if task != _CLASSES:
        own = {"classes": classes, "natural": natural, "zipf": zipf, "stored": stored, "until": until}
        for option, given in {**own, **{name: getattr(images, name) for name in _OF_CLASSES}}.items():
            if given:
                raise InputError(f"--{option.replace('_', '-')} is for classifiers; expected none with --task")
        opened = open_task(task, images.data, annotations)
        asked = opened.model(model.model, **_settings_of(model, speed, output_names), class_names=images.class_names)

        def measured(report: ProgressReport) -> Run:
            return evaluate(
                asked,
                opened.source,
                chosen,
                out=out,
                limit=limit,
                batch_size=batch_size,
                cache=cache,
                report=report,
                executor=executor,
                task=opened.task,
            )

        _tell(run_with_progress("run", measured), out)
        return
    for option, given in (("--annotations", annotations), ("--output-names", output_names)):
        if given is not None:
            raise InputError(f"{option} without --task; expected --task detection, segmentation or multilabel")
    source = images.open()
    if classes is not None:
        # Class folders are numbered when the model is there; all other labels stay what they mean to it.
        source = only_classes(source, chosen_classes(source, classes), renumber=source.in_order)
    if source.note:
        say(f"{source.name}: {source.note}", style="dim")
    classifier = speed.apply(
        model.open(catalog=catalog, device=own_device(model.device, ray), class_names=images.class_names)
    )
    stop_when = None if until is None else lambda run, look: precise_enough(run, width=until, look=look)[0]

    def work(report: ProgressReport) -> Run:
        return evaluate(
            classifier,
            source,
            chosen,
            out=out,
            limit=limit,
            stop_when=stop_when,
            natural=sets,
            stored=None if stored is None else open_stored(stored, mapping=images.mapping),
            batch_size=batch_size,
            zipf=zipf,
            cache=cache,
            report=report,
            executor=executor,
            allow_chance=allow_chance,
        )

    run = run_with_progress("run", work)
    if (seconds := compile_seconds(classifier)) is not None:
        workers = 1 if executor is None else executor.workers
        each = f", in each of {workers} workers" if workers > 1 else ""
        say(f"compiling the model took {seconds:.0f} s of it{each}", style="dim")
    _tell(run, out, until)


def _tell(run: Run, out: Path, until: float | None = None) -> None:
    """What came out, and where it is."""
    readings = with_progress("score", lambda report: read_all([run], report=report), first="reading records", unit=None)
    deliver([summary_table(readings)], None)
    if until is not None:
        _say_if_wide(run, until)
    say(f"records: {run.folder}", style="dim")
    say(f"next: blemish score {out}; blemish report {out} -o report.html", style="dim")


_OF_CLASSES = ("labels", "mapping", "columns")
_OF_TASKS = ("model", "name", "weights", "device", "allow_code")


def _settings_of(model: ModelOptions, speed: SpeedOptions, outputs: str | None) -> dict[str, Any]:
    """What a model of a task takes; options that are for classifiers are refused."""
    for group in (model, speed):
        for field in fields(group):
            if (
                field.name not in _OF_TASKS
                and field.name != "channels_last"
                and getattr(group, field.name) != field.default
            ):
                raise InputError(f"--{field.name.replace('_', '-')} is for classifiers; expected none with --task")
    settings = {name: getattr(model, name) for name in _OF_TASKS if name != "model"}
    return settings if outputs is None else {**settings, "outputs": tuple(listed(outputs))}


def _say_if_wide(run: Run, wanted: float) -> None:
    enough, width = precise_enough(run, width=wanted, look=run.stages)
    if not enough:
        images = run.info.data.images
        say(f"all {images} images are used; the interval is {width:.2g} wide, asked for {wanted:g}", style="yellow")


def run_with_progress(title: str, work: Callable[[ProgressReport], Run]) -> Run:
    """Evaluate while the progress is shown; finished conditions are kept."""
    kept = "finished conditions are kept. Run the same command again to continue."
    return with_progress(title, work, first=READING, kept=kept)


def _natural_sets(texts: list[str]) -> dict[str, Source]:
    sets = {}
    for text in texts:
        name, separator, path = text.partition("=")
        if not separator or not path:
            raise InputError(f"--natural {text!r}; expected NAME=FOLDER, such as imagenet-r=data/imagenet-r")
        sets[name] = natural_source(name, path)
        if sets[name].note:
            say(f"{name}: {sets[name].note}", style="dim")
    return sets


def _adjusted(benchmark: Benchmark, sets: dict[str, Source], patterns: list[str]) -> Benchmark:
    """The benchmark without what was not asked for; of natural sets, those whose folders were given."""
    if any(condition.other for condition in benchmark.conditions) and not patterns:
        if not sets:
            wanted = [group.removeprefix("natural:") for group in benchmark.groups if group.startswith("natural:")]
            raise InputError(f"{benchmark.name} needs --natural NAME=FOLDER for at least one of {', '.join(wanted)}")
        patterns = [f"*:{name}" for name in sets]
    return only(benchmark, patterns) if patterns else benchmark
