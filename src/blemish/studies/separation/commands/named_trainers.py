"""The models that ``blemish mscr --train`` can name."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import torch

from blemish.core.errors import InputError
from blemish.models.code import ending_refused
from blemish.studies.separation.experiment import Trainer, forest, from_estimator, nearest_neighbour
from blemish.studies.separation.training import wide_resnet


def named_trainer(name: str, epochs: int, device: torch.device) -> Trainer:
    """The trainer of such a name; ``epochs`` and ``device`` are for nets."""
    if name == "1nn":
        return nearest_neighbour()
    if match := re.fullmatch(r"forest(?::([1-9]\d{0,5}))?", name):
        return forest(int(match[1] or 100))
    if match := re.fullmatch(r"wrn-(\d{1,4})-(\d{1,4})", name):
        return wide_resnet(int(match[1]), int(match[2]), epochs=epochs, device=device)
    if name.startswith("python:"):
        return from_estimator(_estimator(name))
    raise InputError(f"--train {name!r}; expected forest, forest:50, 1nn, wrn-28-10 … or python:module:name")


def _estimator(name: str) -> Callable[[int], Any]:
    _, module, attribute = [*name.split(":"), "", ""][:3]
    try:
        with ending_refused(name):
            trainer = getattr(importlib.import_module(module), attribute)
        seeded = isinstance(trainer, type) and "random_state" in inspect.signature(trainer).parameters
        if not isinstance(trainer, type):
            return cast(Callable[[int], Any], trainer)
        return partial(_made, trainer, seeded)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(f"{name}: cannot be imported ({error}); expected python:module:name") from error


def _made(kind: type, seeded: bool, run: int) -> Any:
    return kind(random_state=run) if seeded else kind()
