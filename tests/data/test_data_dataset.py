"""Torch datasets as sources."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, Subset, TensorDataset

from blemish.core.errors import InputError, Notice
from blemish.data.dataset_source import dataset_source
from blemish.data.folders import folder_source
from blemish.data.labels import fit_labels
from blemish.data.open import open_source

LEVELS = torch.arange(3 * 4 * 5, dtype=torch.uint8).reshape(3, 4, 5)


class Listed(Dataset[Any]):
    def __init__(self, *items: Any) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int) -> Any:
        return self.items[i]


@pytest.mark.parametrize(
    "image",
    [
        LEVELS,
        LEVELS.permute(1, 2, 0).numpy(),
        LEVELS / 255,
        (LEVELS / 255).double(),
        (LEVELS / 255).permute(1, 2, 0).numpy(),
        Image.fromarray(LEVELS.permute(1, 2, 0).numpy()),
        LEVELS.permute(1, 2, 0),  # only one order makes sense
        LEVELS.numpy(),
    ],
    ids=["uint8", "array", "float", "double", "float array", "picture", "HWC tensor", "CHW array"],
)
def test_kinds_of_images(image: Any) -> None:
    source = dataset_source(Listed((image, 3), (image, 1)))
    assert source.channels == 3
    assert source.labels.tolist() == [3, 1]
    assert source.ids.tolist() == [0, 1]
    np.testing.assert_array_equal(np.asarray(source.read(1)), LEVELS.permute(1, 2, 0))


@pytest.mark.parametrize("image", [LEVELS[:1], LEVELS[0], LEVELS[0].numpy(), Image.fromarray(LEVELS[0].numpy())])
def test_gray(image: Any) -> None:
    source = dataset_source(Listed((image, 0)))
    assert source.channels == 1
    np.testing.assert_array_equal(np.asarray(source.read(0)), LEVELS[0])
    assert dataset_source(Listed((image, 0)), channels=3).read(0).mode == "RGB"


@given(st.integers(0, 255))
def test_floats_of_levels_come_back(level: int) -> None:
    image = torch.full((1, 8, 8), level, dtype=torch.uint8).float().div(255)
    assert dataset_source(Listed((image, 0))).read(0).getpixel((0, 0)) == level


def test_colour_among_gray() -> None:
    source = dataset_source(Listed((LEVELS[:1], 0), (LEVELS, 0)))
    with pytest.raises(InputError, match="image 1 has colours"):
        source.read(1)


@pytest.mark.parametrize("label", [2, np.int64(2), torch.tensor(2), np.array(2), torch.tensor([2])])
def test_labels(label: Any) -> None:
    assert dataset_source(Listed((LEVELS, label))).labels.tolist() == [2]


class Targets(Listed):
    classes = ("cat", "dog")
    target_transform: Any = None

    @property
    def targets(self) -> Any:
        return torch.tensor([0, 1, 0])

    def __getitem__(self, i: int) -> Any:
        assert i == 0, "the labels are known without decoding"
        return super().__getitem__(i)


def test_targets_spare_a_pass() -> None:
    source = dataset_source(Targets(*[(LEVELS, 0)] * 3))
    assert source.labels.tolist() == [0, 1, 0]
    assert source.classes == ("cat", "dog")
    part = dataset_source(Subset(Targets(*[(LEVELS, 0)] * 3), [1, 0]))
    assert part.labels.tolist() == [1, 0]
    assert part.ids.tolist() == [1, 0]
    assert part.read(1).size == (5, 4)


def test_a_subset_that_repeats_images() -> None:
    class Kept(Listed):
        targets = (5, 6, 7)

    whole = Kept((LEVELS, 5), (LEVELS // 2, 6), (LEVELS // 3, 7))
    part = dataset_source(Subset(whole, [2, 0, -1]))
    assert part.names == ("0", "1", "2")
    assert part.ids.tolist() == [0, 1, 2]
    assert part.labels.tolist() == [7, 5, 7]
    pictures = [dataset_source(whole).read(i).tobytes() for i in range(3)]
    assert [part.read(i).tobytes() for i in range(3)] == [pictures[2], pictures[0], pictures[2]]


def test_targets_that_are_changed_on_their_way_are_not_believed() -> None:
    class Changed(Listed):
        targets = (0, 1)

        def target_transform(self, label: int) -> int:
            return label

    assert dataset_source(Changed((LEVELS, 7), (LEVELS, 8))).labels.tolist() == [7, 8]


def test_tensor_dataset() -> None:
    source = dataset_source(TensorDataset(torch.stack([LEVELS, LEVELS]), torch.tensor([4, 5])), name="mine")
    assert source.name == "mine"
    assert source.labels.tolist() == [4, 5]


def test_samples_have_the_ids_of_their_files(tmp_path: Path) -> None:
    """The fields of torchvision's ImageFolder."""
    for name in ("a/x.png", "b/y.png"):
        (tmp_path / name).parent.mkdir()
        Image.new("RGB", (8, 8)).save(tmp_path / name)

    class Folder(Listed):
        root = str(tmp_path)
        samples = ((str(tmp_path / "a" / "x.png"), 0), (str(tmp_path / "b" / "y.png"), 1))

    source = dataset_source(Folder((LEVELS, 0), (LEVELS, 1)))
    folders = folder_source(tmp_path)
    assert source.names == folders.names
    assert source.ids.tolist() == folders.ids.tolist()


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ((LEVELS / 255 * 2 - 1, 0), "values from -1 to .*leave normalising to the model"),
        ((LEVELS * torch.nan, 0), "values from nan"),
        ((LEVELS.long(), 0), "type int64; expected uint8"),
        ((torch.zeros(2, 8, 9), 0), r"shape \(2, 8, 9\)"),
        ((torch.zeros(8), 0), r"shape \(8,\)"),
        (("x.jpg", 0), "of type str; expected a picture"),
        (LEVELS, "item 0 is of type Tensor; expected \\(image, label\\)"),
        ({"image": LEVELS}, "item 0 is of type dict"),
        ((Image.new("F", (8, 8)), 0), "mode 'F'"),
        ((LEVELS, 1.5), "label 1.5; expected a whole number"),
        ((LEVELS, torch.tensor([1, 2])), "expected a whole number"),
        ((LEVELS, "cat"), "label 'cat'"),
        ((LEVELS, -1), "label -1; expected 0 or more"),
    ],
)
def test_refusals(item: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        dataset_source(Listed(item))


def test_no_map_style_dataset() -> None:
    class Endless(IterableDataset[Any]):
        def __iter__(self) -> Any:
            return iter(())

    with pytest.raises(InputError, match="expected a map-style dataset"):
        dataset_source(Endless())
    with pytest.raises(InputError, match="no images in it"):
        dataset_source(Listed())


def test_random_transforms_are_refused() -> None:
    generator = random.Random(0)

    class Changing(Listed):
        def __getitem__(self, i: int) -> Any:
            return LEVELS + generator.randrange(50), 0

    with pytest.raises(InputError, match="another one each time"):
        dataset_source(Changing(0))

    class Flipping(Listed):
        def __getitem__(self, i: int) -> Any:
            return LEVELS + (generator.random() < 0.5), 0

    for _ in range(10):  # one look more would miss every other flip
        with pytest.raises(InputError, match="another one each time"):
            dataset_source(Flipping(0))


class Folders(Listed):
    """The fields of torchvision's ImageFolder."""

    def __init__(self, *classes: str) -> None:
        super().__init__(*[(LEVELS, number) for number in range(len(classes))])
        self.classes, self.targets = list(classes), list(range(len(classes)))
        self.samples = [(f"{name}/x.png", number) for number, name in enumerate(classes)]
        self.class_to_idx = {name: number for number, name in enumerate(classes)}


def test_an_image_folder_follows_the_rule_of_class_folders() -> None:
    source = dataset_source(Folders("ant", "bee"))
    assert source.labelling == "order"
    assert fit_labels(source, 2, model="net").labels.tolist() == [0, 1]
    with pytest.raises(InputError, match=r"2 class folders \(ant, bee\), but model net has 1,000 outputs"):
        fit_labels(source, 1000, model="net")
    own = Folders("ant", "bee")
    own.class_to_idx = {"ant": 310, "bee": 309}  # as those who know ImageNet's indices set them
    own.targets = [310, 309]
    fitted = fit_labels(dataset_source(own), 1000, model="net")
    assert fitted.labels.tolist() == [310, 309]
    assert fitted.classes is not None
    assert fitted.classes[308:] == ("308", "bee", "ant")


def test_folders_that_are_numbers_in_the_order_of_texts() -> None:
    """torchvision sorts 10 before 2."""
    with pytest.warns(Notice, match="class 2 comes after 10, as texts are sorted, and has the label 2"):
        fit_labels(dataset_source(Folders("1", "10", "2")), 3, model="net")


def test_a_dictionary_is_no_dataset() -> None:
    with pytest.raises(InputError, match="a dictionary of train, test; expected one set of images"):
        open_source({"train": [], "test": []})  # type: ignore[arg-type]


def test_a_list_of_items_is_a_dataset() -> None:
    source = open_source([(LEVELS, 1), (LEVELS, 0)])
    assert source.labels.tolist() == [1, 0]
