"""A condition: what is done to every image before it is classified, written as one short text.

``clean``; ``fog@3``; ``noc:border@1-5``, a severity drawn for each image between 1 and 5; ``fog@2+jpeg_compression@1``,
one after the other; ``p:tilt@1``, a perturbation sequence at difficulty 1; ``natural:imagenet-a``, images of another
set, and ``clean:imagenet-a``, the clean images of the same classes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from torch import Tensor

from blemish.corruptions.base import Corruption
from blemish.corruptions.catalog import Catalog, catalog
from blemish.corruptions.chain import chain, random_severity
from blemish.corruptions.sequences import Sequence, sequences
from blemish.corruptions.severity import MAX_SEVERITY, check_severity
from blemish.types import InputError

__all__ = ["CLEAN", "Condition", "Step", "parse_condition"]

_NUMBER = r"\d+(?:\.\d+)?"
_STEP = re.compile(rf"(?P<name>[^@+\s]+)@(?P<low>{_NUMBER})(?:-(?P<high>{_NUMBER}))?")
_NATURAL = re.compile(r"(?:natural|clean):[\w.-]+")


@dataclass(frozen=True)
class Step:
    """A corruption or sequence by name, with its severity, the range it is drawn from, or the difficulty."""

    name: str
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.name}@{self.low:g}" if self.low == self.high else f"{self.name}@{self.low:g}-{self.high:g}"


@dataclass(frozen=True)
class Condition:
    """What is done to an image: nothing, or one step after the other. ``other`` names another set of images."""

    steps: tuple[Step, ...] = ()
    other: str | None = None

    def __str__(self) -> str:
        return self.other or "+".join(str(step) for step in self.steps) or "clean"

    @property
    def group(self) -> str:
        """The name that conditions of one corruption share, whatever their severity."""
        return self.other or "+".join(step.name for step in self.steps) or "clean"

    @property
    def severity(self) -> float | None:
        """The severity, where there is exactly one."""
        only = self.steps[0] if len(self.steps) == 1 else None
        return only.low if only is not None and only.low == only.high and not self.is_sequence else None

    @property
    def is_sequence(self) -> bool:
        """Whether images become many frames."""
        return len(self.steps) == 1 and self.steps[0].name in sequences

    @property
    def slug(self) -> str:
        """The condition as a file name that every system takes."""
        return re.sub(r"[^\w.@+-]", "_", str(self))

    def sequence(self) -> Sequence:
        """The perturbation sequence."""
        return sequences[self.steps[0].name]

    def apply(
        self,
        images: Tensor,
        *,
        seed: int,
        ids: Tensor,
        preset: str | None = None,
        catalog: Catalog = catalog,
    ) -> Tensor:
        """The uint8 batch (B, C, H, W) after all steps; the batch itself where there are none."""
        if len(self.steps) == 1:
            step = self.steps[0]
            corruption = _corruption(step, catalog)
            # A severity drawn from a range is a corruption of its own, at its full strength.
            severity = step.low if step.low == step.high else MAX_SEVERITY
            return corruption(images, severity=severity, seed=seed, ids=ids, preset=preset)
        if not self.steps:
            return images
        whole = chain(*((catalog[step.name], step.low) for step in self.steps))
        return whole(images, severity=MAX_SEVERITY, seed=seed, ids=ids, preset=preset)

    def names(self) -> tuple[str, ...]:
        """The corruptions or sequences in it."""
        return tuple(step.name for step in self.steps)


CLEAN = Condition()


def _corruption(step: Step, catalog: Catalog) -> Corruption:
    corruption = catalog[step.name]
    return corruption if step.low == step.high else random_severity(corruption, step.low, step.high)


def parse_condition(text: str, *, catalog: Catalog = catalog) -> Condition:
    """The condition that a text means; `str` is the way back.

    >>> parse_condition("fog@3").severity
    3.0
    >>> str(parse_condition("fog@2+jpeg_compression@1.50"))
    'fog@2+jpeg_compression@1.5'
    """
    if text == "clean":
        return CLEAN
    if _NATURAL.fullmatch(text):
        return Condition(other=text)
    steps = tuple(_step(text, part) for part in text.split("+"))
    for step in steps:
        _check_step(text, step, steps, catalog)
    return Condition(steps)


def _step(text: str, part: str) -> Step:
    found = _STEP.fullmatch(part)
    if found is None:
        raise InputError(f"condition {text!r}; expected clean, NAME@SEVERITY, NAME@LOW-HIGH or several joined by +")
    low = float(found["low"])
    return Step(found["name"], low, float(found["high"]) if found["high"] else low)


def _check_step(text: str, step: Step, steps: tuple[Step, ...], catalog: Catalog) -> None:
    if step.name in sequences:
        if len(steps) > 1 or step.low != step.high or step.low not in (1, 2, 3):
            raise InputError(f"condition {text!r}; expected a sequence alone, at difficulty 1, 2 or 3")
        return
    corruption = catalog[step.name]
    check_severity(step.low)
    check_severity(step.high)
    if step.low == 0 == step.high:
        raise InputError(f"condition {text!r} has severity 0; write clean instead")
    if step.low == step.high:
        corruption.require(step.low)
    elif len(steps) > 1:
        raise InputError(f"condition {text!r}; a severity drawn from a range cannot be part of a chain")
    else:
        random_severity(corruption, step.low, step.high)
