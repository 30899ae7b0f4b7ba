"""Models that are asked for something else than the class of an image: a forward function and where it came from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from blemish.core.errors import InputError, first_line, notify
from blemish.core.printable import as_text
from blemish.core.types import check_dense
from blemish.models.base import ModelInfo, Training
from blemish.models.code import ending_refused


@dataclass(frozen=True)
class AnsweringModel:
    """A model of which a task knows what its answers are.

    ``forward`` takes images as uint8 (B, C, H, W) on the ``device``. ``weights`` is a hash of everything that was
    learnt, ``classes`` are the names of its labels, where it says them; None stands for a label that means nothing.
    ``assumed`` is what was assumed of its input where nothing says it. ``reopen`` makes it anew on a device, in another
    process as well.
    """

    name: str
    kind: str
    forward: Callable[[Tensor], Any]
    weights: str = ""
    classes: Sequence[str | None] | None = None
    training: Training = field(default_factory=Training)
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    module: nn.Module | None = field(default=None, repr=False, compare=False)
    assumed: str | None = None
    reopen: Callable[[torch.device], AnsweringModel] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Escape what result files cannot hold in the name."""
        object.__setattr__(self, "name", as_text(self.name))

    @property
    def outputs_seen(self) -> None:
        """It has no outputs that could be counted."""
        return

    @torch.inference_mode()
    def __call__(self, images: Tensor) -> Any:
        """Whatever the model answers to a uint8 batch (B, C, H, W)."""
        check_dense(images, f"model {self.name}: images")
        try:
            with ending_refused(f"model {self.name}"):
                return self.forward(images.to(self.device, non_blocking=True))
        except (InputError, torch.cuda.OutOfMemoryError):
            raise
        except Exception as error:  # a model may raise anything
            raise InputError(f"model {self.name} fails ({type(error).__name__}: {first_line(error)})") from error

    def tell_assumed(self) -> None:
        """Say what had to be assumed of its input."""
        if self.assumed is not None:
            notify(f"model {self.name}: {self.assumed}")

    def describe(self, outputs: int | None = None) -> ModelInfo:
        """What files say of the model."""
        return ModelInfo(self.name, self.kind, self.weights, training=self.training, outputs=outputs)
