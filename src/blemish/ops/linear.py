"""Linear maps along rows or columns, with a matrix per image: blurs and resamplings that are separable."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

__all__ = ["LinearMap"]

# On a CPU a map is applied to this many outputs at a time, each block from the inputs it needs; on a GPU all at once.
# Always to so many, the last block filled up with zeros: of narrow products, the library rounds one image otherwise
# than several.
_BLOCK = 32


@dataclass(frozen=True)
class LinearMap:
    """Matrices (B, 1, rows, inputs), or (1, 1, rows, inputs) for all images, and where they are not zero.

    Rows after the first ``outputs`` only fill up the last block.
    """

    matrix: Tensor
    outputs: int
    blocks: tuple[tuple[slice, slice], ...]

    @classmethod
    def of(cls, matrix: Tensor, device: torch.device, dtype: torch.dtype) -> LinearMap:
        """Prepare a CPU matrix for images of this device and type."""
        outputs = matrix.shape[-2]
        if device.type != "cpu":
            blocks = [(slice(0, outputs), slice(0, matrix.shape[-1]))]
        else:
            blocks = []
            matrix = F.pad(matrix, (0, 0, 0, -outputs % _BLOCK))
            for start in range(0, outputs, _BLOCK):
                rows = slice(start, start + _BLOCK)
                used = (matrix[..., rows, :] != 0).flatten(0, 2).any(0).nonzero().flatten()
                blocks.append((rows, slice(int(used[0]), int(used[-1]) + 1)))
        return cls(matrix.to(device, dtype), outputs, tuple(blocks))

    def down(self, images: Tensor) -> Tensor:
        """Apply to every column of (B, C, H, W)."""
        parts = [self.matrix[..., rows, inputs] @ images[..., inputs, :] for rows, inputs in self.blocks]
        whole = parts[0] if len(parts) == 1 else torch.cat(parts, dim=-2)
        return whole[..., : self.outputs, :]

    def across(self, images: Tensor) -> Tensor:
        """Apply to every row of (B, C, H, W)."""
        # Never one product over the rows of all images: its rounding could depend on how many there are.
        matrix = self.matrix.transpose(-1, -2)
        parts = [images[..., inputs] @ matrix[..., inputs, rows] for rows, inputs in self.blocks]
        whole = parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)
        return whole[..., : self.outputs]
