"""Boxes matched with those of the truth, and average precision of weighted images, as pycocotools counts them."""

from __future__ import annotations

import numpy as np

from blemish.ops.compiled.jit import kernel, part

# What pycocotools adds to a count, so that nothing is divided by zero.
_SPACING = np.spacing(1)


@part
def _overlap(first, second, crowd):
    """The intersection of two boxes (x, y, width, height) over their union, of a crowd over the first box."""
    width = min(first[0] + first[2], second[0] + second[2]) - max(first[0], second[0])
    height = min(first[1] + first[3], second[1] + second[3]) - max(first[1], second[1])
    if width <= 0 or height <= 0:
        return 0.0
    shared = width * height
    own = first[2] * first[3]
    return shared / (own if crowd else own + second[2] * second[3] - shared)


@kernel
def matched(starts, boxes, truth_starts, truth_boxes, crowd, ignored, outside, thresholds):
    """For groups of boxes, best first, and of the truth: two words of bits, hit and to be left out, per box.

    Groups are those of an image and class; ``starts`` and ``truth_starts`` hold where each begins. The truth of a group
    stands with what is ``ignored`` last. ``outside`` tells of which boxes the area is out of range.
    """
    hits = np.zeros(len(boxes), np.uint16)
    left_out = np.zeros(len(boxes), np.uint16)
    for group in range(len(starts) - 1):
        begin, end = truth_starts[group], truth_starts[group + 1]
        taken = np.zeros((end - begin, len(thresholds)), np.bool_)
        overlaps = np.empty(end - begin)
        for box in range(starts[group], starts[group + 1]):
            for truth in range(begin, end):
                overlaps[truth - begin] = _overlap(boxes[box], truth_boxes[truth], crowd[truth])
            for bar in range(len(thresholds)):
                best, least = -1, min(thresholds[bar], 1 - 1e-10)
                for truth in range(begin, end):
                    if taken[truth - begin, bar] and not crowd[truth]:
                        continue
                    if best >= 0 and not ignored[best] and ignored[truth]:
                        break
                    if overlaps[truth - begin] < least:
                        continue
                    least, best = overlaps[truth - begin], truth
                bit = np.uint16(1 << bar)
                if best >= 0:
                    taken[best - begin, bar] = True
                    hits[box] |= bit
                    if ignored[best]:
                        left_out[box] |= bit
                elif outside[box]:
                    left_out[box] |= bit
    return hits, left_out


@kernel
def weighted_precision(weights, owners, equal, hits, left_out, starts, truth_owners, truth_starts, recalls, count):
    """Average precision at each of ``count`` overlaps, of images with these weights: (rows of weights, count).

    Boxes lie class by class from ``starts`` on, best first, with the row of their image in ``owners``; so does the
    truth that is not ignored. ``equal`` holds, for the first of a run of boxes of equal scores in an image, how many
    there are, and 0 for the others. Weights are whole: how often an image is there. The mean is over the classes of
    which a row has any truth; not a number where it has none.
    """
    out = np.full((len(weights), count), np.nan)
    most = max(1, int(weights.max())) if weights.size else 1
    longest = 0
    for kind in range(len(starts) - 1):
        places = 0
        for box in range(starts[kind], starts[kind + 1]):
            places += equal[box] * (1 if equal[box] == 1 else most)
        longest = max(longest, places)
    rank = np.empty((count, longest + 1))
    level = np.empty((count, longest + 1))
    known = np.empty(count, np.int64)
    right, elsewhere = np.empty(count), np.empty(count)
    for row in range(len(weights)):
        weight = weights[row]
        sums, kinds = np.zeros(count), 0
        for kind in range(len(starts) - 1):
            positives = 0.0
            for truth in range(truth_starts[kind], truth_starts[kind + 1]):
                positives += weight[truth_owners[truth]]
            if positives == 0:
                continue
            kinds += 1
            known[:] = 0
            right[:] = 0.0
            elsewhere[:] = 0.0
            everywhere = 0.0
            for first in range(starts[kind], starts[kind + 1]):
                own, length = weight[owners[first]], equal[first]
                if own == 0 or length == 0:
                    continue
                # Equal scores of an image that is there twice: all of them once, and then again.
                turns, each = (1, own) if length == 1 else (int(own), 1.0)
                for number in range(turns * length):
                    box = first if length == 1 else first + number % length
                    # Most boxes miss at every overlap: those are counted once for all of them.
                    everywhere += each
                    hit, skipped = hits[box], left_out[box]
                    if hit | skipped == 0:
                        continue
                    for bar in range(count):
                        if (skipped >> bar) & 1:
                            elsewhere[bar] += each
                        elif (hit >> bar) & 1:
                            elsewhere[bar] += each
                            right[bar] += each
                            missed = everywhere - elsewhere[bar]
                            rank[bar, known[bar]] = right[bar] / positives
                            level[bar, known[bar]] = right[bar] / (missed + right[bar] + _SPACING)
                            known[bar] += 1
            for bar in range(count):
                best, at = 0.0, len(recalls) - 1
                for hit_number in range(known[bar] - 1, -1, -1):
                    best = max(best, level[bar, hit_number])
                    below = rank[bar, hit_number - 1] if hit_number > 0 else -1.0
                    while at >= 0 and recalls[at] > below:
                        if recalls[at] <= rank[bar, hit_number]:
                            sums[bar] += best
                        at -= 1
        if kinds > 0:
            out[row] = sums / (kinds * len(recalls))
    return out
