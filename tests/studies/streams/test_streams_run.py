"""Runs: every method sees every image once, and an interrupted run ends as one that was never stopped."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from torch import Tensor, nn

from blemish.core.errors import InputError, StorageError
from blemish.core.states import read_state, state_bytes
from blemish.core.typed import as_json
from blemish.studies.adaptation.methods import METHODS, make_method
from blemish.studies.streams.images import from_tensor
from blemish.studies.streams.info import WalkInfo
from blemish.studies.streams.run import StreamResult, read_result, run_stream
from blemish.studies.streams.stream import Stream
from blemish.studies.streams.walks import Walk, WalkStep

NAMES = ("none", "tent")

WALK = Walk(
    (
        WalkStep("contrast", 2.0, "gaussian_noise", 0.5, 30, 0.5, 0),
        WalkStep("contrast", 0.0, "gaussian_noise", 1.0, 30, 0.5, 0),
    ),
    WalkInfo(target=0.5),
)


class SmallNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.bn, self.linear = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 5)
        nn.init.normal_(self.linear.weight, std=2.0)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.linear(self.bn(self.conv(images.float() / 255)).relu().mean((2, 3)))
        return logits


def stream(**changes: Any) -> Stream:
    pixels = torch.randint(0, 256, (25, 3, 12, 12), dtype=torch.uint8, generator=torch.Generator().manual_seed(2))
    return Stream(from_tensor(pixels, np.arange(25) % 5), WALK, **{"batch": 8, **changes})


def methods(names: tuple[str, ...] = tuple(METHODS)) -> dict[str, Any]:
    torch.manual_seed(0)
    net = SmallNet()
    clean = [torch.zeros(4, 3, 12, 12, dtype=torch.uint8).random_(generator=torch.Generator().manual_seed(3))]
    changes: dict[str, dict[str, Any]] = {"cotta": {"views": 2}, "rdumb": {"every": 3}}
    return {name: make_method(name, net, settings="cifar", clean=clean, **changes.get(name, {})) for name in names}


def same(one: StreamResult, other: StreamResult) -> bool:
    equal = all(np.array_equal(one.predictions[name], other.predictions[name]) for name in one.predictions)
    for what in ("labels", "images", "steps"):
        equal = equal and np.array_equal(getattr(one, what), getattr(other, what))
    return equal and list(one.predictions) == list(other.predictions)


def test_predictions() -> None:
    chosen = methods(("none", "tent"))
    result = run_stream(stream(), chosen)
    assert len(result.labels) == 60
    again = methods(("none",))["none"]
    expected = torch.cat([again.adapt(batch.images).argmax(1) for batch in stream()])
    assert np.array_equal(result.predictions["none"], expected.numpy())
    assert result.correct("none").mean() == pytest.approx(float((expected.numpy() == result.labels).mean()))
    with pytest.raises(InputError, match="no predictions of 'rpl'"):
        result.correct("rpl")
    # Two steps of 30 images; each image has its own number as id here, and the label is that number modulo 5.
    assert result.steps.tolist() == [0] * 30 + [1] * 30
    assert np.array_equal(result.images % 5, result.labels)
    assert set(result.images[:25].tolist()) == set(range(25))


def test_parts_are_tables_that_anything_can_read(tmp_path: Path) -> None:
    result = run_stream(stream(), methods(("none", "bn")), folder=tmp_path, every=4)
    parts = [pq.read_table(path) for path in sorted(tmp_path.glob("part-*.parquet"))]
    assert [len(part) for part in parts] == [32, 28]
    assert parts[0].column_names == ["position", "image", "label", "step", "none", "bn"]
    assert [str(kind) for kind in parts[0].schema.types] == ["int64", "int64"] + ["int32"] * 4
    assert parts[1]["position"].to_pylist() == list(range(32, 60))
    assert parts[1]["bn"].to_pylist() == result.predictions["bn"][32:].tolist()
    header = json.loads(parts[1].schema.metadata[b"blemish"])
    assert (header["kind"], header["begin"], header["run"]) == ("ccc run", 32, as_json(result.info))


@pytest.mark.parametrize("stop", [1, 3, 4, 6])
def test_interrupted_equals_uninterrupted(tmp_path: Path, stop: int) -> None:
    whole = run_stream(stream(), methods(), folder=tmp_path / "whole", every=2)

    def stop_after(done: int, total: int) -> None:
        if done == stop * 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_stream(stream(), methods(), folder=tmp_path / "stopped", every=2, progress=stop_after)
    resumed = run_stream(stream(), methods(), folder=tmp_path / "stopped", every=2)
    assert same(whole, resumed)
    assert same(whole, read_result(tmp_path / "stopped"))
    # Another interval changes where the parts end, not what is in them.
    assert same(whole, run_stream(stream(), methods(), folder=tmp_path / "other", every=5))
    # A finished run is read, not repeated.
    assert same(whole, run_stream(stream(), methods(), folder=tmp_path / "whole", every=2))


def test_a_part_beyond_the_checkpoint_does_not_count(tmp_path: Path) -> None:
    """A run killed between writing a part and its checkpoint repeats the part."""
    whole = run_stream(stream(), methods(), folder=tmp_path / "run", every=3)
    for path in (tmp_path / "run").glob("checkpoint-*.pt"):
        path.unlink()
    assert same(whole, run_stream(stream(), methods(), folder=tmp_path / "run", every=2))
    # Those of the other interval are gone, or whoever reads all of them would count images twice.
    assert [path.name[5:15] for path in sorted((tmp_path / "run").glob("part-*"))] == [
        f"{begin:010d}" for begin in (0, 16, 32, 48)
    ]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A finished run with parts of 16 images."""
    run_stream(stream(), methods(NAMES), folder=tmp_path / "run", every=2)
    return tmp_path / "run"


def checkpoints(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("checkpoint*"))


def _emptied(path: Path) -> None:
    path.write_bytes(b"")


def _truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-200])


def _flipped(path: Path) -> None:
    """One bit in the numbers of a tensor."""
    content = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        largest = archive.read(max(archive.infolist(), key=lambda entry: entry.file_size))
    content[content.index(largest) + len(largest) // 2] ^= 1
    path.write_bytes(content)


def _crafted(path: Path) -> None:
    """A file that torch reads, and that says that nothing is done yet."""
    torch.save({**torch.load(path, weights_only=True), "done": 0}, path)


def _adapted(path: Path) -> None:
    """A file that torch reads, with other numbers in it."""
    state = torch.load(path, weights_only=True)
    weights = next(value for value in state["methods"]["tent"].values() if isinstance(value, dict) and value)
    weights.update({key: value + 1 for key, value in weights.items() if isinstance(value, Tensor)})
    torch.save(state, path)


DAMAGES = [_emptied, _truncated, _flipped, _crafted, _adapted]


def test_the_last_two_checkpoints_are_kept(run: Path) -> None:
    assert checkpoints(run) == ["checkpoint-0000000048.pt", "checkpoint-0000000060.pt"]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_costs_what_came_after_the_one_before(run: Path, damage: Callable[[Path], None]) -> None:
    whole = read_result(run)
    damage(run / "checkpoint-0000000060.pt")
    with pytest.warns(RuntimeWarning, match=r"checkpoint-0000000060\.pt: damaged .*the checkpoint before it, of 48 im"):
        assert len(read_result(run).labels) == 48
    shown: list[int] = []
    with pytest.warns(RuntimeWarning, match=r"checkpoint-0000000060\.pt: damaged"):
        again = run_stream(stream(), methods(NAMES), folder=run, every=2, progress=lambda done, _: shown.append(done))
    assert shown == [56, 60]
    assert same(whole, again)
    assert same(whole, read_result(run))
    assert checkpoints(run) == ["checkpoint-0000000048.pt", "checkpoint-0000000060.pt"]


@pytest.mark.parametrize("damage", DAMAGES)
def test_nothing_is_repeated_silently_where_both_are_damaged(run: Path, damage: Callable[[Path], None]) -> None:
    for path in run.glob("checkpoint-*.pt"):
        damage(path)
    with pytest.raises(StorageError, match=r"checkpoint-0000000060\.pt: damaged .*; remove .*run to begin again"):
        run_stream(stream(), methods(NAMES), folder=run, every=2)


def test_numbers_of_a_checkpoint_have_to_agree(run: Path) -> None:
    """Even where somebody has sealed them."""
    state = read_state(run / "checkpoint-0000000060.pt", ())
    (run / "checkpoint-0000000048.pt").unlink()
    for change in ({"done": 0}, {"done": 61}, {"done": 60.0}, {"done": True}, {"parts": {}}, {"run": "another"}):
        (run / "checkpoint-0000000060.pt").write_bytes(state_bytes({**state, **change}))
        with pytest.raises(StorageError, match=r"checkpoint-0000000060\.pt: |part-0000000000\.parquet: not the part"):
            read_result(run)
    (run / "checkpoint-0000000060.pt").unlink()
    (run / "checkpoint-0000000000.pt").write_bytes(state_bytes({**state, "done": 0}))
    with pytest.raises(StorageError, match=r"checkpoint-0000000000\.pt: damaged \(0 images done, of 60\)"):
        run_stream(stream(), methods(NAMES), folder=run)
    (run / "checkpoint-0000000000.pt").rename(run / "checkpoint-0000000012.pt")
    (run / "checkpoint-0000000012.pt").write_bytes(state_bytes({**state, "done": 12}))
    with pytest.raises(StorageError, match=r"damaged \(12 images done, in batches of 8\)"):
        run_stream(stream(), methods(NAMES), folder=run)


def test_a_damaged_part_that_only_the_last_checkpoint_needs(run: Path) -> None:
    whole = read_result(run)
    _truncated(run / "part-0000000048.parquet")
    with pytest.warns(RuntimeWarning, match=r"part-0000000048\.parquet: .*the checkpoint before it, of 48 images"):
        assert same(whole, run_stream(stream(), methods(NAMES), folder=run, every=2))


def test_workers_change_nothing(tmp_path: Path) -> None:
    names = ("none", "tent")
    assert same(run_stream(stream(), methods(names)), run_stream(stream(), methods(names), workers=2))


def test_refusals(tmp_path: Path) -> None:
    names = ("none",)
    with pytest.raises(InputError, match="no adaptation methods"):
        run_stream(stream(), {})
    with pytest.raises(InputError, match="already started"):
        run_stream(stream(start=8), methods(names))
    with pytest.raises(InputError, match=r"run\.json: no such file"):
        read_result(tmp_path)
    run_stream(stream(), methods(names), folder=tmp_path / "run")
    with pytest.raises(InputError, match=r'another run \(methods was \["none"\], now \["none", "bn"\]\); choose'):
        run_stream(stream(), methods(("none", "bn")), folder=tmp_path / "run")
    with pytest.raises(InputError, match=r"\(batch was \d+, now \d+\)"):
        run_stream(stream(batch=9), methods(names), folder=tmp_path / "run")
    with pytest.raises(InputError, match=r"\(stream\.seed was 0, now 9\)"):
        run_stream(stream(seed=9), methods(names), folder=tmp_path / "run")
    with pytest.raises(InputError, match="a method named 'label'"):
        run_stream(stream(), {"label": methods(names)["none"]})
    part = tmp_path / "run" / "part-0000000000.parquet"
    content = part.read_bytes()
    run_stream(stream(seed=1), methods(names), folder=tmp_path / "other")
    part.write_bytes((tmp_path / "other" / part.name).read_bytes())
    with pytest.raises(StorageError, match=r"part-0000000000\.parquet: part of another run"):
        read_result(tmp_path / "run")
    part.write_bytes(content[: len(content) // 2])
    with pytest.raises(StorageError, match=r"part-0000000000\.parquet: not a readable file of records .*begin again"):
        read_result(tmp_path / "run")
    part.unlink()
    with pytest.raises(StorageError, match=r"part-0000000000\.parquet: no such file"):
        read_result(tmp_path / "run")
