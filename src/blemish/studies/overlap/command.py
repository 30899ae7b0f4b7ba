"""``blemish train-overlap``: train a network per corruption, and see which corruptions help against which."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import torch
import typer

from blemish.benchmarks.condition import CLEAN
from blemish.benchmarks.files import built_in, load_benchmark
from blemish.core.errors import InputError, StorageError
from blemish.core.folders import check_links
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.corruptions.catalog import Catalog
from blemish.data.cache import load
from blemish.data.open import open_source
from blemish.data.source import Source
from blemish.data.subsets import chosen_classes, only_classes
from blemish.evaluation.chance import chance_of
from blemish.evaluation.executors.base import Executor
from blemish.evaluation.executors.in_process import InProcess
from blemish.evaluation.runs import Run
from blemish.models.torch_module import device_named
from blemish.reports.figure_files import save_figure
from blemish.studies.construction.commands.common import write_rows
from blemish.studies.construction.commands.overlap_scores import write_intervals
from blemish.studies.construction.commands.select import gained_rows
from blemish.studies.construction.coverage import Gained, coverage_by_training
from blemish.studies.construction.figures import SAVING, overlap_figure
from blemish.studies.construction.gather import gather_accuracies, gather_correct, write_correct
from blemish.studies.construction.matrices import write_matrix
from blemish.studies.construction.overlap import OverlapIntervals, overlap_intervals
from blemish.studies.construction.tables import write_table
from blemish.studies.overlap.harness import ALL, ARCHITECTURES, Plan, Trained, train_all
from blemish.studies.overlap.measure import measure_all
from blemish.studies.overlap.training import Schedule
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
from blemish.terminal.executors import Gpus, Jobs, Ray, chosen_executor, own_device
from blemish.terminal.images import Classes, Crop, Limit, Resize, balanced_part
from blemish.terminal.lists import listed
from blemish.terminal.models import Device
from blemish.terminal.printing import say
from blemish.terminal.progress import Report, with_progress

# Scores lie between 0 and 1 as a rule; an interval of half of that says little.
_WIDE = 0.5

_TRAINING = "Training (defaults of the ImageNet-NOC paper)"


@exit_on_input_error
def train_overlap_command(
    corruptions: RequiredCorruptions,
    data: Annotated[str, typer.Option("--data", "-d", help="Training images: what blemish run takes.")],
    test: Annotated[str, typer.Option("--test", "-t", help="Test images of the same classes.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for networks, records and the matrix.")],
    arch: Annotated[
        str, typer.Option(help=f"{', '.join(ARCHITECTURES)}, or PACKAGE.MODULE:FUNCTION called with the classes.")
    ] = "resnet18",
    fine_tune: Annotated[
        int | None,
        typer.Option(
            min=1, help="Start from the standard network and train so many epochs, at a tenth of the rate: much faster."
        ),
    ] = None,
    with_all: Annotated[
        bool, typer.Option("--with-all", help="Also one network on all corruptions, to measure coverage.")
    ] = False,
    under: Annotated[
        list[str] | None,
        typer.Option(
            "--under",
            metavar="NAMES",
            help="Also measure all networks under these, which none is trained on: as --corruption. May be repeated.",
        ),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, rich_help_panel=_TRAINING, help="For networks from scratch.")] = 40,
    batch_size: Annotated[int, typer.Option(min=2, rich_help_panel=_TRAINING, help="Images per step.")] = 256,
    rate: Annotated[float, typer.Option(rich_help_panel=_TRAINING, help="Learning rate at the start.")] = 0.1,
    momentum: Annotated[float, typer.Option(rich_help_panel=_TRAINING, help="Of SGD.")] = 0.9,
    decay: Annotated[float, typer.Option(rich_help_panel=_TRAINING, help="Weight decay.")] = 1e-4,
    corrupted: Annotated[float, typer.Option(rich_help_panel=_TRAINING, help="Part of a batch to corrupt.")] = 0.5,
    flip: Annotated[bool, typer.Option(rich_help_panel=_TRAINING, help="Flip images at random.")] = True,
    together: Annotated[
        int | None,
        typer.Option(min=1, help="Networks to train at once. Default: one, half or all of them, whichever is fastest."),
    ] = None,
    preset: Preset = None,
    resize: Resize = None,
    crop: Crop = None,
    chosen: Classes = None,
    limit: Limit = None,
    seed: Seed = 0,
    device: Device = "auto",
    plugins: Plugins = None,
    frost: Frost = None,
    tiles: Tiles = None,
    jobs: Jobs = None,
    gpus: Gpus = None,
    ray: Ray = None,
) -> None:
    """Train a standard network and one per corruption, and measure how much corruptions overlap.

    Half of every batch is corrupted at random severities. Everything is kept and continued: stop whenever you like.
    Then "blemish build select", "categories" and the like read OUT/overlap.csv. The name of a built-in benchmark stands
    for its corruptions. With --with-all one more network sees all corruptions, and OUT/coverage.csv says what that
    helps against, also under those of another benchmark (--under), as in the NOC paper's Table 1.

    Examples:

      blemish train-overlap -c noise,fog,contrast -d train.npz -t test.npz --arch resnet18_small -o overlap

      blemish train-overlap -c noc -d imagenet/train -t imagenet/val --classes every:10 --resize 256 --crop 224 -o noc

      blemish train-overlap -c imagenet-c --with-all --under imagenet-noc -d train.npz -t test.npz -o coverage
    """
    schedule = Schedule(epochs, batch_size, rate, momentum=momentum, decay=decay, corrupted=corrupted, flip=flip)
    catalog = chosen_catalog(plugins, frost, tiles)
    names, further = (tuple(_named(texts, catalog)) if texts else () for texts in (corruptions, under))
    check_files(catalog[name] for name in (*names, *further))
    training, testing = _same_classes(open_source(data), open_source(test))
    if chosen is not None:
        members = chosen_classes(training, chosen)
        training, testing = (only_classes(source, members, renumber=True) for source in (training, testing))
    if Path(data).resolve() == Path(test).resolve():
        say(f"{data} is trained on and tested on: scores will say how well it is remembered", style="yellow")
    if training.in_order:
        classes = len(training.classes or ())
    else:
        classes = int(max(training.labels.max(), testing.labels.max())) + 1
    tune = None
    if fine_tune is not None:
        tune = Schedule(
            fine_tune, batch_size, rate / 10, momentum=momentum, decay=decay, corrupted=corrupted, flip=flip
        )
    plan = Plan(names, arch, classes, schedule, tune, with_all, seed, preset, catalog, further)
    if len(names) < 2:
        raise InputError(f"{len(names)} corruption; expected at least two to compare")
    check_links(out)
    executor = chosen_executor(jobs, gpus, ray, device)
    here = device_named(own_device(device, ray))
    runs = _worked(plan, balanced_part(training, limit), testing, out, here, together, resize, crop, executor)
    _conclude(plan, runs, out)


def _named(texts: list[str], catalog: Catalog) -> list[str]:
    """Names of corruptions; a family stands for its members, and so does a built-in benchmark."""
    items: list[str] = []
    for item in listed(texts):
        items += load_benchmark(item, catalog=catalog).groups if item in built_in() else (item,)
    return chosen_names(items, catalog)


def _same_classes(training: Source, testing: Source) -> tuple[Source, Source]:
    """Test images with the labels that their class folders have among the training images."""
    if not (training.in_order and testing.in_order) or training.classes == testing.classes:
        return training, testing
    known = {name: number for number, name in enumerate(training.classes or ())}
    here = testing.classes or ()
    if strange := [name for name in here if name not in known]:
        raise InputError(
            f"{testing.name}: class folder {strange[0]!r} is not among those that are trained on in {training.name}; "
            "expected the same classes"
        )
    labels = np.array([known[name] for name in here], dtype=np.int64)[testing.labels]
    return training, replace(testing, labels=labels, classes=training.classes)


def training_images(
    source: Source, resize: int | None, crop: int | None, progress: ProgressReport = tell_nobody
) -> torch.Tensor:
    """All images of a source as one uint8 batch (N, 3, H, W)."""
    images = load(source, resize=resize, crop=crop, progress=progress)
    if len(images.by_shape()) > 1:
        raise InputError(f"{source.name}: images of several sizes; expected one, so give --resize and --crop")
    pixels = images.batch(range(len(images)))
    return pixels if pixels.shape[1] == 3 else pixels.expand(-1, 3, -1, -1)


def _images_again(reopen: Callable[[], Source], resize: int | None, crop: int | None) -> torch.Tensor:
    return training_images(reopen(), resize, crop)


def _worked(
    plan: Plan,
    training: Source,
    testing: Source,
    out: Path,
    device: torch.device,
    together: int | None,
    resize: int | None,
    crop: int | None,
    executor: Executor | None,
) -> list[Run]:
    again = None if training.reopen is None else partial(_images_again, training.reopen, resize, crop)

    def work(report: Report) -> list[Run]:
        pixels, labels = training_images(training, resize, crop, report), torch.from_numpy(training.labels)
        with executor or InProcess():
            report(0, None, "training")
            networks: list[Trained] = train_all(
                plan,
                pixels,
                labels,
                out / "networks",
                device=device,
                together=together,
                report=lambda title, done, of, loss: report(done, of, f"training {title}, loss {loss:.3f}, epochs"),
                executor=executor,
                again=again,
            )
            return measure_all(
                plan,
                networks,
                testing,
                out / "results",
                device=device,
                executor=executor,
                resize=resize,
                crop=crop,
                report=report,
            )

    kept = "finished epochs are kept. Run the same command again to continue."
    return with_progress("train-overlap", work, first="reading images", unit=None, kept=kept)


def _say_if_unsure(intervals: OverlapIntervals) -> None:
    """Scores are quotients: with little gain below, they can be anything."""
    first, second = np.triu_indices(len(intervals.matrix.names), 1)
    width = (intervals.high - intervals.low)[first, second]
    unsure = int((~(width < _WIDE)).sum())
    if unsure:
        say(
            f"{unsure} of {len(width)} pairs have an interval wider than {_WIDE:g}, or none: train longer, or use more "
            "test images",
            style="yellow",
        )


def _tell_coverage(plan: Plan, gained: list[Gained]) -> None:
    """Which corruptions training on all of the plan's helps against; those of --under, where there are any."""
    asked = [g for g in gained if not plan.under or g.corruption in plan.under]
    without = [g.corruption for g in asked if not g.covered]
    more = f"; not to {', '.join(without)}" if without else ""
    say(f"trained on all, a network is more robust to {len(asked) - len(without)} of {len(asked)} corruptions{more}")


def _conclude(plan: Plan, runs: list[Run], out: Path) -> None:
    """Write the accuracies, the correctness image by image, the matrix and its picture, and what is covered."""
    outcomes = gather_correct(runs)
    if unlearnt := [run.name for run in runs if chance_of(run.records(CLEAN)).near]:
        say(
            f"{', '.join(unlearnt)}: not above chance on clean images, so that their scores mean nothing; train longer",
            style="yellow",
        )
    table = gather_accuracies(runs)
    write_table(table, out / "accuracies.csv")
    write_correct(outcomes, out / "correct.npz")
    overlap = overlap_intervals(outcomes.correct, outcomes.models, outcomes.settings, corruptions=plan.corruptions)
    write_matrix(overlap.matrix, out / "overlap.csv")
    files = ["accuracies.csv", "correct.npz", "overlap.csv", "intervals.csv"]
    write_intervals(overlap, out / "intervals.csv")
    if plan.with_all:
        gained = coverage_by_training(table, ALL)
        write_rows(out / "coverage.csv", *gained_rows(gained, ALL))
        files.append("coverage.csv")
        _tell_coverage(plan, gained)
    try:
        save_figure(overlap_figure(overlap.matrix), out / "overlap.png", **SAVING)
        files.append("overlap.png")
    except (InputError, StorageError) as error:  # without matplotlib the numbers are still worth having
        say(str(error), style="dim")
    say(f"wrote {', '.join(files[:-1])} and {files[-1]} to {out}")
    _say_if_unsure(overlap)
    say(f"next: blemish build select {out / 'overlap.csv'} -o benchmark.toml", style="dim")
