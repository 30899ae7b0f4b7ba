"""Work of libraries that choose an order of sums by the number of rows: always done on the same number at once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor


def in_groups(rows: Tensor, size: int, function: Callable[[Tensor], Tensor]) -> Tensor:
    """A function of rows, from groups of exactly ``size`` of them; zeros make up the last group."""
    missing = -len(rows) % size
    whole = torch.cat([rows, rows.new_zeros((missing, *rows.shape[1:]))]) if missing else rows
    groups = [function(group) for group in torch.split(whole, size)]
    return (groups[0] if len(groups) == 1 else torch.cat(groups))[: len(rows)]
