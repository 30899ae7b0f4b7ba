"""Class names: those that users give, ImageNet's own, and folders that are called by them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from blemish.core.class_names import imagenet_names
from blemish.core.errors import InputError, Notice
from blemish.data.classes import class_titles, imagenet_wnids
from blemish.data.folders import folder_source
from blemish.data.labels import fit_labels, labels_entry
from blemish.data.open import open_source
from blemish.data.source import Source
from blemish.data.subsets import only_classes


def tree(root: Path, *folders: str) -> Path:
    for folder in folders:
        (root / folder).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(root / folder / "x.png")
    return root


def labels_of(source: Source) -> dict[str, int]:
    return {name.partition("/")[0]: int(label) for name, label in zip(source.names, source.labels, strict=True)}


def test_titles_tell_classes_of_the_same_name_apart() -> None:
    titles = class_titles(imagenet_wnids())
    assert len(set(titles)) == 1000
    assert (titles[0], titles[657], titles[744]) == ("tench", "missile (657)", "missile (744)")
    two = [imagenet_wnids()[index] for index in (744, 657)]
    assert class_titles(two) == ("missile (744)", "missile (657)")
    assert class_titles(imagenet_names()) == titles
    assert class_titles(["cat", "dog", "cat"]) == ("cat (0)", "dog", "cat (2)")


def test_folders_with_imagenets_names(tmp_path: Path) -> None:
    """The indices of the English names by hand: great white shark 2, toilet paper 999."""
    root = tree(tmp_path / "val", "toilet paper", "Great_White_Shark", "n01440764")
    source = folder_source(root, mapping="imagenet")
    assert labels_of(source) == {"toilet paper": 999, "Great_White_Shark": 2, "n01440764": 0}
    assert source.classes == imagenet_wnids()
    assert labels_entry(source) == "imagenet"
    with pytest.raises(InputError, match=r"3 class folders .* but model net has 1,000 outputs"):
        fit_labels(folder_source(root), 1000, model="net")  # nobody said that these are ImageNet's


def test_a_name_of_two_classes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'missile': the name of ImageNet's classes 657 and 744; expected WordNet ids"):
        folder_source(tree(tmp_path, "missile"), mapping="imagenet")


def test_a_name_that_imagenet_has_not(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"class folder 'teapots' is not in the mapping .*; did you mean teapot"):
        folder_source(tree(tmp_path, "tench", "teapots"), mapping="imagenet")


def test_names_that_are_given(tmp_path: Path) -> None:
    root = tree(tmp_path, "a", "b")
    source = open_source(root, class_names=["apple", "banana"])
    assert source.class_names == ("apple", "banana")
    assert fit_labels(source, 2, model="net").class_names == ("apple", "banana")
    assert source.take([1]).class_names == ("apple", "banana")
    assert only_classes(source, ["b"], renumber=True).class_names == ("banana",)
    assert only_classes(source, ["b"], renumber=False).class_names == ("apple", "banana")


@pytest.mark.parametrize("names", [("one",), ("one", "two", "three")])
def test_another_number_of_names_is_refused(tmp_path: Path, names: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="class names"):
        fit_labels(open_source(tree(tmp_path, "a", "b"), class_names=names), 2, model="net")


def test_names_of_some_of_imagenets_classes(tmp_path: Path) -> None:
    root = tree(tmp_path, "n01440764", "n02102040")
    with pytest.warns(Notice):
        some = fit_labels(open_source(root, class_names=["fish", "dog"]), 1000, model="net")
    assert some.class_names is not None
    assert (some.class_names[0], some.class_names[217], some.class_names[1]) == ("fish", "dog", "n01443537")
    with pytest.warns(Notice):
        assert fit_labels(open_source(root, class_names="imagenet"), 1000, model="net").class_names == imagenet_names()
    with pytest.warns(Notice), pytest.raises(InputError, match="3 class names for 2 classes of ImageNet's 1,000"):
        fit_labels(open_source(root, class_names=["fish", "dog", "cat"]), 1000, model="net")


def test_names_decide_nothing(tmp_path: Path) -> None:
    root = tree(tmp_path, "a", "b")
    plain, named = open_source(root), open_source(root, class_names=["x", "y"])
    assert np.array_equal(plain.labels, named.labels)
    assert labels_entry(plain) == labels_entry(named)
