"""`audit_run`: the checks that the records of a run allow, without its model and its images."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from numpy.typing import NDArray

from blemish.benchmarks.condition import CLEAN, Condition
from blemish.benchmarks.files import built_in, load_benchmark
from blemish.core.printable import first_few
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.core.statistics import wilson_interval
from blemish.corruptions.severity import nearest_preset
from blemish.data.superclasses import superclasses_named
from blemish.evaluation.info import ProtocolInfo
from blemish.evaluation.records import Records
from blemish.evaluation.runs import Run, RunLike, as_run
from blemish.metrics.table import read_tables
from blemish.reports.answers import read_pictures
from blemish.studies.audit.curves import check_curves, check_table
from blemish.studies.audit.findings import CHECKS, Audit, Check, Finding, in_order
from blemish.studies.audit.known import check_accuracy, expected_accuracy, said_by_user
from blemish.studies.audit.labels import check_chance, check_missing, check_order
from blemish.studies.audit.precision import check_precision

_NEEDS_MODEL = "needs the model and its images: blemish audit --model … --data …"
_OF_MODEL = ("channel-order", "normalisation", "value-range", "resizing", "repeatable", "batch")
# Corruptions of which two equal images become equal again, because nothing is drawn for them.
_WITHOUT_CHANCE = (
    "brightness",
    "contrast",
    "defocus_blur",
    "gaussian_blur",
    "jpeg_compression",
    "pixelate",
    "saturate",
)
_SATURATED = 0.9999
_SHARE = 0.005
_SHOWN = 3
# What of a protocol makes numbers others than the published ones.
_PUBLISHED = ("storage", "preset", "resize", "crop", "square")


def audit_run(
    run: RunLike,
    *,
    accuracy: float | None = None,
    difference: float | None = None,
    report: ProgressReport = tell_nobody,
) -> Audit:
    """Check the results of a run: labels, severity curves, the severity table, images that are there twice, precision.

    ``accuracy`` is the one on clean images that the model should have, in percent, and ``difference`` the one between
    models, in points, that is to be told apart. What only the model and its images can tell is not checked.
    """
    said = said_by_user(accuracy)
    opened = as_run(run)
    info = opened.info
    report(0, None, "reading records")
    finished = [condition for condition in opened.conditions if condition.other is None and opened.finished(condition)]
    clean = _by_name(opened.records(CLEAN))
    still = [condition for condition in finished if not condition.is_sequence]
    table = read_tables(opened, still, report=report)[0]
    outcomes = {condition: table["correct", str(condition)] for condition in still}
    known, why_not = expected_accuracy(said, info.model.card, clean.images.tolist())
    labels = clean.labels.astype(np.int64)
    classes = _classes(opened, clean)
    corrupted = [values for condition, values in outcomes.items() if condition.steps]
    scores = np.mean(corrupted, axis=0) if corrupted else outcomes[CLEAN].astype(np.float64)
    of = f"mean accuracy over {len(corrupted)} conditions" if corrupted else "clean accuracy"
    checks = [
        check_accuracy(clean, known, why_not=why_not),
        *check_chance(clean, info.model.outputs),
        check_order(clean, classes, info.classes).check,
        check_missing(labels, classes, info.classes),
        _twice(opened, clean, finished),
        _storage(opened),
        *_severities(opened, outcomes),
        check_precision(np.asarray(scores, dtype=np.float64), difference, len(clean), of=of),
        *(Check(name, skipped=_NEEDS_MODEL) for name in _OF_MODEL),
    ]
    assert {check.name for check in checks} == set(CHECKS)
    interval = wilson_interval(int(clean.correct.sum()), len(clean))
    return Audit(opened.name, info.data.name, len(clean), interval, in_order(checks))


def _by_name(records: Records) -> Records:
    """Records in the order of their images' names, for no order is promised: that of conditions may differ."""
    return records.take(np.argsort(records.images, kind="stable"))


def _classes(run: Run, clean: Records) -> int:
    """How many classes a label can mean."""
    info = run.info
    if info.protocol.superclasses is not None:
        return len(superclasses_named(info.protocol.superclasses).classes)
    if info.model.outputs is not None:
        return info.model.outputs
    return len(info.classes) if info.classes is not None else int(max(clean.labels.max(), clean.top5.max())) + 1


def _severities(run: Run, outcomes: dict[Condition, NDArray[np.bool_]]) -> list[Check]:
    protocol = run.info.protocol
    if protocol.pixels == "generated":
        pictures = read_pictures(run)
        shapes = [] if pictures is None else [(pictures.images.shape[1], pictures.images.shape[2])]
    else:
        shapes = []  # severities were chosen by whoever made the stored images
    side = protocol.crop or protocol.square
    if not shapes and side is not None and protocol.pixels == "generated":
        shapes = [(side, side)]
    preset = protocol.preset or (nearest_preset(*shapes[0]) if shapes else None)
    return [
        check_table(shapes, protocol.preset, list(outcomes)),
        check_curves(outcomes, preset=preset),
    ]


def _storage(run: Run) -> Check:
    """Was a published benchmark measured as it was published: stored as JPEG, of this size?"""
    info = run.info
    name = info.benchmark.name if info.benchmark.part_of is None else info.benchmark.part_of.name
    if name not in built_in():
        return Check("jpeg", skipped=f"{name} is not a benchmark that comes with blemish")
    published = load_benchmark(name).protocol
    if info.protocol.pixels != "generated":
        return Check("jpeg", f"{name}, with the stored images")
    changed = [entry for entry in _PUBLISHED if getattr(info.protocol, entry) != getattr(published, entry)]
    said = f"the protocol of {name}"
    if not changed:
        return Check("jpeg", said)
    shown = ", ".join(
        f"{entry} {_shown(info.protocol, entry)} instead of {getattr(published, entry) or 'none'}" for entry in changed
    )
    finding = Finding(
        "jpeg",
        f"{name} was measured in another way than it was published",
        shown,
        "compare these numbers with those of runs of the same protocol only"
        + (
            "; stored as JPEG, images are harder or easier than raw ones, by models in different measure"
            if "storage" in changed
            else ""
        ),
        level="note",
    )
    return Check("jpeg", said, (finding,))


def _shown(protocol: ProtocolInfo, entry: str) -> str:
    return str(getattr(protocol, entry) or "none")


def _twice(run: Run, clean: Records, finished: list[Condition]) -> Check:
    """Do several images get exactly the same confidences, clean and under what is the same for equal images?"""
    same = [
        condition
        for condition in finished
        if len(condition.steps) == 1 and condition.group in _WITHOUT_CHANCE and condition.severity is not None
    ]
    if not same:
        return Check("duplicates", skipped="no corruption that leaves equal images equal")
    columns = [clean.confidence, *(_by_name(run.records(condition)).confidence for condition in same)]
    told = np.stack(columns, axis=1)
    groups: dict[bytes, list[int]] = defaultdict(list)
    for row in np.flatnonzero((told < _SATURATED).sum(1) > len(columns) / 2).tolist():
        groups[told[row].tobytes() + clean.top5[row].tobytes()].append(row)
    copies = [rows for rows in groups.values() if len(rows) > 1]
    said = f"confidences of {len(clean):,} images under {len(columns)} conditions"
    if not copies:
        return Check("duplicates", said)
    spare = sum(len(rows) - 1 for rows in copies)
    conflicts = sum(len(set(clean.labels[rows].tolist())) > 1 for rows in copies)
    shown = first_few([" = ".join(clean.images[rows].tolist()) for rows in copies], _SHOWN)
    finding = Finding(
        "duplicates",
        "images are there more than once",
        f"{spare} of {len(clean):,} images get exactly the confidences of another, clean and under {len(same)} "
        f"corrupted conditions ({shown})" + (f"; {conflicts} with different labels" if conflicts else ""),
        "leave them out: intervals take images to be independent, and two labels for one image cannot both be right",
        "very likely",
        "problem" if conflicts or spare > _SHARE * len(clean) else "note",
        {"exact": float(spare), "conflicts": float(conflicts), "images": float(len(clean))},
    )
    return Check("duplicates", said, (finding,))
