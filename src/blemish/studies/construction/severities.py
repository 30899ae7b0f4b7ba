"""Severities matched to a model: the range from where it is hardly hurt to where half of its accuracy is left.

ImageNet-NOC chose its ranges so that a standard ResNet-18 keeps R = .95 at the lower end and R = .5 at the upper one.
The same for any model and data: R(s) falls with the severity s, and the severity at which it crosses a target is found
by halving, with all evaluations on the same images and draws so that their noise is shared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.corruptions.severity import MAX_SEVERITY, severity_text

TARGETS = (0.95, 0.5)
Measure = Callable[[float], NDArray[np.bool_]]
"""Correctness image by image at a severity; the same images every time."""

_Z = 1.959963984540054


@dataclass(frozen=True)
class Crossing:
    """Where R falls to a target: the severity, the interval that evaluation noise leaves, and R there.

    ``reached`` is false where even severity 5 leaves more than the target (then the severity is 5), or where the
    mildest severity already leaves less (then it is 0).
    """

    target: float
    severity: float
    low: float
    high: float
    robustness: float
    reached: bool


@dataclass(frozen=True)
class SeverityRange:
    """The two ends of a corruption's range, and every severity that was measured with its R."""

    corruption: str
    lower: Crossing
    upper: Crossing
    measured: Mapping[float, float]


def isotonic(values: Sequence[float]) -> NDArray[np.float64]:
    """The non-increasing sequence nearest to the values in squares: neighbours out of order share their mean.

    >>> isotonic([0.9, 0.5, 0.7, 0.2]).round(2).tolist()
    [0.9, 0.6, 0.6, 0.2]
    """
    blocks: list[tuple[float, int]] = []
    for value in values:
        blocks.append((float(value), 1))
        while len(blocks) > 1 and blocks[-2][0] < blocks[-1][0]:
            (a, m), (b, n) = blocks[-2:]
            blocks[-2:] = [((a * m + b * n) / (m + n), m + n)]
    return np.repeat([value for value, _ in blocks], [count for _, count in blocks])


def crossing(severities: Sequence[float], robustness: Sequence[float], target: float) -> float:
    """The severity at which the straight lines between (isotonic) points fall to the target; the ends where none do.

    >>> crossing([0, 2, 4], [1.0, 0.8, 0.4], 0.6)
    3.0
    """
    values = isotonic(robustness)
    if values[0] <= target:
        return float(severities[0])
    below = np.flatnonzero(values <= target)
    if not len(below):
        return float(severities[-1])
    right = int(below[0])
    high, low = values[right - 1], values[right]
    share = (high - target) / (high - low)
    return float(severities[right - 1] + share * (severities[right] - severities[right - 1]))


class _Curve:
    """R at the severities measured so far, always on the same images."""

    def __init__(self, clean: NDArray[np.bool_], measure: Measure) -> None:
        if not clean.any():
            raise InputError("no clean image is classified correctly; expected some, since robustness divides by them")
        self._clean, self._measure = clean, measure
        self.points: dict[float, NDArray[np.bool_]] = {0.0: clean}

    def at(self, severity: float) -> float:
        if severity not in self.points:
            correct = self._measure(severity)
            if correct.shape != self._clean.shape:
                raise InputError(
                    f"{len(correct)} images at severity {severity_text(severity)}; expected {len(self._clean)}"
                )
            self.points[severity] = correct
        return float(self.points[severity].mean() / self._clean.mean())

    def deviation(self, severity: float) -> float:
        """The standard error of R, a ratio of means over the same images (delta method)."""
        ratio = self.at(severity)
        residual = self.points[severity].astype(float) - ratio * self._clean
        return float(np.sqrt(residual.var(ddof=1) / len(residual)) / self._clean.mean())

    def crossing(self, target: float, shift: float = 0.0) -> float:
        """Where R, moved by so many standard errors, falls to the target."""
        severities = sorted(self.points)
        values = [self.at(s) + shift * (self.deviation(s) if s else 0.0) for s in severities]
        return crossing(severities, values, target)


def match_range(
    corruption: str,
    clean: NDArray[np.bool_],
    measure: Measure,
    *,
    targets: tuple[float, float] = TARGETS,
    tolerance: float = 0.05,
    largest: float = float(MAX_SEVERITY),
) -> SeverityRange:
    """The severities at which R falls to the two targets.

    The bracket around a crossing is halved until it is narrower than ``tolerance``, or than what noise allows to tell:
    until both of its ends are within one standard error of the target. Measured points are made monotone before lines
    between them are inverted, and the interval comes from moving all of them by 1.96 standard errors up and down.
    """
    if not 0 < targets[1] < targets[0] < 1:
        raise InputError(f"targets {targets[0]:g} and {targets[1]:g}; expected 1 > first > second > 0")
    if not tolerance > 0:
        raise InputError(f"tolerance {tolerance:g}; expected more than 0")
    if len(clean) < 2:
        raise InputError(f"{len(clean)} images; expected at least 2, better hundreds")
    curve = _Curve(np.asarray(clean, dtype=np.bool_), measure)
    curve.at(largest)
    lower, upper = (_end(curve, target, tolerance, largest) for target in targets)
    return SeverityRange(corruption, lower, upper, {s: curve.at(s) for s in sorted(curve.points)})


def _end(curve: _Curve, target: float, tolerance: float, largest: float) -> Crossing:
    reached = curve.at(largest) <= target
    while reached:
        estimate = curve.crossing(target)
        low = max((s for s in curve.points if s <= estimate), default=0.0)
        high = min((s for s in curve.points if s > estimate), default=largest)
        told = any(abs(curve.at(s) - target) > (curve.deviation(s) if s else 0.0) for s in (low, high))
        if high - low <= tolerance or not told:
            break
        curve.at((low + high) / 2)
    severity = curve.crossing(target) if reached else largest
    measured = sorted(curve.points)
    smooth = isotonic([curve.at(s) for s in measured])
    return Crossing(
        target=target,
        severity=severity,
        low=curve.crossing(target, -_Z),
        high=curve.crossing(target, _Z),
        robustness=float(np.interp(severity, measured, smooth)),
        reached=reached,
    )
