"""What the distortions of LAION-C share: their pixel sizes are those of 224 pixels."""

from __future__ import annotations

from torch import Tensor

from blemish.corruptions.base import side_scale

SOURCE = "LAION-C (Li et al., ICML 2025)"


def pixels(published: float, images: Tensor) -> int:
    """A length that was published for images of 224 pixels, in whole pixels of these images; at least 1."""
    return max(1, round(published * side_scale(*images.shape[-2:])))
