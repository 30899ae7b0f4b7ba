"""Which units an arena is made of: methods that suit the network, on the settings that suit them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from blemish.core.errors import InputError
from blemish.studies.adaptation.base import Levels, Method, adaptable
from blemish.studies.adaptation.entry import MethodEntry
from blemish.studies.adaptation.norm import UnsuitedError
from blemish.studies.adaptation.own import entry_of
from blemish.studies.arena.arena import Arena
from blemish.studies.arena.setting import Setting
from blemish.studies.arena.units import AS_PUBLISHED, Stage, Unit, Variation
from blemish.studies.arena.work import method_for, passes_of

_SLOW = 12.0
"""Plain passes for an image from which on a method is called slow."""


@dataclass(frozen=True)
class Grid:
    """Factors of learning rates and batch sizes that are tried beside the published ones, in all combinations."""

    rates: tuple[float, ...] = ()
    batches: tuple[int, ...] = ()

    def variations(self, *, rated: bool) -> list[Variation]:
        """Those of a method, the published settings first; one without a learning rate varies its batch size only."""
        rates = (1.0, *(rate for rate in self.rates if rated and rate != 1))
        sizes: tuple[int | None, ...] = (None, *self.batches)
        return [Variation(rate, size) for rate, size in itertools.product(rates, sizes)]


@dataclass(frozen=True)
class Planned:
    """Units, and words for what is left out."""

    units: list[Unit]
    left_out: list[str]


def planned_units(
    arena: Arena,
    methods: Sequence[str],
    settings: Sequence[Setting],
    *,
    seeds: Sequence[int],
    grid: Grid = Grid(),  # noqa: B008  # it cannot be changed
    strict: bool = False,
) -> Planned:
    """The units of methods on settings; what does not suit is left out with a word, or where ``strict`` refused.

    A method that a setting does not suit is always left out there, as long as it suits another one.
    """
    if not methods or not settings or not seeds:
        raise InputError("no methods, settings or seeds; expected at least one of each")
    for what, names in (("methods", methods), ("settings", [setting.name for setting in settings])):
        if twice := next((name for name in names if list(names).count(name) > 1), None):
            raise InputError(f"{what}: {twice} named twice; expected each once")
    batch = arena.question.batch
    made, words = _suited(arena, methods, strict=strict)
    network = adaptable(arena.model)
    units: list[Unit] = []
    for setting, (name, method) in itertools.product(settings, made.items()):
        entry = entry_of(name)
        reason = _unsuited(entry, setting, network, setting.batch or batch)
        if reason is not None:
            words.append(f"{name} is left out of {setting.name}: {reason}")
            continue
        rated = hasattr(method, "scale_rate")
        for variant, seed, variation in itertools.product(setting.variants, seeds, grid.variations(rated=rated)):
            size = setting.batch or variation.batch or batch
            if variation.batch is not None and (setting.batch is not None or variation.batch == batch):
                continue  # the size belongs to the setting, or is the usual one
            if variation != AS_PUBLISHED and _unsuited(entry, setting, network, size) is not None:
                continue
            units.append(Unit(Stage(setting, variant, seed), name, size, variation))
    if not units:
        raise InputError(f"nothing to run: {'; '.join(words)}")
    # Methods on one stream come one after the other: its images are made once.
    units.sort(key=lambda unit: (settings.index(unit.stage.setting), unit.stage.variant, unit.stage.seed))
    return Planned(units, words)


def _suited(arena: Arena, methods: Sequence[str], *, strict: bool) -> tuple[dict[str, Method], list[str]]:
    """Methods that the network suits, each made once, and a word for the others."""
    network = adaptable(arena.model)
    few = arena.images.batch(range(min(len(arena.images), 2))).to(arena.model.device)
    made: dict[str, Method] = {}
    lacks: dict[str, list[str]] = {}
    trial = Stage(Setting(name="trial", title="trial"), "standard", 0)
    for name in methods:
        try:
            made[name] = method_for(Unit(trial, name, arena.question.batch), network, arena.question.methods, clean=few)
        except UnsuitedError as error:
            if strict:
                raise
            lacks.setdefault(error.lack, []).append(name)
    return made, [f"left out, because {lack}: {', '.join(names)}" for lack, names in lacks.items()]


def _unsuited(entry: MethodEntry, setting: Setting, network: nn.Module, batch: int) -> str | None:
    """Why a method cannot take a setting, if it cannot."""
    if batch == 1 and entry.single == "no":
        return "it needs more than one image at a time"
    if batch == 1 and entry.single == "without batch norm" and _has_batch_norm(network):
        return "a single image has no batch statistics"
    if setting.speed > 0 and entry.cost is None:
        return "it does not say what it costs (cost = (forwards, backwards) of its class)"
    return None


def _has_batch_norm(network: nn.Module) -> bool:
    return any(isinstance(layer, _BatchNorm) for layer in network.modules())


def slow_text(arena: Arena, planned: Planned, workers: int) -> list[str]:
    """How much there is to do, and what slow methods take of it, by the time of a plain pass here."""
    left = arena.missing(planned.units)
    if not left:
        return ["everything is finished"]
    stages = {stage: len(arena.course(stage)) for stage in dict.fromkeys(unit.stage for unit in left)}
    network = adaptable(arena.model)
    each = {size: _seconds_of_a_pass(network, arena, size) for size in dict.fromkeys(unit.batch for unit in left)}
    seconds: dict[str, float] = {}
    passes: dict[str, float] = {}
    for unit in left:
        known = passes_of(entry_of(unit.method), arena.question.methods)
        passes[unit.method] = 3.0 if known is None else known
        seconds[unit.method] = (
            seconds.get(unit.method, 0.0) + passes[unit.method] * each[unit.batch] * stages[unit.stage]
        )
    done = len(planned.units) - len(left)
    there = f", {done} are there" if done else ""
    many = sum(stages[unit.stage] for unit in left)
    pace = f"{1000 * each[left[0].batch]:.2g} ms a plain pass: {_long(sum(seconds.values()) / workers)} or more"
    texts = [f"{len(planned.units)} results to make{there}; {many:,} images to adapt to, at about {pace}"]
    slow = sorted((name for name in seconds if passes[name] >= _SLOW), key=lambda name: -seconds[name])
    texts += [f"{name} takes {passes[name]:g} passes an image: about {_long(seconds[name] / workers)}" for name in slow]
    return texts


def _seconds_of_a_pass(network: Levels, arena: Arena, batch: int) -> float:
    """How long an image takes in a plain pass of a batch, the second time."""
    device = arena.model.device
    images = arena.images.batch(range(min(batch, len(arena.images)))).to(device)
    with torch.no_grad():
        network.eval()(images)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        start = time.perf_counter()
        network(images)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
    return (time.perf_counter() - start) / len(images)


def _long(seconds: float) -> str:
    """A time in words.

    >>> _long(40), _long(600), _long(9000)
    ('40 s', '10 min', '2.5 h')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
