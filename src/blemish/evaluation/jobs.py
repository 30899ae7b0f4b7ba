"""Jobs for executors: a plan that a worker opens once, for one unit after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import torch

from blemish.core.errors import InputError
from blemish.core.settings import differences
from blemish.evaluation.executors.base import Tell
from blemish.evaluation.header import made_with
from blemish.evaluation.measure import Measurer
from blemish.evaluation.plan import Plan

Unit = TypeVar("Unit")
Result = TypeVar("Result")


@dataclass(frozen=True)
class PlanJob(Generic[Unit, Result]):
    """A job for executors: a worker opens the plan once, then calls the function for one unit after the other.

    ``versions`` are those of the coordinator's libraries.
    """

    plan: Plan
    function: Callable[[Measurer, Unit, Tell], Result]
    versions: dict[str, str] = field(default_factory=made_with)

    def open(self, device: torch.device | None) -> Callable[[Unit, Tell], Result]:
        """Open the model on the device; other versions of the libraries than the coordinator's are refused."""
        if different := differences(self.versions, made_with()):
            raise InputError(f"a worker differs from the coordinator: {'; '.join(different)}; expected the same")
        measurer = Measurer(self.plan, device)
        return lambda unit, tell: self.function(measurer, unit, tell)
