"""Run files: made, read, and joined with that of the folder that a run goes on in."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import torch

from blemish.benchmarks.benchmark import Benchmark, only_conditions
from blemish.benchmarks.condition import Step, read_condition
from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.settings import differences, listed
from blemish.core.typed import as_json
from blemish.corruptions.base import Corruption
from blemish.corruptions.plugins import OwnVersion, stated_version
from blemish.data.cache import load
from blemish.data.images import Images
from blemish.data.stored import StoredSet
from blemish.evaluation.info import BenchmarkInfo, ProtocolInfo, RunInfo, WholeBenchmark
from blemish.evaluation.runs import RUN_FILE, open_run
from blemish.version import VERSION


def benchmark_info(benchmark: Benchmark, *, stored: bool = False) -> BenchmarkInfo:
    """What a run file says of a benchmark; with the published images, ``stored``, it may have another title."""
    whole = benchmark.part_of
    return BenchmarkInfo(
        name=benchmark.name,
        metric=benchmark.metric,
        conditions=[str(condition) for condition in benchmark.conditions],
        families={s.name: s.unit.family for s in _steps(benchmark) if isinstance(s.unit, Corruption)},
        title=(benchmark.stored_title if stored else "") or benchmark.title,
        baseline=benchmark.baseline,
        reference=benchmark.reference,
        part_of=None if whole is None else WholeBenchmark(whole.name, len(whole.conditions) - 1),
    )


def protocol_info(
    benchmark: Benchmark, *, stored: dict[str, str] | None = None, labels: str = "as given"
) -> ProtocolInfo:
    """What a run file says of a protocol; ``stored`` are fingerprints of images that were not made here."""
    protocol, steps = benchmark.protocol, _steps(benchmark)
    shared_names = ("resize", "crop", "square", "centre", "superclasses", "pool")
    shared = ProtocolInfo(
        protocol.seed, protocol.preset, labels=labels, **{name: getattr(protocol, name) for name in shared_names}
    )
    if stored is not None:
        return replace(shared, storage="as stored", pixels="stored", stored=stored)
    return replace(
        shared,
        storage=protocol.storage,
        corruptions={step.name: _version(step) for step in steps},
        frost=next((_photographs(step) for step in steps if step.name == "frost"), None),
    )


def stored_fingerprints(stored: StoredSet, benchmark: Benchmark, images: Images) -> dict[str, str]:
    """What tells a stored set from others: the pixels of the first image under every condition."""
    first, texts = images.take([0]), [str(condition) for condition in benchmark.conditions if condition.steps]
    return {text: load(stored.source(text, like=first)).fingerprint for text in texts}


def _steps(benchmark: Benchmark) -> list[Step]:
    """Each corruption and sequence once."""
    return list({step.name: step for condition in benchmark.conditions for step in condition.steps}.values())


def _photographs(step: Step) -> str | None:
    files = step.unit.files if isinstance(step.unit, Corruption) else None
    return None if files is None else files.kind


def _version(step: Step) -> int | OwnVersion:
    """The version of a corruption; of a user's own with a digest of its code."""
    if step.unit is None:
        raise InputError(f"{step}: its corruption is not at hand; expected a condition made with a catalog")
    return stated_version(step.unit) if isinstance(step.unit, Corruption) else step.unit.version


def made_with() -> dict[str, str]:
    """The versions of the libraries, for the record; those are not compared."""
    return {"blemish": VERSION, "torch": torch.__version__, "numpy": np.__version__, "pillow": PIL.__version__}


def read_info(folder: Path) -> RunInfo | None:
    """The run file of a folder that holds records; None where there are none yet: a failed attempt binds nobody."""
    if not any(folder.rglob("*.parquet")):
        return None
    if not (folder / RUN_FILE).exists():
        raise InputError(f"{folder} holds records, but no {RUN_FILE} says how they were made; choose another --out")
    return open_run(folder).info


def extended(benchmark: Benchmark, present: RunInfo | None, folder: Path) -> Benchmark:
    """The benchmark with the conditions that a folder holds already: conditions are independent, so that runs grow."""
    if present is None:
        return benchmark
    whole = benchmark.part_of or benchmark
    texts = [str(condition) for condition in whole.conditions]
    measured = present.benchmark.conditions
    if strange := [text for text in measured if text not in texts]:
        raise other_run(folder, [f"its benchmark has {strange[0]}, which {whole.name} has not"])
    # As they are in the part, whose protocol and corruptions may have been chosen since it was taken.
    own = {str(condition): condition for condition in benchmark.conditions}
    wanted = {*measured, *own}
    conditions = [own.get(str(condition), condition) for condition in whole.conditions if str(condition) in wanted]
    return replace(only_conditions(whole, conditions), conditions=tuple(conditions), protocol=benchmark.protocol)


def merged(folder: Path, present: RunInfo | None, info: RunInfo) -> RunInfo:
    """The run file of a run that goes on in a folder; raise if the results there were made in another way."""
    if present is None:
        return info
    old, new = present.protocol, info.protocol
    shared = [text for text in present.benchmark.conditions if text in info.benchmark.conditions]
    pairs: list[tuple[Any, Any, str]] = []
    for condition in map(read_condition, shared):
        pairs.append((old.of(condition), new.of(condition), "protocol"))
    pairs.append((present.model, info.model, "model"))
    for entry in ("metric", "baseline"):
        before, after = (getattr(each.benchmark, entry) for each in (present, info))
        pairs.append((before, after, f"benchmark.{entry}"))
    pairs += [(a, b, "data") for a, b in zip(present.stages, info.stages, strict=False)]
    if lines := dict.fromkeys(line for pair in pairs for line in differences(*pair)):
        raise other_run(folder, list(lines))
    # What the conditions that were measured before need, and those of now.
    protocol = replace(
        new,
        corruptions={**old.corruptions, **new.corruptions},
        stored=None if new.stored is None else {**(old.stored or {}), **new.stored},
        frost=new.frost or old.frost,
    )
    return replace(info, protocol=protocol, until=info.until or present.until)


def other_run(folder: Path, lines: Sequence[str]) -> InputError:
    """The refusal to go on in a folder whose results were made in another way."""
    return InputError(
        f"{folder} holds results of another run ({listed(lines)}); "
        "repeat its settings, or choose another --out or --name"
    )


def save_info(folder: Path, info: RunInfo) -> None:
    """Write the run file."""
    text = json.dumps(as_json(info), indent=2, ensure_ascii=False)
    write_bytes(folder / RUN_FILE, f"{text}\n".encode(), destination=folder)
