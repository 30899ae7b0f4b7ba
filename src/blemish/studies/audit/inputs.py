"""Does the model get its images as it learnt them? Other ways are tried on the same images, and tested in pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from blemish.data.images import Images
from blemish.evaluation.records import Records, join
from blemish.studies.audit.alternatives import Alternative, alternatives
from blemish.studies.audit.findings import Check, Finding, Sure
from blemish.studies.audit.significance import ALPHA, fewest_gains, holm, paired, paired_means
from blemish.studies.audit.subject import Subject

INPUT_CHECKS = ("channel-order", "normalisation", "value-range", "resizing")
"""The checks that try other ways."""

# All ways are tried on so many images; those that are not worse by half a standard error are, on the others.
_SCREENED = 96
_HOPELESS = -0.5
# Faults come together: after the first is mended, the second shows.
_ROUNDS = 3
_VERY = 1e-5

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Tried:
    """A way that was tried on all images: its answers, and how likely chance alone makes it that much better."""

    way: Alternative
    records: Records
    p: float


@dataclass(frozen=True)
class Inputs:
    """What trying came to: the checks, and the subject and answers with all that was found mended."""

    checks: tuple[Check, ...]
    mended: Subject
    records: Records


def check_inputs(subject: Subject, records: Records, tell: Tell) -> Inputs:
    """Try other ways to give the model its images; the best of those that are certainly better is a finding."""
    findings: list[Finding] = []
    count, why = 0, ""
    for _ in range(_ROUNDS):
        ways = alternatives(subject)
        wrong = int((~records.correct).sum())
        if wrong < fewest_gains(len(ways)):
            why = f"only {wrong} of {len(records)} answers are wrong, too few for another way to be better"
            break
        tried, ran = _tried(subject, records, ways, tell)
        count = max(count, ran)
        if not tried:
            break
        best = max(tried, key=lambda each: (each.records.correct.sum(), float(each.records.label_confidence.mean())))
        findings.append(_finding(records, best, tried))
        subject, records = _mended(subject, best.way), best.records
    said = f"{count} other ways tried on {len(records)} images" if count else why
    checks = [
        Check(name, said, tuple(finding for finding in findings if finding.check == name)) for name in INPUT_CHECKS
    ]
    return Inputs(tuple(checks), subject, records)


def channels_explain(subject: Subject, records: Records, mapping: NDArray[np.int64]) -> bool:
    """Whether red and blue exchanged make as many answers right as other labels do, where colours make the classes.

    Of two causes that explain the same, the one with fewer freedoms is taken: a red sign is a blue one to the model.
    """
    ways = [way for way in alternatives(subject) if way.check == "channel-order"]
    if not ways:
        return False
    exchanged = subject.answers(subject.images, model=ways[0].model).correct
    renumbered = mapping[records.labels.astype(np.int64)] == records.top5[:, 0]
    return paired(renumbered, exchanged) > ALPHA and paired(exchanged, records.correct) < ALPHA


def _tried(subject: Subject, records: Records, ways: list[Alternative], tell: Tell) -> tuple[list[Tried], int]:
    """The ways that are certainly better than the present one, and how many could be tried at all."""
    first = np.arange(min(_SCREENED, len(records)))
    rest = np.arange(len(first), len(records))
    finished, ran = [], 0
    for way in ways:
        tell(f"trying {way.what}")
        try:
            answers = _answers(subject, way, first)
            ran += 1
            if way.same_scale or _promising(answers, records.take(first)):
                if len(rest):
                    answers = join([answers, _answers(subject, way, rest)])
                finished.append(Tried(way, answers, _by_chance(way, answers, records)))
        except Exception:  # a model refuses what it was not made for in any way it likes
            continue
    better_ways = []
    for name in INPUT_CHECKS:
        mine = [each for each in finished if each.way.check == name]
        # Corrected for all that were tried, however many were left out on the way.
        left_out = sum(way.check == name for way in ways) - len(mine)
        passed = holm([each.p for each in mine] + [1.0] * left_out)
        better_ways += [each for each, better in zip(mine, passed, strict=False) if better]
    return better_ways, ran


def _promising(answers: Records, before: Records) -> bool:
    """Whether a way may still turn out to be better."""
    gained, lost = ((one & ~other).sum() for one, other in _both_ways(answers.correct, before.correct))
    return bool(gained + lost > 0 and (gained - lost) / np.sqrt(gained + lost) > _HOPELESS)


def _both_ways(one: NDArray[np.bool_], other: NDArray[np.bool_]) -> Iterator[tuple[NDArray[np.bool_], ...]]:
    yield one, other
    yield other, one


def _by_chance(way: Alternative, answers: Records, before: Records) -> float:
    """How likely chance alone makes a way so much better; 1 for one that gains too little."""
    gain = float(answers.correct.mean() - before.correct.mean())
    if gain <= 0 or gain < way.least_gain:
        return 1.0
    if way.same_scale:
        return paired_means(answers.label_confidence, before.label_confidence)
    return paired(answers.correct, before.correct)


def _answers(subject: Subject, way: Alternative, rows: NDArray[np.int64]) -> Records:
    images: Images = subject.images.take(rows)
    if way.protocol is not None:
        images = subject.load(subject.rows[rows], way.protocol)
    return subject.answers(images, model=way.model)


def _mended(subject: Subject, way: Alternative) -> Subject:
    if way.protocol is None:
        return replace(subject, model=way.model)
    return replace(subject, protocol=way.protocol, images=subject.load(subject.rows, way.protocol))


def _finding(records: Records, best: Tried, tried: list[Tried]) -> Finding:
    before, after, count = int(records.correct.sum()), int(best.records.correct.sum()), len(records)
    as_good = [each for each in tried if each is not best and each.way.check == best.way.check]
    as_good = [each for each in as_good if paired(best.records.correct, each.records.correct) > ALPHA]
    others = f"; {_listed(each.way.what for each in as_good)} cannot be told from it" if as_good else ""
    sure: Sure = "very likely" if best.p < _VERY else "likely"
    return Finding(
        best.way.check,
        _TITLES[best.way.check],
        f"with {best.way.what}, {after} of {count} images are right instead of {before} "
        f"(p = {best.p:.1g}, significant among all the ways that were tried){others}",
        best.way.todo,
        sure,
        numbers={"right": before, "right_otherwise": after, "images": count, "p": best.p},
    )


_TITLES = {
    "channel-order": "red and blue are exchanged",
    "normalisation": "the values are not normalised as the model learnt them",
    "value-range": "the values do not have the range that the model learnt",
    "resizing": "the images are not brought to size as the model learnt them",
}


def _listed(texts: Iterator[str]) -> str:
    return ", ".join(texts)


def needless_resize(subject: Subject) -> Check:
    """Are images enlarged, only to cut their rim off?"""
    protocol = subject.protocol
    if protocol.resize is None or protocol.crop is None:
        return Check("resizing")
    sizes = [min(subject.source.read(int(row)).size) for row in subject.rows[:32]]
    small = [side for side in sizes if side < protocol.resize and side >= protocol.crop]
    if 2 * len(small) <= len(sizes):
        return Check("resizing")
    return Check(
        "resizing",
        findings=(
            Finding(
                "resizing",
                "images are enlarged, and their rim is cut off",
                f"images of {int(np.median(small))} pixels are brought to {protocol.resize} and cut to {protocol.crop}:"
                f" {1 - (protocol.crop / protocol.resize) ** 2:.0%} of each is lost, and the rest is blurred",
                "if they were cut out before, leave it out: --resize 0 --crop 0, for all models that are compared",
                level="note",
            ),
        ),
    )
