"""A condition: what is done to every image before it is classified, written as one short text.

``clean``; ``fog@3``; ``noc:border@1-5``, a severity drawn for each image between 1 and 5; ``fog@2+jpeg_compression@1``,
one after the other; ``p:tilt@1``, a perturbation sequence at difficulty 1; ``natural:imagenet-a``, images of another
set, and ``clean:imagenet-a``, the clean images of the same classes.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace

from torch import Tensor

from blemish.core.errors import InputError
from blemish.corruptions.base import Corruption
from blemish.corruptions.catalog import Catalog, catalog
from blemish.corruptions.compose import chain, random_severity
from blemish.corruptions.imagenet_p import PerturbationSequence, sequences
from blemish.corruptions.severity import MAX_SEVERITY, check_severity, severity_text

# File systems end names at 255 bytes, and more than the name of the condition is in that of a file.
_LONGEST_SLUG = 180
_NUMBER = r"\d+(?:\.\d+)?"
_STEP = re.compile(rf"(?P<name>[^@+\s]+)@(?P<low>{_NUMBER})(?:-(?P<high>{_NUMBER}))?")
_NATURAL = re.compile(r"(?:natural|clean):[\w.-]+")


SEQUENCES = "p:"
"""How the names of perturbation sequences begin; corruptions have other names."""


@dataclass(frozen=True)
class Step:
    """A corruption or sequence, with its severity, the range it is drawn from, or the difficulty.

    ``unit`` is the corruption or sequence itself, so that nothing has to be looked up where it is applied; it is None
    in a condition that was read from results, which may be there without the code that made them.
    """

    name: str
    low: float
    high: float
    unit: Corruption | PerturbationSequence | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.name}@{self.level}"

    @property
    def level(self) -> str:
        """The severity or difficulty as a text, or the range as LOW-HIGH."""
        lowest, highest = severity_text(self.low), severity_text(self.high)
        return lowest if lowest == highest else f"{lowest}-{highest}"

    def corruption(self) -> Corruption:
        """The corruption that is applied at a fixed or at a drawn severity."""
        if not isinstance(self.unit, Corruption):
            raise InputError(f"{self}: its corruption is not at hand; expected a condition made with a catalog")
        return self.unit if self.low == self.high else random_severity(self.unit, self.low, self.high)


def step_of(unit: Corruption | PerturbationSequence, low: float, high: float | None = None) -> Step:
    """A step of this corruption at a severity, or at one drawn from a range."""
    return Step(unit.name, low, low if high is None else high, unit)


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
        return len(self.steps) == 1 and self.steps[0].name.startswith(SEQUENCES)

    @property
    def slug(self) -> str:
        """The condition as a file name that every system takes; of a long one, the beginning and a digest."""
        plain = re.sub(r"[^\w.@+-]", "_", str(self))
        if len(plain.encode()) <= _LONGEST_SLUG:
            return plain
        digest = hashlib.blake2b(str(self).encode(), digest_size=8).hexdigest()
        return f"{plain.encode()[: _LONGEST_SLUG - len(digest) - 1].decode(errors='ignore')}-{digest}"

    def sequence(self) -> PerturbationSequence:
        """The perturbation sequence."""
        unit = self.steps[0].unit
        return unit if isinstance(unit, PerturbationSequence) else sequences[self.steps[0].name]

    def apply(self, images: Tensor, *, seed: int, ids: Tensor, preset: str | None = None) -> Tensor:
        """The uint8 batch (B, C, H, W) after all steps; the batch itself where there are none."""
        if not self.steps:
            return images
        if len(self.steps) == 1:
            step = self.steps[0]
            # A severity drawn from a range is a corruption of its own, at its full strength.
            severity = step.low if step.low == step.high else MAX_SEVERITY
            return step.corruption()(images, severity=severity, seed=seed, ids=ids, preset=preset)
        whole = chain(*((step.corruption(), step.low) for step in self.steps))
        return whole(images, severity=MAX_SEVERITY, seed=seed, ids=ids, preset=preset)

    def check_files(self) -> None:
        """Refuse to begin where files that the pixels are made of are missing, such as the photographs of frost."""
        for step in self.steps:
            if isinstance(step.unit, Corruption):
                step.unit.check_files()

    def with_units(self, catalog: Catalog) -> Condition:
        """The same condition with the corruptions of a catalog."""
        return parse_condition(str(self), catalog=catalog)

    def names(self) -> tuple[str, ...]:
        """The corruptions or sequences in it."""
        return tuple(step.name for step in self.steps)


CLEAN = Condition()


def parse_condition(text: str, *, catalog: Catalog = catalog) -> Condition:
    """The condition that a text means, with the corruptions of the catalog; `str` is the way back.

    >>> parse_condition("fog@3").severity
    3.0
    >>> str(parse_condition("fog@2+jpeg_compression@1.50"))
    'fog@2+jpeg_compression@1.5'
    """
    condition = read_condition(text)
    steps = tuple(replace(step, unit=_unit(step.name, catalog)) for step in condition.steps)
    for step in steps:
        _check_step(text, step, steps)
    return replace(condition, steps=steps)


def read_condition(text: str) -> Condition:
    """The condition that results name, without its corruptions: they may be a user's own, and need not be at hand."""
    if text == "clean":
        return CLEAN
    if _NATURAL.fullmatch(text):
        return Condition(other=text)
    return Condition(tuple(_step(text, part) for part in text.split("+")))


def _unit(name: str, catalog: Catalog) -> Corruption | PerturbationSequence:
    return sequences[name] if name in sequences else catalog[name]


def _step(text: str, part: str) -> Step:
    match = _STEP.fullmatch(part)
    if match is None:
        raise InputError(f"condition {text!r}; expected clean, NAME@SEVERITY, NAME@LOW-HIGH or several joined by +")
    low = float(match["low"])
    return Step(match["name"], low, float(match["high"]) if match["high"] else low)


def _check_step(text: str, step: Step, steps: tuple[Step, ...]) -> None:
    if not isinstance(step.unit, Corruption):
        if len(steps) > 1 or step.low != step.high or step.low not in (1, 2, 3):
            raise InputError(f"condition {text!r}; expected a sequence alone, at difficulty 1, 2 or 3")
        return
    check_severity(step.low)
    check_severity(step.high)
    if step.low == 0 == step.high:
        raise InputError(f"condition {text!r} has severity 0; write clean instead")
    if step.low == step.high:
        step.unit.require(step.low)
    elif len(steps) > 1:
        raise InputError(f"condition {text!r}; a severity drawn from a range cannot be part of a chain")
    else:
        random_severity(step.unit, step.low, step.high)
