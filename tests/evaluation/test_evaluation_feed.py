"""Images on their way to a device: the same pixels, kept there or sent ahead."""

from __future__ import annotations

import gc

import pytest
import torch

from blemish.data.cache import Images, load
from blemish.evaluation import feed
from blemish.evaluation.feed import Feed
from execution_jobs import pictures

SIZES = ((32, 32), (24, 40), (32, 32), (32, 32))


@pytest.fixture
def images() -> Images:
    return load(pictures(41, SIZES))


def check(images: Images, device: torch.device, size: int) -> None:
    for rows in images.by_shape():
        with Feed(images, rows, device) as ready:
            for start in range(0, len(rows), size):
                some = rows[start : start + size]
                batch = ready.batch(some)
                assert batch.device.type == device.type
                assert torch.equal(batch.cpu(), images.batch(some))


@pytest.mark.parametrize("size", [1, 7, 100])
def test_on_the_cpu(images: Images, size: int) -> None:
    check(images, torch.device("cpu"), size)


@pytest.mark.parametrize("piece", [1000, 2**26])
@pytest.mark.parametrize("size", [1, 7, 100])
def test_kept_on_the_device(
    images: Images, device: torch.device, size: int, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "_PIECE", piece)
    before = len(feed._kept)
    check(images, device, size)
    assert len(feed._kept) == before + 1


@pytest.mark.parametrize("size", [1, 7, 100])
def test_sent_ahead(images: Images, device: torch.device, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "_SHARE", 0.0)
    check(images, device, size)
    assert not feed._kept


def test_batches_in_any_order(images: Images, device: torch.device, monkeypatch: pytest.MonkeyPatch) -> None:
    """After memory ran out, smaller batches are asked for than were sent ahead."""
    monkeypatch.setattr(feed, "_SHARE", 0.0)
    rows = max(images.by_shape(), key=len)
    with Feed(images, rows, device) as ready:
        for some in (rows[:8], rows[8:12], rows[:3], rows[20:]):
            assert torch.equal(ready.batch(some).cpu(), images.batch(some))


def test_memory_comes_back(device: torch.device) -> None:
    """What lies on the device goes with the images."""
    images = load(pictures(8))
    before = len(feed._kept)
    check(images, device, 4)
    del images
    gc.collect()
    assert len(feed._kept) == before
