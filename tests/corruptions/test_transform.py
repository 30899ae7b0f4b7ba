"""Kinds of images, ids, the transform in loaders, and what is refused."""

from __future__ import annotations

import hashlib
import io
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader

from blemish.core.errors import InputError
from blemish.core.rng import hash_id
from blemish.corruptions.catalog import catalog
from blemish.corruptions.transform import Corrupt, content_id, corrupt
from frost_files import skip_without_files
from numbered import Numbered

NAMES = ("gaussian_noise", "fog", "jpeg_compression")


def levels(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, shape, dtype=np.uint8)


def as_chw(image: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(image.transpose(2, 0, 1)))


@pytest.fixture
def picture() -> np.ndarray:
    return levels(24, 32, 3)


@pytest.fixture
def batch() -> np.ndarray:
    return levels(3, 24, 32, 3)


class TestKinds:
    @pytest.mark.parametrize("name", NAMES)
    def test_same_pixels_across_kinds(self, picture: np.ndarray, name: str) -> None:
        tensor = as_chw(picture)
        expected = corrupt(tensor, name, severity=3, ids=5)
        assert expected.shape == tensor.shape
        assert expected.dtype == torch.uint8
        hwc = expected.permute(1, 2, 0).numpy()
        np.testing.assert_array_equal(corrupt(picture, name, severity=3, ids=5), hwc)
        np.testing.assert_array_equal(np.array(corrupt(Image.fromarray(picture), name, severity=3, ids=5)), hwc)
        as_float = corrupt(tensor.float() / 255, name, severity=3, ids=5)
        assert as_float.dtype == torch.float32
        # A float image arrives as v / 255, a uint8 one as v · (1 / 255): one bit apart before truncation.
        assert (as_float * 255 - expected).abs().max() < 1.001

    @pytest.mark.parametrize("name", NAMES)
    def test_batches(self, batch: np.ndarray, name: str) -> None:
        result = corrupt(batch, name, severity=2, ids=[4, 5, 6])
        assert result.shape == batch.shape
        assert result.dtype == np.uint8
        assert result.flags.c_contiguous
        tensors = corrupt(torch.from_numpy(batch).permute(0, 3, 1, 2), name, severity=2, ids=torch.tensor([4, 5, 6]))
        np.testing.assert_array_equal(tensors.permute(0, 2, 3, 1).numpy(), result)
        pictures = corrupt([Image.fromarray(image) for image in batch], name, severity=2, ids=range(4, 7))
        assert isinstance(pictures, list)
        for row, one in enumerate(pictures):
            np.testing.assert_array_equal(np.array(one), result[row])
            np.testing.assert_array_equal(corrupt(batch[row], name, severity=2, ids=4 + row), result[row])

    def test_ids_default_to_positions(self, batch: np.ndarray) -> None:
        expected = corrupt(batch, "fog", severity=2, ids=[0, 1, 2])
        np.testing.assert_array_equal(corrupt(batch, "fog", severity=2), expected)
        np.testing.assert_array_equal(corrupt(batch[0], "fog", severity=2), expected[0])

    @pytest.mark.parametrize("shape", [(24, 32), (24, 32, 1), (2, 24, 32, 1)])
    def test_gray_arrays(self, shape: tuple[int, ...]) -> None:
        result = corrupt(levels(*shape), "gaussian_noise", severity=1)
        assert result.shape == shape
        assert result.dtype == np.uint8

    def test_gray_picture(self) -> None:
        result = corrupt(Image.fromarray(levels(24, 32)), "fog", severity=1)
        assert result.mode == "L"
        assert result.size == (32, 24)

    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ">f4"])
    def test_float_arrays(self, picture: np.ndarray, dtype: str) -> None:
        result = corrupt((picture / 255).astype(dtype), "gaussian_noise", severity=1)
        assert result.dtype == np.dtype(dtype)
        assert result.min() >= 0
        assert result.max() <= 1

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
    def test_float_tensors(self, picture: np.ndarray, dtype: torch.dtype) -> None:
        assert corrupt((as_chw(picture) / 255).to(dtype), "fog", severity=1).dtype == dtype

    def test_any_strides(self, picture: np.ndarray) -> None:
        flipped = picture[::-1, ::-1]
        flipped.flags.writeable = False
        expected = corrupt(flipped.copy(), "fog", severity=2)
        np.testing.assert_array_equal(corrupt(flipped, "fog", severity=2), expected)
        wide = torch.from_numpy(flipped.copy()).permute(2, 0, 1)  # channels last in memory
        np.testing.assert_array_equal(corrupt(wide, "fog", severity=2).permute(1, 2, 0).numpy(), expected)

    def test_pictures_of_different_sizes_and_severities(self) -> None:
        shapes = [(24, 32, 3), (40, 24, 3), (24, 32, 3), (24, 32)]
        pictures = tuple(Image.fromarray(levels(*shape, seed=i)) for i, shape in enumerate(shapes))
        results = corrupt(pictures, "gaussian_noise", severity=[1, 2, 3.5, 0], ids=[7, 8, 9, 10])
        assert isinstance(results, tuple)
        for i, (before, after) in enumerate(zip(pictures, results, strict=True)):
            assert (after.mode, after.size) == (before.mode, before.size)
            alone = corrupt(before, "gaussian_noise", severity=[1, 2, 3.5, 0][i], ids=7 + i)
            assert alone.tobytes() == after.tobytes()

    def test_input_is_untouched(self, batch: np.ndarray) -> None:
        before = batch.copy()
        corrupt(batch, "gaussian_noise", severity=5)
        np.testing.assert_array_equal(batch, before)
        unit = torch.rand(2, 3, 16, 16)
        kept = unit.clone()
        corrupt(unit, "gaussian_noise", severity=5)
        assert torch.equal(unit, kept)

    def test_gradients_stay_out(self) -> None:
        assert not corrupt(torch.rand(3, 16, 16, requires_grad=True), "fog", severity=1).requires_grad

    def test_severity_zero_is_the_identity(self, picture: np.ndarray) -> None:
        np.testing.assert_array_equal(corrupt(picture, "fog", severity=0), picture)

    def test_a_corruption_instead_of_a_name(self, picture: np.ndarray) -> None:
        expected = corrupt(picture, "fog", severity=2)
        np.testing.assert_array_equal(corrupt(picture, catalog["fog"], severity=2), expected)

    def test_preset(self, picture: np.ndarray) -> None:
        small = corrupt(picture, "gaussian_noise", severity=2)
        np.testing.assert_array_equal(corrupt(picture, "gaussian_noise", severity=2, preset="cifar"), small)
        assert (corrupt(picture, "gaussian_noise", severity=2, preset="imagenet") != small).any()

    @settings(max_examples=15, deadline=None)
    @given(
        height=st.integers(8, 40),
        width=st.integers(8, 40),
        gray=st.booleans(),
        severity=st.floats(0, 5),
        seed=st.integers(-(2**63), 2**64 - 1),
        number=st.integers(-(2**63), 2**64 - 1),
    )
    def test_picture_and_array_agree(
        self, height: int, width: int, gray: bool, severity: float, seed: int, number: int
    ) -> None:
        image = levels(height, width) if gray else levels(height, width, 3)
        result = corrupt(image, "speckle_noise", severity=severity, seed=seed, ids=number)
        assert result.shape == image.shape
        again = corrupt(Image.fromarray(image), "speckle_noise", severity=severity, seed=seed, ids=number)
        np.testing.assert_array_equal(np.array(again), result)


class TestTransform:
    @pytest.mark.parametrize("with_ids", [True, False])
    def test_workers_do_not_matter(self, with_ids: bool) -> None:
        data = Numbered(with_ids)
        expected = torch.stack([data[i] for i in range(len(data))])
        for workers, batch_size in ((0, 3), (1, 2), (2, 2)):
            loaded = torch.cat(list(DataLoader(data, batch_size=batch_size, num_workers=workers)))
            assert torch.equal(loaded, expected)

    def test_spawned_workers(self) -> None:
        data = Numbered(with_ids=True)
        loader = DataLoader(data, batch_size=4, num_workers=1, multiprocessing_context="spawn")
        assert torch.equal(torch.cat(list(loader)), torch.stack([data[i] for i in range(len(data))]))

    @pytest.mark.parametrize("name", list(catalog))
    def test_pickling(self, name: str, picture: np.ndarray) -> None:
        skip_without_files(catalog[name])
        transform = Corrupt(name, severity=catalog[name].only_severity or 2, seed=3, preset="cifar")
        copy = pickle.loads(pickle.dumps(transform))
        assert repr(copy) == repr(transform)
        np.testing.assert_array_equal(copy(picture, id=4), transform(picture, id=4))

    def test_is_corrupt_with_an_id(self, picture: np.ndarray) -> None:
        expected = corrupt(picture, "fog", severity=3, seed=2, ids=9)
        np.testing.assert_array_equal(Corrupt("fog", 3, seed=2)(picture, id=9), expected)

    def test_without_an_id_the_content_decides(self, batch: np.ndarray) -> None:
        transform = Corrupt("gaussian_noise", severity=3)
        once, other = transform(batch[0]), transform(batch[1])
        np.testing.assert_array_equal(transform(batch[0]), once)
        np.testing.assert_array_equal(transform(batch)[1], other)
        np.testing.assert_array_equal(once, corrupt(batch[0], "gaussian_noise", severity=3, ids=content_id(batch[0])))

    def test_content_id_is_the_same_for_every_kind(self, picture: np.ndarray) -> None:
        chw = np.ascontiguousarray(picture.transpose(2, 0, 1))
        digest = hashlib.blake2b(b"(3, 24, 32)" + chw.tobytes(), digest_size=8).digest()
        expected = int.from_bytes(digest, "little", signed=True)
        kinds = [picture, Image.fromarray(picture), as_chw(picture), as_chw(picture) / 255, picture / 255]
        assert [content_id(kind) for kind in kinds] == [expected] * len(kinds)

    def test_content_id_depends_on_shape_and_pixels(self) -> None:
        flat = np.zeros((8, 16, 3), np.uint8)
        dot = flat.copy()
        dot[0, 0, 0] = 1
        assert len({content_id(image) for image in (flat, dot, flat.reshape(16, 8, 3))}) == 3

    def test_repr_shows_how_the_preset_is_chosen(self) -> None:
        shown = repr(Corrupt("fog", severity=3))
        assert shown.startswith("Corrupt('fog', severity=3, seed=0, preset=<nearest to the shorter side: cifar 32,")
        assert repr(Corrupt("fog", 2.5, preset="cifar")) == "Corrupt('fog', severity=2.5, seed=0, preset='cifar')"

    def test_a_label_is_not_taken_for_an_id(self, picture: np.ndarray) -> None:
        image = as_chw(picture)
        result, label = Corrupt("fog", 3)(image, 7)
        assert label == 7
        assert torch.equal(result, Corrupt("fog", 3)(image))

    @pytest.mark.parametrize("severity", [-0.1, 5.01, float("nan"), float("inf"), "three", None])
    def test_severity_is_checked_at_once(self, severity: float) -> None:
        with pytest.raises(InputError, match=r"severity .*expected a number in 0 … 5"):
            Corrupt("fog", severity)

    def test_settings_are_checked_at_once(self) -> None:
        with pytest.raises(InputError, match="did you mean fog"):
            Corrupt("fogg", 3)
        with pytest.raises(InputError, match="unknown preset 'imagenet65'"):
            Corrupt("fog", 3, preset="imagenet65")
        with pytest.raises(InputError, match=r"seed 1\.5; expected a whole number"):
            Corrupt("fog", 3, seed=1.5)  # type: ignore[arg-type]


def truncated_picture() -> Image.Image:
    buffer = io.BytesIO()
    Image.fromarray(levels(64, 64, 3)).save(buffer, "JPEG")
    return Image.open(io.BytesIO(buffer.getvalue()[:1500]))


BAD_IMAGES = {
    "CHW array": (levels(3, 24, 24), "channels first"),
    "BCHW array": (levels(2, 3, 24, 24), "channels first"),
    "gray stack": (levels(5, 24, 24), r"images\[\.\.\., None\]"),
    "four channels": (levels(24, 24, 4), "expected 1 or 3 channels"),
    "flat array": (levels(24), r"shape \(24,\)"),
    "int array": (levels(24, 24, 3).astype(np.int64), "type int64; expected uint8"),
    "bool array": (levels(24, 24, 3) > 3, "type bool"),
    "float levels": (levels(24, 24, 3).astype(np.float32), r"divide 0–255 levels by 255"),
    "NaN array": (np.full((24, 24, 3), np.nan), "not-a-number"),
    "empty array": (levels(0, 24, 24, 3), "empty batch"),
    "small array": (levels(7, 24, 3), "7×24 pixels; expected at least 8×8"),
    "hollow array": (np.zeros((2, 0, 24, 3), np.uint8), "0×24 pixels"),
    "HWC tensor": (torch.zeros(24, 24, 3, dtype=torch.uint8), "channels last"),
    "two channels": (torch.zeros(1, 2, 24, 24), "2 channels; expected 1 or 3"),
    "HW tensor": (torch.zeros(24, 24), r"shape \(24, 24\)"),
    "int tensor": (torch.zeros(3, 24, 24, dtype=torch.int32), "type torch.int32"),
    "negative tensor": (torch.full((3, 24, 24), -0.1), r"values in \[-0\.1, -0\.1\]"),
    "bright tensor": (torch.full((3, 24, 24), 1.5), r"values in \[1\.5, 1\.5\]"),
    "NaN tensor": (torch.full((3, 24, 24), torch.nan), "not-a-number"),
    "infinite tensor": (torch.full((3, 24, 24), torch.inf), "inf"),
    "empty tensor": (torch.zeros(0, 3, 24, 24), "empty batch"),
    "small tensor": (torch.zeros(3, 24, 7), "24×7 pixels"),
    "palette": (Image.new("P", (24, 24)), "mode 'P'; expected RGB or L"),
    "transparent": (Image.new("RGBA", (24, 24)), "mode 'RGBA'"),
    "CMYK": (Image.new("CMYK", (24, 24)), "mode 'CMYK'"),
    "16 bits": (Image.new("I;16", (24, 24)), "mode 'I;16'"),
    "small picture": (Image.new("RGB", (24, 7)), "24×7 pixels"),
    "truncated": (truncated_picture(), "cannot be decoded"),
    "empty list": ([], "an empty list"),
    "list of arrays": ([levels(24, 24, 3)], "ndarray at position 0"),
    "list with a bad one": ([Image.new("RGB", (24, 24)), Image.new("RGB", (4, 24))], "position 1 has 4×24"),
    "text": ("cat.jpg", "images of type str"),
    "nothing": (None, "images of type NoneType"),
}


class TestRefusals:
    @pytest.mark.parametrize("case", BAD_IMAGES)
    def test_images(self, case: str) -> None:
        images, message = BAD_IMAGES[case]
        with pytest.raises(InputError, match=message):
            corrupt(images, "gaussian_noise", severity=3)
        with pytest.raises(InputError, match=message):
            Corrupt("gaussian_noise", 3)(images)

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("gausian_noise", "did you mean gaussian_noise"),
            ("zzz", "see blemish list"),
            (None, "unknown corruption"),
        ],
    )
    def test_name(self, picture: np.ndarray, name: str, message: str) -> None:
        with pytest.raises(InputError, match=message):
            corrupt(picture, name, severity=3)

    @pytest.mark.parametrize("severity", [-1, 5.5, float("nan"), [1, 2], "hard", None])
    def test_severity(self, picture: np.ndarray, severity: float) -> None:
        with pytest.raises(InputError, match="severit"):
            corrupt(picture, "fog", severity=severity)

    @pytest.mark.parametrize("severity", [[1, 2, 3], [1, 9], float("nan"), "hard"])
    def test_severity_of_a_list(self, severity: float) -> None:
        pictures = [Image.new("RGB", (24, 24)), Image.new("RGB", (32, 24))]
        with pytest.raises(InputError, match="severit"):
            corrupt(pictures, "fog", severity=severity)

    @pytest.mark.parametrize(
        ("ids", "message"),
        [
            ([1, 2], "2 ids for 3 images"),
            (1, "one id .* for a batch"),
            (torch.tensor(1), "one id .* for a batch"),
            ([1, 2, 2.5], "id 2.5; expected a whole number"),
            (torch.tensor([1.0, 2.0, 3.0]), "id 1.0; expected a whole number"),
            (["a", "b", "c"], "hash_id makes one"),
            ("abc", "id 'abc'"),
            ([1, 2, 2**64 + 1], "id 18446744073709551617; expected a number of 64 bits, in −2⁶³ … 2⁶⁴ − 1"),
            ([1, 2, -(2**63) - 1], "id -9223372036854775809; expected a number of 64 bits"),
        ],
    )
    def test_ids(self, batch: np.ndarray, ids: list[int], message: str) -> None:
        with pytest.raises(InputError, match=message):
            corrupt(batch, "fog", severity=1, ids=ids)

    def test_wide_ids_wrap(self, picture: np.ndarray) -> None:
        number = hash_id("a")
        expected = corrupt(picture, "fog", severity=1, ids=number)
        np.testing.assert_array_equal(corrupt(picture, "fog", severity=1, ids=number % 2**64), expected)
        np.testing.assert_array_equal(corrupt(picture, "fog", severity=1, ids=np.array([number])), expected)
        np.testing.assert_array_equal(corrupt(picture, "fog", severity=1, ids=np.int64(number)), expected)
        with pytest.raises(InputError, match="id 18446744073709551617; expected a number of 64 bits"):
            corrupt(picture, "fog", severity=1, ids=2**64 + 1)
        with pytest.raises(InputError, match="id 18446744073709551617; expected a number of 64 bits"):
            Corrupt("fog", severity=1)(picture, id=2**64 + 1)

    def test_preset_and_seed(self, picture: np.ndarray) -> None:
        with pytest.raises(InputError, match="unknown preset 'big'; expected one of"):
            corrupt(picture, "fog", severity=1, preset="big")
        with pytest.raises(InputError, match="seed 'x'"):
            corrupt(picture, "fog", severity=1, seed="x")  # type: ignore[arg-type]
