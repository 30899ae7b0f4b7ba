"""Sines, cosines and a power as sums of series in double precision: the same bits wherever they are worked out.

Products and sums are rounded one after the other, by compiled kernels (`blemish.ops.compiled.water`) as by torch on a
CPU. Other devices have fast functions of their own, which differ in the last bits.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from blemish.ops.compiled.terms import BINOMIAL, COSINE, POWER, SCALE, SINE


def _summed(terms: Sequence[float], variable: Tensor) -> Tensor:
    total = variable * terms[-1] + terms[-2]
    for term in terms[-3::-1]:
        total.mul_(variable).add_(term)
    return total


def sine_and_cosine(angles: Tensor) -> tuple[Tensor, Tensor]:
    """Of angles of at most 2, in float64."""
    if angles.device.type != "cpu":
        return angles.sin(), angles.cos()
    square = angles * angles
    return _summed(SINE, square).mul_(angles), _summed(COSINE, square)


def power_of_fifth(values: Tensor) -> Tensor:
    """``(values / 5) ** 1.4`` of values from 1 to 3.91, in float64."""
    if values.device.type != "cpu":
        return (values / 5).pow_(1.4)
    # The square roots of torch are not rounded to the nearest double, but their reciprocals are made of such.
    return _summed(BINOMIAL, values.rsqrt().rsqrt_().mul_(SCALE).sub_(1)).mul_(POWER)
