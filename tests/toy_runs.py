"""A function as a model, noise as pictures, and a benchmark of one's own: what runs in tests are made of."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from blemish.benchmarks.benchmark import Benchmark, Protocol
from blemish.benchmarks.condition import parse_condition
from blemish.data.source import Source
from blemish.evaluation import run as evaluation_run
from blemish.models.base import Classifier, Training

CLASSES = 7

evaluate = partial(evaluation_run.evaluate, allow_chance=True)
"""What these models say of these pictures is chance."""


def picture(i: int, size: tuple[int, int] = (32, 32)) -> Image.Image:
    levels = np.random.default_rng(i).integers(0, 256, (*size, 3), dtype=np.uint8)
    return Image.fromarray(levels)


def source(count: int = 20, sizes: tuple[tuple[int, int], ...] = ((32, 32),), base: int = 0) -> Source:
    return Source(
        name="pictures",
        names=tuple(f"{i % CLASSES}/{i}.png" for i in range(count)),
        ids=np.arange(base, base + count, dtype=np.int64),
        labels=np.arange(count, dtype=np.int64) % CLASSES,
        read=lambda i: picture(i + base, sizes[i % len(sizes)]),
        classes=tuple("abcdefg"),
    )


def forward(values: Tensor) -> Tensor:
    """Scores that depend on every pixel, and on nothing but the image itself."""
    weights = torch.linspace(-1, 1, values[0].numel(), dtype=torch.float64).view(1, *values.shape[1:])
    total = (values.double() * weights).flatten(1).sum(1, keepdim=True)
    return torch.cos(total * torch.arange(1, CLASSES + 1)) * 3


def model(name: str = "toy", weights: str = "w1") -> Classifier:
    return Classifier(name, "function", forward, weights, training=Training(("fog",)))


def benchmark(*conditions: str, **protocol: object) -> Benchmark:
    return Benchmark(
        "mine",
        "",
        "error",
        tuple(parse_condition(text) for text in conditions),
        Protocol(**protocol),  # type: ignore[arg-type]
    )
