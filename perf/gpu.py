"""Images per second of every corruption on one GPU: python perf/gpu.py [--batch 256] [--severity 3] [--profile NAME].

Batches of uint8 images that already lie on the device, through the same call that users make, timed with device
events: the median over runs of ten calls in a row, after a warm-up. See README.md for the method.
"""

from __future__ import annotations

import argparse
import math
import statistics

import torch
from torch import Tensor
from torch.nn import functional as F

import blemish

CALLS = 10


def synthetic_images(count: int, side: int) -> Tensor:
    """Smooth random pictures with grain, so that no operation meets constant data."""
    rng = blemish.CounterRng(0, torch.arange(count), "perf")
    coarse = F.interpolate(rng.uniforms("coarse", 3, 9, 9), size=side, mode="bicubic", align_corners=True)
    grain = rng.coarse_uniforms("grain", 3, side, side)
    return (coarse * 0.9 + grain * 0.1).clamp_(0, 1).mul_(255).to(torch.uint8)


def milliseconds(corruption: blemish.Corruption, images: Tensor, severity: float, seconds: float = 0.5) -> float:
    """Time of one call: the median over runs of several calls in a row, as an evaluation makes them."""
    for seed in range(3):
        corruption(images, severity=severity, seed=seed)
    times: list[float] = []
    while sum(times) < seconds * 1000 / CALLS or len(times) < 5:
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for call in range(CALLS):
            corruption(images, severity=severity, seed=len(times) * CALLS + call)
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop) / CALLS)
    return statistics.median(times)


def profile(corruption: blemish.Corruption, images: Tensor, severity: float) -> None:
    """Print where the device time goes."""
    from torch.profiler import ProfilerActivity
    from torch.profiler import profile as record

    corruption(images, severity=severity)
    with record(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as trace:
        corruption(images, severity=severity)
        torch.cuda.synchronize()
    print(trace.key_averages().table(sort_by="self_cuda_time_total", row_limit=14, max_name_column_width=60))


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--side", type=int, default=224)
    parser.add_argument("--severity", type=float, default=3)
    parser.add_argument("--profile", nargs="*", default=[], help="corruptions whose device time to break down")
    options = parser.parse_args()
    images = synthetic_images(options.batch, options.side).cuda()
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, batch {options.batch}, {options.side} px,")
    print(f"severity {options.severity:g}\n\n| corruption | images/s | ms per batch |\n|---|---:|---:|")
    rates = []
    for name in blemish.catalog.plain():
        taken = milliseconds(blemish.catalog[name], images, options.severity)
        rates.append(options.batch / taken * 1000)
        print(f"| {name} | {rates[-1]:,.0f} | {taken:.2f} |", flush=True)
    print(f"| geometric mean | {math.exp(statistics.fmean(map(math.log, rates))):,.0f} | |")
    for name in options.profile:
        profile(blemish.catalog[name], images, options.severity)


if __name__ == "__main__":
    main()
