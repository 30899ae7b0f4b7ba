"""Requirements such as ``fog@3 accuracy > 0.7``: how they are read, and what an interval says about them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import Enum

from blemish.benchmarks.condition import read_condition
from blemish.core.errors import InputError, brief
from blemish.core.statistics import Estimate, normal_quantile
from blemish.corruptions.catalog import hint
from blemish.metrics.titles import TITLES

_RULE = re.compile(
    r"(?:(?P<of>[^<>]*[^<>\s])\s+)?(?P<name>[A-Za-z]\w*)\s*(?P<sign><=|>=|<|>)\s*"
    r"(?P<number>[-−+]?(?:\d+(?:\.\d*)?|\.\d+))\s*(?P<unit>%|[A-Za-z]+)?"
)
SHARES = ("error", "accuracy", "balanced_error", "confidence", "ece", "flips")
"""Metrics that lie between 0 and 100 %."""

_POWER = 0.8
_DIGITS = 9  # numbers that differ by less are equal: 0.55 · 100 is not 55 in floating point


class Status(Enum):
    """What became of a requirement. Only ``PASSED`` lets a model through."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"
    UNKNOWN = "not measured"


@dataclass(frozen=True)
class Rule:
    """A bound for a metric, in the units the metric is shown in. ``of`` is empty for the whole benchmark."""

    name: str
    of: str
    sign: str
    bound: float

    def __str__(self) -> str:
        unit = TITLES[self.name].unit
        return (
            f"{f'{self.of} ' if self.of else ''}{self.name} {self.sign} {self.bound:.10g}{f' {unit}' if unit else ''}"
        )


@dataclass(frozen=True)
class Decision:
    """A status, and how many times as many images would decide where it is undecided; None where no number would."""

    status: Status
    times: float | None = None


def read_rule(text: str) -> Rule:
    """The requirement that a text means: ``[OF] METRIC < | <= | > | >= NUMBER [UNIT]``.

    Numbers are in the unit that the metric is shown in, which may follow them. An accuracy between 0 and 1 without a
    unit is a fraction; of other metrics in percent or points, a number up to 1 must name its unit, since it may be
    meant as either.

    >>> str(read_rule("mce < 60")), str(read_rule("fog@3 accuracy > 0.7")), str(read_rule("clean error <= 0.5 %"))
    ('mce < 60 %', 'fog@3 accuracy > 70 %', 'clean error <= 0.5 %')
    """
    if (match := _RULE.fullmatch(text.strip())) is None:
        raise InputError(
            f"requirement {brief(text)}; expected [OF] METRIC SIGN NUMBER with a sign of < <= > >=, "
            "such as 'mce < 60' or 'fog@3 accuracy > 0.7'"
        )
    name = match["name"]
    if name not in TITLES:
        raise InputError(
            f"requirement {brief(text)}: no metric {name!r}; {hint(name, [*TITLES], see='docs/metrics.md')}"
        )
    number = float(match["number"].replace("−", "-"))  # tables print a real minus
    bound = _in_its_unit(text, name, number, match["unit"])
    if not math.isfinite(bound) or (name in SHARES and not 0 <= bound <= 100):
        expected = "a number from 0 to 100 %" if name in SHARES else "a finite number"
        raise InputError(f"requirement {brief(text)}: {name} against {bound:g}; expected {expected}")
    return Rule(name, _condition_text(match["of"] or ""), match["sign"], bound)


def _in_its_unit(text: str, name: str, number: float, unit: str | None) -> float:
    own = TITLES[name].unit
    if unit is not None and unit != own:
        raise InputError(
            f"requirement {brief(text)}: {name} is shown {f'in {own}' if own else 'without a unit'}, not in {unit}"
        )
    if unit is not None or not own or number == 0 or abs(number) > 1:
        return number
    if name == "accuracy" and 0 < number < 1:
        return 100 * number
    raise InputError(
        f"requirement {brief(text)}: {number:g} may be {number:g} {own} or {100 * number:g} {own}; "
        "expected one of them with its unit"
    )


def _condition_text(of: str) -> str:
    """The text of a condition as results have it: fog@3.0 is fog@3."""
    return str(read_condition(of)) if "@" in of else of


def decide(
    estimate: Estimate,
    sign: str,
    bound: float,
    *,
    by_point: bool = False,
    level: float = 0.95,
    share: bool = False,
) -> Decision:
    """Whether the whole interval keeps to a bound, breaks it, or reaches across; by the value alone if ``by_point``.

    The value has to be on the same side as its interval. An interval of this ``level`` shrinks as 1/√n, so that the end
    across the bound, h away from a value that is d away from it, gets there with (h/d)² times as many images. The value
    moves too: so many decide in half of the cases only, and f² times as many in four of five, with f = 1 + 0.84 / z and
    the interval's z, 1.96 at 95 %. That is an estimate, as nobody knows where the value will end. Where it lies exactly
    on the bound, no number of images decides.

    A ``share`` in percent of 0 or 100 has an exact interval, whose end is (α/2)^(1/n) from the other extreme: as long
    as all answers agree, log(1 − h) / log(1 − d) times as many images decide.

    >>> round(decide(Estimate(58.0, 56.0, 62.0), "<", 60).times / 2**2, 2)
    2.04
    """
    value, low, high, bound = (round(x, _DIGITS) for x in (estimate.value, estimate.low, estimate.high, bound))
    points = [value] if by_point else [value, low, high]
    kept = [_keeps(point, sign, bound) for point in points]
    if all(kept):
        return Decision(Status.PASSED)
    if not any(kept):
        return Decision(Status.FAILED)
    if value == bound:
        return Decision(Status.UNDECIDED)
    across = high if value < bound else low
    if share and value in (0, 100):
        return Decision(Status.UNDECIDED, _log_rest(across - value) / _log_rest(bound - value))
    surely = 1 + normal_quantile(2 * _POWER - 1) / normal_quantile(level)
    return Decision(Status.UNDECIDED, (surely * (across - value) / (bound - value)) ** 2)


def _log_rest(percent: float) -> float:
    return math.log1p(-min(abs(percent) / 100, 1 - 1e-12))


def _keeps(number: float, sign: str, bound: float) -> bool:
    if sign in ("<=", ">=") and number == bound:
        return True
    return number < bound if sign in ("<", "<=") else number > bound


def images_that_decide(images: int, times: float) -> int:
    """How many images would decide: at least one more than there are.

    >>> images_that_decide(500, 4.0), images_that_decide(500, 1.0)
    (2000, 501)
    """
    return max(images + 1, math.ceil(images * times - 1e-6))
