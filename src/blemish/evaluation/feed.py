"""Images on their way to the device: kept there whole when they fit, else sent ahead while the last batch is worked on.

Nothing here waits for the device: batches are views of what lies there, or copies from page-locked memory on a stream
of their own.
"""

from __future__ import annotations

import bisect
import weakref
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from blemish.data.images import Images

# Of the memory that is free when images come to a device; the rest is for activations.
_SHARE = 0.5
# Bytes on their way at a time; to lock memory in its place takes a while.
_PIECE = 2**24
# One thread copies less in a second than a GPU takes.
_COPYING = 8

_kept: dict[tuple[int, torch.device], Tensor] = {}


class Feed:
    """Batches of images on a device. ``rows``, of one shape and ascending, are asked for one after the other."""

    def __init__(self, images: Images, rows: Sequence[int], device: torch.device) -> None:
        self.images, self.device = images, device
        self._rows = rows
        self._on_device = _pixels_on(images, device) if device.type == "cuda" else None
        self._ahead: tuple[list[int], Future[Tensor]] | None = None
        self._pool: ThreadPoolExecutor | None = None
        if device.type == "cuda" and self._on_device is None:
            self._pool = ThreadPoolExecutor(1)
            self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def __enter__(self) -> Feed:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def batch(self, rows: list[int]) -> Tensor:
        """Some of the images, (B, C, H, W)."""
        if self._on_device is not None:
            return self._view(self._on_device, rows)
        if self._pool is None:
            return self.images.batch(rows).to(self.device)
        ready = self._ahead[1] if self._ahead is not None and self._ahead[0] == rows else self._send(rows)
        self._look_ahead(rows)
        batch = ready.result()
        here = torch.cuda.current_stream(self.device)
        here.wait_stream(self._stream)
        batch.record_stream(here)
        return batch

    def _view(self, pixels: Tensor, rows: list[int]) -> Tensor:
        starts, shape = self.images.starts[rows], self.images.shapes[rows[0]].tolist()
        size = int(np.prod(shape))
        if bool((np.diff(starts) == size).all()):
            first = int(starts[0])
            return pixels[first : first + size * len(rows)].view(len(rows), *shape)
        return torch.stack([pixels[start : start + size] for start in starts.tolist()]).view(len(rows), *shape)

    def _look_ahead(self, rows: list[int]) -> None:
        start = bisect.bisect_right(self._rows, rows[-1])
        following = list(self._rows[start : start + len(rows)])
        self._ahead = (following, self._send(following)) if following else None

    def _send(self, rows: list[int]) -> Future[Tensor]:
        assert self._pool is not None
        return self._pool.submit(self._sent, rows)

    def _sent(self, rows: list[int]) -> Tensor:
        with torch.cuda.stream(self._stream):
            return self.images.batch(rows).pin_memory().to(self.device, non_blocking=True)


def _pixels_on(images: Images, device: torch.device) -> Tensor | None:
    """All pixels, as they lie in memory, on the device; None for those that would fill too much of it.

    They stay for as long as the images do, so that every condition after the first finds them there.
    """
    key = (id(images.pixels), device)
    if key not in _kept:
        free, _ = torch.cuda.mem_get_info(device)
        if images.pixels.nbytes > _SHARE * free:
            return None
        _kept[key] = _uploaded(images.pixels, device)
        weakref.finalize(images.pixels, _kept.pop, key, None)
    return _kept[key]


def _uploaded(pixels: NDArray[np.uint8], device: torch.device) -> Tensor:
    """In pieces through two page-locked ones, so that one is filled while the other is on its way."""
    out = torch.empty(len(pixels), dtype=torch.uint8, device=device)
    pieces = [torch.empty(min(_PIECE, len(pixels)), dtype=torch.uint8, pin_memory=True) for _ in range(2)]
    sent: list[torch.cuda.Event] = []
    with ThreadPoolExecutor(_COPYING) as pool:
        for number, start in enumerate(range(0, len(pixels), _PIECE)):
            if number >= 2:
                sent[number - 2].synchronize()
            piece = pieces[number % 2][: len(pixels) - start]
            copy(pixels[start : start + _PIECE], piece.numpy(), pool)
            out[start : start + _PIECE].copy_(piece, non_blocking=True)
            sent.append(torch.cuda.Event())  # type: ignore[no-untyped-call]
            sent[-1].record(torch.cuda.current_stream(device))
    sent[-1].synchronize()  # so that streams of any kind find them there
    return out


def copy(source: NDArray[np.uint8], target: NDArray[np.uint8], pool: ThreadPoolExecutor) -> None:
    """Copy pixels, each thread its share of them."""
    bounds = np.linspace(0, len(source), _COPYING + 1).astype(np.int64).tolist()
    shares = map(slice, bounds, bounds[1:])
    list(pool.map(lambda share: np.copyto(target[share], source[share]), shares))
