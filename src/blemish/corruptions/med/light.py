"""MedMNIST-C's brightness, contrast, gamma and Gaussian blur, by the rules of the libraries it was made with."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from blemish.corruptions.base import Corruption, per_image
from blemish.corruptions.med.published import SOURCE, settings_of
from blemish.corruptions.severity import Params
from blemish.ops.colour import luma
from blemish.ops.filters import gaussian_blur as blurred
from blemish.ops.levels import truncated, unit_range
from blemish.ops.transfer import to_device


def _brightness(levels: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    return truncated(levels.to(torch.float32).mul_(per_image(params["factor"], levels)).clamp_(max=255))


def _contrast(levels: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    """Away from, or towards, one gray for the whole image: its mean, rounded."""
    gray = luma(levels) if levels.shape[1] == 3 else levels
    count = gray[0].numel()
    # In whole numbers, so that the order of the sum does not matter.
    total = gray.sum((1, 2, 3), keepdim=True, dtype=torch.int64)
    mean = torch.div(2 * total + count, 2 * count, rounding_mode="floor").to(torch.float32)
    out = levels.to(torch.float32).sub_(mean).mul_(per_image(params["factor"], levels)).add_(mean)
    return truncated(out.clamp_(0, 255))


def _gamma(levels: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    share = np.arange(256) / 255
    tables = np.stack([255.999 * share**gamma for gamma in params["gamma"].tolist()]).astype(np.uint8)
    # One table for all images, one after the other: level v of image b stands at 256 b + v.
    table = to_device(torch.from_numpy(tables).flatten(), levels.device)
    first = torch.arange(len(levels), device=levels.device, dtype=torch.int32).mul_(256).view(-1, 1, 1, 1)
    return table.index_select(0, (levels + first).flatten()).view(levels.shape)


def _gaussian_blur(levels: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    """A kernel of `size` taps, cut there whatever its width; between odd sizes the next larger one."""
    size = float(params["size"][0])
    sigma, radius = 0.15 * size + 0.35, np.ceil((size - 1) / 2)
    spread = torch.full((len(levels),), sigma, dtype=torch.float64)
    out = blurred(unit_range(levels), spread, truncate=float(radius) / sigma, border="reflect101")
    return out.mul(255).round_().clamp_(0, 255).to(torch.uint8)


def _unit(name: str, description: str, apply: object, **settings: tuple[str, float]) -> Corruption:
    return Corruption(
        name=f"med:{name}",
        family="med",
        description=description,
        table=settings_of(name, **settings),  # type: ignore[arg-type]
        apply=apply,  # type: ignore[arg-type]
        uint8_io=True,
        shared=tuple(parameter for parameter in settings if parameter == "size"),
        source=SOURCE,
    )


LIGHT: tuple[Corruption, ...] = (
    _unit("gaussian_blur", "Blurs with a Gaussian of few taps.", _gaussian_blur, size=("kernel_size", 1)),
    _unit("brightness_up", "Multiplies all values.", _brightness, factor=("factor", 1)),
    _unit("brightness_down", "Multiplies all values by less than 1.", _brightness, factor=("factor", 1)),
    _unit("contrast_up", "Moves values away from the image's mean gray.", _contrast, factor=("factor", 1)),
    _unit("contrast_down", "Moves values towards the image's mean gray.", _contrast, factor=("factor", 1)),
    _unit("gamma_corr_up", "Darkens the middle of the range by a power above 1.", _gamma, gamma=("gamma", 1)),
    _unit("gamma_corr_down", "Brightens the middle of the range by a power below 1.", _gamma, gamma=("gamma", 1)),
)
