"""A corruption in pipelines of mmcv."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import blemish
from blemish.core.errors import InputError
from blemish.integrations.mmcv import BlemishCorrupt
from foreign import foreign
from pictures import pictures


def image(row: int = 0) -> np.ndarray:
    return pictures(1, 3, 24, 32, first=row)[0].permute(1, 2, 0).numpy().copy()


def test_colours_are_in_the_order_of_mmcv() -> None:
    """Snow whitens by a gray that weighs the colours, so that it can tell the orders apart."""
    expected = blemish.Corrupt("snow", 4)(image())
    result = BlemishCorrupt("snow", 4)({"img": image()[..., ::-1].copy()})["img"]
    np.testing.assert_array_equal(result[..., ::-1], expected)
    assert result.flags.c_contiguous
    as_rgb = BlemishCorrupt("snow", 4, channel_order="rgb")({"img": image()})["img"]
    np.testing.assert_array_equal(as_rgb, expected)
    assert (BlemishCorrupt("snow", 4)({"img": image()})["img"] != expected).any()


def test_the_rest_is_handed_on() -> None:
    boxes = np.array([[1, 2, 9, 12]])
    before = {"img": image(), "gt_bboxes": boxes, "img_shape": (24, 32)}
    after = BlemishCorrupt("fog", 3).transform(before)
    assert after["gt_bboxes"] is boxes
    assert after["img_shape"] == (24, 32)
    np.testing.assert_array_equal(before["img"], image())
    gray = BlemishCorrupt("fog", 3)({"img": image()[..., 0]})["img"]
    np.testing.assert_array_equal(gray, blemish.Corrupt("fog", 3)(image()[..., 0]))


@pytest.mark.parametrize(("key", "value", "number"), [("img_id", 7, 7), ("img_path", "a", blemish.hash_id("a"))])
def test_ids(key: str, value: Any, number: int) -> None:
    transform = BlemishCorrupt("gaussian_noise", 3, channel_order="rgb", id_from=key)
    result = transform({"img": image(), key: value})["img"]
    np.testing.assert_array_equal(result, blemish.Corrupt("gaussian_noise", 3)(image(), id=number))


def test_refusals() -> None:
    with pytest.raises(InputError, match="channel_order 'gbr'; expected bgr or rgb"):
        BlemishCorrupt("fog", 3, channel_order="gbr")
    with pytest.raises(InputError, match="results with img of type NoneType"):
        BlemishCorrupt("fog", 3)({})
    with pytest.raises(InputError, match="no ids called 'img_id'"):
        BlemishCorrupt("fog", 3, id_from="img_id")({"img": image()})
    with pytest.raises(InputError, match="id_from 1; expected a key"):
        BlemishCorrupt("fog", 3, id_from=1)  # type: ignore[arg-type]


@pytest.mark.slow
def test_in_a_configured_pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a file on the disk, by the names of a configuration, as MMDetection and others do it."""
    transforms, utils = foreign("mmcv.transforms"), foreign("mmengine.utils")
    monkeypatch.delitem(sys.modules, "blemish.integrations.mmcv")
    utils.import_modules_from_strings(["blemish.integrations.mmcv"])  # what custom_imports does
    path = str(tmp_path / "a.png")
    Image.fromarray(image()).save(path)
    steps = [
        {"type": "LoadImageFromFile"},
        {"type": "BlemishCorrupt", "name": "snow", "severity": 4, "id_from": "img_path"},
        {"type": "Resize", "scale": (16, 16)},
    ]
    corrupted = transforms.Compose(steps[:2])({"img_path": path})["img"]
    expected = blemish.Corrupt("snow", 4)(image(), id=blemish.hash_id(path))
    np.testing.assert_array_equal(corrupted[..., ::-1], expected)
    assert transforms.Compose(steps)({"img_path": path})["img"].shape == (16, 16, 3)
