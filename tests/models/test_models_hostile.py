"""Files that would run code when they are read: nothing happens, and the message says how to allow it."""

from __future__ import annotations

import io
import json
import pickle
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from blemish.core import states
from blemish.core.errors import InputError, StorageError
from blemish.models.open import open_model
from blemish.models.torch_module import read_state


class Bomb:
    """Unpickling it creates a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return Path.touch, (self.mark,)


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "owned"


def save_pickle(path: Path, content: Any) -> None:
    path.write_bytes(pickle.dumps(content))


def save_legacy(path: Path, content: Any) -> None:
    torch.save(content, path, _use_new_zipfile_serialization=False)


@pytest.mark.parametrize("save", [save_pickle, torch.save, save_legacy], ids=["pickle", "zip", "legacy"])
@pytest.mark.parametrize("suffix", [".pth", ".pt", ".th", ".ckpt", ".pkl", ".pickle", ".joblib", ".pts", ".pt2"])
def test_pickles_are_not_read(tmp_path: Path, mark: Path, suffix: str, save: Any) -> None:
    path = tmp_path / f"model{suffix}"
    if save is save_pickle or suffix in (".pkl", ".pickle", ".joblib"):
        save_pickle(path, Bomb(mark))
    else:
        save(Bomb(mark), path) if save is torch.save else save(path, Bomb(mark))
    with pytest.raises(InputError, match="--allow-code" if suffix != ".pts" else "TorchScript"):
        open_model(str(path), device="cpu")
    assert not mark.exists()


@pytest.mark.parametrize("suffix", [".onnx", ".tflite"])
def test_a_pickle_by_another_name(tmp_path: Path, mark: Path, suffix: str) -> None:
    path = tmp_path / f"model{suffix}"
    save_pickle(path, Bomb(mark))
    with pytest.raises(InputError):
        open_model(str(path), device="cpu", allow_code=True)
    assert not mark.exists()


def test_the_bomb_works(tmp_path: Path, mark: Path) -> None:
    """Were it read, the file would be there: with permission it is."""
    path = tmp_path / "model.pth"
    torch.save(Bomb(mark), path)
    with pytest.raises(InputError, match="not a model"):
        open_model(str(path), device="cpu", allow_code=True)
    assert mark.exists()


def test_weights_are_never_unpickled(tmp_path: Path, mark: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hostile_weights_net.py").write_text("import torch\ndef make():\n    return torch.nn.Linear(2, 2)\n")
    monkeypatch.syspath_prepend(tmp_path)
    path = tmp_path / "w.pth"
    torch.save({"weight": torch.zeros(2, 2), "bias": Bomb(mark)}, path)
    with pytest.raises(InputError, match="more than tensors"):
        open_model("python:hostile_weights_net:make", weights=path, device="cpu", allow_code=True)
    assert not mark.exists()


def test_arrays_are_never_unpickled(tmp_path: Path, mark: Path) -> None:
    np.savez(tmp_path / "w.npz", w=np.array([Bomb(mark)], dtype=object))
    with pytest.raises(InputError, match="not a readable file of weights"):
        read_state(tmp_path / "w.npz")
    assert not mark.exists()


class RunsWhenRead(nn.Module):
    def __init__(self, target: str) -> None:
        super().__init__()
        self.x = nn.Parameter(torch.zeros(1))
        self.target = target

    @torch.jit.export
    def __getstate__(self) -> tuple[Tensor, str, bool]:  # type: ignore[override]
        return (self.x, self.target, self.training)

    @torch.jit.export
    def __setstate__(self, state: tuple[Tensor, str, bool]) -> None:  # type: ignore[override]
        self.x = state[0]
        self.target = state[1]
        self.training = state[2]
        torch.save(state[0], state[1])

    def forward(self, values: Tensor) -> Tensor:
        return values


class WritesWhenRun(nn.Module):
    def __init__(self, target: str) -> None:
        super().__init__()
        self.target = target

    def forward(self, values: Tensor) -> Tensor:
        torch.save(values, self.target)
        return values


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("kind", [RunsWhenRead, WritesWhenRun])
@pytest.mark.parametrize("suffix", [".pt", ".pts", ".torchscript", ".pth"])
def test_torchscript_that_reaches_outside(tmp_path: Path, mark: Path, kind: Any, suffix: str) -> None:
    path = tmp_path / f"model{suffix}"
    torch.jit.script(kind(str(mark))).save(str(path))
    mark.unlink(missing_ok=True)
    with pytest.raises(InputError, match="--allow-code"):
        open_model(str(path), device="cpu")
    assert not mark.exists()


# Ways to write a file that no search for "save(" finds.
HIDDEN = {
    "brackets": "_0 = (torch.save)(x, {path})",
    "comment": "_0 = (torch.save  # nothing\n    )(x, {path})",
    "another name": "s = torch.save\n    _0 = s(x, {path})",
    "tab": "_0 = torch.save\t(x, {path})",
    "operator": "_0 = (ops.aten.save)(x, {path})",
}


def rewritten(path: Path, changes: dict[str, bytes]) -> None:
    """Other content for the members of an archive whose names end like this; a new name adds a member."""
    with zipfile.ZipFile(path) as source:
        members = {info.filename: source.read(info) for info in source.infolist()}
    top = next(iter(members)).partition("/")[0]
    for end, content in changes.items():
        names = [name for name in members if name.endswith(end)] or [f"{top}/{end}"]
        members |= dict.fromkeys(names, content)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as target:
        for name, content in members.items():
            target.writestr(name, content)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("how", HIDDEN)
def test_torchscript_that_hides_what_it_does(tmp_path: Path, mark: Path, how: str) -> None:
    path = tmp_path / "model.pt"
    torch.jit.script(nn.Flatten()).save(str(path))
    line = HIDDEN[how].format(path=json.dumps(str(mark)))
    code = "class Flatten(Module):\n  __parameters__ = []\n  __buffers__ = []\n  training : bool\n"
    code += f"  def forward(self: __torch__.torch.nn.modules.flatten.Flatten, x: Tensor) -> Tensor:\n    {line}\n"
    rewritten(path, {"flatten.py": f"{code}    return x\n".encode()})
    with pytest.raises(InputError, match=r"TorchScript, which can run code.*--allow-code"):
        open_model(str(path), device="cpu")(torch.zeros(1, 3, 4, 4, dtype=torch.uint8))
    assert not mark.exists()
    with pytest.raises(InputError, match="output of shape"):
        open_model(str(path), device="cpu", allow_code=True)(torch.zeros(1, 3, 4, 4, dtype=torch.uint8))
    assert mark.exists()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript_is_no_file_of_weights(tmp_path: Path, mark: Path) -> None:
    """Versions of torch.load before 2.6 run it even with weights_only."""
    path = tmp_path / "w.pth"
    torch.jit.script(RunsWhenRead(str(mark))).save(str(path))
    mark.unlink(missing_ok=True)
    with pytest.raises(InputError, match="TorchScript; expected a state dict"):
        read_state(path)
    assert not mark.exists()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript_is_no_checkpoint(tmp_path: Path, mark: Path) -> None:
    path = tmp_path / "checkpoint.pt"
    torch.jit.script(RunsWhenRead(str(mark))).save(str(path))
    mark.unlink(missing_ok=True)
    with pytest.raises(StorageError, match=r"damaged .TorchScript"):
        states.read_state(path, ())
    assert not mark.exists()


@pytest.mark.parametrize("member", ["constants.pkl", "code/__torch__.py"])
def test_weights_with_a_trace_of_torchscript(tmp_path: Path, member: str) -> None:
    """For torch.load one member decides what an archive is."""
    path = tmp_path / "w.pth"
    torch.save({"weight": torch.zeros(2, 2)}, path)
    assert list(read_state(path)) == ["weight"]
    rewritten(path, {member: b"\x80\x02).."})
    with pytest.raises(InputError, match="TorchScript"):
        read_state(path)


def test_a_tar_that_begins_like_a_pickle(tmp_path: Path) -> None:
    """torch.load takes a tar for a file of an old version, and unpacks it."""
    path = tmp_path / "w.pth"
    with tarfile.open(path, "w", format=tarfile.GNU_FORMAT, encoding="latin-1") as archive:
        archive.addfile(tarfile.TarInfo("\x80\x02storages"), io.BytesIO())
    with pytest.raises(InputError, match="not a torch file"):
        read_state(path)


def test_an_archive_that_claims_more_than_there_is_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.save({"weight": torch.zeros(2**10)}, tmp_path / "w.pth")
    np.savez_compressed(tmp_path / "w.npz", weight=np.zeros(2**16))
    monkeypatch.setattr("blemish.core.memory.available_memory", lambda: 1000)
    with pytest.raises(InputError, match=r"w\.npz claims 512\.\d KiB, but 1000 bytes of memory are free"):
        read_state(tmp_path / "w.npz")
    assert (tmp_path / "w.npz").stat().st_size < 1000
    with pytest.raises(InputError, match=r"w\.pth claims .* bytes of memory are free"):
        read_state(tmp_path / "w.pth")


def test_arrays_that_claim_any_size(tmp_path: Path) -> None:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (2**45,)})
    with zipfile.ZipFile(tmp_path / "w.npz", "w") as archive:
        archive.writestr("weight.npy", header.getvalue())
    with pytest.raises(InputError, match="not a readable file of weights"):
        read_state(tmp_path / "w.npz")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_torchscript_really_runs_code_when_read(tmp_path: Path, mark: Path) -> None:
    path = tmp_path / "model.pts"
    torch.jit.script(RunsWhenRead(str(mark))).save(str(path))
    mark.unlink(missing_ok=True)
    open_model(str(path), device="cpu", allow_code=True)
    assert mark.exists()


def hostile_program(path: Path, mark: Path) -> None:
    """A real exported program whose sample inputs are replaced by a bomb."""
    buffer = io.BytesIO()
    torch.export.save(torch.export.export(nn.Linear(2, 2), (torch.zeros(2, 2),)), buffer)
    bomb = io.BytesIO()
    torch.save(Bomb(mark), bomb)
    with zipfile.ZipFile(buffer) as source, zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as target:
        for member in source.namelist():
            hostile = "sample_inputs" in member
            target.writestr(member, bomb.getvalue() if hostile else source.read(member))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("suffix", [".pt2", ".pt"])
def test_exported_programs_are_not_read(tmp_path: Path, mark: Path, suffix: str) -> None:
    path = tmp_path / f"model{suffix}"
    hostile_program(path, mark)
    with pytest.raises(InputError, match="--allow-code"):
        open_model(str(path), device="cpu")
    assert not mark.exists()


def test_a_file_cannot_allow_itself(tmp_path: Path, mark: Path) -> None:
    torch.save(Bomb(mark), tmp_path / "model.pth")
    for key in ("allow_code", "allow-code"):
        (tmp_path / "model.toml").write_text(f'model = "model.pth"\n{key} = true\n')
        with pytest.raises(InputError, match="cannot allow itself to run code"):
            open_model(str(tmp_path / "model.toml"), device="cpu")
    (tmp_path / "model.toml").write_text('model = "model.pth"\n')
    with pytest.raises(InputError, match="--allow-code"):
        open_model(str(tmp_path / "model.toml"), device="cpu")
    assert not mark.exists()


def test_onnx_values_outside_its_folder_are_refused(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret.bin").write_bytes(np.zeros(4, np.float32).tobytes())
    weight = onnx.TensorProto(name="w", data_type=onnx.TensorProto.FLOAT, dims=[4], data_location=1)
    weight.external_data.add(key="location", value="../secret.bin")
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Add", ["x", "w"], ["y"])],
        "g",
        [onnx.helper.make_tensor_value_info("x", 1, ["N", 4])],
        [onnx.helper.make_tensor_value_info("y", 1, ["N", 4])],
        [weight],
    )
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    (inside / "m.onnx").write_bytes(made.SerializeToString())
    with pytest.raises(InputError, match="expected a file in or below its own folder"):
        open_model(str(inside / "m.onnx"), device="cpu")


def test_settings_that_are_no_settings(tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text(json.dumps({"model": "x"}))
    with pytest.raises(InputError, match="not readable as TOML"):
        open_model(str(tmp_path / "m.toml"))
