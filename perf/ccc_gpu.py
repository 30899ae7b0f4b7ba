"""Whether a CCC stream keeps a GPU busy: python perf/ccc_gpu.py [--batch 256] [--pairs 30].

Images per second of two corruptions in a row at 224 × 224 pixels, from images that lie on the device, over a sample of
ordered pairs; and of a ResNet-50 that classifies them, in float32 and in float16. One stream starves no network that is
slower than it is. Device time between events around many batches, after a warm-up.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Callable

import numpy as np
import torch

from blemish.models.resnet import resnet50
from blemish.studies.streams.images import from_tensor
from blemish.studies.streams.info import WalkInfo
from blemish.studies.streams.levels import LEVELS
from blemish.studies.streams.stream import Stream
from blemish.studies.streams.walks import Walk, WalkStep
from gpu import synthetic_images


def rate(work: Callable[[int], object], images: int, calls: int) -> float:
    """Images per second over some calls in a row."""
    for call in range(2):
        work(call)
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for call in range(calls):
        work(call)
    stop.record()
    stop.synchronize()
    return images * calls / start.elapsed_time(stop) * 1000


def main() -> None:
    """Print the rates of all pairs, the slowest first, and of the network."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--calls", type=int, default=8)
    options = parser.parse_args()
    images = synthetic_images(options.batch, 224).cuda()
    source = from_tensor(images, np.zeros(options.batch, dtype=np.int64))
    names = LEVELS["easy"].corruptions
    pairs = [(first, second) for first in names for second in names if first != second]
    rates = {}
    for first, second in random.Random(0).sample(pairs, min(options.pairs, len(pairs))):
        walk = Walk((WalkStep(first, 2.0, second, 2.0, options.batch * (options.calls + 2), 0.5, 0),), WalkInfo())
        stream = Stream(source, walk, batch=options.batch)
        work = [stream.at, options.batch]
        rates[f"{first} + {second}"] = rate(lambda call, w=work: w[0](call * w[1], w[1]), options.batch, options.calls)
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, batch {options.batch}, 224 px\n")
    print("| what | images/s |\n|---|---:|")
    for name, value in sorted(rates.items(), key=lambda item: item[1]):
        print(f"| {name} | {value:,.0f} |")
    mean = 1 / statistics.fmean(1 / value for value in rates.values())
    print(f"| **a walk over all of them** | **{mean:,.0f}** |")
    model = resnet50().cuda().eval().to(memory_format=torch.channels_last)
    batch = (images.float() / 255).contiguous(memory_format=torch.channels_last)
    for kind in (torch.float32, torch.float16):
        with torch.inference_mode(), torch.autocast("cuda", torch.float16, enabled=kind == torch.float16):
            print(f"| ResNet-50, {kind} | {rate(lambda _: model(batch), options.batch, options.calls):,.0f} |")


if __name__ == "__main__":
    main()
