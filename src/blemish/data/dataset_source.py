"""Any torch dataset of labelled images as a source."""

from __future__ import annotations

import operator
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset, Subset

from blemish.core.errors import InputError, about
from blemish.core.types import check_dense
from blemish.data.folders import mapped_classes
from blemish.data.pictures import picture_id, rgb_or_gray
from blemish.data.source import Source

# What items that are dictionaries, and columns of tables, call images and labels.
IMAGE_COLUMNS = ("image", "img", "picture", "pixel_values")
LABEL_COLUMNS = ("label", "labels", "class_index", "target", "targets", "cls", "class", "y")

# How often an image is read again, to see whether a transform changes it at random.
_TRIED = 8


def dataset_source(
    dataset: Dataset[Any], *, name: str | None = None, labels: Sequence[int] | None = None, channels: int | None = None
) -> Source:
    """A map-style dataset of ``(image, label)``: pictures, uint8 tensors or arrays, or floats between 0 and 1.

    Tensors are (C, H, W), arrays (H, W, C); floats are rounded to levels. The images must not be normalised or changed
    at random: that is the model's, or the benchmark's. Labels are taken from ``targets`` where the dataset has them,
    else from one pass over it. Ids are positions; or, with ``samples`` as in torchvision's ``ImageFolder``, those of
    the files, unless a subset repeats some. ``channels`` is that of the first image unless given. A dataset is asked
    for one image at a time: few of them can be used by several threads.
    """
    called = name or type(dataset).__name__
    if type(dataset) is Subset and labels is None and _targets(dataset.dataset) is not None:
        return _part(dataset_source(dataset.dataset, name=called, channels=channels), dataset.indices)
    count = _length(called, dataset)
    one_at_a_time = threading.Lock()

    def item(i: int) -> tuple[Any, Any]:
        return image_and_label(f"{called}: item {i}", dataset[i])

    def picture(i: int) -> Image.Image:
        with one_at_a_time:
            image, _ = item(i)
        return as_picture(f"{called}: image {i}", image)

    gray = picture(0).mode == "L" if channels is None else channels == 1

    def read(i: int) -> Image.Image:
        image = picture(i)
        if gray and image.mode != "L":
            raise InputError(f"{called}: image {i} has colours, but the first one is gray; state channels=3")
        return image if gray else image.convert("RGB")

    check_constant(called, read)
    if labels is None:
        labels = _targets(dataset) or [item(i)[1] for i in range(count)]
    names = _names(dataset, count)
    return Source(
        name=called,
        names=names or tuple(map(str, range(count))),
        ids=np.array([picture_id(name) for name in names] if names else range(count), dtype=np.int64),
        labels=np.array([as_label(called, i, label) for i, label in enumerate(labels)], dtype=np.int64),
        read=read,
        classes=_classes(dataset),
        channels=1 if gray else 3,
        labelling="order" if _numbers_folders(dataset) else "given",
    )


def check_constant(called: str, read: Callable[[int], Image.Image]) -> None:
    """Refuse images that are other ones when they are read again; flips, say, change every other time."""
    first = read(0).tobytes()
    if any(read(0).tobytes() != first for _ in range(_TRIED)):
        raise InputError(f"{called}: image 0 is another one each time; expected a dataset without random transforms")


def _classes(dataset: Any) -> tuple[str, ...] | None:
    """The names of the classes by label, where a dataset tells them."""
    classes, places = getattr(dataset, "classes", None), getattr(dataset, "class_to_idx", None)
    # What a transform makes of labels is not what the names are of.
    if not isinstance(classes, (list, tuple)) or getattr(dataset, "target_transform", None) is not None:
        return None
    if isinstance(places, dict) and max(places.values(), default=0) >= len(classes):  # of folders with own indices
        return mapped_classes(places, None)
    return tuple(map(_class_name, classes))


def _numbers_folders(dataset: Any) -> bool:
    """Whether labels are the places of class folders in their order, as those of torchvision's ``ImageFolder``."""
    classes, places = getattr(dataset, "classes", None), getattr(dataset, "class_to_idx", None)
    if not isinstance(classes, list) or not isinstance(places, dict) or not hasattr(dataset, "samples"):
        return False
    return places == {name: number for number, name in enumerate(classes)} and _targets(dataset) is not None


def _class_name(entry: Any) -> str:
    """torchvision's ImageNet has all synonyms of a class."""
    return ", ".join(map(str, entry)) if isinstance(entry, tuple) else str(entry)


def _part(whole: Source, indices: Sequence[int]) -> Source:
    rows = np.arange(len(whole))[np.asarray(indices, dtype=np.int64)]
    # Images that occur again need names and ids of their own.
    return whole.take(rows) if len(np.unique(rows)) == len(rows) else by_position(whole, rows)


def by_position(whole: Source, rows: NDArray[np.int64]) -> Source:
    """The images at these positions, with what they are called, and their ids, by their new ones."""
    stamp = whole.stamp
    return replace(
        whole,
        names=tuple(map(str, range(len(rows)))),
        ids=np.arange(len(rows)),
        labels=whole.labels[rows],
        read=lambda i: whole.read(int(rows[i])),
        stamp=None if stamp is None else lambda i: stamp(int(rows[i])),
    )


def _length(name: str, dataset: Dataset[Any]) -> int:
    try:
        count = len(dataset)  # type: ignore[arg-type]  # what has no length is refused here
    except (TypeError, NotImplementedError) as error:
        raise InputError(f"{name}: no length; expected a map-style dataset, with len() and dataset[i]") from error
    if count == 0:
        raise InputError(f"{name}: no images in it")
    return count


def _targets(dataset: Any) -> Sequence[Any] | None:
    """The labels that a dataset keeps, unless it changes them on their way out."""
    targets = getattr(dataset, "targets", None)
    if getattr(dataset, "target_transform", None) is not None:
        return None
    if isinstance(targets, (Tensor, np.ndarray)):
        targets = targets.tolist()
    return targets if isinstance(targets, (list, tuple)) and len(targets) == len(dataset) else None


def _names(dataset: Any, count: int) -> tuple[str, ...] | None:
    """The names of the files below the dataset's folder, where it tells them and no two are the same."""
    samples = getattr(dataset, "samples", None)
    root = getattr(dataset, "root", None)
    if not isinstance(samples, (list, tuple)) or root is None or len(samples) != count:
        return None
    try:
        names = tuple(Path(entry[0]).relative_to(Path(root)).as_posix() for entry in samples)
    except (TypeError, ValueError, IndexError, KeyError):
        return None
    return names if max(Counter(names).values()) == 1 else None


def image_and_label(where: str, item: Any) -> tuple[Any, Any]:
    """The two things that an item, or a batch, of a dataset has to hold: the first two, or those with the usual names.

    >>> image_and_label("item 3", {"id": 7, "img": "x", "label": 5})
    ('x', 5)
    """
    if isinstance(item, Mapping):
        image, label = (next((n for n in names if n in item), None) for names in (IMAGE_COLUMNS, LABEL_COLUMNS))
        if image is not None and label is not None:
            return item[image], item[label]
    if not isinstance(item, (tuple, list)) or len(item) < 2:
        raise InputError(f"{where} is of type {type(item).__name__}; expected (image, label)")
    return item[0], item[1]


def as_label(name: str, i: int, label: Any) -> int:
    """What a dataset gives as the label of an image, as a number."""
    try:
        plain: Any = label.item() if isinstance(label, (Tensor, np.ndarray)) else label
        return operator.index(plain)
    except (TypeError, ValueError, RuntimeError) as error:
        hint = "; number the classes, or give a folder, Parquet or a Hugging Face dataset" * isinstance(label, str)
        raise InputError(f"{name}: image {i} has the label {label!r}; expected a whole number{hint}") from error


def as_picture(name: str, image: Any) -> Image.Image:
    """What a dataset gives as an image, as a picture of mode RGB or L; ``name`` is for messages."""
    if isinstance(image, Image.Image):
        with about(name):
            return rgb_or_gray(image)
    if isinstance(image, Tensor):
        check_dense(image, f"{name} comes")
        values = image.detach().cpu()
        return _from_array(
            name, (values.float() if values.is_floating_point() else values).numpy(), channels_first=True
        )
    if isinstance(image, np.ndarray):
        return _from_array(name, image, channels_first=False)
    raise InputError(f"{name} is of type {type(image).__name__}; expected a picture, a tensor or an array")


def _from_array(name: str, values: NDArray[Any], *, channels_first: bool) -> Image.Image:
    shape = values.shape
    first, last = (values.ndim == 3 and shape[axis] in (1, 3) for axis in (0, -1))
    if first and (channels_first or not last):  # the unusual order is taken where only it makes sense
        values = values.transpose(1, 2, 0)
    elif values.ndim != 2 and not last:
        raise InputError(f"{name} has the shape {shape}; expected (C, H, W) or (H, W, C) of 1 or 3 channels")
    if values.dtype != np.uint8:
        if not np.issubdtype(values.dtype, np.floating):
            raise InputError(f"{name} is of type {values.dtype}; expected uint8, or floats between 0 and 1")
        low, high = float(values.min()), float(values.max())
        if not 0 <= low <= high <= 1:  # not a number fails, too
            raise InputError(
                f"{name} has values from {low:.3g} to {high:.3g}; expected 0 to 1: leave normalising to the model"
            )
        values = np.rint(values.astype(np.float64) * 255).astype(np.uint8)
    gray = values.ndim == 2 or values.shape[2] == 1
    return Image.fromarray(np.ascontiguousarray(values.reshape(values.shape[:2]) if gray else values))
