"""The CIFAR-10 experiment of the MSCR paper: networks trained with noise of several radii in L∞ and L2 balls.

    python perf/mscr_cifar.py TRAIN.npz TEST.npz OUT/mscr_cifar.npz [--seconds 500] [--frost DIR] [--earlier FILE …]

Trains WRN-16-4 with uniform noise of each radius, several runs each, and measures every network at all test radii of
both norms (one noisy point per image, as in the paper) and under the fifteen corruptions of CIFAR-10-C at five
severities. Runs go round by round over all radii, so that whatever is finished is balanced. Which images each network
got right is kept in one file that is written after every network, beside a small list of what is done (.json); networks
are not kept. No network is begun that would not end within --seconds. Another call goes on from the file, or from
--earlier ones; of those that were only listed (.json), it does not hold the answers, but their accuracies.
`perf/mscr_cifar.json` is the list of the networks in docs/mscr-cifar.md.

`perf/mscr_cifar_tables.py` prints what came of it, `perf/mscr_predicts_mce.py` compares MSCR with corruption errors.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from blemish.benchmarks.condition import parse_condition
from blemish.benchmarks.files import load_benchmark
from blemish.corruptions.catalog import catalog
from blemish.corruptions.lp import radius
from blemish.studies.separation.nets import WideResNet
from blemish.studies.separation.noise import Noise
from blemish.studies.separation.published import published_matrix
from blemish.studies.separation.scores import mscr_of
from blemish.studies.separation.training import Descent, train_net
from network_records import Deadline, Records, compiled, corrupted_sets, measuring, read_images, right_answers

PUBLISHED = published_matrix("cifar10")

# ε_min of the JPEG copy of CIFAR-10, train and test together: perf/separation.py (docs/mscr.md). The paper's is
# PUBLISHED.epsilon_min in L∞; it prints none for L2.
COPY = {"linf": 0.100000, "l2": 2.684502 / 2}

# In L2: radii of the mean square of L∞ noise of 0.01, 0.02, 0.07 and the paper's ε_min; and ε_min of the copy.
VALUES = 3 * 32 * 32
L2_TRAIN = tuple(round(radius("l2", eps, VALUES), 4) for eps in (0.01, 0.02, 0.07, PUBLISHED.epsilon_min))


@dataclass(frozen=True)
class Cell:
    """A network to train: the norm and radius of its noise, and the run."""

    norm: str
    eps: float
    run: int

    def __str__(self) -> str:
        return f"none-run{self.run}" if self.eps == 0 else f"{self.norm}-{self.eps:g}-run{self.run}"


def radii(quick: bool) -> tuple[dict[str, tuple[float, ...]], dict[str, tuple[float, ...]]]:
    """Training and test radii by norm; 0 is in L∞ only, since it is the same in both."""
    if quick:
        return {"linf": (0.0, 0.1), "l2": (3.2,)}, {"linf": (0.0, COPY["linf"], 0.2), "l2": (COPY["l2"],)}
    train = {"linf": PUBLISHED.eps, "l2": tuple(sorted((*L2_TRAIN, COPY["l2"])))}
    largest = round(radius("l2", PUBLISHED.eps[-1], VALUES), 4)
    return train, {"linf": tuple(sorted((*PUBLISHED.eps, COPY["linf"]))), "l2": (*train["l2"], largest)}


def cells(train: dict[str, tuple[float, ...]], runs: int) -> Iterator[Cell]:
    """All networks, round by round."""
    for run in range(runs):
        for norm, values in train.items():
            for eps in values:
                yield Cell(norm, eps, run)


def noisy_sets(images: Tensor, test: dict[str, tuple[float, ...]], run: int, seed: int) -> Iterator[Tensor]:
    """Test images with noise of each radius: the draws that `blemish mscr` makes, unclipped and not rounded."""
    ids, base = torch.arange(len(images)), images.float() / 255
    shape = (*images.shape[2:], images.shape[1])
    for norm, values in test.items():
        noise = Noise(0.0, norm=norm, seed=seed, run=run)  # type: ignore[arg-type]
        unit = noise.units(ids, *shape, device=images.device).permute(0, 3, 1, 2)
        for eps in values:
            yield base if eps == 0 else base + eps * unit


class Experiment:
    """One network after the other, in the same shell, so that it is compiled once."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.device = torch.device(options.device)
        self.clock = time.perf_counter()
        limits = (options.limit, None if options.limit is None else max(100, options.limit // 5))
        self.train, self.labels, one = read_images(options.train, limits[0], self.device)
        self.test, self.answers, other = read_images(options.test, limits[1], self.device)
        self.descent = Descent(
            epochs=options.epochs,
            batch=options.batch,
            rate=options.rate,
            schedule="one-cycle",
            mixed=self.device.type == "cuda",
        )
        mine = catalog if options.frost is None else catalog.with_frost(options.frost)
        texts = [str(condition) for condition in load_benchmark("cifar10-c").conditions if condition.steps]
        if options.drawn_frost:
            texts = [text.replace("frost@", "frost_drawn@") for text in texts]
        self.conditions = [parse_condition(text, catalog=mine) for text in texts[:: 14 if options.quick else 1]]
        for condition in self.conditions:
            condition.check_files()
        self.eps_train, self.eps_test = radii(options.quick)
        self.records = Records.continued(self._protocol(one, other), [options.out, *options.earlier])

    def _protocol(self, *digests: str) -> dict[str, Any]:
        noise = [f"{norm}:{eps:g}" for norm, values in self.eps_test.items() for eps in values]
        return {
            "experiment": "mscr_cifar",
            "net": f"WRN-{self.options.depth}-{self.options.width}",
            "dropout": 0.0,
            "descent": asdict(self.descent),
            "seed": self.options.seed,
            "train_images": len(self.train),
            "test_images": len(self.test),
            "data": list(digests),
            "eps_train": self.eps_train,
            "epsilon_min": {"copy": COPY, "published": {"linf": PUBLISHED.epsilon_min}},
            "sets": {"noise": noise, "corrupted": [str(condition) for condition in self.conditions]},
            "corruption_seed": 0,
            "measured_in": "float16" if self.device.type == "cuda" else "float32",
            "k": 1,
            "clip": False,
        }

    def work(self) -> None:
        """Train and measure what is missing, for as long as there is time."""
        part, parts = self.options.part
        mine = list(cells(self.eps_train, self.options.runs))[part::parts]
        missing = [c for c in mine if str(c) not in self.records.facts]
        print(f"{len(self.records.facts)} networks are there, {len(missing)} are missing", flush=True)
        if not missing:
            return
        self.corrupted = corrupted_sets(self.test, self.conditions, seed=0, preset="cifar")
        shell = self._fresh(0).to(self.device, memory_format=torch.channels_last)
        wanted = self.device.type == "cuda" and not self.options.plain
        self.forward = compiled(shell, self.train.shape[1:], self.options.batch, self.device, wanted=wanted)
        self.shell = shell
        begun = time.perf_counter() - self.clock
        print(f"ready after {begun:.0f} s", flush=True)
        deadline = Deadline(self.options.seconds - begun)
        for facts in self.records.facts.values():
            deadline.took(facts["train_seconds"] + facts["test_seconds"])
        for cell in missing:
            if not deadline.allows_another():
                print("no time for another network; call again to go on", flush=True)
                return
            deadline.took(self._one(cell))
        print("all networks are there", flush=True)

    def _fresh(self, run: int) -> WideResNet:
        torch.manual_seed(self.options.seed * 1_000_003 + run)
        return WideResNet(self.options.depth, self.options.width, classes=10, dropout=0.0)

    def _one(self, cell: Cell) -> float:
        start = time.perf_counter()
        self.shell.load_state_dict(self._fresh(cell.run).state_dict())
        noise = Noise(cell.eps, norm=cell.norm, seed=self.options.seed, run=cell.run, role="train")  # type: ignore[arg-type]
        losses = train_net(self.shell, self.train, self.labels, noise, self.descent, forward=self.forward)
        trained = time.perf_counter()
        self.forward.eval()
        with torch.inference_mode():
            noisy = noisy_sets(self.test, self.eps_test, cell.run, self.options.seed)
            answers = right_answers(self._predict, noisy, self.answers)
            corrupted = right_answers(self._predict, self.corrupted, self.answers)
        ended = time.perf_counter()
        facts = {
            **asdict(cell),
            "losses": losses,
            "train_seconds": round(trained - start, 2),
            "test_seconds": round(ended - trained, 2),
            "device": torch.cuda.get_device_name() if self.device.type == "cuda" else "cpu",
            "torch": torch.__version__,
            **self._scores(answers, corrupted),
        }
        self.records.add(str(cell), facts, noise=answers, corrupted=corrupted)
        self.records.write(self.options.out)
        self.records.write_index(self.options.out.with_suffix(".json"))
        shown = {key: round(facts[key], 4) for key in ("clean", "mscr", "mscr_l2", "mean_corruption_error")}
        print(f"{cell}: {shown}, {facts['train_seconds']} + {facts['test_seconds']} s", flush=True)
        return ended - start

    def _predict(self, images: Tensor) -> Tensor:
        values = images.float() / 255 if images.dtype == torch.uint8 else images
        values = values.contiguous(memory_format=torch.channels_last)
        with measuring(self.device):
            return self.forward(values).argmax(1)  # type: ignore[no-any-return]

    def _scores(self, answers: Tensor, corrupted: Tensor) -> dict[str, float]:
        names = self.records.protocol["sets"]["noise"]
        shares = dict(zip(names, answers.double().mean(1).tolist(), strict=True))
        clean = shares["linf:0"]
        scores = {
            "clean": clean,
            "mscr": mscr_of(clean, shares[f"linf:{COPY['linf']:g}"]),
            "mscr_l2": mscr_of(clean, shares[f"l2:{COPY['l2']:g}"]),
            "mean_corruption_error": 1 - float(corrupted.double().mean()),
        }
        if (at := f"linf:{PUBLISHED.epsilon_min:g}") in shares:
            scores["mscr_published_epsilon"] = mscr_of(clean, shares[at])
        return scores


def main() -> None:
    """Parse the options and work."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", help="training images, .npz")
    parser.add_argument("test", help="test images, .npz")
    parser.add_argument("out", type=Path, help="the file of records, .npz; continued where it is there")
    parser.add_argument(
        "--earlier", type=Path, nargs="*", default=[], help="records (.npz) or lists (.json) to go on from"
    )
    parser.add_argument("--seconds", type=float, default=500, help="begin no network that would end later")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument(
        "--part",
        type=int,
        nargs=2,
        default=(0, 1),
        metavar=("K", "N"),
        help="every N-th network from the K-th: for N processes",
    )
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=500, help="a divisor of 50,000 keeps all batches of one size")
    parser.add_argument("--rate", type=float, default=0.2, help="the highest learning rate")
    parser.add_argument("--depth", type=int, default=16)
    parser.add_argument("--width", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=int, help="training images; a fifth as many test images")
    parser.add_argument("--frost", help="folder with the photographs of frost, where they are not installed")
    parser.add_argument("--drawn-frost", action="store_true", help="frost_drawn in place of frost: no photographs")
    parser.add_argument("--plain", action="store_true", help="do not compile the net")
    parser.add_argument("--quick", action="store_true", help="a tiny net, few images and conditions: to try the script")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    if options.quick:
        options.depth, options.width, options.epochs, options.batch = 10, 1, 1, 50
        options.limit, options.runs = options.limit or 500, min(options.runs, 2)
    torch.backends.cudnn.benchmark = True
    Experiment(options).work()


if __name__ == "__main__":
    main()
