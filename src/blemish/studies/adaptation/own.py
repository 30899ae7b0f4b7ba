"""Methods of one's own, and those written for the common repository of test-time adaptation, as they are.

``python:package.module:Name`` names a class, or a function, that is called with a network and gives the method.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from blemish.core.errors import InputError
from blemish.models.code import ending_refused, where_raised
from blemish.models.python_function import find_function
from blemish.studies.adaptation.base import Changing
from blemish.studies.adaptation.entry import Cost, MethodEntry
from blemish.studies.adaptation.methods import method_entry

PYTHON = "python:"

_WHITE = 255.0


class Shares(nn.Module):
    """A network that takes 8-bit images, or floats in 0 … 1, and gives logits; normalisation is inside."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        """Logits (B, classes)."""
        logits: Tensor = self.network(images if images.dtype == torch.uint8 else images * _WHITE)
        return logits


def entry_of(name: str) -> MethodEntry:
    """A method of the list by its name and options, or one's own by ``python:package.module:Name``."""
    if not name.startswith(PYTHON):
        return method_entry(name)
    target = find_function(name, PYTHON)
    return MethodEntry(
        name=name,
        make=partial(Own, name=name, target=target),
        needs="nothing",
        cost=_cost(name, getattr(target, "cost", None)),
        changes="its own choice",
        single="yes",
    )


def _cost(name: str, passes: Any) -> Cost | None:
    if passes is None:
        return None
    try:
        forwards, backwards = (float(number) for number in passes)
    except (TypeError, ValueError):
        raise InputError(f"{name}: cost {passes!r}; expected two numbers, (forwards, backwards)") from None
    return Cost(forwards, backwards)


class Own:
    """A method that somebody else wrote, behind the protocol of `Method`.

    ``target`` is called with a copy of the network (`Shares`), in evaluation mode. What it gives has either
    ``adapt(batch)``, which takes 8-bit images, or is a torch module that is called with floats in 0 … 1, as methods of
    the common repository are (``forward``, which calls their ``forward_and_adapt``); a plain object with
    ``forward_and_adapt`` will do, too. Both give logits.

    It gets copies of batches, which it may write to. A reset makes it anew from the network as it was given. Its plain
    predictions are those of its ``predict``, where it has one, or of the network that it was given, as it has changed
    it. torch's random numbers are seeded before every batch by its number. It is gone on from a state only where it has
    ``state_dict`` and ``load_state_dict`` of its own: a torch module's do not hold its optimiser.
    """

    def __init__(self, model: nn.Module, *, name: str, target: Callable[[nn.Module], Any]) -> None:
        self.name, self._target = name, target
        self._given = copy.deepcopy(model).eval()
        self._classes: int | None = None
        self.reset()

    def reset(self) -> None:
        """Make it anew."""
        self.model = Shares(copy.deepcopy(self._given))
        self._steps = 0
        try:
            with torch.inference_mode(False), torch.enable_grad(), ending_refused(self.name):
                self._method = self._target(self.model)
        except InputError:
            raise
        except Exception as error:  # it may raise anything
            raise InputError(f"{self.name} raised {type(error).__name__}: {error}{where_raised(error)}") from error
        if isinstance(self._method, Changing):
            raise InputError(
                f"{self.name} gives a {type(self._method).__name__} of this library, which takes images on another "
                f"scale; name it as it is, with options: {self._method.name}:option=value"
            )
        if not (hasattr(self._method, "adapt") or self._is_common):
            raise InputError(
                f"{self.name} gives a {type(self._method).__name__}; expected an object with adapt(batch), or one that "
                "was written for the common repository, with forward_and_adapt(x)"
            )

    @property
    def _is_common(self) -> bool:
        return isinstance(self._method, nn.Module) or hasattr(self._method, "forward_and_adapt")

    @property
    def resumable(self) -> bool:
        """Whether a stream can be gone on from in its middle."""
        own = type(self._method)
        there = all(hasattr(own, name) for name in ("state_dict", "load_state_dict"))
        return there and getattr(own, "state_dict", None) is not nn.Module.state_dict

    def adapt(self, batch: Tensor) -> Tensor:
        """Its logits; it may change."""
        devices = [batch.device] if batch.device.type == "cuda" else []
        with torch.random.fork_rng(devices), torch.inference_mode(False), torch.enable_grad():
            torch.manual_seed(self._steps)
            self._steps += 1
            return self._checked(self._called(batch), batch)

    def _called(self, batch: Tensor) -> Any:
        if hasattr(self._method, "adapt"):
            return self._method.adapt(batch.clone())
        forward = getattr(type(self._method), "forward", None)
        called = isinstance(self._method, nn.Module) and forward is not nn.Module.forward
        call = self._method if called else self._method.forward_and_adapt
        return call(batch.to(torch.float32) / _WHITE)

    def _checked(self, logits: Any, batch: Tensor) -> Tensor:
        if self._classes is None:
            with torch.no_grad():
                self._classes = self._given(batch[:1]).shape[1]
        expected = (len(batch), self._classes)
        if not isinstance(logits, Tensor) or logits.shape != expected:
            given = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise InputError(f"{self.name} gave {given} for {len(batch)} images; expected logits, {expected}")
        return logits.detach()

    def predict(self, batch: Tensor) -> Tensor:
        """The logits of a batch without adapting; what the network's layers remember of it is undone."""
        with torch.inference_mode(False), torch.no_grad():
            if hasattr(self._method, "predict"):
                return self._checked(self._method.predict(batch.clone()), batch)
            before = {name: value.clone() for name, value in self.model.named_buffers()}
            logits = self._checked(self.model(batch), batch)
            for name, value in self.model.named_buffers():
                value.copy_(before[name])
        return logits

    def state_dict(self) -> dict[str, Any]:
        """What the method itself says, and the number of batches."""
        if not self.resumable:
            raise InputError(f"{self.name} has no state_dict of its own; expected one, to go on from it")
        return {"method": copy.deepcopy(self._method.state_dict()), "steps": self._steps}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        try:
            self._method.load_state_dict(copy.deepcopy(state["method"]))
            self._steps = int(state["steps"])
        except (KeyError, RuntimeError, ValueError) as error:
            raise InputError(f"a state that is not one of {self.name} on this model ({error})") from error
