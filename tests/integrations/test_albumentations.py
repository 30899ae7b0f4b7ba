"""A corruption in pipelines of Albumentations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import blemish
from blemish.core.errors import InputError
from foreign import foreign
from pictures import pictures

A = foreign("albumentations")

pytestmark = pytest.mark.slow

from blemish.integrations.albumentations import Corrupt  # noqa: E402


def image(row: int = 0) -> np.ndarray:
    return pictures(1, 3, 24, 32, first=row)[0].permute(1, 2, 0).numpy().copy()


def test_the_image_only() -> None:
    mask, boxes = np.ones((24, 32), np.uint8), [[1, 2, 9, 12]]
    pipeline = A.Compose(
        [A.NoOp(), Corrupt("fog", 3)], bbox_params=A.BboxParams(format="pascal_voc", label_fields=["labels"])
    )
    result = pipeline(image=image(), mask=mask, bboxes=boxes, labels=[4])
    np.testing.assert_array_equal(result["image"], blemish.Corrupt("fog", 3)(image()))
    np.testing.assert_array_equal(result["mask"], mask)
    np.testing.assert_allclose(result["bboxes"], boxes, rtol=1e-6)  # it divides by the size, and multiplies again


def test_several_images_have_a_draw_each_unless_they_have_an_id() -> None:
    images = np.stack([image(0), image(1)])
    alone = blemish.Corrupt("gaussian_noise", 3)
    result = A.Compose([Corrupt("gaussian_noise", 3)])(images=images)["images"]
    np.testing.assert_array_equal(result, alone(images))
    named = A.Compose([Corrupt("gaussian_noise", 3, id_from="name")])(images=images, name="a")["images"]
    np.testing.assert_array_equal(named, alone(images, id=[blemish.hash_id("a")] * 2))


@pytest.mark.parametrize(("key", "value", "number"), [("image_id", 7, 7), ("path", "a.jpg", blemish.hash_id("a.jpg"))])
def test_ids_from_the_call(key: str, value: Any, number: int) -> None:
    pipeline = A.Compose([A.HorizontalFlip(p=1.0), Corrupt("gaussian_noise", 3, seed=2, id_from=key)], strict=True)
    result = pipeline(image=image(), **{key: value})
    expected = blemish.Corrupt("gaussian_noise", 3, seed=2)(np.ascontiguousarray(image()[:, ::-1]), id=number)
    np.testing.assert_array_equal(result["image"], expected)
    assert result[key] == value


def test_floats_and_gray() -> None:
    unit = image().astype(np.float32) / 255
    result = Corrupt("fog", 3)(image=unit)["image"]
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, blemish.Corrupt("fog", 3)(unit))
    gray = image()[..., 0].copy()
    np.testing.assert_array_equal(Corrupt("fog", 3)(image=gray)["image"], blemish.Corrupt("fog", 3)(gray))


def test_probability() -> None:
    np.testing.assert_array_equal(A.Compose([Corrupt("fog", 3, p=0.0)])(image=image())["image"], image())


def test_pipelines_are_saved_with_all_settings() -> None:
    pipeline = A.Compose([Corrupt("gaussian_noise", 2.5, seed=9, preset="cifar", p=1.0)])
    again = A.from_dict(A.to_dict(pipeline))
    np.testing.assert_array_equal(again(image=image())["image"], pipeline(image=image())["image"])
    other = A.Compose([Corrupt("gaussian_noise", 2.5, seed=8, preset="cifar", p=1.0)])
    assert (other(image=image())["image"] != pipeline(image=image())["image"]).any()


def test_refusals() -> None:
    with pytest.raises(InputError, match="did you mean fog"):
        Corrupt("fogg", 3)
    with pytest.raises(InputError, match="id_from 3; expected a key"):
        Corrupt("fog", 3, id_from=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"Corrupt requires \['name'\] missing keys"):  # Albumentations' own words
        Corrupt("fog", 3, id_from="name")(image=image())
    with pytest.raises(InputError, match="float images with values in"):
        A.Compose([A.Normalize(), Corrupt("fog", 3)])(image=image())
