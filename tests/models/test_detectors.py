"""Detectors of others: torchvision's, those of Hugging Face, ONNX files; all without trained weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from blemish.core.errors import InputError
from blemish.models.detectors import open_detector
from blemish.models.segmenters import open_segmenter
from foreign import foreign


def suppress(boxes: Tensor, scores: Tensor, threshold: float) -> Tensor:
    """What torchvision's compiled operator does: keep the best boxes that overlap no better one too much."""
    kept: list[int] = []
    for box in scores.argsort(descending=True, stable=True).tolist():
        others = boxes[kept]
        low, high = torch.maximum(others[:, :2], boxes[box, :2]), torch.minimum(others[:, 2:], boxes[box, 2:])
        shared = (high - low).clamp_min(0).prod(1)
        sizes = (others[:, 2:] - others[:, :2]).prod(1) + (boxes[box, 2:] - boxes[box, :2]).prod()
        if not bool((shared / (sizes - shared) > threshold).any()):
            kept.append(box)
    return torch.tensor(kept, dtype=torch.int64)


@pytest.mark.slow
def test_a_detector_of_torchvision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    models = foreign("torchvision.models")
    boxes = foreign("torchvision.ops.boxes")
    monkeypatch.setattr(boxes, "nms", suppress)  # its own is compiled for GPUs
    torch.manual_seed(0)
    network = models.detection.ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None)
    torch.save(network.state_dict(), tmp_path / "net.pt")
    model = open_detector("torchvision:ssdlite320_mobilenet_v3_large", weights=tmp_path / "net.pt", device="cpu")
    assert model.classes is not None
    assert (model.classes[0], model.classes[1], len(model.classes)) == (None, "person", 91)
    pixels = torch.randint(0, 256, (2, 3, 200, 260), dtype=torch.uint8)
    for entry, alone in zip(model(pixels), [model(pixels[i : i + 1])[0] for i in range(2)], strict=True):
        assert entry["boxes"].shape == (len(entry["scores"]), 4)
        assert torch.allclose(entry["scores"], alone["scores"], atol=1e-4)
    with torch.inference_mode():
        own = network.eval()([pixels[0] / 255])[0]
    assert torch.equal(model(pixels)[0]["boxes"], own["boxes"])
    with pytest.raises(InputError, match="torchvision knows no detector 'resnet50'"):
        open_detector("torchvision:resnet50")


@pytest.mark.slow
def test_a_detector_of_transformers(tmp_path: Path) -> None:
    transformers = foreign("transformers")
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 37}
    config = transformers.YolosConfig(
        **sizes, image_size=[64, 96], patch_size=16, num_detection_tokens=7, id2label={0: "N/A", 1: "red", 2: "blue"}
    )
    transformers.YolosForObjectDetection(config).save_pretrained(tmp_path)
    transformers.YolosImageProcessor(size={"height": 64, "width": 96}).save_pretrained(tmp_path)
    model = open_detector(f"hf:{tmp_path}", device="cpu")
    assert list(model.classes or ()) == [None, "red", "blue"]
    (entry,) = model(torch.randint(0, 256, (1, 3, 100, 150), dtype=torch.uint8))
    assert entry["boxes"].shape == (7, 4)
    assert set(entry["labels"].tolist()) <= {0, 1, 2}
    centres = (entry["boxes"][:, :2] + entry["boxes"][:, 2:]) / 2
    assert bool((centres[:, 0] <= 150).all() and (centres[:, 1] <= 100).all())


def onnx_detector(path: Path, side: int | str) -> None:
    """A graph that says the same of every image: two boxes, and the mean level of the image as a score."""
    onnx = foreign("onnx")
    helper, kind = onnx.helper, onnx.TensorProto
    boxes = helper.make_tensor("b", kind.FLOAT, (1, 2, 4), [0, 0, 8, 8, 4, 4, 16, 12])
    labels = helper.make_tensor("l", kind.INT64, (1, 2), [1, 3])
    nodes = [
        helper.make_node("Constant", [], ["dets"], value=boxes),
        helper.make_node("Constant", [], ["labels"], value=labels),
        helper.make_node("GlobalAveragePool", ["image"], ["mean"]),
        helper.make_node("Slice", ["mean", "from", "to", "axis"], ["two"]),
        helper.make_node("Reshape", ["two", "shape"], ["scores"]),
    ]
    values = {"from": [0], "to": [2], "axis": [1], "shape": [1, 2]}
    constants = [helper.make_tensor(name, kind.INT64, (len(own),), own) for name, own in values.items()]
    taken = [helper.make_tensor_value_info("image", kind.FLOAT, [1, 3, side, side])]
    given = [helper.make_tensor_value_info(name, kind.FLOAT, None) for name in ("dets", "scores")]
    given.append(helper.make_tensor_value_info("labels", kind.INT64, None))
    graph = helper.make_graph(nodes, "detector", taken, given, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())


@pytest.mark.parametrize(("side", "scale"), [(16, (2.5, 2.0)), ("n", (1.0, 1.0))])
def test_a_detector_of_onnx(tmp_path: Path, side: int | str, scale: tuple[float, float]) -> None:
    foreign("onnxruntime")
    onnx_detector(tmp_path / "net.onnx", side)
    model_outputs = ("dets", "scores", "labels")
    model = open_detector(str(tmp_path / "net.onnx"), outputs=model_outputs, device="cpu")
    pixels = torch.full((2, 3, 32, 40), 51, dtype=torch.uint8)
    answers: list[dict[str, Any]] = model(pixels)
    assert len(answers) == 2
    boxes = np.array([[0, 0, 8, 8], [4, 4, 16, 12]]) * [*scale, *scale]
    assert answers[0]["boxes"].numpy() == pytest.approx(boxes)
    assert answers[1]["scores"].numpy() == pytest.approx([0.2, 0.2], rel=1e-5)
    assert answers[1]["labels"].tolist() == [1, 3]
    assert model.classes is None
    (tmp_path / "names.txt").write_text("none\nred\ngreen\nblue\n")
    named = open_detector(str(tmp_path / "net.onnx"), outputs=model_outputs, class_names=str(tmp_path / "names.txt"))
    assert named.reopen is not None
    for each in (named, named.reopen(torch.device("cpu"))):
        assert each.classes == ("none", "red", "green", "blue")
    with pytest.raises(InputError, match="no output 'boxes' among dets, scores, labels"):
        open_detector(str(tmp_path / "net.onnx"))


def onnx_segmenter(path: Path, side: int | str, *, last: bool = False) -> None:
    """A graph whose class scores are the levels of the channels, and whose classes are the greatest of them."""
    onnx = foreign("onnx")
    helper, kind = onnx.helper, onnx.TensorProto
    nodes = [
        helper.make_node("Identity", ["image"], ["scores"]),
        helper.make_node("ArgMax", ["image"], ["classes"], axis=1, keepdims=1),
    ]
    taken = [helper.make_tensor_value_info("image", kind.FLOAT, [1, side, side, 3] if last else [1, 3, side, side])]
    given = [helper.make_tensor_value_info("scores", kind.FLOAT, None)]
    given.append(helper.make_tensor_value_info("classes", kind.INT64, None))
    graph = helper.make_graph(nodes, "segmenter", taken, given)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())


def test_a_model_of_pixels_of_onnx(tmp_path: Path) -> None:
    foreign("onnxruntime")
    path = tmp_path / "net.onnx"
    pixels = torch.zeros(2, 3, 32, 40, dtype=torch.uint8)
    pixels[0, 1, :16], pixels[0, 2, 16:] = 200, 100
    pixels[1, 0, :, :20], pixels[1, 2, :, 20:] = 50, 250
    true = pixels.int().argmax(1)
    onnx_segmenter(path, "n")
    for given in ((), ("scores",)):
        scores = open_segmenter(str(path), outputs=given, device="cpu")(pixels)
        assert scores.numpy() == pytest.approx(pixels.numpy() / 255)
    for side in ("n", 16):  # of the image's size, and of its own
        onnx_segmenter(path, side)
        assert torch.equal(open_segmenter(str(path), outputs=("classes",), device="cpu")(pixels), true)
    assert open_segmenter(str(path), device="cpu")(pixels).shape == (2, 3, 16, 16)
    for outputs, message in ((("x",), "no output 'x' among scores, classes"), (("a", "b"), "expected one, of class")):
        with pytest.raises(InputError, match=message):
            open_segmenter(str(path), outputs=outputs)
    with pytest.raises(InputError, match="expected none, or an ONNX file"):
        open_segmenter("demo:colours", outputs=("classes",))
    onnx_segmenter(path, "n", last=True)
    with pytest.raises(InputError, match="classes are told by the numbers of the maps"):
        open_segmenter(str(path), class_names="imagenet")
    with pytest.raises(InputError, match="channels last"):
        open_segmenter(str(path))


def test_an_onnx_model_of_pixels_is_measured(tmp_path: Path) -> None:
    from command_line import invoke

    foreign("onnxruntime")
    onnx_segmenter(tmp_path / "net.onnx", "n")
    words = ("run", "cityscapes-c", "--task", "segmentation", "-m", str(tmp_path / "net.onnx"), "-d", "demo:shapes")
    more = ("-n", "2", "--only", "contrast@5", "--output-names", "classes", "-o", str(tmp_path / "r"))
    code, printed, error = invoke(*words, *more, columns=300)
    assert code == 0, error
    assert "mIoU" in printed
    assert "net: nothing says what its input is like" in printed + error
