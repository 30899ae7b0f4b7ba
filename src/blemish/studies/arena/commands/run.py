"""``blemish arena run``: methods × settings on one model, resumable and shared out to workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, cast

import typer

from blemish.benchmarks.condition import CLEAN, Condition
from blemish.benchmarks.files import load_benchmark
from blemish.core.errors import InputError
from blemish.corruptions.catalog import Catalog
from blemish.data.cache import load
from blemish.data.images import Images
from blemish.evaluation.executors.base import Executor
from blemish.evaluation.fitting import fit
from blemish.reports.html import check_report_path
from blemish.studies.adaptation.methods import METHODS, Settings
from blemish.studies.arena.arena import Arena, Question
from blemish.studies.arena.commands.report import PAGE, write_all
from blemish.studies.arena.image_lists import LISTS, listed_images
from blemish.studies.arena.planning import Grid, Planned, planned_units, slow_text
from blemish.studies.arena.setting import built_in, load_setting
from blemish.studies.streams.walks import read_walk
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import Corruptions, Frost, Plugins, Tiles, check_files, chosen_catalog, chosen_names
from blemish.terminal.executors import Gpus, Jobs, Ray, chosen_executor, own_device
from blemish.terminal.images import ImageOptions, Limit, balanced_part
from blemish.terminal.lists import listed, numbers, whole_numbers
from blemish.terminal.models import ModelOptions
from blemish.terminal.option_groups import spread_options
from blemish.terminal.printing import say
from blemish.terminal.progress import Report, with_progress
from blemish.terminal.protocol import ProtocolOptions

_GRID = "Sensitivity (label-free choices beside the oracle's)"
_BATCHES = {"imagenet": 64, "cifar": 200}


@dataclass(frozen=True, kw_only=True)
class GridOptions:
    """Other settings of methods than the published ones."""

    rates: Annotated[
        str | None,
        typer.Option(rich_help_panel=_GRID, help="Factors of learning rates to try as well, such as 0.1,10."),
    ] = None
    batch_sizes: Annotated[
        str | None, typer.Option(rich_help_panel=_GRID, help="Batch sizes to try as well, such as 16,64.")
    ] = None

    def grid(self) -> Grid:
        """What is tried."""
        rates = numbers(self.rates, "--rates", such_as="0.1,10") if self.rates else []
        return Grid(tuple(rates), tuple(whole_numbers(self.batch_sizes, "--batch-sizes")))


@exit_on_input_error
@spread_options
def run_command(
    model: ModelOptions,
    images: ImageOptions,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for results, scores and the page.")],
    protocol: ProtocolOptions,
    grid: GridOptions,
    methods: Annotated[
        str,
        typer.Option(
            help="Separated by commas: names that blemish arena methods lists, with options as in "
            "sar:keep_average=true, python:package.module:Name for your own; or all that suit the network."
        ),
    ] = "all",
    settings: Annotated[
        str,
        typer.Option(help="Separated by commas: names that blemish arena settings lists, or .toml files; or all."),
    ] = "all",
    benchmark: Annotated[
        str, typer.Option("--benchmark", "-b", help="Whose corruptions and protocol: imagenet-c, cifar10-c …")
    ] = "imagenet-c",
    corruptions: Corruptions = None,
    severity: Annotated[
        float | None, typer.Option("--severity", "-s", help="Instead of 5, in settings that have one severity.")
    ] = None,
    tuned_for: Annotated[
        str | None,
        typer.Option(help="Take the methods' published settings for imagenet or cifar. Default: by the preset."),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Images a step. Default: 64, for cifar 200; some settings have their own.")
    ] = None,
    seeds: Annotated[str, typer.Option(help="Of the streams, separated by commas.")] = "1",
    walk: Annotated[Path | None, typer.Option(help="A file that blemish ccc walk wrote, for the setting ccc.")] = None,
    image_list: Annotated[
        str | None,
        typer.Option("--list", help=f"Only the images of a published list: {', '.join(LISTS)}."),
    ] = None,
    limit: Limit = None,
    clean_images: Annotated[
        int, typer.Option(min=0, help="Clean images to predict before and after a stream, to see what is forgotten.")
    ] = 2000,
    plugins: Plugins = None,
    frost: Frost = None,
    tiles: Tiles = None,
    jobs: Jobs = None,
    gpus: Gpus = None,
    ray: Ray = None,
) -> None:
    """Run adaptation methods on settings, and compare them with each other and with the model that is not adapted.

    Stop whenever you like: the same command goes on. With further methods, settings or seeds the same folder grows.
    Methods that do not suit the network, or a setting, are left out with a word.

    Examples:

      blemish arena run -m timm:resnet50 -d imagenet/val --list robustbench --settings continual,mixed -o arena

      blemish arena run -m python:my_net:build -d cifar10.npz -b cifar10-c --seeds 1,2,3 --gpus all -o arena

      blemish arena run -m timm:resnet50 -d imagenet/val --methods none,tent,python:my_method:Mine -o mine
    """
    page = check_report_path(out / PAGE)
    catalog = chosen_catalog(plugins, frost, tiles)
    plan = protocol.apply(load_benchmark(benchmark, catalog=catalog))
    names, left_out = _corruptions(corruptions, plan.conditions, catalog)
    chosen = _tuned_for(tuned_for, plan.protocol.preset)
    everything = settings == "all"
    wanted = [load_setting(name).at(severity) for name in (built_in() if everything else listed(settings))]
    shown_walk = None if walk is None else read_walk(walk, catalog=catalog)
    if shown_walk is None and any(setting.walk for setting in wanted):
        if not everything:
            raise InputError("setting ccc shows a walk; name its file with --walk (blemish ccc walk makes one)")
        left_out.append("setting ccc is left out, because no --walk was given")
        wanted = [setting for setting in wanted if not setting.walk]
    check_files(catalog[name] for name in (*names, *(() if shown_walk is None else shown_walk.corruptions)))
    executor = chosen_executor(jobs, gpus, ray, model.device)
    classifier = model.open(catalog=catalog, device=own_device(model.device, ray), class_names=images.class_names)
    view = plan.protocol.view
    source = fit(classifier, images.open(), resize=plan.protocol.resize, crop=view).source
    source = balanced_part(source if image_list is None else listed_images(source, image_list), limit)
    question = Question(
        corruptions=names,
        protocol=plan.protocol,
        benchmark=plan.name,
        batch=batch_size or _BATCHES[chosen],
        methods=chosen,
        clean=clean_images,
        image_list=image_list,
        walk=shown_walk,
        catalog=catalog,
    )

    def read(report: Report) -> Images:
        return load(source, resize=plan.protocol.resize, crop=view, progress=report)

    loaded = with_progress("arena", read, first="reading images")
    arena = Arena(classifier, loaded, source, question, out)
    planned = planned_units(
        arena,
        tuple(METHODS) if methods == "all" else tuple(listed(methods)),
        wanted,
        seeds=whole_numbers(seeds, "--seeds"),
        grid=grid.grid(),
        strict=methods != "all",
    )
    _announce(arena, planned, left_out, executor)

    def work(report: Report) -> int:
        return arena.run(planned.units, executor, report)

    with_progress("arena", work, first="adapting")
    write_all(out, page)


def _corruptions(
    texts: list[str] | None, conditions: Sequence[Condition], catalog: Catalog
) -> tuple[tuple[str, ...], list[str]]:
    """The corruptions that streams pass through, and a word for conditions that are no single corruption."""
    if texts:
        return tuple(chosen_names(texts, catalog)), []
    single: dict[str, None] = {}
    others: dict[str, None] = {}
    for condition in conditions:
        if len(condition.steps) == 1 and not condition.is_sequence:
            single[condition.steps[0].name] = None
        elif condition != CLEAN:
            others[str(condition)] = None
    if not single:
        raise InputError("a benchmark without single corruptions; expected some, or name them with -c")
    words = [f"left out, because they are no single corruption: {', '.join(others)}"] if others else []
    return tuple(single), words


def _tuned_for(text: str | None, preset: str | None) -> Settings:
    """Which published settings of methods are meant: CIFAR's where images are that small."""
    if text is None:
        return "cifar" if preset == "cifar" else "imagenet"
    if text not in ("imagenet", "cifar"):
        raise InputError(f"--tuned-for {text}; expected imagenet or cifar")
    return cast(Settings, text)


def _announce(arena: Arena, planned: Planned, left_out: Sequence[str], executor: Executor | None) -> None:
    """What is left out, how much is to be done, and how long slow methods will take."""
    for text in dict.fromkeys([*left_out, *planned.left_out]):
        say(text, "yellow")
    for text in slow_text(arena, planned, 1 if executor is None else executor.workers):
        say(text, "dim")
