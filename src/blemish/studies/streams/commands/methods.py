"""Which adaptation methods are run, by the options that commands share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, cast

import numpy as np
import torch
import typer

from blemish.core.errors import InputError
from blemish.models.base import Classifier
from blemish.studies.adaptation.base import Levels, Method
from blemish.studies.adaptation.eata import MARGINS, named_margin
from blemish.studies.adaptation.methods import METHODS, Settings, cost_of, make_method, method_entry
from blemish.studies.adaptation.norm import UnsuitedError
from blemish.studies.streams.images import ImageSet
from blemish.studies.streams.info import MethodSettings
from blemish.terminal.lists import listed

_CLEAN, _CLEAN_BATCH = 2000, 64
_MOST_PASSES = 40
"""Of methods that ``all`` stands for: one image at a time, MEMO would take longer than all others together."""

_USUAL = ("none", "bn", "tent", "eta", "rdumb")


class OnDevice:
    """A method whose batches may come from worker processes, on the CPU."""

    def __init__(self, method: Method, device: torch.device) -> None:
        self.method, self.device = method, device
        self.state_dict, self.load_state_dict = method.state_dict, method.load_state_dict

    def adapt(self, batch: torch.Tensor) -> torch.Tensor:
        """The logits of a batch, on the device."""
        return self.method.adapt(batch.to(self.device, non_blocking=True))


@dataclass(frozen=True, kw_only=True)
class MethodOptions:
    """Adaptation methods and their settings."""

    methods: Annotated[
        str | None,
        typer.Option(
            help=f"Separated by commas: {', '.join(METHODS)}; or all, as far as the network suits them. Options "
            "follow a name, as in sar:keep_average=true. "
            f"Default: {','.join(_USUAL)}."
        ),
    ] = None
    tuned_for: Annotated[str, typer.Option(help="Take the methods' published settings for imagenet or cifar.")] = (
        "imagenet"
    )
    reset: Annotated[int, typer.Option(min=1, help="Batches between RDumb's resets.")] = 1000
    rdumb_margin: Annotated[
        str,
        typer.Option(help=f"RDumb's margin, as a share of ln(classes): {', '.join(MARGINS)} (0.355) or a number."),
    ] = "release"

    def describe(self) -> MethodSettings:
        """For the header of a run."""
        margin = named_margin(self.rdumb_margin)
        return MethodSettings(methods=self.tuned_for, reset=self.reset, rdumb_margin=margin)

    def make(self, network: Levels, images: ImageSet, model: Classifier) -> tuple[dict[str, Method], list[str]]:
        """Fresh methods for the model's network, and a word for those that are left out because it does not suit them.

        A method that was named is refused instead. Some get clean ``images``, and one shows how the network ends.
        """
        named = self.methods not in (None, "all")
        names = listed(self.methods) if named else tuple(METHODS) if self.methods == "all" else _USUAL
        if not names:
            raise InputError(f"--methods {self.methods}; expected names such as none,tent")
        if given := next((name for name in names if name.startswith("rdumb:")), None):
            raise InputError(f"--methods {given}; expected rdumb, whose options are --reset and --rdumb-margin here")
        entries = [method_entry(name) for name in names]
        clean = _clean_batches(images, model.device) if any(entry.source for entry in entries) else None
        first = np.zeros(1, np.int64)
        headed = any(entry.needs == "linear head" for entry in entries)
        sample = images.load(first, first, 0).to(model.device) if headed else None
        changes = {"rdumb": {"every": self.reset, "margin": named_margin(self.rdumb_margin)}}
        made: dict[str, Method] = {}
        lacks: dict[str, list[str]] = {}
        for name in names:
            cost = cost_of(name, cast(Settings, self.tuned_for))
            if not named and cost is not None and cost.forwards + cost.backwards > _MOST_PASSES:
                passes = f"it takes {cost.forwards + cost.backwards:g} passes an image; name it to run it"
                lacks.setdefault(passes, []).append(name)
                continue
            try:
                made[name] = make_method(
                    name,
                    network,
                    settings=cast(Settings, self.tuned_for),
                    clean=clean,
                    sample=sample,
                    **changes.get(name, {}),
                )
            except UnsuitedError as error:
                if named:
                    raise
                lacks.setdefault(error.lack, []).append(name)
        return made, [f"left out, because {lack}: {', '.join(unsuited)}" for lack, unsuited in lacks.items()]


def _clean_batches(images: ImageSet, device: torch.device) -> list[torch.Tensor]:
    """Clean images for methods that look at some before the stream: 2,000, or all of fewer."""
    rows = np.random.default_rng(0).permutation(len(images))[:_CLEAN].astype(np.int64)
    parts = [rows[i : i + _CLEAN_BATCH] for i in range(0, len(rows), _CLEAN_BATCH)]
    return [images.load(part, part, 0).to(device) for part in parts]
