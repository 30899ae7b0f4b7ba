"""torchvision's own datasets as they are."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

from blemish.core.errors import InputError, Notice
from blemish.data.cache import load
from blemish.data.labels import fit_labels
from blemish.data.open import open_source
from foreign import foreign

pytestmark = pytest.mark.slow
datasets = foreign("torchvision.datasets")
v2 = foreign("torchvision.transforms.v2")


def folders(root: Path, *names: str) -> Path:
    for number, name in enumerate(names):
        for file in range(2):
            (root / name).mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (12, 10), (20 * number, file, 9)).save(root / name / f"{file}.png")
    return root


def cifar(root: Path) -> Path:
    """A folder as CIFAR-10 unpacks, with two images in each batch."""
    base = root / "cifar-10-batches-py"
    base.mkdir(parents=True)
    for name in ("data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"):
        data = np.arange(2 * 3072, dtype=np.int64).reshape(2, 3072).astype(np.uint8)
        (base / name).write_bytes(pickle.dumps({"data": data, "labels": [3, 8]}))
    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    (base / "batches.meta").write_bytes(pickle.dumps({"label_names": names}))
    return root


def test_image_folder_is_the_folder(tmp_path: Path) -> None:
    root = folders(tmp_path / "val", "ant", "bee")
    assert load(open_source(datasets.ImageFolder(root))).fingerprint == load(open_source(root)).fingerprint
    assert open_source(datasets.ImageFolder(root)).classes == ("ant", "bee")


def test_image_folder_of_wordnet_ids(tmp_path: Path) -> None:
    source = open_source(datasets.ImageFolder(folders(tmp_path / "val", "n01440764", "n02102040")))
    with pytest.warns(Notice, match="named by WordNet ids"):
        assert fit_labels(source, 1000, model="net").labels.tolist() == [0, 0, 217, 217]


def test_transforms_that_only_change_the_size(tmp_path: Path) -> None:
    root = folders(tmp_path / "val", "ant", "bee")
    steps = v2.Compose([v2.CenterCrop(8), v2.PILToTensor()])
    source = open_source(DataLoader(datasets.ImageFolder(root, transform=steps), batch_size=3))
    np.testing.assert_array_equal(np.asarray(source.read(2)), np.full((8, 8, 3), (20, 0, 9)))


def test_transforms_that_normalise_are_refused(tmp_path: Path) -> None:
    root = folders(tmp_path / "val", "ant", "bee")
    steps = v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5], [0.25])])
    dataset: Any = datasets.ImageFolder(root, transform=steps)
    with pytest.raises(InputError, match=r"ImageFolder: image 0 has values from -2 .*leave normalising to the model"):
        open_source(dataset)
    with pytest.raises(InputError, match="DataLoader over ImageFolder: image 0 has values from -2"):
        open_source(DataLoader(dataset, batch_size=2))


def test_cifar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.CIFAR10, "_check_integrity", lambda _: True)
    monkeypatch.setattr("torchvision.datasets.cifar.check_integrity", lambda *_: True)
    source = open_source(datasets.CIFAR10(cifar(tmp_path), train=False))
    assert source.labels.tolist() == [3, 8]
    assert source.classes is not None
    assert source.classes[3] == "cat"
    # Planes of 1,024 values, one after the other: the first pixel is value 0 of each.
    assert np.asarray(source.read(0))[0, 0].tolist() == [0, 1024 % 256, 2048 % 256]
    assert np.asarray(source.read(0))[0, 1].tolist() == [1, 1, 1]


def test_made_up_images() -> None:
    dataset = datasets.FakeData(size=6, image_size=(3, 16, 16), num_classes=4)
    source = open_source(dataset)
    assert source.labels.tolist() == [int(dataset[i][1]) for i in range(6)]
    np.testing.assert_array_equal(np.asarray(source.read(5)), np.asarray(dataset[5][0]))


def test_gray_images(tmp_path: Path) -> None:
    dataset = datasets.FakeData(size=2, image_size=(1, 16, 16), num_classes=2, transform=v2.PILToTensor())
    assert open_source(dataset).channels == 1
