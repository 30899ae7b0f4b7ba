"""Overlap from scratch and by fine-tuning on CIFAR-size images: the same networks, both ways, with times.

    python perf/overlap_cifar.py TRAIN.npz TEST.npz OUT [--epochs 20] [--tune-epochs 4] [--arch resnet18_small]

Writes OUT/scratch and OUT/tuned (networks, records and correct.npz) and OUT/times.json. Then

    blemish build overlap-scores OUT/scratch/correct.npz -o scratch.csv --intervals intervals.csv --figure scratch.png
    blemish build compare scratch.csv tuned.csv --threshold 0.3

`docs/research/fine-tuning-overlap.md` says what came of it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from pathlib import Path

import numpy as np
import torch

from blemish.data.array_source import array_source
from blemish.data.cache import load
from blemish.studies.construction.gather import gather_correct
from blemish.studies.overlap.harness import Plan, train_all
from blemish.studies.overlap.measure import measure_all
from blemish.studies.overlap.training import Schedule

CORRUPTIONS = (
    "gaussian_noise",
    "impulse_noise",
    "defocus_blur",
    "motion_blur",
    "fog",
    "contrast",
    "brightness",
    "elastic_transform",
    "pixelate",
    "jpeg_compression",
)


def main() -> None:
    """Train, measure, and write the times."""
    options = _options()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train, test = (array_source(path) for path in (options.train, options.test))
    if options.limit:
        train, test = train.take(range(options.limit)), test.take(range(options.limit))
    images = load(train)
    pixels = images.batch(range(len(images))).to(device)
    labels = torch.from_numpy(images.labels).to(device)
    times = {"device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu", "images": len(train)}
    scratch = Plan(
        CORRUPTIONS[: options.corruptions],
        options.arch,
        int(images.labels.max()) + 1,
        Schedule(epochs=options.epochs, batch=options.batch),
        preset="cifar",
    )
    # A short schedule at a tenth of the rate, falling as the long one does.
    tune = Schedule(epochs=options.tune_epochs, batch=options.batch, rate=0.01)
    for name, plan in (("scratch", scratch), ("tuned", _tuned(scratch, tune))):
        folder = Path(options.out) / name
        if name == "tuned":  # both ways share the standard network
            shared = Path(options.out, "scratch", "models", "standard.pt")
            (folder / "models").mkdir(parents=True, exist_ok=True)
            shutil.copy(shared, folder / "models" / "standard.pt")
        clock = time.perf_counter()
        trained = train_all(
            plan,
            pixels,
            labels,
            folder,
            device=device,
            together=options.together,
            report=lambda title, done, of, loss: print(f"{title}: epoch {done} of {of}, loss {loss:.3f}", flush=True),
        )
        times[name] = {
            "all_seconds": time.perf_counter() - clock,
            "seconds": {model.name: model.seconds for model in trained},
        }
        clock = time.perf_counter()
        found = gather_correct(measure_all(plan, trained, test, folder / "results", device=device, batch_size=2000))
        np.savez_compressed(folder / "correct.npz", correct=found.correct, models=found.models, settings=found.settings)
        for model, accuracies in zip(found.models, found.correct.mean(2), strict=True):
            print(f"{name} {model}: {' '.join(f'{value:.3f}' for value in accuracies)}", flush=True)
        times[name]["measuring_seconds"] = time.perf_counter() - clock
        Path(options.out, "times.json").write_text(json.dumps(times, indent=2), encoding="utf-8")


def _tuned(plan: Plan, schedule: Schedule) -> Plan:
    return Plan(plan.corruptions, plan.architecture, plan.classes, plan.schedule, schedule, preset=plan.preset)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train")
    parser.add_argument("test")
    parser.add_argument("out")
    parser.add_argument("--arch", default="resnet18_small")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--tune-epochs", type=int, default=4)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--corruptions", type=int, default=len(CORRUPTIONS))
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--together", type=int, default=None)
    return parser.parse_args()


if __name__ == "__main__":
    main()
