"""A classifier on its way to another process: how it is opened there, or the module itself."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from blemish.core.errors import InputError
from blemish.models.base import Classifier
from blemish.models.code import ending_refused

_KEPT = ("name", "preprocessing", "output", "skip_classes", "training")


@dataclass(frozen=True)
class Portable:
    """A classifier that can be pickled: how to open it, and the settings that it was given since."""

    weights: str
    settings: dict[str, Any]
    how: Callable[[torch.device], Classifier] | bytes

    def open(self, device: torch.device) -> Classifier:
        """The classifier on a device; weights that have changed, or are others on another machine, are refused."""
        if isinstance(self.how, bytes):
            # They come from `portable`, not from a file of a stranger.
            with ending_refused(f"model {self.settings['name']}"):
                model: Classifier = torch.load(io.BytesIO(self.how), map_location=device, weights_only=False)
            model = replace(model, device=device)
        else:
            model = self.how(device)
        if model.weights != self.weights:
            raise InputError(
                f"model {self.settings['name']}: a worker has other weights ({model.weights}) than this run "
                f"({self.weights}); is it the same file everywhere?"
            )
        return replace(model, **self.settings)


def portable(model: Classifier) -> Portable:
    """A classifier for other processes: opened anew from its text where there is one, else with all its weights."""
    settings = {name: getattr(model, name) for name in _KEPT if hasattr(model, name)}
    if model.reopen is not None:
        return Portable(model.weights, settings, model.reopen)
    buffer = io.BytesIO()
    try:
        with ending_refused(f"model {model.name}"):
            torch.save(model, buffer)
    except InputError:
        raise
    except Exception as error:  # pickling runs the code of what it is given
        raise InputError(
            f"model {model.name} cannot be sent to other processes ({type(error).__name__}: {error}); open it from a "
            "text (open_model), or define its classes and functions at the top of a module"
        ) from error
    return Portable(model.weights, settings, buffer.getvalue())
