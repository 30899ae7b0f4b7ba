"""Class folders, tables of labels, mappings, and pictures that are refused."""

from __future__ import annotations

import json
import os
import struct
import threading
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from blemish.core.errors import InputError
from blemish.data import pictures
from blemish.data.classes import imagenet_wnids
from blemish.data.folders import folder_source, table_source
from blemish.data.pictures import MAX_PIXELS, picture_id, read_picture, resize_and_crop
from blemish.data.source import Source
from conftest import SHARED


def make_tree(root: Path, *names: str, size: tuple[int, int] = (12, 10)) -> Path:
    """Pictures that differ in every pixel from each other."""
    for number, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", size, (number, 2 * number, 255 - number)).save(path)
    return root


class TestClassFolders:
    def test_labels_names_and_ids(self, tmp_path: Path) -> None:
        source = folder_source(make_tree(tmp_path, "b/2.png", "a/x.png", "b/1.png", "c/sub/y.png", "top.png"))
        assert source.names == ("a/x.png", "b/1.png", "b/2.png", "c/sub/y.png")
        assert source.labels.tolist() == [0, 1, 1, 2]
        assert source.classes == ("a", "b", "c")
        assert source.ids.tolist() == [picture_id(name) for name in source.names]
        assert source.read(2).getpixel((0, 0)) == (0, 0, 255)  # the first one that was made
        assert source.groups is None

    def test_numbers_are_ordered_as_numbers(self, tmp_path: Path) -> None:
        source = folder_source(make_tree(tmp_path, "10/x.png", "2/x.png", "1/x.png"))
        assert source.classes == ("1", "2", "10")
        assert dict(zip(source.names, source.labels.tolist(), strict=True)) == {
            "1/x.png": 0,
            "2/x.png": 1,
            "10/x.png": 2,
        }

    def test_one_name_that_is_no_number_means_names(self, tmp_path: Path) -> None:
        assert folder_source(make_tree(tmp_path, "10/x.png", "2/x.png", "a/x.png")).classes == ("10", "2", "a")

    def test_an_empty_folder_keeps_its_index(self, tmp_path: Path) -> None:
        make_tree(tmp_path, "a/x.png", "c/x.png")
        (tmp_path / "b").mkdir()
        (tmp_path / ".hidden").mkdir()
        source = folder_source(tmp_path)
        assert source.labels.tolist() == [0, 2]
        assert source.note == "1 of 3 class folders hold no pictures"

    def test_gray_becomes_rgb(self, tmp_path: Path) -> None:
        (tmp_path / "a").mkdir()
        Image.new("L", (8, 8), 7).save(tmp_path / "a" / "x.png")
        assert folder_source(tmp_path).read(0).getpixel((0, 0)) == (7, 7, 7)

    def test_take_keeps_images_and_stamps_together(self, tmp_path: Path) -> None:
        source = folder_source(make_tree(tmp_path, "a/x.png", "a/y.png", "b/z.png"))
        with pytest.raises(InputError, match=f"2 images are called '{source.names[2]}'; expected names that differ"):
            source.take([0, 2, 1, 2, 1])
        part = source.take([2, 0])
        assert part.names == ("b/z.png", "a/x.png")
        assert part.read(0).tobytes() == source.read(2).tobytes()
        assert source.stamp is not None
        assert part.stamp is not None
        assert part.stamp(0) == source.stamp(2) != source.stamp(0)

    def test_unreadable_pictures_are_named_when_they_are_read(self, tmp_path: Path) -> None:
        make_tree(tmp_path, "a/x.png")
        (tmp_path / "a" / "bad.png").write_bytes(b"nonsense")
        source = folder_source(tmp_path)
        with pytest.raises(InputError, match=r"a/bad\.png: not a readable picture"):
            source.read(0)

    @pytest.mark.parametrize(("names", "message"), [([], "no folders in it"), (["a/x.txt"], "no pictures")])
    def test_nothing_to_read(self, tmp_path: Path, names: list[str], message: str) -> None:
        for name in names:
            (tmp_path / name).parent.mkdir()
            (tmp_path / name).touch()
        with pytest.raises(InputError, match=message):
            folder_source(tmp_path)

    def test_missing(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="gone: no such folder"):
            folder_source(tmp_path / "gone")


class TestMappings:
    @pytest.fixture
    def tree(self, tmp_path: Path) -> Path:
        return make_tree(tmp_path / "tree", "cat/x.png", "dog/x.png")

    def labels(self, source: Source) -> dict[str, int]:
        return dict(zip(source.names, source.labels.tolist(), strict=True))

    def test_json(self, tree: Path, tmp_path: Path) -> None:
        (tmp_path / "m.json").write_text(json.dumps({"dog": 0, "cat": 3, "cow": 3}))
        source = folder_source(tree, mapping=tmp_path / "m.json")
        assert self.labels(source) == {"cat/x.png": 3, "dog/x.png": 0}
        assert source.classes == ("dog", "1", "2", "cat / cow")

    def test_lines(self, tree: Path, tmp_path: Path) -> None:
        (tmp_path / "m.txt").write_text("dog\n\ncow\r\ncat\n")
        source = folder_source(tree, mapping=tmp_path / "m.txt")
        assert self.labels(source) == {"cat/x.png": 2, "dog/x.png": 0}

    def test_class_order(self, tree: Path) -> None:
        assert folder_source(tree, mapping=["dog", "cat"]).labels.tolist() == [1, 0]
        assert folder_source(tree, mapping={"dog": 5, "cat": 1}).labels.tolist() == [1, 5]
        with pytest.raises(InputError, match="'cat' is not in the mapping"):
            folder_source(tree, mapping=["dog", "cow"])

    def test_imagenet(self, tmp_path: Path) -> None:
        tree = make_tree(tmp_path, "n01443537/x.png", "n15075141/x.png")
        assert folder_source(tree).labels.tolist() == [0, 1]
        source = folder_source(tree, mapping="imagenet")
        assert source.labels.tolist() == [1, 999]  # goldfish, toilet tissue
        assert source.classes is not None
        assert len(source.classes) == 1000

    def test_numbers_of_imagenets_classes(self, tmp_path: Path) -> None:
        tree = make_tree(tmp_path, "217/x.png", "10/x.png", "0/x.png")
        source = folder_source(tree, mapping="imagenet")
        assert self.labels(source) == {"217/x.png": 217, "10/x.png": 10, "0/x.png": 0}
        assert source.classes == imagenet_wnids()
        make_tree(tmp_path, "1000/x.png")
        with pytest.raises(
            InputError, match="class folder '1000' is not in the mapping imagenet, of WordNet ids, numb"
        ):
            folder_source(tree, mapping="imagenet")

    def test_all_of_imagenets_classes_need_no_note(self, tmp_path: Path) -> None:
        for wnid in imagenet_wnids():
            (tmp_path / wnid).mkdir()
        make_tree(tmp_path, "n15075141/x.png")
        note = folder_source(tmp_path).note
        assert note == "999 of 1000 class folders hold no pictures"

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("cat\n", "folder 'dog' is not in the mapping"),
            ("cat\ndog\ncat\n", "'cat' occurs twice"),
            ("", "no names in it"),
            ("{}", "empty"),
            ('{"cat": 1.5, "dog": 0}', "'cat' has index 1.5"),
            ('{"cat": -1, "dog": 0}', "'cat' has index -1"),
            ('{"cat": true, "dog": 0}', "'cat' has index True"),
            ('{"cat": 1e999, "dog": 0}', "the number 1e999"),
            ('{"cat": 99999999999, "dog": 0}', "expected a whole number"),
            ('{"cat": 1', "not readable"),
            ("[" * 100_000, "not readable"),
            ("[1, 2]", "expected names of class folders"),
        ],
    )
    def test_bad_files(self, tree: Path, tmp_path: Path, content: str, message: str) -> None:
        (tmp_path / "m").write_text(content)
        with pytest.raises(InputError, match=message):
            folder_source(tree, mapping=tmp_path / "m")

    def test_missing_file(self, tree: Path) -> None:
        with pytest.raises(InputError, match="gone: no such file"):
            folder_source(tree, mapping="gone")


class TestTables:
    def test_labels(self, tmp_path: Path) -> None:
        make_tree(tmp_path, "images/x.png", "images/y.png")
        (tmp_path / "labels.csv").write_text("author,file,class_index\nme,images/y.png,7\nyou,images/x.png,2\n")
        source = folder_source(tmp_path)
        assert source.names == ("images/y.png", "images/x.png")
        assert source.labels.tolist() == [7, 2]
        assert source.ids.tolist() == [picture_id("images/y.png"), picture_id("images/x.png")]
        assert source.classes is None
        with pytest.raises(InputError, match="expected no mapping"):
            folder_source(tmp_path, mapping=["images"])

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            ("file,label\nx.png,1\n", "no column 'class_index' among file, label"),
            ("", "no column 'file' among nothing"),
            ("file,class_index\nx.png,one\n", "line 2: class index 'one'"),
            ("file,class_index\nx.png,-1\n", "line 2: class index '-1'"),
            ("file,class_index\nx.png\n", "line 2: class index ''"),
            ("file,class_index\nx.png,1\nx.png,2\n", "line 3: x.png is listed twice"),
            ("file,class_index\n../x.png,1\n", "expected a picture below"),
            ("file,class_index\n/etc/x.png,1\n", "expected a picture below"),
            ("file,class_index\na\\..\\..\\x.png,1\n", "expected a picture below"),
            ("file,class_index\nC:x.png,1\n", "expected a picture below"),
            ("file,class_index\n,1\n", "expected a picture below"),
            ("file,class_index\n", "no images in it"),
        ],
    )
    def test_bad_tables(self, tmp_path: Path, content: str, message: str) -> None:
        (tmp_path / "labels.csv").write_text(content)
        with pytest.raises(InputError, match=message):
            table_source(tmp_path)

    def test_not_text(self, tmp_path: Path) -> None:
        (tmp_path / "labels.csv").write_bytes(b"\xff\xfe\x00file")
        with pytest.raises(InputError, match="not a text file"):
            table_source(tmp_path)

    def test_real_photographs(self) -> None:
        folder = SHARED / "data" / "natural1000"
        if not folder.is_dir():
            pytest.skip("the photographs (../shared/data/natural1000) are not beside this checkout")
        source = folder_source(folder)
        assert len(source) == 1000
        assert source.names[0] == "images/0c7ac4a8c9dfa802.jpg"
        assert source.labels[:3].tolist() == [305, 883, 243]  # the first lines of the table
        assert source.read(0).size == (224, 224)


def png_claiming(width: int, height: int) -> bytes:
    """A small, correct PNG header that claims any size."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes(2**20))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


class TestHostilePictures:
    @pytest.mark.parametrize("pillow_limit", [Image.MAX_IMAGE_PIXELS, None])
    def test_bombs(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pillow_limit: int | None) -> None:
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", pillow_limit)
        (tmp_path / "bomb.png").write_bytes(png_claiming(50_000, 50_000))
        with pytest.raises(InputError, match=r"bomb\.png: not a readable picture \(.*decompression bomb"):
            read_picture(tmp_path / "bomb.png")

    def test_the_limit_itself(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert 178_000_000 < MAX_PIXELS < 179_000_000
        monkeypatch.setattr(pictures, "MAX_PIXELS", 100)
        Image.new("L", (10, 10)).save(tmp_path / "x.png")
        Image.new("L", (101, 1)).save(tmp_path / "y.png")
        assert read_picture(tmp_path / "x.png").size == (10, 10)
        with pytest.raises(InputError, match="101×1 pixels; more than 100 are refused"):
            read_picture(tmp_path / "y.png")

    def test_big_pictures_pass_without_a_warning(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
        Image.new("L", (15, 10)).save(tmp_path / "x.png")  # between one and two times the limit
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert read_picture(tmp_path / "x.png").size == (15, 10)

    def test_filters_of_warnings_survive_threads(self, tmp_path: Path) -> None:
        Image.new("L", (15, 10)).save(tmp_path / "x.png")
        before = list(warnings.filters)
        work = [
            threading.Thread(target=lambda: [read_picture(tmp_path / "x.png") for _ in range(50)]) for _ in range(4)
        ]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
        assert list(warnings.filters) == before

    def test_postscript_is_never_run(self, tmp_path: Path) -> None:
        (tmp_path / "x.jpg").write_bytes(
            b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n"
        )
        with pytest.raises(InputError, match="unknown or damaged format"):
            read_picture(tmp_path / "x.jpg")

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
    def test_a_pipe_is_not_waited_for(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "x.jpg")
        with pytest.raises(InputError, match="not a regular file"):
            read_picture(tmp_path / "x.jpg")

    def test_a_thin_strip_is_not_blown_up(self) -> None:
        with pytest.raises(InputError, match="256×25600000 pixels"):
            resize_and_crop(Image.fromarray(np.zeros((100_000, 1), dtype=np.uint8)), resize=256)
