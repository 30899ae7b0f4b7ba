"""What becomes of a quantity that is the better the larger it is, such as AP or mIoU, under corruptions.

With P(c, s) for the quantity under corruption c at severity s, and D = 1 − P:

- mPC, the mean of P over severities and then corruptions, and rPC = mPC / P(clean)
  (Michaelis et al. 2019, arXiv 1907.07484);
- CD = Σ_s D(c, s) / Σ_s D(c, s) of a chosen reference model, and rCD, the same of D − D(clean)
  (Kamann and Rother, CVPR 2020 and IJCV 2021). Their means over corruptions are mCD and mrCD.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from blemish.benchmarks.condition import CLEAN, Condition
from blemish.core.errors import InputError, about
from blemish.metrics.formulas import Array, corruption_error, relative_corruption_error, robustness_score
from blemish.metrics.maker import Function, Maker, mean_of
from blemish.metrics.quantities import Quantity
from blemish.metrics.table import Means


def add_quantities(
    maker: Maker,
    quantities: Sequence[Quantity],
    conditions: Sequence[Condition],
    family_of: Callable[[Condition], str],
) -> None:
    """Each quantity of all conditions, corruptions, families and of the benchmark; rPC, CD and rCD of the first."""
    main, corrupted = quantities[0], [condition for condition in conditions if condition != CLEAN]
    for condition in conditions:
        for quantity in quantities:
            maker.add(
                quantity.name, "condition", str(condition), [condition], partial(_one, maker, quantity, condition)
            )
    for quantity in quantities:
        maker.add_by_corruption([quantity.name], corrupted, family_of, partial(_mean, maker, quantity))
    maker.add_by_corruption(["rpc", "cd", "rcd"], corrupted, family_of, partial(_ratio, maker, main))


def _one(maker: Maker, quantity: Quantity, condition: Condition) -> Function:
    column = maker.column(quantity.kind, condition)
    return lambda means: quantity.of(column(means))


def _mean(maker: Maker, quantity: Quantity, name: str, group: Sequence[Condition]) -> Function:
    del name
    return mean_of([_one(maker, quantity, condition) for condition in group])


def _ratio(maker: Maker, quantity: Quantity, name: str, group: Sequence[Condition]) -> Function:
    values = [_one(maker, quantity, condition) for condition in group]
    if name == "rpc":
        mean, clean = mean_of(values), _one(maker, quantity, CLEAN)
        return lambda means: robustness_score(_not_negative(mean(means)), _not_negative(clean(means)))
    baseline = maker.base()
    baseline.require(quantity=quantity.name)
    base = baseline.errors_of(group)

    def lost(means: Means) -> Array:
        return 1 - np.stack([value(means) for value in values], axis=-1)

    with about(group[0].group):
        if name == "cd":
            corruption_error(np.zeros(len(group)), base)  # a baseline that cannot be divided by is refused here
            return lambda means: corruption_error(_as_shares(lost(means)), base)
        start, own = baseline.clean_error(), _one(maker, quantity, CLEAN)
        relative_corruption_error(np.zeros(len(group)), 0.0, base, baseline_clean=start)
    return lambda means: relative_corruption_error(_as_shares(lost(means)), 1 - own(means), base, baseline_clean=start)


def _not_negative(values: Array) -> Array:
    if (values < 0).any():
        raise InputError("scores below 0, of which no share can be kept")
    return values


def _as_shares(lost: Array) -> Array:
    if ((lost < 0) | (lost > 1)).any():
        raise InputError("scores outside 0 … 1 have no loss 1 − score that could be divided by a baseline's")
    return lost
