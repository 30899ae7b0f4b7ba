"""What may be corrupted, and how strongly: checked once, at the call."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from blemish.core.errors import InputError, brief
from blemish.core.types import check_dense
from blemish.corruptions.severity import MAX_SEVERITY, is_truth, severity_text

MIN_SIDE = 8

# Severities below this count as 0: parameters such as photons per image would leave the range of floats.
_NEGLIGIBLE = 1e-6


def check_images(images: Tensor) -> None:
    """Refuse anything but a batch of images that can be corrupted."""
    check_dense(images, "images")
    if images.ndim != 4:
        raise InputError(f"images of shape {tuple(images.shape)}; expected (batch, channels, height, width)")
    batch, channels, height, width = images.shape
    if batch == 0:
        raise InputError("an empty batch; expected at least one image")
    if channels not in (1, 3):
        raise InputError(f"images with {channels} channels (shape {tuple(images.shape)}); expected 1 or 3")
    if min(height, width) < MIN_SIDE:
        raise InputError(f"images of {height}×{width} pixels; expected at least {MIN_SIDE}×{MIN_SIDE}")
    if images.dtype == torch.uint8:
        return
    if not images.dtype.is_floating_point:
        raise InputError(f"images of type {images.dtype}; expected uint8, or float in [0, 1]")
    low, high = (float(v) for v in images.detach().aminmax())
    if not (low >= 0 and high <= 1):
        values = "not-a-number values" if low != low or high != high else f"values in [{low:g}, {high:g}]"
        hint = "normalise afterwards" if low < 0 else "divide 0–255 levels by 255"
        raise InputError(f"float images with {values}; expected all in [0, 1] ({hint})")


def plain_severity(severity: object) -> float | None:
    """The severity of all images where it is one plain number in range; what else it may be takes longer to check."""
    if type(severity) not in (int, float) or not 0 <= severity <= MAX_SEVERITY:  # type: ignore[operator]
        return None
    return float(severity) if severity >= _NEGLIGIBLE else 0.0  # type: ignore[arg-type,operator]


def as_severities(severity: float | Sequence[float] | Tensor, count: int) -> Tensor:
    """A severity for each of ``count`` images, float64 on the CPU, from one for all or one for each; checked."""
    if isinstance(severity, Tensor):
        check_dense(severity, "severities")
    if _misleading(severity):
        raise _no_severity(severity)
    try:
        levels = torch.as_tensor(severity, dtype=torch.float64, device="cpu").detach()
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise _no_severity(severity) from error
    if levels.ndim == 0:
        levels = levels.expand(count)
    if levels.shape != (count,):
        raise InputError(f"severities of shape {tuple(levels.shape)} for {count} images; expected one per image")
    wrong = ~((levels >= 0) & (levels <= MAX_SEVERITY))
    if bool(wrong.any()):
        first = severity_text(levels[wrong][0].item())
        raise InputError(f"severity {first}; expected a number in 0 … {MAX_SEVERITY}")
    return torch.where(levels < _NEGLIGIBLE, 0.0, levels)


def _no_severity(severity: object) -> InputError:
    return InputError(f"severity {brief(severity)}; expected a number in 0 … {MAX_SEVERITY}, or one per image")


def _misleading(severity: float | Sequence[float] | Tensor) -> bool:
    """Whether there are truths or complex numbers: torch would take true for 1 and drop the imaginary part."""
    if isinstance(severity, Tensor | np.ndarray):
        return is_truth(severity) or torch.as_tensor(severity).is_complex()
    return any(map(is_truth, severity if isinstance(severity, Sequence) else [severity]))
