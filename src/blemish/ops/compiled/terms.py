"""Terms of series in double precision, for compiled kernels and for the plain operations (`blemish.ops.series`)."""

from __future__ import annotations

import math
from fractions import Fraction

SINE = tuple((-1) ** n / math.factorial(2 * n + 1) for n in range(11))
COSINE = tuple((-1) ** n / math.factorial(2 * n) for n in range(12))
"""Of the square of an angle of at most 2: what is left out is below 1e-15."""

SCALE = 1 / 1.2
POWER = 0.29164663625105236
"""(1.2 ** 4 / 5) ** 1.4"""


def _binomials(exponent: Fraction, count: int) -> tuple[float, ...]:
    terms = [Fraction(1)]
    for n in range(count - 1):
        terms.append(terms[-1] * (exponent - n) / (n + 1))
    return tuple(map(float, terms))


BINOMIAL = _binomials(Fraction(56, 10), 18)
"""Of (1 + w) ** 5.6 where w is at most 0.18: what is left out is below 1e-15."""
