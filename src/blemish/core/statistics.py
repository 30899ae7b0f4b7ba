"""Estimates with intervals: quantiles of the normal and of Student's law, and intervals of means and shares."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from blemish.core.errors import InputError


@dataclass(frozen=True)
class Estimate:
    """A number and the interval around it."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"

    @property
    def width(self) -> float:
        """From end to end."""
        return self.high - self.low

    def scaled(self, factor: float) -> Estimate:
        """The same in other units."""
        return Estimate(self.value * factor, self.low * factor, self.high * factor)


@dataclass(frozen=True)
class MeanEstimate(Estimate):
    """A mean of independent values with Student's interval, the standard deviation of one value, and their number."""

    deviation: float
    count: int

    @property
    def half_width(self) -> float:
        """What stands after ±."""
        return self.width / 2


def check_level(level: float) -> None:
    """Raise unless this can be the level of an interval."""
    if not 0 < level < 1:
        raise InputError(f"level {level:g}; expected a number between 0 and 1, such as 0.95")


def normal_quantile(level: float) -> float:
    """How many standard deviations around the mean hold the share ``level`` of the normal law.

    >>> round(normal_quantile(0.95), 6)
    1.959964
    """
    return NormalDist().inv_cdf((1 + level) / 2)


@lru_cache(maxsize=256)
def student_quantile(freedom: float, level: float = 0.95) -> float:
    """The t for which −t … t holds the share ``level`` of Student's law, to ten digits.

    >>> round(student_quantile(1), 6), round(student_quantile(9), 6), round(student_quantile(1e6), 6)
    (12.706205, 2.262157, 1.959966)
    """
    check_level(level)
    if not 0 < freedom < math.inf:
        raise InputError(f"{freedom:g} degrees of freedom; expected a finite number above 0")
    z = -NormalDist().inv_cdf((1 - level) / 2) if level > 1e-5 else level * math.sqrt(math.pi / 2)
    if freedom > 1e6:  # the fractions below lose digits; the first term of the expansion in 1/f leaves 2e-10
        return z + (z**3 + z) / (4 * freedom)
    # Newton's method for the logarithm of t. The logarithms of both shares are concave in it, so that it converges from
    # the normal quantile, without bounds. The smaller share is the one to solve for: it has the digits.
    log_t = math.log(z)
    for _ in range(100):
        inside, outside, slope = _student_shares(math.exp(log_t), freedom)
        step = inside * math.log(level / inside) if level < 0.5 else outside * math.log(outside / (1 - level))
        log_t += step / slope
        if abs(step) < 1e-13 * slope:
            break
    return math.exp(log_t)


def _student_shares(t: float, freedom: float) -> tuple[float, float, float]:
    """Student's law inside and outside −t … t, and by how much the former grows with the logarithm of t.

    The shares are incomplete beta functions of f/2 and 1/2, at f / (f + t²), or with both exchanged at the complement.
    Whichever continued fraction converges faster is taken.
    """
    half, ratio = freedom / 2, t * t / freedom
    below, above = ratio / (1 + ratio), 1 / (1 + ratio)
    # below^½ · above^half / B(half, ½)
    front = math.exp(_log_gamma_ratio(half) - half * math.log1p(ratio)) * math.sqrt(below / math.pi)
    if below * (half + 2.5) < 1.5:
        inside = front * _beta_fraction(0.5, half, below) / 0.5
        return inside, 1 - inside, 2 * front
    outside = front * _beta_fraction(half, 0.5, above) / half
    return 1 - outside, outside, 2 * front


def _log_gamma_ratio(x: float) -> float:
    """log Γ(x + ½) − log Γ(x); by its asymptotic series where the two are large and nearly cancel."""
    if x < 30:
        return math.lgamma(x + 0.5) - math.lgamma(x)
    return 0.5 * math.log(x) - 1 / (8 * x) + 1 / (192 * x**3) - 1 / (640 * x**5)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8), by Lentz's method."""
    value = above = 1.0
    below = 0.0
    for m in range(10_000):
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        even = (m + 1) * (b - m - 1) * x / ((a + 2 * m + 1) * (a + 2 * m + 2))
        for term in (odd, even):
            above, below = 1 + term / above, 1 / (1 + term * below)
            value *= above * below
        if abs(above * below - 1) < 1e-15:
            break
    return 1 / value


def estimate_mean(values: ArrayLike, *, level: float = 0.95) -> MeanEstimate:
    """The mean of independent values with Student's interval and their deviation, which a single value does not have.

    >>> mean = estimate_mean([1.0, 2.0, 3.0])
    >>> mean.value, round(mean.half_width, 6)
    (2.0, 2.484138)
    """
    check_level(level)
    each = np.asarray(values, dtype=np.float64)
    if each.ndim != 1 or not len(each):
        raise InputError(f"values of shape {each.shape}; expected a row of numbers")
    mean, count = float(each.mean()), len(each)
    if count == 1:
        return MeanEstimate(mean, math.nan, math.nan, math.nan, 1)
    deviation = float(each.std(ddof=1))
    half = student_quantile(count - 1, level) * deviation / math.sqrt(count)
    return MeanEstimate(mean, mean - half, mean + half, deviation, count)


def wilson_interval(correct: float, images: int, *, level: float = 0.95) -> Estimate:
    """Wilson's score interval (1927) of the share of images that are correct.

    >>> share = wilson_interval(8, 10)
    >>> round(share.low, 4), round(share.high, 4)
    (0.4902, 0.9433)
    """
    check_level(level)
    if images < 1 or not 0 <= correct <= images:
        raise InputError(f"{correct:g} of {images} images correct; expected at least one image and a share of them")
    share, z = correct / images, normal_quantile(level)
    centre = (share + z**2 / (2 * images)) / (1 + z**2 / images)
    half = z * math.sqrt(share * (1 - share) / images + (z / (2 * images)) ** 2) / (1 + z**2 / images)
    # With no image right, or none wrong, one end is the share itself, but for rounding.
    return Estimate(share, max(0.0, min(centre - half, share)), min(1.0, max(centre + half, share)))


def unanimous_interval(value: float, images: int, *, level: float = 0.95) -> Estimate:
    """The exact interval (Clopper and Pearson 1934) of a proportion that is 0 or 1 in a sample of images.

    Resamples of images that all agree agree too, so the bootstrap has nothing to say. With α = 1 − level, the far end
    is 1 − (α/2)^(1/n) away.

    >>> round(unanimous_interval(0.0, 40).high, 4), round(unanimous_interval(1.0, 40).low, 4)
    (0.0881, 0.9119)
    """
    check_level(level)
    if value not in (0, 1):
        raise InputError(f"a proportion of {value:g}; expected 0 or 1")
    if images < 1:
        raise InputError(f"a proportion of {images} images; expected at least 1")
    far = 1 - ((1 - level) / 2) ** (1 / images)
    return Estimate(float(value), 0.0, far) if value == 0 else Estimate(float(value), 1 - far, 1.0)


def ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """Ranks from 1, equal values sharing the mean of theirs.

    >>> ranks(np.array([0.3, 0.1, 0.3, 0.7])).tolist()
    [2.5, 1.0, 2.5, 4.0]
    """
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts - 1) / 2)[inverse])


def percentile_interval(value: float, replicates: NDArray[Any], *, level: float = 0.95) -> Estimate:
    """The percentile interval: between the (1 − level)/2 quantiles of the resampled values from below and above.

    >>> estimate = percentile_interval(0.5, np.linspace(0, 1, 101), level=0.9)
    >>> round(estimate.low, 6), round(estimate.high, 6)
    (0.05, 0.95)
    """
    check_level(level)
    low, high = np.quantile(replicates, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(float(value), float(low), float(high))
