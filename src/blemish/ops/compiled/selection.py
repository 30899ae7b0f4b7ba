"""The places of an image that hold its smallest random words."""

from __future__ import annotations

import numpy as np

from blemish.ops.compiled.jit import kernel


@kernel
def smallest(words, count):
    """Whether a place is among the count[b] smallest of words (B, places) int32, of equal ones the first; bool."""
    batch, places = words.shape
    out = np.zeros((batch, places), np.bool_)
    histogram = np.empty(65536, np.int64)
    for image in range(batch):
        wanted = count[image]
        if wanted <= 0:
            continue
        own, chosen = words[image], out[image]
        # The upper halves first, then the lower ones of those words that share the upper half in question.
        histogram[:] = 0
        for i in range(places):
            histogram[(own[i] >> 16) + 32768] += 1
        upper = 0
        while wanted > histogram[upper]:
            wanted -= histogram[upper]
            upper += 1
        upper -= 32768
        histogram[:] = 0
        for i in range(places):
            if own[i] >> 16 == upper:
                histogram[own[i] & 65535] += 1
        lower = 0
        while wanted > histogram[lower]:
            wanted -= histogram[lower]
            lower += 1
        bound = np.int32(upper * 65536 + lower)
        for i in range(places):
            chosen[i] = own[i] < bound
        index = 0
        while wanted > 0:
            if own[index] == bound:
                chosen[index] = True
                wanted -= 1
            index += 1
    return out
