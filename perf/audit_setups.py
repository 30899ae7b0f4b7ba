"""Set-ups for `blemish audit`: deliberately broken ones, each with the finding that has to be named, and good ones.

A network for drawn digits and its images come with the package. CIFAR-10's residual networks and a lossy copy of its
test images, and photographs for EfficientNet-Lite0 (from PyPI), are used where their folder is given: `places`.
"""

from __future__ import annotations

import csv
import io
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

import blemish
from blemish.benchmarks.condition import Condition, step_of
from blemish.data.classes import imagenet_wnids
from blemish.data.source import Source
from blemish.models.base import Classifier, Preprocessing
from blemish.models.demo import PREPROCESSING, demo_model
from blemish.models.resnet_cifar import resnet20
from blemish.models.torch_module import from_module, load_weights
from blemish.studies.audit.findings import Audit

CIFAR_PREPROCESSING = Preprocessing(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
_SEED = 0
_COUNT = 400

# The first image that is taken: the set-ups were written with 0; other images show that nothing was fitted to those.
first = 0


@dataclass(frozen=True)
class Setup:
    """A set-up by name: how it is audited, and the findings that must be named; ``also`` may be there besides.

    ``folder`` is asked for where it needs data that do not come with the package.
    """

    name: str
    audit: Callable[[Path | None], Audit]
    expected: frozenset[str] = frozenset()
    also: frozenset[str] = frozenset()
    needs: str | None = None

    def verdict(self, found: Audit) -> str:
        """What an audit of it came to: as expected, missed, or a false alarm."""
        problems = {finding.check for finding in found.problems}
        if missed := self.expected - problems:
            return f"missed {', '.join(sorted(missed))}"
        false = problems - self.expected - self.also
        return f"false alarm: {', '.join(sorted(false))}" if false else "as expected"


@cache
def digits() -> Source:
    """Four hundred of the demo's digits, drawn once."""
    drawn = blemish.open_source("demo:digits").take(np.arange(first, first + _COUNT))
    pixels = np.stack([np.asarray(drawn.read(row)) for row in range(_COUNT)])
    return blemish.open_source((torch.from_numpy(pixels).permute(0, 3, 1, 2), torch.from_numpy(drawn.labels)))


def demo(**preprocessing: Any) -> Classifier:
    """The demo's network with another preprocessing."""
    return replace(demo_model("plain"), preprocessing=replace(PREPROCESSING, **preprocessing))


@cache
def cifar(folder: Path) -> tuple[nn.Module, Source]:
    """ResNet-20 for CIFAR-10, and 400 images of the lossy copy."""
    (path,) = (folder / "cifar_resnets").glob("resnet20*.th")
    with np.load(folder / "cifar10_jpeg_test.npz") as file:
        content, offsets, labels = (file[key] for key in ("bytes", "offsets", "labels"))
        pictures = [
            Image.open(io.BytesIO(content[offsets[row] : offsets[row + 1]].tobytes())).convert("RGB")
            for row in range(first, first + _COUNT)
        ]
    images = torch.from_numpy(np.stack([np.asarray(picture) for picture in pictures])).permute(0, 3, 1, 2)
    source = blemish.open_source((images, torch.from_numpy(labels[first : first + _COUNT].astype(np.int64))))
    return load_weights(resnet20(), path), source


def cifar_model(folder: Path, **preprocessing: Any) -> Classifier:
    """ResNet-20 with another preprocessing."""
    made = replace(CIFAR_PREPROCESSING, **preprocessing)
    return from_module(cifar(folder)[0], name="ResNet-20", preprocessing=made)


def relabelled(source: Source, order: np.ndarray) -> Source:
    """The source with other labels: ``order`` has one for each."""
    return replace(source, labels=order[source.labels])


def of_pixels(source: Source, change: Callable[[np.ndarray], np.ndarray]) -> Source:
    """The source with other pixels, (H, W, C) of uint8."""
    read = source.read
    return replace(source, read=lambda row: Image.fromarray(change(np.asarray(read(row)))), stamp=None, reopen=None)


class _Doubled(nn.Module):
    """A network that normalises by itself."""

    def __init__(self, net: nn.Module, preprocessing: Preprocessing) -> None:
        super().__init__()
        self.net = net
        self.register_buffer("mean", torch.tensor(preprocessing.mean).view(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(preprocessing.std).view(1, -1, 1, 1))

    def forward(self, values: Tensor) -> Tensor:
        """The network's scores of values in 0 … 1."""
        scores: Tensor = self.net((values - self.mean) / self.std)
        return scores


def in_training_mode(folder: Path) -> Audit:
    """Batch norm that takes its statistics from the batch."""
    (path,) = (folder / "cifar_resnets").glob("resnet20*.th")
    model = from_module(load_weights(resnet20(), path), name="ResNet-20", preprocessing=CIFAR_PREPROCESSING)
    assert model.module is not None
    for layer in model.module.modules():
        if isinstance(layer, nn.BatchNorm2d):
            layer.train()
    return blemish.audit(model, cifar(folder)[1])


class _Dropping(nn.Module):
    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, values: Tensor) -> Tensor:
        scores: Tensor = self.net(torch.nn.functional.dropout(values, 0.3, training=True))
        return scores


def dropping() -> Audit:
    """Dropout that was left on."""
    net = demo_model("plain").module
    assert net is not None
    return blemish.audit(from_module(_Dropping(net), name="dropping", preprocessing=PREPROCESSING), digits())


def falling() -> Audit:
    """A corruption of one's own whose severities run backwards."""
    noise = blemish.catalog["gaussian_noise"]
    rows = {preset: (table[0], *table[:0:-1]) for preset, table in noise.table.rows.items()}
    table = blemish.SeverityTable(noise.table.names, rows, noise.table.sizes)
    backwards = replace(noise, name="backwards", table=table)
    conditions = [Condition((step_of(backwards, level),)) for level in (1.0, 5.0)]
    return blemish.audit("demo:plain", digits(), conditions)


def twice() -> Audit:
    """Images that are there twice."""
    source = digits()
    rows = np.concatenate([np.arange(360), np.arange(40)])
    names = tuple(f"{place}.png" for place in range(400))
    read = source.read
    doubled = replace(
        source,
        names=names,
        ids=np.arange(400),
        labels=source.labels[rows],
        read=lambda place: read(int(rows[place])),
        stamp=None,
        reopen=None,
    )
    return blemish.audit("demo:plain", doubled)


def broken() -> Iterator[Setup]:
    """Set-ups with a fault each."""
    lossy = frozenset({"jpeg"})

    def of_cifar(name: str, finding: str, **preprocessing: Any) -> Setup:
        def run(folder: Path | None) -> Audit:
            assert folder is not None
            return blemish.audit(cifar_model(folder, **preprocessing), cifar(folder)[1])

        return Setup(name, run, frozenset({finding}), lossy, "CIFAR-10")

    def with_cifar(name: str, finding: str, run: Callable[[Path], Audit]) -> Setup:
        def checked(folder: Path | None) -> Audit:
            assert folder is not None
            return run(folder)

        return Setup(name, checked, frozenset({finding}), lossy, "CIFAR-10")

    def plain(name: str, finding: str, run: Callable[[], Audit]) -> Setup:
        return Setup(name, lambda _: run(), frozenset({finding}))

    std = CIFAR_PREPROCESSING.std
    yield of_cifar("normalisation left out", "normalisation", mean=(0.0,), std=(1.0,))
    yield of_cifar("mean and std swapped", "normalisation", mean=std, std=CIFAR_PREPROCESSING.mean)
    yield with_cifar(
        "normalised twice",
        "normalisation",
        lambda folder: blemish.audit(
            from_module(
                _Doubled(cifar(folder)[0], CIFAR_PREPROCESSING), name="doubled", preprocessing=CIFAR_PREPROCESSING
            ),
            cifar(folder)[1],
        ),
    )
    yield of_cifar("BGR instead of RGB", "channel-order", channels="bgr")
    yield plain("values in 0 … 255 instead of 0 … 1", "value-range", lambda: _range(1 / 255))
    yield plain("images scaled to 0 … 1 before they became bytes", "value-range", _black)
    yield plain("the middle of the image cut out and enlarged", "resizing", _cut)
    yield of_cifar("a needless resize, to 16 pixels", "resizing", size=(16, 16))
    yield plain("labels counted from 1", "class-order", lambda: _ordered((np.arange(10) + 1) % 10))
    yield plain("two classes exchanged", "class-order", lambda: _ordered(np.array([0, 1, 2, 5, 4, 3, 6, 7, 8, 9])))
    yield plain(
        "labels in an order of their own", "class-order", lambda: _ordered(np.random.default_rng(1).permutation(10))
    )
    yield plain("labels of other images", "random-labels", _shuffled)
    yield plain("a class without images", "classes-missing", lambda: _without(7))
    yield plain("images there twice", "duplicates", twice)
    yield Setup(
        "images that were JPEG once",
        lambda folder: blemish.audit(cifar_model(_there(folder)), cifar(_there(folder))[1]),
        lossy,
        needs="CIFAR-10",
    )
    yield with_cifar("batch norm in training mode", "batch", in_training_mode)
    yield plain("dropout left on", "repeatable", dropping)
    yield plain("random augmentation in the data set", "repeatable", _augmented)
    yield plain("severities that run backwards", "severity-curves", falling)
    yield plain("ImageNet's severities on images of 32 pixels", "severity-table", _preset)
    yield plain(
        "too few images for one point", "precision", lambda: blemish.audit("demo:plain", digits(), difference=1)
    )
    yield plain("weights that have changed", "clean-accuracy", _weights)
    yield Setup(
        "photographs in sixteen classes, of which two have none",
        lambda folder: _photographs(folder, "human-16"),
        frozenset({"classes-missing"}),
        needs="photographs",
    )


def _there(folder: Path | None) -> Path:
    assert folder is not None
    return folder


def _range(scale: float) -> Audit:
    net = demo_model("plain").module
    assert net is not None
    wants = _Doubled(net, Preprocessing(mean=(127.5,), std=(127.5,)))
    return blemish.audit(from_module(wants, name="wants 0 … 255", preprocessing=Preprocessing()), digits())


def _black() -> Audit:
    return blemish.audit("demo:plain", of_pixels(digits(), lambda pixels: (pixels / 255).round().astype(np.uint8)))


def _cut() -> Audit:
    protocol = blemish.Protocol(crop=20)
    return blemish.audit("demo:plain", digits(), protocol=protocol)


def _ordered(order: np.ndarray) -> Audit:
    return blemish.audit("demo:plain", relabelled(digits(), order))


def _shuffled() -> Audit:
    source = digits()
    return blemish.audit("demo:plain", replace(source, labels=np.random.default_rng(_SEED).permutation(source.labels)))


def _without(label: int) -> Audit:
    source = digits()
    return blemish.audit("demo:plain", source.take(np.flatnonzero(source.labels != label)))


def _augmented() -> Audit:
    rng = np.random.default_rng(_SEED)
    return blemish.audit(
        "demo:plain", of_pixels(digits(), lambda pixels: np.roll(pixels, int(rng.integers(-3, 4)), axis=1))
    )


def _preset() -> Audit:
    return blemish.audit("demo:plain", digits(), ["fog"], protocol=blemish.Protocol(preset="imagenet"))


def _weights() -> Audit:
    model = demo_model("noisy")
    assert model.module is not None
    torch.manual_seed(_SEED)
    with torch.no_grad():
        last = model.module.layers[-1]
        last.weight += 0.25 * last.weight.std() * torch.randn_like(last.weight)
    return blemish.audit(model, digits(), accuracy=94.0)


def good() -> Iterator[Setup]:
    """Set-ups without a fault."""
    net = demo_model("plain").module
    assert net is not None
    normalising = from_module(_Doubled(net, PREPROCESSING), name="normalises itself", preprocessing=Preprocessing())
    yield Setup("a network on images like those it learnt", lambda _: blemish.audit("demo:plain", digits()))
    yield Setup(
        "another one, with a benchmark, for a difference of ten points",
        lambda _: blemish.audit("demo:noisy", digits(), "digits-c", difference=10, accuracy=93.3),
    )
    yield Setup("a network that normalises by itself", lambda _: blemish.audit(normalising, digits()))
    yield Setup("a function of 8-bit levels", lambda _: blemish.audit(_function, digits()))
    yield Setup("the results of a run", lambda _: _finished())
    yield Setup("images of a fifth of the classes", lambda _: _fewer())
    yield Setup("photographs of a thousand classes", lambda folder: _photographs(folder), needs="photographs")


def _function(levels: Tensor) -> Tensor:
    net = demo_model("plain").module
    assert net is not None
    scores: Tensor = net((levels.float() / 255 - 0.5) / 0.5)
    return scores


def _finished() -> Audit:
    with tempfile.TemporaryDirectory() as folder:
        run = blemish.evaluate("demo:plain", digits(), ["fog", "contrast", "gaussian_noise"], out=folder)
        return blemish.audit_run(run, difference=10)


def _fewer() -> Audit:
    """A model of twenty classes, and images of four of them."""
    source = digits()
    net = demo_model("plain").module
    assert net is not None
    wide = from_module(_Wider(net), name="twenty classes", preprocessing=PREPROCESSING)
    return blemish.audit(wide, source.take(np.flatnonzero(source.labels < 4)))


class _Wider(nn.Module):
    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, values: Tensor) -> Tensor:
        return torch.nn.functional.pad(self.net(values), (0, 10), value=-20.0)


def _photographs(folder: Path | None, benchmark: str | None = None) -> Audit:
    """EfficientNet-Lite0 on the NIPS-2017 photographs, 224 pixels wide."""
    from lite0 import make

    with (_there(folder) / "natural1000" / "labels.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    pictures = [np.asarray(Image.open(_there(folder) / "natural1000" / row["file"]).convert("RGB")) for row in rows]
    images = torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2)
    labels = torch.tensor([int(row["class_index"]) for row in rows])
    source = replace(blemish.open_source((images, labels)), classes=imagenet_wnids())
    if benchmark is None:
        return blemish.audit(make(), source)
    whole = blemish.load_benchmark(benchmark)
    protocol = replace(whole.protocol, resize=None, crop=None)
    return blemish.audit(make(), source, replace(whole, protocol=protocol))


def main() -> None:
    """Audit all set-ups: ``python audit_setups.py [FOLDER [FIRST]]``; in the folder are CIFAR-10 and photographs."""
    global first
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    for kind, setups in (("broken", broken()), ("good", good())):
        print(f"| {kind} | needs | named | verdict |")
        print("|---|---|---|---|")
        for setup in setups:
            if (setup.needs and folder is None) or (setup.needs == "photographs" and first):
                continue
            begun = time.process_time()
            found = setup.audit(folder)
            took = time.process_time() - begun
            named = ", ".join(f"{finding.check} ({finding.sure})" for finding in found.problems) or "nothing"
            print(f"| {setup.name} | {setup.needs or ''} | {named} | {setup.verdict(found)} |", flush=True)
            print(f"{took:.1f} s of CPU time: {setup.name}", file=sys.stderr)
        print()


if __name__ == "__main__":
    main()
