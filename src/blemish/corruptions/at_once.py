"""Corruptions from levels to levels at once, by compiled kernels on a CPU and by fused ones on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.corruptions.precision import cpu_by_default
from blemish.ops.compiled.threads import together
from blemish.ops.levels import as_levels, empty_like, unit_range
from blemish.ops.transfer import to_device


def as_planes(levels: Any) -> Any:
    """Images (B, C, H, W), an array or a tensor, as (B, C, pixels), the same memory."""
    return levels.reshape(*levels.shape[:2], -1)


def alike(values: Tensor, levels: Any) -> Any:
    """Values as compiled kernels take them, an array, or as fused ones do, a tensor, like the levels beside them."""
    return values if isinstance(levels, Tensor) else values.numpy()


Numbers = Mapping[str, NDArray[np.float64]]
"""Parameter name to one value per image."""


def for_each(values: Mapping[str, float], count: int) -> dict[str, NDArray[np.float64]]:
    """The same numbers for each of ``count`` images."""
    columns = {name: np.empty(count) for name in values}
    for name, value in values.items():
        columns[name].fill(value)  # np.full takes twice as long
    return columns


def _always(params: Numbers, height: int, width: int) -> bool:
    return True


class AtOnce(NamedTuple):
    """The same pixels by kernels that go from levels to levels, without images of floats in between.

    ``kernels`` names their module, of `blemish.ops.compiled` for a CPU and of `blemish.ops.fused` for a GPU; one of
    them may be missing. ``make`` is given it, with levels and where the result goes, both uint8 (B, C, H, W) in the
    order of their memory, NumPy's arrays on a CPU and tensors on a GPU; one parameter value per image, and the random
    streams. ``suits`` says for which parameters and sizes. Of torch's settings only the default device is the CPU
    there: no product of matrices, no gradients. Where it ``draws_little``, a few numbers for each image, it is called
    once for a batch, and threads share its kernels, which are `shareable`. A corruption fills in ``instead_of``.
    """

    kernels: str
    make: Callable[[Any, Any, Any, Numbers, CounterRng], None]
    suits: Callable[[Numbers, int, int], bool] = _always
    draws_little: bool = False
    instead_of: tuple[Any, ...] | None = None


def make_parts(
    at_once: AtOnce,
    kernels: Any,
    images: Tensor,
    out: Tensor,
    params: Numbers,
    parts: Sequence[slice | Tensor],
    rng: CounterRng,
    *,
    arrays: bool,
) -> None:
    """Fill in some images of ``out``: a part for each thread, where kernels take arrays, or one part after another."""
    direct = images.dtype == torch.uint8 and images.is_contiguous()
    levels = (images.detach() if images.requires_grad else images) if direct else as_levels(images)
    made = out if direct else empty_like(levels)
    source, target = (levels.numpy(), made.numpy()) if arrays else (levels, made)

    def work(rows: slice | Tensor) -> None:
        own = {name: values[rows if isinstance(rows, slice) else rows.numpy()] for name, values in params.items()}
        index: Any = rows
        if isinstance(rows, Tensor):
            index = rows.numpy() if arrays else to_device(rows, images.device)
        result = target[index]  # of a slice, the very memory
        at_once.make(kernels, source[index], result, own, replace(rng, ids=rng.ids[rows]))
        if isinstance(rows, Tensor):
            target[index] = result

    with cpu_by_default():
        if len(parts) == 1 and parts[0] == slice(0, images.shape[0]):
            at_once.make(kernels, source, target, params, rng)
        elif arrays:
            together([partial(work, rows) for rows in parts])
        else:
            for rows in parts:
                work(rows)
    if not direct:
        for rows in parts:
            result = made[rows]
            out[rows] = result if out.dtype == torch.uint8 else unit_range(result).to(out.dtype)
