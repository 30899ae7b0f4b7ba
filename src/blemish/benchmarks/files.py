"""Benchmark files: small TOML texts that people read and write, and the published benchmarks as such files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from blemish.benchmarks.benchmark import Benchmark, Protocol
from blemish.benchmarks.condition import Condition, parse_condition
from blemish.core.errors import InputError
from blemish.core.reading import is_folder, is_there, parse_toml, read_text
from blemish.corruptions.catalog import Catalog, catalog, hint
from blemish.corruptions.severity import check_severity, severity_text

_SUFFIX = ".toml"
_KEYS = ("name", "title", "stored_title", "paper", "metric", "baseline", "reference", "protocol", "conditions")
_PROTOCOL_KEYS: Mapping[str, type] = {
    "preset": str,
    "seed": int,
    "storage": str,
    "resize": int,
    "crop": int,
    "square": int,
    "centre": float,
    "superclasses": str,
    "pool": str,
}


class UnknownBenchmarkError(InputError):
    """No benchmark that comes with the library has this name, and it is none of a file."""


@cache
def built_in() -> list[str]:
    """The names of the benchmarks that come with the library; those of one publication share what is before a slash."""
    return sorted(_names(resources.files("blemish.benchmarks"), ""))


def _names(folder: Traversable, prefix: str) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.name.endswith(_SUFFIX):
            yield prefix + entry.name.removesuffix(_SUFFIX)
        elif entry.is_dir() and not prefix and not entry.name.startswith("_"):
            yield from _names(entry, f"{entry.name}/")


def load_benchmark(name: str | os.PathLike[str], *, catalog: Catalog = catalog) -> Benchmark:
    """A built-in benchmark by name, or one from a file; its corruptions are those of the catalog."""
    text = os.fspath(name)
    if text in built_in():
        content = resources.files("blemish.benchmarks").joinpath(text + _SUFFIX).read_text(encoding="utf-8")
        return parse_benchmark(content, where=text, catalog=catalog)
    if is_there(text) and not is_folder(text):
        return parse_benchmark(read_text(text), where=text, catalog=catalog)
    if text.partition("/")[0] in {name.partition("/")[0] for name in built_in() if "/" in name}:
        raise UnknownBenchmarkError(f"unknown benchmark {text!r}; {hint(text, built_in())}")
    if text.endswith(_SUFFIX) or os.sep in text:
        raise InputError(f"{text}: no such benchmark file")
    raise UnknownBenchmarkError(f"unknown benchmark {text!r}; {hint(text, built_in())}")


def parse_benchmark(content: str, *, where: str, catalog: Catalog = catalog) -> Benchmark:
    """The benchmark that a TOML text describes; ``where`` is named in errors."""
    try:
        entries = parse_toml(content)
    except ValueError as error:
        raise InputError(f"{where}: not readable as TOML ({error})") from error
    try:
        return _benchmark(entries, catalog)
    except InputError as error:
        message = str(error)
        raise InputError(message if message.startswith(f"benchmark {where}:") else f"{where}: {message}") from error


def _benchmark(entries: dict[str, Any], catalog: Catalog) -> Benchmark:
    _known_keys(entries, _KEYS, "the file")
    blocks = entries.get("conditions")
    if not isinstance(blocks, list) or not all(isinstance(block, dict) for block in blocks):
        raise InputError("no conditions; expected at least one [[conditions]] block")
    protocol = entries.get("protocol", {})
    if not isinstance(protocol, dict):
        raise InputError(f"protocol {protocol!r}; expected a [protocol] block")
    _known_keys(protocol, tuple(_PROTOCOL_KEYS), "[protocol]")
    for key, value in protocol.items():
        if not isinstance(value, _PROTOCOL_KEYS[key]) or isinstance(value, bool):
            raise InputError(f"{key} = {value!r} in [protocol]; expected {_PROTOCOL_KEYS[key].__name__}")
    return Benchmark(
        name=_text(entries, "name"),
        title=_text(entries, "title", ""),
        stored_title=_text(entries, "stored_title", ""),
        paper=_text(entries, "paper", ""),
        metric=_text(entries, "metric", "error"),
        baseline=_text(entries, "baseline", "") or None,
        reference=_text(entries, "reference", "") or None,
        protocol=Protocol(**protocol),
        conditions=tuple(condition for block in blocks for condition in _conditions(block, catalog)),
    )


def _text(entries: dict[str, Any], key: str, default: str | None = None) -> str:
    value = entries.get(key, default)
    if value is None:
        raise InputError(f'no {key}; expected {key} = "…"')
    if not isinstance(value, str):
        raise InputError(f"{key} = {value!r}; expected a text")
    return value


def _known_keys(entries: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in entries:
        if key not in known:
            raise InputError(f"unknown key {key!r} in {where}; {hint(key, list(known))}")


def _list(block: dict[str, Any], key: str, kinds: tuple[type, ...]) -> list[Any]:
    values = block.get(key)
    if not isinstance(values, list) or not values:
        raise InputError(f"{key} = {values!r} in [[conditions]]; expected a list")
    for value in values:
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise InputError(f"{value!r} among {key} in [[conditions]]; expected {kinds[-1].__name__}")
    return values


def _corruptions(block: dict[str, Any]) -> Iterator[str]:
    names = _list(block, "corruptions", (str,))
    if "severity_range" in block:
        low_high = _list(block, "severity_range", (int, float))
        if len(low_high) != 2:
            raise InputError(f"severity_range = {low_high} in [[conditions]]; expected [low, high]")
        lowest, highest = (severity_text(check_severity(level)) for level in low_high)
        return (f"{name}@{lowest}-{highest}" for name in names)
    levels = [severity_text(check_severity(level)) for level in _list(block, "severities", (int, float))]
    return (f"{name}@{level}" for name in names for level in levels)


def _sequences(block: dict[str, Any]) -> Iterator[str]:
    levels = _list(block, "difficulties", (int,)) if "difficulties" in block else [1]
    return (f"{name}@{level}" for name in _list(block, "sequences", (str,)) for level in levels)


def _chains(block: dict[str, Any]) -> Iterator[str]:
    return iter(_list(block, "chains", (str,)))


def _natural(block: dict[str, Any]) -> Iterator[str]:
    return (f"{kind}:{name}" for name in _list(block, "natural", (str,)) for kind in ("clean", "natural"))


_BLOCKS: dict[str, tuple[Callable[[dict[str, Any]], Iterator[str]], tuple[str, ...]]] = {
    "corruptions": (_corruptions, ("corruptions", "severities", "severity_range")),
    "sequences": (_sequences, ("sequences", "difficulties")),
    "chains": (_chains, ("chains",)),
    "natural": (_natural, ("natural",)),
}


def _conditions(block: dict[str, Any], catalog: Catalog) -> Iterator[Condition]:
    kinds = [key for key in _BLOCKS if key in block]
    if len(kinds) != 1:
        named = " and ".join(kinds) or "none"
        raise InputError(f"a [[conditions]] block with {named} of {', '.join(_BLOCKS)}; expected exactly one of them")
    read, keys = _BLOCKS[kinds[0]]
    _known_keys(block, keys, "[[conditions]]")
    if "severities" in block and "severity_range" in block:
        raise InputError("a [[conditions]] block with severities and severity_range; expected one of them")
    return (parse_condition(text, catalog=catalog) for text in read(block))


def benchmark_toml(benchmark: Benchmark) -> str:
    """The text of a file that `load_benchmark` reads as this benchmark again."""
    import tomli_w

    protocol = {key: getattr(benchmark.protocol, key) for key in _PROTOCOL_KEYS}
    content: dict[str, Any] = {
        "name": benchmark.name,
        "title": benchmark.title,
        "stored_title": benchmark.stored_title,
        "paper": benchmark.paper,
        "metric": benchmark.metric,
        "baseline": benchmark.baseline or "",
        "reference": benchmark.reference or "",
        "protocol": {key: value for key, value in protocol.items() if value is not None},
        "conditions": list(_blocks(benchmark.conditions[1:])),
    }
    return tomli_w.dumps({key: value for key, value in content.items() if value != ""})


def _blocks(conditions: tuple[Condition, ...]) -> Iterator[dict[str, Any]]:
    """Blocks that list the conditions in their order; neighbours that share a shape share a block."""
    merged: list[tuple[dict[str, Any], str]] = []
    for name, members in _by_group(conditions):
        block, list_key = _block(name, members)
        settings = {key: value for key, value in block.items() if key != list_key}
        if merged and merged[-1][1] == list_key:
            last = merged[-1][0]
            if {key: value for key, value in last.items() if key != list_key} == settings:
                last[list_key] = [*last[list_key], *block[list_key]]
                continue
        merged.append((block, list_key))
    return (block for block, _ in merged)


def _by_group(conditions: tuple[Condition, ...]) -> Iterator[tuple[str, list[Condition]]]:
    run: list[Condition] = []
    for condition in conditions:
        if run and (condition.group != run[0].group or condition.severity is None):
            yield run[0].group, run
            run = []
        run.append(condition)
    if run:
        yield run[0].group, run


def _block(name: str, members: list[Condition]) -> tuple[dict[str, Any], str]:
    first = members[0]
    if first.other is not None:
        # The clean half comes with the natural one.
        natural = [name.removeprefix("natural:")] if name.startswith("natural:") else []
        return {"natural": natural}, "natural"
    if len(first.steps) > 1:
        return {"chains": [str(first)]}, "chains"
    step = first.steps[0]
    if first.is_sequence:
        return {"sequences": [name], "difficulties": [int(step.low)]}, "sequences"
    if step.low != step.high:
        return {"corruptions": [name], "severity_range": [step.low, step.high]}, "corruptions"
    return {"corruptions": [name], "severities": [member.steps[0].low for member in members]}, "corruptions"
