"""Models of Keras 3, by the library itself, on torch."""

from __future__ import annotations

import importlib.util
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from blemish.core.errors import InputError
from blemish.models.keras_file import _keras
from blemish.models.open import open_model
from foreign import foreign

# It calls NumPy in a way of its version 1.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")]


@pytest.fixture(scope="module")
def keras() -> Any:
    if importlib.util.find_spec("keras") is None:
        foreign("keras")  # which skips
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library = _keras()
    assert "KERAS_BACKEND" not in os.environ
    assert library.backend.backend() == "torch"
    return library


def net(keras: Any, *last: Any, shape: tuple[int | None, int | None, int] = (8, 10, 3)) -> Any:
    keras.utils.set_random_seed(3)
    layers = keras.layers
    return keras.Sequential([keras.Input(shape), layers.Conv2D(4, 3), layers.GlobalAveragePooling2D(), *last])


def levels() -> torch.Tensor:
    generator = np.random.Generator(np.random.PCG64(4))
    return torch.from_numpy(generator.integers(0, 256, (2, 3, 8, 10), dtype=np.uint8))


@pytest.mark.parametrize("activation", ["softmax", None])
def test_the_same_as_keras(keras: Any, tmp_path: Path, activation: str | None) -> None:
    made = net(keras, keras.layers.Dense(5, activation=activation))
    made.save(tmp_path / "net.keras")
    model = open_model(tmp_path / "net.keras", device="cpu", allow_code=True)
    expected = torch.from_numpy(made.predict(levels().permute(0, 2, 3, 1).numpy() / np.float32(255), verbose=0))
    expected = expected if activation else expected.softmax(1)
    assert torch.allclose(model(levels()), expected, atol=1e-5)
    assert (model.kind, model.name, model.output) == ("keras", "net", "probabilities" if activation else "logits")
    assert (model.preprocessing.size, model.preprocessing.layout) == ((8, 10), "nhwc")
    assert model.card is not None
    assert model.card.parameters == made.count_params()
    assert model.assumed is not None


def test_pictures_of_any_size(keras: Any, tmp_path: Path) -> None:
    made = net(keras, keras.layers.Dense(5), shape=(None, None, 3))
    made.save(tmp_path / "net.keras")
    assert open_model(tmp_path / "net.keras", device="cpu", allow_code=True)(levels()).shape == (2, 5)


def test_refusals(keras: Any, tmp_path: Path) -> None:
    net(keras, keras.layers.Dense(5)).save(tmp_path / "net.keras")
    with pytest.raises(InputError, match=r"a model of Keras, which can hold code.*--allow-code"):
        open_model(tmp_path / "net.keras", device="cpu")
    (tmp_path / "bad.keras").write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(InputError, match="not a readable Keras model"):
        open_model(tmp_path / "bad.keras", device="cpu", allow_code=True)
    model = open_model(tmp_path / "net.keras", device="cpu", allow_code=True, channels="gray")
    with pytest.raises(InputError, match=r"refuses an input of shape \(2, 8, 10, 1\)"):
        model(levels())
