"""Array files as sources, and array files that claim more than they hold."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from blemish.core import memory
from blemish.core.errors import InputError
from blemish.core.memory import available_memory
from blemish.data.array_source import array_source
from blemish.data.arrays import read_arrays, read_members
from conftest import SHARED


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


class TestArraySource:
    def test_npz(self, tmp_path: Path) -> None:
        images = noise(4, 8, 9, 3)
        np.savez(tmp_path / "x.npz", images=images, labels=[3, 0, 1, 2], classes=["a", "b", "c", "d"])
        source = array_source(tmp_path / "x.npz")
        assert source.names == ("0", "1", "2", "3")
        assert source.ids.tolist() == [0, 1, 2, 3]
        assert source.labels.tolist() == [3, 0, 1, 2]
        assert source.classes == ("a", "b", "c", "d")
        assert source.channels == 3
        np.testing.assert_array_equal(np.asarray(source.read(2)), images[2])

    @pytest.mark.parametrize("shape", [(4, 8, 9), (4, 8, 9, 1)])
    def test_gray_stays_gray(self, tmp_path: Path, shape: tuple[int, ...]) -> None:
        np.save(tmp_path / "x.npy", noise(*shape))
        np.save(tmp_path / "y.npy", np.arange(4))
        source = array_source(tmp_path / "x.npy", tmp_path / "y.npy")
        assert source.channels == 1
        assert source.read(1).mode == "L"
        np.testing.assert_array_equal(np.asarray(source.read(1)), noise(*shape)[1].reshape(8, 9))

    def test_stamps_tell_images_apart(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "x.npz", images=noise(2, 8, 8), labels=[0, 1])
        stamp = array_source(tmp_path / "x.npz").stamp
        assert stamp is not None
        assert stamp(0) != stamp(1)

    def test_labels_are_needed(self, tmp_path: Path) -> None:
        np.save(tmp_path / "x.npy", noise(4, 8, 9))
        with pytest.raises(InputError, match=r"x\.npy: no labels"):
            array_source(tmp_path / "x.npy")
        with pytest.raises(InputError, match="no such file"):
            array_source(tmp_path / "gone.npy")

    def test_classes_have_to_be_names_of_all_labels(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "x.npz", images=noise(2, 8, 8), labels=[0, 2], classes=["a", "b"])
        with pytest.raises(InputError, match="label 2 of 2 classes"):
            array_source(tmp_path / "x.npz")
        np.savez(tmp_path / "x.npz", images=noise(2, 8, 8), labels=[0, 2], classes=[1, 2, 3])
        with pytest.raises(InputError, match="expected a row of names"):
            array_source(tmp_path / "x.npz")


class TestEncoded:
    def parts(self, count: int = 3) -> dict[str, Any]:
        files = []
        for number in range(count):
            buffer = io.BytesIO()
            Image.new("RGB", (9, 8), (number, 0, 0)).save(buffer, "PNG")
            files.append(buffer.getvalue())
        offsets = np.cumsum([0, *map(len, files)])
        return {"bytes": np.frombuffer(b"".join(files), np.uint8), "offsets": offsets, "labels": np.arange(count)}

    def test_reading(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "x.npz", **self.parts())
        source = array_source(tmp_path / "x.npz")
        assert [source.read(i).getpixel((0, 0)) for i in range(3)] == [(0, 0, 0), (1, 0, 0), (2, 0, 0)]
        np.save(tmp_path / "y.npy", [5, 6, 7])
        assert array_source(tmp_path / "x.npz", tmp_path / "y.npy").labels.tolist() == [5, 6, 7]

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"offsets": np.array([0, 10, 5, 20])}, "do not ascend"),
            ({"offsets": np.array([0, 10, 50, 10**9])}, "do not ascend"),
            ({"offsets": np.array([-1, 10, 50, 60])}, "do not ascend"),
            ({"offsets": np.zeros(4)}, "offsets of type float64"),
            ({"bytes": np.zeros((2, 2), np.uint8)}, "expected one row of uint8"),
            ({"labels": np.arange(2)}, "for 3 images"),
        ],
    )
    def test_refusals(self, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
        np.savez(tmp_path / "x.npz", **{**self.parts(), **changes})
        with pytest.raises(InputError, match=message):
            array_source(tmp_path / "x.npz")

    def test_missing_parts_and_damaged_pictures(self, tmp_path: Path) -> None:
        parts = self.parts()
        np.savez(tmp_path / "x.npz", bytes=parts["bytes"], offsets=parts["offsets"])
        with pytest.raises(InputError, match="without labels"):
            array_source(tmp_path / "x.npz")
        np.savez(tmp_path / "x.npz", **{**parts, "bytes": np.zeros_like(parts["bytes"])})
        with pytest.raises(InputError, match=r"x\.npz, picture 1: not a readable picture"):
            array_source(tmp_path / "x.npz").read(1)

    def test_real_pictures(self) -> None:
        path = SHARED / "data" / "cifar10_jpeg_test.npz"
        if not path.is_file():
            pytest.skip("the pictures (../shared/data/cifar10_jpeg_test.npz) are not beside this checkout")
        source = array_source(path)
        assert len(source) == 10_000
        assert source.classes is not None
        assert source.classes[:2] == ("airplane", "automobile")
        assert (np.bincount(source.labels) == 1000).all()  # CIFAR-10's test set is balanced
        assert source.read(9999).size == (32, 32)


def archive(path: Path, **members: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return path


def npy(array: np.ndarray, *, claim: tuple[int, ...] | None = None) -> bytes:
    """The bytes of an array file whose header may lie."""
    buffer = io.BytesIO()
    shape = array.shape if claim is None else claim
    np.lib.format.write_array_header_1_0(
        buffer, {"descr": np.lib.format.dtype_to_descr(array.dtype), "fortran_order": False, "shape": shape}
    )
    return buffer.getvalue() + array.tobytes()


class TestHostileArchives:
    def test_a_header_that_lies(self, tmp_path: Path) -> None:
        path = archive(tmp_path / "x.npz", images=npy(noise(2, 8, 8, 3), claim=(10**9, 100, 100, 3)))
        with pytest.raises(InputError, match="claims an array of shape"):
            read_arrays(path)

    @pytest.mark.parametrize("claim", [(-1, 8, 8, 3), (2**62, 2**62, 8, 3)])
    def test_impossible_shapes(self, tmp_path: Path, claim: tuple[int, ...]) -> None:
        path = archive(tmp_path / "x.npz", images=npy(noise(2, 8, 8, 3), claim=claim))
        with pytest.raises(InputError, match=r"x\.npz: not a readable array file"):
            read_arrays(path)
        (tmp_path / "x.npy").write_bytes(npy(noise(2, 8, 8, 3), claim=claim))
        with pytest.raises(InputError, match=r"x\.npy: not a readable array file"):
            read_arrays(tmp_path / "x.npy")

    def test_a_zip_bomb(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = archive(tmp_path / "x.npz", images=npy(np.zeros((50, 256, 256, 3), np.uint8)))
        assert path.stat().st_size < 20_000
        monkeypatch.setattr(memory, "available_memory", lambda: 5 * 2**20)
        with pytest.raises(InputError, match=r"x\.npz claims 9\.4 MiB, but 5\.0 MiB of memory are free"):
            read_arrays(path)

    def test_several_members_count_together(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        half = npy(np.zeros((4, 512, 512, 3), np.uint8))
        path = archive(tmp_path / "x.npz", images=half, x=half)
        monkeypatch.setattr(memory, "available_memory", lambda: 4 * 2**20)
        with pytest.raises(InputError, match="claims"):
            read_arrays(path)

    @pytest.mark.parametrize("name", ["x.npz", "x.npy"])
    def test_objects_in_archives(self, tmp_path: Path, name: str) -> None:
        with (tmp_path / name).open("wb") as file:
            np.savez(file, images=np.array([{}], dtype=object))
        with pytest.raises(InputError, match="not a readable array file"):
            read_arrays(tmp_path / name)

    def test_the_content_decides_not_the_name(self, tmp_path: Path) -> None:
        with (tmp_path / "x.npy").open("wb") as file:
            np.savez(file, images=noise(2, 8, 8, 3))
        assert read_arrays(tmp_path / "x.npy").images.shape == (2, 8, 8, 3)
        with (tmp_path / "y.npz").open("wb") as file:
            np.save(file, noise(2, 8, 8, 3))
        assert read_arrays(tmp_path / "y.npz").images.shape == (2, 8, 8, 3)

    def test_damaged_members(self, tmp_path: Path) -> None:
        path = archive(tmp_path / "x.npz", images=npy(noise(20, 16, 16, 3)))
        whole = bytearray(path.read_bytes())
        whole[2000:2100] = bytes(100)
        path.write_bytes(whole)
        with pytest.raises(InputError, match="not a readable array file"):
            read_arrays(path)

    def test_encrypted_members(self, tmp_path: Path) -> None:
        path = archive(tmp_path / "x.npz", images=npy(noise(2, 8, 8, 3)))
        whole = bytearray(path.read_bytes())
        for mark, place in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            whole[whole.index(mark) + place] |= 1
        path.write_bytes(whole)
        with pytest.raises(InputError, match="not a readable array file"):
            read_members(path, ("images",))


def test_available_memory_is_plausible() -> None:
    assert 2**20 < available_memory() < 2**50
