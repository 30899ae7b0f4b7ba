"""A benchmark: conditions, the protocol under which they are measured, a headline metric and its baseline."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from blemish.benchmarks.condition import CLEAN, Condition
from blemish.core.errors import InputError
from blemish.core.rng import check_seed
from blemish.core.types import Square
from blemish.corruptions.catalog import hint
from blemish.corruptions.inputs import MIN_SIDE
from blemish.corruptions.severity import DATA_SETS, PRESETS

STORAGES = ("raw", "jpeg85")
"""How corrupted images reach the model: as they are, or through JPEG of quality 85, as ImageNet-C was published."""

POOLS = ("mean", "sum", "max")
"""What counts of the probabilities of the classes that a superclass stands for."""

METRICS = {
    "error": "mean error over all conditions, relative to no baseline",
    "accuracy": "mean accuracy over all conditions, relative to no baseline",
    "mce": "mean corruption error: errors relative to a baseline's",
    "relative_mce": "mean relative corruption error: the rise above the clean error, relative to a baseline's",
    "robustness": "mean robustness score: accuracy relative to the clean accuracy",
    "residual": "mean residual robustness: clean accuracy minus accuracy",
    "balanced_error": "mean balanced error over all conditions, every class counting the same; relative to no baseline",
    "mbe": "mean balanced error of corruptions, every class counting the same, relative to a baseline's",
    "mfr": "mean flip rate over perturbation sequences, relative to a baseline's",
    "flips": "mean flip probability over perturbation sequences, relative to no baseline",
    "score": "mean over conditions of any score of images, the larger the better",
    "miou": "mean over conditions of the mean intersection over union of classes of pixels, relative to no baseline",
    "ap": "mean over conditions of COCO's average precision of detections (mPC), relative to no baseline",
    "natural_gap": "mean loss of accuracy from the clean images of the same classes to natural sets",
}
"""What a benchmark may be headed by."""

BALANCED = ("balanced_error", "mbe", "mean_be")
"""Metrics in which every class counts the same, however many images it has; the last is that of a part."""

_SHOWN = 5


@dataclass(frozen=True)
class Protocol:
    """What decides the pixels besides the condition; equal protocols and data make numbers comparable.

    ``resize`` and ``crop`` are the shorter side before and the square after a centre crop, both before corrupting;
    sequences are rendered from the uncropped image and cropped last. Instead, ``square`` brings all of an image, or the
    share ``centre`` in the middle of each side, to so many pixels on both sides, whatever its shape.

    ``superclasses`` names a few classes that each stand for several of ImageNet's; the probabilities of those are
    pooled as ``pool`` says (`POOLS`), and the largest decides.
    """

    preset: str | None = None
    seed: int = 0
    storage: str = "raw"
    resize: int | None = None
    crop: int | None = None
    square: int | None = None
    centre: float | None = None
    superclasses: str | None = None
    pool: str | None = None

    def __post_init__(self) -> None:
        """Refuse settings that mean nothing."""
        check_seed(self.seed)
        if (self.superclasses is None) != (self.pool is None):
            alone = "superclasses without pool" if self.pool is None else "pool without superclasses"
            raise InputError(f"{alone}; expected both, or neither")
        if self.pool is not None and self.pool not in POOLS:
            raise InputError(f"unknown pool {self.pool!r}; expected one of {', '.join(POOLS)}")
        if self.preset is not None and self.preset not in (*PRESETS, *DATA_SETS):
            known = f"{', '.join(PRESETS)}, or a data set of MedMNIST-C: {', '.join(DATA_SETS)}"
            raise InputError(f"unknown preset {self.preset!r}; expected one of {known}")
        if self.storage not in STORAGES:
            raise InputError(f"unknown storage {self.storage!r}; expected {' or '.join(STORAGES)}")
        for what, side in (("resize", self.resize), ("crop", self.crop)):
            if side is not None and side < MIN_SIDE:
                raise InputError(f"{what} to {side} pixels; expected at least {MIN_SIDE}")
        if self.resize is not None and self.crop is not None and self.crop > self.resize:
            raise InputError(f"a crop of {self.crop} out of images resized to {self.resize}; expected a smaller crop")
        if self.square is not None and (self.resize, self.crop) != (None, None):
            raise InputError("square together with resize or crop; expected the one or the others")
        if self.centre is not None and self.square is None:
            raise InputError("centre without square; expected the side of the square that the middle is brought to")
        if isinstance(self.view, Square):
            self.view.check(least=MIN_SIDE)

    @property
    def view(self) -> int | Square | None:
        """What a model is shown of an image that is resized: a centre crop of this side, or a square made of it."""
        if self.square is None:
            return self.crop
        return Square(self.square, 1.0 if self.centre is None else self.centre)


@dataclass(frozen=True)
class Benchmark:
    """A named list of conditions; clean images always come first.

    ``baseline`` names the published errors that its own are divided by, ``reference`` the published accuracies of
    people or models that stand beside them. ``stored_title`` is what it is called with the published images, where
    those that are made here cannot be the same. ``part_of`` is the benchmark of which it is only a part.
    """

    name: str
    title: str
    metric: str
    conditions: tuple[Condition, ...]
    protocol: Protocol = Protocol()
    baseline: str | None = None
    paper: str = ""
    reference: str | None = None
    stored_title: str = ""
    part_of: Benchmark | None = None

    def __post_init__(self) -> None:
        """Refuse doubled conditions and unknown metrics; put the clean images first."""
        if self.metric not in METRICS:
            raise InputError(f"benchmark {self.name}: unknown metric {self.metric!r}; {hint(self.metric, [*METRICS])}")
        rest = [condition for condition in self.conditions if condition != CLEAN]
        if not rest:
            raise InputError(f"benchmark {self.name}: no conditions; expected at least one besides the clean images")
        if self.protocol.superclasses is not None and (others := [c.other for c in rest if c.other]):
            raise InputError(f"benchmark {self.name}: {others[0]} with superclasses; its classes are its own")
        twice = [str(condition) for condition, times in Counter(rest).items() if times > 1]
        if twice:
            shown = ", ".join(sorted(twice)[:_SHOWN]) + (
                f" and {len(twice) - _SHOWN} more" if len(twice) > _SHOWN else ""
            )
            raise InputError(f"benchmark {self.name}: {shown} given twice; expected each condition once")
        object.__setattr__(self, "conditions", (CLEAN, *rest))

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of its corruptions, sequences and other sets, in order."""
        return tuple(dict.fromkeys(condition.group for condition in self.conditions[1:]))

    @property
    def has_sequences(self) -> bool:
        """Whether some images become many frames, in it or in the benchmark of which it is a part."""
        return any(condition.is_sequence for condition in (self.part_of or self).conditions)


def only(benchmark: Benchmark, patterns: Iterable[str]) -> Benchmark:
    """The part of a benchmark whose conditions or corruptions match a name or a pattern such as ``*_noise``.

    >>> from blemish.benchmarks.files import load_benchmark
    >>> [str(condition) for condition in only(load_benchmark("imagenet-c"), ["fog@1", "clean"]).conditions]
    ['clean', 'fog@1']
    """
    chosen: dict[Condition, None] = {}
    for pattern in patterns:
        matching = [
            condition
            for condition in benchmark.conditions
            if fnmatchcase(str(condition), pattern) or fnmatchcase(condition.group, pattern)
        ]
        if not matching:
            raise InputError(f"nothing in {benchmark.name} is called {pattern!r}; {hint(pattern, [*benchmark.groups])}")
        chosen |= dict.fromkeys(matching)
    conditions = tuple(condition for condition in benchmark.conditions if condition in chosen)
    return only_conditions(benchmark.part_of or benchmark, conditions)


def only_conditions(whole: Benchmark, conditions: Sequence[Condition]) -> Benchmark:
    """The part of a benchmark with these of its conditions; its name says that it is a part."""
    kept, total = len({*conditions} - {CLEAN}), len(whole.conditions) - 1
    if kept == total:
        return whole
    part = f"({kept} of {total} conditions)"
    title, stored = (f"{text} {part}" if text else "" for text in (whole.title, whole.stored_title))
    name = f"{whole.name} {part}"
    return replace(whole, name=name, title=title, stored_title=stored, conditions=tuple(conditions), part_of=whole)
