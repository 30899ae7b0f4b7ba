"""One overlap matrix over all catalogues, on CIFAR-size images: ImageNet-C, NOC, Syn2Nat, C̄, optics, LAION-C, sensors.

    python perf/overlap_all.py TRAIN.npz TEST.npz OUT [--seed 0] [--seconds 500] [--frost DIR] [--earlier DIR …]
    python perf/overlap_all.py TRAIN.npz TEST.npz OUT --from-scratch 8 [--part 0 3]

Trains a standard network, and fine-tunes it on each of the 128 corruptions (--catalogues names others), half of every
batch corrupted, with the trainer of `blemish train-overlap`. Corruptions have their published severities: Syn2Nat at 5,
all others from 1 to 5, drawn by lot for every image; those of sensors are the ones that need no codec. Every network is
measured under every corruption, and under the noise of MSCR. --from-scratch trains networks of that many corruptions
from the beginning instead, to see how far fine-tuning misleads; --part K N takes every N-th of all from the K-th.

OUT gets, per seed and way of training, a file of records (.npz) that is written after every network, and the standard
network (.pt). Other networks are not kept. No network is begun that would not end within --seconds. Another call with
the same OUT goes on; so does one whose --earlier names folders with records, or lists of them (.json), and the standard
network. A corruption that does not run on the device is left out, and a network that fails is passed over, with a word.

**Three seeds on a GPU that is lent for ten minutes at a time.** First, small enough to be sent: 25,000 and 2,000 images
of JPEG copies of CIFAR-10, and the photographs of frost.

    mkdir -p gpu/done; blemish fetch-frost -o gpu/frost
    python - <<"END"
    import numpy as np
    for name, count in (("train", 25_000), ("test", 2_000)):
        file = np.load(f"cifar10_jpeg_{name}.npz")
        ends = file["offsets"][: count + 1]
        parts = {"bytes": file["bytes"][: ends[-1]], "labels": file["labels"][:count], "classes": file["classes"]}
        np.savez(f"gpu/{name}.npz", offsets=ends, **parts)
    END

There, first the standard networks, then everything at once: nine parts, and three of networks from scratch. NVIDIA's
multi-process service lets all of them work on the GPU at the same time; without it they take turns.

    export PYTHONPATH=src OMP_NUM_THREADS=1 TORCHINDUCTOR_COMPILE_THREADS=1; nvidia-cuda-mps-control -d
    R="python3 perf/overlap_all.py gpu/train.npz gpu/test.npz OUT --test-images 2000 --seconds 550 --frost gpu/frost"
    for k in 0 1 2; do $R --seed $k --part 0 129 --tune-epochs 2 & done; wait
    for k in 0 1 2; do for p in 0 1 2; do $R --seed $k --part $p 3 --tune-epochs 2 & done; done
    for p in 0 1 2; do $R --from-scratch 8 --part $p 3 & done; wait

The last two lines again until all say "all networks are there". On an H200 a standard network took 19 s, getting ready
91 s, and the 393 others 9 minutes. On another machine, lists are enough to go on from, and small:

    python perf/network_records.py gpu/done OUT/*.npz

In the end `perf/overlap_all_tables.py` reads the records:

    python perf/overlap_all_tables.py tables OUT/*-tuned-*.npz --scratch OUT/*-scratch-*.npz
"""

from __future__ import annotations

import argparse
import random
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from blemish.benchmarks.condition import Condition, parse_condition, step_of
from blemish.benchmarks.files import load_benchmark
from blemish.core.errors import InputError
from blemish.core.rng import CounterRng
from blemish.corruptions.base import Corruption
from blemish.corruptions.catalog import catalog
from blemish.studies.overlap.plan import STANDARD, build_net
from blemish.studies.overlap.training import MEAN, STD, Corruptor, Schedule, Trainer
from mscr_cifar import COPY, PUBLISHED, noisy_sets
from network_records import Deadline, Records, compiled, measuring, read_images, right_answers

NOISE = {"linf": (COPY["linf"], PUBLISHED.epsilon_min), "l2": (COPY["l2"],)}
PAPERS = ("cifar10-c", "noc-candidates", "syn2nat-candidates")
CATALOGUES = (
    *PAPERS,
    "imagenet-c-extra",
    "imagenet-c-bar",
    "cifar10-c-bar",
    "opticsbench",
    "laion-c",
    "c-bar-candidates",  # late, as what comes last is missing if time runs out: they are not verified as the authors'
)
SENSORS = tuple(
    f"sensor:{name}@1-5"
    for name in ("low_light", "iso_noise", "color_quant", "rolling_shutter", "dead_pixels", "lens_dirt")
)
PRESET = "cifar"
MEASURED = 2000  # images that a network sees at once when it is measured: a divisor of --test-images


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


@dataclass(frozen=True)
class WholeSeverities(Corruptor):
    """Whole severities, each as likely as any other: what is made once for a severity serves all its images."""

    def _one(self, corruption: Corruption, images: Tensor, rows: Tensor, seed: int, ids: Tensor) -> Tensor:
        low, high = (round(severity) for severity in self.severities)
        lots = CounterRng(seed, ids[rows], "training severity").uniforms("which", 1)[:, 0].double()
        severities = low + (lots * (high - low + 1)).floor().clamp_(max=high - low)
        out = torch.empty_like(images[: len(rows)])
        for severity in range(low, high + 1):
            some = severities == severity
            part, part_ids = images[rows[some].to(images.device)], ids[rows[some]]
            if len(part):
                made = corruption(part, severity=severity, seed=seed, ids=part_ids, preset=self.preset)
                out[some.to(out.device)] = made
        return out


def corruptor_of(condition: Condition) -> Corruptor:
    """What images go through for a corruption, in training and in testing."""
    step = condition.steps[0]
    return WholeSeverities((step.unit,), (step.low, step.high), PRESET)  # type: ignore[arg-type]


def tested_sets(images: Tensor, conditions: Sequence[Condition], seed: int) -> list[Tensor]:
    """The images under each condition, on their device, for all networks to see."""
    ids = torch.arange(len(images))
    return [corruptor_of(condition)(images, seed=seed, ids=ids) for condition in conditions]


class Study:
    """One seed: the standard network and those of the corruptions, one after the other in the same shell."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.clock = time.perf_counter()
        self.device = torch.device(options.device)
        self.images, self.labels, one = read_images(options.train, options.limit, self.device)
        self.test, self.answers, other = read_images(options.test, options.test_images, self.device)
        self.long, self.short = schedules(options)
        self.measured = {condition.group: condition for condition in self._conditions()}
        scratch = options.from_scratch
        self.trained = list(self.measured) if scratch is None else sampled(list(self.measured), scratch)
        self.way = "tuned" if scratch is None else "scratch"
        stem = f"overlap_all-{self.way}-seed{options.seed}"
        part, parts = options.part
        if parts > 1:
            stem += f"-part{part}"
        options.out.mkdir(parents=True, exist_ok=True)
        self.file = options.out / f"{stem}.npz"
        folders = (options.out, *options.earlier)
        self.standard_files = [folder / f"standard-seed{options.seed}.pt" for folder in folders]
        self.standard_there = self.way == "tuned" and any(file.is_file() for file in self.standard_files)
        earlier = [folder / f"{stem}{ending}" for folder in folders for ending in (".npz", ".json")]
        self.records = Records.continued(self._protocol(one, other), earlier)
        self.mine = [STANDARD, *self.trained][part::parts]

    def _conditions(self) -> list[Condition]:
        """What networks are trained for and measured under: the corruptions that run on this device."""
        options = self.options
        mine = catalog if options.frost is None else catalog.with_frost(options.frost)
        texts = [*published_conditions(options.catalogues), *options.also]
        if options.drawn_frost:
            texts = [text.replace("frost@", "frost_drawn@") for text in texts]
        conditions = [parse_condition(text, catalog=mine) for text in texts[:: 16 if options.quick else 1]]
        for condition in conditions:
            condition.check_files()
        # In another order for each part: what one compiles, others that begin at the same time read from the disk.
        order = random.Random(f"{options.seed} {options.part}").sample(conditions, len(conditions))
        failing = []
        for condition in order:
            try:
                tested_sets(self.test[:8], [condition], 0)
            except Exception as error:  # one corruption must not cost all others the time on a device
                print(f"left out, since it does not run here: {condition} ({error!r})", flush=True)
                failing.append(condition)
        return [condition for condition in conditions if condition not in failing]

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
            "severities": "whole",
            "measured_in": "float16" if self.device.type == "cuda" else "float32",
            "trained": self.trained,
            "sets": {"noise": noise, "corrupted": ["clean", *(str(c) for c in self.measured.values())]},
        }

    def work(self) -> None:
        """Train and measure what is missing, for as long as there is time."""
        missing = [name for name in self.mine if name not in self.records.facts]
        print(f"{len(self.records.facts)} networks are there, {len(missing)} are missing", flush=True)
        if not missing:
            return
        seed = self.options.seed
        self.corrupted = [self.test, *tested_sets(self.test, list(self.measured.values()), seed)]
        self.shell = self._fresh().to(self.device, memory_format=torch.channels_last)
        wanted = self.device.type == "cuda" and not self.options.plain
        shape, plain = self.images.shape[1:], torch.contiguous_format
        batch = self.options.batch
        self.forward = compiled(self.shell, shape, batch, self.device, wanted=wanted, layout=plain, measured=MEASURED)
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
            start = time.perf_counter()
            try:
                self._one(name)
            except InputError:
                raise
            except Exception:  # out of memory, say: the others are still to come, and another call tries it again
                traceback.print_exc()
                print(f"{name}: failed, and passed over", flush=True)
                continue
            if name != STANDARD or self.way == "scratch":
                deadline.took(time.perf_counter() - start)
        missing = [name for name in missing if name not in self.records.facts]
        print(f"failed: {', '.join(missing)}" if missing else "all networks are there", flush=True)

    def _fresh(self) -> torch.nn.Module:
        torch.manual_seed(self.options.seed)
        return build_net(self.options.arch, 10)

    def _start(self, name: str) -> dict[str, Tensor]:
        """The weights to begin with: random ones, or those of the standard network."""
        if self.way == "scratch" or (name == STANDARD and not self.standard_there):
            return self._fresh().state_dict()
        files = [file for file in self.standard_files if file.is_file()]
        if not files:
            raise InputError(f"{self.standard_files[0]}: no standard network to begin with; expected it or --earlier")
        state: dict[str, Tensor] = torch.load(files[0], map_location="cpu", weights_only=True)
        return {key: value.float() if value.dtype == torch.float16 else value for key, value in state.items()}

    def _one(self, name: str) -> None:
        start = time.perf_counter()
        schedule = self.long if name == STANDARD or self.way == "scratch" else self.short
        self.shell.load_state_dict(self._start(name))
        corruptor = Corruptor(preset=PRESET)
        if name != STANDARD:
            corruptor = corruptor_of(self.measured[name])
        seed = self.options.seed
        trainer = Trainer(self.forward, [corruptor], self.images, self.labels, schedule, self.device, seed=seed)
        ready = name == STANDARD and self.standard_there
        losses = [] if ready else [trainer.run_epoch() for _ in range(schedule.epochs)]
        if name == STANDARD and self.way == "tuned" and not ready:
            self._keep_standard()
        trained = time.perf_counter()
        self.forward.eval()
        with torch.inference_mode():
            noisy = noisy_sets(self.test, NOISE, seed, seed)
            noise = right_answers(self._predict, noisy, self.answers, batch=MEASURED)
            corrupted = right_answers(self._predict, self.corrupted, self.answers, batch=MEASURED)
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
        clean, mean = corrupted[0].double().mean(), corrupted[1:].double().mean()
        spent = f"{trained - start:.1f} + {ended - trained:.1f} s"
        print(f"{name}: clean {clean:.4f}, corrupted {mean:.4f}, {spent}", flush=True)

    def _keep_standard(self) -> None:
        """Write the network down at half precision, and go on with exactly that, so that it can begin others later."""
        state = {
            key: value.half() if value.is_floating_point() and value.ndim > 1 else value
            for key, value in self.shell.state_dict().items()
        }
        part = self.standard_files[0].with_suffix(".part")
        torch.save({key: value.cpu().contiguous() for key, value in state.items()}, part)
        part.replace(self.standard_files[0])
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
    parser.add_argument("--earlier", type=Path, nargs="*", default=[], help="folders like OUT to go on from")
    parser.add_argument("--from-scratch", type=int, metavar="COUNT", help="train networks of COUNT corruptions anew")
    parser.add_argument(
        "--part", type=int, nargs=2, default=(0, 1), metavar=("K", "N"), help="every N-th from the K-th"
    )
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
    parser.add_argument("--test-images", type=int, default=4000)
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
