"""What a worker does: it opens the model and the images once, then runs one method on one stream after the other."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from blemish.benchmarks.benchmark import Protocol
from blemish.benchmarks.condition import CLEAN
from blemish.core.errors import InputError
from blemish.corruptions.catalog import Catalog
from blemish.data.images import Images
from blemish.data.source import stratified_order
from blemish.evaluation.executors.base import Tell
from blemish.evaluation.measure import Measurer
from blemish.evaluation.plan import Part
from blemish.studies.adaptation.base import Levels, Method, adaptable
from blemish.studies.adaptation.entry import MethodEntry
from blemish.studies.adaptation.methods import Settings, make_from, options_of
from blemish.studies.adaptation.own import entry_of
from blemish.studies.arena.adapting import Pace, adapt_over
from blemish.studies.arena.course import Course, course_of
from blemish.studies.arena.images import CorruptedImages, MadeImages, WalkImages, clean_images
from blemish.studies.arena.results import ResultHeader, result_bytes
from blemish.studies.arena.setting import Setting
from blemish.studies.arena.units import Stage, Unit
from blemish.studies.streams.images import from_tensor
from blemish.studies.streams.stream import Stream
from blemish.studies.streams.walks import Walk

SOURCE_IMAGES, _SOURCE_BATCH = 2000, 64
"""How many clean images methods are shown that need some before a stream."""


@dataclass(frozen=True)
class Saved:
    """Told by a worker: a state to go on from."""

    state: bytes


@dataclass
class ArenaWork:
    """What all units share, and what a worker keeps from one to the next.

    ``methods`` is which published settings are used, ``clean`` how many clean images are predicted before and after.
    """

    corruptions: tuple[str, ...]
    methods: Settings
    clean: int
    arena: str
    walk: Walk | None = None
    catalog: Catalog | None = None
    pace: Pace = field(default_factory=Pace)
    _kept: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def __call__(self, measurer: Measurer, unit: Unit, tell: Tell) -> bytes:
        """The file of a unit's result."""
        fingerprint = measurer.plan.images_of(CLEAN).fingerprint
        images = measurer.images_of(CLEAN, Part(str(CLEAN), fingerprint=fingerprint))
        model, stage = measurer.model, unit.stage
        clean = self._once("clean", images.fingerprint, lambda: clean_images(images, model.device))
        course, made = self._once("stage", stage, lambda: self._stage(measurer, stage, images, clean))
        method = method_for(unit, adaptable(model), self.methods, clean=clean)
        # All classes in proportion.
        rows = torch.from_numpy(np.sort(stratified_order(images.labels, images.ids)[: self.clean]))

        def heard(done: int, state: bytes | None) -> None:
            tell(done)
            if state is not None:
                tell(Saved(state))

        with tempfile.TemporaryDirectory() as scratch:
            state = None
            if unit.state is not None:
                state = Path(scratch) / "state"
                state.write_bytes(unit.state)
            adapted = adapt_over(
                method,
                course,
                made,
                batch=unit.batch,
                clean=clean[rows.to(clean.device)],
                lag=lag_of(entry_of(unit.method), stage.setting, self.methods),
                state=state,
                pace=self.pace,
                tell=heard,
            )
        header = replace(
            result_header(unit, self.arena, len(course), self.methods),
            probes=adapted.probes,
            clean_labels=tuple(images.labels[rows.numpy()].tolist()),
            clean_before=adapted.clean_before,
            clean_after=adapted.clean_after,
            seconds=round(adapted.seconds, 4),
            memory=adapted.memory,
            device=_device_name(model.device),
        )
        return result_bytes(header, adapted.columns)

    def _once(self, what: str, key: Any, make: Callable[[], Any]) -> Any:
        if what not in self._kept or self._kept[what][0] != key:
            self._kept.pop(what, None)  # before the next one is made
            self._kept[what] = key, make()
        return self._kept[what][1]

    def _stage(self, measurer: Measurer, stage: Stage, images: Images, clean: Tensor) -> tuple[Course, MadeImages]:
        device, protocol = measurer.model.device, measurer.plan.protocol
        if stage.setting.walk:
            assert self.walk is not None
            stream = walk_stream(self.walk, clean, images, stage.seed, protocol, self.catalog)
            return walk_course(stream), WalkImages(stream, device)
        course = course_of(stage.setting, stage.variant, self.corruptions, images.labels, stage.seed)
        ids = torch.from_numpy(np.ascontiguousarray(images.ids))
        return course, CorruptedImages(course, clean, ids, measurer.conditions, protocol, device)

    def __getstate__(self) -> dict[str, Any]:
        """What travels: nothing of what is kept."""
        return {**self.__dict__, "_kept": {}}


def walk_stream(
    walk: Walk, clean: Tensor, images: Images, seed: int, protocol: Protocol, catalog: Catalog | None
) -> Stream:
    """The stream of a walk over some images, with the severities and the storage of the protocol."""
    shown = from_tensor(clean, images.labels, name=images.name)
    more: dict[str, Any] = {} if catalog is None else {"catalog": catalog}
    jpeg = protocol.storage == "jpeg85"
    return Stream(shown, walk, seed=seed, jpeg=jpeg, preset=protocol.preset, device=clean.device, **more)


def walk_course(stream: Stream) -> Course:
    """What a stream over a walk shows; steps of the same corruptions and severities are one condition."""
    rows, steps = stream.shown(0, int(stream.length))
    names: dict[str, int] = {}
    numbers = np.array([names.setdefault(str(step), len(names)) for step in stream.walk.steps], dtype=np.int32)
    return Course(tuple(names), rows, numbers[steps], (0,))


def method_for(unit: Unit, network: Levels, settings: Settings, *, clean: Tensor) -> Method:
    """A fresh method for a unit; some are shown clean images first, and the first of them shows how a network ends."""
    entry = entry_of(unit.method)
    batches = source_batches(clean) if entry.source else None
    method = make_from(entry, network, settings=settings, clean=batches, sample=clean[:1])
    if unit.variation.rate != 1:
        scale = getattr(method, "scale_rate", None)
        if scale is None:
            raise InputError(f"{unit.method} has no learning rate to vary")
        scale(unit.variation.rate)
    return method


def source_batches(clean: Tensor) -> list[Tensor]:
    """Clean images for methods that look at some before the stream: 2,000, or all of fewer."""
    rows = torch.from_numpy(np.random.default_rng(0).permutation(len(clean))[:SOURCE_IMAGES])
    return [clean[part.to(clean.device)] for part in torch.split(rows, _SOURCE_BATCH)]


def lag_of(entry: MethodEntry, setting: Setting, settings: Settings) -> int:
    """How many batches a method misses after each that it adapts to: max(0, ⌈η c⌉ − 1), c in plain passes.

    Alfarra et al., ICML 2024, with counted passes instead of measured times, so that it does not depend on a machine.
    """
    if setting.speed == 0:
        return 0
    passes = passes_of(entry, settings, setting.backward)
    if passes is None:
        raise InputError(f"{entry.name} does not say what it costs; expected cost = (forwards, backwards) of its class")
    return max(0, math.ceil(round(setting.speed * passes, 6)) - 1)


def passes_of(entry: MethodEntry, settings: Settings, backward: float = 2.0) -> float | None:
    """What a method takes for each image, in plain passes; None where it does not say."""
    cost = entry.cost_with(options_of(entry, settings))
    return None if cost is None else cost.forwards + backward * cost.backwards


def result_header(unit: Unit, arena: str, images: int, settings: Settings) -> ResultHeader:
    """What the file of a unit says of how it is made."""
    entry = entry_of(unit.method)
    stage = unit.stage
    options = ", ".join(f"{name}={value}" for name, value in sorted(options_of(entry, settings).items()))
    return ResultHeader(
        arena=arena,
        setting=stage.setting,
        variant=stage.variant,
        seed=stage.seed,
        method=unit.method,
        options=options,
        variation=unit.variation,
        batch=unit.batch,
        images=images,
        passes=passes_of(entry, settings, stage.setting.backward),
    )


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
