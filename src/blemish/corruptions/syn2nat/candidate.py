"""What a Syn2Nat candidate is: a corruption whose severity 5 is the published setting."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption, no_draw
from blemish.corruptions.severity import MAX_SEVERITY, Params, SeverityTable

__all__ = ["HALF_LEVEL", "candidate", "linear_table", "span"]

# The reference rounds where the base truncates.
HALF_LEVEL = 0.5 / 255


def linear_table(**parameters: tuple[float, float]) -> SeverityTable:
    """A table from the identity's value of each parameter at severity 0 to the published one at 5, linearly."""
    shares = [severity / MAX_SEVERITY for severity in range(MAX_SEVERITY + 1)]
    rows = tuple(tuple((1 - share) * a + share * b for a, b in parameters.values()) for share in shares)
    return SeverityTable(tuple(parameters), {"any": rows}, {"any": 224})


def span(rank: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The value at a rank in 0 … 1 of a range."""
    return low + rank * (high - low)


def candidate(
    name: str,
    description: str,
    table: SeverityTable,
    apply: Callable[[Tensor, Params, Any], Tensor],
    draw: Callable[[Shape, Params, CounterRng], Any] = no_draw,
    *,
    only_severity: float | None = None,
    uint8_io: bool = False,
) -> Corruption:
    """A Syn2Nat candidate."""
    return Corruption(
        f"syn2nat:{name}",
        "syn2nat",
        description,
        table,
        apply=apply,
        draw=draw,
        only_severity=only_severity,
        uint8_io=uint8_io,
    )
