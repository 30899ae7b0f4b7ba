"""The arena on CIFAR-10: every method on several settings, with networks of batch, group and layer norm, on one GPU.

Three steps, the second one as often as it takes; on a machine that keeps nothing, carry DATA there and copy what comes
back in OUT into DATA before the next call::

    python perf/arena_cifar.py prepare SOURCE DATA
    python perf/arena_cifar.py run DATA OUT --seconds 440
    python perf/arena_cifar.py tables OUT --data DATA

SOURCE holds cifar10_jpeg_test.npz, cifar10_jpeg_train.npz and cifar_resnets/resnet20-12fca82f.th. ``prepare`` copies
the test set, the first 25,000 training images and the weights: 34 MB. ``run`` trains a residual network with group norm
and a convolutional one with layer norm where they are asked for and not there yet, calibrates a walk that holds 50 %
where it is asked for, and then runs each method on each setting, until all is done or no time is left to begin
another. What is there is skipped, so that the same call goes on. All images are corrupted on the GPU, and methods run
in processes of their own, side by side. ``tables`` prints what is there as Markdown.

What docs/arena.md shows was made by these calls, but for limits of time, on an H200; A, B, D and E side by side with
others, C (what few images show) on a CPU. bound.toml is the setting ``correlated`` with ``reset = "shift"``::

    R="python perf/arena_cifar.py run DATA"
    $R A --networks resnet20 --methods none --settings continual ccc  # 51 s; makes the walk
    $R A --networks resnet20 --jobs 7                                # 456 s: the bar of speed
    $R B --networks resnet20_gn convnet_ln --images 5000 --methods none --settings continual --jobs 2  # 119 s; trains
    $R B --networks resnet20_gn convnet_ln --images 5000 --jobs 4                      # until the time was over
    $R C --networks resnet20 --jobs 1 --device cpu --seconds 4000 --settings continual correlated --images 500 \
        --methods none bn norm_ema many_passes
    $R D --networks resnet20 --settings continual correlated reset_each_shift ccc \
        --methods none bn norm_ema many_passes --jobs 8              # 337 s, in two halves side by side
    $R D --networks resnet20 --settings continual correlated --methods rotta:sure=0 rotta:follow=0 --jobs 4  # 211 s
    $R D --networks resnet20 --settings continual correlated --seeds 2 3 \
        --methods none bn norm_ema cotta rmt adacontrast
    $R D --networks resnet20 --settings continual --images 500 --methods none bn memo --jobs 1     # 496 s
    CPU="--networks resnet20 --methods none bn memo --jobs 1 --device cpu --seconds 1500"
    $R F $CPU --settings correlated reset_each_shift --images 200    # 411 s each, side by side
    $R F $CPU --settings ccc --images 500 --stream 1000              # 128 s
    $R E --networks resnet20_bn resnet20_iabn --settings bound.toml correlated continual reset_each_shift \
        --methods none bn norm_ema lame tent note --jobs 4                             # 247 s of them training

The bar is twenty minutes for six settings of 100,000 images and the methods of one pass; the second call did more.
Each call goes on where the last one stopped. What is left to do: cmf on label_shift with layer norm (the call for B
again), and further seeds for the methods of one pass.

To try it without a GPU, in minutes for a method: ``--device cpu --images 500 --jobs 1``. Numbers of other sizes
(``--images``) are kept in files of their own, so that they are never mixed.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from blemish.benchmarks.benchmark import Protocol
from blemish.benchmarks.condition import parse_condition
from blemish.core.errors import InputError
from blemish.core.files import write_bytes
from blemish.corruptions.catalog import catalog
from blemish.data.array_source import array_source
from blemish.data.cache import load
from blemish.data.images import Images
from blemish.data.source import stratified_order
from blemish.evaluation.executors import Calls, Done, Executor, InProcess, Processes
from blemish.models.base import Preprocessing
from blemish.models.resnet_cifar import resnet20
from blemish.models.speed import speed_up
from blemish.models.torch_module import from_module, load_weights
from blemish.reports.tables import markdown
from blemish.studies.adaptation.base import Levels, adaptable
from blemish.studies.adaptation.entry import MethodEntry
from blemish.studies.adaptation.methods import METHODS, make_from, method_entry
from blemish.studies.adaptation.moving_norms import instance_aware
from blemish.studies.adaptation.norm import UnsuitedError
from blemish.studies.arena.adapting import adapt_over
from blemish.studies.arena.course import Course, course_of
from blemish.studies.arena.images import CorruptedImages, MadeImages, WalkImages
from blemish.studies.arena.results import MethodResult, ResultHeader, StreamHeader, StreamTable
from blemish.studies.arena.scores import Shown, scored
from blemish.studies.arena.setting import load_setting, orders
from blemish.studies.arena.tables import cost_table, error_table, setting_table
from blemish.studies.arena.work import lag_of, passes_of, source_batches, walk_course, walk_stream
from blemish.studies.streams.adaptive import Refinement
from blemish.studies.streams.calibration import Bench, calibrate
from blemish.studies.streams.planning import PathRule, make_walk, usable_corruptions
from blemish.studies.streams.walks import read_walk

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
TEST, TRAIN, WEIGHTS = "cifar10_jpeg_test.npz", "cifar10_jpeg_train.npz", "resnet20-12fca82f.th"
NETWORKS = ("resnet20", "resnet20_gn", "convnet_ln", "resnet20_bn", "resnet20_iabn")
SETTINGS = ("continual", "reset_each_shift", "correlated", "mixed", "ccc", "constant_speed")
# Batch norm alone has batch statistics, so the other networks are for streams with correlated labels, above all.
OTHERS = ("continual", "correlated", "label_shift")
WALKED = ("gaussian_noise", "defocus_blur", "snow", "contrast", "pixelate", "jpeg_compression")
WALK, TRAINED, LOG = "walk.json", "trained.npz", "log.json"
SLOW = 12.0
# Methods that take several passes and steps for a batch, or one image at a time; the bar of speed leaves them out.
MANY_PASSES = ("note", "rmt", "adacontrast", "cotta")
ONE_PASS = tuple(name for name in METHODS if name not in (*MANY_PASSES, "memo"))
GROUPS = {"one_pass": ONE_PASS, "many_passes": MANY_PASSES, "all": tuple(METHODS)}


def with_group_norm(net: nn.Module) -> nn.Module:
    """The network with group norm of eight groups in place of batch norm."""
    for parent in list(net.modules()):
        for name, child in parent.named_children():
            if isinstance(child, nn.BatchNorm2d):
                setattr(parent, name, nn.GroupNorm(8, child.num_features))
    return net


class LayerNormed(nn.Module):
    """Layer norm over the channels of each pixel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(channels)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        normed: Tensor = self.norm(x.permute(0, 2, 3, 1))
        return normed.permute(0, 3, 1, 2)


class Mixing(nn.Module):
    """A depthwise convolution, layer norm, and two layers for each pixel, beside a shortcut."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.spread = nn.Conv2d(channels, channels, 5, padding=2, groups=channels)
        self.norm = LayerNormed(channels)
        self.wide, self.narrow = nn.Conv2d(channels, 4 * channels, 1), nn.Conv2d(4 * channels, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        inner: Tensor = self.narrow(F.gelu(self.wide(self.norm(self.spread(x)))))
        return x + inner


def convnet_ln() -> nn.Module:
    """A small convolutional network with layer norm only."""
    parts: list[nn.Module] = [nn.Conv2d(3, 48, 3, padding=1)]
    for channels in (48, 96, 192):
        parts += [Mixing(channels), Mixing(channels)]
        if channels < 192:
            parts += [LayerNormed(channels), nn.Conv2d(channels, 2 * channels, 2, stride=2)]
    return nn.Sequential(*parts, LayerNormed(192), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(192, 10))


# The last two are trained alike, and differ in their layers: what NOTE is compared by.
BUILDERS = {
    "resnet20": resnet20,
    "resnet20_gn": lambda: with_group_norm(resnet20()),
    "convnet_ln": convnet_ln,
    "resnet20_bn": resnet20,
    "resnet20_iabn": lambda: instance_aware(resnet20()),
}


@dataclass(frozen=True)
class Job:
    """One method on one setting; pickled, and looked up by its name in the files.

    ``method`` may change settings of the list: ``rotta:sure=0,follow=0``.
    """

    data: str
    network: str
    setting: str
    seed: int
    method: str
    images: int
    stream: int
    batch: int
    device: str

    @property
    def file(self) -> tuple[str, int]:
        """Which file it is kept in: its network and number of images."""
        return self.network, self.images

    @property
    def entry(self) -> MethodEntry:
        """What is known of its method."""
        return method_entry(self.method.partition(":")[0])

    @property
    def changes(self) -> dict[str, float]:
        """Settings of the method that are not the published ones."""
        pairs = [text.partition("=") for text in self.method.partition(":")[2].split(",") if text]
        return {name: float(value) for name, _, value in pairs}

    @property
    def slow(self) -> bool:
        """Whether it takes long."""
        return (passes_of(self.entry, "cifar") or 0) >= SLOW

    @property
    def key(self) -> str:
        """How its entries in a file begin."""
        return f"{self.setting}/{self.seed}/{self.method}"


@lru_cache(maxsize=1)
def pool(data: str, count: int) -> Images:
    """The first test images of an order in which every beginning is balanced."""
    source = array_source(str(Path(data) / TEST))
    return load(source.take(np.sort(stratified_order(source.labels, source.ids)[:count])))


@lru_cache(maxsize=3)
def network(data: str, name: str, device: str) -> Levels:
    """A network with its preprocessing."""
    net = BUILDERS[name]()
    if name == "resnet20":
        net = load_weights(net, Path(data) / WEIGHTS)
    else:
        with np.load(Path(data) / TRAINED) as file:
            parts = {key.partition("/")[2]: file[key] for key in file.files if key.startswith(f"{name}/")}
        net.load_state_dict({key: torch.from_numpy(value) for key, value in parts.items()})
    return adaptable(from_module(net, name=name, preprocessing=Preprocessing(mean=MEAN, std=STD), device=device))


@lru_cache(maxsize=1)
def usual_corruptions() -> tuple[str, ...]:
    """The fifteen, but those whose files are not here."""
    there = []
    for name in orders()["standard"]:
        try:
            catalog[name].check_files()
            there.append(name)
        except (InputError, OSError) as error:
            print(f"without {name}: {error}", flush=True)
    return tuple(there)


PROTOCOL = Protocol(preset="cifar")


@lru_cache(maxsize=1)
def clean_on(data: str, count: int, device: str) -> Tensor:
    """All clean images on the device."""
    return pool(data, count).batch(range(count)).to(device)


@lru_cache(maxsize=1)
def stage(data: str, setting: str, seed: int, count: int, stream: int, device: str) -> tuple[Course, MadeImages]:
    """A stream, whose images stay on the device for the next method."""
    images, clean = pool(data, count), clean_on(data, count, device)
    chosen = load_setting(setting)
    if chosen.walk:
        walk = read_walk(Path(data) / WALK)
        shown = walk_stream(walk, clean, images, seed, PROTOCOL, None)
        shown.length = min(stream, len(walk))
        return walk_course(shown), WalkImages(shown, clean.device)
    course = course_of(chosen, "standard", usual_corruptions(), images.labels, seed)
    conditions = {name: parse_condition(name) for name in course.conditions}
    ids = torch.from_numpy(images.ids)
    return course, CorruptedImages(course, clean, ids, conditions, PROTOCOL, clean.device)


def do(job: Job) -> dict[str, Any]:
    """Run a method on a stream; what came of it as small arrays and numbers."""
    begun = time.perf_counter()
    setting = load_setting(job.setting)
    course, made = stage(job.data, job.setting, job.seed, job.images, job.stream, job.device)
    images, clean = pool(job.data, job.images), clean_on(job.data, job.images, job.device)
    size = setting.batch or job.batch
    if size == 1 and job.entry.single != "yes":
        return {"left_out": f"{job.method} is not for single images"}
    first = source_batches(clean) if job.entry.source else None
    try:
        net = network(job.data, job.network, job.device)
        method = make_from(job.entry, net, settings="cifar", clean=first, sample=clean[:1], **job.changes)
    except UnsuitedError as error:
        return {"left_out": str(error)}
    few = clean[:2000]
    ready = time.perf_counter()
    found = adapt_over(method, course, made, batch=size, clean=few, lag=lag_of(job.entry, setting, "cifar"))
    right = found.columns["prediction"] == images.labels[course.rows]
    labels = images.labels[: len(few)]
    return {
        "right": np.packbits(right),
        "adapted": np.packbits(found.columns["adapted"]),
        "clean": np.packbits(
            np.stack([np.array(c) == labels for c in (found.clean_before, found.clean_after)]), axis=1
        ),
        "facts": {
            "invalid": int((found.columns["prediction"] < 0).sum()),
            **{name: float(np.nanmean(found.columns[name])) for name in ("entropy", "concentration", "density")},
            "consistency": float(np.mean(found.probes)),
            "seconds": found.seconds,
            "whole_seconds": time.perf_counter() - ready,
            "making_seconds": ready - begun,
            "memory": found.memory,
            "images": len(course),
            "clean": len(few),
            "batch": size,
        },
    }


def prepare(options: argparse.Namespace) -> None:
    """Cut the training set, and put everything into one folder."""
    source, data = Path(options.source), Path(options.data)
    data.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source / TEST, data / TEST)
    shutil.copyfile(source / "cifar_resnets" / WEIGHTS, data / WEIGHTS)
    with np.load(source / TRAIN) as file:
        count = min(options.training, len(file["labels"]))
        offsets = file["offsets"][: count + 1]
        some = {"bytes": file["bytes"][: offsets[-1]], "offsets": offsets, "labels": file["labels"][:count]}
        np.savez(data / TRAIN, **some, classes=file["classes"])
    print(f"{sum(path.stat().st_size for path in data.iterdir()) / 1e6:.0f} MB in {data}")


def _untrained(names: Sequence[str], weights: dict[str, Any]) -> list[str]:
    """The networks without weights."""
    there = {key.partition("/")[0] for key in weights}
    return [name for name in names if name != NETWORKS[0] and name not in there]


def train(data: Path, out: Path, names: Sequence[str], device: str, epochs: int) -> None:
    """Train the networks that are not there yet, on images that are cropped and mirrored at random."""
    source = array_source(str(data / TRAIN))
    images = load(source)
    pixels = images.batch(range(len(images))).to(device)
    labels = torch.from_numpy(images.labels).to(device)
    scale = [torch.tensor(v, device=device).view(1, 3, 1, 1) for v in (MEAN, STD)]
    weights = read_file(out / TRAINED)
    for name in _untrained(names, weights):
        torch.manual_seed(0)
        net = BUILDERS[name]().to(device)
        optimiser = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=0.05)
        size = min(256, len(labels))
        steps = epochs * (len(labels) // size)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 2e-3, total_steps=max(steps, 2))
        start = time.perf_counter()
        for _ in range(epochs):
            for rows in _epoch(len(labels), size, device):
                batch = F.pad(pixels[rows].float() / 255, (4, 4, 4, 4), mode="reflect")
                top, left = torch.randint(0, 9, (2,)).tolist()
                batch = batch[..., top : top + 32, left : left + 32]
                mirrored = torch.rand(len(batch), 1, 1, 1, device=device) < 0.5
                batch = (torch.where(mirrored, batch.flip(-1), batch) - scale[0]) / scale[1]
                loss = F.cross_entropy(net(batch), labels[rows], label_smoothing=0.1)
                optimiser.zero_grad(set_to_none=True)
                loss.backward()  # type: ignore[no-untyped-call]
                optimiser.step()
                schedule.step()
        print(f"{name}: loss {loss.item():.3f} after {time.perf_counter() - start:.0f} s", flush=True)
        weights |= {f"{name}/{key}": value.cpu().numpy() for key, value in net.state_dict().items()}
        np.savez(out / TRAINED, **weights)


def _epoch(count: int, size: int, device: str) -> Tensor:
    """The rows of each batch of an epoch; what is left over waits for the next one."""
    return torch.randperm(count, device=device)[: size * (count // size)].view(-1, size)


def make_the_walk(data: Path, out: Path, options: argparse.Namespace) -> None:
    """Calibrate a few corruptions, and walk at the target."""
    net = load_weights(resnet20(), data / WEIGHTS).eval()
    model = from_module(net, name="resnet20", preprocessing=Preprocessing(mean=MEAN, std=STD), device=options.device)
    if options.device.startswith("cuda"):
        model = speed_up(model, precision="float16", channels_last=True)
    source = array_source(str(data / TEST))
    rows = stratified_order(source.labels, source.ids)[: min(options.subset, options.images)]
    grid = tuple(5 * step / options.grid for step in range(options.grid + 1))
    place = Bench(model, load(source.take(rows)), seed=1, preset="cifar", grid=grid)
    start = time.perf_counter()
    names = [name for name in options.walked if name in usual_corruptions()]
    surfaces = calibrate(place, names, refinement=Refinement((options.target,)))
    usable = usable_corruptions(surfaces, options.target, tolerance=options.tolerance, names=names)
    rule = PathRule(options.target, ends="independent", measured_only=True)
    walk = make_walk(surfaces, rule, images=options.stream, speed=500, names=usable, seed=43, closed=True)
    write_bytes(out / WALK, walk.to_json().encode())
    print(f"walk over {', '.join(usable)}: {time.perf_counter() - start:.0f} s", flush=True)


def read_file(path: Path) -> dict[str, Any]:
    """What a file of results holds."""
    if not path.is_file():
        return {}
    with np.load(path) as file:
        return {key: file[key] for key in file.files}


def run(options: argparse.Namespace) -> None:
    """Do what is not done yet, and keep what is."""
    begun = time.perf_counter()
    data, out = Path(options.data), Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    for path in data.iterdir():  # what an earlier call left, so that OUT is always all there is
        if path.name in (WALK, TRAINED, LOG) or path.name.startswith("arena-"):
            shutil.copyfile(path, out / path.name)
    jobs = _jobs(options)
    if _untrained(options.networks, read_file(out / TRAINED)):
        train(data, out, options.networks, options.device, options.epochs)
    if any(job.setting == "ccc" for job in jobs) and not (out / WALK).is_file():
        make_the_walk(data, out, options)
    for name in (WALK, TRAINED):
        if (out / name).is_file():
            shutil.copyfile(out / name, data / name)
    results = {file: read_file(_file(out, file)) for file in dict.fromkeys(job.file for job in jobs)}
    end, saved = begun + options.seconds, time.perf_counter()
    jobs = [job for job in jobs if f"{job.key}/facts" not in results[job.file]]
    print(f"{len(jobs)} results to make, {time.perf_counter() - begun:.0f} s so far", flush=True)
    plain = options.jobs == 1
    executor: Executor = InProcess(retries=0) if plain else Processes(options.jobs, threads=1, retries=0)
    failures, images = [], 0
    start = time.perf_counter()
    for outcome in executor.run(Calls(do), _while_there_is_time(jobs, end)):
        job = outcome.unit
        if not isinstance(outcome, Done):
            failures.append(f"{job.network} {job.key}: {outcome.reason}")
            print(f"  failed: {failures[-1]}", flush=True)
            continue
        kept = results[job.file]
        images += outcome.result.get("facts", {}).get("images", 0)
        for name, value in outcome.result.items():
            kept[f"{job.key}/{name}"] = value if isinstance(value, np.ndarray) else np.array(json.dumps(value))
        if "facts" not in outcome.result:
            kept[f"{job.key}/facts"] = np.array("null")
        print(f"  {job.network} {job.key}: {_said(outcome.result)}", flush=True)
        if time.perf_counter() - saved > 10:
            _write(out, results)
            saved = time.perf_counter()
    _write(out, results)
    log = json.loads((out / LOG).read_text()) if (out / LOG).is_file() else []
    name = torch.cuda.get_device_name() if options.device.startswith("cuda") else options.device
    spent = {"methods_seconds": time.perf_counter() - start, "seconds": time.perf_counter() - begun}
    asked = {"images": options.images, "jobs": options.jobs, "adapted_to": images, "failures": failures}
    log.append({"device": name, "torch": torch.__version__, **spent, **asked})
    write_bytes(out / LOG, (json.dumps(log, indent=1) + "\n").encode())
    left = [job for job in jobs if f"{job.key}/facts" not in results[job.file]]
    print(f"{len(left)} results left; {time.perf_counter() - begun:.0f} s", flush=True)


def _said(result: dict[str, Any]) -> str:
    if "facts" not in result:
        return str(result.get("left_out"))
    facts = result["facts"]
    error = 1 - np.unpackbits(result["right"], count=facts["images"]).mean()
    return f"error {100 * error:.1f} %, {facts['seconds']:.1f} s of {facts['whole_seconds']:.1f} s"


def _file(out: Path, file: tuple[str, int]) -> Path:
    return out / f"arena-{file[0]}-{file[1]}.npz"


def _write(out: Path, results: dict[tuple[str, int], dict[str, Any]]) -> None:
    for file, kept in results.items():
        if kept:
            temporary = out / ".arena.npz"
            np.savez_compressed(temporary, **kept)
            temporary.replace(_file(out, file))


def _jobs(options: argparse.Namespace) -> list[Job]:
    """Network after network and setting after setting, what is slow at the end."""
    methods = [name for text in options.methods for name in GROUPS.get(text, (text,))]
    found = []
    for name in options.networks:
        for setting in options.settings or (SETTINGS if name == NETWORKS[0] else OTHERS):
            for seed in options.seeds:
                more = (options.images, options.stream, options.batch, options.device)
                found += [Job(str(options.data), name, setting, seed, method, *more) for method in methods]
    return sorted(found, key=lambda job: job.slow)


def _while_there_is_time(jobs: list[Job], end: float) -> Iterator[Job]:
    for job in jobs:
        if time.perf_counter() < end - (120 if job.slow else 30):
            yield job


def tables(options: argparse.Namespace) -> None:
    """Print what is in the files."""
    out = Path(options.out)
    for path in sorted(out.glob("arena-*.npz")):
        _, name, images = path.stem.split("-")
        settings = scored(list(_shown(read_file(path), str(options.data), int(images))), window=options.window)
        print(f"\n# {name}, {int(images):,} images\n")
        print(markdown([error_table(settings), *(t for s in settings for t in (setting_table(s), cost_table(s)))]))
    log = json.loads((out / LOG).read_text()) if (out / LOG).is_file() else []  # calls that came to their end
    for count in dict.fromkeys(call["images"] for call in log):
        calls = [call for call in log if call["images"] == count]
        seconds, whole = (sum(call[key] for call in calls) for key in ("methods_seconds", "seconds"))
        shown = sum(call["adapted_to"] for call in calls)
        print(f"{count:,} images: {len(calls)} calls, {shown:,} images adapted to in {seconds:.0f} of {whole:.0f} s")
    print(json.dumps(log, indent=1))


def _shown(kept: dict[str, Any], data: str, count: int) -> Iterator[Shown]:
    streams: dict[tuple[str, int], list[str]] = {}
    for key in kept:
        setting, seed, method, what = key.split("/")
        if what == "right":
            streams.setdefault((setting, int(seed)), []).append(method)
    for (setting, seed), methods in streams.items():
        facts = {m: json.loads(str(kept[f"{setting}/{seed}/{m}/facts"])) for m in methods}
        course, _ = stage(data, setting, seed, count, facts[methods[0]]["images"], "cpu")
        images = pool(data, count)
        labels = images.labels[course.rows]
        header = StreamHeader("", load_setting(setting), "standard", seed, course.conditions, course.blocks)
        table = StreamTable(header, images.ids[course.rows], labels, course.condition.astype(np.int64))
        ordered = sorted(methods, key=lambda m: (list(METHODS).index(m.partition(":")[0]), m))
        results = {m: _result(kept, f"{setting}/{seed}/{m}", m, seed, facts[m], labels) for m in ordered}
        yield Shown(table, results)


def _result(kept: dict[str, Any], key: str, method: str, seed: int, facts: Any, labels: Any) -> MethodResult:
    count = facts["images"]
    right, adapted = (np.unpackbits(kept[f"{key}/{what}"], count=count).astype(bool) for what in ("right", "adapted"))
    clean = np.unpackbits(kept[f"{key}/clean"], axis=1, count=facts["clean"])
    before, after = (tuple(int(1 - value) for value in row) for row in clean)
    setting = load_setting(key.partition("/")[0])
    header = ResultHeader(
        setting=setting,
        seed=seed,
        method=method,
        batch=facts["batch"],
        images=count,
        passes=passes_of(method_entry(method.partition(":")[0]), "cifar", setting.backward),
        probes=(facts["consistency"],),
        clean_labels=(0,) * len(after),
        clean_before=before,
        clean_after=after,
        seconds=facts["seconds"],
        memory=facts["memory"],
        device="the CPU" if facts["memory"] is None else "the GPU",  # memory is measured on a GPU only
    )
    # Which class a wrong answer gave is not kept: any other one stands for it.
    predictions = np.where(right, labels, labels + 1)
    predictions[np.flatnonzero(~right)[: facts["invalid"]]] = -1
    signals = [np.full(count, facts[name]) for name in ("entropy", "concentration", "density")]
    return MethodResult(header, predictions, *signals, adapted)


def main() -> None:
    """One of the three steps."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    steps = parser.add_subparsers(required=True)
    first = steps.add_parser("prepare")
    first.add_argument("source")
    first.add_argument("data")
    first.add_argument("--training", type=int, default=25_000, help="training images")
    first.set_defaults(do=prepare)
    second, third = steps.add_parser("run"), steps.add_parser("tables")
    second.add_argument("data")
    second.add_argument("out")
    second.set_defaults(do=run)
    third.add_argument("out")
    third.add_argument("--data", default=None, help="default: OUT")
    third.add_argument("--window", type=int, default=None, help="images of running means")
    third.set_defaults(do=tables)
    second.add_argument("--networks", nargs="+", default=list(NETWORKS[:3]), choices=NETWORKS)
    second.add_argument("--images", type=int, default=10_000, help="test images, under each corruption")
    second.add_argument("--stream", type=int, default=100_000, help="images of the walk")
    second.add_argument("--settings", nargs="+", help=f"default: {SETTINGS}, or {OTHERS} without batch norm")
    second.add_argument("--methods", nargs="+", default=["one_pass"], help=f"names, or {', '.join(GROUPS)}")
    second.add_argument("--seeds", type=int, nargs="+", default=[1])
    second.add_argument("--batch", type=int, default=200)
    second.add_argument("--target", type=float, default=0.5, help="accuracy that the walk holds")
    second.add_argument("--walked", nargs="+", default=list(WALKED), help="corruptions that the walk goes between")
    second.add_argument("--tolerance", type=float, default=0.06)
    second.add_argument("--subset", type=int, default=1000, help="images to calibrate on")
    second.add_argument("--grid", type=int, default=20, help="steps of severity, from 0 to 5, to calibrate at")
    second.add_argument("--epochs", type=int, default=30)
    second.add_argument("--jobs", type=int, default=8, help="methods at a time")
    second.add_argument("--seconds", type=float, default=440.0, help="time for everything")
    second.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    options = parser.parse_args()
    if getattr(options, "data", "") is None:
        options.data = options.out
    options.do(options)


if __name__ == "__main__":
    main()
