"""CCC on CIFAR-10, from calibration to collapse: python perf/ccc_cifar.py DATA.npz WEIGHTS.th OUT [--images 150000].

DATA holds the test set, WEIGHTS a CIFAR ResNet-20. Calibrates the network on a subset, walks at two target accuracies,
runs every adaptation method on each stream, and writes results.json and three figures to OUT. Calibration is kept in
OUT/calibration: run again, it is not repeated. On a GPU, methods run in processes of their own, side by side.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from blemish.data.array_source import array_source
from blemish.data.cache import load
from blemish.data.source import stratified_order
from blemish.evaluation.executors import Calls, Done, Processes
from blemish.models.base import Preprocessing
from blemish.models.resnet_cifar import resnet20
from blemish.models.speed import speed_up
from blemish.models.torch_module import from_module, load_weights
from blemish.studies.adaptation.base import Levels
from blemish.studies.adaptation.methods import METHODS, make_method
from blemish.studies.streams.adaptive import Refinement, compared
from blemish.studies.streams.calibration import Bench, calibrate
from blemish.studies.streams.figures import run_figure, surface_figure, walk_figure
from blemish.studies.streams.images import from_tensor
from blemish.studies.streams.levels import LEVELS
from blemish.studies.streams.paths import find_path
from blemish.studies.streams.planning import ENDS, PathRule, make_walk, usable_corruptions
from blemish.studies.streams.scores import default_window, find_collapse, held_accuracy, segment_accuracies, summary
from blemish.studies.streams.stream import Stream
from blemish.studies.streams.surface import monotonicity
from blemish.studies.streams.walks import Walk, read_walk

IMAGENET_MEAN, IMAGENET_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def network(weights: str, device: str) -> Levels:
    """The network with its preprocessing: 8-bit images in, logits out."""
    net = load_weights(resnet20(), weights).eval()
    return Levels(net, Preprocessing(mean=IMAGENET_MEAN, std=IMAGENET_STD)).to(device).eval()


def pixels(data: str, count: int | None) -> tuple[Tensor, Tensor]:
    """All images (N, 3, 32, 32) and labels, in an order in which every beginning is balanced over the classes."""
    source = array_source(data)
    rows = stratified_order(source.labels, source.ids)[:count]
    levels = np.stack([np.asarray(source.read(int(row))) for row in rows])
    return torch.from_numpy(levels).permute(0, 3, 1, 2).contiguous(), torch.from_numpy(source.labels[rows])


def bench(options: argparse.Namespace) -> Bench:
    """What is calibrated: the network in float16 on a GPU, where only its argmax matters."""
    net = load_weights(resnet20(), options.weights).eval()
    preprocessing = Preprocessing(mean=IMAGENET_MEAN, std=IMAGENET_STD)
    model = from_module(net, name="resnet20", preprocessing=preprocessing, device=options.device)
    if options.device.startswith("cuda"):
        model = speed_up(model, precision="float16", channels_last=True)
    source = array_source(options.data)
    rows = stratified_order(source.labels, source.ids)[: options.subset]
    return Bench(model, load(source.take(rows)), seed=1, preset="cifar")


def calibration(options: argparse.Namespace) -> tuple[dict[Any, Any], dict[str, Any]]:
    """The surfaces of all pairs, and what the adaptive mode saved and cost against full grids of a few pairs."""
    place = bench(options)
    how = Refinement(tuple(options.targets))
    start = time.perf_counter()
    surfaces = calibrate(
        place, options.corruptions, folder=options.out / "calibration", refinement=how, progress=say_every(30)
    )
    seconds = time.perf_counter() - start
    checked = {}
    names = options.corruptions
    for i in range(options.check):
        pair = names[(5 * i) % len(names)], names[(5 * i + 2 + i) % len(names)]
        if pair in surfaces:
            full = place.surface(*pair)
            checked["+".join(pair)] = {
                "interpolation": compared(surfaces[pair], full, how)._asdict(),
                "monotonicity": monotonicity(full)._asdict(),
            }
            surfaces[(*pair, "full")] = full
    cells = sum(surface.evaluated for pair, surface in surfaces.items() if len(pair) == 2)
    report = {
        "pairs": len(names) * (len(names) - 1),
        "images": options.subset,
        "cells_measured": cells,
        "saving": 1 - cells / (len(names) * (len(names) - 1) * len(place.grid) ** 2),
        "seconds": seconds,
        "against_full_grids": checked,
        "seconds_with_checks": time.perf_counter() - start,
    }
    return surfaces, report


def say_every(count: int) -> Any:
    """A progress report now and then."""

    def say(done: int, total: int) -> None:
        if done % count == 0 or done == total:
            print(f"  {done} of {total}", flush=True)

    return say


def generate(options: argparse.Namespace, walk: Walk, images: Tensor, labels: Tensor, place: Path) -> float:
    """Corrupt the whole stream once, as fast as the device can, and keep it for the methods; images per second."""
    start = time.perf_counter()
    stream = Stream(
        from_tensor(images.to(options.device), labels.numpy(), name="cifar10"),
        walk,
        batch=options.speed,
        length=options.images,
        preset="cifar",
        seed=options.seed,
    )
    shown = np.lib.format.open_memmap(
        place / "images.npy", mode="w+", dtype=np.uint8, shape=(options.images, *images.shape[1:])
    )
    answers = np.empty(options.images, dtype=np.int64)
    for batch in stream:
        first = int(batch.positions[0])
        shown[first : first + len(batch.labels)] = batch.images.cpu().numpy()
        answers[first : first + len(batch.labels)] = batch.labels.numpy()
    shown.flush()
    np.save(place / "labels.npy", answers)
    return options.images / (time.perf_counter() - start)


def run_method(job: tuple[str, str, str, str, int, int]) -> float:
    """One method over one stream; its correctness is left in a file."""
    name, weights, device, place, batch, reset = job
    shown = np.load(Path(place) / "images.npy", mmap_mode="r")
    labels = torch.from_numpy(np.load(Path(place) / "labels.npy"))
    clean = torch.from_numpy(np.load(Path(place).parent / "clean.npy")).to(device)
    changes = {"every": reset} if name == "rdumb" else {}
    method = make_method(name, network(weights, device), settings="cifar", clean=clean.split(64), **changes)
    everything = torch.from_numpy(np.array(shown)).to(device)
    start = time.perf_counter()
    found = [method.adapt(part).argmax(1) for part in everything.split(batch)]
    correct = torch.cat(found).cpu() == labels
    np.save(Path(place) / f"{name}.npy", correct.numpy())
    return len(labels) / (time.perf_counter() - start)


def study(options: argparse.Namespace) -> dict[str, Any]:
    """Everything, and the numbers that came out of it."""
    images, labels = pixels(options.data, options.pool)
    options.out.mkdir(parents=True, exist_ok=True)
    subset = slice(0, options.subset)
    np.save(options.out / "clean.npy", images[subset][:2000].numpy())
    print(f"{len(images)} images; calibrating on {options.subset}", flush=True)
    surfaces, report = calibration(options)
    full = [surface for pair, surface in surfaces.items() if len(pair) == 3]
    surfaces = {pair: surface for pair, surface in surfaces.items() if len(pair) == 2}
    if full:
        planes = [(surface, [find_path(surface, target) for target in options.targets]) for surface in full[:2]]
        surface_figure(planes, options.out / "surfaces.png")
    results: dict[str, Any] = {
        "settings": {key: str(value) for key, value in vars(options).items()},
        "calibration": report,
        "streams": {},
    }
    jobs = []
    for target in options.streams:
        place = options.out / f"target-{100 * target:g}"
        place.mkdir(exist_ok=True)
        walk = chosen_walk(options, surfaces, target, place)
        rate = generate(options, walk, images, labels, place)
        results["streams"][f"{100 * target:g}"] = {
            "corruptions": walk.protocol.corruptions,
            "steps": len(walk.steps),
            "calibrated_accuracy": walk.accuracy,
            "images_per_second": rate,
        }
        print(f"stream at {target:g}: {len(walk.steps)} steps, {rate:,.0f} images/s", flush=True)
        jobs += [
            (name, options.weights, options.device, str(place), options.batch, options.reset)
            for name in options.methods
        ]
    speeds: dict[str, Any] = {}
    start = time.perf_counter()
    for outcome in Processes(options.jobs, threads=1).run(Calls(run_method), jobs):
        # One method that fails does not take the others' results with it.
        name = f"{Path(outcome.unit[3]).name} {outcome.unit[0]}"
        speeds[name] = outcome.result if isinstance(outcome, Done) else outcome.reason
        print(f"  {name}: {speeds[name]} images/s", flush=True)
    results["methods_seconds"] = time.perf_counter() - start
    results["images_per_second"] = speeds
    score(options, results)
    return results


def chosen_walk(options: argparse.Namespace, surfaces: dict[Any, Any], target: float, place: Path) -> Walk:
    """A closed walk between the corruptions that can hold the target."""
    names = usable_corruptions(surfaces, target, tolerance=options.tolerance, names=options.corruptions)
    rule = PathRule(target, ends=options.ends, measured_only=True)
    walk = make_walk(surfaces, rule, images=options.images, speed=options.speed, names=names, seed=43, closed=True)
    (place / "walk.json").write_text(walk.to_json(), encoding="utf-8")
    return walk


def score(options: argparse.Namespace, results: dict[str, Any]) -> None:
    """Add the scores of all methods, and draw them."""
    window = default_window(options.images)
    drawn = {}
    for target in options.streams:
        place = options.out / f"target-{100 * target:g}"
        walk = read_walk(place / "walk.json")
        correct = {name: np.load(place / f"{name}.npy") for name in options.methods if (place / f"{name}.npy").exists()}
        entry = results["streams"][f"{100 * target:g}"]
        held = held_accuracy(correct["none"], walk, target)
        entry["held"] = held._asdict()
        entry["methods"] = {}
        for name, hits in correct.items():
            fall = None if name == "none" else find_collapse(hits, correct["none"], window)
            at = None if fall is None else fall._asdict() | {"step": str(walk.steps[walk.step_at(fall.at % len(walk))])}
            entry["methods"][name] = summary(hits, window)._asdict() | {
                "segments": [round(segment.accuracy, 4) for segment in segment_accuracies(hits, walk)],
                "collapse": at,
            }
        walk_figure(walk, place / "walk.png", images=options.images, correct=correct["none"])
        title = f"target {100 * target:g} %: unadapted {100 * held.mean:.1f} % over steps"
        drawn[title] = correct
    run_figure(drawn, options.out / "methods.png", window=window)


def main() -> None:
    """Run the study and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("weights")
    parser.add_argument("out", type=Path)
    parser.add_argument("--targets", type=float, nargs="+", default=[0.5, 0.3])
    parser.add_argument("--streams", type=float, nargs="+", default=None, help="targets to walk at; default all")
    parser.add_argument("--corruptions", nargs="+", default=list(LEVELS["easy"].corruptions))
    parser.add_argument("--subset", type=int, default=1000, help="images to calibrate on")
    parser.add_argument("--pool", type=int, default=None, help="images of the data set to use; default all")
    parser.add_argument("--images", type=int, default=150_000, help="length of each stream")
    parser.add_argument("--speed", type=int, default=1000, help="images per step")
    parser.add_argument("--batch", type=int, default=200, help="images per adaptation step")
    parser.add_argument(
        "--reset", type=int, default=320, help="batches between RDumb's resets: 64,000 images, as in the paper"
    )
    parser.add_argument("--tolerance", type=float, default=0.04, help="how near a corruption alone must come")
    parser.add_argument("--ends", choices=ENDS, default="joint", help="paths chosen together, or each for itself")
    parser.add_argument("--check", type=int, default=3, help="pairs to calibrate in full, for comparison")
    parser.add_argument("--methods", nargs="+", default=list(METHODS))
    parser.add_argument("--jobs", type=int, default=9, help="methods at a time")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    options.streams = options.streams or options.targets
    start = time.perf_counter()
    results = study(options)
    results["seconds"] = time.perf_counter() - start
    (options.out / "results.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    for target, entry in results["streams"].items():
        print(f"\ntarget {target} %, unadapted over steps {100 * entry['held']['mean']:.1f} %, ", end="")
        print(f"mean deviation {100 * entry['held']['deviation']:.1f} points\n")
        print("| method | min | mean | max | accuracy | collapse at image |\n|---|---:|---:|---:|---:|---|")
        for name, row in sorted(entry["methods"].items(), key=lambda item: -item[1]["accuracy"]):
            values = " | ".join(f"{100 * row[key]:.1f}" for key in ("minimum", "mean", "maximum", "accuracy"))
            fall = row["collapse"]
            where = (
                "never"
                if fall is None
                else f"{fall['at']:,} ({fall['step']}), {100 * fall['loss']:.1f} points at worst"
            )
            print(f"| {name} | {values} | {where} |")
    for left_over in (options.out / "clean.npy", *options.out.glob("target-*/images.npy")):
        left_over.unlink()
    print(f"\n{results['seconds']:.0f} s in all, calibration {results['calibration']['seconds']:.0f} s")


if __name__ == "__main__":
    main()
