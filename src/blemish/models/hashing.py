"""Hashes of what models have learnt: the same on every device, in every process."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from blemish.core.errors import InputError
from blemish.core.reading import open_regular

DIGEST_SIZE = 16
_CHUNK = 2**22


def hash_state(state: Mapping[str, Any]) -> str:
    """BLAKE2b over the names, types, shapes and bytes of a state dict, in the order of the names.

    >>> hash_state({"b": torch.zeros(2), "a": torch.ones(1)}) == hash_state({"a": torch.ones(1), "b": torch.zeros(2)})
    True
    >>> hash_state({"a": torch.zeros(2)}) == hash_state({"a": torch.zeros(2, 1)})
    False
    """
    digest = hashlib.blake2b(digest_size=DIGEST_SIZE)
    for name in sorted(state):
        _feed(digest, name, state[name])
    return digest.hexdigest()


def hash_files(paths: Iterable[Path]) -> str:
    """BLAKE2b over the contents of files, one after the other."""
    digest = hashlib.blake2b(digest_size=DIGEST_SIZE)
    for path in paths:
        with open_regular(path) as stream:
            left = os.fstat(stream.fileno()).st_size
            digest.update(left.to_bytes(8, "little"))
            while chunk := stream.read(min(left, _CHUNK)):
                digest.update(chunk)
                left -= len(chunk)
    return digest.hexdigest()


def _feed(digest: hashlib.blake2b, name: str, value: Any) -> None:
    if not isinstance(value, Tensor):
        # Modules may keep plain settings in their state; text is all that can be relied on for them.
        digest.update(f"{name}\0{type(value).__name__}\0{value!r}\0".encode())
        return
    if value.is_meta or torch.nn.parameter.is_lazy(value):
        raise InputError(f"the weights {name!r} have no values yet; expected a module that is ready to be used")
    if value.is_quantized:
        scale = value.q_scale() if value.qscheme() == torch.per_tensor_affine else value.q_per_channel_scales().tolist()
        digest.update(f"{name}\0{scale}\0".encode())
        value = value.int_repr()
    digest.update(f"{name}\0{value.dtype}\0{tuple(value.shape)}\0".encode())
    if not value.numel():
        return
    dense = value.detach().to_dense() if value.layout != torch.strided else value.detach()
    plain = dense.cpu().resolve_conj().resolve_neg().contiguous().reshape(-1)
    digest.update(plain.view(torch.uint8).numpy())
