"""The features of a network: what goes into the linear layer whose outputs are its scores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from blemish.studies.adaptation.norm import UnsuitedError


def is_end(output: Tensor, logits: Tensor) -> bool:
    """Whether these are the network's scores, of which classes in front may have been dropped."""
    if output.ndim != 2 or len(output) != len(logits) or output.shape[1] < logits.shape[1]:
        return False
    return torch.equal(output[:, output.shape[1] - logits.shape[1] :].to(logits.dtype), logits)


def linear_end(model: nn.Module, batch: Tensor, *, method: str) -> str:
    """The name of the linear layer at the end of a network, which a batch shows; a network without one is refused."""
    layers = {name: layer for name, layer in model.named_modules() if isinstance(layer, nn.Linear)}
    seen: dict[str, Tensor] = {}
    hooks = [
        layer.register_forward_hook(lambda _of, _x, y, name=name: seen.update({name: y}))
        for name, layer in layers.items()
    ]
    try:
        with torch.no_grad():
            logits: Tensor = model(batch)
    finally:
        for hook in hooks:
            hook.remove()
    ends = [name for name, output in seen.items() if is_end(output, logits)]
    if not ends:
        raise UnsuitedError(method, "needs a", "linear layer at its end", model)
    return ends[-1]


@contextmanager
def noted_features(model: nn.Module, end: str) -> Iterator[list[Tensor]]:
    """A list that gets the features of each pass, for as long as it lasts."""
    noted: list[Tensor] = []
    hook = model.get_submodule(end).register_forward_pre_hook(lambda _of, x: noted.append(x[0].to(torch.float32)))
    try:
        yield noted
    finally:
        hook.remove()
