"""Which output of a model a label means: class folders that nobody mapped, and labels that no output stands for."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import Dataset, Subset

from blemish.core.errors import InputError, Notice
from blemish.data.classes import imagenet_wnids, natural_groups
from blemish.data.dataset_source import dataset_source
from blemish.data.folders import folder_source
from blemish.data.labels import class_indices, fit_labels, labels_entry
from blemish.data.open import open_source, open_stored
from blemish.data.source import Source

SOME = ("n02102040", "n01440764", "n03888257")
INDICES = {"n01440764": 0, "n02102040": 217, "n03888257": 701}


def tree(root: Path, *folders: str, files: int = 2) -> Path:
    for number, folder in enumerate(folders):
        for file in range(files):
            path = root / folder / f"{file}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (8, 8), (number, file, 0)).save(path)
    return root


def by_folder(source: Source) -> dict[str, int]:
    return {name.partition("/")[0]: int(label) for name, label in zip(source.names, source.labels, strict=True)}


class TestClassFolders:
    def test_wordnet_ids_and_a_thousand_outputs_are_imagenets(self, tmp_path: Path) -> None:
        source = folder_source(tree(tmp_path / "val", *SOME))
        with pytest.warns(Notice, match="val: 3 class folders named by WordNet ids, and model net has 1,000 outputs"):
            fitted = fit_labels(source, 1000, model="net")
        assert by_folder(fitted) == INDICES
        assert fitted.classes == imagenet_wnids()
        assert labels_entry(fitted) == "imagenet"

    def test_the_same_as_the_mapping_that_one_can_give(self, tmp_path: Path) -> None:
        root = tree(tmp_path, *SOME)
        with pytest.warns(Notice):
            fitted = fit_labels(folder_source(root), 1000, model="net")
        given = fit_labels(folder_source(root, mapping="imagenet"), 1000, model="net")
        assert fitted.labels.tolist() == given.labels.tolist()
        assert labels_entry(fitted) == labels_entry(given)
        assert fitted.classes == given.classes

    def test_all_of_imagenets_classes_need_no_word(self, tmp_path: Path) -> None:
        for wnid in imagenet_wnids():
            (tmp_path / wnid).mkdir()
        source = folder_source(tree(tmp_path, imagenet_wnids()[999]))
        fitted = fit_labels(source, 1000, model="net")
        assert set(fitted.labels.tolist()) == {999}
        assert labels_entry(fitted) == "imagenet"

    def test_as_many_outputs_as_folders_are_numbered_in_order(self, tmp_path: Path) -> None:
        fitted = fit_labels(folder_source(tree(tmp_path, *SOME)), 3, model="net")
        assert by_folder(fitted) == {"n01440764": 0, "n02102040": 1, "n03888257": 2}
        assert labels_entry(fitted) == "class folders in order"
        (tmp_path / "empty").mkdir()  # an empty folder is a class, too
        assert by_folder(fit_labels(folder_source(tmp_path), 4, model="net"))["n01440764"] == 1

    @pytest.mark.parametrize(
        ("folders", "outputs", "said"),
        [
            (SOME, 10, "3 class folders .n01440764, n02102040, n03888257., but model net has 10 outputs"),
            (("cat", "dog"), 1000, "2 class folders .cat, dog., but model net has 1,000 outputs"),
            (("0", "1", "2"), 2, "3 class folders .0, 1, 2., but model net has 2 outputs"),
            (SOME, 1001, "1,001 outputs.*background, drop it .--skip-classes 1"),
            (("no", "yes"), 1, "1 output.*single output has no score for each class"),
        ],
    )
    def test_everything_else_is_refused_with_the_ways_out(
        self, tmp_path: Path, folders: tuple[str, ...], outputs: int, said: str
    ) -> None:
        with pytest.raises(InputError, match=f"(?s){said}") as caught:
            fit_labels(folder_source(tree(tmp_path, *folders)), outputs, model="net")
        for way in ("--mapping", "open_source(…, mapping=…)", ".json", "a folder per line", "imagenet"):
            assert way in str(caught.value)

    def test_wordnet_ids_that_imagenet_does_not_have_are_named(self, tmp_path: Path) -> None:
        source = folder_source(tree(tmp_path, *SOME, "n00007846"))
        with pytest.raises(InputError, match=r"1 of 4 class folders are WordNet ids that are not .*\(n00007846\)"):
            fit_labels(source, 1000, model="net")

    def test_a_mapping_goes_before_the_rule(self, tmp_path: Path) -> None:
        own = {"n01440764": 9, "n02102040": 8, "n03888257": 7}
        fitted = fit_labels(folder_source(tree(tmp_path, *SOME), mapping=own), 1000, model="net")
        assert by_folder(fitted) == own
        assert labels_entry(fitted).startswith("mapping ")
        with pytest.raises(InputError, match=r"image n01440764/0.png has the label 9, but model net has 5 outputs"):
            fit_labels(folder_source(tmp_path, mapping=own), 5, model="net")

    def test_a_mapping_that_says_what_the_rule_says_is_the_same_protocol(self, tmp_path: Path) -> None:
        source = folder_source(tree(tmp_path, "cat", "dog"), mapping={"cat": 0, "dog": 1})
        assert labels_entry(source) == labels_entry(folder_source(tmp_path))
        other = folder_source(tmp_path, mapping={"cat": 1, "dog": 0})
        assert labels_entry(source) != labels_entry(other)

    def test_indices_alone(self) -> None:
        with pytest.warns(Notice):
            assert class_indices(sorted(SOME), 1000, source="val", model="net") == INDICES


class ImageFolder(Dataset[tuple[torch.Tensor, int]]):
    """What torchvision's ImageFolder tells of itself."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.classes = sorted(path.name for path in root.iterdir())
        files = sorted(root.glob("*/*.png"))
        self.samples = [(str(path), self.classes.index(path.parent.name)) for path in files]
        self.targets = [label for _, label in self.samples]

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        path, label = self.samples[i]
        change = getattr(self, "target_transform", None)
        pixels = torch.from_numpy(np.array(Image.open(path))).permute(2, 0, 1)
        return pixels, label if change is None else change(label)


class TestGivenLabels:
    def test_a_dataset_of_wordnet_folders(self, tmp_path: Path) -> None:
        dataset = ImageFolder(tree(tmp_path, *SOME))
        for source in (dataset_source(dataset), dataset_source(Subset(dataset, range(6)))):
            with pytest.warns(Notice, match="labels are ImageNet's class indices"):
                assert by_folder(fit_labels(source, 1000, model="net")) == INDICES
            assert fit_labels(source, 3, model="net").labels.tolist() == source.labels.tolist()
            # Unlike folders, a dataset has given its labels: they only have to fit.
            assert fit_labels(source, 12, model="net").labels.tolist() == source.labels.tolist()

    def test_labels_that_a_dataset_changes_itself_are_left_alone(self, tmp_path: Path) -> None:
        dataset = ImageFolder(tree(tmp_path, *SOME))
        dataset.target_transform = [0, 217, 701].__getitem__
        source = dataset_source(dataset)
        assert by_folder(fit_labels(source, 1000, model="net")) == INDICES
        assert labels_entry(source) == "as given"

    def test_an_archive_that_names_its_classes(self, tmp_path: Path) -> None:
        images = np.zeros((3, 8, 8, 3), dtype=np.uint8)
        np.savez(tmp_path / "x.npz", images=images, labels=[2, 0, 1], classes=sorted(SOME))
        with pytest.warns(Notice):
            fitted = fit_labels(open_source(tmp_path / "x.npz"), 1000, model="net")
        assert fitted.labels.tolist() == [701, 0, 217]

    def test_a_label_that_no_output_stands_for_names_the_image(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "x.npz", images=np.zeros((4, 8, 8, 3), dtype=np.uint8), labels=[0, 1, 9, 2])
        source = open_source(tmp_path / "x.npz")
        with pytest.raises(InputError, match=r"x: image 2 has the label 9, but model net has 9 outputs; .*below 9"):
            fit_labels(source, 9, model="net")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert fit_labels(source, 10, model="net") is source

    def test_a_table_of_labels(self, tmp_path: Path) -> None:
        tree(tmp_path, "images")
        (tmp_path / "labels.csv").write_text("file,class_index\nimages/0.png,3\nimages/1.png,5\n")
        with pytest.raises(InputError, match=r"image images/1\.png has the label 5, but model net has 1 output"):
            fit_labels(open_source(tmp_path), 1, model="net")

    def test_groups_need_the_outputs_that_they_name(self) -> None:
        groups = natural_groups("imagenet-r")
        assert groups is not None
        source = Source("r", ("a",), np.array([0]), np.array([3]), lambda _: Image.new("RGB", (8, 8)), groups=groups)
        assert fit_labels(source, 1000, model="net") is source
        with pytest.raises(InputError, match=r"r: needs class \d+ of a model, but net has 100 outputs"):
            fit_labels(source, 100, model="net")


def test_stored_copies_have_the_labels_of_their_originals(tmp_path: Path) -> None:
    """Whatever the rule made of them, and although the copies lack a class."""
    tree(tmp_path / "stored" / "fog" / "1", *SOME[1:])
    with pytest.warns(Notice):
        clean = fit_labels(folder_source(tree(tmp_path / "val", *SOME)), 1000, model="net")
    part = clean.take([i for i, name in enumerate(clean.names) if not name.startswith(SOME[0])])
    found = open_stored(tmp_path / "stored").source("fog@1", like=part)
    assert by_folder(found) == {wnid: INDICES[wnid] for wnid in SOME[1:]}
    mapped = open_stored(tmp_path / "stored", mapping={SOME[1]: 5, SOME[2]: 6})
    with pytest.raises(InputError, match="were the classes mapped alike"):
        mapped.source("fog@1", like=part)
