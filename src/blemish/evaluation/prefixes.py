"""Chains that begin alike: what their first steps make of a batch is kept for the conditions that follow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from blemish.benchmarks.condition import Condition
from blemish.corruptions.severity import MAX_SEVERITY
from blemish.data.images import Images

_BYTES = 2**31


@dataclass
class Prefixes:
    """The batches of one set of images under the first steps of a condition, while others to come share these steps."""

    conditions: Sequence[Condition]
    _current: tuple[str, int] | None = None
    _batches: dict[tuple[int, int, int], Tensor] = field(default_factory=dict)
    _bytes: int = 0

    def __post_init__(self) -> None:
        """Count who shares what."""
        self._left = Counter(str(first) for c in self.conditions if (first := _first_steps(c)) is not None)

    def begin(self, condition: Condition, images: Images) -> None:
        """Forget what the coming condition does not share."""
        first = _first_steps(condition)
        wanted = None if first is None else (str(first), id(images.pixels))
        if wanted != self._current:
            self._current, self._bytes = wanted, 0
            self._batches.clear()
        if first is not None:
            self._left[str(first)] -= 1

    def applied(
        self, condition: Condition, rows: Sequence[int], apply: Callable[[Condition, Tensor], Tensor], pixels: Tensor
    ) -> Tensor:
        """A batch under all steps; ``apply`` makes what is not kept."""
        first = _first_steps(condition)
        if first is None:
            return apply(condition, pixels)
        key = (rows[0], rows[-1], len(rows))
        if key in self._batches:
            before = self._batches[key]
        elif self._left[str(first)] <= 0:
            return apply(condition, pixels)
        else:
            before = apply(first, pixels)
            if self._bytes + before.numel() <= _room(before.device):
                self._batches[key] = before
                self._bytes += before.numel()
        return apply(Condition(condition.steps[-1:]), before)


def _first_steps(condition: Condition) -> Condition | None:
    """All steps but the last, where applying these and then the last is the same as applying the chain."""
    if len(condition.steps) < 2 or len({*condition.names()}) < len(condition.steps):
        return None  # the same corruption twice in a chain does not draw the same twice
    # A chain scales its severities, which may round them.
    exact = all(MAX_SEVERITY * (step.low / MAX_SEVERITY) == step.low for step in condition.steps)
    return Condition(condition.steps[:-1]) if exact else None


def _room(device: torch.device) -> int:
    """Bytes that may be filled with images to be used again: a quarter of what a GPU has free, or 2 GB."""
    return _BYTES if device.type != "cuda" else max(_BYTES, torch.cuda.mem_get_info(device)[0] // 4)
