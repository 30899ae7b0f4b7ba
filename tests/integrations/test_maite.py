"""Corruptions behind MAITE's protocols."""

from __future__ import annotations

from importlib import metadata
from typing import Any

import numpy as np
import pytest
import torch

import blemish
from blemish.core.errors import InputError
from blemish.integrations.maite import CorruptAugmentation, CorruptedDataset
from foreign import foreign
from pictures import pictures

FOG = blemish.Corrupt("fog", 3)
IDS = ["a", 7, "c"]


def image(row: int) -> torch.Tensor:
    return pictures(1, 3, 24, 32, first=row)[0]


class Three:
    """A dataset of MAITE's kind: images as arrays, targets, and metadata with ids."""

    metadata = {"id": "three", "index2label": {0: "cat"}}  # noqa: RUF012

    def __len__(self) -> int:
        return 3

    def __getitem__(self, ind: int, /) -> Any:
        return image(ind).numpy(), np.array([1.0, 0.0]), {"id": IDS[ind], "note": "kept"}


def number(name: Any) -> int:
    return name if isinstance(name, int) else blemish.hash_id(name)


def test_augmentation() -> None:
    targets, known = [object(), object()], [{"id": "a"}, {"id": 7, "note": 1}]
    batch = ([image(0), image(1).numpy()], targets, known)
    images, same, after = CorruptAugmentation("fog", 3)(batch)
    assert same is targets
    assert torch.equal(images[0], FOG(image(0), id=number("a")))
    assert isinstance(images[1], np.ndarray)
    np.testing.assert_array_equal(images[1], FOG(image(1), id=7).numpy())
    assert after == [{"id": "a", "corruption": "fog@3"}, {"id": 7, "note": 1, "corruption": "fog@3"}]
    assert known[0] == {"id": "a"}


def test_one_after_the_other() -> None:
    once = CorruptAugmentation("fog", 3)(([image(0)], [0], [{"id": 1}]))
    _, _, known = CorruptAugmentation("snow", 1.5)(once)
    assert known == [{"id": 1, "corruption": "fog@3+snow@1.5"}]


def test_dataset() -> None:
    dataset = CorruptedDataset(Three(), "fog", 3, seed=0)
    assert len(dataset) == 3
    assert dataset.metadata == {"id": "three+blemish:fog@3:seed=0", "index2label": {0: "cat"}}
    for row in range(3):
        corrupted, target, known = dataset[row]
        np.testing.assert_array_equal(corrupted, FOG(image(row), id=number(IDS[row])).numpy())
        np.testing.assert_array_equal(target, [1.0, 0.0])
        assert known == {"id": IDS[row], "note": "kept", "corruption": "fog@3"}


def test_refusals() -> None:
    fog = CorruptAugmentation("fog", 3)
    with pytest.raises(InputError, match="1 images, 2 targets and 1 metadata"):
        fog(([image(0)], [0, 1], [{"id": 1}]))
    with pytest.raises(InputError, match="no ids called 'id' in the sample"):
        fog(([image(0)], [0], [{}]))
    with pytest.raises(InputError, match="a dataset of type list without an id in its metadata"):
        CorruptedDataset([1, 2], "fog", 3)
    with pytest.raises(InputError, match=r"image 'a': a tensor of shape .* channels last"):
        fog(([image(0).permute(1, 2, 0)], [0], [{"id": "a"}]))


@pytest.mark.slow
@pytest.mark.parametrize("task", ["image_classification", "object_detection"])
def test_maite_takes_them_for_its_own(task: str) -> None:
    protocols = foreign(f"maite.protocols.{task}")
    assert isinstance(CorruptAugmentation("fog", 3), protocols.Augmentation)
    assert isinstance(CorruptedDataset(Three(), "fog", 3), protocols.Dataset)
    for kind, made in (("Augmentation", CorruptAugmentation), ("Dataset", CorruptedDataset)):
        found = metadata.entry_points(group=f"maite.protocols.{task}.{kind}")
        assert [entry.load() for entry in found if entry.name.startswith("blemish")] == [made]


class _First:
    """A model that calls everything the first class."""

    metadata = {"id": "first"}  # noqa: RUF012

    def __call__(self, batch: Any, /) -> Any:
        return [np.array([1.0, 0.0]) for _ in batch]


@pytest.mark.slow
def test_in_maites_evaluation() -> None:
    tasks = foreign("maite.tasks")
    fog = CorruptAugmentation("fog", 3)
    predictions, batches = tasks.predict(
        model=_First(), dataset=Three(), augmentation=fog, batch_size=2, return_augmented_data=True
    )
    assert sum(len(batch) for batch in predictions) == 3
    images = [image for batch in batches for image in batch[0]]
    for row, corrupted in enumerate(images):
        np.testing.assert_array_equal(corrupted, CorruptedDataset(Three(), "fog", 3)[row][0])
