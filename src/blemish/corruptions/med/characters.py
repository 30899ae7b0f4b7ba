"""MedMNIST-C's characters: words of small random letters, as burnt into images by the software of an instrument."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from blemish.core.rng import CounterRng
from blemish.core.types import Shape
from blemish.corruptions.base import Corruption, side_scale
from blemish.corruptions.med.published import SOURCE, settings_of
from blemish.corruptions.severity import Params
from blemish.ops.colour import as_colour, back_to
from blemish.ops.letters import ADVANCES, PHASES, letter_table
from blemish.ops.stamps import placed_index
from blemish.ops.transfer import to_device

_MOST_WORDS, _MOST_LETTERS, _LEAST_LETTERS = 6, 10, 3
_LEAST_SIZE, _MOST_SIZE = 14, 18
# Words begin this far from the border, and each letter is given so much room, in pixels of 224.
_MARGIN, _ROOM = 10, 8
# Letters of a smaller size would be dots.
_LEAST_SCALE = 0.5


class Words(NamedTuple):
    """How many words there are, (B,); their letters' number, size in hundredths, and place (x, baseline), (B, N).

    The letters themselves are (B, N, most letters), a is 0; colours (B, N, 3). Whole numbers on the CPU.
    """

    number: Tensor
    letters: Tensor
    size: Tensor
    text: Tensor
    x: Tensor
    y: Tensor
    colour: Tensor


def _scale(height: int, width: int) -> float:
    return max(_LEAST_SCALE, side_scale(height, width))


def _between(rank: Tensor, low: Tensor | int, high: Tensor | int) -> Tensor:
    """Whole numbers low … high at uniform ranks; low where high is less."""
    span = torch.as_tensor(high - low + 1, dtype=torch.float64).clamp(min=0)
    return low + (rank.to(torch.float64) * span).floor().to(torch.int64)


def _draw_words(shape: Shape, params: Params, rng: CounterRng) -> Words:
    rng, scale = rng.on_cpu(), _scale(shape.height, shape.width)
    words, letters, size = (params[name].to(torch.int64)[:, None] for name in ("words", "letters", "size"))
    ranks = rng.uniforms("words", 4, _MOST_WORDS)
    count = torch.minimum(_between(rng.uniforms("count", 1), 1, words), words)[:, 0]
    length = _between(ranks[:, 0], _LEAST_LETTERS, letters)
    margin = round(_MARGIN * side_scale(shape.height, shape.width))
    return Words(
        count,
        length,
        _between(ranks[:, 1], _LEAST_SIZE, size),
        rng.integers("text", _MOST_WORDS, _MOST_LETTERS, high=len(ADVANCES)),
        _between(ranks[:, 2], margin, shape.width - (_ROOM * scale * length).round().to(torch.int64)),
        _between(ranks[:, 3], margin, shape.height - margin),
        rng.integers("colour", _MOST_WORDS, 3, high=256),
    )


def _characters(levels: Tensor, params: Params, draw: Words) -> Tensor:
    height, width = levels.shape[-2:]
    scale, device = _scale(height, width), levels.device
    table = letter_table(tuple(size / 100 * scale for size in range(_LEAST_SIZE, _MOST_SIZE + 1)), str(device))
    # Where each letter begins, to a fraction of a pixel; known on the CPU.
    units = (draw.size.to(torch.float64) * (scale / 100))[..., None]
    steps = torch.tensor(ADVANCES, dtype=torch.float64)[draw.text] * units
    begin = draw.x[..., None] + steps.cumsum(2) - steps
    phase = ((begin - begin.floor()) * PHASES).floor()
    glyph = ((draw.size - _LEAST_SIZE)[..., None] * len(ADVANCES) + draw.text) * PHASES + phase.to(torch.int64)
    shown = torch.arange(draw.text.shape[2]) < draw.letters[..., None]
    shown = shown & (torch.arange(draw.text.shape[1]) < draw.number[:, None])[..., None]
    left, glyph, shown, base, colour = (
        to_device(values, device) for values in (begin.floor().to(torch.int64), glyph, shown, draw.y, draw.colour)
    )
    out = as_colour(levels).to(torch.float32)
    for word in range(int(draw.number.max())):
        rows = base[:, word, None, None] + table.down
        index = placed_index(rows, left[:, word, :, None] + table.right, shown[:, word], height, width)
        ink = torch.zeros((len(levels), height * width + 1), device=device, dtype=torch.float32)
        ink.scatter_reduce_(1, index.flatten(1), table.ink[glyph[:, word]].flatten(1), "amax")
        plane = ink[:, :-1].reshape(-1, 1, height, width)
        out = out + (colour[:, word, :, None, None] - out).mul_(plane)
    return back_to(levels, out.round_().to(torch.uint8))


characters = Corruption(
    name="med:characters",
    family="med",
    description="Words of small random letters, in random colours.",
    table=settings_of(
        "characters",
        words=("max_words", 0),
        letters=("max_letters", _LEAST_LETTERS),
        size=("size", _LEAST_SIZE),
        rounded=("words", "letters", "size"),
    ),
    draw=_draw_words,
    apply=_characters,
    uint8_io=True,
    source=SOURCE,
)
