"""Tensors without ordinary values (sparse, nested, quantised, on the meta device) as images, severities and ids."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import Dataset

import blemish
from blemish.core.errors import InputError
from blemish.corruptions.transform import content_id
from blemish.data.open import open_source
from blemish.models.torch_module import from_module

pytestmark = pytest.mark.filterwarnings("ignore")  # torch calls most of these kinds beta


def kinds(values: Tensor) -> dict[str, Any]:
    """The same values in tensors of every kind."""
    found: dict[str, Any] = {
        "sparse": values.to_sparse(),
        "meta": torch.empty_like(values, device="meta"),
    }
    if values.is_floating_point():
        found["quantised"] = torch.quantize_per_tensor(values, 1 / 255, 0, torch.quint8)
        found["mkldnn"] = values.to_mkldnn()
    if values.ndim > 1:
        found["nested"] = torch.nested.nested_tensor(list(values))
        found["jagged"] = torch.nested.nested_tensor(list(values.flatten(1)), layout=torch.jagged)
    if values.ndim == 1:
        found["CSR"] = values[None].to_sparse_csr()
    return found


IMAGES = ("sparse", "meta", "quantised", "mkldnn", "nested", "jagged", "sparse levels")
NUMBERS = ("sparse", "meta", "quantised", "mkldnn", "CSR")
IDS = ("sparse", "meta", "CSR")
PLAIN = torch.zeros(2, 3, 16, 16, dtype=torch.uint8)


@pytest.mark.parametrize("kind", IMAGES)
def test_images(kind: str) -> None:
    values = torch.rand(2, 3, 16, 16)
    images = values.mul(255).byte().to_sparse() if kind == "sparse levels" else kinds(values)[kind]
    with pytest.raises(InputError):
        blemish.corrupt(images, "fog", severity=2)
    with pytest.raises(InputError):
        blemish.catalog["gaussian_noise"](images, severity=2)
    with pytest.raises(InputError):
        list(blemish.sequences["p:tilt"].frames(images))
    with pytest.raises(InputError):
        content_id(images)
    with pytest.raises(InputError, match="model Flatten: images in a "):
        from_module(nn.Flatten())(images)


@pytest.mark.parametrize("kind", NUMBERS)
def test_severities(kind: str) -> None:
    severities = kinds(torch.ones(2))[kind]
    with pytest.raises(InputError):
        blemish.corrupt(PLAIN, "fog", severity=severities)
    with pytest.raises(InputError):
        blemish.catalog["fog"](PLAIN, severity=severities)


@pytest.mark.parametrize("kind", IDS)
def test_ids(kind: str) -> None:
    ids = kinds(torch.ones(2, dtype=torch.int64))[kind]
    with pytest.raises(InputError):
        blemish.corrupt(PLAIN, "fog", severity=1, ids=ids)
    with pytest.raises(InputError):
        blemish.catalog["fog"](PLAIN, severity=1, ids=ids)


class Images(Dataset[Any]):
    def __init__(self, image: Tensor) -> None:
        self.image = image

    def __len__(self) -> int:
        return 2

    def __getitem__(self, i: int) -> tuple[Tensor, int]:
        return self.image, i


@pytest.mark.parametrize("kind", [kind for kind in IMAGES if kind != "sparse levels"])
def test_datasets(kind: str) -> None:
    with pytest.raises(InputError, match=r"image 0 comes in a .*; expected an ordinary one"):
        open_source(Images(kinds(torch.rand(3, 16, 16))[kind])).read(0)
