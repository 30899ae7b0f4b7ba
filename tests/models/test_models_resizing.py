"""Pictures brought to the size of a model's input, against Pillow itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from PIL import Image

from blemish.core.errors import InputError
from blemish.models.base import Preprocessing
from blemish.models.resizing import Resizing

FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
}


@pytest.fixture
def picture() -> Image.Image:
    levels = np.random.Generator(np.random.PCG64(3)).integers(0, 256, (50, 71, 3), dtype=np.uint8)
    return Image.fromarray(levels)


def tensor(picture: Image.Image) -> torch.Tensor:
    return torch.from_numpy(np.array(picture)).permute(2, 0, 1)[None].contiguous()


@pytest.mark.parametrize("name", FILTERS)
@pytest.mark.parametrize("size", [(24, 24), (64, 40), (90, 100)])
def test_pressed_into_shape_as_by_pillow(picture: Image.Image, name: str, size: tuple[int, int]) -> None:
    made = Resizing(name)(tensor(picture), size)  # type: ignore[arg-type]
    expected = tensor(picture.resize(size[::-1], FILTERS[name]))
    assert made.dtype == torch.uint8
    assert torch.equal(made, expected)


@pytest.mark.parametrize(("middle", "left"), [("down", 6), ("even", 6)])
def test_the_middle_is_cut_out(picture: Image.Image, middle: str, left: int) -> None:
    """A shorter side of 28 makes 28×39 of 50×71 (28 · 71 / 50 = 39.76); 39 − 26 = 13 columns are too many."""
    made = Resizing("bicubic", 28, middle)(tensor(picture), (26, 26))  # type: ignore[arg-type]
    larger = tensor(picture.resize((39, 28), Image.Resampling.BICUBIC))
    assert torch.equal(made, larger[..., 1:27, left : left + 26])


def test_half_a_pixel_goes_down_or_to_the_even_place(picture: Image.Image) -> None:
    """39 − 24 = 15 columns: 7 in front by rounding down, 8 to the even place."""
    larger = tensor(picture.resize((39, 28), Image.Resampling.BILINEAR))
    for middle, left in (("down", 7), ("even", 8)):
        made = Resizing("bilinear", 28, middle)(tensor(picture), (24, 24))  # type: ignore[arg-type]
        assert torch.equal(made, larger[..., 2:26, left : left + 24])


def test_pictures_of_the_same_shape_are_not_cut(picture: Image.Image) -> None:
    """Those of a benchmark were cut before they were corrupted."""
    square = picture.crop((0, 0, 48, 48))
    resizing = Resizing("bicubic", to=28)
    assert torch.equal(resizing(tensor(square), (24, 24)), tensor(square.resize((24, 24), Image.Resampling.BICUBIC)))
    assert resizing(tensor(square), (48, 48)).equal(tensor(square))


def test_values_that_are_no_levels_pass_gradients(picture: Image.Image) -> None:
    """Studies adapt models by gradients, and show them noise that was not rounded."""
    for name in FILTERS:
        resizing = Resizing(name, to=28)  # type: ignore[arg-type]
        values = tensor(picture).float().requires_grad_()
        made = resizing(values, (24, 24))
        made.sum().backward()
        assert values.grad is not None
        assert (made.detach().clamp(0, 255) - resizing(tensor(picture), (24, 24)).float()).abs().max() < 1.5


def test_in_a_preprocessing(picture: Image.Image) -> None:
    prepared = Preprocessing(size=(24, 24), mean=(0.5,), std=(0.25,), resizing=Resizing("bicubic", (32, 30)))
    larger = tensor(picture.resize((30, 32), Image.Resampling.BICUBIC))[..., 4:28, 3:27]
    assert torch.allclose(prepared(tensor(picture)), (larger / 255 - 0.5) / 0.25, atol=1e-6)


@pytest.mark.parametrize("name", FILTERS)
def test_the_same_levels_on_a_gpu(picture: Image.Image, device: torch.device, name: str) -> None:
    for size in ((24, 24), (64, 40), (90, 100)):
        resizing = Resizing(name, to=110)  # type: ignore[arg-type]
        assert torch.equal(resizing(tensor(picture).to(device), size).cpu(), resizing(tensor(picture), size))


def test_for_another_size() -> None:
    assert Resizing("bicubic", to=256).for_size((384, 320)) == Resizing("bicubic", to=384)
    assert Resizing("bicubic", to=(256, 256)).for_size((384, 384)) == Resizing("bicubic")
    assert Resizing("nearest").for_size((384, 384)) == Resizing("nearest")


def test_refusals(picture: Image.Image) -> None:
    with pytest.raises(InputError, match="interpolation 'lanczos'; expected nearest, bilinear, bicubic"):
        Resizing("lanczos")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="middle 'up'; expected down, even"):
        Resizing(middle="up")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="50×71 pixels are brought to 20×28, of which 24×24 cannot be cut"):
        Resizing(to=20)(tensor(picture), (24, 24))
