"""Training nets with noise, as the MSCR paper does on CIFAR-10: fresh noise for every image in every epoch.

Images, views and noise are made where the net is. Everything random is drawn from counters, a block of batches at a
time, so that a run can be repeated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from blemish.core.errors import InputError
from blemish.core.rng import CounterRng
from blemish.studies.separation.experiment import Predict, Trainer
from blemish.studies.separation.nets import WideResNet
from blemish.studies.separation.noise import Noise

_PADDING = 4
_WARM_UP = 0.2  # the part of one cycle in which the rate rises
_BLOCK = {"cpu": 2**22, "cuda": 2**26}  # values that are made in one go


@dataclass(frozen=True)
class Descent:
    """How a net is trained: stochastic gradient descent with momentum, mirrored and shifted views.

    ``steps`` lets the rate fall to a fifth after 30, 60 and 80 % of the epochs; ``one-cycle`` lets it rise from 0 over
    the first fifth of all steps and fall to 0 again, which suits short training. ``mixed`` computes in bfloat16.
    """

    epochs: int = 30
    batch: int = 32
    rate: float = 0.01
    momentum: float = 0.9
    decay: float = 5e-4
    flip: bool = True
    crop: bool = True
    schedule: Literal["steps", "one-cycle"] = "steps"
    mixed: bool = False

    def __post_init__(self) -> None:
        """Refuse what trains nothing."""
        if self.epochs < 1 or self.batch < 1:
            raise InputError(f"epochs={self.epochs}, batch={self.batch}; expected at least 1 of each")
        if self.schedule not in ("steps", "one-cycle"):
            raise InputError(f"schedule {self.schedule!r}; expected steps or one-cycle")

    def rate_at(self, epoch: int, done: float) -> float:
        """The learning rate in an epoch, counted from 0, of which the share ``done`` is over.

        >>> [Descent(epochs=10, rate=1.0).rate_at(epoch, 0.5) for epoch in (0, 3, 9)]
        [1.0, 0.2, 0.008]
        >>> [round(Descent(epochs=10, rate=1.0, schedule="one-cycle").rate_at(epoch, 0.0), 2) for epoch in (0, 1, 2, 6)]
        [0.0, 0.5, 1.0, 0.5]
        """
        if self.schedule == "steps":
            passed = sum(epoch >= math.ceil(share * self.epochs) for share in (0.3, 0.6, 0.8))
            return float(f"{self.rate * 0.2**passed:.12g}")
        share = (epoch + done) / self.epochs
        return self.rate * min(share / _WARM_UP, (1 - share) / (1 - _WARM_UP))


def train_net(
    net: nn.Module,
    images: Tensor,
    labels: Tensor,
    noise: Noise,
    descent: Descent,
    *,
    forward: Callable[[Tensor], Tensor] | None = None,
) -> list[float]:
    """Train a net on images (N, C, H, W) on its device, uint8 or floats in [0, 1]; the mean loss of each epoch.

    ``forward`` takes the place of calling the net, such as a compiled version of it.
    """
    device = images.device
    optimiser = torch.optim.SGD(
        net.parameters(),
        lr=descent.rate,
        momentum=descent.momentum,
        weight_decay=descent.decay,
        nesterov=descent.momentum > 0,
        fused=device.type == "cuda",
    )
    net.train()
    step = net if forward is None else forward
    losses = []
    for epoch in range(descent.epochs):
        total, count = torch.zeros((), device=device), 0
        for done, values, targets in _batches(images, labels, noise, descent, epoch):
            for group in optimiser.param_groups:
                group["lr"] = descent.rate_at(epoch, done)
            with _mixed_precision(device, descent.mixed):
                loss = F.cross_entropy(step(values), targets)
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            total += loss.detach()
            count += 1
        losses.append(float(total) / max(count, 1))
        if not math.isfinite(losses[-1]):
            raise InputError(f"training diverged in epoch {epoch + 1}; expected a smaller learning rate")
    return losses


def _mixed_precision(device: torch.device, mixed: bool) -> AbstractContextManager[object]:
    return torch.autocast(device.type, dtype=torch.bfloat16) if mixed else nullcontext()


def _batches(
    images: Tensor, labels: Tensor, noise: Noise, descent: Descent, epoch: int
) -> Iterator[tuple[float, Tensor, Tensor]]:
    """How much of the epoch is over, noisy views (B, C, H, W) and their labels."""
    rng = CounterRng(noise.seed, torch.tensor([noise.run]), "mscr/order")
    order = rng.permutations(str(epoch), len(images))[0]
    fresh = replace(noise, role=f"train {epoch}")
    limit = _BLOCK.get(images.device.type, _BLOCK["cpu"])
    block = descent.batch * max(1, limit // (descent.batch * images[0].numel()))
    for start in range(0, len(order), block):
        rows = order[start : start + block]
        chosen = rows.to(images.device)
        draws = CounterRng(noise.seed, rows, f"mscr/{noise.run}/views {epoch}", images.device)
        views = _views(_floats(images[chosen]), draws, flip=descent.flip, crop=descent.crop)
        noisy, targets = fresh.around_images(views, rows), labels[chosen]
        if descent.mixed:
            noisy = noisy.contiguous(memory_format=torch.channels_last)
        for first in range(0, len(rows), descent.batch):
            part = slice(first, first + descent.batch)
            if len(rows[part]) == 1 and len(order) > 1:
                continue  # batch normalisation needs two
            yield (start + first) / len(order), noisy[part], targets[part]


def _floats(images: Tensor) -> Tensor:
    return images.float() / 255 if images.dtype == torch.uint8 else images


def _views(images: Tensor, draws: CounterRng, *, flip: bool, crop: bool) -> Tensor:
    if flip:
        mirrored = draws.uniforms("flip", 1)[:, :, None, None] < 0.5
        images = torch.where(mirrored, images.flip(3), images)
    if not crop:
        return images
    count, channels, height, width = images.shape
    padded = F.pad(images, (_PADDING,) * 4)
    shifts = draws.integers("crop", 2, high=2 * _PADDING + 1)
    down = (shifts[:, :1] + torch.arange(height, device=images.device))[:, None, :, None]
    right = (shifts[:, 1:] + torch.arange(width, device=images.device))[:, None, None, :]
    whole = torch.arange(count, device=images.device)[:, None, None, None]
    return padded[whole, torch.arange(channels, device=images.device)[None, :, None, None], down, right]


def from_net(
    make: Callable[[tuple[int, ...], int], nn.Module], *, device: str | torch.device = "cpu", **descent: Any
) -> Trainer:
    """A trainer of torch nets; ``make(shape, classes)`` builds one for images of shape (C, H, W).

    Further settings are those of `Descent`.
    """
    return partial(_train, make, Descent(**descent), torch.device(device))


def _train(
    make: Callable[[tuple[int, ...], int], nn.Module],
    descent: Descent,
    device: torch.device,
    points: NDArray[Any],
    labels: NDArray[Any],
    noise: Noise,
) -> Predict:
    images = torch.from_numpy(_channels_first(points)).to(device)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(noise.seed * 1_000_003 + noise.run)  # the first weights, and dropout
        net = make(tuple(images.shape[1:]), int(labels.max()) + 1).to(device)
        train_net(net, images, torch.from_numpy(labels).to(device), noise, descent)
    return predictor(net, device=device)


def _channels_first(points: NDArray[Any]) -> NDArray[np.float32]:
    """(N, H, W) or (N, H, W, C) images as (N, C, H, W) float32."""
    if points.ndim == 3:
        points = points[..., None]
    if points.ndim != 4 or points.shape[-1] not in (1, 3):
        raise InputError(f"points of shape {points.shape}; a net expects images of shape (N, H, W) or (N, H, W, 3)")
    return np.ascontiguousarray(points.transpose(0, 3, 1, 2), dtype=np.float32)


def predictor(net: nn.Module, *, device: str | torch.device = "cpu", batch: int = 256) -> Predict:
    """A function from (N, H, W[, C]) float images to predicted class numbers."""
    target = torch.device(device)
    net = net.to(target).eval()

    def predict(points: NDArray[Any]) -> NDArray[Any]:
        images = torch.from_numpy(_channels_first(points))
        with torch.inference_mode():
            answers = [net(images[k : k + batch].to(target)).argmax(1).cpu() for k in range(0, len(images), batch)]
        return torch.cat(answers).numpy()

    return predict


def wide_resnet(depth: int = 28, width: int = 10, *, dropout: float = 0.3, **settings: Any) -> Trainer:
    """A trainer of WRN-depth-width nets; ``settings`` are those of `from_net`."""
    WideResNet(depth, width=1, classes=2)  # refuse a bad depth before any work
    return from_net(partial(_wide_resnet, depth, width, dropout), **settings)


def _wide_resnet(depth: int, width: int, dropout: float, shape: tuple[int, ...], classes: int) -> WideResNet:
    return WideResNet(depth, width, classes=classes, channels=shape[0], dropout=dropout)
