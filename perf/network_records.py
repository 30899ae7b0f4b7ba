"""Records of many small networks in one file: what each is, and which images it got right under each condition.

The networks themselves are not kept. The file is written anew after every network and is always complete, so that a
run can be stopped at any time; the next one takes it, and others of the same settings, and goes on.

    python perf/network_records.py OUT RECORDS.npz … [--whole]

writes lists (.json) of what files hold to OUT, one for all files of the same name: small, and enough to go on from.
--whole makes one list of the parts (NAME-part0.npz, NAME-part1.npz …) of a run.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from blemish.benchmarks.condition import Condition
from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.core.settings import differences, listed
from blemish.data.array_source import array_source
from blemish.data.cache import load

PROTOCOL, FACTS, SETS, COUNTS = "protocol", "facts", "sets", "right"

MEASURED = 2500
"""Images that a network sees at once when it is measured."""


@dataclass
class Records:
    """``protocol`` decides the numbers; ``facts`` has a dict per network, and ``correct`` its packed answers by set.

    ``protocol["sets"]`` names the conditions of each set, in the order of the rows of ``correct[network][set]``.
    ``means`` has the accuracies of networks that are known from an index only, in the same order.
    """

    protocol: dict[str, Any]
    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    correct: dict[str, dict[str, NDArray[np.uint8]]] = field(default_factory=dict)
    means: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, name: str, facts: Mapping[str, Any], **correct: Tensor) -> None:
        """Keep what a network is, and its answers: a bool (conditions, images) per set."""
        self.facts[name] = dict(facts)
        self.correct[name] = {key: np.packbits(rows.cpu().numpy(), axis=1) for key, rows in correct.items()}

    def right(self, name: str, conditions: str) -> NDArray[np.bool_]:
        """Which images a network got right, bool (conditions, images)."""
        bits = np.unpackbits(self.correct[name][conditions], axis=1, count=self.protocol["test_images"])
        return bits.astype(np.bool_)

    def accuracies(self, name: str, conditions: str) -> dict[str, float]:
        """The accuracy of a network under each condition of a set."""
        return dict(zip(self.protocol[SETS][conditions], self._means(name)[conditions], strict=True))

    def _means(self, name: str) -> dict[str, list[float]]:
        if name not in self.correct:
            return self.means[name]
        return {key: self.right(name, key).mean(axis=1).tolist() for key in self.correct[name]}

    def write(self, path: Path) -> None:
        """One file, complete or not there."""
        arrays: dict[str, Any] = {f"{n}/{key}": rows for n, part in self.correct.items() for key, rows in part.items()}
        own = {name: facts for name, facts in self.facts.items() if name in self.correct}
        buffer = io.BytesIO()
        texts = {PROTOCOL: json.dumps(self.protocol), FACTS: json.dumps(own)}
        np.savez(buffer, **{key: np.array(text) for key, text in texts.items()}, **arrays)
        write_bytes(path, buffer.getvalue())

    def write_index(self, path: Path) -> None:
        """What there is, without single answers: to make tables from, and for another call to go on from.

        Accuracies are written as numbers of images, which are short and exact.
        """
        images = self.protocol["test_images"]
        counts = {
            name: {key: [round(mean * images) for mean in means] for key, means in self._means(name).items()}
            for name in self.facts
        }
        content = {PROTOCOL: self.protocol, FACTS: self.facts, COUNTS: counts}
        write_bytes(path, json.dumps(content, separators=(",", ":")).encode())

    @classmethod
    def _one(cls, path: Path) -> Records:
        if path.suffix == ".json":
            content = json.loads(path.read_text(encoding="utf-8"))
            images = content[PROTOCOL]["test_images"]
            means = {
                name: {key: [count / images for count in counts] for key, counts in sets.items()}
                for name, sets in content[COUNTS].items()
            }
            return cls(content[PROTOCOL], content[FACTS], means=means)
        with np.load(path, allow_pickle=False) as file:
            found = cls(json.loads(str(file[PROTOCOL])), json.loads(str(file[FACTS])))
            for key in file.files:
                name, slash, conditions = key.rpartition("/")
                if slash:
                    found.correct.setdefault(name, {})[conditions] = file[key]
        return found

    @classmethod
    def read(cls, *paths: Path) -> Records:
        """The networks of several files that were made with the same settings; of a .json, without single answers."""
        whole: Records | None = None
        for path in paths:
            found = cls._one(path)
            whole = found if whole is None else whole
            whole.check(found.protocol, path)
            whole.facts |= found.facts
            whole.correct |= found.correct
            whole.means |= found.means
        if whole is None:
            raise InputError("no records; expected at least one file")
        return whole

    def check(self, protocol: Mapping[str, Any], path: Path) -> None:
        """Refuse networks that were made otherwise."""
        if lines := differences(self.protocol, protocol):
            raise InputError(f"{path}: networks of other settings ({listed(lines)})")

    @classmethod
    def continued(cls, protocol: Mapping[str, Any], paths: Iterable[Path]) -> Records:
        """Empty, or what the files that are there hold; files of other settings are refused."""
        own: dict[str, Any] = json.loads(json.dumps(protocol))
        present = [path for path in paths if path.is_file()]
        if not present:
            return cls(own)
        records = cls.read(*present)
        records.check(own, present[0])
        return records


def read_images(path: str, limit: int | None, device: torch.device) -> tuple[Tensor, Tensor, str]:
    """The first images of a file, uint8 (N, 3, H, W), their labels, both on the device, and a digest of both."""
    source = array_source(path)
    images = load(source.take(range(min(limit or len(source), len(source)))))
    pixels, labels = images.batch(range(len(images))), torch.from_numpy(images.labels)
    digest = hashlib.blake2b(pixels.numpy().tobytes() + labels.numpy().tobytes(), digest_size=12).hexdigest()
    return pixels.to(device), labels.to(device), digest


def corrupted_sets(
    images: Tensor, conditions: Sequence[Condition], *, seed: int, preset: str, block: int = 10_000
) -> list[Tensor]:
    """The images under each condition, on their device, for all networks to see."""
    ids = torch.arange(len(images))
    return [
        torch.cat(
            [
                condition.apply(images[k : k + block], seed=seed, ids=ids[k : k + block], preset=preset)
                for k in range(0, len(images), block)
            ]
        )
        for condition in conditions
    ]


def right_answers(
    predict: Callable[[Tensor], Tensor], sets: Iterable[Tensor], labels: Tensor, *, batch: int = MEASURED
) -> Tensor:
    """Which images are classified correctly, bool (sets, images); ``predict`` gives the class numbers of a batch."""
    rows = [torch.cat([predict(part) for part in images.split(batch)]) == labels for images in sets]
    return torch.stack(rows)


def measuring(device: torch.device) -> AbstractContextManager[object]:
    """How networks are measured: at half precision on a GPU. bfloat16 would round images more coarsely than 8 bits."""
    if device.type == "cuda":
        return torch.autocast("cuda", dtype=torch.float16)
    return nullcontext()


def compiled(
    net: nn.Module,
    shape: Sequence[int],
    batch: int,
    device: torch.device,
    *,
    wanted: bool = True,
    layout: torch.memory_format = torch.channels_last,
    measured: int = MEASURED,
) -> nn.Module:
    """The net, compiled for batches of training (of this layout) and of measuring, where that is wanted and works.

    It is tried out, so its weights are to be replaced afterwards. Reuse it for further networks by loading theirs.
    """
    if not wanted:
        return net
    try:
        quick: nn.Module = torch.compile(net, dynamic=False)

        images = torch.rand(batch, *shape, device=device).contiguous(memory_format=layout)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            quick.train()(images).sum().backward()
        with torch.inference_mode(), measuring(device):
            images = torch.rand(measured, *shape, device=device)
            quick.eval()(images.contiguous(memory_format=torch.channels_last))
    except Exception as error:  # whatever a compiler lacks, the plain net remains
        print(f"not compiled: {type(error).__name__}: {str(error).splitlines()[:1]}", flush=True)
        return net
    finally:
        net.zero_grad(set_to_none=True)
    return quick


class Deadline:
    """When to begin no further network: each is expected to take as long as the slowest before it."""

    def __init__(self, seconds: float) -> None:
        self.end = time.perf_counter() + seconds
        self.slowest = 0.0

    def allows_another(self) -> bool:
        """Whether another network would still be finished in time."""
        return time.perf_counter() + 1.05 * self.slowest < self.end

    def took(self, seconds: float) -> None:
        """Tell how long a network took."""
        self.slowest = max(self.slowest, seconds)


def main() -> None:
    """Write the lists."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("records", type=Path, nargs="+")
    parser.add_argument("--whole", action="store_true", help="one list of all parts of a run")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    files: dict[str, list[Path]] = {}
    for path in options.records:
        stem = re.sub(r"-part\d+$", "", path.stem) if options.whole else path.stem
        files.setdefault(stem, []).append(path)
    for stem, paths in sorted(files.items()):
        records = Records.read(*paths)
        records.write_index(options.out / f"{stem}.json")
        print(f"{stem}: {len(records.facts)} networks")


if __name__ == "__main__":
    main()
