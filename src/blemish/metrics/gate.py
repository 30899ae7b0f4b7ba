"""May a model pass? Requirements on its numbers, and how far it may fall behind an earlier one, by intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from blemish.core.errors import InputError
from blemish.core.printable import first_few
from blemish.core.progress import ProgressReport, tell_nobody
from blemish.core.statistics import Estimate, check_level
from blemish.corruptions.catalog import hint
from blemish.evaluation.runs import Run, RunLike, as_run
from blemish.metrics.baselines import Baseline
from blemish.metrics.compare import Comparison, compare, protocol_differences
from blemish.metrics.gate_rules import SHARES, Rule, Status, decide, images_that_decide, read_rule
from blemish.metrics.looks import enough_replicates
from blemish.metrics.maker import NOT_KNOWN, Missing
from blemish.metrics.scored import Score, Scores
from blemish.metrics.scores import score_run
from blemish.metrics.titles import MEANS, TITLES, partial_name, whole_title

_NAMED = 5
_PARTS = {mean: name for name, whole in MEANS.items() for mean in (whole, partial_name(whole))}


@dataclass(frozen=True)
class Verdict:
    """What became of one requirement, and why.

    ``estimate`` and ``bound`` are in ``unit``; without a number there is no estimate. Where more images would decide,
    ``times`` tells how many times as many, and ``images`` how many in all: both are estimates.
    """

    requirement: str
    status: Status
    why: str
    estimate: Estimate | None = None
    bound: float | None = None
    unit: str = ""
    times: float | None = None
    images: int | None = None


@dataclass(frozen=True)
class Gate:
    """All requirements of a model. ``by_point`` where intervals were left out of account; ``notes`` are to be read."""

    model: str
    benchmark: str
    against: str | None
    verdicts: tuple[Verdict, ...]
    notes: tuple[str, ...]
    by_point: bool
    level: float
    images: int

    @property
    def status(self) -> Status:
        """The worst of all: failed, which a number that is not known is too; then undecided; then passed."""
        statuses = {verdict.status for verdict in self.verdicts}
        if statuses & {Status.FAILED, Status.UNKNOWN}:
            return Status.FAILED
        return Status.UNDECIDED if Status.UNDECIDED in statuses else Status.PASSED

    def as_dict(self) -> dict[str, Any]:
        """Everything in plain lists, dictionaries, texts and numbers."""
        plain = ("model", "benchmark", "against", "by_point", "level", "images")
        verdicts = [asdict(verdict) | {"status": verdict.status.value} for verdict in self.verdicts]
        whole = {"status": self.status.value} | {name: getattr(self, name) for name in plain}
        return whole | {"verdicts": verdicts, "notes": list(self.notes)}


def gate(
    run: RunLike,
    require: Sequence[str] = (),
    *,
    against: RunLike | None = None,
    max_drop: float | None = None,
    by_point: bool = False,
    baseline: Baseline | Run | str | None = None,
    level: float = 0.95,
    replicates: int = 1000,
    report: ProgressReport = tell_nobody,
) -> Gate:
    """Whether a run meets all requirements, each a text such as ``mce < 60`` (see `read_rule`).

    With ``against``, the headline number may be worse than that run's by at most ``max_drop``, in the units it is shown
    in, by a paired interval on the same images. Runs that were not measured in the same way are refused.
    """
    rules = [read_rule(text) for text in require]
    _check_asked(rules, against, max_drop)
    check_level(level)
    replicates = enough_replicates(1 - level, replicates)
    run = as_run(run)
    before = None if against is None else _same_protocol(as_run(against), run)
    settings: dict[str, Any] = {"baseline": baseline, "level": level, "replicates": replicates, "report": report}
    scores = score_run(run, **settings)
    notes = [*_unfinished(run), *scores.remarks]
    verdicts = [_of_rule(rule, scores, by_point) for rule in rules]
    if before is not None and max_drop is not None:
        notes += _unfinished(before)
        verdicts.append(_of_drop(compare(before, run, **settings), max_drop, by_point, level))
    return Gate(
        model=run.name,
        benchmark=scores.benchmark,
        against=None if before is None else before.name,
        verdicts=tuple(_not_near_chance(verdict, scores) for verdict in verdicts),
        notes=tuple(dict.fromkeys(notes)),
        by_point=by_point,
        level=level,
        images=scores.images,
    )


def _check_asked(rules: Sequence[Rule], against: RunLike | None, max_drop: float | None) -> None:
    if against is None and max_drop is not None:
        raise InputError(f"--max-drop {max_drop:g} without --against; expected the folder of a run to compare with")
    if against is not None and max_drop is None:
        raise InputError("--against without --max-drop; expected how many points the headline number may be worse")
    if max_drop is not None and not 0 <= max_drop < math.inf:
        raise InputError(f"--max-drop {max_drop:g}; expected 0 or more points")
    if not rules and against is None:
        raise InputError("nothing is required; expected --require, or --against with --max-drop")


def _same_protocol(before: Run, run: Run) -> Run:
    if differences := protocol_differences(before, run):
        raise InputError(
            f"{before.folder} and {run.folder} were not measured in the same way: {'; '.join(differences)}; "
            "expected runs of the same benchmark, images and settings"
        )
    return before


def _unfinished(run: Run) -> list[str]:
    missing = [str(condition) for condition in run.conditions if not run.finished(condition)]
    return [f"{run.name}: no records yet of {first_few(missing, _NAMED)}"] if missing else []


def _of_rule(rule: Rule, scores: Scores, by_point: bool) -> Verdict:
    rows = [row for row in scores.rows if (row.name, row.of) == (rule.name, rule.of)]
    if len({row.estimate for row in rows}) > 1:
        scopes = " and of a ".join(row.scope for row in rows)
        raise InputError(f"requirement {str(rule)!r}: {rule.of} is the name of a {scopes}; expected one that is unique")
    if not rows:
        return Verdict(str(rule), Status.UNKNOWN, _why_missing(rule, scores), bound=rule.bound, unit=_unit(rule))
    row = rows[0]
    # Natural sets have images of their own, in numbers that scores do not tell.
    images = None if row.scope == "natural" or row.name == "natural_gap" else scores.images
    how: dict[str, Any] = {"by_point": by_point, "level": scores.level, "share": row.name in SHARES}
    verdict = _verdict(str(rule), row.estimate, rule.sign, rule.bound, row.unit, images, **how)
    return _with_words(verdict, [*_words_on(row, scores), *_words_on_width(row.estimate, by_point)])


def _unit(rule: Rule) -> str:
    return TITLES[rule.name].unit


def _words_on(row: Score, scores: Scores) -> list[str]:
    """What has to be known of a number, whatever was decided."""
    words = [f"this is the {whole_title(row.name, scores.part)}"] if scores.part and row.scope == "benchmark" else []
    if row.trained_on:
        words.append("the model was trained on a corruption in this number, which does not measure robustness to it")
    return words


def _words_on_width(estimate: Estimate, by_point: bool) -> list[str]:
    if estimate.width or by_point:
        return []
    return ["no resample differs from another, so that the interval says nothing of other images"]


def _why_missing(rule: Rule, scores: Scores) -> str:
    """Why a number is not known; an error where it does not exist for such results, so that the rule makes no sense."""
    whole = MEANS.get(rule.name, rule.name)
    if scores.part is not None and not rule.of and partial_name(rule.name) != rule.name:
        part = scores.part
        return (
            f"only {part.conditions} of the {part.whole} conditions of {part.benchmark} were measured, which have no "
            f"{rule.name}; {partial_name(rule.name)} is that of a part"
        )
    targets = dict.fromkeys([row.of for row in scores.rows] + [item.of for item in scores.missing])
    if rule.of and rule.of not in targets:
        near = hint(rule.of, [text for text in targets if text], see="blemish score")
        raise InputError(f"requirement {str(rule)!r}: {scores.benchmark} as it was measured has no {rule.of!r}; {near}")
    # One reason stands for all parts of a benchmark where nothing of it is known.
    for name, of in ((rule.name, rule.of), (rule.name, ""), (whole, ""), (partial_name(whole), "")):
        if (why := _reason(name, of, scores.missing)) is not None:
            return why
    own = dict.fromkeys(row.name for row in scores.rows if row.of == rule.of)
    raise InputError(
        f"requirement {str(rule)!r}: {rule.name} does not apply to {rule.of or 'the whole benchmark'}; "
        f"known of it: {', '.join(own) or 'nothing'}"
    )


def _reason(name: str, of: str, missing: Sequence[Missing]) -> str | None:
    """Why a number is missing, down to the conditions: a mean is missing for the sake of its parts."""
    why = next((item.why for item in missing if name in item.names and item.of == of), None)
    if why is None or not why.startswith(NOT_KNOWN):
        return why
    parts = why.removeprefix(NOT_KNOWN).split(", ")
    below = [item for item in missing if item.of in parts and _PARTS.get(name, name) in item.names]
    return f"{why} ({first_few([f'{item.of}: {item.why}' for item in below], _NAMED)})" if below else why


def _of_drop(comparison: Comparison, max_drop: float, by_point: bool, level: float) -> Verdict:
    """How much worse the second is, against what is allowed."""
    row, name = comparison.headline, comparison.metric
    higher = name in TITLES and TITLES[name].higher_is_better
    text = f"{name} {'falls' if higher else 'rises'} by at most {max_drop:g} points against {comparison.first}"
    if row is None:
        why = _reason(name, "", comparison.missing) or f"{name} cannot be compared"
        return Verdict(text, Status.UNKNOWN, why, bound=max_drop, unit="points")
    if not row.unit and max_drop >= 1:
        raise InputError(f"--max-drop {max_drop:g}: {name} lies between 0 and 1; expected less than 1")
    if comparison.near_chance[0]:
        return Verdict(text, Status.FAILED, f"{comparison.first} is near chance: to be no worse means nothing")
    change = row.difference
    drop = Estimate(-change.value, -change.high, -change.low) if higher else change
    unit = "points" if row.unit else ""
    images = None if name == "natural_gap" else comparison.images
    verdict = _verdict(text, drop, "<=", max_drop, unit, images, by_point=by_point, level=level)
    words = [f"{row.first:.4g} before, {row.second:.4g} now"]
    if comparison.part is not None:
        words.append(f"this is the {whole_title(name, comparison.part)}")
    words += _words_on_width(change, by_point)
    if any(row.trained_on):
        words.append("a model was trained on a corruption in this number")
    return _with_words(verdict, words)


def _verdict(
    text: str, estimate: Estimate, sign: str, bound: float, unit: str, images: int | None, *, by_point: bool, **how: Any
) -> Verdict:
    """What is decided, in words; ``how`` are the settings of `decide`."""
    decision = decide(estimate, sign, bound, by_point=by_point, **how)
    number = f"{estimate.value:.4g} [{estimate.low:.4g}, {estimate.high:.4g}]{f' {unit}' if unit else ''}"
    needed = None
    if decision.status is not Status.UNDECIDED:
        side = "keeps to" if decision.status is Status.PASSED else "is beyond"
        why = f"{number}: the {'value' if by_point else 'interval'} {side} the bound"
    elif decision.times is None:
        why = f"{number}: the value lies exactly on the bound, so that no number of images decides"
    elif images is None:
        why = (
            f"{number}: the bound is inside; about {decision.times:.2g} times as many images would decide (an estimate)"
        )
    else:
        needed = images_that_decide(images, decision.times)
        why = f"{number}: the bound is inside; about {needed:,} images would decide (an estimate; there are {images:,})"
    return Verdict(text, decision.status, why, estimate, bound, unit, decision.times, needed)


def _with_words(verdict: Verdict, words: Sequence[str]) -> Verdict:
    return replace(verdict, why="; ".join((verdict.why, *words)))


def _not_near_chance(verdict: Verdict, scores: Scores) -> Verdict:
    """A model near chance fails whatever its numbers are: they mean nothing."""
    if not scores.near_chance:
        return verdict
    why = f"{scores.model} is near chance, so that its numbers mean nothing: {scores.chance}"
    return replace(verdict, status=Status.FAILED, why=why, times=None, images=None)
