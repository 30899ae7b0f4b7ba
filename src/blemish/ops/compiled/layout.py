"""Between pixels whose channels lie side by side and planes of channels, uint8."""

from __future__ import annotations

from blemish.ops.compiled.jit import kernel


@kernel
def to_planes(pixels, planes):
    """Colour pixels (N, 3) to planes (3, N)."""
    red, green, blue = planes[0], planes[1], planes[2]
    flat = pixels.reshape(pixels.size)
    for i in range(len(red)):
        red[i] = flat[3 * i]
        green[i] = flat[3 * i + 1]
        blue[i] = flat[3 * i + 2]


@kernel
def to_pixels(planes, pixels):
    """Planes (3, N) to colour pixels (N, 3)."""
    red, green, blue = planes[0], planes[1], planes[2]
    flat = pixels.reshape(pixels.size)
    for i in range(len(red)):
        flat[3 * i] = red[i]
        flat[3 * i + 1] = green[i]
        flat[3 * i + 2] = blue[i]
