"""Array files: shapes, labels, mapping, and what is refused."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from blemish.core.errors import InputError
from blemish.data.arrays import read_arrays


def noise(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.parametrize("shape", [(5, 8, 9, 3), (5, 8, 9, 1), (5, 8, 9)])
def test_npy_is_mapped(tmp_path: Path, shape: tuple[int, ...]) -> None:
    np.save(tmp_path / "x.npy", noise(*shape))
    data = read_arrays(tmp_path / "x.npy")
    assert isinstance(data.images, np.memmap)
    assert data.labels is None
    np.testing.assert_array_equal(data.images, noise(*shape))


@pytest.mark.parametrize(("images", "labels"), [("images", "labels"), ("x", "y"), ("data", "labels")])
def test_npz_keys(tmp_path: Path, images: str, labels: str) -> None:
    np.savez(tmp_path / "x.npz", **{images: noise(5, 8, 9, 3), labels: np.arange(5)[:, None], "other": np.zeros(2)})
    data = read_arrays(tmp_path / "x.npz")
    np.testing.assert_array_equal(data.images, noise(5, 8, 9, 3))
    assert data.labels is not None
    np.testing.assert_array_equal(data.labels, np.arange(5))


def test_labels_of_their_own(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", noise(5, 8, 9, 3))
    np.save(tmp_path / "y.npy", np.arange(5, dtype=np.uint8))
    labels = read_arrays(tmp_path / "x.npy", labels=tmp_path / "y.npy").labels
    assert labels is not None
    assert labels.dtype == np.uint8


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (noise(5, 8, 9, 3).astype(float), "type float64; expected uint8"),
        (noise(5, 8, 9, 4), r"shape \(5, 8, 9, 4\)"),
        (noise(5, 3, 8, 9), r"expected \(N, height, width, 3\)"),
        (noise(32, 32, 3), "looks like one picture"),
        (noise(0, 8, 9, 3), "no images in it"),
        (noise(5, 7, 9, 3), "7×9 pixels"),
        (noise(5), r"shape \(5,\)"),
    ],
)
def test_bad_images(tmp_path: Path, images: np.ndarray, message: str) -> None:
    np.save(tmp_path / "x.npy", images)
    with pytest.raises(InputError, match=rf"x\.npy: .*{message}"):
        read_arrays(tmp_path / "x.npy")


@pytest.mark.parametrize(
    ("labels", "message"),
    [(np.zeros(5), "type float64; expected whole numbers"), (np.arange(4), r"shape \(4,\) for 5 images")],
)
def test_bad_labels(tmp_path: Path, labels: np.ndarray, message: str) -> None:
    np.save(tmp_path / "x.npy", noise(5, 8, 9, 3))
    np.save(tmp_path / "y.npy", labels)
    with pytest.raises(InputError, match=rf"y\.npy: labels of {message}"):
        read_arrays(tmp_path / "x.npy", labels=tmp_path / "y.npy")


@pytest.mark.parametrize("suffix", ["npy", "npz"])
def test_damaged_files(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x.{suffix}"
    for content in (b"", b"nonsense"):
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"not a readable array file|an empty file"):
            read_arrays(path)
    if suffix == "npy":
        np.save(path, noise(5, 8, 9, 3))
    else:
        np.savez(path, images=noise(5, 8, 9, 3))
    path.write_bytes(path.read_bytes()[:-300])
    with pytest.raises(InputError, match="not a readable array file"):
        read_arrays(path)


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="not a readable array file"):
        read_arrays(tmp_path / "x.npy")


def test_missing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_arrays(tmp_path / "x.npy")
    np.savez(tmp_path / "x.npz", pixels=noise(5, 8, 9, 3))
    with pytest.raises(InputError, match="holds pixels; expected one of images, x, data"):
        read_arrays(tmp_path / "x.npz")


def header(shape: str) -> bytes:
    """An array file with a header that says this shape, and bytes enough for it."""
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}}}".encode()
    text += b" " * (63 - (10 + len(text)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(3000)


@pytest.mark.parametrize(
    "shape",
    [
        "(True, 16, 16, 3)",
        "(2, True, 16, 3)",
        "(False, 16, 16, 3)",
        "(2, 16, 16, True)",
        "(-2, 16, 16, 3)",
        "(2.0, 16, 16, 3)",
        "('2', 16, 16, 3)",
        "(None, 16, 16, 3)",
        "[2, 16, 16, 3]",
        "2",
        "(" * 900 + ")" * 900,
        "(" + "9" * 5000 + ",)",
        "(1,) * 10",
        f"({2**63}, 16, 16, 3)",
        f"({2**62}, {2**62}, 16, 3)",
        "(0, 16, 16, 3)",
    ],
)
def test_shapes_that_are_none(shape: str, tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(header(shape))
    with pytest.raises(InputError):
        read_arrays(tmp_path / "x.npy")
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("images.npy", header(shape))
    with pytest.raises(InputError):
        read_arrays(tmp_path / "x.npz")


def test_a_shape_that_is_one(tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(header("(2, 16, 16, 3)"))
    assert read_arrays(tmp_path / "x.npy").images.shape == (2, 16, 16, 3)
