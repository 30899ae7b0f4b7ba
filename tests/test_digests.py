"""Pixels, records and scores stay what they are to the last bit while the code around them changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import blemish
import digests
from codec_units import skip_by_codec
from frost_files import skip_without_files

RECORDED: dict[str, str] = json.loads(digests.PATH.read_text())
TORCH = "2.13"

pytestmark = pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512") or not torch.__version__.startswith(TORCH),
    reason=f"digests are recorded with torch {TORCH} on a processor with AVX2",
)


@pytest.mark.parametrize("name", [*blemish.catalog, *blemish.sequences])
def test_pixels(name: str) -> None:
    if name in blemish.catalog:
        skip_by_codec(blemish.catalog[name], "whose version decides about pixels")
    key = digests.unit_keys()[name]
    assert key in RECORDED, f"{key} has no digest: run tests/digests.py and add a line to CHANGELOG.md"
    if name in blemish.catalog:
        skip_without_files(blemish.catalog[name])
    assert digests.of_unit(name) == RECORDED[key]


def test_sequences_at_every_size() -> None:
    for key, digest in digests.size_digests():
        assert digest == RECORDED[key], f"{key} changed"


def test_records_and_scores(tmp_path: Path) -> None:
    for key, digest in digests.run_digests(tmp_path):
        assert digest == RECORDED[key], f"{key} changed"
