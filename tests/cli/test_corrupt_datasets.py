"""``blemish corrupt`` on folders with labels, tables and archives: what it finds, says and refuses."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from PIL import Image

from blemish.data.pictures import encode_picture, read_picture
from command_line import invoke
from pictures import pictures


def picture(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pictures(1, 3, 40, 64)[0].permute(1, 2, 0).numpy()).save(path)
    return path


def coco(root: Path) -> Path:
    for name in ("val2017/1.jpg", "train2017/1.jpg"):
        picture(root / name)
    (root / "annotations").mkdir()
    (root / "annotations" / "instances.json").write_text(json.dumps({"images": [{"file_name": "1.jpg"}]}))
    return root


def tsv(path: Path) -> Path:
    content = base64.b64encode(encode_picture(Image.new("RGB", (40, 30), (9, 90, 200)), "png")).decode()
    path.write_text(f"index\timage\n1\t{content}\n2\t1\n")
    return path


def test_a_folder_says_its_layout_format_and_what_moves(tmp_path: Path) -> None:
    root, out = coco(tmp_path / "coco"), tmp_path / "out"
    options = [
        "-c",
        "fog,noc:shear",
        "-s",
        "3",
        "--pictures",
        "val2017/*",
        "--format",
        "jpeg:95",
        "--label-files",
        "copy",
    ]
    code, text, _ = invoke("corrupt", root, "-o", out, *options)
    assert code == 0
    assert "layout: coco, a COCO folder; copies are jpeg of quality 95, as large as they are" in text
    assert "wrote 2 images" in text
    assert "pixels are moved, by a map, by noc:shear: labels beside the copies" in " ".join(text.split())
    assert read_picture(out / "fog" / "3" / "val2017" / "1.jpg").size == (64, 40)
    assert not (out / "fog" / "3" / "train2017").exists()
    assert (out / "noc:shear" / "3" / "annotations" / "instances.json").is_file()
    code, text, _ = invoke("corrupt", root, "-o", out, *options)
    assert "wrote 0 images" in text


def test_any_tree_and_cityscapes_by_default(tmp_path: Path) -> None:
    picture(tmp_path / "in" / "leftImg8bit" / "val" / "a.png")
    picture(tmp_path / "in" / "gtFine" / "val" / "a.png")
    code, text, _ = invoke("corrupt", tmp_path / "in", "-o", tmp_path / "out", "-c", "fog", "-s", "1")
    assert (code, "layout: cityscapes" in text, "copies are png lossless" in text) == (0, True, True)
    assert "wrote 1 image " in text
    arguments = ["-o", tmp_path / "tree", "-c", "fog", "-s", "1", "--layout", "tree"]
    code, text, _ = invoke("corrupt", tmp_path / "in", *arguments)
    assert (code, "wrote 2 images" in text) == (0, True)


def test_a_table(tmp_path: Path) -> None:
    source = tsv(tmp_path / "Toy.tsv")
    code, text, _ = invoke("corrupt", source, "-o", tmp_path / "out", "-c", "fog", "-s", "3", "--format", "webp")
    assert code == 0
    assert "layout: tsv; copies are webp lossless" in text
    assert "wrote 2 rows" in text
    assert (tmp_path / "out" / "Toy_fog_3.tsv").read_text().startswith("index\timage\n1\tUklGR")  # RIFF, in base64


def test_a_table_with_a_bad_picture_is_left_out_as_a_file(tmp_path: Path) -> None:
    source = tsv(tmp_path / "Toy.tsv")
    source.write_text(source.read_text() + f"3\t{base64.b64encode(b'none' * 40).decode()}\n")
    code, text, errors = invoke("corrupt", source, "-o", tmp_path / "out", "-c", "fog", "-s", "1,3")
    assert (code, "wrote 0 rows" in text) == (1, True)
    assert "error: 1 file could not be used; all others are done:" in errors
    assert "Toy.tsv: row 2 of" in " ".join(errors.split())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--layout", "coco"], "no COCO folder"),
        (["--layout", "kitti"], "unknown layout 'kitti'"),
        (["--format", "gif"], "unknown format 'gif'"),
        (["--columns", "image"], "columns given for"),
        (["--pictures", "test/*"], "no pictures that match"),
        (["--label-files", "move"], "expected link, copy, none"),
    ],
)
def test_refusals_of_a_folder(options: list[str], message: str, tmp_path: Path) -> None:
    picture(tmp_path / "in" / "a" / "1.jpg")
    code, _, errors = invoke("corrupt", tmp_path / "in", "-o", tmp_path / "out", "-c", "fog", *options)
    assert (code, message in " ".join(errors.split())) == (2, True), errors
    assert not (tmp_path / "out").exists()


def test_options_of_folders_are_refused_elsewhere(tmp_path: Path) -> None:
    for source in (tsv(tmp_path / "Toy.tsv"), picture(tmp_path / "1.png")):
        code, _, errors = invoke("corrupt", source, "-o", tmp_path / "out", "-c", "fog", "--label-files", "copy")
        assert (code, "are for folders of pictures" in errors) == (2, True), errors
