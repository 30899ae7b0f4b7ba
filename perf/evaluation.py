"""What evaluating on the fly costs beside the bare forward passes: python perf/evaluation.py IMAGES [--images 48].

For every corruption of imagenet-c at severity 3, with and without the JPEG storage of the published set: the time of
the whole way (corrupt, store, preprocess, classify, rank, keep) over that of the bare forward passes on the same
batches. They take turns; a round gives one ratio, its median over `--rounds` rounds stands in the table. The geometric
mean over the corruptions has an interval: 95 % of 2,000 means over rounds drawn again, with replacement, for each
corruption. On a CPU it is CPU time on one thread, so that other processes count as little as they can; on a GPU the
clock's. The model is EfficientNet-Lite0 (see lite0.py) or any other that `blemish run` takes.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

import blemish
from blemish.data.cache import load
from blemish.data.source import stratified_order
from blemish.evaluation.measure import measure
from blemish.evaluation.plan import plan_for
from cpu_settings import settle


def main() -> None:
    """Time and print."""
    options = _options()
    sys.path.insert(0, str(Path(__file__).parent))
    if options.device == "cpu":
        settle()
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
    ratios: dict[str, list[list[float]]] = {"raw": [], "jpeg85": []}
    for condition in conditions:
        bare, found = [], {storage: list[float]() for storage in ratios}
        for turn in range(options.rounds + 1):
            times = {"": _seconds(lambda: _forward(model, ready), model.device)}
            for storage in ratios:
                protocol = blemish.Protocol(preset="imagenet", storage=storage)
                plan = plan_for(model, images, [condition], protocol=protocol, batch_size=options.batch)
                times[storage] = _seconds(lambda plan=plan: list(measure(plan)), model.device)
            # Before and after what stands between, so that a slow spell hits both.
            forward = (times[""] + _seconds(lambda: _forward(model, ready), model.device)) / 2
            if turn:  # the first warms up, and compiles
                bare.append(forward)
                for storage, values in found.items():
                    values.append(times[storage] / forward)
        for storage, values in found.items():
            ratios[storage].append(values)
        shown = " | ".join(f"{np.median(values):.3f}" for values in found.values())
        print(f"| {condition.group} | {1000 * np.median(bare) / len(images):.1f} | {shown} |", flush=True)
    means = " | ".join(_with_interval(np.array(values)) for values in ratios.values())
    print(f"| **geometric mean** | | {means} |")


def _with_interval(ratios: NDArray[np.float64]) -> str:
    """The geometric mean over rows of the medians over columns, and an interval from drawing columns again."""
    rng = np.random.default_rng(0)
    rows, rounds = ratios.shape
    drawn = ratios[np.arange(rows)[:, None], rng.integers(0, rounds, (2000, rows, rounds))]
    low, high = np.percentile(np.exp(np.log(np.median(drawn, axis=2)).mean(1)), (2.5, 97.5))
    return f"{np.exp(np.log(np.median(ratios, axis=1)).mean()):.3f} [{low:.3f}, {high:.3f}]"


def _batches(count: int, size: int) -> list[range]:
    return [range(start, min(count, start + size)) for start in range(0, count, size)]


@torch.inference_mode()
def _forward(model: blemish.Classifier, ready: list[torch.Tensor]) -> None:
    for batch in ready:
        model.forward(batch)


def _seconds(work: Callable[[], object], device: torch.device) -> float:
    """CPU time, or on a GPU the clock's."""
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    if device.type == "cuda":
        torch.cuda.synchronize()
    start = clock()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return clock() - start


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", help="images that blemish run takes")
    parser.add_argument("--model", default="python:lite0:make")
    parser.add_argument("--images", type=int, default=48)
    parser.add_argument("--batch", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--crop", type=int, default=224)
    parser.add_argument("--device", default="cpu")
    return parser.parse_args()


if __name__ == "__main__":
    main()
