"""What errors are divided by: the published AlexNet, or any model's records."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from blemish.benchmarks.condition import CLEAN, Condition
from blemish.core.errors import InputError, UnknownNameError
from blemish.corruptions.severity import MAX_SEVERITY
from blemish.evaluation.chance import chance_of
from blemish.evaluation.runs import Run
from blemish.metrics.formulas import Array, balanced_accuracy
from blemish.metrics.quantities import quantities_of
from blemish.metrics.table import Key, Kind, read_tables

_SEVERITIES = list(range(1, MAX_SEVERITY + 1))


@dataclass(frozen=True)
class Baseline:
    """A model's errors, flip probabilities and top-5 distances by condition, as rates.

    ``means`` holds errors that are known as means over severities 1–5 only, by corruption. ``remarks`` say where the
    numbers of each kind come from, and of single corruptions in what they differ. ``unfit`` is why a run cannot be
    compared with it. Errors are ``balanced`` where every class counts the same. Published ones are of images with the
    settings of a ``preset``, and of so many ``classes``. Of another ``quantity``, such as the score, errors are what it
    lacks of 1.
    """

    name: str
    clean: float | None = None
    errors: Mapping[str, float] = field(default_factory=dict)
    means: Mapping[str, float] = field(default_factory=dict)
    flips: Mapping[str, float] = field(default_factory=dict)
    top5: Mapping[str, float] = field(default_factory=dict)
    remarks: Mapping[str, str] = field(default_factory=dict)
    published: bool = False
    near_chance: bool = False
    quantity: str = "error"
    unfit: str | None = None
    balanced: bool = False
    preset: str = "imagenet"
    classes: int = 1000

    def errors_of(self, conditions: Sequence[Condition]) -> Array:
        """The errors under all conditions of one corruption, or their mean where only that is known."""
        missing = [str(condition) for condition in conditions if str(condition) not in self.errors]
        if not missing:
            return np.array([self.errors[str(condition)] for condition in conditions])
        group = conditions[0].group
        if group in self.means:
            severities = sorted(condition.severity or 0 for condition in conditions)
            if severities != _SEVERITIES:
                shown = ", ".join(str(condition) for condition in conditions)
                raise InputError(
                    f"baseline {self.name} knows {group} as a mean over severities 1–{MAX_SEVERITY} only, "
                    f"which does not fit {shown}"
                )
            return np.asarray(self.means[group])
        raise InputError(f"baseline {self.name} has no errors of {', '.join(missing)}")

    def require(self, *, balanced: bool = False, quantity: str = "error") -> None:
        """Refuse to be divided by where errors are of another kind."""
        if self.quantity != quantity:
            raise InputError(f"baseline {self.name} holds numbers of its {self.quantity}; expected its {quantity}")
        if self.balanced != balanced:
            held, wanted = ("balanced", "plain") if self.balanced else ("plain", "balanced")
            raise InputError(f"baseline {self.name} holds {held} errors; expected {wanted} ones to divide by")

    def clean_error(self) -> float:
        """The error on clean images."""
        if self.clean is None:
            raise InputError(f"baseline {self.name} has no clean error")
        return self.clean

    def stability_of(self, condition: Condition, *, kind: Kind) -> float:
        """The flip probability or top-5 distance of a sequence."""
        known = self.flips if kind == "flip" else self.top5
        if str(condition) not in known:
            quantity = "flip probability" if kind == "flip" else "top-5 distance"
            raise InputError(f"baseline {self.name} has no {quantity} of {condition}")
        return known[str(condition)]

    def remarks_on(self, conditions: Sequence[Condition]) -> list[str]:
        """Where the numbers that apply to these conditions come from, and of which corruptions they are others."""
        used = set()
        for condition in conditions:
            text = str(condition)
            if text in self.errors:
                used.add(condition.group)
            if condition == CLEAN:
                used.add("clean")
            elif text in self.flips:
                used.add("flips")
            elif text in self.errors:
                used.add("severities" if condition.severity is not None else "errors")
            elif condition.group in self.means:
                used.add("means")
        return [remark for kind, remark in self.remarks.items() if kind in used]


@cache
def _tables() -> dict[str, Any]:
    path = resources.files("blemish.metrics") / "baselines.json"
    return dict(json.loads(path.read_text(encoding="utf-8")))


@cache
def _medical() -> dict[str, Any]:
    path = resources.files("blemish.metrics") / "medmnist_c.json"
    return {f"alexnet/{name}": entry for name, entry in json.loads(path.read_text(encoding="utf-8"))["alexnet"].items()}


def published_baselines() -> tuple[str, ...]:
    """The names of the baselines that come with the library."""
    return (*_tables(), *_medical())


def published_baseline(name: str = "alexnet") -> Baseline:
    """A baseline out of the literature.

    >>> published_baseline("alexnet").clean
    0.435
    """
    if name in _medical():
        return _medical_baseline(name)
    if name not in _tables():
        known = f"{' or '.join(_tables())}, alexnet/ and a data set of MedMNIST-C"
        raise UnknownNameError(f"unknown baseline {name!r}; expected {known}, or a folder with a run")
    entry = _tables()[name]
    errors = {
        f"{group}@{severity}": error
        for group, row in entry["severities"].items()
        for severity, error in zip(_SEVERITIES, row, strict=True)
    }
    return Baseline(
        name=name,
        clean=entry["clean"],
        errors={**errors, **entry["errors"]},
        means=entry["means"],
        flips=entry["flips"],
        remarks=entry["remarks"],
        published=True,
    )


def _medical_baseline(name: str) -> Baseline:
    entry = _medical()[name]
    mean = np.mean(list(entry["corrupted"].values()))
    source = (
        "AlexNet's balanced errors are those of the authors of MedMNIST-C, who trained it on the same data set: "
        f"{100 * entry['clean']:.1f} % on clean images, {100 * mean:.1f} % over all corruptions."
    )
    return Baseline(
        name=name,
        clean=entry["clean"],
        means={f"med:{corruption}": error for corruption, error in entry["corrupted"].items()},
        remarks={"means": source},
        published=True,
        balanced=True,
        preset=name.removeprefix("alexnet/"),
        classes=entry["classes"],
    )


def fitted(baseline: Baseline, run: Run) -> Baseline:
    """A baseline for a run: one that does not fit it says why."""
    why = unfit_for(baseline, run.info.protocol.preset)
    return baseline if why is None else replace(baseline, unfit=f"{why}: give a run in its place (--baseline DIR)")


def unfit_for(baseline: Baseline, preset: str | None) -> str | None:
    """Why a baseline cannot be divided by under a preset: published numbers are of one size of images, or data set."""
    if not baseline.published or preset == baseline.preset or (preset is None and not baseline.balanced):
        return None
    measured = baseline.preset if baseline.balanced else "images of 224 pixels"
    return f"baseline {baseline.name} was measured on {measured}, and this run has the preset {preset}"


def baseline_from_run(run: Run) -> Baseline:
    """The errors, flip probabilities and top-5 distances of any model, under the conditions it was measured on."""
    conditions = [condition for condition in run.conditions if run.finished(condition)]
    if not conditions:
        raise InputError(f"{run.folder}: no finished conditions to take a baseline from")
    if run.info.task is not None:
        return _of_a_task(run, conditions)
    near = CLEAN in conditions and chance_of(run.records(CLEAN)).near
    tables = [table.only("correct", "flip", "top5") for table in read_tables(run, conditions)]
    means = {key: value for table in tables for key, value in table.means().items()}
    balanced = any(table.labels is not None for table in tables)
    errors = {
        text: float(1 - (balanced_accuracy(value) if balanced else value))
        for (kind, text), value in means.items()
        if kind == ("recalls" if balanced else "correct")
    }
    return Baseline(
        name=run.name,
        clean=errors.pop(str(CLEAN), None),
        errors=errors,
        flips={text: float(value) for (kind, text), value in means.items() if kind == "flip"},
        top5={text: float(value) for (kind, text), value in means.items() if kind == "top5"},
        remarks={},
        near_chance=near,
        balanced=balanced,
    )


def _of_a_task(run: Run, conditions: Sequence[Condition]) -> Baseline:
    """What the quantity of a task lacks of 1, or the errors, under each condition."""
    means: dict[Key, Array] = {}
    for table in read_tables(run, conditions):
        means |= table.means()
    if balanced := {
        text: float(1 - balanced_accuracy(value)) for (held, text), value in means.items() if held == "recalls"
    }:
        return Baseline(name=run.name, clean=balanced.pop(str(CLEAN), None), errors=balanced, balanced=True)
    chosen = quantities_of(kind for kind, _ in means)
    name, kind, of = ("error", "correct", np.asarray) if not chosen else (chosen[0].name, chosen[0].kind, chosen[0].of)
    errors = {text: float(1 - of(value)) for (held, text), value in means.items() if held == kind}
    return Baseline(name=run.name, clean=errors.pop(str(CLEAN), None), errors=errors, quantity=name)
