"""Models in files: each kind gives what the model that was saved gives."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from blemish.core.errors import InputError
from blemish.models.open import open_model


def batch(count: int = 5, side: int = 12) -> Tensor:
    generator = torch.Generator().manual_seed(2)
    return torch.randint(0, 256, (count, 3, side, side), dtype=torch.uint8, generator=generator)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(4)
        self.conv = nn.Conv2d(3, 6, 3, stride=2)
        self.linear = nn.Linear(6, 4)

    def forward(self, values: Tensor) -> Tensor:
        return self.linear(self.conv(values).relu().mean((2, 3)))  # type: ignore[no-any-return]


def expected() -> Tensor:
    with torch.no_grad():
        return Net().eval()(batch().float() / 255).softmax(1)  # type: ignore[no-any-return]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("suffix", [".pt", ".pth", ".pts", ".torchscript"])
def test_torchscript(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"net{suffix}"
    torch.jit.script(Net()).save(str(path))
    model = open_model(str(path), device="cpu", allow_code=True)
    torch.testing.assert_close(model(batch()), expected())
    assert (model.name, model.kind) == ("net", "torchscript")
    traced = tmp_path / f"traced{suffix}"
    torch.jit.trace(Net(), batch().float()).save(str(traced))
    torch.testing.assert_close(open_model(traced, device="cpu", allow_code=True)(batch()), expected())
    with pytest.raises(InputError, match="refuses an input of shape"):
        open_model(path, device="cpu", channels="gray", mean=0, std=1, allow_code=True)(batch())


def test_exported_program(tmp_path: Path) -> None:
    path = tmp_path / "net.pt2"
    shapes = {"values": {0: torch.export.Dim("batch")}}
    torch.export.save(torch.export.export(Net().eval(), (batch().float(),), dynamic_shapes=shapes), path)
    for place in (path, Path(shutil.copy(path, tmp_path / "net.pt"))):
        model = open_model(str(place), device="cpu", allow_code=True)
        torch.testing.assert_close(model(batch()), expected())
        torch.testing.assert_close(model(batch(3)), open_model(str(place), device="cpu", allow_code=True)(batch(3)))


def test_pickled_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pickled_net.py").write_text(
        "import torch\nclass Tiny(torch.nn.Module):\n    def forward(self, x):\n        return x.mean((2, 3)) * 9\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import pickled_net  # type: ignore[import-not-found]

    torch.save(pickled_net.Tiny(), tmp_path / "tiny.pth")
    scores = open_model(tmp_path / "tiny.pth", device="cpu", allow_code=True)(batch())
    torch.testing.assert_close(scores, (batch().float() / 255).mean((2, 3)).mul(9).softmax(1))
    with pytest.raises(InputError, match="--allow-code"):
        open_model(tmp_path / "tiny.pth", device="cpu")


def test_weights_alone_need_an_architecture(tmp_path: Path) -> None:
    torch.save(Net().state_dict(), tmp_path / "w.pth")
    for allowed in (False, True):
        with pytest.raises(InputError, match=r"a dictionary \(conv.weight, .*python:package.module:function"):
            open_model(tmp_path / "w.pth", device="cpu", allow_code=allowed)


def test_other_files(tmp_path: Path) -> None:
    (tmp_path / "model.h5").write_bytes(b"x")
    with pytest.raises(InputError, match=r"ending '\.h5'; expected \.pt"):
        open_model(tmp_path / "model.h5")
    with pytest.raises(InputError, match="no such file"):
        open_model(tmp_path / "none.onnx")
    for suffix in (".pt", ".pts", ".onnx"):
        (tmp_path / f"bad{suffix}").write_bytes(b"not a model")
        with pytest.raises(InputError, match=f"bad{suffix}"):
            open_model(tmp_path / f"bad{suffix}", device="cpu")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "an empty file"),
        (b"junk", "not a torch file"),
        (bytes(64), "not a torch file"),
        (b"PK\x03\x04junk", "not a readable torch file"),
        (b"\x80\x02junk", "not a readable torch file"),
        (b"\x80\x02.", "not a readable torch file"),
        (b"\x80", "not a readable torch file"),
    ],
)
def test_junk(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "junk.pt").write_bytes(content)
    with pytest.raises(InputError, match=rf"junk\.pt: {said}") as caught:
        open_model(tmp_path / "junk.pt", device="cpu")
    assert "allow-code" not in str(caught.value)
