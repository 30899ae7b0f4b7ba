"""Stimuli made of frequencies: low-pass, high-pass, phase noise and equal power."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import side_scale
from blemish.corruptions.draws import Field
from blemish.corruptions.human.published import (
    BACKGROUND,
    FADING,
    SEVERITIES,
    arrays,
    at_halves,
    on_gray,
    unit,
)
from blemish.corruptions.moves import A_LITTLE
from blemish.corruptions.severity import PUBLISHED_SIDE, Params, SeverityTable
from blemish.ops.cache import cached
from blemish.ops.filters import gaussian_blur
from blemish.ops.fourier import transformed
from blemish.ops.transfer import to_device


def _blurred(plain: Tensor, sigma: Tensor) -> Tensor:
    """A Gaussian blur of an image that lies on the screen's gray."""
    return gaussian_blur(plain - BACKGROUND, sigma, border="zeros").add(BACKGROUND)


def _low_pass(images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    sigma = params["sigma"] * side_scale(*images.shape[-2:])
    return on_gray(images, params, lambda plain: _blurred(plain, sigma))


def _high_pass(images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    """What the blur takes away, on the screen's gray. The blur is in pixels at any size: less would leave nothing."""

    def detail(plain: Tensor) -> Tensor:
        rest = plain - _blurred(plain, params["sigma"])
        # In double precision, because the order of a sum depends on the number of threads.
        mean = rest.mean((2, 3), keepdim=True, dtype=torch.float64)
        return rest.add_((BACKGROUND - mean).to(torch.float32))

    return on_gray(images, params, detail)


def _draw_turns(shape: Shape, params: Params, rng: CounterRng) -> Field:
    """For each frequency of the half plane a value in −1 … 1, opposite at opposite frequencies of its first column.

    0 for the mean, and where a frequency is its own opposite: in an even side's last row and column.
    """
    height, width = shape.height, shape.width
    field = rng.coarse_uniforms("turns", 1, height, width // 2 + 1).mul_(2).sub_(1)
    if height % 2 == 0:
        field[..., height // 2, :] = 0
    if width % 2 == 0:
        field[..., width // 2] = 0
    field[..., 0, 0] = 0
    pairs = (height - 1) // 2
    field[..., height - pairs :, 0] = -field[..., 1 : pairs + 1, 0].flip(-1)
    return Field(field)


def _phase_noise(images: Tensor, params: Params, draw: Field) -> Tensor:
    width = to_device(torch.deg2rad(params["degrees"]), images.device).view(-1, 1, 1, 1)
    turn = draw.field.to(torch.float64) * width

    def turned(plain: Tensor) -> Tensor:
        spectrum = transformed(plain.to(torch.float64), torch.fft.rfft2)
        spectrum *= torch.complex(turn.cos(), turn.sin())
        return transformed(spectrum, partial(torch.fft.irfft2, s=plain.shape[-2:]))

    return on_gray(images, params, turned)


@cached()
def _mean_amplitude(height: int, width: int, device: torch.device) -> Tensor:
    """The mean spectrum for images of this size, (H, W // 2 + 1): between the published frequencies, linearly.

    Frequencies count in waves per shorter side; beyond the published ones amplitudes fall with the frequency. Mean and
    contrast are those of the published spectrum, however long the image is.
    """
    known = arrays().amplitude.numpy()
    most = PUBLISHED_SIDE // 2
    # Rows from −112 to 112: the first and the last are the same.
    ordered = np.concatenate([known[most:], known[: most + 1]])
    side = min(height, width)
    down = np.fft.fftfreq(height, 1 / height) * (side / height)
    right = np.arange(width // 2 + 1) * (side / width)
    y, x = np.clip(down, -most, most), np.clip(right, 0, most)
    rows, columns = np.floor(y).astype(int).clip(max=most - 1), np.floor(x).astype(int).clip(max=most - 1)
    share_y, share_x = (y - rows)[:, None], x - columns
    upper, lower = (
        ordered[rows + most + i][:, columns] * (1 - share_x) + ordered[rows + most + i][:, columns + 1] * share_x
        for i in (0, 1)
    )
    amplitude = upper * (1 - share_y) + lower * share_y
    far, near = np.hypot(down[:, None], right), np.hypot(y[:, None], x)
    far[0, 0] = near[0, 0] = 1
    length = max(height, width) / side
    amplitude *= (near / far) * (side / PUBLISHED_SIDE) ** 2 * math.sqrt(length)
    amplitude[0, 0] *= math.sqrt(length)
    return to_device(torch.from_numpy(amplitude), device)


# Amplitudes below this, per pixel, are rounding errors: of an even image, they have no phase to keep.
_NO_PHASE = 1e-9


def _power_equalisation(images: Tensor, params: Params, draw: tuple[()]) -> Tensor:
    """The phases of the image and the mean amplitudes of many images."""
    height, width = images.shape[-2:]
    wanted = _mean_amplitude(height, width, images.device)

    def equalised(plain: Tensor) -> Tensor:
        spectrum = transformed(plain.to(torch.float64), torch.fft.rfft2)
        amplitude = spectrum.abs()
        real = amplitude > _NO_PHASE * (height * width)
        phase = torch.where(real, spectrum / amplitude.clamp(min=_NO_PHASE), 1)
        return transformed(phase.mul_(wanted), partial(torch.fft.irfft2, s=(height, width)))

    return on_gray(images, params, equalised)


low_pass = unit(
    name="human:low_pass",
    description="Blurs the gray image, on a gray ground.",
    table=SeverityTable.halves(sigma=at_halves(0, 1, 3, 5, 7, 10, 15, 40), opacity=FADING),
    apply=_low_pass,
    severities=SEVERITIES[7],
)

high_pass = unit(
    name="human:high_pass",
    description="Leaves only fine detail of the gray image.",
    # Published without a blur at severity 0, where nothing of this is seen.
    table=SeverityTable.halves(sigma=at_halves(3, 3, 1.5, 1, 0.7, 0.55, 0.45, 0.4), opacity=FADING),
    apply=_high_pass,
    severities=SEVERITIES[7],
)

phase_noise = unit(
    name="human:phase_noise",
    description="Turns the phases of the gray image's frequencies at random.",
    table=SeverityTable.halves(degrees=at_halves(0, 30, 60, 90, 120, 150, 180), opacity=FADING),
    draw=_draw_turns,
    apply=_phase_noise,
    moves=A_LITTLE,
    severities=SEVERITIES[6],
)

power_equalisation = unit(
    name="human:power_equalisation",
    description="Gives all frequencies of the gray image their mean strength over many images.",
    table=SeverityTable.linear(opacity=(0, 1)),
    apply=_power_equalisation,
    severities=SEVERITIES[1],
)
