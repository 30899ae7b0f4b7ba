"""``blemish benchmarks``: what can be run, and what is in it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from blemish.benchmarks.benchmark import METRICS, Benchmark
from blemish.benchmarks.condition import Condition, Step
from blemish.benchmarks.files import benchmark_toml, built_in, load_benchmark
from blemish.core.types import Square
from blemish.terminal.commands import exit_on_input_error
from blemish.terminal.corruptions import Plugins, chosen_catalog
from blemish.terminal.printing import emit, say, show


@exit_on_input_error
def benchmarks_command(
    name: Annotated[
        str | None, typer.Argument(metavar="BENCHMARK", help="Show this one: a built-in name or a .toml file.")
    ] = None,
    toml: Annotated[bool, typer.Option("--toml", help="Print it as a benchmark file, to start your own from.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for other programs.")] = False,
    plugins: Plugins = None,
) -> None:
    """List the benchmarks, or show what one of them measures and how.

    Examples:

      blemish benchmarks

      blemish benchmarks imagenet-c

      blemish benchmarks cifar10-c --toml > mine.toml
    """
    if name is None:
        known = [load_benchmark(each) for each in built_in()]
        if as_json:
            emit(json.dumps([_entry(benchmark) for benchmark in known], indent=2, ensure_ascii=False) + "\n")
            return
        show(_table(known))
        say("blemish benchmarks NAME shows one; blemish run NAME -m MODEL -d IMAGES -o FOLDER runs it", style="dim")
        return
    benchmark = load_benchmark(name, catalog=chosen_catalog(plugins))
    if toml:
        emit(benchmark_toml(benchmark))
    elif as_json:
        emit(json.dumps(_entry(benchmark), indent=2, ensure_ascii=False) + "\n")
    else:
        _show(benchmark)


def _entry(benchmark: Benchmark) -> dict[str, object]:
    return {
        "name": benchmark.name,
        "title": benchmark.title,
        "paper": benchmark.paper,
        "metric": benchmark.metric,
        "baseline": benchmark.baseline,
        "reference": benchmark.reference,
        "protocol": asdict(benchmark.protocol),
        "conditions": [str(condition) for condition in benchmark.conditions],
    }


def _table(benchmarks: list[Benchmark]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, header_style="bold")
    table.add_column("name", style="cyan", no_wrap=True)
    table.add_column("what it is", ratio=1)
    for benchmark in benchmarks:
        _, _, words = benchmark.title.partition(": ")  # what stands before it is the name once more
        count = len(benchmark.conditions) - 1
        facts = f"{count} conditions, headline {benchmark.metric}"
        words = words[:1].upper() + words[1:] or benchmark.title
        table.add_row(benchmark.name, Text(words).append(f"\n{facts}", style="dim"))
    return table


def _show(benchmark: Benchmark) -> None:
    protocol = benchmark.protocol
    say(benchmark.title or benchmark.name, style="bold")
    if benchmark.paper:
        say(benchmark.paper, style="dim")
    say("")
    baseline = f", baseline {benchmark.baseline}" if benchmark.baseline else ""
    baseline += f", beside the published accuracies {benchmark.reference}" if benchmark.reference else ""
    say(f"headline   {METRICS[benchmark.metric]} ({benchmark.metric}){baseline}")
    if protocol.superclasses is not None:
        say(f"classes    superclasses of ImageNet's ({protocol.superclasses}), by the {protocol.pool} of probabilities")
    sizes = f"resize {protocol.resize}, centre crop {protocol.crop}" if protocol.resize or protocol.crop else "as given"
    if isinstance(protocol.view, Square):
        sizes = f"square: {protocol.view}"
    say(f"images     {sizes}; preset {protocol.preset or 'by image size'}; seed {protocol.seed}")
    stored = "as they are (raw)" if protocol.storage == "raw" else "through JPEG of quality 85, as published (jpeg85)"
    say(f"pixels     reach the model {stored}")
    say(f"conditions {len(benchmark.conditions) - 1}, and the clean images")
    table = Table(box=box.SIMPLE_HEAD, header_style="bold")
    table.add_column("corruption", style="cyan", no_wrap=True)
    table.add_column("severities")
    members_of: dict[str, list[Condition]] = {}
    for condition in benchmark.conditions[1:]:
        members_of.setdefault(condition.group, []).append(condition)
    for group, members in members_of.items():
        table.add_row(group, " ".join("+".join(_level(step) for step in member.steps) for member in members))
    show(table)


def _level(step: Step) -> str:
    return str(step).rpartition("@")[2]
