"""Files that an ONNX model names: only regular ones beside it are opened, and none before all are checked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from blemish.core.errors import InputError
from blemish.models.onnx_external import external_files
from blemish.models.open import open_model
from hostile_files import SPECIAL, not_for_ever, place_special

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


def outside(*locations: str, name: str = "w") -> Any:
    weight = onnx.TensorProto(name=name, data_type=onnx.TensorProto.FLOAT, dims=[4], data_location=1)
    for location in locations:
        weight.external_data.add(key="location", value=location)
    return weight


def model(weight: Any, nodes: list[Any] | None = None, **more: Any) -> Any:
    graph = onnx.helper.make_graph(
        nodes or [onnx.helper.make_node("Add", ["x", "w"], ["y"])],
        "g",
        [onnx.helper.make_tensor_value_info("x", 1, ["N", 4])],
        [onnx.helper.make_tensor_value_info("y", 1, ["N", 4])],
        [weight],
        **more,
    )
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)


def save(folder: Path, made: Any) -> Path:
    path = folder / "m.onnx"
    path.write_bytes(made.SerializeToString())
    return path


def test_values_beside_the_model(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    path = save(tmp_path, model(outside("sub/w.bin")))
    assert external_files(path) == []  # missing, which the runtime tells
    (tmp_path / "sub" / "w.bin").write_bytes(np.arange(4, dtype=np.float32).tobytes())
    assert external_files(path) == [tmp_path / "sub" / "w.bin"]
    first = open_model(str(path), device="cpu")
    (tmp_path / "sub" / "w.bin").write_bytes(np.ones(4, dtype=np.float32).tobytes())
    assert open_model(str(path), device="cpu").weights != first.weights


@pytest.mark.parametrize("place", ["initializer", "attribute", "subgraph", "function", "sparse"])
def test_wherever_a_tensor_is(tmp_path: Path, place: str) -> None:
    weight = outside("../w.bin")
    made = model(onnx.numpy_helper.from_array(np.ones(4, np.float32), "w"))
    if place == "initializer":
        made = model(weight)
    elif place == "attribute":
        made.graph.node.add(op_type="Constant", output=["c"]).attribute.add(name="value", type=4, t=weight)
    elif place == "subgraph":
        inner = onnx.GraphProto(initializer=[weight])
        made.graph.node.add(op_type="If", output=["c"]).attribute.add(name="then_branch", type=5, g=inner)
    elif place == "function":
        node = onnx.NodeProto(op_type="Constant", output=["c"])
        node.attribute.add(name="value", type=4, t=weight)
        made.functions.add(name="f", domain="d", node=[node])
    else:
        made.graph.sparse_initializer.add(values=weight)
    with pytest.raises(InputError, match=r"has values in '\.\./w\.bin'"):
        open_model(str(save(tmp_path, made)), device="cpu")


@pytest.mark.parametrize(
    "location",
    ["/dev/zero", "/proc/kmsg", "../w.bin", "a/../../w.bin", "C:\\w.bin", "..\\w.bin", "", "a\0b", "x" * 200],
)
def test_other_places(tmp_path: Path, location: str) -> None:
    path = save(tmp_path, model(outside(location)))
    with not_for_ever(), pytest.raises(InputError):
        open_model(str(path), device="cpu")


def test_the_last_of_several_names_counts(tmp_path: Path) -> None:
    """As in protobuf: what is said twice is what was said last."""
    weight = outside()
    weight.external_data.add(key="location", value="w.bin")
    weight.external_data[0].MergeFromString(b"\x12\x09/dev/zero")
    with pytest.raises(InputError, match="/dev/zero"):
        external_files(save(tmp_path, model(weight)))


def test_a_value_before_its_key(tmp_path: Path) -> None:
    content = model(outside("w.bin")).SerializeToString()
    there = b"\x0a\x08location\x12\x05w.bin"
    assert there in content
    (tmp_path / "m.onnx").write_bytes(content.replace(there, b"\x12\x05../ab\x0a\x08location"))
    with pytest.raises(InputError, match=r"\.\./ab"):
        external_files(tmp_path / "m.onnx")


@pytest.mark.parametrize("kind", [kind for kind in SPECIAL if kind not in ("nothing", "link to nothing")])
def test_what_is_no_file(tmp_path: Path, kind: str) -> None:
    path = save(tmp_path, model(outside("w.bin")))
    place_special(kind, tmp_path / "w.bin")
    with not_for_ever(), pytest.raises(InputError):
        open_model(str(path), device="cpu")


@pytest.mark.parametrize("location", ["/proc/kmsg", "/dev/kmsg", "/dev/zero", "fifo"])
def test_metadata_is_no_file(tmp_path: Path, location: str) -> None:
    """What a model says of itself under the same key names no file, and none is opened."""
    place_special("pipe", tmp_path / "fifo")
    made = model(onnx.numpy_helper.from_array(np.ones(4, np.float32), "w"))
    made.metadata_props.add(key="location", value=location)
    with not_for_ever():
        opened = open_model(str(save(tmp_path, made)), device="cpu")
    assert opened.kind == "onnx"


def test_damaged(tmp_path: Path) -> None:
    content = model(outside("w.bin")).SerializeToString()
    (tmp_path / "w.bin").write_bytes(np.ones(4, np.float32).tobytes())
    for end in range(len(content)):
        (tmp_path / "m.onnx").write_bytes(content[:end])
        try:
            external_files(tmp_path / "m.onnx")
        except InputError as error:
            assert "not a readable ONNX model" in str(error) or "expected a file" in str(error)  # noqa: PT017
