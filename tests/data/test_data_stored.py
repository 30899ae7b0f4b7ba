"""Corrupted sets on disk, published ones and our own, beside the clean images they were made from."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from blemish.core.errors import InputError, UnknownNameError
from blemish.data.array_source import array_source
from blemish.data.folders import folder_source
from blemish.data.stored import is_stored, open_stored, paired
from blemish.export.arrays import corrupt_arrays
from blemish.export.recipe import make_recipe
from blemish.export.trees import corrupt_tree

NAMES = ("n1/a.JPEG", "n1/b.JPEG", "n2/a.JPEG")


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def tree(root: Path, *names: str) -> Path:
    for number, name in enumerate(names):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(noise(40, 40, 3) // (number + 1)).save(root / name, "PNG")
    return root


class TestTrees:
    @pytest.mark.parametrize("families", [False, True])
    def test_published_tree(self, tmp_path: Path, families: bool) -> None:
        clean = folder_source(tree(tmp_path / "val", *NAMES))
        for family, corruption in (("weather", "fog"), ("blur", "defocus_blur")):
            for severity in (1, 5):
                place = tmp_path / "c" / family / corruption if families else tmp_path / "c" / corruption
                tree(place / str(severity), *NAMES)
        stored = open_stored(tmp_path / "c")
        assert stored.conditions() == ["defocus_blur@1", "defocus_blur@5", "fog@1", "fog@5"]
        assert (stored.name, stored.kind) == ("c", "tree")
        source = stored.source("fog@5")
        assert source.names == clean.names
        assert source.ids.tolist() == clean.ids.tolist()
        assert source.labels.tolist() == clean.labels.tolist()
        assert source.name == "c fog@5"
        with pytest.raises(UnknownNameError, match="no images of 'fog@3'; there are defocus_blur@1"):
            stored.source("fog@3")

    def test_a_missing_class_does_not_move_the_others(self, tmp_path: Path) -> None:
        tree(tmp_path / "fog" / "1", "a/x.png", "b/x.png", "c/x.png")
        tree(tmp_path / "fog" / "2", "a/x.png", "c/x.png")
        assert open_stored(tmp_path).source("fog@2").labels.tolist() == [0, 2]

    def test_classes_that_are_numbers(self, tmp_path: Path) -> None:
        tree(tmp_path / "fog" / "1", "0/x.png", "2/x.png", "10/x.png")
        source = open_stored(tmp_path).source("fog@1")
        assert source.classes == ("0", "2", "10")

    def test_mapping(self, tmp_path: Path) -> None:
        tree(tmp_path / "fog" / "1", "n01443537/x.png")
        assert open_stored(tmp_path, mapping="imagenet").source("fog@1").labels.tolist() == [1]

    def test_the_same_condition_twice(self, tmp_path: Path) -> None:
        for family in ("a", "b"):
            tree(tmp_path / family / "fog" / "1", "n1/x.png")
        with pytest.raises(InputError, match="both hold fog of severity 1"):
            open_stored(tmp_path)

    def test_our_own_tree_pairs_up_although_suffixes_differ(self, tmp_path: Path) -> None:
        clean = folder_source(tree(tmp_path / "val", *NAMES))
        recipe = make_recipe(["fog", "noc:border"], [2, 3.5], file_format="png")
        corrupt_tree(tmp_path / "val", tmp_path / "c", recipe)
        stored = open_stored(tmp_path / "c")
        assert stored.conditions() == ["fog@2", "fog@3.5", "noc:border@2", "noc:border@3.5"]
        assert stored.source("fog@2").names != clean.names
        some = clean.take([2, 0])
        found = stored.source("fog@2", like=some)
        assert found.names == some.names
        assert found.ids.tolist() == some.ids.tolist()
        assert found.read(0).tobytes() == Image.open(tmp_path / "c/fog/2/n2/a.png").tobytes()

    def test_what_does_not_pair_up(self, tmp_path: Path) -> None:
        clean = folder_source(tree(tmp_path / "val", "a/x.png", "b/x.png", "b/y.png"))
        less = folder_source(tree(tmp_path / "less", "a/x.png", "b/x.png"))
        with pytest.raises(InputError, match=r"less: 1 of 3 images are not in it, the first is b/y\.png"):
            paired(less, clean)
        other = folder_source(tmp_path / "val", mapping=["b", "a"])
        with pytest.raises(InputError, match=r"a/x\.png has the label 1, but 0 in val, as 3 in all"):
            paired(other, clean)

    def test_names_that_differ_in_the_suffix_alone(self, tmp_path: Path) -> None:
        both = folder_source(tree(tmp_path / "val", "a/x.jpg", "a/x.png", "a/y.jpg"))
        copy = folder_source(tree(tmp_path / "copy", "a/x.jpg", "a/x.png", "a/y.png"))
        for like in (both, both.take([2, 1, 0]), both.take([0])):
            found = paired(copy, like)
            assert found.names == like.names
            for i, name in enumerate(like.names):
                stored = tmp_path / "copy" / name.replace("y.jpg", "y.png")
                assert found.read(i).tobytes() == Image.open(stored).tobytes()
        other = folder_source(tree(tmp_path / "other", "a/x.bmp", "a/y.jpg"))
        with pytest.raises(InputError, match=r"no a/x\.jpg in it, and a/x .* ambiguous \(1 in it, 2 in val\)"):
            paired(other, both)
        with pytest.raises(InputError, match=r"no a/x\.bmp in it, and a/x .* ambiguous \(2 in it, 1 in other\)"):
            paired(both, other)


class TestArrays:
    def published(self, root: Path, *, labels: int = 20) -> np.ndarray:
        images = noise(20, 8, 8, 3)
        np.save(root / "fog.npy", images)
        np.save(root / "snow.npy", images[::-1])
        np.save(root / "labels.npy", np.tile([3, 1, 2, 0], 5)[:labels])
        return images

    def test_blocks(self, tmp_path: Path) -> None:
        images = self.published(tmp_path)
        stored = open_stored(tmp_path)
        assert stored.kind == "arrays"
        assert stored.conditions() == [f"{name}@{severity}" for name in ("fog", "snow") for severity in range(1, 6)]
        source = stored.source("fog@3")
        assert source.names == ("0", "1", "2", "3")
        assert source.ids.tolist() == [0, 1, 2, 3]
        assert source.labels.tolist() == [3, 1, 2, 0]
        np.testing.assert_array_equal(np.asarray(source.read(1)), images[9])
        other = stored.source("fog@4")
        assert source.stamp is not None
        assert other.stamp is not None
        assert source.stamp(0) != other.stamp(0)  # or a cache would mistake them

    def test_labels_of_one_block(self, tmp_path: Path) -> None:
        self.published(tmp_path, labels=4)
        assert open_stored(tmp_path).source("snow@5").labels.tolist() == [3, 1, 2, 0]

    def test_counts_that_do_not_fit(self, tmp_path: Path) -> None:
        self.published(tmp_path, labels=7)
        with pytest.raises(InputError, match=r"labels\.npy: 7 labels; expected 4, or 20, for fog\.npy"):
            open_stored(tmp_path).source("fog@1")
        np.save(tmp_path / "fog.npy", noise(19, 8, 8, 3))
        with pytest.raises(InputError, match=r"fog\.npy: 19 images; expected a multiple of 5"):
            open_stored(tmp_path).source("fog@1")

    def test_our_own_arrays(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "x.npz", images=noise(4, 32, 32, 3), labels=[0, 1, 2, 3])
        corrupt_arrays(tmp_path / "x.npz", tmp_path / "c", make_recipe(["fog"], [4, 1]))
        stored = open_stored(tmp_path / "c")
        assert stored.conditions() == ["fog@1", "fog@4"]
        clean = array_source(tmp_path / "x.npz")
        source = stored.source("fog@1", like=clean.take([3, 1]))
        written = np.load(tmp_path / "c" / "fog.npy")
        np.testing.assert_array_equal(np.asarray(source.read(0)), written[4 + 3])
        assert source.labels.tolist() == [3, 1]

    def test_a_damaged_manifest(self, tmp_path: Path) -> None:
        self.published(tmp_path)
        for content in ("{", "[]", '{"protocol": {"severities": ["x"]}}', '{"protocol": {"severities": [1, 1]}}'):
            (tmp_path / "blemish.json").write_text(content)
            with pytest.raises(InputError, match=r"blemish\.json"):
                open_stored(tmp_path)
        (tmp_path / "blemish.json").write_text(json.dumps({"protocol": {"severities": [1, 2]}}))
        assert len(open_stored(tmp_path).source("fog@1")) == 10


def test_what_is_no_corrupted_set(tmp_path: Path) -> None:
    tree(tmp_path / "val", *NAMES)
    assert not is_stored(tmp_path / "val")
    with pytest.raises(InputError, match="val: no corrupted set; looked for <corruption>/<severity>/<class>/<file>"):
        open_stored(tmp_path / "val")
    with pytest.raises(InputError, match="no such folder"):
        open_stored(tmp_path / "gone")
    (tmp_path / "empty").mkdir()
    np.save(tmp_path / "empty" / "labels.npy", np.arange(5))
    with pytest.raises(InputError, match=r"no <corruption>\.npy"):
        open_stored(tmp_path / "empty")
