"""What an adaptation method is: logits out of a batch, a model that may have changed, and a way back."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from blemish.core.errors import InputError
from blemish.models.base import Classifier, Preprocessing, class_scores
from blemish.models.code import ending_refused
from blemish.studies.adaptation.norm import norm_parameters, with_batch_statistics


class Adapts(Protocol):
    """What a run asks of a method. Each batch is predicted once, and may change the model for the next one."""

    def adapt(self, batch: Tensor) -> Tensor:
        """The logits of a batch."""

    def state_dict(self) -> dict[str, Any]:
        """Everything that has changed, such that `load_state_dict` can go on from here exactly."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""


@runtime_checkable
class Method(Adapts, Protocol):
    """An adaptation method."""

    def predict(self, batch: Tensor) -> Tensor:
        """The logits of a batch by one plain pass of the network as it is now; nothing changes."""

    def reset(self) -> None:
        """Back to the model as it was given: weights, buffers, optimiser and all."""


class Levels(nn.Module):
    """A network with its preprocessing: takes 8-bit images, or floats on the scale 0 … 255, and gives logits."""

    def __init__(
        self, network: nn.Module, preprocessing: Preprocessing, skip_classes: int = 0, name: str | None = None
    ) -> None:
        super().__init__()
        self.network, self.preprocessing, self.skip_classes = network, preprocessing, skip_classes
        self.name = name or type(network).__name__
        self._outputs: int | None = None

    def forward(self, images: Tensor) -> Tensor:
        """Logits (B, classes)."""
        # Floats are copied, because preprocessing may write to what it is given.
        levels = images if images.dtype == torch.uint8 else images.clone()
        name = f"model {self.name}"
        with ending_refused(name):
            scores = self.network(self.preprocessing(levels))
        logits = class_scores(name, scores, len(images))
        outputs = logits.shape[1]
        if outputs <= self.skip_classes or outputs != (self._outputs or outputs):
            expected = f"more than {self.skip_classes}" if self._outputs is None else f"{self._outputs} as before"
            raise InputError(f"{name}: {outputs} classes for a batch of {len(images)} images; expected {expected}")
        self._outputs = outputs
        return logits[:, self.skip_classes :]


def adaptable(classifier: Classifier) -> Levels:
    """The network of a classifier with its preprocessing; one that is not a torch module cannot be adapted."""
    network = getattr(classifier, "module", None) or classifier.forward
    if not isinstance(network, nn.Module):
        raise InputError(
            f"model {classifier.name} is of kind {classifier.kind}; expected a torch module: only those can be adapted"
        )
    if classifier.output != "logits":
        raise InputError(f"model {classifier.name} gives {classifier.output}; expected logits to adapt by")
    if classifier.preprocessing.levels:
        raise InputError(
            f"model {classifier.name} takes 8-bit levels; expected floats, through which gradients can flow"
        )
    return Levels(network, classifier.preprocessing, classifier.skip_classes, classifier.name).to(classifier.device)


def entropy(logits: Tensor) -> Tensor:
    """Entropy of the predicted distribution, in nats, per image."""
    return -(logits.softmax(1) * logits.log_softmax(1)).sum(1)


@dataclass(frozen=True)
class Optimiser:
    """Which optimiser a method uses. ``momentum`` is β₁ for Adam."""

    kind: Literal["sgd", "adam"] = "sgd"
    rate: float = 0.00025
    momentum: float = 0.9
    nesterov: bool = False

    def make(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        """The optimiser of these parameters."""
        if self.rate <= 0:
            raise InputError(f"learning rate {self.rate:g}; expected a positive number")
        if self.kind == "adam":
            return torch.optim.Adam(parameters, lr=self.rate, betas=(self.momentum, 0.999))
        return torch.optim.SGD(parameters, lr=self.rate, momentum=self.momentum, nesterov=self.nesterov)


class Changing:
    """What methods share: a network that predicts, and what changes, which is kept, given back and begun anew by name.

    ``parts`` name the attributes with a state of their own: networks, optimisers, memories of images. ``memory`` are
    the others, with what they are at the start: numbers, tensors, and dictionaries of tensors.
    """

    name = "changing"
    parts: ClassVar[tuple[str, ...]] = ()
    memory: ClassVar[Mapping[str, Any]] = {}
    model: nn.Module

    def _begin(self) -> None:
        """Everything is as it is at the start: note it."""
        self._start = {name: copy.deepcopy(getattr(self, name).state_dict()) for name in self.parts}
        for name, value in self.memory.items():
            setattr(self, name, copy.deepcopy(value))

    def predict(self, batch: Tensor) -> Tensor:
        """The logits of a batch by the network as it is now; nothing changes."""
        return predicted(self.model, batch)

    def reset(self) -> None:
        """Back to the model as it was given, and to the start of all else."""
        for name in self.parts:
            part = getattr(self, name)
            if isinstance(part, Changing):
                part.reset()
            else:
                part.load_state_dict(copy.deepcopy(self._start[name]))
        for name, value in self.memory.items():
            setattr(self, name, copy.deepcopy(value))

    def state_dict(self) -> dict[str, Any]:
        """The state of every part, and the memory."""
        states = {name: getattr(self, name).state_dict() for name in self.parts}
        return copy.deepcopy(states | {name: getattr(self, name) for name in self.memory})

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a saved state."""
        try:
            for name in self.parts:
                getattr(self, name).load_state_dict(copy.deepcopy(state[name]))
            for name in self.memory:
                setattr(self, name, _copied(state[name], next(self.model.parameters()).device))
        except (KeyError, TypeError, RuntimeError, ValueError) as error:
            raise InputError(f"a state that is not one of {self.name} on this model ({error})") from error


def predicted(model: nn.Module, batch: Tensor) -> Tensor:
    """The logits of a batch, without gradients."""
    with torch.inference_mode(False), torch.no_grad():
        logits: Tensor = model(batch)
    return logits


def follow(teacher: nn.Module, student: nn.Module, share: float) -> None:
    """Move a teacher's parameters by a share of the way to the student's."""
    with torch.no_grad():
        for behind, ahead in zip(teacher.parameters(), student.parameters(), strict=True):
            behind.lerp_(ahead, share)


def _copied(value: Any, device: torch.device) -> Any:
    if isinstance(value, dict):
        return {name: _copied(inner, device) for name, inner in value.items()}
    return value.to(device, copy=True) if isinstance(value, Tensor) else value


class Gradient(Changing):
    """A method that minimises a loss of its own predictions over the scales and shifts of normalisation layers.

    Batch norm layers use the statistics of the batch. The model is copied, and in evaluation mode: dropout is off.
    """

    name = "gradient"
    parts: ClassVar[tuple[str, ...]] = ("model", "optimiser")

    logits: Tensor
    """Those of the last batch, before its step and uncorrected."""

    def __init__(self, model: nn.Module, *, optimiser: Optimiser) -> None:
        self.model = with_batch_statistics(model).requires_grad_(False)
        self.adapted = self._chosen()
        self._finish(optimiser)

    def _chosen(self) -> dict[str, nn.Parameter]:
        """The parameters that change, by name."""
        return norm_parameters(self.model, method=self.name)

    def _finish(self, optimiser: Optimiser) -> None:
        for parameter in self.adapted.values():
            parameter.requires_grad_(True)
        self.optimiser = optimiser.make(list(self.adapted.values()))
        self._begin()

    def loss(self, logits: Tensor) -> Tensor | None:
        """The number to be made smaller, or none where the batch gives no reason to change anything."""
        raise NotImplementedError

    def adapt(self, batch: Tensor) -> Tensor:
        """Predict, then take one step."""
        with torch.inference_mode(False), torch.enable_grad():
            logits: Tensor = self.model(batch)
            self.logits = logits.detach()
            self._step(self.loss(logits))
        return self.logits

    def _step(self, loss: Tensor | None) -> None:
        if loss is not None:
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=True)

    def scale_rate(self, factor: float) -> None:
        """Multiply the learning rate, for good."""
        if not factor > 0:
            raise InputError(f"learning rate × {factor:g}; expected a positive factor")
        for group in self.optimiser.param_groups:
            group["lr"] *= factor
        self._start["optimiser"] = copy.deepcopy(self.optimiser.state_dict())
