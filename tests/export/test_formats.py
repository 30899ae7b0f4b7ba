"""Formats of stored pictures."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from blemish.core.errors import InputError
from blemish.data.formats import picture_format, stored_name
from blemish.data.pictures import decode_picture, encode_picture
from blemish.export import corrupt_picture, corrupt_tree, make_recipe
from pictures import pictures

PICTURE = Image.fromarray(pictures(1, 3, 40, 56)[0].permute(1, 2, 0).numpy())


@pytest.mark.parametrize("name", ["png", "webp"])
def test_lossless_formats_keep_every_pixel(name: str) -> None:
    content = encode_picture(PICTURE, name, orientation=6)
    again = decode_picture(content, "copy")
    assert np.array_equal(np.asarray(again), np.asarray(PICTURE))
    with Image.open(io.BytesIO(content)) as picture:
        assert picture.format == name.upper()
        assert picture.getexif()[0x0112] == 6


def test_qualities() -> None:
    sizes = [len(encode_picture(PICTURE, name)) for name in ("jpeg:50", "jpeg", "jpeg:95")]
    assert sizes == sorted(sizes)
    plain = io.BytesIO()
    PICTURE.save(plain, "JPEG", quality=95)
    made, expected = (
        decode_picture(content, "x") for content in (encode_picture(PICTURE, "jpeg:95"), plain.getvalue())
    )
    assert np.array_equal(np.asarray(made), np.asarray(expected))
    assert encode_picture(PICTURE, "jpeg:85") == encode_picture(PICTURE, "jpeg")
    assert len(encode_picture(PICTURE, "webp:50")) < len(encode_picture(PICTURE, "webp:90"))
    assert [str(picture_format(text)) for text in ("jpg", "JPEG:85", "webp:100", "png")] == [
        "jpeg",
        "jpeg",
        "webp:100",
        "png",
    ]


@pytest.mark.parametrize("text", ["gif", "jpeg:0", "jpeg:101", "png:5", "jpeg:", "webp:1.5", "", "jpeg95"])
def test_refusals(text: str) -> None:
    with pytest.raises(InputError, match="format"):
        picture_format(text)


def test_names() -> None:
    names = ["a/x.JPG", "a.b/x", "x.jpeg.png", ".hidden"]
    assert [stored_name(name, "jpeg:95") for name in names] == ["a/x.JPG", "a.b/x.jpg", "x.jpeg.jpg", ".hidden.jpg"]
    assert stored_name("a/x.jpg", "webp:90") == "a/x.webp"


def test_a_tree_says_its_format_and_a_file_has_its_quality(tmp_path: Path) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    PICTURE.save(tmp_path / "in" / "deep" / "a.png")
    PICTURE.save(tmp_path / "in" / "b.jpg", quality=100)
    recipe = make_recipe(["fog"], [2], file_format="webp:90")
    assert corrupt_tree(tmp_path / "in", tmp_path / "out", recipe).written == 2
    assert {path.name for path in (tmp_path / "out" / "fog" / "2").rglob("*.webp")} == {"a.webp", "b.webp"}
    assert '"format": "webp:90"' in (tmp_path / "out" / "blemish.json").read_text()
    for quality in (30, 95):
        name = f"jpeg:{quality}"
        corrupt_picture(
            tmp_path / "in" / "b.jpg", tmp_path / f"{quality}.jpg", make_recipe(["fog"], [2], file_format=name)
        )
    assert (tmp_path / "30.jpg").stat().st_size < (tmp_path / "95.jpg").stat().st_size
