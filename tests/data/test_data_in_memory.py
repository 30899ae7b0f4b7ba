"""Pairs of images and labels, and DataLoaders."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
)
from torch.utils.data.distributed import DistributedSampler

import blemish.data.in_memory as in_memory
from blemish.core.errors import InputError
from blemish.data.cache import load
from blemish.data.open import open_source
from blemish.data.source import Source

IMAGES = torch.arange(10 * 3 * 8 * 9).remainder(251).to(torch.uint8).reshape(10, 3, 8, 9)
LABELS = torch.tensor([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
TENSORS = TensorDataset(IMAGES, LABELS)


def pixels(source: Source) -> torch.Tensor:
    return torch.stack([torch.from_numpy(np.array(source.read(i))) for i in range(len(source))]).permute(0, 3, 1, 2)


class TestPairs:
    @pytest.mark.parametrize(
        "pair",
        [
            (IMAGES, LABELS),
            (IMAGES.numpy(), LABELS.numpy()),
            (IMAGES.permute(0, 2, 3, 1).numpy(), LABELS.tolist()),
            (IMAGES / 255, LABELS.to(torch.int32)),
            ((IMAGES / 255).double().permute(0, 2, 3, 1).numpy(), LABELS[:, None].numpy()),
            ([Image.fromarray(image.permute(1, 2, 0).numpy()) for image in IMAGES], tuple(range(10))),
            [IMAGES, LABELS],
        ],
        ids=["tensors", "CHW arrays", "HWC arrays", "floats", "doubles", "pictures", "a list of two"],
    )
    def test_kinds(self, pair: Any) -> None:
        source = open_source(pair)
        assert torch.equal(pixels(source), IMAGES)
        assert source.labels.tolist() == list(range(10))
        assert source.ids.tolist() == list(range(10))
        assert source.channels == 3

    def test_gray(self) -> None:
        source = open_source((IMAGES[:, 0], LABELS))
        assert source.channels == 1
        np.testing.assert_array_equal(np.asarray(source.read(4)), IMAGES[4, 0])

    @pytest.mark.parametrize(
        ("pair", "message"),
        [
            ((IMAGES, LABELS[:9]), "10 images and 9 labels"),
            ((IMAGES,), "1 things; expected two"),
            ((IMAGES, LABELS, LABELS), "3 things; expected two"),
            ((IMAGES, 3), "labels of type int"),
            (("images", "labels"), "images of type str"),
            ((IMAGES, torch.tensor(1)), "labels: a single number"),
            ((IMAGES[0, 0], LABELS[:8]), r"images of shape \(8, 9\)"),
            (
                (IMAGES, ["cat"] * len(LABELS)),
                "label 'cat'; expected a whole number; number the classes, or give a folder",
            ),
            ((IMAGES, LABELS.float()), "image 0 has the label tensor\\(0.\\); expected a whole number"),
            ((IMAGES, LABELS - 1), "label -1; expected 0 or more"),
            ((IMAGES.long(), LABELS), "int64; expected uint8, or floats between 0 and 1"),
            ((IMAGES[:0], LABELS[:0]), "no images in it"),
        ],
    )
    def test_refused(self, pair: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            open_source(pair)

    def test_values_that_are_normalised_are_found_wherever_they_are(self) -> None:
        images = IMAGES / 255
        images[7] = (images[7] - 0.5) / 0.25
        with pytest.raises(InputError, match=r"image 7 has values from -1\.\d+ to .*leave normalising to the model"):
            open_source((images, LABELS))
        images[7] = torch.nan
        with pytest.raises(InputError, match="image 7 has values from nan"):
            open_source((images, LABELS))

    def test_nothing_else_is_taken_with_them(self) -> None:
        with pytest.raises(InputError, match="mapping given for a dataset"):
            open_source((IMAGES, LABELS), mapping="imagenet")

    def test_processes_reopen_them(self) -> None:
        source = open_source((IMAGES, LABELS))
        again = pickle.loads(pickle.dumps(source))
        assert load(again).fingerprint == load(source).fingerprint


class Numbers(Dataset[Any]):
    """Items as tensors, with labels that only the items tell."""

    def __len__(self) -> int:
        return 10

    def __getitem__(self, i: int) -> Any:
        return IMAGES[i], int(LABELS[i])


class Stream(IterableDataset[Any]):
    def __init__(self, *, shuffled: bool = False) -> None:
        self.passes = 1 if shuffled else 0
        self.seed = 0

    def __iter__(self) -> Iterator[Any]:
        self.seed += self.passes
        order = torch.randperm(10, generator=torch.Generator().manual_seed(self.seed)) if self.passes else range(10)
        for i in order:
            yield IMAGES[int(i)], int(LABELS[int(i)])


def collate(items: list[Any]) -> dict[str, Any]:
    return {"pixel_values": torch.stack([image for image, _ in items]).flip(-1), "labels": [7 for _ in items]}


class TestLoaders:
    @pytest.mark.parametrize(
        "dataset", [TensorDataset(IMAGES, LABELS), Numbers(), Stream()], ids=lambda d: type(d).__name__
    )
    def test_batches_in_order(self, dataset: Any) -> None:
        source = open_source(DataLoader(dataset, batch_size=4))
        assert source.name == f"DataLoader over {type(dataset).__name__}"
        assert torch.equal(pixels(source), IMAGES)
        assert source.labels.tolist() == list(range(10))
        assert source.ids.tolist() == list(range(10))
        assert load(source).fingerprint == load(open_source(DataLoader(dataset, batch_size=3))).fingerprint

    def test_a_sampler_that_keeps_an_order(self) -> None:
        class Backwards(SequentialSampler):
            def __iter__(self) -> Iterator[int]:
                return iter([9, 3, 3])

        dataset = TensorDataset(IMAGES, LABELS)
        source = open_source(DataLoader(dataset, batch_size=2, sampler=Backwards(dataset)))
        assert source.labels.tolist() == [9, 3, 3]
        assert source.ids.tolist() == [0, 1, 2]
        assert source.names == ("0", "1", "2")
        assert source.note == "8 of 10 items of the dataset are left out by its sampler"

    def test_a_part(self) -> None:
        source = open_source(DataLoader(Subset(TensorDataset(IMAGES, LABELS), [5, 2]), batch_size=2))
        assert source.labels.tolist() == [5, 2]
        assert source.ids.tolist() == [0, 1]
        assert source.note is None

    def test_what_collate_fn_makes_counts(self) -> None:
        source = open_source(DataLoader(Numbers(), batch_size=4, collate_fn=collate))
        assert torch.equal(pixels(source), IMAGES.flip(-1))
        assert source.labels.tolist() == [7] * 10
        assert torch.equal(pixels(source.take([9, 0])), IMAGES.flip(-1)[[9, 0]])

    def test_a_collate_fn_that_mixes_images_at_random(self) -> None:
        def mix(items: list[Any]) -> Any:
            images = torch.stack([image for image, _ in items]) / 255
            share = float(np.random.default_rng().uniform(0.2, 0.8))
            return share * images + (1 - share) * images.flip(0), [label for _, label in items]

        with pytest.raises(
            InputError, match="over Numbers: its collate_fn changes images at random; expected the same"
        ):
            open_source(DataLoader(Numbers(), batch_size=4, collate_fn=mix))

    def test_a_collate_fn_that_drops_items(self) -> None:
        def drop(items: list[Any]) -> Any:
            return torch.stack([image for image, _ in items[1:]]), [label for _, label in items[1:]]

        with pytest.raises(InputError, match="batch 0 holds 3 images and 3 labels; expected 4 of each"):
            open_source(DataLoader(Numbers(), batch_size=4, collate_fn=drop))

    @pytest.mark.parametrize(
        ("loader", "message"),
        [
            (DataLoader(TENSORS, batch_size=4, shuffle=True), r"shuffles \(RandomSampler\); expected shuffle=False"),
            (DataLoader(TENSORS, sampler=SubsetRandomSampler([1, 2])), r"shuffles \(SubsetRandomSampler\)"),
            (DataLoader(TENSORS, sampler=DistributedSampler(TENSORS, 2, 0)), r"shuffles \(DistributedSampler\)"),
            (DataLoader(TENSORS, batch_size=4, drop_last=True), "drop_last=True leaves out 2 images"),
            (DataLoader(TENSORS, batch_size=None), "batch_size=None; expected batches"),
            (DataLoader(Stream(shuffled=True), batch_size=4), "shuffles, or changes images at random"),
            (DataLoader(Stream(), batch_size=4, drop_last=True), "drop_last=True may leave out images"),
            (DataLoader(Stream(), batch_size=4, num_workers=2), "a stream with 2 workers may give images twice"),
            (DataLoader(Stream(), batch_size=None), "batch 0 is no batch"),
            (DataLoader(TensorDataset(IMAGES), batch_size=4), "expected \\(image, label\\)"),
        ],
    )
    def test_refused(self, loader: Any, message: str) -> None:
        with pytest.raises(InputError, match=f"DataLoader over .*{message}"):
            open_source(loader)

    def test_an_order_that_changes(self) -> None:
        class Changing(SequentialSampler):
            def __iter__(self) -> Iterator[int]:
                return iter(torch.randperm(10).tolist())

        dataset = TensorDataset(IMAGES, LABELS)
        state = torch.get_rng_state()
        with pytest.raises(InputError, match="gives another order each time"):
            open_source(DataLoader(dataset, sampler=Changing(dataset)))
        assert torch.equal(state, torch.get_rng_state())

    @pytest.mark.parametrize("kind", [TensorDataset, None], ids=["map", "stream"])
    def test_normalised_values_are_refused_by_name(self, kind: Any) -> None:
        normal = (IMAGES / 255 - 0.5) / 0.25

        class Normal(IterableDataset[Any]):
            def __iter__(self) -> Iterator[Any]:
                return iter(zip(normal, LABELS, strict=True))

        dataset = Normal() if kind is None else TensorDataset(normal, LABELS)
        with pytest.raises(InputError, match=r"DataLoader over \w+: image 0 has values from .*leave normalising"):
            open_source(DataLoader(dataset, batch_size=2))

    def test_the_programs_randomness_is_left_alone(self) -> None:
        state = torch.get_rng_state()
        open_source(DataLoader(Stream(), batch_size=2))
        open_source(DataLoader(Numbers(), batch_size=2))
        assert torch.equal(state, torch.get_rng_state())

    def test_a_stream_that_does_not_fit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(in_memory, "_SHARE", 10**15)
        with pytest.raises(InputError, match=r"a stream of more than .* kept in memory; expected a map-style dataset"):
            open_source(DataLoader(Stream(), batch_size=2))

    def test_processes_reopen_them(self) -> None:
        source = open_source(DataLoader(Numbers(), batch_size=4, collate_fn=collate))
        again = pickle.loads(pickle.dumps(source.take([8, 1])))
        assert load(again).fingerprint == load(source.take([8, 1])).fingerprint
