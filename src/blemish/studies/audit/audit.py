"""`audit`: all checks of a model with its images, before they are measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from blemish.benchmarks.benchmark import Protocol
from blemish.benchmarks.condition import Condition
from blemish.core.errors import InputError
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.core.statistics import wilson_interval
from blemish.data.cache import load
from blemish.data.open import Data, open_source
from blemish.evaluation.arguments import AskedBenchmark, AskedModel, as_benchmark, as_classifier
from blemish.evaluation.records import Records
from blemish.studies.audit.behaviour import check_behaviour
from blemish.studies.audit.curves import check_curves, check_table, ends
from blemish.studies.audit.findings import Audit, Check, in_order
from blemish.studies.audit.inputs import INPUT_CHECKS, channels_explain, check_inputs, needless_resize
from blemish.studies.audit.jpeg_traces import check_jpeg
from blemish.studies.audit.known import (
    Expected,
    check_accuracy,
    expected_accuracy,
    said_by_user,
)
from blemish.studies.audit.labels import check_chance, check_missing, check_order
from blemish.studies.audit.pictures import check_levels, check_twice
from blemish.studies.audit.precision import check_precision
from blemish.studies.audit.subject import Subject, open_subject

IMAGES = 400
"""How many images an audit takes, unless it is told otherwise."""

# Images for severity curves, and images that are compared with each other.
_CORRUPTED = 100
_COMPARED = 1000
_COPY = 128
_LOOKED_AT = 8
# Where a thousand classes have an image or less each, the order of the classes is looked for among some of them.
_PER_CLASS = 5
_CLASSES, _OF_EACH = 20, 10
_BAD = 0.5
# Answers to black images tell nothing; the images have to be made anew.
_BLACK = "the images are black"
_OF_ANSWERS = ("class-order", *INPUT_CHECKS, "near-chance", "random-labels")


def audit(
    model: AskedModel,
    data: Data,
    benchmark: AskedBenchmark | None = None,
    *,
    images: int = IMAGES,
    accuracy: float | None = None,
    difference: float | None = None,
    name: str | None = None,
    protocol: Protocol | None = None,
    batch_size: int | None = None,
    report: ProgressReport = tell_nobody,
) -> Audit:
    """Check a model and its labelled images before they are measured, on a few hundred of the images.

    The model and the data are what `evaluate` takes. The ``benchmark``, if there is one, tells how images are brought
    to size, unless a ``protocol`` does, and its corruptions are tried at their weakest and strongest severity.
    ``accuracy`` is the one that the model should have, in percent; that of timm's models on ImageNet's validation
    images is known. ``difference`` is the one between models, in points, that is to be told apart with all the images.
    """
    if images < 1:
        raise InputError(f"{images} images; expected at least 1")
    expected = said_by_user(accuracy)
    chosen = None if benchmark is None else as_benchmark(benchmark)
    used = protocol or (Protocol() if chosen is None else chosen.protocol)
    classifier, source = as_classifier(model, name), open_source(data)
    report(0, None, "reading images")
    subject = open_subject(classifier, source, used, count=images, batch_size=batch_size)
    conditions = () if chosen is None else chosen.conditions
    return _Auditing(subject, conditions, report).run(expected, difference)


class _Auditing:
    """An audit on its way: tells what it does, and collects checks."""

    def __init__(self, subject: Subject, conditions: Sequence[Condition], report: ProgressReport) -> None:
        self.subject, self.report = subject, report
        self.conditions = [condition for condition in conditions if not condition.is_sequence]
        self.done = 0

    def run(self, expected: Expected | None, difference: float | None) -> Audit:
        """All checks."""
        subject = self.subject
        self.tell("clean images")
        records = subject.answers(subject.images)
        known, why_not = self._expected(expected)
        checks = [check_accuracy(records, known, why_not=why_not)]
        of_images = self._of_images()
        checks += of_images
        failed = {check.name for check in of_images if check.findings}
        self.subject = subject = replace(subject, lossy="jpeg" in failed)
        self.tell("the same images again")
        behaviour = check_behaviour(subject)
        checks += behaviour
        if any(check.name == "value-range" and check.state == "found" for check in of_images):
            checks += [Check(name, skipped=_BLACK) for name in _OF_ANSWERS]
        else:
            steady = not any(check.findings for check in behaviour)
            checks += self._of_inputs_and_labels(records, steady=steady)
        self.tell("corruptions")
        checks += self._of_severities()
        scores = records.correct.astype(np.float64)
        checks.append(check_precision(scores, difference, len(subject.source), of="clean accuracy"))
        return Audit(
            subject.model.name,
            subject.source.name,
            len(records),
            wilson_interval(int(records.correct.sum()), len(records)),
            in_order(checks),
        )

    def tell(self, what: str) -> None:
        """Say what is done."""
        self.done += 1
        self.report(self.done, None, what)

    def _expected(self, said: Expected | None) -> tuple[Expected | None, str]:
        """The accuracy that is known, or why none is."""
        model = self.subject.model
        settings = getattr(model.module, "pretrained_cfg", None) or {}
        tag = str(settings.get("tag") or "") if isinstance(settings, dict) else ""
        return expected_accuracy(said, model.card, self.subject.images.names, tag=tag)

    def _of_images(self) -> list[Check]:
        subject = self.subject
        source, protocol = subject.source, subject.protocol
        more = np.setdiff1d(np.arange(len(source)), subject.rows)[: max(0, _COMPARED - len(subject.rows))]
        self.tell("comparing images")
        # Whole, because what is cut out of two pictures may be the same; large ones as small copies.
        sides = [min(source.read(int(row)).size) for row in subject.rows[:_LOOKED_AT]]
        resize = _COPY if float(np.median(sides)) > _COPY else None
        compared = load(source.take(np.concatenate([subject.rows, more])), resize=resize)
        plain = protocol.resize is None and protocol.view is None
        as_they_come = subject.images if plain else compared.take(range(len(subject.rows)))
        classes, names = subject.label_classes, source.class_names or source.classes
        levels = check_levels(as_they_come)
        black = Check("duplicates", skipped=_BLACK)
        return [
            black if levels.state == "found" else check_twice(compared),
            levels,
            check_jpeg(as_they_come),
            check_missing(source.labels, classes, names),
            needless_resize(subject),
        ]

    def _of_inputs_and_labels(self, records: Records, *, steady: bool) -> list[Check]:
        """Labels first: no other way to give images can be told to be better while labels mean other classes.

        Nor can it where answers are not ``steady``, and change with the batch, or from one time to the next.
        """
        subject, (order, mapping) = self.subject, self._order(self.subject, records)
        if mapping is not None and steady and channels_explain(subject, records, mapping):
            order, mapping = Check(order.name, order.said), None
        checks = [order]
        if mapping is not None:
            subject = subject.relabelled(mapping)
            records = subject.answers(subject.images)  # confidences in the label are those of other labels now
        if not steady:
            unsteady = [Check(name, skipped="answers change by themselves") for name in INPUT_CHECKS]
            return [*checks, *unsteady, *check_chance(records, subject.outputs)]
        inputs = check_inputs(subject, records, self.tell)
        checks += inputs.checks
        if mapping is None and any(check.findings for check in inputs.checks):
            checks.append(self._order(inputs.mended, inputs.records)[0])
        return [*checks, *check_chance(inputs.records, subject.outputs)]

    def _order(self, subject: Subject, records: Records) -> tuple[Check, NDArray[np.int64] | None]:
        classes, names = subject.label_classes, subject.source.class_names or subject.source.classes
        present = len(np.unique(records.labels))
        if records.correct.mean() < _BAD and len(records) < _PER_CLASS * present:
            rows = _of_few_classes(subject.source.labels)
            if rows is not None:
                self.tell("more images of a few classes")
                records = subject.answers(subject.load(rows, subject.protocol))
        return check_order(records, classes, names)

    def _of_severities(self) -> list[Check]:
        subject = self.subject
        shapes = [(int(height), int(width)) for _, height, width in subject.images.shapes.tolist()]
        table = check_table(shapes, subject.protocol.preset, self.conditions)
        chosen = ends(condition for condition in self.conditions if _can_be_made(condition))
        if not chosen:
            return [table, Check("severity-curves", skipped="no benchmark with severities was named")]
        images = subject.images.take(range(min(_CORRUPTED, len(subject.images))))
        outcomes = {condition: records.correct for condition, records in subject.conditions(images, chosen)}
        return [table, check_curves(outcomes, preset=None)]


def _can_be_made(condition: Condition) -> bool:
    """Whether the files that a corruption needs are there, such as the photographs of frost."""
    try:
        condition.check_files()
    except InputError:
        return False
    return True


def _of_few_classes(labels: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """The rows of some images of each of some classes; None where no two classes have enough."""
    counts = np.bincount(labels)
    rich = np.flatnonzero(counts >= _PER_CLASS)
    if len(rich) < 2:
        return None
    chosen = rich[np.linspace(0, len(rich) - 1, min(_CLASSES, len(rich))).astype(np.int64)]
    return np.concatenate([np.flatnonzero(labels == label)[:_OF_EACH] for label in chosen])
