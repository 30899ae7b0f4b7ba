"""A detector that needs no weights: patches of one colour. It finds the drawn shapes, and loses them in bad weather."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from blemish.models.answering import AnsweringModel

_NAMES = (None, "red", "green", "blue")
_DOMINANCE = 45
_LEAST_AREA = 20


def _dominance(images: Tensor) -> Tensor:
    """By how many levels each channel is above both others, (B, 3, H, W)."""
    levels = images.to(torch.int16)
    others = torch.stack([levels[:, [1, 2]].amax(1), levels[:, [0, 2]].amax(1), levels[:, [0, 1]].amax(1)], dim=1)
    return levels - others


def _patches(mask: Tensor) -> Tensor:
    """The connected parts of a mask (H, W), numbered from 1 by their last pixel; 0 outside."""
    labels = torch.arange(1, mask.numel() + 1, dtype=torch.float64).reshape(mask.shape) * mask
    while True:
        spread = functional.max_pool2d(labels[None, None], 3, stride=1, padding=1)[0, 0] * mask
        if torch.equal(spread, labels):
            return labels
        labels = spread


def _detect(images: Tensor) -> list[dict[str, Tensor]]:
    answers = []
    for excess in _dominance(images.cpu()):
        boxes, scores, kinds = [], [], []
        for channel in range(3):
            patches = _patches(excess[channel] > _DOMINANCE)
            numbers, areas = torch.unique(patches[patches > 0], return_counts=True)
            for number in numbers[areas >= _LEAST_AREA]:
                inside = patches == number
                rows, columns = inside.any(1).nonzero()[:, 0], inside.any(0).nonzero()[:, 0]
                boxes.append([int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1])
                scores.append(float(excess[channel][inside].double().mean()) / 255)
                kinds.append(channel + 1)
        answers.append(
            {
                "boxes": torch.tensor(boxes, dtype=torch.float32).reshape(-1, 4),
                "scores": torch.tensor(scores, dtype=torch.float32),
                "labels": torch.tensor(kinds, dtype=torch.int64),
            }
        )
    return answers


def _segment(images: Tensor) -> Tensor:
    excess = _dominance(images)
    best = excess.max(dim=1)
    classes: Tensor = torch.where(best.values > _DOMINANCE, best.indices + 1, 0)
    return classes


def colour_detector(*, name: str = "colours", **settings: Any) -> AnsweringModel:
    """The detector: red, green and blue patches."""
    return AnsweringModel(name, "demo", _detect, "thresholds 1", _NAMES, **settings)


def colour_segmenter(*, name: str = "colours", **settings: Any) -> AnsweringModel:
    """The class of every pixel by its colour: 0 what lies behind, then red, green and blue."""
    return AnsweringModel(name, "demo", _segment, "thresholds 1", _NAMES, **settings)
