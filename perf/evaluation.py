"""What evaluating on the fly costs beside the bare forward passes: python perf/evaluation.py IMAGES [--images 50].

For every corruption of imagenet-c at severity 3, with and without the JPEG storage of the published set: the time of
the whole way (corrupt, store, preprocess, classify, rank, keep) over that of the bare forward passes on the same
batches. Both are the best of `--rounds` rounds, in alternation. The model is EfficientNet-Lite0 (see lite0.py) or any
other that `blemish run` takes.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from pathlib import Path

import torch

import blemish
from blemish.data.cache import load
from blemish.data.source import stratified_order
from blemish.evaluation.measure import measure
from blemish.evaluation.plan import plan_for


def main() -> None:
    """Time and print."""
    options = _options()
    sys.path.insert(0, str(Path(__file__).parent))
    model = blemish.open_model(options.model, device=options.device)
    source = blemish.open_source(options.data)
    rows = stratified_order(source.labels, source.ids)[: options.images]
    images = load(source.take(rows), resize=None, crop=options.crop)
    benchmark = blemish.load_benchmark("imagenet-c")
    ready = [model.preprocessing(images.batch(part).to(model.device)) for part in _batches(len(images), options.batch)]
    conditions = [condition for condition in benchmark.conditions if condition.severity == 3]
    threads = torch.get_num_threads()
    print(f"{model.name} on {model.device}, {len(images)} images in batches of {options.batch}, {threads} threads")
    print("| corruption | forward, ms/image | raw | jpeg85 |\n|---|---:|---:|---:|")
    ratios: dict[str, list[float]] = {"raw": [], "jpeg85": []}
    for condition in conditions:
        bare, times = math.inf, dict.fromkeys(ratios, math.inf)
        for _ in range(options.rounds):
            bare = min(bare, _seconds(lambda: _forward(model, ready), model.device))
            for storage in times:
                protocol = blemish.Protocol(preset="imagenet", storage=storage)
                plan = plan_for(model, images, [condition], protocol=protocol, batch_size=options.batch)
                work = _seconds(lambda plan=plan: list(measure(plan)), model.device)
                times[storage] = min(times[storage], work)
        for storage, seconds in times.items():
            ratios[storage].append(seconds / bare)
        shown = " | ".join(f"{ratios[storage][-1]:.2f}" for storage in ratios)
        print(f"| {condition.group} | {1000 * bare / len(images):.1f} | {shown} |", flush=True)
    means = " | ".join(f"{math.exp(sum(map(math.log, values)) / len(values)):.2f}" for values in ratios.values())
    print(f"| **geometric mean** | | {means} |")


def _batches(count: int, size: int) -> list[range]:
    return [range(start, min(count, start + size)) for start in range(0, count, size)]


@torch.inference_mode()
def _forward(model: blemish.Classifier, ready: list[torch.Tensor]) -> None:
    for batch in ready:
        model.forward(batch)


def _seconds(work: object, device: torch.device) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    work()  # type: ignore[operator]
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="images that blemish run takes")
    parser.add_argument("--model", default="python:lite0:make")
    parser.add_argument("--images", type=int, default=50)
    parser.add_argument("--batch", type=int, default=25)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--crop", type=int, default=224)
    parser.add_argument("--device", default="cpu")
    return parser.parse_args()


if __name__ == "__main__":
    main()
