"""Code of models: settings may not ask for it by themselves, and it cannot end the program as if all was well."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from blemish.core.errors import InputError
from blemish.models.base import Classifier
from blemish.models.code import ending_refused
from blemish.models.open import open_model
from blemish.models.portable import portable
from blemish.models.torch_module import from_module
from blemish.studies.adaptation.base import adaptable
from blemish.studies.overlap.plan import STANDARD, Plan, build_net
from blemish.studies.overlap.trainees import Group, TrainingJob
from blemish.studies.overlap.training import Schedule

CODE = """
import sys
from pathlib import Path
import torch

Path("imported").touch()

class Net(torch.nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(classes))
    def forward(self, values):
        if self.training:
            sys.exit(0)
        return values.mean((2, 3)) * 9

def net(): return Net()
def leaves(): sys.exit(0)
"""


def batch() -> Tensor:
    return torch.randint(0, 256, (4, 3, 16, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(5))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with modules that no other test has imported."""
    (tmp_path / "leaving_models.py").write_text(CODE)
    (tmp_path / "leaving_at_once.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    for name in ("leaving_models", "leaving_at_once"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


class TestSettingsThatNameCode:
    def test_they_need_permission(self, folder: Path) -> None:
        (folder / "m.toml").write_text('model = "python:leaving_models:net"\n')
        said = r"m\.toml: names python:leaving_models:net, which runs code.*--allow-code.*allow_code=True"
        with pytest.raises(InputError, match=said):
            open_model(folder / "m.toml", device="cpu")
        assert not (folder / "imported").exists()
        model = open_model(folder / "m.toml", device="cpu", allow_code=True)
        assert model(batch()).shape == (4, 3)
        assert portable(model).open(torch.device("cpu"))(batch()).shape == (4, 3)

    def test_a_text_that_the_user_gives_is_permission(self, folder: Path) -> None:
        assert open_model("python:leaving_models:net", device="cpu")(batch()).shape == (4, 3)
        assert (folder / "imported").exists()


class Leaving(nn.Module):
    """Leaves at a chosen moment, in a chosen way."""

    def __init__(self, moment: str, error: BaseException) -> None:
        super().__init__()
        self.moment, self.error = moment, error

    def _pass(self, moment: str) -> None:
        if moment == self.moment:
            raise self.error

    def forward(self, values: Tensor) -> Tensor:
        self._pass("forward")
        return values.mean((2, 3)) * 9

    def state_dict(self, *args: object, **kwargs: object) -> dict[str, object]:  # type: ignore[override]
        self._pass("state")
        return super().state_dict(*args, **kwargs)  # type: ignore[arg-type]

    def eval(self) -> Leaving:
        self._pass("eval")
        return super().eval()

    def __getstate__(self) -> dict[str, object]:
        self._pass("pickle")
        return dict(self.__dict__)


class TestEnding:
    @pytest.mark.parametrize(
        ("target", "said"),
        [
            ("leaving_at_once:net", r"model 'python:leaving_at_once:net': its code would end the program"),
            ("leaving_models:leaves", r"would end the program \(SystemExit: 0\) \(leaving_models.py, line 18\)"),
        ],
    )
    @pytest.mark.usefixtures("folder")
    def test_while_it_is_opened(self, target: str, said: str) -> None:
        with pytest.raises(InputError, match=said):
            open_model(f"python:{target}", device="cpu")

    @pytest.mark.parametrize(
        "error", [SystemExit(0), SystemExit(), asyncio.CancelledError(), GeneratorExit()], ids=repr
    )
    @pytest.mark.parametrize("moment", ["state", "eval", "forward", "pickle"])
    def test_at_any_moment(self, moment: str, error: BaseException) -> None:
        with pytest.raises(
            InputError, match=rf"^model Leaving: its code would end the program .{type(error).__name__}"
        ):
            self.use(Leaving(moment, error))

    @staticmethod
    def use(net: Leaving) -> None:
        model = from_module(net)
        model(batch())
        portable(model)

    def test_no_moment(self) -> None:
        self.use(Leaving("never", SystemExit(0)))

    @pytest.mark.parametrize("error", [KeyboardInterrupt(), ZeroDivisionError()], ids=repr)
    def test_other_errors_are_what_they_are(self, error: BaseException) -> None:
        with pytest.raises(type(error)):
            from_module(Leaving("forward", error))(batch())

    def test_in_a_bare_function(self) -> None:
        def forward(_: Tensor) -> Tensor:
            sys.exit("done")

        model = Classifier(name="odd", kind="function", forward=forward, weights="0")
        with pytest.raises(InputError, match=r"model odd: its code would end the program .SystemExit: done"):
            model(batch())

    def test_while_it_is_adapted(self) -> None:
        network = adaptable(from_module(Leaving("forward", SystemExit(0)), name="mine"))
        with pytest.raises(InputError, match="model mine: its code would end the program"):
            network(batch())

    @pytest.mark.usefixtures("folder")
    def test_in_an_architecture(self) -> None:
        with pytest.raises(InputError, match="architecture leaving_at_once:net: its code would end the program"):
            build_net("leaving_at_once:net", 10)
        job = TrainingJob(Plan((), "leaving_models:Net", 3), batch, torch.arange(4) % 3, torch.device("cpu"))
        with pytest.raises(InputError, match="architecture leaving_models:Net: its code would end the program"):
            job.open(None)(Group((STANDARD,), Schedule(epochs=1, batch=2)), lambda _: None)

    def test_a_signal_is_not_the_model(self) -> None:
        """A handler that leaves, as scripts on clusters have, does so wherever the program happens to be."""

        def leave(*_: object) -> None:
            sys.exit(143)

        before = signal.signal(signal.SIGTERM, leave)
        try:
            with pytest.raises(SystemExit, match="143"), ending_refused("model"):
                signal.raise_signal(signal.SIGTERM)
        finally:
            signal.signal(signal.SIGTERM, before)


class TestAdaptedOutputs:
    @pytest.mark.parametrize(
        ("odd", "said"),
        [
            (lambda s: s[:, :2], r"2 classes for a batch of 4 images; expected 3 as before"),
            (lambda s: s.to(torch.complex64), "complex"),
            (lambda s: s[:2], r"shape \(2, 3\) for 4 images"),
            (lambda s: s.to_sparse(), "sparse"),
        ],
    )
    def test_become_odd(self, odd: Callable[[Tensor], Tensor], said: str) -> None:
        class Odd(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.calls = 0

            def forward(self, values: Tensor) -> Tensor:
                self.calls += 1
                scores = values.mean((2, 3)) * 9
                return scores if self.calls == 1 else odd(scores)

        network = adaptable(from_module(Odd(), name="mine"))
        assert network(batch()).shape == (4, 3)
        with pytest.raises(InputError, match=f"model mine: .*{said}"):
            network(batch())
