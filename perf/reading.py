"""How long images take into memory: python perf/reading.py [--array 50000] [--files 50000].

An array file of 224-pixel images, and JPEG files of 500 × 375 pixels in class folders, brought to 256 and 224 pixels as
ImageNet-C was made; both by `load`, which every run calls once. Files were written just before, so that they are in the
system's memory, not on a disk. Then the decoders at hand, one picture at a time on one thread, and how many of their
pixels are not Pillow's.
"""

from __future__ import annotations

import argparse
import io
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image

import blemish
from blemish.data.array_source import array_source
from blemish.data.cache import load
from blemish.data.folders import folder_source
from blemish.data.pictures import resize_and_crop
from jpeg_files import write_files

SIDE, FEW = 224, 64


def write_array(folder: Path, count: int) -> blemish.Source:
    """Random levels as an array file: what they are does not matter."""
    pixels = np.lib.format.open_memmap(folder / "images.npy", mode="w+", dtype=np.uint8, shape=(count, SIDE, SIDE, 3))
    some = np.random.default_rng(0).integers(0, 256, (500, SIDE, SIDE, 3), dtype=np.uint8)
    for start in range(0, count, len(some)):
        part = pixels[start : start + len(some)]
        part[:] = some[: len(part)]
    pixels.flush()
    np.save(folder / "labels.npy", np.arange(count) % 1000)
    return array_source(folder / "images.npy", folder / "labels.npy")


def timed(title: str, source: blemish.Source, resize: int | None, workers: int | None = None) -> None:
    """Read all images, and say how long it took."""
    clock, work = time.perf_counter(), time.process_time()
    images = load(source, resize=resize, crop=SIDE, workers=workers)
    clock, work = time.perf_counter() - clock, time.process_time() - work
    where = "a file" if isinstance(images.pixels, np.memmap) else "memory"
    count = len(images)
    print(
        f"{title}: {count} images into {where} in {clock:.2f} s, {count / clock:,.0f} images/s, "
        f"{1e6 * work / count:.0f} µs of CPU time each, {os.cpu_count()} cores",
        flush=True,
    )


def timed_in_processes(source: blemish.Source, processes: int) -> None:
    """The same files, shared out to processes of one thread; their pixels are not brought together."""
    shares = [np.arange(first, len(source), processes) for first in range(processes)]
    clock = time.perf_counter()
    children = []
    for share in shares:
        child = os.fork()
        if child == 0:
            load(source.take(share), resize=256, crop=SIDE, workers=1)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
    clock = time.perf_counter() - clock
    print(f"JPEG files, {processes} processes: {clock:.2f} s, {len(source) / clock:,.0f} images/s", flush=True)


def decoders() -> dict[str, Callable[[bytes], np.ndarray]]:
    """From the bytes of a file to (H, W, 3), by every decoder that is installed."""

    def pillow(content: bytes) -> np.ndarray:
        return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))

    def draft(content: bytes) -> np.ndarray:
        picture = Image.open(io.BytesIO(content))
        picture.draft("RGB", (256, 256))
        return np.asarray(picture.convert("RGB"))

    found: dict[str, Callable[[bytes], np.ndarray]] = {"Pillow": pillow, "Pillow, draft mode for 256 pixels": draft}
    try:
        import simplejpeg

        found["simplejpeg"] = simplejpeg.decode_jpeg
    except ImportError:
        print("simplejpeg is not installed")
    try:
        from torchvision.io import decode_jpeg

        def torchvision(content: bytes) -> np.ndarray:
            return decode_jpeg(torch.frombuffer(bytearray(content), dtype=torch.uint8)).permute(1, 2, 0).numpy()

        torchvision(_one_picture())
        found["torchvision"] = torchvision
    except (ImportError, RuntimeError) as error:
        print(f"torchvision does not decode here: {str(error).splitlines()[0]}")
    return found


def _one_picture() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (16, 16)).save(buffer, "JPEG")
    return buffer.getvalue()


def compare(folder: Path) -> None:
    """Decoders beside one another."""
    torch.set_num_threads(1)
    contents = [path.read_bytes() for path in sorted(folder.rglob("*.jpg"))[:FEW]]
    print(f"\n{len(contents)} files of {sum(map(len, contents)) / len(contents) / 1000:.0f} kB on average\n")
    print("| decoder | ms per picture, one thread | size | levels that differ from Pillow's |\n|---|---:|---|---:|")
    expected = None
    for name, decode in decoders().items():
        best = np.inf
        for _ in range(4):
            start = time.thread_time()
            decoded = [decode(content) for content in contents]
            best = min(best, time.thread_time() - start)
        expected = expected or decoded
        same = decoded[0].shape == expected[0].shape
        off = 100 * np.mean([np.mean(a != b) for a, b in zip(decoded, expected, strict=True)]) if same else np.nan
        size = "×".join(map(str, decoded[0].shape[1::-1]))
        print(f"| {name} | {1e3 * best / len(contents):.2f} | {size} | {f'{off:.3g} %' if same else 'another size'} |")
    pictures = [Image.fromarray(levels) for levels in expected or []]
    start = time.thread_time()
    for picture in pictures:
        resize_and_crop(picture, resize=256, crop=SIDE)
    print(
        f"| resizing to 256 and cropping to 224, for comparison | {1e3 * (time.thread_time() - start) / FEW:.2f} | | |"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--array", type=int, default=50_000, help="images of the array file")
    parser.add_argument("--files", type=int, default=50_000, help="JPEG files")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--workers", type=int, nargs="*", default=[], help="also with so many threads")
    parser.add_argument("--processes", type=int, help="also in so many processes, to compare")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = write_array(folder, options.array)
        for _ in range(options.rounds):
            timed("array file", source, None)
        files = write_files(folder / "files", options.files)
        for _ in range(options.rounds):
            timed("JPEG files", folder_source(files), 256)
        for workers in options.workers:
            timed(f"JPEG files, {workers} threads", folder_source(files), 256, workers)
        if options.processes:
            timed_in_processes(folder_source(files), options.processes)
        compare(files)


if __name__ == "__main__":
    main()
