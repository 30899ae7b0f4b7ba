"""What a run says about itself: everything that changes its numbers, in words that two runs can be compared by."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import torch

from blemish.benchmarks.benchmark import Benchmark
from blemish.benchmarks.condition import Step
from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.reading import read_json
from blemish.corruptions.base import Corruption
from blemish.corruptions.catalog import catalog
from blemish.corruptions.plugins import code_digest
from blemish.evaluation.runs import RUN_FILE
from blemish.version import VERSION

__all__ = [
    "benchmark_entry",
    "chance_allowed",
    "check_same",
    "data_entry",
    "differences",
    "joined_data",
    "made_with",
    "protocol_entry",
    "save_info",
    "stages_present",
]

_SHOWN = 80


def benchmark_entry(benchmark: Benchmark) -> dict[str, Any]:
    """The benchmark, as far as reading its results needs it."""
    return {
        "name": benchmark.name,
        "title": benchmark.title,
        "metric": benchmark.metric,
        "baseline": benchmark.baseline,
        "conditions": [str(condition) for condition in benchmark.conditions],
        "families": {s.name: s.unit.family for s in _steps(benchmark) if isinstance(s.unit, Corruption)},
        "part_of": None
        if benchmark.part_of is None
        else {"name": benchmark.part_of[0], "conditions": benchmark.part_of[1]},
    }


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


def data_entry(
    *, name: str, images: int, classes: int, fingerprint: str, selection: str, others: dict[str, str]
) -> dict[str, Any]:
    """The images: how many, which, and a fingerprint of their names, labels and pixels."""
    return {
        "name": name,
        "images": images,
        "classes": classes,
        "fingerprint": fingerprint,
        "selection": selection,
        "others": others,
    }


def joined_data(stages: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The data of all stages of a run together."""
    if len(stages) == 1:
        return stages[0]
    fingerprints = "\n".join(stage["fingerprint"] for stage in stages)
    return {
        **stages[-1],
        "images": sum(stage["images"] for stage in stages),
        "fingerprint": hashlib.blake2b(fingerprints.encode(), digest_size=16).hexdigest(),
    }


def made_with() -> dict[str, str]:
    """The versions of the libraries, for the record; those are not compared."""
    return {"blemish": VERSION, "torch": torch.__version__, "numpy": np.__version__, "pillow": PIL.__version__}


def differences(before: Any, after: Any, name: str = "") -> list[str]:
    """What differs between two entries, each as "field was …, now …"."""
    if isinstance(before, dict) and isinstance(after, dict):
        fields = dict.fromkeys([*before, *after])
        return [
            line
            for field in fields
            for line in differences(before.get(field), after.get(field), f"{name}.{field}" if name else str(field))
        ]
    if before == after:
        return []
    texts = ["not set" if value is None else json.dumps(value, ensure_ascii=False) for value in (before, after)]
    same = next((i for i, (one, two) in enumerate(zip(*texts, strict=False)) if one != two), min(map(len, texts)))
    was, now = (_shown(text, same) for text in texts)
    return [f"{name} was {was}, now {now}"]


def _shown(text: str, same: int) -> str:
    """A long text around the place where it begins to differ from the other."""
    if len(text) <= _SHOWN:
        return text
    start = max(0, min(same - _SHOWN // 4, len(text) - _SHOWN))
    end = "…" if start + _SHOWN < len(text) else ""
    return f"{'…' if start else ''}{text[start : start + _SHOWN]}{end}"


def check_same(folder: Path, info: dict[str, Any]) -> None:
    """Refuse to go on in a folder whose results were made in another way, and say what differs."""
    path = folder / RUN_FILE
    if not any(folder.rglob("*.parquet")):
        return  # a first attempt that failed binds nobody
    if not path.exists():
        if folder.is_dir():
            raise InputError(f"{folder} holds records, but no {RUN_FILE} says how they were made; choose another --out")
        return
    try:
        present = dict(read_json(path))
    except (ValueError, TypeError) as error:
        raise InputError(f"{path}: not a readable run file ({error}); choose another folder") from error
    parts = ("benchmark", "protocol", "model", "until")
    if missing := [part for part in (*parts, "stages") if part not in present]:
        raise InputError(f"{path}: not a readable run file (no {missing[0]} in it); choose another folder")
    found = [line for part in parts for line in differences(present.get(part), info[part], part)]
    stages = zip(present.get("stages") or [None], info["stages"], strict=False)
    found += [line for before, after in stages for line in differences(before, after, "data")]
    if found:
        raise InputError(
            f"{folder} holds results of another run ({'; '.join(found[:6])}); "
            "repeat its settings, or choose another --out or --name"
        )


def stages_present(folder: Path) -> int:
    """How many stages a run in this folder has reached."""
    try:
        return max(1, len(read_json(folder / RUN_FILE)["stages"]))
    except (ValueError, KeyError, TypeError):
        return 1


def chance_allowed(folder: Path) -> bool:
    """Whether the run in this folder was once told to go on with a model that is near chance."""
    try:
        return read_json(folder / RUN_FILE).get("allow_chance") is True
    except (ValueError, AttributeError):
        return False


def save_info(folder: Path, info: dict[str, Any]) -> None:
    """Write the run file."""
    text = json.dumps(info, indent=2, ensure_ascii=False)
    write_bytes(folder / RUN_FILE, f"{text}\n".encode(), destination=folder)
