"""Tensors as the images that plans are made of."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from blemish.data.images import DIGEST_BYTES, Images, image_digest


def images_of(pixels: Tensor, labels: Tensor, ids: Tensor | None = None) -> Images:
    """Images (N, C, H, W) of uint8, named by their numbers."""
    count, size = len(pixels), pixels[0].numel()
    levels = pixels.contiguous().numpy()
    return Images(
        name="tensors",
        names=[str(number) for number in range(count)],
        ids=np.arange(count) if ids is None else ids.numpy(),
        labels=labels.numpy(),
        pixels=levels.reshape(-1),
        starts=np.arange(count) * size,
        shapes=np.array([pixels.shape[1:]] * count),
        digests=np.frombuffer(b"".join(map(image_digest, levels)), dtype=np.uint8).reshape(count, DIGEST_BYTES),
    )
