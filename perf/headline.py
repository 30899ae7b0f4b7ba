"""Whole benchmarks on one GPU: python perf/headline.py [--images 50000] [--compile] [--benchmark imagenet-c …].

Synthetic 224-pixel images and a ResNet-50 with random weights (speed does not depend on them) go through the same
`evaluate` that users call: all conditions and the clean images, corrupted, stored as the benchmark says, preprocessed,
classified, ranked and kept as records; of sequences (`imagenet-p`) every frame. Against it stand the bare forward
passes: the network alone on batches that lie preprocessed on the device, in the same precision and batch size, timed
before and after over as many images as `--bare` says and scaled to the number that the benchmark shows to the network.
Printed on their own: reading the images into memory, before the first condition, and compiling, of the network (if
asked for) and of the corruptions' kernels. With `--cold` nothing is called before the run: the first use of kernels
counts. With `--files` the images are JPEG files of 500 × 375 pixels in class folders, brought to size as usual.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import blemish
from blemish.core.progress import READING
from blemish.data.array_source import array_source
from blemish.data.folders import folder_source
from blemish.evaluation.plan import even_batch_size, most_in_batch
from blemish.evaluation.recording import frames_of
from blemish.models.resnet import resnet50
from blemish.models.speed import compile_seconds, speed_up
from blemish.ops.jpeg import jpeg_pillow, jpeg_round_trip
from jpeg_files import write_files

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def write_images(folder: Path, count: int, side: int) -> Path:
    """Synthetic images and labels as array files."""
    pixels = np.lib.format.open_memmap(folder / "images.npy", mode="w+", dtype=np.uint8, shape=(count, side, side, 3))
    for start in range(0, count, 1000):
        stop = min(count, start + 1000)
        pixels[start:stop] = some_images(start, stop, side)
    pixels.flush()
    np.save(folder / "labels.npy", np.arange(count) % 1000)
    return folder / "images.npy"


def some_images(start: int, stop: int, side: int) -> NDArray[np.uint8]:
    """Smooth random pictures with grain, made on the device."""
    rng = blemish.CounterRng(0, torch.arange(start, stop), "perf", torch.device("cuda"))
    coarse = torch.nn.functional.interpolate(rng.uniforms("coarse", 3, 9, 9), size=side, mode="bicubic")
    grain = rng.coarse_uniforms("grain", 3, side, side)
    return (
        (coarse * 0.9 + grain * 0.1)
        .clamp_(0, 1)
        .mul_(255)
        .to(torch.uint8)
        .permute(0, 2, 3, 1)
        .contiguous()
        .cpu()
        .numpy()
    )


def bare_rate(model: blemish.Classifier, batch: int, images: int, side: int) -> float:
    """Images per second of the network alone."""
    levels = torch.randint(0, 256, (batch, 3, side, side), dtype=torch.uint8, device=model.device)
    with torch.inference_mode():
        values = model.preprocessing(levels)
        for _ in range(3):
            model.forward(values)
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(max(1, images // batch)):
            model.forward(values)
        torch.cuda.synchronize()
    return max(1, images // batch) * batch / (time.perf_counter() - start)


def warm_up(benchmark: blemish.Benchmark, side: int) -> float:
    """Make every corruption once: the kernels are compiled on a machine's first use of them, and kept on its disk."""
    start = time.perf_counter()
    images = torch.randint(0, 256, (8, 3, side, side), dtype=torch.uint8, device="cuda")
    for condition in benchmark.conditions:
        if condition.is_sequence:
            list(islice(condition.sequence().frames(images), 2))
        else:
            jpeg_round_trip(condition.apply(images, seed=0, ids=torch.arange(8)), torch.full((8,), 85.0))
    quality = torch.full((8,), 85.0)
    assert torch.equal(jpeg_round_trip(images, quality).cpu(), jpeg_pillow(images.cpu(), quality)), "not the codec's"
    return time.perf_counter() - start


class Clock:
    """When each condition began."""

    def __init__(self) -> None:
        self.began: dict[str, float] = {}

    def __call__(self, _done: int, _total: int | None, what: str = "") -> None:
        """Be told where the run stands."""
        if what not in (READING, *self.began):
            self.began[what] = time.perf_counter()
            print(f"{what} after {time.perf_counter() - min(self.began.values()):.1f} s", flush=True)


def measured(
    model: blemish.Classifier, name: str, source: blemish.Source, options: argparse.Namespace
) -> dict[str, Any]:
    """One benchmark; what is printed of it."""
    benchmark = blemish.load_benchmark(name)
    # Images of an array have their size already.
    sizes = {} if options.files else {"resize": None, "crop": None}
    storage = options.storage or benchmark.protocol.storage
    benchmark = replace(benchmark, protocol=replace(benchmark.protocol, storage=storage, **sizes))
    most = most_in_batch(3 * options.side**2, model.device)
    batch = options.batch or even_batch_size(most, options.images)
    warm = None if options.cold else warm_up(benchmark, options.side)
    before = bare_rate(model, batch, options.bare, options.side)
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        # Its weights are random, and so are its answers.
        run = blemish.evaluate(model, source, benchmark, out=folder, batch_size=batch, report=clock, allow_chance=True)
        stop = time.perf_counter()
        sizes = sum(path.stat().st_size for path in run.folder.rglob("*.parquet"))
    after = bare_rate(model, batch, options.bare, options.side)
    first = min(clock.began.values())
    shown = options.images * sum(frames_of(condition, benchmark.protocol) for condition in run.conditions)
    bare = shown * (1 / before + 1 / after) / 2
    began = [*clock.began.values(), stop]
    return {
        "benchmark": name,
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "images": options.images,
        "files": options.files,
        "conditions": len(run.conditions),
        "shown": shown,
        "storage": storage,
        "precision": options.precision,
        "compiled": options.compile,
        "compile_seconds": compile_seconds(model),
        "kernel_seconds": warm,
        "batch": batch,
        "bare_images_per_second": [before, after],
        "bare_seconds": bare,
        "seconds": stop - first,
        "reading_seconds": first - start,
        "ratio": (stop - first) / bare,
        "ratio_with_reading": (stop - start) / bare,
        "images_per_second": shown / (stop - first),
        "record_bytes": sizes,
        "by_condition": {name: began[i + 1] - began[i] for i, name in enumerate(clock.began)},
    }


def show(result: dict[str, Any]) -> None:
    """Print a table in Markdown, and the rest below it."""
    by_name: dict[str, list[float]] = {}
    for name, value in result["by_condition"].items():
        by_name.setdefault(name.partition("@")[0], []).append(value)
    print("| condition | seconds, mean over severities | µs per image |\n|---|---:|---:|")
    for name, values in by_name.items():
        mean = sum(values) / len(values)
        print(f"| {name} | {mean:.2f} | {1e6 * mean / result['images']:.1f} |")
    for key, value in result.items():
        if key != "by_condition":
            print(f"{key}: {value}")
    print(flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--benchmark", nargs="+", default=["imagenet-c"])
    parser.add_argument("--images", type=int, default=50_000)
    parser.add_argument("--files", action="store_true", help="JPEG files instead of an array")
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--precision", default="float16")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--cold", action="store_true", help="let the first use of kernels count")
    parser.add_argument("--storage", default=None, help="instead of the benchmark's: raw, jpeg85")
    parser.add_argument("--bare", type=int, default=250_000, help="images of the bare passes, before and after each")
    parser.add_argument("--batch", type=int, default=None)
    parser.add_argument("--json", type=Path, default=None)
    options = parser.parse_args()
    torch.manual_seed(0)
    net = resnet50().cuda().eval()
    model = blemish.from_module(net, name="resnet50", preprocessing=blemish.Preprocessing(mean=MEAN, std=STD))
    model = speed_up(model, precision=options.precision, compiled=options.compile)
    results = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = time.perf_counter()
        if options.files:
            source = folder_source(write_files(folder / "files", options.images))
        else:
            source = array_source(write_images(folder, options.images, options.side), folder / "labels.npy")
        print(f"{options.images} images made in {time.perf_counter() - start:.0f} s", flush=True)
        for benchmark in options.benchmark:
            results.append(measured(model, benchmark, source, options))
            show(results[-1])
            if options.json is not None:
                options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
