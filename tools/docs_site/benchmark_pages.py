"""The page of the built-in benchmarks, from their files."""

from __future__ import annotations

from blemish.benchmarks.benchmark import METRICS, Benchmark
from blemish.benchmarks.condition import Condition
from blemish.benchmarks.files import built_in, load_benchmark

PAGE = "reference/benchmarks.md"
HEAD = """\
| name | conditions | headline | what it is |
|---|---:|---|---|"""


def pages() -> dict[str, str]:
    """One page: a table, and a section for each benchmark."""
    benchmarks = [load_benchmark(name) for name in built_in()]
    lines = [HEAD]
    for one in benchmarks:
        name = f"[`{one.name}`](#{anchor(one.name)})"
        lines.append(f"| {name} | {len(one.conditions) - 1} | `{one.metric}` | {one.title} |")
    for one in benchmarks:
        lines += ["", *section(one)]
    return {PAGE: "\n".join(lines) + "\n"}


def anchor(name: str) -> str:
    """The place of a benchmark on the page."""
    return name.replace("/", "-")


def section(one: Benchmark) -> list[str]:
    """What one benchmark measures, and how."""
    protocol = one.protocol
    settings = {
        "headline": f"{METRICS[one.metric]} (`{one.metric}`)",
        "baseline": f"`{one.baseline}`" if one.baseline else None,
        "beside": f"published accuracies `{one.reference}`" if one.reference else None,
        "paper": one.paper or None,
        "preset": f"`{protocol.preset}`" if protocol.preset else "by image size",
        "storage": f"`{protocol.storage}`",
        "seed": str(protocol.seed),
        "resize, crop": f"{protocol.resize}, {protocol.crop}" if protocol.resize or protocol.crop else None,
        "square": str(protocol.square) if protocol.square else None,
        "superclasses": f"`{protocol.superclasses}`, {protocol.pool}" if protocol.superclasses else None,
    }
    groups: dict[str, list[Condition]] = {}
    for condition in one.conditions[1:]:
        groups.setdefault(condition.group, []).append(condition)
    lines = [f"## {one.name} {{ #{anchor(one.name)} }}", "", one.title, "", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in settings.items() if value is not None]
    lines += ["", "| corruption | severities |", "|---|---|"]
    for group, members in groups.items():
        levels = " ".join("+".join(str(step).rpartition("@")[2] for step in member.steps) for member in members)
        lines.append(f"| `{group}` | {levels} |")
    return lines
