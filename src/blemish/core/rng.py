"""Counter-based randomness in plain torch integer operations.

Every word is a pure function of ``(seed, image id, stream name, index)``: nothing is advanced, so neither the order
of images nor the way they are batched can change a draw, and CPU and GPU give the same words bit for bit.
"""

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.core.errors import InputError, brief
from blemish.core.types import check_dense
from blemish.core.words import FEW, expanded, on_device, salt, stream_keys
from blemish.ops.compiled import compiled
from blemish.ops.fused import fused

CPU = torch.device("cpu")
_TABLE_BITS = 16


def hash_id(name: str) -> int:
    """A stable signed 64-bit image id for a name, for sources whose images have names instead of numbers.

    >>> hash_id("n01440764/ILSVRC2012_val_00000293.JPEG")
    6470457453692079422
    """
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little", signed=True)


def as_ids(ids: Iterable[int] | Tensor) -> Tensor:
    """Image ids as a CPU int64 tensor; unsigned 64-bit ids become their signed twins.

    Others are refused: cut to 64 bits or to whole numbers, two images could get the same draws.
    """
    if isinstance(ids, Tensor):
        check_dense(ids, "ids")
        if ids.dtype == torch.int64 and ids.device.type == "cpu" and ids.is_contiguous():
            return ids
        if ids.is_floating_point() or ids.is_complex() or ids.dtype == torch.bool:
            raise InputError(f"ids of type {ids.dtype}; expected whole numbers")
        return ids.detach().to("cpu", torch.int64).contiguous()
    return torch.from_numpy(
        np.array([_signed(i) for i in ids], dtype=np.int64)
    )  # torch.tensor takes four times as long


def image_ids(ids: Iterable[int] | Tensor | None, count: int) -> Tensor:
    """One id for each of ``count`` images, 0, 1, 2, … where none are given; see `as_ids`."""
    numbers = torch.arange(count, device="cpu") if ids is None else as_ids(ids)
    if numbers.shape[0] != count:
        raise InputError(f"{len(numbers)} ids for {count} images; expected one id per image")
    return numbers


def _signed(number: int) -> int:
    whole = _whole(number, "id")
    return whole - 2**64 if whole >= 2**63 else whole


def check_seed(seed: int, *, least: int = -(2**63), most: int = 2**64 - 1) -> int:
    """The seed as an int; anything but a whole number of 64 bits, or within narrower bounds, is refused."""
    whole = _whole(seed, "seed")
    if not least <= whole <= most:
        raise InputError(f"seed {whole}; expected a whole number in {least} … {most}")
    return whole


def _whole(number: int, what: str) -> int:
    try:
        whole = operator.index(number)
    except TypeError:
        raise InputError(f"{what} {brief(number)}; expected a whole number") from None
    if isinstance(number, bool):
        raise InputError(f"{what} {number!r}; expected a whole number")
    if not -(2**63) <= whole < 2**64:
        raise InputError(f"{what} {brief(whole)}; expected a number of 64 bits, in −2⁶³ … 2⁶⁴ − 1")
    return whole


@lru_cache(maxsize=16)
def _normal_table(device: str) -> Tensor:
    """Standard normal quantiles: the mean of the normal law inside each of 2¹⁶ cells of equal probability.

    Cell means, rescaled to unit variance, keep the first four moments to within 2e-4 of the normal law's.
    """
    cells = 2**_TABLE_BITS
    edges = torch.special.ndtri(torch.arange(1, cells, dtype=torch.float64) / cells)
    density = torch.exp(-0.5 * edges**2) / math.sqrt(2 * math.pi)
    zero = torch.zeros(1, dtype=torch.float64)
    padded = torch.cat([zero, density, zero])
    table = (padded[:-1] - padded[1:]) * cells
    normalised: Tensor = table / table.square().mean().sqrt()
    return normalised.to(torch.float32).to(device)


@lru_cache(maxsize=1)
def normal_table() -> NDArray[np.float32]:
    """The table that 16-bit words pick normal values from."""
    return _normal_table("cpu").numpy()


@dataclass(frozen=True)
class CounterRng:
    """Named streams of random values for a batch of images.

    ``CounterRng(seed, ids, scope)`` holds no state. Each method takes the name of a stream and the shape of one image's
    share and returns a tensor with the batch in front. Two different names give independent values; the same name
    always gives the same ones.
    """

    seed: int
    ids: Tensor
    scope: str = ""
    device: torch.device = CPU

    def __post_init__(self) -> None:
        """Refuse seeds that are none."""
        check_seed(self.seed)

    def scoped(self, scope: str) -> CounterRng:
        """The streams of another scope."""
        return replace(self, scope=scope)

    def on_cpu(self) -> CounterRng:
        """The same values as CPU tensors, for the few numbers per image that steer the work."""
        return self if self.device.type == "cpu" else replace(self, device=CPU)

    def keys(self, name: str) -> NDArray[np.int32]:
        """What the words of a stream are made from: four words per image, (4, B)."""
        return stream_keys(self._numbers, self._stream(name))

    @cached_property
    def _numbers(self) -> NDArray[np.int64]:
        return self.ids.numpy()

    def _stream(self, name: str) -> str:
        return f"{self.seed}/{self.scope}/{name}"

    def raw(self, name: str, *shape: int) -> Tensor:
        """Uniform 32-bit words as int32."""
        return expanded(self.keys(name), math.prod(shape), self.device).reshape(len(self.ids), *shape)

    def _by_kernels(self, kind: str, name: str, shape: tuple[int, ...], *settings: Any) -> Tensor | None:
        """Values by compiled kernels, where there are any."""
        if self.device.type != "cpu":
            return None
        count, images = math.prod(shape), self.ids.shape[0]
        kernels = compiled("words", worthwhile=images * count > FEW)
        if kernels is None:
            return None
        make = getattr(kernels, kind)
        values = make(salt(self._stream(name)), self._numbers, count, *settings)
        return torch.from_numpy(values if len(shape) == 1 else values.reshape(images, *shape))

    def _coarse(self, name: str, shape: tuple[int, ...], symmetric: bool) -> Tensor | None:
        """By kernels, where there are any."""
        there = fused("words", self.device)
        if there is None:
            return self._by_kernels("coarse_uniforms", name, shape, symmetric)
        values = there.coarse_uniforms(on_device(self.keys(name), self.device), math.prod(shape), symmetric)
        made: Tensor = values.view(len(self.ids), *shape)
        return made

    def _halves(self, name: str, shape: tuple[int, ...]) -> Tensor:
        count = math.prod(shape)
        words = self.raw(name, -(-count // 2))
        return words.view(torch.uint16)[:, :count].reshape(len(self.ids), *shape)

    def _are_few(self, words: Tensor) -> bool:
        """Whether NumPy, which has the same operators, begins sooner than torch has done."""
        return self.device.type == "cpu" and words.numel() <= FEW

    def uniforms(self, name: str, *shape: int) -> Tensor:
        """Float32 strictly inside (0, 1), 23 random bits each."""
        made = self._by_kernels("uniforms", name, shape)
        if made is not None:
            return made
        words = self.raw(name, *shape)
        if self._are_few(words):
            few = (words.numpy() >> 9).astype(np.float32)
            few *= np.float32(2.0**-23)
            few += np.float32(0.5 + 2.0**-24)
            return torch.from_numpy(few)
        return (words >> 9).to(torch.float32).mul_(2.0**-23).add_(0.5 + 2.0**-24)

    def coarse_uniforms(self, name: str, *shape: int) -> Tensor:
        """Float32 strictly inside (0, 1), 16 random bits each: enough for a field over pixels, at half the cost."""
        made = self._coarse(name, shape, False)
        if made is not None:
            return made
        return self._halves(name, shape).to(torch.float32).add_(0.5).mul_(2.0**-16)

    def symmetric_uniforms(self, name: str, *shape: int) -> Tensor:
        """Float32 strictly inside (−1, 1), 16 random bits each."""
        made = self._coarse(name, shape, True)
        if made is not None:
            return made
        return self.coarse_uniforms(name, *shape).mul_(2).sub_(1)

    def normals(self, name: str, *shape: int) -> Tensor:
        """Standard normal float32, bit-identical on every device."""
        made = self._by_kernels("normals", name, shape, normal_table()) if self.device.type == "cpu" else None
        if made is not None:
            return made
        table = _normal_table(str(self.device))
        there = fused("words", self.device)
        if there is not None:
            drawn: Tensor = there.normals(on_device(self.keys(name), self.device), math.prod(shape), table)
            return drawn.view(len(self.ids), *shape)
        index = self._halves(name, shape).to(torch.int32)
        return table.index_select(0, index.flatten()).view(index.shape)

    def integers(self, name: str, *shape: int, high: int) -> Tensor:
        """Int64 uniform on 0 … high − 1."""
        made = self._by_kernels("integers", name, shape, high)
        if made is not None:
            return made
        words = self.raw(name, *shape)
        if self._are_few(words):
            return torch.from_numpy((words.numpy().astype(np.int64) & 0xFFFFFFFF) * high >> 32)
        return (words.to(torch.int64) & 0xFFFFFFFF) * high >> 32

    def permutations(self, name: str, length: int) -> Tensor:
        """A uniform permutation of 0 … length − 1 per image, int64."""
        return self.raw(name, length).sort(dim=1, stable=True).indices
