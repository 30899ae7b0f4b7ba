"""Natural sets: classes, groups, the border of ObjectNet, and the clean images of the same classes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from blemish.core.errors import InputError, UnknownNameError
from blemish.data.classes import NATURAL_SETS, imagenet_wnids, natural_classes, natural_groups, objectnet_folders
from blemish.data.folders import folder_source
from blemish.data.natural import natural_source, same_classes
from blemish.data.source import Source
from conftest import SHARED


def tree(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (20, 16), (9, 9, 9)).save(root / name)
    return root


class TestFacts:
    def test_published_facts(self) -> None:
        path = SHARED / "facts" / "imagenet_classes.json"
        if not path.is_file():
            pytest.skip("the facts (../shared/facts/imagenet_classes.json) are not beside this checkout")
        facts = json.loads(path.read_text())
        assert list(imagenet_wnids()) == facts["imagenet_wnids"]
        assert natural_groups("imagenet-a") == tuple((index,) for index in facts["imagenet_a"])
        assert natural_groups("imagenet-r") == tuple((index,) for index in facts["imagenet_r"])
        assert objectnet_folders() == {name: tuple(indices) for name, indices in facts["objectnet"].items()}

    def test_counts_of_the_papers(self) -> None:
        assert len(imagenet_wnids()) == 1000
        assert imagenet_wnids() == tuple(sorted(imagenet_wnids()))
        counts = {name: len(natural_classes(name)) for name in NATURAL_SETS}
        assert counts == {
            "imagenet-a": 200,
            "imagenet-r": 200,
            "imagenet-v2": 1000,
            "imagenet-sketch": 1000,
            "objectnet": 113,
        }

    @pytest.mark.parametrize("name", ["imagenet-a", "imagenet-r", "objectnet"])
    def test_no_class_counts_twice(self, name: str) -> None:
        groups = natural_groups(name)
        assert groups is not None
        members = [index for group in groups for index in group]
        assert len(set(members)) == len(members)
        assert all(0 <= index < 1000 for index in members)

    def test_unknown(self) -> None:
        with pytest.raises(UnknownNameError, match="no natural set is called 'imagenet-x'; known are imagenet-a"):
            natural_classes("imagenet-x")


class TestReading:
    def test_a(self, tmp_path: Path) -> None:
        source = natural_source("imagenet-a", tree(tmp_path, "n01498041/x.jpg", "n01531178/y.jpg"))
        assert source.groups is not None
        assert [source.groups[label] for label in source.labels] == [(6,), (11,)]  # stingray, goldfinch
        assert source.labels.tolist() == [0, 1]
        assert source.names == ("n01498041/x.jpg", "n01531178/y.jpg")
        assert source.name == "imagenet-a"
        assert source.note == "198 of 200 classes missing"

    def test_v2_folders_are_indices(self, tmp_path: Path) -> None:
        source = natural_source("imagenet-v2", tree(tmp_path, "10/x.jpg", "2/y.jpg", "999/z.jpg"))
        assert dict(zip(source.names, source.labels.tolist(), strict=True)) == {
            "2/y.jpg": 2,
            "10/x.jpg": 10,
            "999/z.jpg": 999,
        }
        assert source.groups is None
        assert source.classes == imagenet_wnids()

    def test_sketch(self, tmp_path: Path) -> None:
        source = natural_source("imagenet-sketch", tree(tmp_path, "n01443537/x.jpg"))
        assert source.labels.tolist() == [1]

    @pytest.mark.parametrize(
        ("name", "folder"),
        [("imagenet-a", "n01440764"), ("imagenet-r", "tench"), ("imagenet-v2", "1000"), ("imagenet-sketch", "0")],
    )
    def test_folders_that_do_not_belong(self, tmp_path: Path, name: str, folder: str) -> None:
        with pytest.raises(InputError, match=f"folder '{folder}' is no class of {name}"):
            natural_source(name, tree(tmp_path, f"{folder}/x.jpg"))

    def test_no_pictures(self, tmp_path: Path) -> None:
        (tmp_path / "n01443537").mkdir()
        with pytest.raises(InputError, match="no pictures"):
            natural_source("imagenet-r", tmp_path)


class TestObjectNet:
    def test_groups_border_and_left_out(self, tmp_path: Path) -> None:
        root = tree(tmp_path / "images", "chair/x.png", "air_freshener/y.png", "Weight (exercise)/z.png")
        framed = np.full((16, 20, 3), (255, 0, 0), dtype=np.uint8)
        framed[2:-2, 2:-2] = 50
        Image.fromarray(framed).save(root / "chair" / "x.png")
        for path in (tmp_path, root):
            source = natural_source("objectnet", path)
            assert source.names == ("Weight (exercise)/z.png", "chair/x.png")
            assert source.groups is not None
            assert [source.groups[label] for label in source.labels] == [(543,), (423, 559, 765)]
            assert source.note == "1 folders without an ImageNet class left out; 111 of 113 classes missing"
            cut = np.asarray(source.read(1))
            assert cut.shape == (12, 16, 3)
            assert (cut == 50).all()

    def test_two_spellings(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="'T-shirt' and 't_shirt' mean the same class"):
            natural_source("objectnet", tree(tmp_path, "T-shirt/x.png", "t_shirt/x.png"))

    def test_nothing_known(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="none of ObjectNet's folders among 1"):
            natural_source("objectnet", tree(tmp_path, "n01443537/x.png"))

    def test_too_small_for_the_border(self, tmp_path: Path) -> None:
        root = tree(tmp_path, "chair/x.png")
        Image.new("RGB", (4, 9)).save(root / "chair" / "x.png")
        with pytest.raises(InputError, match="too few for a border of 2"):
            natural_source("objectnet", root).read(0)


def clean(labels: list[int], **fields: object) -> Source:
    return Source(
        name="val",
        names=[f"{i}" for i in range(len(labels))],
        ids=np.arange(len(labels)),
        labels=np.array(labels),
        read=lambda i: Image.new("L", (8, 8), i),
        **fields,  # type: ignore[arg-type]
    )


class TestSameClasses:
    def test_objectnet(self) -> None:
        # 423, 559 and 765 are all chairs; 0 is a tench, which ObjectNet does not have; 409 is a clock.
        part = same_classes("objectnet", clean([765, 0, 409, 559]))
        assert part.names == ("0", "2", "3")
        assert part.classes is not None
        assert [part.classes[label] for label in part.labels] == ["chair", "alarm_clock", "chair"]
        assert part.groups == natural_groups("objectnet")
        assert part.read(2).getpixel((0, 0)) == 3

    def test_labels_are_those_of_the_set(self, tmp_path: Path) -> None:
        source = natural_source("imagenet-r", tree(tmp_path, "n01443537/x.jpg"))
        assert same_classes("imagenet-r", clean([1])).labels.tolist() == source.labels.tolist()

    @pytest.mark.parametrize("name", ["imagenet-v2", "imagenet-sketch"])
    def test_all_classes(self, name: str) -> None:
        source = clean([0, 999])
        assert same_classes(name, source) is source

    def test_folders(self, tmp_path: Path) -> None:
        root = tree(tmp_path, "n01443537/x.jpg", "n01440764/x.jpg")
        part = same_classes("imagenet-r", folder_source(root, mapping="imagenet"))
        assert part.names == ("n01443537/x.jpg",)
        with pytest.raises(InputError, match=r"2 classes; expected ImageNet's 1000.*mapping imagenet"):
            same_classes("imagenet-r", folder_source(root))

    @pytest.mark.parametrize(
        ("source", "message"),
        [
            (clean([1000]), "a label of 1000"),
            (clean([0], groups=((1,),)), "classes of their own"),
            (clean([0]), "no images of the 200 classes of imagenet-r"),
            (clean([1], classes=tuple(reversed(imagenet_wnids()))), "not ImageNet's 1,000 in their usual order"),
        ],
    )
    def test_refusals(self, source: Source, message: str) -> None:
        with pytest.raises(InputError, match=message):
            same_classes("imagenet-r", source)
