"""How far each corruption is from what the GPU allows: python perf/roofline.py [--batch 512] [--side 224].

For every corruption of ImageNet-C, per image: the fewest bytes it must move (levels in, levels out, and what it reads
besides), the operations its formula needs, the floor that the larger of the two sets (with the bandwidth of a large
copy and the rate of a large float32 matrix product, measured in the same run), and the measured time, device events
around calls in a row. Operations are counted from the formulas, a multiply-add as two, at severity 3; hashing random
words costs about 9 whole-number operations for each 16-bit value.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import torch
from torch import Tensor

import blemish
from blemish.ops.jpeg import jpeg_round_trip
from gpu import synthetic_images

# Operations per value of an image (three values a pixel), and further bytes per value.
# Hash: 9. Quantise and scale: 4. A separable Gaussian of n taps costs 4 n. FFT: 5 log2(n) per value and direction.
COUNTS: dict[str, tuple[float, float, str]] = {
    "gaussian_noise": (9 + 1 + 2 + 4, 0, "hash, table, add"),
    "shot_noise": (9 + 1 + 2 + 30 + 36 + 4, 0, "hash, table, expansion and 12 partial sums"),
    "impulse_noise": (9 + 6 + 4, 0, "hash, two ramps"),
    "defocus_blur": (2 * 49 + 4, 0, "49 taps of a disk of radius 4 (by FFT)"),
    "glass_blur": (2 * 4 * 9 + 2 * (9 + 12) / 3 + 4, 2 * 2 * 2 / 3, "two Gaussians of 9 taps, 2 passes of copies"),
    "motion_blur": (2 * 31 + 4, 0, "31 taps along a line"),
    "zoom_blur": (11 * 12 + 4, 0, "11 enlargements, three mixes each"),
    "snow": ((9 + 2 * 41 + 24) / 3 + 10 + 4, 0, "one plane: hash, enlarge, 41 taps; whiten, add"),
    "frost": (4 + 4, 1, "weigh and add a texture"),
    "fog": (9 + 12 + 5 + 4, 0, "hash, diamond-square, maximum, add"),
    "brightness": (6 + 4, 0, "maximum, scale"),
    "contrast": (4 + 4, 1, "mean, scale: the levels are read twice"),
    "elastic_transform": (2 * (9 + 4 * 13) / 3 + 2 * 12 + 4, 0, "two fields: hash, Gaussian; two bilinear samplings"),
    "pixelate": (2, 0, "means of boxes, repeat"),
    "jpeg_compression": (10 + 0.5 * (4 * 44 + 12) + 14, 0, "colour, four passes of the DCT, quantise, colour"),
}


def milliseconds(work: Callable[[], object], calls: int = 10) -> float:
    """Time of a call, the least over three runs of several."""
    work()
    best = float("inf")
    for _ in range(3):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(calls):
            work()
        stop.record()
        stop.synchronize()
        best = min(best, start.elapsed_time(stop) / calls)
    return best


def bandwidth() -> float:
    """Bytes per second of a large copy, read and written."""
    source = torch.randint(0, 2**31, (2**29,), dtype=torch.int32, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.nbytes / milliseconds(lambda: target.copy_(source)) * 1000


def arithmetic() -> float:
    """Operations per second of a large float32 matrix product, without the tensor cores."""
    first, second = (torch.rand(8192, 8192, device="cuda") for _ in range(2))
    return 2 * 8192**3 / milliseconds(lambda: first @ second, 3) * 1000


def row(name: str, work: Callable[[], Tensor], images: Tensor, rates: tuple[float, float]) -> str:
    """A line of the table."""
    values = images[0].numel()
    operations, more, what = COUNTS[name.partition(",")[0]]
    moved = values * (2 + more)
    by_bytes, by_work = 1e6 * moved / rates[0], 1e6 * values * operations / rates[1]
    measured = 1000 * milliseconds(work) / len(images)
    floor = max(by_bytes, by_work)
    return (
        f"| {name} | {moved / 1000:.0f} | {values * operations / 1e6:.1f} | {floor:.2f} "
        f"({'bytes' if by_bytes > by_work else 'operations'}) | {measured:.2f} | {measured / floor:.0f} | {what} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--side", type=int, default=224)
    options = parser.parse_args()
    images = synthetic_images(options.batch, options.side).cuda()
    rates = bandwidth(), arithmetic()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}: copies {rates[0] / 1e12:.2f} TB/s, ", end="")
    print(f"float32 products {rates[1] / 1e12:.0f} TFLOP/s; {options.batch} images of {options.side} pixels\n")
    print("| corruption | kB per image | million operations | floor, µs | measured, µs | ratio | operations |")
    print("|---|---:|---:|---:|---:|---:|---|")
    for name in COUNTS:
        corruption = blemish.catalog[name]
        print(row(name, lambda c=corruption: c(images, severity=3), images, rates), flush=True)
    quality = torch.full((len(images),), 85.0, dtype=torch.float64)
    print(row("jpeg_compression, as storage (85)", lambda: jpeg_round_trip(images, quality), images, rates))


if __name__ == "__main__":
    main()
