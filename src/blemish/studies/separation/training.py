"""Training nets with noise, as the MSCR paper does on CIFAR-10: fresh noise for every image in every epoch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

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

__all__ = ["from_net", "predictor", "wide_resnet"]

_PADDING = 4


def from_net(
    make: Callable[[tuple[int, ...], int], nn.Module],
    *,
    epochs: int = 30,
    batch: int = 32,
    rate: float = 0.01,
    momentum: float = 0.9,
    decay: float = 5e-4,
    flip: bool = True,
    crop: bool = True,
    device: str | torch.device = "cpu",
) -> Trainer:
    """A trainer of torch nets: SGD with a learning rate that falls to a fifth after 30, 60 and 80 % of the epochs.

    ``make(shape, classes)`` builds the net for images of shape (C, H, W). Flips, crops with 4 pixels of padding and
    noise are drawn anew in each epoch, from counters, so that a run can be repeated.
    """
    if epochs < 1 or batch < 1:
        raise InputError(f"epochs={epochs}, batch={batch}; expected at least 1 of each")
    descent = partial(torch.optim.SGD, lr=rate, momentum=momentum, weight_decay=decay, nesterov=momentum > 0)
    views = {"batch": batch, "flip": flip, "crop": crop}
    return partial(_train, make, descent, epochs, views, torch.device(device))


def _train(
    make: Callable[[tuple[int, ...], int], nn.Module],
    descent: Callable[..., torch.optim.Optimizer],
    epochs: int,
    views: dict[str, Any],
    device: torch.device,
    points: NDArray[Any],
    labels: NDArray[Any],
    noise: Noise,
) -> Predict:
    images = _channels_first(points)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(noise.seed * 1_000_003 + noise.run)  # the first weights, and dropout
        net = make(tuple(images.shape[1:]), int(labels.max()) + 1).to(device)
        optimiser = descent(net.parameters())
        milestones = [math.ceil(share * epochs) for share in (0.3, 0.6, 0.8)]
        schedule = torch.optim.lr_scheduler.MultiStepLR(optimiser, milestones, gamma=0.2)
        for epoch in range(epochs):
            _epoch(net, optimiser, images, labels, noise, epoch, device=device, **views)
            schedule.step()
    return predictor(net, device=device)


def _channels_first(points: NDArray[Any]) -> NDArray[np.float32]:
    """(N, H, W) or (N, H, W, C) images as (N, C, H, W) float32."""
    if points.ndim == 3:
        points = points[..., None]
    if points.ndim != 4 or points.shape[-1] not in (1, 3):
        raise InputError(f"points of shape {points.shape}; a net expects images of shape (N, H, W) or (N, H, W, 3)")
    return np.ascontiguousarray(points.transpose(0, 3, 1, 2), dtype=np.float32)


def _epoch(
    net: nn.Module,
    optimiser: torch.optim.Optimizer,
    images: NDArray[np.float32],
    labels: NDArray[Any],
    noise: Noise,
    epoch: int,
    *,
    batch: int,
    flip: bool,
    crop: bool,
    device: torch.device,
) -> None:
    net.train()
    rng = CounterRng(noise.seed, torch.tensor([noise.run]), "mscr/order")
    order = rng.permutations(str(epoch), len(images))[0].numpy()
    fresh = replace(noise, role=f"train {epoch}")
    for start in range(0, len(order), batch):
        rows = order[start : start + batch]
        if len(rows) == 1 and len(order) > 1:
            continue  # batch normalisation needs two
        draws = CounterRng(noise.seed, torch.from_numpy(rows), f"mscr/{noise.run}/views {epoch}")
        views = _views(torch.from_numpy(images[rows]), draws, flip=flip, crop=crop)
        noisy = fresh.around(views.numpy(), ids=rows)
        loss = F.cross_entropy(net(torch.from_numpy(noisy).to(device)), torch.from_numpy(labels[rows]).to(device))
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if not bool(torch.isfinite(loss)):
            raise InputError(f"training diverged in epoch {epoch + 1}; expected a smaller learning rate")


def _views(images: Tensor, draws: CounterRng, *, flip: bool, crop: bool) -> Tensor:
    if flip:
        mirrored = draws.uniforms("flip", 1)[:, :, None, None] < 0.5
        images = torch.where(mirrored, images.flip(3), images)
    if not crop:
        return images
    height, width = images.shape[2:]
    padded = F.pad(images, (_PADDING,) * 4)
    shifts = draws.integers("crop", 2, high=2 * _PADDING + 1).tolist()
    return torch.stack(
        [image[:, top : top + height, left : left + width] for image, (top, left) in zip(padded, shifts, strict=True)]
    )


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
    """A trainer of WRN-depth-width nets; ``settings`` are those of ``from_net``."""
    WideResNet(depth, width=1, classes=2)  # refuse a bad depth before any work
    return from_net(partial(_wide_resnet, depth, width, dropout), **settings)


def _wide_resnet(depth: int, width: int, dropout: float, shape: tuple[int, ...], classes: int) -> WideResNet:
    return WideResNet(depth, width, classes=classes, channels=shape[0], dropout=dropout)
