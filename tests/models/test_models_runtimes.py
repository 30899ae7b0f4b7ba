"""ONNX and TFLite models: layouts, batch sizes and number types."""

from __future__ import annotations

import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from blemish.core.errors import InputError
from blemish.models.onnx_file import in_batches_of
from blemish.models.open import open_model


def batch(count: int = 5, side: int = 12) -> Tensor:
    generator = torch.Generator().manual_seed(2)
    return torch.randint(0, 256, (count, 3, side, side), dtype=torch.uint8, generator=generator)


class TestFixedBatches:
    @pytest.mark.parametrize(
        ("run", "said"),
        [
            (lambda _: np.zeros((8, 3)), r"shape \(8, 3\) for 4 images"),
            (lambda _: np.zeros((3, 3)), r"shape \(3, 3\) for 4 images"),
            (lambda _: np.zeros(()), r"shape \(1,\) for 4 images"),
            (lambda rows: np.zeros((4, 3 + int(rows[0, 0] > 3))), r"shape \(4, 4\) for 4 images.* as many for all"),
        ],
    )
    def test_other_rows_than_images(self, run: Any, said: str) -> None:
        """Rows that fill up the last batch are cut off; others would be as well."""
        forward = in_batches_of("m.onnx", 4, run)
        with pytest.raises(InputError, match=f"m.onnx: output of {said}"):
            forward(torch.arange(6.0)[:, None])


class TestOnnx:
    @pytest.fixture(autouse=True)
    def _needs_onnx(self) -> None:
        pytest.importorskip("onnx")
        pytest.importorskip("onnxruntime")

    def save(self, path: Path, shape: list[Any], *, kind: int = 1, axes: list[int] | None = None) -> np.ndarray:
        """A model that takes the mean over the picture and multiplies it by fixed weights."""
        import onnx
        from onnx import helper, numpy_helper

        axes = axes or [2, 3]
        channels = shape[1] if axes == [2, 3] else shape[3]
        weights = np.random.default_rng(3).normal(size=(channels, 4)).astype(np.float32)
        nodes = [
            helper.make_node("Cast", ["x"], ["f"], to=1),
            helper.make_node("ReduceMean", ["f"], ["m"], axes=axes, keepdims=0),
            helper.make_node("MatMul", ["m", "w"], ["y"]),
        ]
        graph = helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("x", kind, shape)],
            [helper.make_tensor_value_info("y", 1, [shape[0], 4])],
            [numpy_helper.from_array(weights, "w")],
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(made, path)
        return weights

    @pytest.mark.parametrize("count", [None, 1, 2, 5, 7])
    def test_batches_of_any_size(self, tmp_path: Path, count: int | None) -> None:
        weights = self.save(tmp_path / "m.onnx", [count or "N", 3, 12, 12])
        model = open_model(tmp_path / "m.onnx", device="cpu")
        means = (batch().float() / 255).mean((2, 3))
        torch.testing.assert_close(model(batch()), (means @ torch.from_numpy(weights)).softmax(1))
        assert model.preprocessing.size == (12, 12)

    @pytest.mark.parametrize("shape", [[0, 3, 12, 12], ["N", 3, 0, 12], ["N", 3, 12, 0]])
    def test_sizes_of_zero(self, tmp_path: Path, shape: list[Any]) -> None:
        self.save(tmp_path / "m.onnx", shape)
        with pytest.raises(InputError, match=r"m\.onnx: input of shape .*; expected sizes of 1 or more"):
            open_model(tmp_path / "m.onnx", device="cpu")(batch())

    def test_channels_last_and_sizes(self, tmp_path: Path) -> None:
        weights = self.save(tmp_path / "m.onnx", ["N", 12, 12, 3], axes=[1, 2])
        model = open_model(tmp_path / "m.onnx", device="cpu")
        assert model.preprocessing.layout == "nhwc"
        means = (batch().float() / 255).mean((2, 3))
        torch.testing.assert_close(model(batch()), (means @ torch.from_numpy(weights)).softmax(1))
        self.save(tmp_path / "free.onnx", ["N", 3, "H", "W"])
        assert open_model(tmp_path / "free.onnx", device="cpu").preprocessing.size is None
        self.save(tmp_path / "gray.onnx", ["N", 1, 28, 28])
        gray = open_model(tmp_path / "gray.onnx", device="cpu")
        assert (gray.preprocessing.channels, gray(batch()).shape) == ("gray", (5, 4))

    def test_levels(self, tmp_path: Path) -> None:
        import onnx

        weights = self.save(tmp_path / "m.onnx", ["N", 3, 12, 12], kind=onnx.TensorProto.UINT8)
        model = open_model(tmp_path / "m.onnx", device="cpu")
        torch.testing.assert_close(
            model(batch()), (batch().float().mean((2, 3)) @ torch.from_numpy(weights)).softmax(1)
        )
        with pytest.raises(InputError, match="8-bit levels"):
            open_model(tmp_path / "m.onnx", device="cpu", mean=0.5)

    def test_refusals(self, tmp_path: Path) -> None:
        import onnx

        self.save(tmp_path / "m.onnx", ["N", 3, 12, 12])
        with pytest.raises(InputError, match=r"refuses an input of shape \(5, 3, 9, 9\)"):
            open_model(tmp_path / "m.onnx", device="cpu", size=9)(batch())
        self.save(tmp_path / "five.onnx", ["N", 5, 12, 12])
        with pytest.raises(InputError, match="1 or 3 channels"):
            open_model(tmp_path / "five.onnx", device="cpu")
        self.save(tmp_path / "int.onnx", ["N", 3, 12, 12], kind=onnx.TensorProto.INT32)
        with pytest.raises(InputError, match=r"input of tensor\(int32\)"):
            open_model(tmp_path / "int.onnx", device="cpu")

    def test_values_in_a_file_beside_it_count_in_the_hash(self, tmp_path: Path) -> None:
        import onnx

        self.save(tmp_path / "m.onnx", ["N", 3, 12, 12])
        made = onnx.load(tmp_path / "m.onnx")
        onnx.save(made, tmp_path / "big.onnx", save_as_external_data=True, location="big.data", size_threshold=0)
        one = open_model(tmp_path / "big.onnx", device="cpu")
        values = np.fromfile(tmp_path / "big.data", np.float32)
        (values + 1).tofile(tmp_path / "big.data")
        other = open_model(tmp_path / "big.onnx", device="cpu")
        assert one.weights != other.weights
        assert not torch.equal(one(batch()), other(batch()))


class FakeInterpreter:
    """Answers with the pixels it was given, so that the tests see what a model would have seen."""

    details: dict[str, Any]
    output: dict[str, Any]

    def __init__(self, model_path: str, num_threads: int) -> None:
        assert Path(model_path).is_file()
        assert num_threads == torch.get_num_threads()
        self.value: np.ndarray | None = None

    def allocate_tensors(self) -> None: ...

    def get_input_details(self) -> list[dict[str, Any]]:
        return [self.details]

    def get_output_details(self) -> list[dict[str, Any]]:
        return [self.output]

    def set_tensor(self, index: int, value: np.ndarray) -> None:
        assert index == self.details["index"]
        assert value.dtype == self.details["dtype"]
        assert list(value.shape) == list(self.details["shape"])
        self.value = value

    def invoke(self) -> None: ...

    def get_tensor(self, index: int) -> np.ndarray:
        assert index == self.output["index"]
        assert self.value is not None
        return self.value[:, 0, 0, :].astype(self.output["dtype"])


class TestTflite:
    @pytest.fixture
    def fake(self, monkeypatch: pytest.MonkeyPatch) -> type[FakeInterpreter]:
        module = types.ModuleType("ai_edge_litert.interpreter")
        module.Interpreter = FakeInterpreter  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "ai_edge_litert", types.ModuleType("ai_edge_litert"))
        monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", module)
        return FakeInterpreter

    @pytest.mark.parametrize(
        ("kind", "scale", "zero", "lowest"),
        [("uint8", 1 / 128, 128, 0), ("uint8", 0.0, 0, 0), ("uint8", 0.0186, 114, 0), ("int8", 1 / 255, -128, -128)],
    )
    @pytest.mark.parametrize("count", [1, 2])
    def test_quantised(
        self, tmp_path: Path, fake: Any, kind: str, scale: float, zero: int, lowest: int, count: int
    ) -> None:
        (tmp_path / "m.tflite").write_bytes(b"x")
        fake.details = {"index": 0, "shape": [count, 12, 12, 3], "dtype": np.dtype(kind), "quantization": (scale, zero)}
        # Scores of scale 1/10 and zero point 40: grey levels come back as (level + lowest − 40) / 10.
        fake.output = {"index": 1, "dtype": np.int16, "quantization": (0.1, 40)}
        scores = open_model(tmp_path / "m.tflite", device="cpu")(batch())
        levels = batch()[:, :, 0, 0].float() + lowest
        torch.testing.assert_close(scores, ((levels - 40) / 10).softmax(1))

    def test_quantised_after_mean_and_std(self, tmp_path: Path, fake: Any) -> None:
        (tmp_path / "m.tflite").write_bytes(b"x")
        fake.details = {"index": 0, "shape": [1, 12, 12, 3], "dtype": np.uint8, "quantization": (1 / 128, 127)}
        fake.output = {"index": 1, "dtype": np.float32, "quantization": (0.0, 0)}
        model = open_model(tmp_path / "m.tflite", device="cpu", mean=0.5, std=0.5)
        white = torch.full((1, 3, 12, 12), 255, dtype=torch.uint8)
        assert model.forward(model.preprocessing(white)).tolist() == [[255.0] * 3]  # 1 is 128 steps above 127
        assert model.forward(model.preprocessing(white * 0)).tolist() == [[0.0] * 3]  # −1 is 128 below, clipped

    def test_operators_of_tensorflow(self, tmp_path: Path, fake: Any) -> None:
        """Where TensorFlow is loaded, they are its own: FlexWriteFile writes a file."""
        fake.details = {"index": 0, "shape": [1, 12, 12, 3], "dtype": np.float32, "quantization": (0.0, 0)}
        fake.output = {"index": 1, "dtype": np.float32, "quantization": (0.0, 0)}
        name = b"FlexWriteFile"
        (tmp_path / "m.tflite").write_bytes(b"TFL3" + len(name).to_bytes(4, "little") + name + bytes(3))
        with pytest.raises(InputError, match=r"operators of TensorFlow \(FlexWriteFile\).*--allow-code"):
            open_model(tmp_path / "m.tflite", device="cpu")
        assert open_model(tmp_path / "m.tflite", device="cpu", allow_code=True)(batch()).shape == (5, 3)
        (tmp_path / "m.tflite").write_bytes(b"TFL3" + b"made by FlexWriteFile lovers" + bytes(3))
        assert open_model(tmp_path / "m.tflite", device="cpu")(batch()).shape == (5, 3)

    def test_floating_point(self, tmp_path: Path, fake: Any) -> None:
        (tmp_path / "m.tflite").write_bytes(b"x")
        fake.details = {"index": 0, "shape": [1, 12, 12, 3], "dtype": np.float32, "quantization": (0.0, 0)}
        fake.output = {"index": 1, "dtype": np.float32, "quantization": (0.0, 0)}
        torch.testing.assert_close(
            open_model(tmp_path / "m.tflite", device="cpu")(batch()), (batch()[:, :, 0, 0] / 255).softmax(1)
        )

    def test_without_the_library(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("ai_edge_litert", "tflite_runtime"):
            monkeypatch.setitem(sys.modules, name, None)
            monkeypatch.setitem(sys.modules, f"{name}.interpreter", None)
        (tmp_path / "m.tflite").write_bytes(b"x")
        with pytest.raises(InputError, match="pip install ai-edge-litert"):
            open_model(tmp_path / "m.tflite", device="cpu")
