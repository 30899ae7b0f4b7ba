"""What is trained for overlap: the networks of a plan, and the conditions that they are measured under."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from torch import nn

from blemish.benchmarks.condition import Condition, step_of
from blemish.core.errors import InputError
from blemish.core.rng import check_seed
from blemish.corruptions.base import Corruption
from blemish.corruptions.catalog import Catalog, catalog, hint
from blemish.models import densenet, resnet
from blemish.models.code import ending_refused
from blemish.studies.overlap.training import Corruptor, Schedule

STANDARD = "standard"
ALL = "all"
"""The name of the network that is trained on all corruptions together, which coverage is measured with."""

ARCHITECTURES: dict[str, Callable[..., nn.Module]] = {
    "resnet18": resnet.resnet18,
    "resnet18_small": resnet.resnet18_small,
    "resnet50": resnet.resnet50,
    "wide_resnet50_2": resnet.wide_resnet50_2,
    "densenet121": densenet.densenet121,
    "small_net": resnet.small_net,
}
"""Networks that can be trained several at once; others are named as PACKAGE.MODULE:FUNCTION."""


@dataclass(frozen=True)
class Plan:
    """What is trained, on which corruptions of a catalog.

    With ``fine_tune``, networks start from the standard one and follow that schedule instead. ``under`` names further
    corruptions that networks are measured under without being trained on them.
    """

    corruptions: tuple[str, ...]
    architecture: str = "resnet18"
    classes: int = 1000
    schedule: Schedule = field(default_factory=Schedule)
    fine_tune: Schedule | None = None
    with_all: bool = False
    seed: int = 0
    preset: str | None = None
    catalog: Catalog = field(default_factory=lambda: catalog, repr=False, hash=False)
    under: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a seed that is none before anything is trained."""
        check_seed(self.seed)

    def names(self) -> tuple[str, ...]:
        """The networks, the standard one first."""
        return (STANDARD, *self.corruptions, *((ALL,) if self.with_all else ()))

    def corruptor(self, name: str, schedule: Schedule) -> Corruptor:
        """What a network's batches go through."""
        chosen: tuple[Corruption, ...] = ()
        if name == ALL:
            chosen = tuple(self.catalog[member] for member in self.corruptions)
        elif name != STANDARD:
            chosen = (self.catalog[name],)
        return Corruptor(chosen, schedule.severities, self.preset)


def build_net(architecture: str, classes: int, copies: int = 1) -> nn.Module:
    """A new network by name, or by ``package.module:function`` called with the number of classes."""
    if architecture in ARCHITECTURES:
        return ARCHITECTURES[architecture](classes, copies=copies)
    module, colon, function = architecture.partition(":")
    if not colon:
        raise InputError(f"unknown architecture {architecture!r}; {hint(architecture, [*ARCHITECTURES])}")
    try:
        with ending_refused(f"architecture {architecture}"):
            net = getattr(importlib.import_module(module), function)(classes)
    except (ImportError, AttributeError) as error:
        raise InputError(f"architecture {architecture}: {error}") from error
    if not isinstance(net, nn.Module):
        raise InputError(f"architecture {architecture} made a {type(net).__name__}; expected a torch module")
    return net


def conditions(plan: Plan) -> Iterator[Condition]:
    """The conditions that every network of a plan is measured under."""
    for corruption in (plan.catalog[name] for name in dict.fromkeys((*plan.corruptions, *plan.under))):
        only = corruption.only_severity
        severities = plan.schedule.severities if only is None else (only,)
        yield Condition((step_of(corruption, *severities),))
