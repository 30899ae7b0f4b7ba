"""`Corrupt` among torchvision's own transforms, with its kinds of tensors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

import blemish
from blemish.core.errors import InputError
from blemish.ops.levels import as_levels
from foreign import foreign
from pictures import pictures

tv_tensors = foreign("torchvision.tv_tensors")
v2 = foreign("torchvision.transforms.v2")

pytestmark = pytest.mark.slow

FOG = blemish.Corrupt("fog", 3)
SIDE = 24


def levels(row: int = 0) -> Tensor:
    return pictures(1, 3, SIDE, SIDE, first=row)[0]


def detection(row: int = 0) -> dict[str, Any]:
    """A sample of everything that torchvision's transforms know."""
    return {
        "image": tv_tensors.Image(levels(row)),
        "boxes": tv_tensors.BoundingBoxes([[1, 2, 9, 12]], format="XYXY", canvas_size=(SIDE, SIDE)),
        "masks": tv_tensors.Mask(torch.ones(1, SIDE, SIDE, dtype=torch.uint8)),
        "keypoints": tv_tensors.KeyPoints([[3, 4]], canvas_size=(SIDE, SIDE)),
        "labels": torch.tensor([3]),
        "image_id": 40 + row,
        "name": "cat",
    }


def test_images_only() -> None:
    sample = detection()
    result = FOG(sample)
    assert type(result["image"]) is tv_tensors.Image
    assert torch.equal(result["image"].as_subclass(Tensor), FOG(levels()))
    for key in sample.keys() - {"image"}:
        assert result[key] is sample[key], key


@pytest.mark.parametrize("form", ["XYXY", "XYWH", "CXCYWH"])
def test_labels_move_by_a_map_where_that_is_asked_for(form: str) -> None:
    """A flip takes x to width − x; boxes of any format, and what is nothing of these stays."""
    sample = {**detection(), "keypoints": tv_tensors.KeyPoints([[3.0, 4.0]], canvas_size=(SIDE, SIDE))}
    boxes = tv_tensors.wrap(sample["boxes"].float(), like=sample["boxes"])
    sample["boxes"] = v2.functional.convert_bounding_box_format(boxes, new_format=form)
    for number in range(6):
        result = blemish.Corrupt("syn2nat:flip", 5, move_labels=True)(sample, id=number)
        drawn = blemish.corrupt(levels(), "syn2nat:flip", 5, ids=number, boxes=[[1, 2, 9, 12]], keypoints=[[3, 4]])
        assert torch.equal(result["image"].as_subclass(Tensor), drawn.images)
        assert type(result["boxes"]) is tv_tensors.BoundingBoxes
        plain = v2.functional.convert_bounding_box_format(result["boxes"], new_format="XYXY")
        assert plain[0].tolist() == pytest.approx(drawn.boxes[0].tolist())
        assert result["keypoints"].tolist() == drawn.keypoints.tolist() != [[3, 4]]
        assert result["masks"].shape == (1, SIDE, SIDE)
        assert result["labels"] is sample["labels"]
    still = blemish.Corrupt("fog", 3, move_labels=True)(sample)
    assert still["boxes"] is sample["boxes"]
    with pytest.raises(InputError, match="expected floats"):
        blemish.Corrupt("syn2nat:flip", 5, move_labels=True)(detection())


class _Marker(v2.Transform):  # type: ignore[misc]
    """A transform of torchvision's own that says what it was given to change."""

    _transformed_types = (Tensor, Image.Image)

    def transform(self, inpt: Any, _: dict[str, Any]) -> Any:
        if isinstance(inpt, tv_tensors.TVTensor) and not isinstance(inpt, tv_tensors.Image | tv_tensors.Video):
            return inpt
        return "changed"


def picture() -> Image.Image:
    return Image.fromarray(levels().permute(1, 2, 0).numpy())


SAMPLES = {
    "detection": detection,
    "tensor and label": lambda: (levels(), 3),
    "two tensors": lambda: (levels(), levels(1)),
    "nested": lambda: ({"a": [levels(), torch.tensor(1)]}, (levels(2),)),
    "picture after tensor": lambda: (levels(), picture()),
    "two pictures": lambda: {"left": picture(), "right": picture(), "depth": torch.rand(1, SIDE, SIDE)},
    "image after tensor": lambda: (torch.rand(7), tv_tensors.Image(levels())),
    "video": lambda: (tv_tensors.Video(torch.stack([levels(), levels(1)])), levels()),
    "mask before tensor": lambda: (tv_tensors.Mask(torch.ones(SIDE, SIDE)), levels(), levels(1)),
}


@pytest.mark.parametrize("case", SAMPLES)
def test_the_rule_is_torchvisions(case: str) -> None:
    """What a transform of torchvision changes is what Corrupt changes, and nothing else."""
    sample = SAMPLES[case]()
    before = torch.utils._pytree.tree_leaves(sample)
    after = torch.utils._pytree.tree_leaves(FOG(sample))
    marked = torch.utils._pytree.tree_leaves(_Marker()(sample))
    expected = [leaf is not mark for leaf, mark in zip(before, marked, strict=True)]
    assert any(expected)
    assert [new is not old for old, new in zip(before, after, strict=True)] == expected


@pytest.mark.parametrize("first", ["picture", "tensor", "image"])
def test_before_and_after_to_dtype(first: str) -> None:
    to_float = v2.ToDtype(torch.float32, scale=True)
    image = {"picture": picture(), "tensor": levels(), "image": tv_tensors.Image(levels())}[first]
    before = v2.Compose([FOG, v2.ToImage(), to_float])(image, 5)
    after = v2.Compose([v2.ToImage(), to_float, FOG])(image, 5)
    assert before[1] == after[1] == 5
    assert type(before[0]) is type(after[0]) is tv_tensors.Image
    assert torch.equal(before[0], after[0])


def test_between_other_transforms() -> None:
    pipeline = v2.Compose([v2.Resize(32), v2.RandomHorizontalFlip(p=1.0), FOG, v2.ToDtype(torch.float32, scale=True)])
    result = pipeline(detection())
    alone = v2.Compose([v2.Resize(32), v2.RandomHorizontalFlip(p=1.0)])(detection())
    assert result["image"].shape == (3, 32, 32)
    assert torch.equal(result["boxes"], alone["boxes"])
    assert torch.equal(as_levels(result["image"]), FOG(alone["image"]))


def test_values_that_are_normalised_are_refused() -> None:
    pipeline = v2.Compose([v2.ToDtype(torch.float32, scale=True), v2.Normalize([0.5] * 3, [0.2] * 3), FOG])
    with pytest.raises(InputError, match=r"the sample's \['image'\]: float images with values in"):
        pipeline(detection())


def test_a_video_has_one_draw() -> None:
    frames = torch.stack([levels(), levels(), levels(1)])
    result = FOG(tv_tensors.Video(frames))
    assert type(result) is tv_tensors.Video
    assert torch.equal(result[0], result[1])
    assert torch.equal(result[0], FOG(levels()))
    assert torch.equal(result[2], FOG(levels(1), id=blemish.corruptions.transform.content_id(levels())))
    assert torch.equal(blemish.corrupt(tv_tensors.Video(frames), "fog", 3)[2], blemish.corrupt(levels(1), "fog", 3))
    assert torch.equal(FOG(tv_tensors.Video(frames), id=4)[2], FOG(levels(1), id=4))


@pytest.mark.parametrize("kind", ["masks", "boxes", "keypoints"])
def test_other_kinds_alone_are_refused(kind: str) -> None:
    value = detection()[kind]
    with pytest.raises(InputError, match=f"images of type {type(value).__name__}; expected an image"):
        FOG(value)


class Detections(Dataset[Any]):
    """As torchvision's wrapped datasets: an image and a target, transformed together."""

    def __init__(self) -> None:
        corrupted = blemish.Corrupt("fog", 3, id_from="image_id")
        self.transforms = v2.Compose([v2.ToDtype(torch.float32, scale=True), corrupted])

    def __len__(self) -> int:
        return 4

    def __getitem__(self, row: int) -> Any:
        target = detection(row)
        return self.transforms(target.pop("image"), target)


def test_in_workers_with_ids_of_the_dataset() -> None:
    for workers in (0, 2):
        loader = DataLoader(Detections(), batch_size=2, num_workers=workers, collate_fn=list)
        samples = [sample for batch in loader for sample in batch]
        assert [target["image_id"] for _, target in samples] == [40, 41, 42, 43]
        for row, (image, target) in enumerate(samples):
            assert torch.equal(as_levels(image), FOG(levels(row), id=40 + row))
            assert torch.equal(target["boxes"], torch.tensor([[1, 2, 9, 12]]))


def test_samples_stay_on_their_device(device: torch.device) -> None:
    sample = detection()
    sample["image"] = tv_tensors.Image(levels().to(device))
    result = blemish.Corrupt("gaussian_noise", 3, id_from="image_id")(sample)["image"]
    assert type(result) is tv_tensors.Image
    assert result.device.type == device.type
    assert torch.equal(result.cpu(), blemish.Corrupt("gaussian_noise", 3)(levels().to(device), id=40).cpu())
