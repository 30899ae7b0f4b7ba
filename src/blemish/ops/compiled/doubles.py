"""Images taken from elsewhere in double precision: bilinear mixes, cubic splines, lenses and cells.

Every product and sum is rounded once, as torch rounds its doubles.
"""

from __future__ import annotations

import numpy as np

from blemish.ops.compiled.jit import kernel, part


@kernel
def bilinear_at(images, rows, columns, out):
    """Images (B, C, H, W) at positions (B, h, w), black outside, as float64 (B, C, h, w)."""
    for image in range(len(images)):
        for i in range(rows.shape[1]):
            bilinear_row(images[image], rows[image, i], columns[image, i], out[image, :, i])


@part
def bilinear_row(image, rows, columns, out):
    """All channels of an image (C, H, W) at positions (w,), black outside, as float64 (C, w)."""
    channels, height, width = image.shape
    for j in range(len(rows)):
        y, x = rows[j], columns[j]
        top, left = np.floor(y), np.floor(x)
        down, right = y - top, x - left
        up, aside = 1 - down, 1 - right
        if 0 <= top < height - 1 and 0 <= left < width - 1:
            row, column = int(top), int(left)
            for channel in range(channels):
                plane = image[channel]
                upper = plane[row, column] * aside + plane[row, column + 1] * right
                lower = plane[row + 1, column] * aside + plane[row + 1, column + 1] * right
                out[channel, j] = upper * up + lower * down
        else:
            for channel in range(channels):
                plane = image[channel]
                upper = _seen(plane, top, left) * aside + _seen(plane, top, left + 1) * right
                lower = _seen(plane, top + 1, left) * aside + _seen(plane, top + 1, left + 1) * right
                out[channel, j] = upper * up + lower * down


@part
def _seen(plane, row, column):
    """A pixel; black outside the image."""
    if 0 <= row < plane.shape[0] and 0 <= column < plane.shape[1]:
        return np.float64(plane[int(row), int(column)])
    return 0.0


@kernel
def spline_levels(levels, row_places, row_weights, column_places, column_weights, out):
    """Sums over four rows and four columns, rounded: levels (B, C, H, W), places and weights (B, 4, C, H or W)."""
    batch, channels, height, width = levels.shape
    weighted, total = np.empty(width), np.empty(width)
    for image in range(batch):
        for channel in range(channels):
            for y in range(height):
                total[:] = 0
                for tap in range(4):
                    line = levels[image, channel, row_places[image, tap, channel, y]]
                    share = row_weights[image, tap, channel, y]
                    for x in range(width):
                        weighted[x] = line[x] * share
                    for other in range(4):
                        places = column_places[image, other, channel]
                        weights = column_weights[image, other, channel]
                        for x in range(width):
                            total[x] += weighted[places[x]] * weights[x]
                target = out[image, channel, y]
                for x in range(width):
                    target[x] = np.floor(total[x] + 0.5)


@kernel
def lenses(running, centres, index, radius):
    """Half balls of glass over pictures (B, H, W, 4) float32, one after the other; see cbar's fish eyes."""
    batch, height, width, _ = running.shape
    side = int(np.ceil(2 * radius)) + 1
    from_row, from_column, pixels = np.empty(side), np.empty(side), np.empty(side, np.int32)
    seen, bounds = np.empty(side * side * 4, np.float32), np.empty((side, 2), np.int64)
    for image in range(batch):
        picture, bent = running[image].reshape(height * width * 4), index[image] * index[image]
        for number in range(centres.shape[1]):
            centre_y, centre_x = centres[image, number, 0], centres[image, number, 1]
            top, left = np.ceil(centre_y - radius), np.ceil(centre_x - radius)
            # The part of the lens that lies over the image. It is seen as a whole before it is drawn.
            low_i, high_i = max(0, int(-top)), min(side, int(height - top))
            low_j, high_j = max(0, int(-left)), min(side, int(width - left))
            for i in range(low_i, high_i):
                down = top + i - centre_y
                start, stop = _inside_lens(down, centre_x, left, radius, low_j, high_j)
                bounds[i, 0], bounds[i, 1] = start, stop
                ys, xs = from_row[start:stop], from_column[start:stop]
                _rays(down, left, start, centre_y, centre_x, radius, bent, ys, xs)
                places = pixels[start:stop]
                _corners(ys, xs, height, width, places)
                for j in range(len(places)):
                    y, x, place = ys[j], xs[j], (i * side + start + j) * 4
                    row, column = np.floor(y), np.floor(x)
                    if places[j] >= 0:
                        here = np.uint64(places[j]) * np.uint64(4)
                        below = here + np.uint64(4 * width)
                        _mix(picture, here, below, y - row, x - column, seen, np.uint64(place))
                    else:
                        _mix_at_border(picture, height, width, row, column, y - row, x - column, seen, place)
            for i in range(low_i, high_i):
                start, stop = bounds[i, 0], bounds[i, 1]
                place, own = ((int(top) + i) * width + int(left) + start) * 4, (i * side + start) * 4
                target, source = picture[place:], seen[own : own + (stop - start) * 4]
                for value in range(len(source)):
                    target[value] = source[value]


@part
def _depth(down, right, radius):
    """The square of how thick a lens is there; negative beside it."""
    return radius * radius - (down * down + right * right)


@part
def _inside_lens(down, centre_x, left, radius, start, stop):
    """The first column of a row of a lens that has glass, and the one after the last; of start … stop − 1."""
    while start < stop and not _depth(down, left + start - centre_x, radius) > 0:
        start += 1
    while start < stop and not _depth(down, left + stop - 1 - centre_x, radius) > 0:
        stop -= 1
    return start, stop


@part
def _rays(down, left, start, centre_y, centre_x, radius, bent, from_row, from_column):
    """Where the rays through a row of a lens come from, from column ``start`` on."""
    for j in range(len(from_row)):
        right = left + (start + j) - centre_x
        square = _depth(down, right, radius)
        depth = np.sqrt(square if square > 1e-12 else 1e-12)
        from_row[j] = centre_y + _through_glass(down, depth, bent)
        from_column[j] = centre_x + _through_glass(right, depth, bent)


@part
def _corners(rows, columns, height, width, places):
    """The number of the pixel above and to the left of each place; −1 where one of the four around it lies outside."""
    for j in range(len(places)):
        row, column = np.floor(rows[j]), np.floor(columns[j])
        inside = (row >= 0) & (row < height - 1) & (column >= 0) & (column < width - 1)
        place = np.int32(np.int32(row) * np.int32(width) + np.int32(column))
        places[j] = place if inside else np.int32(-1)


@part
def _through_glass(offset, depth, bent):
    """How far from a lens's centre a ray ends, along one axis; ``bent`` is the square of the glass's index."""
    across = offset * offset
    slant = across + depth * depth
    return offset * slant / (np.sqrt(bent * slant - across) * depth + across)


@part
def _between(picture, here, below, up, down, aside, right):
    """One channel between the pixels at two places and those beside them."""
    upper = np.float64(picture[here]) * aside + np.float64(picture[here + np.uint64(4)]) * right
    lower = np.float64(picture[below]) * aside + np.float64(picture[below + np.uint64(4)]) * right
    return np.float32(upper * up + lower * down)


@part
def _mix(picture, here, below, down, right, out, start):
    """Four channels of a picture in one row of memory, between the pixels at two places and those beside them.

    Numbers without a sign and stores after all loads, without which the channels are not worked on at a time.
    """
    up, aside, one, two, three = 1 - down, 1 - right, np.uint64(1), np.uint64(2), np.uint64(3)
    a = _between(picture, here, below, up, down, aside, right)
    b = _between(picture, here + one, below + one, up, down, aside, right)
    c = _between(picture, here + two, below + two, up, down, aside, right)
    d = _between(picture, here + three, below + three, up, down, aside, right)
    out[start], out[start + one], out[start + two], out[start + three] = a, b, c, d


@part
def _mix_at_border(picture, height, width, top, left, down, right, out, start):
    """The same where some of the pixels lie outside, where it is black."""
    up, aside = 1 - down, 1 - right
    for channel in range(4):
        upper = _value(picture, height, width, top, left, channel) * aside
        upper += _value(picture, height, width, top, left + 1, channel) * right
        lower = _value(picture, height, width, top + 1, left, channel) * aside
        lower += _value(picture, height, width, top + 1, left + 1, channel) * right
        out[start + channel] = np.float32(upper * up + lower * down)


@part
def _value(picture, height, width, row, column, channel):
    """A channel of a pixel; black outside the picture."""
    if 0 <= row < height and 0 <= column < width:
        return np.float64(picture[(int(row) * width + int(column)) * 4 + channel])
    return 0.0


@kernel
def cells(x, y, places, out):
    """The distance, at most 1, to the nearest of one point in each cell: of positions (B, W) and (B, H), (B, H, W).

    ``places`` (B, 2, rows, columns) are the points' places in their cells, right and down; the first cell is number 0.
    """
    batch, height, width = out.shape
    for image in range(batch):
        for i in range(height):
            cell_y = np.floor(y[image, i])
            for j in range(width):
                cell_x = np.floor(x[image, j])
                row, column = int(cell_y), int(cell_x)
                nearest = 1.0
                for right in range(-1, 2):
                    for down in range(-1, 2):
                        across = places[image, 0, row + down, column + right] + (right + cell_x - x[image, j])
                        along = places[image, 1, row + down, column + right] + (down + cell_y - y[image, i])
                        square = across * across + along * along
                        nearest = square if square < nearest else nearest
                out[image, i, j] = np.sqrt(nearest)
