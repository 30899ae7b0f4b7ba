"""One overlap matrix over all catalogues, on CIFAR-size images: ImageNet-C, NOC, Syn2Nat, C̄, optics, LAION-C, sensors.

    python perf/overlap_all.py TRAIN.npz TEST.npz OUT [--seed 0] [--seconds 500] [--frost DIR] [--earlier FILE …]
    python perf/overlap_all.py TRAIN.npz TEST.npz OUT --from-scratch 12

Trains a standard network, and fine-tunes it on each of the 109 corruptions (--catalogues names others), half of every
batch corrupted, with the trainer of `blemish train-overlap`. Corruptions have their published severities: Syn2Nat at 5,
all others at random between 1 and 5; those of sensors are the ones that need no codec. Every network is measured under
every corruption, and under the noise of MSCR. --from-scratch trains networks of that many corruptions from the
beginning instead, to see how far fine-tuning misleads. Several seeds can share a GPU, each in a process of its own.

OUT gets, per seed and way of training, a file of records (.npz) that is written after every network, a small list of
what is done (.json) and the standard network (.pt). Networks are not kept but for that one. No network is begun that
would not end within --seconds. Another call with the same OUT goes on; elsewhere, name the records or the list with
--earlier and the standard network with --standard. `perf/overlap_all_tables.py` reads the records.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from blemish.benchmarks.condition import CLEAN, Condition, parse_condition, step_of
from blemish.benchmarks.files import load_benchmark
from blemish.core.errors import InputError
from blemish.corruptions.catalog import catalog
from blemish.studies.overlap.plan import STANDARD, build_net
from blemish.studies.overlap.training import MEAN, STD, Corruptor, Schedule, Trainer
from mscr_cifar import COPY, PUBLISHED, noisy_sets
from network_records import Deadline, Records, compiled, corrupted_sets, measuring, read_images, right_answers

NOISE = {"linf": (COPY["linf"], PUBLISHED.epsilon_min), "l2": (COPY["l2"],)}
PAPERS = ("cifar10-c", "noc-candidates", "syn2nat-candidates")
CATALOGUES = (*PAPERS, "imagenet-c-bar", "cifar10-c-bar", "opticsbench", "laion-c")
SENSORS = tuple(
    f"sensor:{name}@1-5"
    for name in ("low_light", "iso_noise", "color_quant", "rolling_shutter", "dead_pixels", "lens_dirt")
)
PRESET = "cifar"


def published_conditions(benchmarks: Sequence[str] = CATALOGUES) -> list[str]:
    """Every corruption of some benchmarks once, at its severities there: a range where there are several."""
    ends: dict[str, list[float]] = {}
    for name in benchmarks:
        for condition in load_benchmark(name).conditions:
            for step in condition.steps:
                ends.setdefault(step.name, []).extend((step.low, step.high))
    return [str(step_of(catalog[name], min(values), max(values))) for name, values in ends.items()]


def sampled(texts: list[str], count: int) -> list[str]:
    """Some of them, drawn once and for all; the order in the list is kept."""
    return [texts[k] for k in sorted(random.Random(0).sample(range(len(texts)), min(count, len(texts))))]


def schedules(options: argparse.Namespace) -> tuple[Schedule, Schedule]:
    """From scratch, and for fine-tuning: a short one at a tenth of the rate, falling as the long one does."""
    long = Schedule(epochs=options.epochs, batch=options.batch, rate=options.rate)
    return long, Schedule(epochs=options.tune_epochs, batch=options.batch, rate=options.rate / 10)


class Study:
    """One seed: the standard network and those of the corruptions, one after the other in the same shell."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.clock = time.perf_counter()
        self.device = torch.device(options.device)
        self.images, self.labels, one = read_images(options.train, options.limit, self.device)
        self.test, self.answers, other = read_images(options.test, options.test_images, self.device)
        self.long, self.short = schedules(options)
        mine = catalog if options.frost is None else catalog.with_frost(options.frost)
        texts = [*published_conditions(options.catalogues), *options.also]
        if options.drawn_frost:
            texts = [text.replace("frost@", "frost_drawn@") for text in texts]
        if options.quick:
            texts = texts[::16]
        measured = [parse_condition(text, catalog=mine) for text in texts]
        self.measured = {condition.group: condition for condition in measured}
        scratch = options.from_scratch
        chosen = texts if scratch is None else sampled(texts, scratch)
        self.trained = [parse_condition(text, catalog=mine).group for text in chosen]
        self.way = "tuned" if scratch is None else "scratch"
        for condition in measured:
            condition.check_files()
        stem = f"overlap_all-{self.way}-seed{options.seed}"
        self.file, self.index = (options.out / f"{stem}{ending}" for ending in (".npz", ".json"))
        self.standard_file = options.out / f"standard-seed{options.seed}.pt"
        options.out.mkdir(parents=True, exist_ok=True)
        earlier = [self.file, self.index, *options.earlier]
        self.records = Records.continued(self._protocol(one, other), earlier)

    def _protocol(self, *digests: str) -> dict[str, Any]:
        noise = [f"{norm}:{eps:g}" for norm, values in NOISE.items() for eps in values]
        return {
            "experiment": "overlap_all",
            "way": self.way,
            "net": self.options.arch,
            "schedule": asdict(self.long),
            "fine_tune": asdict(self.short) if self.way == "tuned" else None,
            "seed": self.options.seed,
            "train_images": len(self.images),
            "test_images": len(self.test),
            "data": list(digests),
            "preset": PRESET,
            "measured_in": "float16" if self.device.type == "cuda" else "float32",
            "trained": self.trained,
            "sets": {"noise": noise, "corrupted": ["clean", *(str(c) for c in self.measured.values())]},
        }

    def work(self) -> None:
        """Train and measure what is missing, for as long as there is time."""
        missing = [name for name in (STANDARD, *self.trained) if name not in self.records.facts]
        print(f"{len(self.records.facts)} networks are there, {len(missing)} are missing", flush=True)
        if not missing:
            return
        seed = self.options.seed
        conditions: list[Condition] = [CLEAN, *self.measured.values()]
        self.corrupted = corrupted_sets(self.test, conditions, seed=seed, preset=PRESET)
        self.shell = self._fresh().to(self.device, memory_format=torch.channels_last)
        wanted = self.device.type == "cuda" and not self.options.plain
        shape, plain = self.images.shape[1:], torch.contiguous_format
        self.forward = compiled(self.shell, shape, self.options.batch, self.device, wanted=wanted, layout=plain)
        begun = time.perf_counter() - self.clock
        print(f"ready after {begun:.0f} s", flush=True)
        deadline = Deadline(self.options.seconds - begun)
        for name, facts in self.records.facts.items():
            if name != STANDARD or self.way == "scratch":
                deadline.took(facts["train_seconds"] + facts["test_seconds"])
        for name in missing:
            if not deadline.allows_another():
                print("no time for another network; call again to go on", flush=True)
                return
            seconds = self._one(name)
            if name != STANDARD or self.way == "scratch":
                deadline.took(seconds)
        print("all networks are there", flush=True)

    def _fresh(self) -> torch.nn.Module:
        torch.manual_seed(self.options.seed)
        return build_net(self.options.arch, 10)

    def _start(self, name: str) -> dict[str, Tensor]:
        """The weights to begin with: random ones, or those of the standard network."""
        if name == STANDARD or self.way == "scratch":
            return self._fresh().state_dict()
        file = self.options.standard or self.standard_file
        if not file.is_file():
            raise InputError(f"{file}: no standard network to begin with; expected --standard FILE of the same seed")
        state: dict[str, Tensor] = torch.load(file, map_location="cpu", weights_only=True)
        return {key: value.float() if value.dtype == torch.float16 else value for key, value in state.items()}

    def _one(self, name: str) -> float:
        start = time.perf_counter()
        schedule = self.long if name == STANDARD or self.way == "scratch" else self.short
        self.shell.load_state_dict(self._start(name))
        corruptor = Corruptor(preset=PRESET)
        if name != STANDARD:
            step = self.measured[name].steps[0]
            corruptor = Corruptor((step.unit,), (step.low, step.high), PRESET)  # type: ignore[arg-type]
        seed = self.options.seed
        trainer = Trainer(self.forward, [corruptor], self.images, self.labels, schedule, self.device, seed=seed)
        losses = [trainer.run_epoch() for _ in range(schedule.epochs)]
        if name == STANDARD and self.way == "tuned":
            self._keep_standard()
        trained = time.perf_counter()
        self.forward.eval()
        with torch.inference_mode():
            noise = right_answers(self._predict, noisy_sets(self.test, NOISE, seed, seed), self.answers)
            corrupted = right_answers(self._predict, self.corrupted, self.answers)
        ended = time.perf_counter()
        facts = {
            "losses": losses,
            "train_seconds": round(trained - start, 2),
            "test_seconds": round(ended - trained, 2),
            "device": torch.cuda.get_device_name() if self.device.type == "cuda" else "cpu",
            "torch": torch.__version__,
        }
        self.records.add(name, facts, noise=noise, corrupted=corrupted)
        self.records.write(self.file)
        self.records.write_index(self.index)
        clean, mean = corrupted[0].double().mean(), corrupted[1:].double().mean()
        spent = f"{trained - start:.1f} + {ended - trained:.1f} s"
        print(f"{name}: clean {clean:.4f}, corrupted {mean:.4f}, {spent}", flush=True)
        return ended - start

    def _keep_standard(self) -> None:
        """Write the network down at half precision, and go on with exactly that, so that it can begin others later."""
        state = {
            key: value.half() if value.is_floating_point() and value.ndim > 1 else value
            for key, value in self.shell.state_dict().items()
        }
        part = self.standard_file.with_suffix(".part")
        torch.save({key: value.cpu().contiguous() for key, value in state.items()}, part)
        part.replace(self.standard_file)
        self.shell.load_state_dict(
            {key: value.float() if value.dtype == torch.float16 else value for key, value in state.items()}
        )

    def _predict(self, images: Tensor) -> Tensor:
        values = images.float() / 255 if images.dtype == torch.uint8 else images
        mean, std = (torch.tensor(three, device=self.device).view(1, 3, 1, 1) for three in (MEAN, STD))
        values = ((values - mean) / std).contiguous(memory_format=torch.channels_last)
        with measuring(self.device):
            return self.forward(values).argmax(1)  # type: ignore[no-any-return]


def main() -> None:
    """Parse the options and work."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", help="training images, .npz")
    parser.add_argument("test", help="test images, .npz")
    parser.add_argument("out", type=Path, help="folder for the records and the standard network")
    parser.add_argument(
        "--earlier", type=Path, nargs="*", default=[], help="records (.npz) or lists (.json) to go on from"
    )
    parser.add_argument("--standard", type=Path, help="the standard network to begin with, where it is not in OUT")
    parser.add_argument("--from-scratch", type=int, metavar="COUNT", help="train networks of COUNT corruptions anew")
    parser.add_argument("--catalogues", nargs="+", default=CATALOGUES, help="benchmarks that name the corruptions")
    parser.add_argument("--also", nargs="*", default=SENSORS, help="further conditions, such as my_corruption@1-5")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=500, help="begin no network that would end later")
    parser.add_argument("--epochs", type=int, default=20, help="from scratch")
    parser.add_argument("--tune-epochs", type=int, default=3)
    parser.add_argument("--batch", type=int, default=500, help="a divisor of 50,000 keeps all batches of one size")
    parser.add_argument("--rate", type=float, default=0.2, help="from scratch; a tenth of it for fine-tuning")
    parser.add_argument("--arch", default="blemish.studies.separation.nets:wrn_16_4")
    parser.add_argument("--limit", type=int, help="training images")
    parser.add_argument("--test-images", type=int, default=5000)
    parser.add_argument("--frost", help="folder with the photographs of frost, where they are not installed")
    parser.add_argument("--drawn-frost", action="store_true", help="frost_drawn in place of frost: no photographs")
    parser.add_argument("--plain", action="store_true", help="do not compile the net")
    parser.add_argument("--quick", action="store_true", help="a tiny net, few images, five corruptions: to try it out")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    if options.quick:
        options.arch, options.epochs, options.tune_epochs, options.batch = "small_net", 1, 1, 50
        options.limit, options.test_images = options.limit or 300, 100
    torch.backends.cudnn.benchmark = True
    Study(options).work()


if __name__ == "__main__":
    main()
