"""What a run says about itself: everything that changes its numbers, in words that two runs can be compared by."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import torch

from blemish.benchmarks.benchmark import Benchmark, only_conditions
from blemish.benchmarks.condition import Step, read_condition
from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.reading import read_json
from blemish.core.settings import differences, listed
from blemish.corruptions.base import Corruption
from blemish.corruptions.catalog import catalog
from blemish.corruptions.plugins import code_digest
from blemish.evaluation.runs import RUN_FILE, check_info, condition_protocol
from blemish.version import VERSION

__all__ = [
    "benchmark_entry",
    "extended",
    "made_with",
    "merged",
    "protocol_entry",
    "read_info",
    "save_info",
]


def benchmark_entry(benchmark: Benchmark) -> dict[str, Any]:
    """The benchmark, as far as reading its results needs it."""
    return {
        "name": benchmark.name,
        "title": benchmark.title,
        "metric": benchmark.metric,
        "baseline": benchmark.baseline,
        "conditions": [str(condition) for condition in benchmark.conditions],
        "families": {s.name: s.unit.family for s in _steps(benchmark) if isinstance(s.unit, Corruption)},
        "part_of": None if (whole := benchmark.part_of) is None else _whole_entry(whole),
    }


def _whole_entry(whole: Benchmark) -> dict[str, Any]:
    return {"name": whole.name, "conditions": len(whole.conditions) - 1}


def protocol_entry(benchmark: Benchmark, *, pixels: str = "generated", labels: str = "as given") -> dict[str, Any]:
    """Everything besides the data and the conditions that decides the pixels, and what the labels mean."""
    protocol = benchmark.protocol
    steps = _steps(benchmark)
    generated = pixels == "generated"
    return {
        "seed": protocol.seed,
        "preset": protocol.preset,
        "storage": protocol.storage if generated else "as stored",
        "resize": protocol.resize,
        "crop": protocol.crop,
        "pixels": pixels,
        "stored": None,
        "corruptions": {step.name: _version(step) for step in steps} if generated else {},
        "frost": next((_photographs(step) for step in steps if step.name == "frost"), None) if generated else None,
        "labels": labels,
    }


def _steps(benchmark: Benchmark) -> list[Step]:
    """Each corruption and sequence once."""
    return list({step.name: step for condition in benchmark.conditions for step in condition.steps}.values())


def _photographs(step: Step) -> str | None:
    files = step.unit.files if isinstance(step.unit, Corruption) else None
    return None if files is None else files.kind


def _version(step: Step) -> int | dict[str, Any]:
    """The version of a corruption; of a user's own with a digest of its code."""
    if step.unit is None:
        raise InputError(f"{step}: its corruption is not at hand; expected a condition made with a catalog")
    if isinstance(step.unit, Corruption) and not _is_ours(step.unit):
        return {"version": step.unit.version, "code": code_digest(step.unit)}
    return step.unit.version


def _is_ours(unit: Corruption) -> bool:
    known = catalog.get(unit.name)
    # Ours with files of the user's, such as photographs of frost, which are stated apart.
    other_files = known is not None and None not in (known.files, unit.files)
    return known == unit or (known is not None and other_files and code_digest(known) == code_digest(unit))


def made_with() -> dict[str, str]:
    """The versions of the libraries, for the record; those are not compared."""
    return {"blemish": VERSION, "torch": torch.__version__, "numpy": np.__version__, "pillow": PIL.__version__}


def read_info(folder: Path) -> dict[str, Any] | None:
    """The run file of a folder that holds records; None where there are none yet: a failed attempt binds nobody."""
    path = folder / RUN_FILE
    if not any(folder.rglob("*.parquet")):
        return None
    if not path.exists():
        raise InputError(f"{folder} holds records, but no {RUN_FILE} says how they were made; choose another --out")
    try:
        info = dict(read_json(path))
    except (ValueError, TypeError) as error:
        raise InputError(f"{path}: not a readable run file ({error}); choose another folder") from error
    try:
        check_info(info)
    except InputError as error:
        raise InputError(f"{path}: not a readable run file ({error}); choose another folder") from error
    return info


def extended(benchmark: Benchmark, present: Mapping[str, Any] | None, folder: Path) -> Benchmark:
    """The benchmark with the conditions that a folder holds already: conditions are independent, so that runs grow."""
    if present is None:
        return benchmark
    whole = benchmark.part_of or benchmark
    texts = [str(condition) for condition in whole.conditions]
    there = present["benchmark"]["conditions"]
    if strange := [text for text in there if text not in texts]:
        raise other_run(folder, [f"its benchmark has {strange[0]}, which {whole.name} has not"])
    wanted = {*there, *map(str, benchmark.conditions)}
    conditions = tuple(condition for condition in whole.conditions if str(condition) in wanted)
    return only_conditions(whole, conditions)


def merged(folder: Path, present: Mapping[str, Any] | None, info: dict[str, Any]) -> dict[str, Any]:
    """The run file of a run that goes on in a folder; raise if the results there were made in another way."""
    if present is None:
        return info
    old, new = present["protocol"], info["protocol"]
    texts = [text for text in present["benchmark"]["conditions"] if text in info["benchmark"]["conditions"]]
    both = [read_condition(text) for text in texts]
    pairs = [(condition_protocol(old, condition), condition_protocol(new, condition)) for condition in both]
    lines = [line for pair in pairs for line in differences(*pair, "protocol")]
    lines += differences(present["model"], info["model"], "model")
    for entry in ("metric", "baseline"):
        lines += differences(present["benchmark"].get(entry), info["benchmark"][entry], f"benchmark.{entry}")
    for before, after in zip(present["stages"], info["stages"], strict=False):
        lines += differences(before, after, "data")
    if lines:
        raise other_run(folder, list(dict.fromkeys(lines)))
    # What conditions that were measured before need, and those of now.
    protocol = {
        **new,
        "corruptions": {**old.get("corruptions", {}), **new["corruptions"]},
        "stored": None if new["stored"] is None else {**old["stored"], **new["stored"]},
        "frost": new["frost"] or old.get("frost"),
    }
    return {**info, "protocol": protocol, "until": info["until"] or bool(present.get("until"))}


def other_run(folder: Path, lines: Sequence[str]) -> InputError:
    """The refusal to go on in a folder whose results were made in another way."""
    return InputError(
        f"{folder} holds results of another run ({listed(lines)}); "
        "repeat its settings, or choose another --out or --name"
    )


def save_info(folder: Path, info: dict[str, Any]) -> None:
    """Write the run file."""
    text = json.dumps(info, indent=2, ensure_ascii=False)
    write_bytes(folder / RUN_FILE, f"{text}\n".encode(), destination=folder)
