"""Does a model say the same again, and of an image the same whatever else is in the batch? Are images read the same?"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from torch import nn

from blemish.evaluation.records import Records
from blemish.studies.audit.findings import Check, Finding
from blemish.studies.audit.subject import Subject

_IMAGES = 32
_SMALL_BATCH = 4
_READ_AGAIN = 8
# Batches of other sizes are computed in another order: rounding, of half precision at worst.
_ROUNDING = 0.02


def check_behaviour(subject: Subject) -> list[Check]:
    """The checks of reading, of the same batch again, and of other batches; on a few of the images."""
    again = _reading(subject)
    images = subject.images.take(range(min(_IMAGES, len(subject.images))))
    first, second = (subject.answers(images, batch_size=len(images)) for _ in range(2))
    if (change := _change(first, second)) > 0:
        return [*again, _unrepeatable(subject, first, second, change), Check("batch", skipped="answers change anyway")]
    said = f"{len(images)} images classified twice"
    order = np.argsort(images.labels, kind="stable")
    mixed = subject.answers(images.take(order), batch_size=_SMALL_BATCH).take(np.argsort(order))
    return [*again, Check("repeatable", said), _batch(subject, first, mixed)]


def _change(one: Records, other: Records) -> float:
    return float(np.abs(one.label_confidence - other.label_confidence).max())


def _others(one: Records, other: Records) -> int:
    return int((one.top5[:, 0] != other.top5[:, 0]).sum())


def _unrepeatable(subject: Subject, one: Records, other: Records, change: float) -> Check:
    dropped = _layers(subject, nn.modules.dropout._DropoutNd)
    cause = f"; {len(dropped)} dropout layers are in training mode ({dropped[0]} …)" if dropped else ""
    if not dropped and change < _ROUNDING:
        return Check("repeatable", f"{len(one)} images classified twice; confidences differ by {change:.1g} at most")
    finding = Finding(
        "repeatable",
        "the model gives other answers when asked again",
        f"of {len(one)} images, {_others(one, other)} get another class, and confidences differ by up to "
        f"{change:.2f}{cause}",
        "put the model into evaluation mode (module.eval()), or fix what it draws at random",
        numbers={"changed": float(_others(one, other)), "confidence": change, "images": float(len(one))},
    )
    return Check("repeatable", findings=(finding,))


def _batch(subject: Subject, one: Records, other: Records) -> Check:
    change = _change(one, other)
    said = f"{len(one)} images in batches of {len(one)} and of {_SMALL_BATCH}"
    if change < _ROUNDING:
        return Check("batch", said)
    normed = _layers(subject, nn.modules.batchnorm._BatchNorm)
    cause = "a layer that looks at the whole batch, such as batch norm in training mode"
    if normed:
        cause = f"{len(normed)} batch norm layers take their statistics from the batch ({normed[0]} …)"
    finding = Finding(
        "batch",
        "answers depend on what else is in the batch",
        f"of {len(one)} images, {_others(one, other)} get another class in batches of {_SMALL_BATCH} of like labels "
        f"than in one of {len(one)}, and confidences differ by up to {change:.2f}: {cause}",
        "put the model into evaluation mode (module.eval()) before it is used or exported; a model that adapts to its "
        "batches belongs to: blemish ccc",
        "certain" if normed else "very likely",
        numbers={"changed": float(_others(one, other)), "confidence": change, "images": float(len(one))},
    )
    return Check("batch", said, (finding,))


def _layers(subject: Subject, kind: type[nn.Module]) -> list[str]:
    """The layers of a kind that behave as in training, by name; none where the module is not at hand."""

    def named() -> Iterator[str]:
        for name, layer in () if subject.model.module is None else subject.model.module.named_modules():
            without = isinstance(layer, nn.modules.batchnorm._BatchNorm) and layer.running_mean is None
            if isinstance(layer, kind) and (layer.training or without):
                yield name or type(layer).__name__

    return list(named())


def _reading(subject: Subject) -> list[Check]:
    """Are pixels the same when an image is read again? Data sets may augment at random."""
    changed = 0
    rows = subject.rows[:_READ_AGAIN].tolist()
    for row in rows:
        first, second = (np.asarray(subject.source.read(row)) for _ in range(2))
        changed += first.shape != second.shape or bool((first != second).any())
    if not changed:
        return [Check("repeatable", f"{len(rows)} images read twice")]
    finding = Finding(
        "repeatable",
        "images are others when they are read again",
        f"{changed} of {len(rows)} images had other pixels the second time",
        "take random augmentation, such as random crops and flips, out of the data set",
        numbers={"changed": float(changed), "images": float(len(rows))},
    )
    return [Check("repeatable", findings=(finding,))]
