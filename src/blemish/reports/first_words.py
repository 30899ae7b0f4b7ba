"""What a person would say first of some results, in a sentence or two."""

from __future__ import annotations

from collections.abc import Sequence

from blemish.core.printable import first_few
from blemish.metrics.scored import Score
from blemish.metrics.titles import TITLES
from blemish.reports.ranks import RankedSet
from blemish.reports.reading import Reading, benchmark_title
from blemish.reports.score_tables import value_text
from blemish.reports.tables import DAGGER
from blemish.reports.wording import Wording, direction

_ALIKE = 1.2
_MANY = 10


def first_words(sets: Sequence[RankedSet]) -> list[str]:
    """For each set of runs that were measured alike, which model is best, and where it fails."""
    lines = []
    for own in sets:
        best = own.best
        if best is None:
            continue
        words = [_best(own, best) if len(own.readings) > 1 else _alone(best), worst_words(best)]
        lines.append(" ".join(word for word in words if word))
    return lines


def _number(reading: Reading) -> str:
    """The headline with its interval, its baseline and its direction."""
    name = reading.metric if reading.get(reading.metric, "benchmark") else reading.quantity
    score = reading.get(name, "benchmark")
    if score is None:
        return ""
    title = Wording(reading.scores.baseline)(name, benchmark_title(name, reading.part, unit=False))
    low, high = (value_text(name, end) for end in (score.estimate.low, score.estimate.high))
    unit = f" {score.unit}" if score.unit else ""
    mark, why = (DAGGER, f"; {DAGGER} trained on {', '.join(reading.seen)}") if score.trained_on else ("", "")
    value = value_text(name, score.estimate.value)
    return f"{title} {value}{mark}{unit} ({low} to {high}; {direction(name)}{why})"


def _alone(reading: Reading) -> str:
    number, clean = _number(reading), reading.get(reading.quantity, "condition", "clean")
    if not number:
        return ""
    start = "" if clean is None else f"; {_said(clean)} on clean images"
    return f"{_capital(number)}{start}."


def _best(own: RankedSet, best: Reading) -> str:
    ranked = [row for row in own.rows if not row.why]
    number, alike = _number(best), [reading.name for reading in own.like_best]
    if len(ranked) == 1:
        return f"{best.name} is the only model with a rank: {number}."
    if not alike:
        return f"Best: {best.name}, {number}; told apart from all others."
    if len(alike) == len(ranked) - 1:
        return f"No model can be told to be best; the first is {best.name}, {number}."
    return f"First: {best.name}, {number}; not told apart from it: {first_few(alike, 4)}."


def worst_words(reading: Reading, *, short: bool = False) -> str:
    """Under what a model fails most, and which family is worse than which; nothing where there is nothing to say."""
    if reading.groups:
        metric = reading.quantity
        scores = [reading.get(metric, "corruption", name) for name in reading.groups]
    else:
        metric, scores = "flips", [reading.get("flips", "sequence", name) for name in reading.sequences]
    known = [score for score in scores if score is not None]
    if not known:
        return ""
    worst = max(known, key=_badness)
    where, estimate = worst.of.replace("_", " "), worst.estimate
    low, high = (_short(metric, end) for end in (estimate.low, estimate.high))
    change = " of answers change" if metric == "flips" else ""
    number = f"{_short(metric, estimate.value)} {worst.unit}".rstrip() + change
    if short:
        return f"{where}, {number}"
    spread = f" ({low} to {high})"
    return f"Worst: {where}, {number}{spread}{_families(reading)}."


def _short(name: str, value: float) -> str:
    """A number without digits behind the point, where it is of a hundred."""
    return f"{value:.0f}" if TITLES[name].scale == 100 else value_text(name, value)


def _said(score: Score) -> str:
    title = TITLES[score.name]
    what = "errors" if score.name == "error" else title.title
    return f"{value_text(score.name, score.estimate.value)} {title.unit}".rstrip() + f" {what}"


def _badness(score: Score) -> float:
    return -score.estimate.value if TITLES[score.name].higher_is_better else score.estimate.value


def _families(reading: Reading) -> str:
    known = [s for name in reading.by_family if (s := reading.get("error", "family", name)) is not None]
    if len(known) < 2:
        return ""
    worst, least = max(known, key=_value), min(known, key=_value)
    if _value(least) <= 0:
        return f"; no errors under {least.of}"
    ratio = _value(worst) / _value(least)
    if ratio < _ALIKE:
        return "; all families of corruptions are about as bad"
    times = f"{ratio:.0f}" if ratio >= _MANY else f"{ratio:.1f}"
    return f"; {worst.of} is {times} × worse than {least.of} (mean error)"


def _value(score: Score) -> float:
    return score.estimate.value


def _capital(text: str) -> str:
    return text if text[1:2].isupper() else text[:1].upper() + text[1:]
