"""Reading pictures and trees, preprocessing, and the demo picture."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from blemish.core.errors import InputError
from blemish.core.rng import hash_id
from blemish.data.demo import demo_picture
from blemish.data.pictures import list_pictures, picture_id, read_picture, resize_and_crop


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


class TestReadPicture:
    @pytest.mark.parametrize(
        ("mode", "suffix", "expected"),
        [
            ("RGB", "png", "RGB"),
            ("RGB", "jpg", "RGB"),
            ("L", "png", "L"),
            ("1", "png", "L"),
            ("LA", "png", "L"),
            ("P", "png", "RGB"),
            ("RGBA", "png", "RGB"),
            ("CMYK", "jpg", "RGB"),
        ],
    )
    def test_modes(self, tmp_path: Path, mode: str, suffix: str, expected: str) -> None:
        path = tmp_path / f"x.{suffix}"
        Image.fromarray(noise(12, 16, 3)).convert(mode).save(path)
        picture = read_picture(path)
        assert (picture.mode, picture.size) == (expected, (16, 12))

    def test_sixteen_bits_keep_the_upper_eight(self, tmp_path: Path) -> None:
        wide = np.random.default_rng(0).integers(0, 2**16, (12, 16), dtype=np.uint16)
        Image.fromarray(wide).save(tmp_path / "x.png")
        picture = read_picture(tmp_path / "x.png")
        assert picture.mode == "L"
        np.testing.assert_array_equal(np.array(picture), wide >> 8)

    def test_palette_with_transparency(self, tmp_path: Path, recwarn: pytest.WarningsRecorder) -> None:
        picture = Image.fromarray(noise(12, 16, 3)).convert("P")
        picture.save(tmp_path / "x.png", transparency=bytes(range(256)))
        assert read_picture(tmp_path / "x.png").mode == "RGB"
        assert not recwarn.list

    def test_orientation_is_not_applied_but_kept(self, tmp_path: Path) -> None:
        exif = Image.Exif()
        exif[0x0112] = 6
        Image.fromarray(noise(12, 16, 3)).save(tmp_path / "x.jpg", exif=exif)
        picture = read_picture(tmp_path / "x.jpg")
        assert picture.size == (16, 12)
        assert picture.getexif()[0x0112] == 6

    @pytest.mark.parametrize(
        ("content", "message"),
        [(b"", "unknown or damaged format"), (b"not a picture", "unknown or damaged format"), (None, "truncated")],
    )
    @pytest.mark.parametrize("suffix", ["jpg", "png"])
    def test_damaged(self, tmp_path: Path, content: bytes | None, message: str, suffix: str) -> None:
        path = tmp_path / f"bad.{suffix}"
        if content is None:
            Image.fromarray(noise(64, 64, 3)).save(path)
            path.write_bytes(path.read_bytes()[:2000])
        else:
            path.write_bytes(content)
        with pytest.raises(InputError, match=rf"bad\.{suffix}: not a readable picture \(.*{message}"):
            read_picture(path)

    @settings(max_examples=40, deadline=None)
    @given(cut=st.integers(0, 700), junk=st.binary(max_size=8))
    def test_any_damage_is_an_input_error(
        self, tmp_path_factory: pytest.TempPathFactory, cut: int, junk: bytes
    ) -> None:
        path = tmp_path_factory.mktemp("damage") / "x.jpg"
        Image.fromarray(noise(16, 16, 3)).save(path)
        whole = path.read_bytes()
        path.write_bytes(whole[:cut] + junk + whole[cut + len(junk) :][: max(0, 600 - cut)])
        with contextlib.suppress(InputError):  # any other error fails the test
            assert read_picture(path).mode in ("RGB", "L")

    def test_missing_and_folder(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"gone\.jpg: no such file"):
            read_picture(tmp_path / "gone.jpg")
        with pytest.raises(InputError, match="is a folder"):
            read_picture(tmp_path)


class TestTrees:
    def test_listing(self, tmp_path: Path) -> None:
        for name in ("b/2.JPEG", "b/10.png", "a/x.jpg", "a-b/y.jpg", "a/deep/z.webp", "top.png"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).touch()
        for ignored in ("a/.hidden.jpg", "a/notes.txt", ".cache/x.jpg", "jpg"):
            (tmp_path / ignored).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / ignored).touch()
        expected = ["a/deep/z.webp", "a/x.jpg", "a-b/y.jpg", "b/10.png", "b/2.JPEG", "top.png"]
        assert list_pictures(tmp_path) == expected

    def test_links_are_followed_once(self, tmp_path: Path) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / "x.jpg").touch()
        root = tmp_path / "root"
        (root / "a").mkdir(parents=True)
        (root / "a" / "loop").symlink_to(root)
        (root / "b").symlink_to(tmp_path / "elsewhere")
        assert list_pictures(root) == ["b/x.jpg"]

    def test_refusals(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="gone: no such folder"):
            list_pictures(tmp_path / "gone")
        with pytest.raises(InputError, match="no pictures in this folder"):
            list_pictures(tmp_path)

    def test_ids(self) -> None:
        assert picture_id("n01440764/x.JPEG") == hash_id("n01440764/x.JPEG")
        assert picture_id("caf\u00e9/x.jpg") == picture_id("cafe\u0301/x.jpg")
        assert picture_id("bad\udcff/x.jpg") != picture_id("bad\udcfe/x.jpg")


class TestResizeAndCrop:
    # Sizes computed with torchvision 0.24: Resize(256), CenterCrop(224).
    @pytest.mark.parametrize(
        ("size", "resized"), [((500, 375), (341, 256)), ((375, 500), (256, 341)), ((100, 333), (256, 852))]
    )
    def test_sizes(self, size: tuple[int, int], resized: tuple[int, int]) -> None:
        picture = Image.new("RGB", size)
        assert resize_and_crop(picture, resize=256).size == resized
        assert resize_and_crop(picture, resize=256, crop=224).size == (224, 224)

    def test_crop_is_centred(self) -> None:
        levels = noise(20, 31)
        cut = np.array(resize_and_crop(Image.fromarray(levels), crop=10))
        np.testing.assert_array_equal(cut, levels[5:15, 10:20])  # round(10.5) is 10, as in torchvision

    def test_nothing_to_do(self) -> None:
        picture = Image.fromarray(noise(16, 24, 3))
        assert resize_and_crop(picture, resize=16).tobytes() == picture.tobytes()

    def test_too_small(self) -> None:
        with pytest.raises(InputError, match="24×16 pixels are too few for a centre crop of 17×17"):
            resize_and_crop(Image.new("L", (24, 16)), crop=17)


class TestDemo:
    def test_deterministic_and_detailed(self) -> None:
        picture = demo_picture(96)
        assert picture.mode == "RGB"
        assert picture.size == (96, 96)
        assert picture.tobytes() == demo_picture(96).tobytes()
        levels = np.array(picture).astype(float)
        assert levels.std() > 40
        assert np.abs(np.diff(levels, axis=1)).mean() > 5

    def test_copies_are_independent(self) -> None:
        demo_picture(32).putpixel((0, 0), (0, 0, 0))
        assert demo_picture(32).getpixel((0, 0)) != (0, 0, 0)
