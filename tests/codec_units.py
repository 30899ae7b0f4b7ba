"""What cannot be asked of corruptions whose pixels another program's codec makes: see `blemish.ops.codecs.Codec`.

Another version of the codec makes other pixels, so that none are recorded; and a codec works on the CPU, so that a GPU
is waited for. Whatever else a corruption promises, these promise too.
"""

from __future__ import annotations

import pytest

import blemish
from blemish.ops.codecs import Codec


def by_codec(corruption: blemish.Corruption) -> bool:
    """Whether a codec is declared to make its pixels."""
    return isinstance(corruption.files, Codec)


def skip_by_codec(corruption: blemish.Corruption, why: str) -> blemish.Corruption:
    """The corruption, unless a codec makes its pixels."""
    if by_codec(corruption):
        pytest.skip(f"{corruption.name} is made by a codec, {why}")
    return corruption
