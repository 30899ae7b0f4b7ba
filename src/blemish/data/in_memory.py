"""Images that a Python program holds already: a pair of images and labels, or a DataLoader."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    default_collate,
)

from blemish.core.errors import InputError
from blemish.core.memory import available_memory, shown_bytes
from blemish.data.dataset_source import as_label, as_picture, by_position, dataset_source, image_and_label
from blemish.data.hugging_face import is_of_hugging_face, rows_source
from blemish.data.source import Source

# Batches that are kept: threads ask for the images of a few of them at a time.
_KEPT = 4

# The share of the free memory that a stream may fill.
_SHARE = 2


class _Pairs(Dataset[Any]):
    """The items of two sequences."""

    def __init__(self, images: Any, labels: Any) -> None:
        self.images, self.targets = images, labels

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, i: int) -> tuple[Any, Any]:
        return self.images[i], self.targets[i]


def is_pair(data: object) -> bool:
    """Whether something is images and labels: a tuple, or a list that begins with a stack of images.

    Other lists are datasets of their items.
    """
    return isinstance(data, tuple) or (isinstance(data, list) and getattr(next(iter(data), None), "ndim", 0) >= 3)


def pair_source(pair: Sequence[Any]) -> Source:
    """Images and labels, ``(x, y)``: tensors or arrays of N images and of N whole numbers, or sequences of them.

    Images are as `dataset_source` takes them; an image's name and id are its position.
    """
    if len(pair) != 2:
        raise InputError(f"{len(pair)} things; expected two, (images, labels)")
    images, labels = pair
    for what, values in (("images", images), ("labels", labels)):
        if not hasattr(values, "__len__") or not hasattr(values, "__getitem__") or isinstance(values, (str, bytes)):
            raise InputError(f"{what} of type {type(values).__name__}; expected (images, labels): tensors or arrays")
        if isinstance(values, (Tensor, np.ndarray)) and values.ndim == 0:
            raise InputError(f"{what}: a single number; expected (images, labels): tensors or arrays")
    if len(images) != len(labels):
        raise InputError(f"{len(images)} images and {len(labels)} labels; expected as many")
    if isinstance(images, (Tensor, np.ndarray)):
        if images.ndim not in (3, 4):
            raise InputError(f"images of shape {tuple(images.shape)}; expected (N, C, H, W), (N, H, W, C) or (N, H, W)")
        _check_range(images)
    return dataset_source(_Pairs(images, labels), name="images", labels=_column(labels))


def _column(labels: Any) -> Any:
    """Labels in one dimension, or as they are: a column of them is one, too."""
    if isinstance(labels, (Tensor, np.ndarray)) and labels.ndim == 2 and labels.shape[1] == 1:
        return labels[:, 0]
    return labels


def _check_range(images: Tensor | NDArray[Any]) -> None:
    """Refuse normalised values before any work: the first image alone may happen to be within the range."""
    floating = images.is_floating_point() if isinstance(images, Tensor) else np.issubdtype(images.dtype, np.floating)
    if not floating or len(images) == 0:
        return
    for i in range(len(images)):
        low, high = float(images[i].min()), float(images[i].max())
        if not 0 <= low <= high <= 1:
            raise InputError(
                f"images: image {i} has values from {low:.3g} to {high:.3g}; expected 0 to 1: leave normalising to the "
                "model"
            )


def loader_source(loader: DataLoader[Any]) -> Source:
    """The images of a DataLoader, in the order of its batches; an image's name and id are its position there.

    One that shuffles, leaves images out (``drop_last``) or gives normalised values is refused. Batches of a map-style
    dataset are made again whenever they are needed, by the loader's own ``collate_fn``; what a stream gives is kept in
    memory.
    """
    name = f"DataLoader over {type(loader.dataset).__name__}"
    if isinstance(loader.dataset, IterableDataset):
        return _streamed(name, loader)
    batches = _order(name, loader)
    rows = np.array(list(chain.from_iterable(batches)), dtype=np.int64)
    if loader.collate_fn is default_collate:  # which changes nothing but the form
        source = by_position(_whole(name, loader.dataset), rows)
    else:
        source = _collated(name, loader, batches)
    total = len(loader.dataset)  # type: ignore[arg-type]  # a map-style one has a length
    if (left := total - len(np.unique(rows))) > 0:
        source = replace(source, note=f"{left} of {total} items of the dataset are left out by its sampler")
    return source


def _whole(name: str, dataset: Any) -> Source:
    return rows_source(dataset, name=name) if is_of_hugging_face(dataset) else dataset_source(dataset, name=name)


def _order(name: str, loader: DataLoader[Any]) -> list[list[int]]:
    """The positions in each batch."""
    sampler: Any = loader.batch_sampler
    if sampler is None:
        raise InputError(f"{name}: batch_size=None; expected batches: DataLoader(…, batch_size=64)")
    for each in (getattr(sampler, "sampler", None), sampler):
        random = isinstance(each, (RandomSampler, SubsetRandomSampler, WeightedRandomSampler))
        if random or getattr(each, "shuffle", False) is True:
            raise InputError(f"{name}: shuffles ({type(each).__name__}); expected shuffle=False")
    with torch.random.fork_rng(devices=[]):
        first, second = ([[int(i) for i in batch] for batch in sampler] for _ in range(2))
    if first != second:
        raise InputError(
            f"{name}: shuffles ({type(sampler).__name__} gives another order each time); expected one order"
        )
    if loader.drop_last and (left := len(loader.sampler) - sum(map(len, first))) > 0:  # type: ignore[arg-type]
        raise InputError(f"{name}: drop_last=True leaves out {left} images; expected drop_last=False")
    if not first:
        raise InputError(f"{name}: no images in it")
    return first


def _collated(name: str, loader: DataLoader[Any], batches: Sequence[Sequence[int]]) -> Source:
    """Batches that a ``collate_fn`` makes, one at a time."""
    starts = [0, *accumulate(map(len, batches))]
    kept: OrderedDict[int, tuple[list[Any], list[Any]]] = OrderedDict()
    one_at_a_time = threading.Lock()
    dataset: Any = loader.dataset

    def batch(number: int) -> tuple[list[Any], list[Any]]:
        if number not in kept:
            made = loader.collate_fn([dataset[i] for i in batches[number]])
            kept[number] = _parts(f"{name}: batch {number}", made, len(batches[number]))
            while len(kept) > _KEPT:
                kept.popitem(last=False)
        return kept[number]

    class _Items(Dataset[Any]):
        def __len__(self) -> int:
            return starts[-1]

        def __getitem__(self, i: int) -> tuple[Any, Any]:
            number = int(np.searchsorted(starts, i, side="right")) - 1
            with one_at_a_time:
                images, labels = batch(number)
            return images[i - starts[number]], labels[i - starts[number]]

    once = as_picture(f"{name}: image 0", batch(0)[0][0])
    kept.clear()
    if as_picture(f"{name}: image 0", batch(0)[0][0]).tobytes() != once.tobytes():
        raise InputError(f"{name}: its collate_fn changes images at random; expected the same batches each time")
    return dataset_source(_Items(), name=name)


def _parts(where: str, batch: Any, count: int | None = None) -> tuple[list[Any], list[Any]]:
    """The images and the labels of a batch."""
    try:
        images, labels = (list(part) for part in image_and_label(where, batch))
    except TypeError as error:
        raise InputError(f"{where} is no batch ({error}); expected images and labels, as many of each") from error
    expected = len(images) if count is None else count
    if len(images) != expected or len(labels) != expected:
        raise InputError(f"{where} holds {len(images)} images and {len(labels)} labels; expected {expected} of each")
    return images, labels


def _streamed(name: str, loader: DataLoader[Any]) -> Source:
    """What a loader of a stream gives, kept in memory; its first batch has to be the same twice."""
    pictures: list[Image.Image] = []
    labels: list[int] = []
    used, most = 0, available_memory() // _SHARE
    if loader.drop_last:
        raise InputError(f"{name}: drop_last=True may leave out images; expected drop_last=False")
    if loader.num_workers > 1:
        # Each worker has a copy of the stream; nothing tells whether they share it out or give every image again.
        count = loader.num_workers
        raise InputError(f"{name}: a stream with {count} workers may give images twice; expected at most one")
    for number, batch in enumerate(_batches(loader)):
        for image, label in zip(*_parts(f"{name}: batch {number}", batch), strict=True):
            picture = as_picture(f"{name}: image {len(pictures)}", image)
            used += len(picture.getbands()) * picture.width * picture.height
            if used > most:
                raise InputError(
                    f"{name}: a stream of more than {shown_bytes(most)}, which are kept in memory; expected a "
                    "map-style dataset, or files"
                )
            labels.append(as_label(name, len(pictures), label))
            pictures.append(picture)
    if not pictures:
        raise InputError(f"{name}: no images in it")
    again, _ = _parts(name, next(_batches(loader), ((), ())))
    if [as_picture(name, image).tobytes() for image in again] != [each.tobytes() for each in pictures[: len(again)]]:
        raise InputError(f"{name}: shuffles, or changes images at random; expected the same batches each time")
    return dataset_source(_Pairs(pictures, labels), name=name, labels=labels)


def _batches(loader: DataLoader[Any]) -> Iterator[Any]:
    """What a loader gives; it draws a seed for its workers, and the program's own randomness is left as it was."""
    with torch.random.fork_rng(devices=[]):
        batches = iter(loader)
    yield from batches
