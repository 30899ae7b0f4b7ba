"""Small opaque shapes, drawn one over the other."""

from __future__ import annotations

from blemish.ops.compiled.jit import kernel


@kernel
def shapes(levels, rows, columns, masks, counts, colours, down, right):
    """Draw the first ``counts`` (B) shapes over levels (B, C, H, W), in place.

    Of each its place (B, N), the number of its mask and its colour (B, N, C). A mask's pixels are its entries of
    ``down`` and ``right``, of which those beyond any image come last.
    """
    channels, height, width = levels.shape[1:]
    for image in range(len(levels)):
        picture = levels[image]
        for number in range(counts[image]):
            mask, colour = masks[image, number], colours[image, number]
            top, left = rows[image, number], columns[image, number]
            for pixel in range(down.shape[1]):
                y, x = top + down[mask, pixel], left + right[mask, pixel]
                if y >= 0 and y < height and x >= 0 and x < width:
                    for channel in range(channels):
                        picture[channel, y, x] = colour[channel]
