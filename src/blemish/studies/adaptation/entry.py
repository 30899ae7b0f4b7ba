"""What is known of a method before it runs: what it needs of a network, what it costs, where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from blemish.studies.adaptation.base import Method

Needs = Literal["nothing", "parameters", "any norm", "batch norm", "linear head"]
"""What a network must have: weights of any kind, normalisation layers of any kind, batch norm, or a linear layer whose
outputs are the scores."""

Single = Literal["yes", "without batch norm", "no"]
"""Whether batches of one image make sense: a method that takes the statistics of the batch has none of one image."""


@dataclass(frozen=True)
class Cost:
    """Passes through the network for each image of a stream, forward and backward.

    ``each_view`` are the passes that each random view of an image adds. Where a method decides from batch to batch,
    this is the most that it takes.
    """

    forwards: float
    backwards: float
    each_view: tuple[float, float] = (0.0, 0.0)

    def with_views(self, views: int) -> Cost:
        """The cost with so many views of each image.

        >>> Cost(1, 0, each_view=(1, 1)).with_views(32)
        Cost(forwards=33, backwards=32, each_view=(0.0, 0.0))
        """
        return Cost(self.forwards + views * self.each_view[0], self.backwards + views * self.each_view[1])


@dataclass(frozen=True, kw_only=True)
class MethodEntry:
    """One method of the list.

    ``make`` takes the network with its preprocessing and the method's options. ``imagenet`` and ``cifar`` are the
    published settings for these data; what they leave out is as the method has it. A method with ``source`` is shown
    clean images before the stream begins. ``views`` is its number of views of an image where the options say none.
    ``cost`` is none for a method that does not tell.
    """

    name: str
    make: Callable[..., Method]
    needs: Needs
    cost: Cost | None
    changes: str
    paper: str = ""
    single: Single = "without batch norm"
    source: bool = False
    views: int = 0
    imagenet: Mapping[str, Any] = field(default_factory=dict)
    cifar: Mapping[str, Any] = field(default_factory=dict)

    def cost_with(self, options: Mapping[str, Any]) -> Cost | None:
        """Passes for each image with these options."""
        return self.cost and self.cost.with_views(options.get("views", self.views))
