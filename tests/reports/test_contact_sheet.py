"""The contact sheet: size, what is where, and sources of any shape."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from blemish.core.errors import InputError
from blemish.corruptions.catalog import Catalog, catalog
from blemish.data.demo import demo_picture
from blemish.reports.contact_sheet import _presets, contact_sheet

PAPER = (251, 250, 247)


@pytest.fixture(scope="module")
def picture() -> Image.Image:
    return demo_picture(64)


def test_rows_and_columns_fit(picture: Image.Image) -> None:
    one = contact_sheet(picture, ["contrast"], severities=[1, 2, 3, 4])
    more = contact_sheet(picture, ["contrast", "saturate"], severities=[1, 2, 3, 4, 5])
    assert one.mode == "RGB"
    assert (more.width - one.width, more.height - one.height) == (134, 134)


def test_margins_are_clear(picture: Image.Image) -> None:
    sheet = np.array(contact_sheet(picture, ["elastic_transform", "jpeg_compression", "fog"], severities=[1]))
    for edge in (sheet[:20], sheet[-20:], sheet[:, :20], sheet[:, -20:]):
        assert (edge == PAPER).all()


def test_severity_zero_is_the_clean_column(picture: Image.Image) -> None:
    sheet = np.array(contact_sheet(picture, ["fog"], severities=[0, 5]))
    right = sheet.shape[1] - 28
    rows = slice(sheet.shape[0] - 28 - 134, sheet.shape[0] - 28 - 6)
    clean, zero, five = (sheet[rows, right - 134 * i - 128 : right - 134 * i] for i in (2, 1, 0))
    np.testing.assert_array_equal(clean, zero)
    assert (clean != five).mean() > 0.5


@pytest.mark.parametrize(("size", "mode"), [((300, 20), "L"), ((9, 200), "RGB"), ((500, 400), "RGBA"), ((32, 32), "P")])
def test_any_picture(size: tuple[int, int], mode: str) -> None:
    sheet = contact_sheet(Image.new(mode, size), ["contrast"], severities=[3])
    assert sheet.width > 300


def test_catalogs_and_determinism(picture: Image.Image) -> None:
    small = Catalog(catalog["fog"], catalog["impulse_noise"])
    first = contact_sheet(picture, small, severities=[2], seed=1)
    assert (
        first.tobytes() == contact_sheet(picture, [catalog["fog"], "impulse_noise"], severities=[2], seed=1).tobytes()
    )
    assert first.tobytes() != contact_sheet(picture, small, severities=[2], seed=2).tobytes()


def test_refusals(picture: Image.Image) -> None:
    with pytest.raises(InputError, match="did you mean fog"):
        contact_sheet(picture, ["fogg"])
    with pytest.raises(InputError, match="no corruptions"):
        contact_sheet(picture, [])
    with pytest.raises(InputError, match="no severities"):
        contact_sheet(picture, ["fog"], severities=[])
    with pytest.raises(InputError, match="severity 7"):
        contact_sheet(picture, ["fog"], severities=[7])


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["laion:stickers"], "severities for all image sizes"),
        (["laion:stickers", "fog"], "preset cifar (nearest to a shorter side of 40 px)"),
        (["med:bubble", "med:gaussian_noise"], "preset pathmnist, dermamnist (the first data set with settings)"),
    ],
)
def test_the_settings_of_all_rows_are_named(names: list[str], said: str) -> None:
    """Not only those of the first: of MedMNIST-C's noise the first data set is DermaMNIST."""
    tables = [catalog[name].table for name in names]
    assert _presets(tables, None, Image.new("RGB", (48, 40))) == said
