"""Models from Python functions and from TOML files; what users say about them; what they did wrong."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor

from blemish.core.errors import InputError
from blemish.corruptions.catalog import catalog
from blemish.models.base import Preprocessing, Training
from blemish.models.open import open_model, trained_corruptions


def batch() -> Tensor:
    return torch.randint(0, 256, (4, 3, 16, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(5))


CODE = """
import torch
from blemish.models.base import Classifier
from blemish.models.torch_module import from_module

class Mean(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(1))
    def forward(self, values):
        return values.mean((2, 3)) * self.scale

def net(): return Mean()
def classifier(): return from_module(Mean(), name="mine")
def levels():
    def scores(images):
        assert images.dtype == torch.uint8
        return images.float().mean((2, 3)) / 255
    return scores
def wrong(): return 3
def fails(): raise OSError("disk on fire")
def with_arguments(x): return Mean()
class Holder:
    make = staticmethod(net)
number = 4
"""

_counter = itertools.count()


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module in the current folder, under a name that no other test has."""
    name = f"user_models_{next(_counter)}"
    (tmp_path / f"{name}.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    return name


class TestPython:
    @pytest.mark.parametrize("function", ["net", "classifier", "levels", "Holder.make"])
    def test_what_a_function_may_return(self, code: str, function: str) -> None:
        model = open_model(f"python:{code}:{function}", device="cpu")
        torch.testing.assert_close(model(batch()), (batch().float() / 255).mean((2, 3)).softmax(1))

    def test_estimator(self, code: str, tmp_path: Path) -> None:
        pytest.importorskip("sklearn")
        (tmp_path / f"{code}_sk.py").write_text(
            "import numpy as np\nfrom sklearn.linear_model import LogisticRegression\n"
            "def make():\n    return LogisticRegression().fit(np.eye(768)[:4], [0, 1, 2, 1])\n"
        )
        model = open_model(f"python:{code}_sk:make", device="cpu")
        assert (model.kind, model(batch()).shape) == ("sklearn", (4, 3))

    def test_weights(self, code: str, tmp_path: Path) -> None:
        torch.save({"scale": torch.tensor([2.0])}, tmp_path / "w.pth")
        model = open_model(f"python:{code}:net", weights="w.pth", device="cpu")
        torch.testing.assert_close(model(batch()), (batch().float() / 255).mean((2, 3)).mul(2).softmax(1))
        assert model.weights != open_model(f"python:{code}:net", device="cpu").weights
        with pytest.raises(InputError, match="returns a function; expected a torch module"):
            open_model(f"python:{code}:levels", weights="w.pth", device="cpu")

    @pytest.mark.parametrize(
        ("function", "said"),
        [
            ("missing", "has no 'missing'; it has Classifier, Holder, Mean, classifier"),
            ("wrong", "returns a int; expected a torch module"),
            ("fails", r"raised OSError: disk on fire \(user_models_\d+.py, line 21\)"),
            ("with_arguments", "raised TypeError"),
            ("number", "number is a int; expected a function"),
        ],
    )
    def test_errors_name_what_failed(self, code: str, function: str, said: str) -> None:
        with pytest.raises(InputError, match=said):
            open_model(f"python:{code}:{function}", device="cpu")

    def test_modules_that_fail(self, code: str, tmp_path: Path) -> None:
        (tmp_path / f"{code}_a.py").write_text("import nowhere_at_all")
        (tmp_path / f"{code}_b.py").write_text("x = 1 / 0")
        for target, said in (
            ("no_such_module_here:make", "no module 'no_such_module_here', neither installed nor in"),
            (f"{code}_a:make", "needs nowhere_at_all, which is not installed"),
            (f"{code}_b:make", r"raised ZeroDivisionError: division by zero \(.*line 1\)"),
            ("only_a_module", "expected python:package.module:function"),
        ):
            with pytest.raises(InputError, match=said):
                open_model(f"python:{target}", device="cpu")

    def test_levels_cannot_be_scaled(self, code: str) -> None:
        with pytest.raises(InputError, match="8-bit levels"):
            open_model(f"python:{code}:levels", mean=0.5, device="cpu")


class TestSettings:
    def test_arguments_go_before_the_file(self, code: str, tmp_path: Path) -> None:
        (tmp_path / "deep").mkdir()
        torch.save({"scale": torch.tensor([2.0])}, tmp_path / "deep" / "w.pth")
        (tmp_path / "deep" / "m.toml").write_text(
            f'model = "python:{code}:net"\nweights = "w.pth"\nname = "tuned"\nsize = [24, 20]\nmean = [0.1, 0.2, 0.3]\n'
            'std = 0.5\nchannels = "bgr"\nskip_classes = 1\ntrained_on = ["noise", "fog"]\naugmentations = ["flips"]\n'
        )
        model = open_model("deep/m.toml", device="cpu", allow_code=True)
        said = model.describe()
        assert (said.name, said.skip_classes) == ("tuned", 1)
        assert said.preprocessing == Preprocessing((24, 20), (0.1, 0.2, 0.3), (0.5,), "bgr", "nchw", levels=False)
        assert said.training == Training(
            ("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise", "fog"), ("flips",)
        )
        other = open_model(
            "deep/m.toml", device="cpu", size=16, name="other", mean=0.5, trained_on=["snow"], allow_code=True
        )
        assert (other.name, other.preprocessing.size, other.preprocessing.mean) == ("other", (16, 16), (0.5,))
        assert other.training.corruptions == ("snow",)
        assert other.weights == model.weights

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ('model = "demo:plain"\nmeans = 0.5', "unknown setting 'means'; did you mean mean"),
            ("name = 'x'", "no model in it"),
            ('model = "demo:plain"\nsize = "big"', "size 'big'"),
            ('model = "demo:plain"\nmean = true', "mean True"),
            ('model = "demo:plain"\nmean = [0.1, 0.2]', "mean of 2 values"),
            ('model = "demo:plain"\nstd = inf', "std .inf,.; expected positive, finite"),
            ('model = "demo:plain"\nmean = nan', "mean .nan,.; expected finite"),
            (f'model = "demo:plain"\nmean = 1{"0" * 400}', "not readable as TOML"),
            ('model = "demo:plain"\nskip_classes = 1.5', "skip_classes 1.5"),
            ('model = "demo:plain"\nname = 3', "name = 3; expected a text"),
            ('model = "demo:plain"\ntrained_on = [3]', "expected a list of texts"),
            ('model = "demo:plain"\noutputs_are = "scores"', "output 'scores'"),
            ('model = "demo:plain"\nchannels = "cmyk"', "channels 'cmyk'"),
            ('model = "demo:plain"\ntrained_on = ["gausian_noise"]', "did you mean gaussian_noise"),
            ("model = ", "not readable as TOML"),
        ],
    )
    def test_refusals(self, tmp_path: Path, text: str, said: str) -> None:
        (tmp_path / "m.toml").write_text(text)
        with pytest.raises(InputError, match=said):
            open_model(tmp_path / "m.toml", device="cpu")

    def test_files_are_named_from_where_the_settings_lie(self, tmp_path: Path) -> None:
        (tmp_path / "m.toml").write_text('model = "net.onnx"')
        with pytest.raises(InputError, match=f"{tmp_path}/net.onnx: no such file"):
            open_model(tmp_path / "m.toml", device="cpu")

    def test_other_texts(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="expected timm:NAME, torchvision:NAME, hf:ORG/NAME, open_clip:"):
            open_model("resnet50")
        with pytest.raises(
            InputError, match="no such file; a model of the Hugging Face hub is given as hf:microsoft/res"
        ):
            open_model("microsoft/resnet-50")
        with pytest.raises(InputError, match="expected a model that can take them"):
            open_model("demo:plain", weights="w.pth")
        with pytest.raises(InputError, match="no such file"):
            open_model(tmp_path / "none.toml")
        with pytest.raises(InputError, match="demo network 'fancy'; expected plain or noisy"):
            open_model("demo:fancy")


class TestTrainedOn:
    def test_families_stand_for_their_members(self) -> None:
        assert trained_corruptions(["noc"]) == tuple(name for name in catalog if name.startswith("noc:"))
        assert trained_corruptions(["fog", "weather", "fog"])[0] == "fog"
        assert len(set(trained_corruptions(["fog", "weather"]))) == len(trained_corruptions(["fog", "weather"]))
        assert trained_corruptions(["p:tilt"]) == ("p:tilt",)

    def test_one_text_is_one_name(self) -> None:
        assert open_model("demo:plain", device="cpu", trained_on="fog").training.corruptions == ("fog",)

    def test_what_the_model_says_of_itself_stays(self) -> None:
        model = open_model("demo:noisy", device="cpu", trained_on=["fog"])
        assert model.training.corruptions == ("gaussian_noise", "fog")
