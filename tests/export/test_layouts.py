"""COCO, VOC, Cityscapes and folders of images beside labels: which files are corrupted, and where labels go."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import blemish
from blemish.core.errors import InputError
from blemish.data.pictures import picture_id, read_picture
from blemish.export import corrupt_tree, find_layout, make_recipe
from blemish.export.manifest import read_manifest
from pictures import pictures

SIZES = [(40, 56), (64, 24)]


def picture(path: Path, number: int = 0) -> Path:
    """Of sizes of its own, in the format of its name, with a folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    image = pictures(1, 3, *SIZES[number % 2], first=number)[0].permute(1, 2, 0).numpy()
    Image.fromarray(image).save(path)
    return path


def text(path: Path, content: str = "label") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


def coco(root: Path) -> Path:
    names = ["000.jpg", "001.jpg"]
    for number, name in enumerate(names):
        picture(root / "val2017" / name, number)
    picture(root / "train2017" / "000.jpg")
    picture(root / "annotations" / "panoptic_val2017" / "000.png")
    labels = {"images": [{"id": i, "file_name": name} for i, name in enumerate(names)], "annotations": []}
    text(root / "annotations" / "instances_val2017.json", json.dumps(labels))
    return root


def voc(root: Path) -> Path:
    year = root / "VOC2012"
    picture(year / "JPEGImages" / "2007_1.jpg")
    picture(year / "SegmentationClass" / "2007_1.png")
    text(year / "Annotations" / "2007_1.xml")
    return root


def cityscapes(root: Path) -> Path:
    picture(root / "leftImg8bit" / "val" / "ulm" / "ulm_1_leftImg8bit.png")
    picture(root / "gtFine" / "val" / "ulm" / "ulm_1_gtFine_labelIds.png")
    return root


def images(root: Path) -> Path:
    picture(root / "images" / "val" / "1.jpg")
    text(root / "labels" / "val" / "1.txt")
    picture(root / "masks" / "1.png")
    return root


MADE = {"coco": coco, "voc": voc, "cityscapes": cityscapes, "images": images}
PICTURES = {
    "coco": {"val2017/000.jpg", "val2017/001.jpg", "train2017/000.jpg"},
    "voc": {"VOC2012/JPEGImages/2007_1.jpg"},
    "cityscapes": {"leftImg8bit/val/ulm/ulm_1_leftImg8bit.png"},
    "images": {"images/val/1.jpg"},
}


def files(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("way", ["link", "copy", "none"])
@pytest.mark.parametrize("name", list(MADE))
def test_every_condition_is_a_folder_of_the_same_layout(name: str, way: str, tmp_path: Path) -> None:
    root, out = MADE[name](tmp_path / "data"), tmp_path / "out"
    layout = find_layout(root)
    assert layout.name == name
    recipe = make_recipe(["gaussian_noise", "fog"], [3], file_format=(layout.formats or ("jpeg",))[0])
    outcome = corrupt_tree(root, out, recipe, layout=layout, labels=way)
    assert outcome.written == 2 * len(PICTURES[name])
    assert outcome.notes == []
    labels = files(root) - PICTURES[name]
    for condition in ("gaussian_noise/3", "fog/3"):
        own = out / condition
        assert files(own) == PICTURES[name] | (set() if way == "none" else labels)
        for label in labels if way != "none" else ():
            assert (own / label).read_bytes() == (root / label).read_bytes()
            assert (own / label).samefile(root / label) == (way == "link")
        for copy in PICTURES[name]:
            assert read_picture(own / copy).size == read_picture(root / copy).size
    assert corrupt_tree(root, out, recipe, layout=layout, labels=way).skipped == outcome.written
    info = read_manifest(out / "blemish.json").protocol
    assert info.layout == name
    assert info.corruptions["fog"].moves == "not at all"


def test_the_pixels_are_those_of_the_picture_by_its_name(tmp_path: Path) -> None:
    root = cityscapes(tmp_path / "data")
    name = "leftImg8bit/val/ulm/ulm_1_leftImg8bit.png"
    corrupt_tree(root, tmp_path / "out", make_recipe(["fog"], [2], file_format="png"), layout=find_layout(root))
    expected = blemish.corrupt(read_picture(root / name), "fog", 2, ids=picture_id(name))
    assert np.array_equal(np.asarray(read_picture(tmp_path / "out" / "fog" / "2" / name)), np.asarray(expected))


def test_coco_names_copies_of_another_format(tmp_path: Path) -> None:
    root, out = coco(tmp_path / "data"), tmp_path / "out"
    recipe = make_recipe(["fog"], [1], file_format="png")
    outcome = corrupt_tree(root, out, recipe, layout=find_layout(root), only=["val2017/*"])
    assert outcome.written == 2
    assert outcome.notes == ["1 files of labels name the copies, whose suffix is another than the pictures'"]
    own = out / "fog" / "1"
    labels = json.loads((own / "annotations" / "instances_val2017.json").read_text())
    assert [entry["file_name"] for entry in labels["images"]] == ["000.png", "001.png"]
    assert all((own / "val2017" / entry["file_name"]).is_file() for entry in labels["images"])
    assert not (own / "train2017").exists()
    before = json.loads((root / "annotations" / "instances_val2017.json").read_text())
    assert before["images"][0]["file_name"] == "000.jpg"


def test_a_link_to_labels_that_have_changed_is_renewed(tmp_path: Path) -> None:
    root, out = images(tmp_path / "data"), tmp_path / "out"
    label = root / "labels" / "val" / "1.txt"
    recipe, layout = make_recipe(["fog"], [1]), find_layout(root)
    for way, content in (("link", "new"), ("copy", "newer")):
        corrupt_tree(root, out, recipe, layout=layout, labels=way)
        label.unlink()
        label.write_text(content)
        corrupt_tree(root, out, recipe, layout=layout, labels=way)
        assert (out / "fog" / "1" / "labels" / "val" / "1.txt").read_text() == content


def test_labels_that_do_not_move_with_the_pixels_are_told_of(tmp_path: Path) -> None:
    root = images(tmp_path / "data")
    outcome = corrupt_tree(
        root, tmp_path / "out", make_recipe(["fog", "noc:shear", "noc:rotation"], [1]), layout=find_layout(root)
    )
    [note] = outcome.notes
    assert note.startswith("pixels are moved, by a map, by noc:shear, noc:rotation: labels beside the copies are those")
    info = read_manifest(tmp_path / "out" / "blemish.json").protocol
    assert info.corruptions["noc:shear"].moves == "by a map"


def test_links_to_another_disk_are_refused_before_any_work(tmp_path: Path) -> None:
    elsewhere = Path("/dev/shm")
    if not elsewhere.is_dir() or elsewhere.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("no second disk")
    root = voc(tmp_path / "voc")
    with tempfile.TemporaryDirectory(dir=elsewhere) as folder:
        out, recipe, layout = Path(folder) / "out", make_recipe(["fog"], [1]), find_layout(root)
        with pytest.raises(InputError, match=r"is on another disk than .*; expected --label-files copy"):
            corrupt_tree(root, out, recipe, layout=layout)
        assert not out.exists()
        assert corrupt_tree(root, out, recipe, layout=layout, labels="copy").written == 1
        assert (out / "fog" / "1" / "VOC2012" / "Annotations" / "2007_1.xml").read_text() == "label"


def test_refusals(tmp_path: Path) -> None:
    root = voc(tmp_path / "voc")
    with pytest.raises(InputError, match=r"format png for a PASCAL VOC folder, .*; expected jpeg"):
        corrupt_tree(root, tmp_path / "out", make_recipe(["fog"], [1], file_format="png"), layout=find_layout(root))
    with pytest.raises(InputError, match="labels 'symlink'; expected link, copy, none"):
        corrupt_tree(root, tmp_path / "out", make_recipe(["fog"], [1]), layout=find_layout(root), labels="symlink")
    with pytest.raises(InputError, match=r"no pictures that match train/\*, of 1"):
        corrupt_tree(root, tmp_path / "out", make_recipe(["fog"], [1]), layout=find_layout(root), only=["train/*"])
    with pytest.raises(InputError, match="no COCO folder; expected a folder annotations"):
        find_layout(root, "coco")
    with pytest.raises(InputError, match="unknown layout 'kitti'; expected cityscapes, voc, coco"):
        find_layout(root, "kitti")
    assert find_layout(root, "tree").name == "tree"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["voc", "cityscapes"])
def test_maps_of_labels_stay_where_annotations_were_converted_to_cocos(name: str, tmp_path: Path) -> None:
    """As mmdetection keeps Cityscapes: a folder annotations with JSON files beside leftImg8bit and gtFine."""
    root = MADE[name](tmp_path / "data")
    text(root / "annotations" / "instances.json", json.dumps({"images": [], "annotations": [], "categories": []}))
    layout = find_layout(root)
    assert layout.name == name
    assert set(layout.pictures(sorted(files(root) - {"annotations/instances.json"}))) == PICTURES[name]
    assert {path for path in layout.label_files(root) if path.endswith(".png")} == {
        path for path in files(root) - PICTURES[name] if path.endswith(".png")
    }
