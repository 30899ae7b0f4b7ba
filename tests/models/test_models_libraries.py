"""Models of timm and torchvision, by the libraries themselves: random weights, and nothing is downloaded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from blemish.core.errors import InputError, StorageError
from blemish.models.open import open_model
from blemish.models.own_preprocessing import NOTHING_SAID, as_preprocessing
from blemish.models.resizing import Resizing
from blemish.models.torch_module import from_module
from foreign import foreign

pytestmark = pytest.mark.slow

SHAPES = [(300, 420), (224, 301)]


def picture(height: int, width: int) -> Image.Image:
    levels = np.random.Generator(np.random.PCG64(6)).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(levels)


def as_batch(shown: Image.Image) -> Tensor:
    return torch.from_numpy(np.array(shown)).permute(2, 0, 1)[None].contiguous()


class TestTimm:
    # A residual network (0.95 of the picture, bicubic), one of 1.0, and one that presses pictures into shape.
    NAMES = ("resnet18.a1_in1k", "vit_tiny_patch16_384.augreg_in21k_ft_in1k", "convnextv2_atto.fcmae_ft_in1k")

    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("name", NAMES)
    def test_pixel_for_pixel(self, name: str, shape: tuple[int, int]) -> None:
        timm = foreign("timm")
        network = timm.create_model(name, pretrained=False)
        config = timm.data.resolve_model_data_config(network)
        expected = timm.data.create_transform(**config, is_training=False)(picture(*shape))[None]
        model = from_module(network)
        assert torch.allclose(model.preprocessing(as_batch(picture(*shape))), expected, atol=1e-5)
        assert model.assumed is not None
        assert "read from its pretrained_cfg" in model.assumed

    def test_by_name(self, tmp_path: Path) -> None:
        timm = foreign("timm")
        network = timm.create_model("resnet18.a1_in1k", pretrained=False)
        foreign("safetensors.torch").save_file(dict(network.state_dict()), tmp_path / "w.safetensors")
        model = open_model("timm:resnet18.a1_in1k", weights=tmp_path / "w.safetensors", device="cpu")
        assert model.weights == from_module(network).weights
        assert model.preprocessing.resizing == Resizing("bicubic", to=235)  # 224 / 0.95
        assert model.card is not None
        assert (model.card.parameters, model.card.input_size) == (
            11_689_512,
            (224, 224),
        )  # He et al. 2016: 11.7 million
        assert model.card.training_data == ()  # weights of one's own say nothing of their training
        with pytest.raises(InputError, match="timm knows no model 'resnet8'; did you mean"):
            open_model("timm:resnet8")

    def test_without_a_network(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        foreign("timm")
        constants = foreign("huggingface_hub.constants")
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
        with pytest.raises(StorageError, match=r"timm:resnet18.a1_in1k: its pretrained weights could not be had"):
            open_model("timm:resnet18.a1_in1k", device="cpu")


class TestTorchvision:
    @pytest.mark.parametrize("shape", SHAPES)
    @pytest.mark.parametrize("name", ["ResNet18_Weights.IMAGENET1K_V1", "ViT_B_16_Weights.IMAGENET1K_SWAG_E2E_V1"])
    def test_pixel_for_pixel(self, name: str, shape: tuple[int, int]) -> None:
        """The weights' own transform of a picture; that of a tensor resizes by torch, and rounds otherwise."""
        models = foreign("torchvision.models")
        weights = models.get_weight(name)
        expected = weights.transforms()(picture(*shape))[None]
        assert torch.allclose(as_preprocessing(weights)(as_batch(picture(*shape))), expected, atol=1e-5)

    def test_by_name(self, tmp_path: Path) -> None:
        models = foreign("torchvision.models")
        network = models.resnet18(weights=None)
        torch.save(network.state_dict(), tmp_path / "w.pth")
        model = open_model("torchvision:resnet18", weights=tmp_path / "w.pth", device="cpu")
        assert model.weights == from_module(network).weights
        assert model.preprocessing.resizing == Resizing("bilinear", to=256)
        assert model(as_batch(picture(40, 50))).shape == (1, 1000)
        with pytest.raises(InputError, match=r"no weights 'V3'; expected IMAGENET1K_V1"):
            open_model("torchvision:resnet18.V3")

    def test_bare_modules_say_nothing_until_weights_are_attached(self) -> None:
        models = foreign("torchvision.models")
        network = models.resnet18(weights=None)
        assert from_module(network).assumed == NOTHING_SAID
        network.weights = models.ResNet18_Weights.DEFAULT
        model = from_module(network)
        assert model.preprocessing == as_preprocessing(models.ResNet18_Weights.DEFAULT)
        assert "read from its weights" in str(model.assumed)
