"""Linear maps along rows or columns: blurs and resamplings that are separable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from blemish.ops.groups import in_groups

# On a CPU a map is applied to this many outputs at a time, each block from the inputs it needs; on a GPU all at once.
_BLOCK = 32
# How many images a GPU takes at a time, and how many of their values at most.
_IMAGES = 32
_VALUES = 2**24

_Product = Callable[[Tensor, Tensor, slice], Tensor]


@dataclass(frozen=True)
class LinearMap:
    """A matrix (1, 1, outputs, inputs), and where it is not zero."""

    matrix: Tensor
    blocks: tuple[tuple[slice, slice], ...]

    @classmethod
    def of(cls, matrix: Tensor, device: torch.device, dtype: torch.dtype) -> LinearMap:
        """Prepare a matrix for images of this device and type."""
        outputs = matrix.shape[-2]
        if device.type != "cpu":
            blocks = [(slice(0, outputs), slice(0, matrix.shape[-1]))]
        else:
            blocks = []
            for start in range(0, outputs, _BLOCK):
                rows = slice(start, min(start + _BLOCK, outputs))
                used = (matrix[..., rows, :] != 0).flatten(0, 2).any(0).nonzero().flatten()
                blocks.append((rows, slice(int(used[0]), int(used[-1]) + 1)))
        return cls(matrix.to(device, dtype), tuple(blocks))

    def down(self, images: Tensor) -> Tensor:
        """Apply to every column of (B, C, H, W)."""
        return self._applied(images, lambda matrix, part, inputs: matrix @ part[..., inputs, :], dim=-2)

    def across(self, images: Tensor) -> Tensor:
        """Apply to every row of (B, C, H, W)."""
        # Never one product over the rows of all images: its rounding could depend on how many there are.
        return self._applied(images, lambda matrix, part, inputs: part[..., inputs] @ matrix.transpose(-1, -2), dim=-1)

    def _applied(self, images: Tensor, product: _Product, *, dim: int) -> Tensor:
        if images.device.type != "cpu":
            inputs = self.blocks[0][1]
            count = max(1, min(_IMAGES, _VALUES // images[0].numel()))
            # Each group has memory of its own: which sums a library makes may depend on where its input begins.
            return in_groups(images, count, lambda part: product(self.matrix, part.clone(), inputs))
        parts = []
        for outputs, inputs in self.blocks:
            matrix = self.matrix[..., outputs, inputs]
            if outputs.stop - outputs.start < _BLOCK:
                # Of narrow products, the library rounds several images otherwise than one, and one that does not lie
                # at a border of memory otherwise than one that does: each as it would be alone.
                alone = [product(matrix, images[i : i + 1].clone(), inputs) for i in range(len(images))]
                parts.append(torch.cat(alone))
            else:
                parts.append(product(matrix, images, inputs))
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=dim)
