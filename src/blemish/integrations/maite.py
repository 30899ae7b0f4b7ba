"""Corruptions behind the protocols of MAITE, for image classification and object detection; by their shape alone.

The same classes serve both tasks: targets are handed on as they are. blemish names them in MAITE's entry point groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from blemish.core.errors import InputError, about
from blemish.corruptions.base import Corruption
from blemish.corruptions.samples import sample_id
from blemish.corruptions.severity import severity_text
from blemish.corruptions.transform import Corrupt

_DONE = "corruption"
Datum = tuple[Any, Any, Mapping[str, Any]]
Batch = tuple[Sequence[Any], Sequence[Any], Sequence[Mapping[str, Any]]]


class CorruptAugmentation:
    """A corruption as a MAITE ``Augmentation``.

    Images are (channels, height, width) as in MAITE, uint8 or float in 0 … 1; tensors stay tensors, anything else
    becomes a NumPy array. The draw of an image depends on the ``id`` in its metadata, a number or a text, and not on
    its batch. Metadata say what was done, as ``corruption``: "fog@3", or "fog@3+snow@1" one after the other.
    """

    def __init__(
        self,
        name: str | Corruption,
        severity: float,
        *,
        seed: int = 0,
        preset: str | None = None,
    ) -> None:
        """Check the settings."""
        self._corrupt = Corrupt(name, severity, seed=seed, preset=preset)
        self.condition = f"{self._corrupt.corruption.name}@{severity_text(self._corrupt.severity)}"
        self.metadata: dict[str, Any] = {"id": f"blemish:{self.condition}:seed={self._corrupt.seed}"}

    def __call__(self, batch: Batch, /) -> Batch:
        """The batch with corrupted images, the same targets, and metadata that say so."""
        images, targets, metadata = batch
        if not len(images) == len(targets) == len(metadata):
            counts = f"{len(images)} images, {len(targets)} targets and {len(metadata)} metadata"
            raise InputError(f"a batch with {counts}; expected as many of each")
        data = [self.datum(datum) for datum in zip(images, targets, metadata, strict=True)]
        return [image for image, _, _ in data], targets, [known for _, _, known in data]

    def datum(self, datum: Datum) -> Datum:
        """One image with its target and metadata."""
        image, target, metadata = datum
        number = sample_id(metadata, "id")
        with about(f"image {metadata['id']!r}"):
            changed = self._changed(image, number)
        steps = [str(metadata[_DONE])] if _DONE in metadata else []
        return changed, target, {**metadata, _DONE: "+".join([*steps, self.condition])}

    def _changed(self, image: Any, number: int) -> Any:
        if isinstance(image, Tensor):
            return self._corrupt(image, id=number)
        return self._corrupt(torch.from_numpy(np.array(image)), id=number).numpy()


class CorruptedDataset:
    """A MAITE ``Dataset`` whose images are corrupted when they are asked for; see `CorruptAugmentation`."""

    def __init__(
        self,
        dataset: Any,
        name: str | Corruption,
        severity: float,
        *,
        seed: int = 0,
        preset: str | None = None,
    ) -> None:
        """Check the settings."""
        self._dataset = dataset
        self._augmentation = CorruptAugmentation(name, severity, seed=seed, preset=preset)
        own = dict(getattr(dataset, "metadata", {}))
        if "id" not in own:
            raise InputError(
                f"a dataset of type {type(dataset).__name__} without an id in its metadata; expected MAITE's"
            )
        self.metadata: dict[str, Any] = {**own, "id": f"{own['id']}+{self._augmentation.metadata['id']}"}

    def __len__(self) -> int:
        """As many as the dataset has."""
        return len(self._dataset)

    def __getitem__(self, ind: int, /) -> Datum:
        """An image with its target and metadata."""
        return self._augmentation.datum(self._dataset[ind])
