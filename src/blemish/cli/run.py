"""``blemish run``: a model on a benchmark, measured and kept as records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from blemish.benchmarks.benchmark import Benchmark, only
from blemish.benchmarks.files import load_benchmark
from blemish.core.errors import InputError
from blemish.corruptions.base import Corruption
from blemish.data.natural import natural_source
from blemish.data.open import open_source, open_stored
from blemish.data.source import Source
from blemish.evaluation.run import RunProgress, evaluate
from blemish.evaluation.runs import Run
from blemish.metrics.sequential import precise_enough
from blemish.models.open import open_model
from blemish.models.speed import compile_seconds, speed_up
from blemish.reports.reading import read_all
from blemish.reports.score_tables import summary_table
from blemish.terminal.commands import AllowCode, Frost, check_frost, chosen_catalog, exit_on_input_error, say
from blemish.terminal.executors import Gpus, Jobs, Ray, chosen_executor, own_device
from blemish.terminal.progress import Report, with_progress
from blemish.terminal.results import deliver, numbers

__all__ = ["run_command", "run_with_progress"]

_MODEL = "Model"
_IMAGES = "Images"
_PROTOCOL = "Protocol"

_READING = "reading images"

Tell = Callable[[RunProgress], None]
Reading = Callable[[int, int], None]


@exit_on_input_error
def run_command(
    benchmark: Annotated[str, typer.Argument(metavar="BENCHMARK", help='A name from "blemish benchmarks", or a file.')],
    model: Annotated[
        str,
        typer.Option(
            "--model",
            "-m",
            rich_help_panel=_MODEL,
            help="timm:NAME, torchvision:NAME, python:PACKAGE.MODULE:FUNCTION, a file (.onnx, .pt, .pt2, .tflite, "
            ".joblib), or a .toml file that describes one.",
        ),
    ],
    data: Annotated[
        str,
        typer.Option(
            "--data", "-d", rich_help_panel=_IMAGES, help="Clean images: class folders, .npy or .npz, or .tar shards."
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Folder for the results; each model gets a folder of its own in it.")
    ],
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", min=1, help="Use so many images, taken from all classes in proportion."),
    ] = None,
    until: Annotated[
        float | None,
        typer.Option(
            min=0, help="Go on with more images until the interval of the headline number is narrower than this."
        ),
    ] = None,
    patterns: Annotated[
        str | None, typer.Option("--only", help="Only these conditions: fog,snow@3,*_noise. Separated by commas.")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Images at a time; halved when memory runs out. Default: by the device.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1 … or auto.")] = "auto",
    precision: Annotated[
        str, typer.Option(rich_help_panel=_MODEL, help="Of forward passes: float32, or float16 or bfloat16 (faster).")
    ] = "float32",
    compiled: Annotated[
        bool, typer.Option("--compile", rich_help_panel=_MODEL, help="Use torch.compile: slow to start, then fast.")
    ] = False,
    channels_last: Annotated[
        bool,
        typer.Option(
            "--channels-last/--channels-first",
            rich_help_panel=_MODEL,
            help="How feature maps lie in memory with --precision or --compile.",
        ),
    ] = True,
    weights: Annotated[
        Path | None, typer.Option(rich_help_panel=_MODEL, help="A file of weights for python:… (never unpickled).")
    ] = None,
    name: Annotated[str | None, typer.Option(rich_help_panel=_MODEL, help="What to call the model.")] = None,
    size: Annotated[
        int | None, typer.Option(rich_help_panel=_MODEL, help="Side of the model's input. Default: as images come.")
    ] = None,
    mean: Annotated[
        str | None, typer.Option(rich_help_panel=_MODEL, help="Subtracted from values in 0 … 1: one number or three.")
    ] = None,
    std: Annotated[str | None, typer.Option(rich_help_panel=_MODEL, help="Divided by: one number or three.")] = None,
    channels: Annotated[str | None, typer.Option(rich_help_panel=_MODEL, help="rgb, bgr or gray.")] = None,
    output: Annotated[
        str | None, typer.Option(rich_help_panel=_MODEL, help="What the model gives: logits or probabilities.")
    ] = None,
    skip_classes: Annotated[
        int | None,
        typer.Option(min=0, rich_help_panel=_MODEL, help="Leading outputs to drop: 1 for 1001-class models."),
    ] = None,
    trained_on: Annotated[
        str | None,
        typer.Option(rich_help_panel=_MODEL, help="Corruptions or families it saw in training; marked everywhere."),
    ] = None,
    augmentations: Annotated[
        str | None, typer.Option(rich_help_panel=_MODEL, help="Augmentations it saw in training, in your words.")
    ] = None,
    allow_code: AllowCode = False,
    labels: Annotated[
        Path | None, typer.Option(rich_help_panel=_IMAGES, help="Labels, for an array file without them.")
    ] = None,
    mapping: Annotated[
        str | None,
        typer.Option(
            rich_help_panel=_IMAGES,
            help="Class order: a .json of {folder: index}, a text with a folder per line, or imagenet for folders that "
            "are named by WordNet ids. Default: as many outputs as folders, in order; or WordNet ids and 1000 outputs.",
        ),
    ] = None,
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
    seed: Annotated[int | None, typer.Option(rich_help_panel=_PROTOCOL, help="Instead of the benchmark's.")] = None,
    storage: Annotated[
        str | None, typer.Option(rich_help_panel=_PROTOCOL, help="raw or jpeg85, instead of the benchmark's.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(rich_help_panel=_PROTOCOL, help="Severity table, instead of the benchmark's.")
    ] = None,
    resize: Annotated[
        int | None, typer.Option(min=0, rich_help_panel=_PROTOCOL, help="Instead of the benchmark's; 0 for none.")
    ] = None,
    crop: Annotated[
        int | None, typer.Option(min=0, rich_help_panel=_PROTOCOL, help="Instead of the benchmark's; 0 for none.")
    ] = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Go on even if the model is not better than chance on clean images.")
    ] = False,
    zipf: Annotated[bool, typer.Option("--zipf", help="Also keep the Zipf distance of whole rankings.")] = False,
    frost: Frost = None,
    jobs: Jobs = None,
    gpus: Gpus = None,
    ray: Ray = None,
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

      blemish run mine.toml -m model.onnx --mean 0.485,0.456,0.406 --std 0.229,0.224,0.225 -d val -o results
    """
    if until is not None and not until > 0:
        raise InputError(f"--until {until:g}; expected the width of an interval, such as 0.5")
    executor = chosen_executor(jobs, gpus, ray, device)
    sets = _natural_sets(natural or [])
    chosen = _adjusted(load_benchmark(benchmark, catalog=chosen_catalog(frost)), sets, patterns)
    chosen = _with_protocol(chosen, seed=seed, storage=storage, preset=preset, resize=resize, crop=crop)
    if stored is None:
        units = {step.name: step.unit for condition in chosen.conditions for step in condition.steps}
        check_frost(unit for unit in units.values() if isinstance(unit, Corruption))
    source = open_source(data, labels=labels, mapping=mapping)
    if source.note:
        say(f"{source.name}: {source.note}", style="dim")
    classifier = open_model(
        model,
        weights=weights,
        name=name,
        size=size,
        mean=numbers(mean, "--mean"),
        std=numbers(std, "--std"),
        channels=cast(Any, channels),  # checked there, with the other settings
        output=cast(Any, output),
        skip_classes=skip_classes,
        device=own_device(device, ray),
        trained_on=_listed(trained_on),
        augmentations=_listed(augmentations),
        allow_code=allow_code,
    )
    if precision != "float32" or compiled:
        classifier = speed_up(
            classifier, precision=cast(Any, precision), channels_last=channels_last, compiled=compiled
        )
    stop_when = None if until is None else lambda run, look: precise_enough(run, width=until, look=look)[0]

    def work(tell: Tell, reading: Reading) -> Run:
        return evaluate(
            classifier,
            source,
            chosen,
            out=out,
            limit=limit,
            stop_when=stop_when,
            natural=sets,
            stored=None if stored is None else open_stored(stored, mapping=mapping),
            batch_size=batch_size,
            zipf=zipf,
            cache=cache,
            report=tell,
            reading=reading,
            executor=executor,
            allow_chance=anyway,
        )

    run = run_with_progress("run", work)
    if (seconds := compile_seconds(classifier)) is not None:
        workers = 1 if executor is None else executor.workers
        each = f", in each of {workers} workers" if workers > 1 else ""
        say(f"compiling the model took {seconds:.0f} s of it{each}", style="dim")
    readings = with_progress("score", lambda report: read_all([run], report=report), first="reading records", unit=None)
    deliver([summary_table(readings)], None)
    if until is not None:
        _say_if_wide(run, until)
    say(f"records: {run.folder}", style="dim")
    say(f"next: blemish score {out}; blemish report {out} -o report.html", style="dim")


def _say_if_wide(run: Run, wanted: float) -> None:
    enough, width = precise_enough(run, width=wanted, look=run.stages)
    if not enough:
        images = run.info.data.images
        say(f"all {images} images are used; the interval is {width:.2g} wide, asked for {wanted:g}", style="yellow")


def run_with_progress(title: str, work: Callable[[Tell, Reading], Run]) -> Run:
    """Evaluate while the progress is shown; the work is given what `evaluate` tells its steps and its reading."""

    def evaluated(report: Report) -> Run:
        return work(
            lambda step: report(step.done, step.total, step.condition),
            lambda done, total: report(done, total, _READING),
        )

    kept = "finished conditions are kept. Run the same command again to continue."
    return with_progress(title, evaluated, first=_READING, kept=kept)


def _listed(text: str | None) -> tuple[str, ...]:
    return tuple(item.strip() for item in (text or "").split(",") if item.strip())


def _natural_sets(texts: list[str]) -> dict[str, Source]:
    sets = {}
    for text in texts:
        name, found, path = text.partition("=")
        if not found or not path:
            raise InputError(f"--natural {text!r}; expected NAME=FOLDER, such as imagenet-r=data/imagenet-r")
        sets[name] = natural_source(name, path)
        if sets[name].note:
            say(f"{name}: {sets[name].note}", style="dim")
    return sets


def _adjusted(benchmark: Benchmark, sets: dict[str, Source], patterns: str | None) -> Benchmark:
    """The benchmark without what was not asked for; of natural sets, those whose folders were given."""
    if any(condition.other for condition in benchmark.conditions) and patterns is None:
        if not sets:
            wanted = [group.removeprefix("natural:") for group in benchmark.groups if group.startswith("natural:")]
            raise InputError(f"{benchmark.name} needs --natural NAME=FOLDER for at least one of {', '.join(wanted)}")
        patterns = ",".join(f"*:{name}" for name in sets)
    return benchmark if patterns is None else only(benchmark, _listed(patterns))


def _with_protocol(benchmark: Benchmark, **settings: int | str | None) -> Benchmark:
    given = {key: value for key, value in settings.items() if value is not None}
    for key in ("resize", "crop"):
        if given.get(key) == 0:
            given[key] = None  # type: ignore[assignment]
    return replace(benchmark, protocol=replace(benchmark.protocol, **given)) if given else benchmark  # type: ignore[arg-type]
