"""The names of a model's outputs, held against those of the data's classes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from blemish.core.class_names import imagenet_names
from blemish.core.errors import InputError, Notice
from blemish.data.classes import imagenet_wnids
from blemish.data.model_classes import fit_class_names
from blemish.data.source import Source
from toy_runs import source

LETTERS = tuple("abcdefg")


def folders(*names: str) -> Source:
    labels = np.arange(20, dtype=np.int64) % len(names)
    return replace(source(20), classes=names, labels=labels, labelling="order")


class TestFolders:
    def test_are_labelled_by_name(self) -> None:
        """Folders come in the order of the alphabet, outputs in that of the training."""
        data = folders("Cat", "big_dog", "fox")
        with pytest.warns(Notice, match="its 3 class folders have names of outputs of model net"):
            fitted = fit_class_names(data, ["fox", "big dog", "eel", "cat"], model="net")
        assert fitted.labels[:3].tolist() == [3, 1, 0]
        assert (fitted.labelling, fitted.classes) == ("mapping", ("fox", "big dog", "eel", "cat"))

    def test_so_are_the_classes_that_a_table_names(self) -> None:
        data = replace(folders("cat", "dog"), labelling="names")
        with pytest.warns(Notice, match="its 2 classes have names of outputs of model net"):
            assert fit_class_names(data, ["eel", "dog", "cat"], model="net").labels[:2].tolist() == [2, 1]

    def test_names_that_were_given_follow_them(self) -> None:
        """They are of the folders, or of the outputs, as those that a zero-shot model was asked for."""
        outputs = ("fox", "dog", "cat")
        for given, expected in (
            (("Kitty", "Doggy", "Foxy"), ("Foxy", "Doggy", "Kitty")),
            (outputs, outputs),
            (None, outputs),
        ):
            with pytest.warns(Notice):
                fitted = fit_class_names(replace(folders("cat", "dog", "fox"), class_names=given), outputs, model="net")
            assert fitted.labels[:3].tolist() == [2, 1, 0]
            assert fitted.class_names == expected

    def test_names_of_other_folders_are_refused(self) -> None:
        data = replace(folders("cat", "dog", "eel"), class_names=("eel", "cat", "dog"))
        with pytest.raises(InputError, match=r"3 have other numbers \('eel' is 0 here and 2 there.*give class names"):
            fit_class_names(data, ["cat", "dog", "eel"], model="net")

    def test_in_the_same_order_stay_as_they_are(self) -> None:
        data = folders("cat", "dog")
        assert fit_class_names(data, ["cat", "dog"], model="net") is data

    def test_with_other_names_are_left_to_the_rule_for_folders(self) -> None:
        data = folders("0001", "0002")
        assert fit_class_names(data, ["cat", "dog"], model="net") is data

    def test_one_of_several_names_is_enough(self) -> None:
        data = folders("goldfish", "tench")
        with pytest.warns(Notice):
            fitted = fit_class_names(data, ["tench, Tinca tinca", "goldfish, Carassius auratus"], model="net")
        assert fitted.labels[:2].tolist() == [1, 0]

    def test_two_folders_for_one_output_are_no_names(self) -> None:
        data = folders("tench", "Tinca tinca")
        assert fit_class_names(data, ["tench, Tinca tinca", "goldfish"], model="net") is data


class TestGivenLabels:
    def test_another_order_is_refused(self) -> None:
        with pytest.raises(
            InputError, match=r"of 7 classes that both know by name, 6 have other numbers \('a' is 0 here"
        ):
            fit_class_names(source(), LETTERS[::-1], model="net")

    def test_few_names_that_moved_are_homonyms(self) -> None:
        data = source()
        assert fit_class_names(data, ("b", "a", "c", "d", "e", "f", "g"), model="net") is data

    def test_nothing_in_common(self) -> None:
        data = source()
        assert fit_class_names(data, [str(number) for number in range(7)], model="net") is data

    def test_data_without_names_takes_the_model_s(self) -> None:
        data = replace(source(), classes=None)
        assert fit_class_names(data, LETTERS, model="net").class_names == LETTERS
        assert fit_class_names(data, LETTERS[:3], model="net") is data  # of other classes, which are refused elsewhere

    def test_wordnet_ids_have_english_names(self) -> None:
        """Hugging Face's ImageNet models list synonyms in ImageNet's order; one that was sorted is another order."""
        data = replace(source(), classes=imagenet_wnids(), labelling="imagenet")
        names = [f"{name}, a thing" for name in imagenet_names()]
        assert fit_class_names(data, names, model="net") is data
        with pytest.raises(InputError, match="labels that are not the outputs of model net"):
            fit_class_names(data, sorted(names), model="net")

    def test_sets_with_groups_of_classes_are_left_alone(self) -> None:
        data = replace(source(), groups=tuple((number,) for number in range(7)))
        assert fit_class_names(data, LETTERS[::-1], model="net") is data
