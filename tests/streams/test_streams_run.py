"""Runs: every method sees every image once, and an interrupted run ends as one that was never stopped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from torch import Tensor, nn

from blemish.adaptation.methods import METHODS, make_method
from blemish.streams.images import from_tensor
from blemish.streams.run import StreamResult, read_result, run_stream
from blemish.streams.stream import Stream
from blemish.streams.walks import Step, Walk
from blemish.types import InputError

WALK = Walk(
    (
        Step("contrast", 2.0, "gaussian_noise", 0.5, 30, 0.5, 0),
        Step("contrast", 0.0, "gaussian_noise", 1.0, 30, 0.5, 0),
    ),
    {"target": 0.5},
)


class SmallNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.linear = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Linear(4, 5)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.linear(self.norm(self.conv(images.float() / 255)).relu().mean((2, 3)))
        return 5 * logits


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
    assert (header["kind"], header["begin"], header["run"]) == ("ccc run", 32, result.info)


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
    (tmp_path / "run" / "checkpoint.pt").unlink()
    assert same(whole, run_stream(stream(), methods(), folder=tmp_path / "run", every=2))


def test_workers_change_nothing(tmp_path: Path) -> None:
    names = ("none", "tent")
    assert same(run_stream(stream(), methods(names)), run_stream(stream(), methods(names), workers=2))


def test_refusals(tmp_path: Path) -> None:
    names = ("none",)
    with pytest.raises(InputError, match="no adaptation methods"):
        run_stream(stream(), {})
    with pytest.raises(InputError, match="already started"):
        run_stream(stream(start=8), methods(names))
    with pytest.raises(InputError, match=r"run\.json: not readable"):
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
    with pytest.raises(InputError, match=r"part-0000000000\.parquet: part of another run"):
        read_result(tmp_path / "run")
    part.write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match=r"part-0000000000\.parquet: not a readable file of records .*begin again"):
        read_result(tmp_path / "run")
    part.unlink()
    with pytest.raises(InputError, match=r"part-0000000000\.parquet: no such file"):
        read_result(tmp_path / "run")
    (tmp_path / "run" / "checkpoint.pt").write_bytes(b"?")
    with pytest.raises(InputError, match=r"checkpoint\.pt: damaged \(.*\); remove .*run to begin again"):
        read_result(tmp_path / "run")
