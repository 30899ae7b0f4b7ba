"""Point spread functions of a lens with one aberration, by colour, as OpticsBench has them.

The authors publish kernels, and a generator that does not make them. These formulas do: their pixel pitch and the lens
under the aberration were found by fitting the kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from blemish.ops.cache import cached
from blemish.ops.fourier import transformed
from blemish.ops.splines import interpolating_matrix, spline_weights

_PUPIL = 128  # samples across the pupil's square
_PIXEL = 4.0  # µm
_F_NUMBER = 5.0
_REACH = 12  # of the published kernels, in pixels from the middle one

# Red, green and blue.
_WAVELENGTHS = (0.6563, 0.5876, 0.4861)  # µm

# The lens itself: waves of Z4, Z9 and Z16 for each colour, a lens that focuses colours at different distances.
_LENS = (
    (-0.326709, -0.088223, 0.061867),
    (-0.112732, -0.095927, 0.069494),
    (0.417719, -0.108249, 0.085123),
)

_Polynomial = Callable[[Tensor, Tensor], Tensor]

FRINGE: dict[int, _Polynomial] = {
    4: lambda r, _: 2 * r**2 - 1,
    5: lambda r, phi: r**2 * (2 * phi).cos(),
    6: lambda r, phi: r**2 * (2 * phi).sin(),
    7: lambda r, phi: (3 * r**2 - 2) * r * phi.cos(),
    8: lambda r, phi: (3 * r**2 - 2) * r * phi.sin(),
    9: lambda r, _: 6 * r**4 - 6 * r**2 + 1,
    10: lambda r, phi: r**3 * (3 * phi).cos(),
    11: lambda r, phi: r**3 * (3 * phi).sin(),
    16: lambda r, _: 20 * r**6 - 30 * r**4 + 12 * r**2 - 1,
}
"""Zernike's polynomials by their Fringe number, not normalised, of radius and angle."""


def _pupil() -> tuple[Tensor, Tensor, Tensor]:
    """Radius, angle, and 1 where light passes, else 0. The radius is taken half a sample off the angle, as it was."""
    axis = torch.arange(_PUPIL, dtype=torch.float64) - _PUPIL // 2
    radius = ((axis + 0.5) ** 2 + ((axis + 0.5) ** 2)[:, None]).sqrt() / (_PUPIL // 2)
    angle = torch.atan2(axis[:, None].expand(_PUPIL, _PUPIL), axis.expand(_PUPIL, _PUPIL))
    return radius, angle, (radius <= 63 / 64).to(torch.float64)


@cached()
def _resampling(colour: int) -> Tensor:
    """From samples of the intensity to pixels, (25, 128): a cubic spline through the samples, read at the pixels.

    Nothing is averaged over a pixel's area. The middle lies up to 0.4 pixels off, as it does in the published kernels.
    """
    count = round(_PUPIL * _WAVELENGTHS[colour] * _F_NUMBER / _PIXEL)
    first = round(count / 2) - _REACH
    position = (torch.arange(first, first + 2 * _REACH + 1, dtype=torch.float64) + 0.5) * (_PUPIL / count) - 0.5
    below = position.floor()
    rows = torch.zeros(len(position), _PUPIL, dtype=torch.float64)
    for step, weight in enumerate(spline_weights(position - below)):
        rows.scatter_add_(1, (below[:, None] + (step - 1)).to(torch.int64), weight[:, None])
    return rows @ interpolating_matrix(_PUPIL)


def _published(fringe: int, waves: float, lens: float, colours: tuple[int, int, int]) -> Tensor:
    """Kernels of 25 × 25 for three colours, float64, each summing to 1."""
    radius, angle, opening = _pupil()
    fields = []
    for colour in colours:
        wavefront = waves * FRINGE[fringe](radius, angle)
        for number, share in zip((4, 9, 16), _LENS[colour], strict=True):
            wavefront = wavefront + lens * share * FRINGE[number](radius, angle)
        phase = -2 * math.pi * wavefront
        fields.append(torch.complex(opening * phase.cos(), opening * phase.sin()))
    intensity = transformed(torch.stack(fields), torch.fft.fft2).abs().square()
    shifted = torch.fft.fftshift(intensity, dim=(-2, -1))
    kernels = []
    for colour, plane in zip(colours, shifted, strict=True):
        to_pixels = _resampling(colour)
        kernel = (to_pixels @ plane @ to_pixels.T).abs()
        kernels.append(kernel / kernel.sum())
    return torch.stack(kernels)


def _area_map(scale: float) -> Tensor:
    """From the published pixels to those of an image `scale` times as large: how much of each lies in which."""
    reach = math.ceil((_REACH + 0.5) * scale - 0.5)
    new = torch.arange(-reach, reach + 1, dtype=torch.float64)[:, None]
    old = torch.arange(-_REACH, _REACH + 1, dtype=torch.float64)
    low, high = torch.maximum((new - 0.5) / scale, old - 0.5), torch.minimum((new + 0.5) / scale, old + 0.5)
    return (high - low).clamp(min=0)


@cached()
def point_spread(fringe: int, waves: float, lens: float, scale: float, *, magenta: bool) -> Tensor:
    """The kernels of red, green and blue, (3, n, n) float32, for an aberration of so many waves.

    `lens` is how much of the lens there is: of its own errors, and of the image seen through it beside the sharp one.
    For an image `scale` times as large as the published ones, the kernels are, too. With `magenta` errors of the lens
    have the other sign, and red is treated as blue: the authors' second set.
    """
    colours = (2, 1, 2) if magenta else (0, 1, 2)
    kernels = _published(fringe, waves, -lens if magenta else lens, colours)
    to_size = _area_map(scale)
    kernels = (to_size @ kernels @ to_size.T) * lens
    middle = kernels.shape[-1] // 2
    kernels[:, middle, middle] += 1 - lens
    return kernels.to(torch.float32)
