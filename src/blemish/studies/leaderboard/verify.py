"""Does an entry hold what it claims? Its numbers again from its bits, and bits again from the model."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from blemish.benchmarks.benchmark import Benchmark, Protocol
from blemish.benchmarks.condition import parse_condition
from blemish.core.errors import InputError
from blemish.core.folders import temporary_folder
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.core.settings import differing
from blemish.core.statistics import Estimate, wilson_interval
from blemish.corruptions.catalog import Catalog, catalog
from blemish.data.source import Source
from blemish.data.stored import StoredSet
from blemish.evaluation.executors.base import Executor
from blemish.evaluation.run import evaluate
from blemish.metrics.titles import TITLES
from blemish.models.base import Classifier
from blemish.studies.leaderboard.entry import Entry, ModelEntry
from blemish.studies.leaderboard.make import claims_of

# Sums of a hundred rates, in another order at most.
_CLOSE = 1e-9
TOLERANCE = 0.01
"""The share of answers that may differ when they are made again: processors round differently."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at, whether it holds, and what was seen."""

    name: str
    holds: bool
    seen: str


def verify(entry: Entry) -> list[Check]:
    """The checks that need nothing but the entry; that its seal fits was checked when it was read."""
    if not isinstance(entry, ModelEntry):
        count = len(entry.header.rows)
        models = "1 model" if count == 1 else f"{count} models"
        return [Check("published numbers", True, f"{models}, sealed; there are no bits to compute them from")]
    bits, header = entry.bits, entry.header
    images, conditions = bits.correct.shape
    checks = [Check("bits", True, f"{images:,} images under {conditions} conditions")]
    computed = claims_of(entry)
    for name in dict.fromkeys([*header.claims, *computed]):
        claimed, own = header.claims.get(name), computed.get(name)
        same = claimed is not None and own is not None and math.isclose(claimed, own, rel_tol=_CLOSE, abs_tol=_CLOSE)
        unit = TITLES[name].unit if name in TITLES else "%"
        texts = ["nothing" if value is None else f"{value:.6g} {unit}".strip() for value in (claimed, own)]
        checks.append(Check(name, same, texts[0] if same else f"claims {texts[0]}, its bits give {texts[1]}"))
    return checks


@dataclass(frozen=True)
class Rerun:
    """Answers that were made again: how many, how many of them differ, and where they differ most."""

    images: int
    conditions: int
    different: int
    worst: str
    worst_share: float

    @property
    def answers(self) -> int:
        """How many there are."""
        return self.images * self.conditions

    @property
    def share(self) -> Estimate:
        """The share that differs, with an interval as if answers were independent."""
        return wilson_interval(self.different, self.answers)

    def check(self, tolerance: float) -> Check:
        """Whether few enough differ."""
        seen = f"{self.different} of {self.answers:,} answers differ ({self.images} images)"
        if self.different:
            seen += f", up to {100 * self.share.high:.2g} % of all; most under {self.worst}"
        return Check("rerun", self.share.value <= tolerance, seen)


def rerun(
    entry: ModelEntry,
    model: Classifier,
    source: Source,
    *,
    images: int = 200,
    seed: int = 0,
    stored: StoredSet | None = None,
    catalog: Catalog = catalog,
    batch_size: int | None = None,
    executor: Executor | None = None,
    report: ProgressReport = tell_nobody,
) -> Rerun:
    """Ask the model about images at random again, under all conditions, and compare with the entry's bits.

    Another model, other images or corruptions of another version are refused: they would prove nothing. Which images
    are asked about depends on ``seed`` and on the seal, so that nobody can prepare for them.
    """
    header = entry.header
    if images < 1:
        raise InputError(f"{images} images to ask about again; expected at least 1")
    if header.model.weights != model.weights:
        raise InputError(f"{entry.path}: its weights are {header.model.weights}, those of {model.name} {model.weights}")
    rows, names = _chosen(entry, source, images, seed)
    with temporary_folder() as folder:
        run = evaluate(
            model,
            source.take(rows),
            _benchmark(entry, catalog),
            out=folder,
            stored=stored,
            batch_size=batch_size,
            executor=executor,
            allow_chance=True,
            report=report,
        )
        if unlike := _unlike(entry, run.info):
            raise InputError(f"{entry.path}: cannot be made again here: {'; '.join(unlike)}")
        places = np.searchsorted(entry.bits.names, names)
        differ = []
        for column, condition in enumerate(entry.run.conditions):
            records = run.records(condition)
            order = np.argsort(records.images, kind="stable")
            if not np.array_equal(records.images[order], names):
                raise InputError(f"{entry.path}: {condition} was made of other images than asked for")
            if not np.array_equal(records.labels[order], entry.bits.labels[places]):
                raise InputError(f"{entry.path}: labels of {source.name} are others than those of the entry")
            differ.append(records.correct[order] != entry.bits.correct[places, column])
    shares = np.array(differ).mean(axis=1)
    worst = int(shares.argmax())
    conditions = header.benchmark.conditions
    return Rerun(len(names), len(conditions), int(np.array(differ).sum()), conditions[worst], float(shares[worst]))


def _chosen(entry: ModelEntry, source: Source, images: int, seed: int) -> tuple[Any, Any]:
    """Rows of the source of some images at random, in the order of their names."""
    where = {name: row for row, name in enumerate(source.names)}
    key = [seed, int(entry.header.seal.rpartition(":")[2][:16], 16)]
    picked = np.random.default_rng(key).permutation(len(entry.bits.names))[:images]
    names = entry.bits.names[np.sort(picked)]
    if missing := [name for name in names.tolist() if name not in where]:
        raise InputError(f"{source.name}: no image {missing[0]}, of which the entry has an answer; expected its images")
    rows = np.sort(np.array([where[name] for name in names.tolist()]))
    return rows, names


def _benchmark(entry: ModelEntry, catalog: Catalog) -> Benchmark:
    """The benchmark of an entry, under its own protocol."""
    info, protocol = entry.header.benchmark, entry.header.protocol
    known = {field.name: getattr(protocol, field.name) for field in fields(Protocol)}
    if protocol.pixels == "stored":
        known["storage"] = "raw"
    conditions = tuple(parse_condition(text, catalog=catalog) for text in info.conditions)
    return Benchmark(info.name, info.title, info.metric, conditions, Protocol(**known), baseline=info.baseline)


def _unlike(entry: ModelEntry, info: Any) -> list[str]:
    """In what making them again differs from how the entry was made; its images are fewer by design."""
    own, again = entry.header, info
    # A stored set is known by the first image, which is another one now.
    lines = [
        *differing(replace(own.protocol, stored=None), replace(again.protocol, stored=None), "protocol"),
        *differing(own.model.preprocessing, again.model.preprocessing, "model.preprocessing"),
    ]
    return [f"{name} is {now} and was {was}" for name, was, now in lines]


def failed(checks: Sequence[Check]) -> bool:
    """Whether any does not hold."""
    return not all(check.holds for check in checks)
