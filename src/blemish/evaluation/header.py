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
from blemish.corruptions.catalog import Catalog, catalog
from blemish.corruptions.sequences import sequences
from blemish.evaluation.runs import RUN_FILE
from blemish.ops.textures import frost_kind
from blemish.storage.files import write_bytes
from blemish.types import InputError
from blemish.version import VERSION

__all__ = [
    "benchmark_entry",
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
        "part_of": None
        if benchmark.part_of is None
        else {"name": benchmark.part_of[0], "conditions": benchmark.part_of[1]},
    }


def protocol_entry(benchmark: Benchmark, *, pixels: str = "generated", catalog: Catalog = catalog) -> dict[str, Any]:
    """Everything besides the data and the conditions that decides the pixels."""
    protocol = benchmark.protocol
    names = dict.fromkeys(name for condition in benchmark.conditions for name in condition.names())
    generated = pixels == "generated"
    return {
        "seed": protocol.seed,
        "preset": protocol.preset,
        "storage": protocol.storage if generated else "as stored",
        "resize": protocol.resize,
        "crop": protocol.crop,
        "pixels": pixels,
        "stored": None,
        "corruptions": {name: _version(name, catalog) for name in names} if generated else {},
        "frost": frost_kind() if generated and "frost" in names else None,
    }


def _version(name: str, catalog: Catalog) -> int:
    return sequences[name].version if name in sequences else catalog[name].version


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
        present = dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
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
        return max(1, len(json.loads((folder / RUN_FILE).read_text(encoding="utf-8"))["stages"]))
    except (OSError, ValueError, KeyError, TypeError):
        return 1


def save_info(folder: Path, info: dict[str, Any]) -> None:
    """Write the run file."""
    text = json.dumps(info, indent=2, ensure_ascii=False)
    write_bytes(folder / RUN_FILE, f"{text}\n".encode(), destination=folder)
