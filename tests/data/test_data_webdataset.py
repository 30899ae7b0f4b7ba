"""WebDataset shards, and archives that are damaged or hostile."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from blemish.core.errors import InputError
from blemish.data.image_files import expand_braces, local_files
from blemish.data.pictures import picture_id
from blemish.data.tar import list_members, read_member
from blemish.data.webdataset import shard_source


def picture(level: int, file_format: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (9, 8), (level, 0, 0)).save(buffer, file_format)
    return buffer.getvalue()


def write_tar(path: Path, members: dict[str, bytes], *, tar_format: int = tarfile.PAX_FORMAT) -> Path:
    with tarfile.open(path, "w", format=tar_format) as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def entry_tar(path: Path, kind: bytes, name: str = "a.png") -> Path:
    with tarfile.open(path, "w") as archive:
        entry = tarfile.TarInfo(name)
        entry.type = kind
        entry.linkname = "/etc/passwd"
        archive.addfile(entry)
    return path


class TestReading:
    def test_fields(self, tmp_path: Path) -> None:
        path = write_tar(
            tmp_path / "x.tar",
            {
                "000.cls": b"3\n",
                "000.png": picture(10),
                "dir/001.json": json.dumps({"label": 4, "url": "x"}).encode(),
                "dir/001.PPM": picture(11, "PPM"),
                "./002.webp": picture(12, "PNG"),
                "./002.cls": b"5",
                "README": b"about",
                "notes.txt": b"about",
            },
        )
        source = shard_source(path)
        assert source.names == ("000.png", "dir/001.PPM", "002.webp")
        assert source.labels.tolist() == [3, 4, 5]
        assert source.ids.tolist() == [picture_id(name) for name in source.names]
        assert [source.read(i).getpixel((0, 0)) for i in (2, 0, 1)] == [(12, 0, 0), (10, 0, 0), (11, 0, 0)]

    @pytest.mark.parametrize("tar_format", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
    def test_formats_and_long_names(self, tmp_path: Path, tar_format: int) -> None:
        long = "/".join(["folder" * 5] * 4) + "/x" * 10
        path = write_tar(tmp_path / "x.tar", {f"{long}.png": picture(1), f"{long}.cls": b"0"}, tar_format=tar_format)
        assert shard_source(path).names == (f"{long}.png",)

    def test_names_beyond_ascii(self, tmp_path: Path) -> None:
        path = write_tar(tmp_path / "x.tar", {"été.png": picture(1), "été.cls": b"0"})
        assert shard_source(path).names == ("été.png",)

    def test_names_stay_names(self, tmp_path: Path) -> None:
        path = write_tar(tmp_path / "x.tar", {"../../out.png": picture(1), "../../out.cls": b"0"})
        before = sorted(tmp_path.parent.rglob("*"))
        source = shard_source(path)
        assert source.read(0).size == (9, 8)
        assert source.names == ("../../out.png",)
        absolute = write_tar(tmp_path / "y.tar", {"/tmp/out.png": picture(1), "/tmp/out.cls": b"0"})
        assert shard_source(absolute).names == ("/tmp/out.png",)
        assert sorted(tmp_path.parent.rglob("*")) == sorted([*before, absolute])

    def test_several_shards(self, tmp_path: Path) -> None:
        for number in range(3):
            write_tar(
                tmp_path / f"s-{number:02}.tar", {f"{number}.png": picture(number), f"{number}.cls": b"%d" % number}
            )
        (tmp_path / "notes.txt").touch()
        for path in (tmp_path, tmp_path / "s-{00..02}.tar"):
            source = shard_source(path)
            assert source.names == ("0.png", "1.png", "2.png")
            assert source.read(2).getpixel((0, 0)) == (2, 0, 0)

    def test_repeated_keys_are_named_after_their_shards(self, tmp_path: Path) -> None:
        for number in range(2):
            write_tar(tmp_path / f"{number}.tar", {"x.png": picture(number), "x.cls": b"0"})
        source = shard_source(tmp_path)
        assert source.names == ("0.tar/x.png", "1.tar/x.png")
        assert len(set(source.ids.tolist())) == 2

    def test_members_are_read_in_place(self, tmp_path: Path) -> None:
        path = write_tar(tmp_path / "x.tar", {f"{i}/x": bytes([i]) * (i * 300) for i in range(20)})
        members = list_members(path)
        assert [(member.name, member.size) for member in members] == [(f"{i}/x", 300 * i) for i in range(20)]
        assert [read_member(path, members[i]) for i in (7, 0, 19)] == [bytes([7]) * 2100, b"", bytes([19]) * 5700]


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"a.png": picture(1)}, "sample 'a' has no label; expected a.cls"),
        ({"a.cls": b"1"}, "sample 'a' holds cls, but no image"),
        ({"a.png": picture(1), "a.jpg": picture(1), "a.cls": b"1"}, "sample 'a' has 2 images"),
        ({"a.png": picture(1), "a.PNG": picture(1), "a.cls": b"1"}, "occurs twice"),
        ({"a.png": picture(1), "a.cls": b"cat"}, "holds no label"),
        ({"a.png": picture(1), "a.cls": b"-1"}, "label -1; expected a whole number from 0"),
        ({"a.png": picture(1), "a.cls": b"9" * 5000}, "holds no label"),
        ({"a.png": picture(1), "a.json": b"{}"}, "holds no label"),
        ({"a.png": picture(1), "a.json": b"[" * 100_000}, "holds no label"),
        ({"a.png": picture(1), "a.json": b'{"label": "x"}'}, "label 'x'"),
        ({"a.png": picture(1), "a.cls": bytes(2**21)}, "expected a label"),
        ({}, "no images in it"),
    ],
)
def test_bad_samples(tmp_path: Path, members: dict[str, bytes], message: str) -> None:
    with pytest.raises(InputError, match=message):
        shard_source(write_tar(tmp_path / "x.tar", members))


def test_damaged_pictures_are_named(tmp_path: Path) -> None:
    source = shard_source(write_tar(tmp_path / "x.tar", {"a.png": b"nonsense", "a.cls": b"1"}))
    with pytest.raises(InputError, match=r"x\.tar: a\.png: not a readable picture"):
        source.read(0)


class TestHostileArchives:
    @pytest.mark.parametrize(
        ("kind", "what"),
        [
            (tarfile.LNKTYPE, "a link"),
            (tarfile.SYMTYPE, "a symbolic link"),
            (tarfile.CHRTYPE, "a device"),
            (tarfile.BLKTYPE, "a device"),
            (tarfile.FIFOTYPE, "a pipe"),
            (b"Z", "of unknown kind"),
        ],
    )
    def test_no_plain_files(self, tmp_path: Path, kind: bytes, what: str) -> None:
        with pytest.raises(InputError, match=f"'a.png' is {what}"):
            list_members(entry_tar(tmp_path / "x.tar", kind))

    @pytest.mark.parametrize("size", [10**6, 8**11 - 1, 2**60])
    def test_huge_claims(self, tmp_path: Path, size: int) -> None:
        entry = tarfile.TarInfo("a.png")
        entry.size = size
        (tmp_path / "x.tar").write_bytes(entry.tobuf(tarfile.GNU_FORMAT) + bytes(2048))
        with pytest.raises(InputError, match=f"a member claims {size:,} bytes, but the archive ends after 2,048"):
            list_members(tmp_path / "x.tar")

    @pytest.mark.parametrize(
        ("key", "message"), [("size", "claims 99,999,999 bytes"), ("GNU.sparse.major", "a sparse file")]
    )
    def test_extended_claims(self, tmp_path: Path, key: str, message: str) -> None:
        with tarfile.open(tmp_path / "x.tar", "w", format=tarfile.PAX_FORMAT) as archive:
            entry = tarfile.TarInfo("a.png")
            entry.pax_headers = {key: "99999999"}
            archive.addfile(entry)
        with pytest.raises(InputError, match=message):
            list_members(tmp_path / "x.tar")

    def test_a_huge_name(self, tmp_path: Path) -> None:
        write_tar(tmp_path / "x.tar", {"x" * 2**21: b""}, tar_format=tarfile.GNU_FORMAT)
        with pytest.raises(InputError, match="bytes about a name"):
            list_members(tmp_path / "x.tar")

    @pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE])
    @pytest.mark.parametrize("size", [2**60, -512])
    def test_sizes_of_names(self, tmp_path: Path, kind: bytes, size: int) -> None:
        entry = tarfile.TarInfo("a.png")
        entry.size, entry.type = size, kind
        (tmp_path / "x.tar").write_bytes(entry.tobuf(tarfile.GNU_FORMAT) + bytes(2048))
        with pytest.raises(InputError, match=r"bytes about a name|invalid offset"):
            list_members(tmp_path / "x.tar")

    def test_a_negative_size(self, tmp_path: Path) -> None:
        entry = tarfile.TarInfo("a.png")
        entry.size = -1024
        (tmp_path / "x.tar").write_bytes(entry.tobuf(tarfile.GNU_FORMAT) + bytes(2048))
        with pytest.raises(InputError, match=r"without a usable size|invalid offset"):  # the latter by Python 3.12
            list_members(tmp_path / "x.tar")

    def test_names_of_names_of_names(self, tmp_path: Path) -> None:
        entry = tarfile.TarInfo("a.png")
        entry.type = tarfile.GNUTYPE_LONGNAME
        (tmp_path / "x.tar").write_bytes(entry.tobuf(tarfile.GNU_FORMAT) * 5000 + bytes(1024))
        with pytest.raises(InputError, match="not a tar archive, or a damaged one"):
            list_members(tmp_path / "x.tar")

    def test_a_damaged_header_in_the_middle_is_not_the_end(self, tmp_path: Path) -> None:
        path = write_tar(tmp_path / "x.tar", {f"{i}.png": picture(i) for i in range(3)})
        whole = bytearray(path.read_bytes())
        whole[1024 + 3] ^= 1
        path.write_bytes(whole)
        with pytest.raises(InputError, match=r"x\.tar, byte 1024: not a tar archive, or a damaged one"):
            list_members(path)

    def test_cut_off_anywhere(self, tmp_path: Path) -> None:
        path = write_tar(tmp_path / "x.tar", {"a.png": picture(1), "a.cls": b"1"})
        whole = path.read_bytes()
        end = 2048  # two headers, two files of one block each
        assert whole[end : end + 1024] == bytes(1024)
        for length in (0, 1, 100, 512, 600, 1024, 1300, 1536, end):
            path.write_bytes(whole[:length])
            with pytest.raises(InputError, match=r"cut off|archive ends after|empty file"):
                list_members(path)

    def test_joined_archives_do_not_lose_the_second(self, tmp_path: Path) -> None:
        path = write_tar(tmp_path / "x.tar", {"a.png": picture(1), "a.cls": b"1"})
        path.write_bytes(path.read_bytes() * 2)
        with pytest.raises(InputError, match="goes on after its end mark"):
            list_members(path)

    def test_other_files(self, tmp_path: Path) -> None:
        (tmp_path / "x.tar").write_bytes(b"nonsense" * 200)
        with pytest.raises(InputError, match="not a tar archive"):
            shard_source(tmp_path / "x.tar")
        whole = write_tar(tmp_path / "y.tar", {"a.png": picture(1), "a.cls": b"1"}).read_bytes()
        (tmp_path / "x.tar").write_bytes(gzip.compress(whole))
        with pytest.raises(InputError, match="compressed with gzip"):
            shard_source(tmp_path / "x.tar")

    def test_an_archive_that_shrinks(self, tmp_path: Path) -> None:
        path = write_tar(tmp_path / "x.tar", {"a.png": picture(1), "a.cls": b"1"})
        source = shard_source(path)
        path.write_bytes(path.read_bytes()[:520])
        with pytest.raises(InputError, match="was changed while it was being read"):
            source.read(0)

    @settings(max_examples=100, deadline=None)
    @given(place=st.integers(0, 2047), byte=st.integers(0, 255))
    def test_any_damage_is_found_or_harmless(
        self, tmp_path_factory: pytest.TempPathFactory, place: int, byte: int
    ) -> None:
        path = write_tar(tmp_path_factory.mktemp("damage") / "x.tar", {"a.png": picture(1), "a.cls": b"1"})
        expected = list_members(path)
        whole = bytearray(path.read_bytes())
        whole[place] = byte
        path.write_bytes(whole)
        try:
            found = list_members(path)
        except InputError:
            return
        assert found == expected


class TestPatterns:
    def test_ranges_and_lists(self) -> None:
        assert expand_braces("x.tar") == ["x.tar"]
        assert expand_braces("{a,b}-{0..1}.tar") == ["a-0.tar", "a-1.tar", "b-0.tar", "b-1.tar"]
        assert expand_braces("{9..11}") == ["9", "10", "11"]
        assert expand_braces("{098..100}") == ["098", "099", "100"]

    @pytest.mark.parametrize(
        ("pattern", "message"),
        [
            ("{0..99999999999}.tar", "an ascending range"),
            ("{5..1}.tar", "an ascending range"),
            ("{0..9999}{0..9999}.tar", "means 100,000,000 files"),
            ("{x}.tar", "is no range"),
            ("{}.tar", "is no range"),
        ],
    )
    def test_refusals(self, pattern: str, message: str) -> None:
        with pytest.raises(InputError, match=message):
            expand_braces(pattern)

    def test_missing_shards(self, tmp_path: Path) -> None:
        write_tar(tmp_path / "s-0.tar", {})
        with pytest.raises(InputError, match=r"s-1\.tar: no such file \(2 of 3\)"):
            local_files(tmp_path / "s-{0..2}.tar", ".tar")
        (tmp_path / "empty").mkdir()
        with pytest.raises(InputError, match=r"no \.tar files"):
            local_files(tmp_path / "empty", ".tar")
