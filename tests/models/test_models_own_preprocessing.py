"""What modules say of their input: timm's settings, torchvision's weights, or nothing, which is told."""

from __future__ import annotations

import types
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import blemish
from blemish.core.errors import InputError
from blemish.models.base import Preprocessing
from blemish.models.open import open_model
from blemish.models.own_preprocessing import NOTHING_SAID
from blemish.models.resizing import Resizing
from blemish.models.torch_module import from_module

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
CONFIG = {"input_size": (3, 16, 20), "mean": MEAN, "std": STD, "crop_pct": 0.9, "interpolation": "bicubic"}


class Net(nn.Module):
    def forward(self, values: Tensor) -> Tensor:
        return values.mean((2, 3))


class Weights:
    """What a member of torchvision's enums of weights has."""

    def transforms(self) -> Any:
        return types.SimpleNamespace(crop_size=[24], resize_size=[28], mean=list(MEAN), std=list(STD))


def with_attribute(name: str, value: object) -> nn.Module:
    net = Net()
    setattr(net, name, value)
    return net


class TestTimm:
    @pytest.mark.parametrize("name", ["pretrained_cfg", "default_cfg"])
    @pytest.mark.parametrize("settings", [CONFIG, types.SimpleNamespace(**CONFIG)])
    def test_settings_are_read_and_told(self, name: str, settings: object) -> None:
        model = from_module(with_attribute(name, settings))
        assert model.preprocessing == Preprocessing(
            size=(16, 20), mean=MEAN, std=STD, resizing=Resizing("bicubic", to=None)
        )
        assert model.assumed is not None
        told = f"size 16×20, mean 0.485, 0.456, 0.406, std 0.229, 0.224, 0.225, read from its {name}"
        assert model.assumed.startswith(told)

    @pytest.mark.parametrize(
        ("more", "resizing"),
        [
            ({}, None),
            ({"interpolation": "bicubic"}, Resizing("bicubic", to=27)),  # 24 / 0.875 = 27.4
            ({"interpolation": "bilinear", "crop_pct": 0.95}, Resizing("bilinear", to=25)),  # 25.3
            ({"interpolation": "bicubic", "crop_pct": 0.9, "crop_mode": "squash"}, Resizing("bicubic", to=(26, 26))),
            ({"interpolation": "random"}, None),
        ],
    )
    def test_resizing(self, more: dict[str, Any], resizing: Resizing | None) -> None:
        config = {"input_size": (3, 24, 24), "mean": MEAN, "std": STD, **more}
        assert from_module(with_attribute("pretrained_cfg", config)).preprocessing.resizing == resizing

    def test_gray(self) -> None:
        config = {"input_size": (1, 28, 28), "mean": (0.5,), "std": (0.5,)}
        assert from_module(with_attribute("pretrained_cfg", config)).preprocessing.channels == "gray"

    def test_through_wrappers_that_pass_images_on(self) -> None:
        model = from_module(nn.DataParallel(with_attribute("pretrained_cfg", CONFIG)))
        assert model.preprocessing.mean == MEAN
        # One that normalises by itself is no such wrapper.
        assert (
            from_module(nn.Sequential(nn.Identity(), with_attribute("pretrained_cfg", CONFIG))).assumed == NOTHING_SAID
        )

    @pytest.mark.parametrize(
        "settings", [{}, {"input_size": (3, 8, 8)}, {"input_size": None, "mean": 1, "std": 2}, "x"]
    )
    def test_settings_that_say_nothing(self, settings: object) -> None:
        model = from_module(with_attribute("pretrained_cfg", settings))
        assert model.preprocessing == Preprocessing()
        assert model.assumed == NOTHING_SAID

    def test_what_is_given_goes_before(self) -> None:
        model = from_module(with_attribute("pretrained_cfg", CONFIG), preprocessing=Preprocessing(mean=(0.5,)))
        assert model.preprocessing.mean == (0.5,)
        assert model.assumed is None


class TestTorchvision:
    @pytest.mark.parametrize("given", [Weights(), Weights().transforms()])
    def test_weights_or_their_transform_can_be_given(self, given: object) -> None:
        model = from_module(Net(), preprocessing=given)
        assert model.preprocessing == Preprocessing(size=(24, 24), mean=MEAN, std=STD)
        assert model.assumed is None

    def test_weights_that_somebody_attached(self) -> None:
        model = from_module(with_attribute("weights", Weights()))
        assert model.preprocessing.size == (24, 24)
        assert model.assumed is not None
        assert "read from its weights" in model.assumed

    def test_a_parameter_of_that_name_is_none(self) -> None:
        assert from_module(with_attribute("weights", nn.Parameter(torch.ones(3)))).assumed == NOTHING_SAID

    def test_anything_else_is_refused(self) -> None:
        with pytest.raises(
            InputError, match="a preprocessing of type dict; expected a Preprocessing, or torchvision's"
        ):
            from_module(Net(), preprocessing={"mean": 0.5})


class TestAssumed:
    def test_mean_or_std_settle_it(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "own_net.py").write_text(
            "import torch\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x.mean((2, 3))\n"
        )
        monkeypatch.chdir(tmp_path)
        spec = "python:own_net:Net"
        assert open_model(spec, device="cpu").assumed == NOTHING_SAID
        assert open_model(spec, device="cpu", size=16).assumed == NOTHING_SAID
        assert open_model(spec, device="cpu", mean=0.5, std=0.5).assumed is None
        assert open_model(spec, device="cpu", mean=0, std=1).assumed is None

    def test_files(self, tmp_path: Path) -> None:
        torch.save(Net(), tmp_path / "net.pth")
        model = open_model(tmp_path / "net.pth", device="cpu", allow_code=True)
        assert model.assumed == NOTHING_SAID
        onnx = pytest.importorskip("onnx", reason="writes ONNX files")
        pytest.importorskip("onnxruntime", reason="reads ONNX files")
        kind, helper = onnx.TensorProto.FLOAT, onnx.helper
        mean = helper.make_node("ReduceMean", ["x"], ["y"], axes=[2, 3], keepdims=0)
        ends = [helper.make_tensor_value_info(*end) for end in (("x", kind, ["N", 3, 8, 8]), ("y", kind, ["N", 3]))]
        graph = helper.make_graph([mean], "g", ends[:1], ends[1:])
        found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        onnx.save(found, tmp_path / "net.onnx")
        assert open_model(tmp_path / "net.onnx", device="cpu").assumed == NOTHING_SAID

    def test_who_says_it_or_takes_levels_is_not_told(self) -> None:
        assert open_model("demo:plain", device="cpu").assumed is None
        assert blemish.from_module(Net(), preprocessing=blemish.Preprocessing()).assumed is None
