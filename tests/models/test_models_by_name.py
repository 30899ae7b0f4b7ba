"""Models of timm and torchvision, which stand-ins replace here: neither has to be installed."""

from __future__ import annotations

import enum
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from blemish.core.errors import InputError, StorageError
from blemish.models.open import open_model


class Mean(nn.Module):
    """Scores of three classes: the mean of each channel of what it is given, times a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, values: Tensor) -> Tensor:
        return values.mean((2, 3)) * self.scale


def module(name: str, **members: Any) -> types.ModuleType:
    made = types.ModuleType(name)
    vars(made).update(members)
    return made


@pytest.fixture
def timm(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """A stand-in for timm that records what was created."""
    created: list[tuple[str, bool]] = []

    def create_model(name: str, pretrained: bool) -> nn.Module:
        created.append((name, pretrained))
        if pretrained and name == "offline":
            raise ConnectionError("Name or service not known")
        return Mean()

    config = {"input_size": (3, 16, 20), "mean": (0.5, 0.5, 0.5), "std": (0.25, 0.25, 0.25), "crop_pct": 0.9}
    data = module("timm.data", resolve_model_data_config=lambda _: config)
    known = ["resnet18", "resnet50", "offline"]
    fake = module(
        "timm",
        data=data,
        create_model=create_model,
        is_model=lambda name: name.split(".")[0] in known,
        list_models=lambda: known,
    )
    monkeypatch.setitem(sys.modules, "timm", fake)
    monkeypatch.setitem(sys.modules, "timm.data", data)
    return created


class Weights(enum.Enum):
    IMAGENET1K_V1 = (24, 0.4)
    IMAGENET1K_V2 = (32, 0.5)
    DEFAULT = IMAGENET1K_V2

    @property
    def meta(self) -> dict[str, Any]:
        """As torchvision has it, in percent; the second weights come without."""
        return {"_metrics": {"ImageNet-1K": {"acc@1": 76.13}}} if self is Weights.IMAGENET1K_V1 else {}

    def transforms(self) -> Any:
        side, mean = self.value
        return types.SimpleNamespace(crop_size=[side], mean=[mean] * 3, std=[0.25] * 3)


@pytest.fixture
def torchvision(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    created: list[Any] = []

    def get_model(name: str, weights: Any) -> nn.Module:
        created.append((name, weights))
        return Mean()

    models = module("torchvision.models", get_model=get_model, get_model_weights=lambda _: Weights)
    models.list_models = lambda module: ["resnet50"] if module is models else []  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torchvision", module("torchvision", models=models))
    monkeypatch.setitem(sys.modules, "torchvision.models", models)
    return created


class TestByName:
    def test_timm(self, timm: list[tuple[str, bool]]) -> None:
        model = open_model("timm:resnet50.a1_in1k", device="cpu")
        assert timm == [("resnet50.a1_in1k", True)]
        assert (model.name, model.preprocessing.size) == ("resnet50.a1_in1k", (16, 20))
        white = torch.full((1, 3, 16, 20), 255, dtype=torch.uint8)
        assert model.forward(model.preprocessing(white)).tolist() == [[2.0, 2.0, 2.0]]  # (1 − 0.5) / 0.25

    def test_timm_with_own_weights(self, timm: list[tuple[str, bool]], tmp_path: Path) -> None:
        torch.save({"scale": torch.tensor([3.0])}, tmp_path / "w.pth")
        model = open_model("timm:offline", weights=tmp_path / "w.pth", device="cpu")
        assert timm == [("offline", False)]
        white = torch.full((1, 3, 16, 20), 255, dtype=torch.uint8)
        assert model.forward(model.preprocessing(white)).tolist() == [[6.0, 6.0, 6.0]]

    @pytest.mark.parametrize("source", ["hf_hub:someone/net", "hf-hub:someone/net", "local-dir:here", "HF-Hub:a/b"])
    def test_timm_from_anyone(self, timm: list[tuple[str, bool]], source: str) -> None:
        """Versions of timm unpickle what they find there."""
        with pytest.raises(InputError, match=f"timm:{source}: .*unpickle.*--allow-code"):
            open_model(f"timm:{source}", device="cpu")
        assert timm == []
        open_model(f"timm:{source}", device="cpu", allow_code=True)
        assert timm == [(source, True)]

    @pytest.mark.usefixtures("timm")
    def test_timm_refusals(self) -> None:
        with pytest.raises(InputError, match="did you mean resnet50"):
            open_model("timm:resnet5")
        with pytest.raises(StorageError, match=r"timm:offline: .*ConnectionError: Name or service.*--weights FILE"):
            open_model("timm:offline")

    def test_torchvision(self, torchvision: list[Any]) -> None:
        best = open_model("torchvision:resnet50", device="cpu")
        first = open_model("torchvision:resnet50.IMAGENET1K_V1", device="cpu")
        assert torchvision == [("resnet50", Weights.IMAGENET1K_V2), ("resnet50", Weights.IMAGENET1K_V1)]
        assert (best.name, best.preprocessing.size) == ("resnet50.IMAGENET1K_V2", (32, 32))
        assert (first.name, first.preprocessing.mean) == ("resnet50.IMAGENET1K_V1", (0.4, 0.4, 0.4))
        assert first.card is not None
        assert best.card is not None
        (claim,) = first.card.claims
        assert (claim.accuracy, claim.of_imagenet, best.card.claims) == (pytest.approx(0.7613), True, ())
        with pytest.raises(InputError, match="no weights 'V3'; expected IMAGENET1K_V1, IMAGENET1K_V2"):
            open_model("torchvision:resnet50.V3")
        with pytest.raises(InputError, match="did you mean resnet50"):
            open_model("torchvision:resnet51")

    @pytest.mark.parametrize(
        ("text", "library"),
        [("timm:resnet50", "timm"), ("torchvision:resnet50", "torchvision"), ("hf:some/net", "transformers")],
    )
    def test_without_the_library(self, text: str, library: str, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in (library, f"{library}.models", f"{library}.data"):
            monkeypatch.setitem(sys.modules, name, None)
        with pytest.raises(InputError, match=f"needs {library}; install it with: pip install {library}"):
            open_model(text)

    def test_a_library_built_for_another_torch(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "timm").mkdir()
        (tmp_path / "timm" / "__init__.py").write_text("raise RuntimeError('operator nms does not exist')")
        monkeypatch.delitem(sys.modules, "timm", raising=False)
        monkeypatch.syspath_prepend(tmp_path)
        with pytest.raises(InputError, match=r"timm is installed but cannot be imported .operator nms does not exist"):
            open_model("timm:resnet50")
