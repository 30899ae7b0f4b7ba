"""Labels beside images: their kinds and shapes, batches, chains, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import blemish
from blemish import Corruption, InputError, SeverityTable, catalog, chain, corrupt, random_severity
from pictures import pictures

IMAGES = pictures(3, 3, 40, 56)
BOXES = [[5.0, 6.0, 20.0, 30.0], [30.0, 10.0, 50.0, 38.0]]
TURN = catalog["noc:rotation"]


def test_a_batch_has_the_labels_of_its_images_one_by_one() -> None:
    """Each at a severity and an id of its own."""
    severities, ids = [1.0, 3.0, 0.0], [7, 8, 9]
    masks, points = (IMAGES[:, 0] > 128).to(torch.int32), torch.tensor(BOXES)[:, :2].expand(3, 2, 2)
    stacks: dict[str, Any] = {"boxes": torch.tensor(BOXES).expand(3, 2, 4), "masks": masks, "keypoints": points}
    whole = corrupt(IMAGES, TURN, severities, ids=ids, seed=4, **stacks)
    for row in range(3):
        own = {name: values[row] for name, values in stacks.items()}
        one = corrupt(IMAGES[row], TURN, severities[row], ids=ids[row], seed=4, **own)
        assert torch.equal(one.images, whole.images[row])
        for name in ("boxes", "boxes_kept", "masks", "keypoints", "keypoints_visible"):
            assert torch.equal(getattr(one, name), getattr(whole, name)[row]), name
    assert torch.equal(whole.masks[2], masks[2])
    assert torch.allclose(whole.boxes[2], torch.tensor(BOXES))
    assert whole.masks.dtype == torch.int32
    assert not torch.allclose(whole.boxes[1], torch.tensor(BOXES), atol=1)


def test_lists_of_different_lengths_beside_pictures_of_different_sizes() -> None:
    sizes = [(56, 40), (30, 64), (56, 40)]
    images = [Image.new("RGB", size, (90, 120, 30)) for size in sizes]
    masks = [np.ones((2, height, width), bool) for width, height in sizes]
    boxes = [np.array(BOXES, np.float32), np.zeros((0, 4)), [BOXES[0]]]
    out = corrupt(images, "syn2nat:flip", 5, boxes=boxes, masks=masks)
    assert [entry.shape for entry in out.boxes] == [(2, 4), (0, 4), (1, 4)]
    assert [entry.tolist() for entry in out.boxes_kept] == [[True, True], [], [True]]
    assert [entry.shape for entry in out.masks] == [entry.shape for entry in masks]
    assert all(entry.all() and entry.dtype == bool for entry in out.masks)
    assert out.boxes[0].dtype == np.float32
    assert isinstance(out.images, list)


@pytest.mark.parametrize(("name", "how"), [("fog", "not at all"), ("motion_blur", "a little")])
def test_labels_stay_without_a_map(name: str, how: str) -> None:
    boxes, mask = torch.tensor([[-4, 2, 9, 7]]), np.ones((40, 56))
    out = corrupt(IMAGES[0], name, 3, boxes=boxes, masks=mask, keypoints=[[1, 2, 0], [3, 4, 2]])
    assert out.moves == how
    assert out.boxes is boxes
    assert out.masks is mask
    assert out.keypoints == [[1, 2, 0], [3, 4, 2]]
    assert out.boxes_kept.tolist() == [True]
    assert out.keypoints_visible.tolist() == [False, True]
    assert torch.equal(out.images, corrupt(IMAGES[0], name, 3))


def _darker(images: torch.Tensor, params: Any, draw: Any) -> torch.Tensor:
    return images * 0.5


def test_a_corruption_of_ones_own_that_says_nothing() -> None:
    mine = Corruption("darker", "mine", "Darker.", SeverityTable.linear(), _darker)
    assert corrupt(IMAGES[0], mine, 3, boxes=BOXES).moves == "not stated"
    assert chain((mine, 3), (TURN, 3)).moves is None


def test_a_chain_moves_by_one_map_after_the_other() -> None:
    """The links of a chain at 5 draw what they draw alone: their labels can be moved one after the other."""
    both = chain((catalog["noc:translation"], 2), (catalog["fog"], 3), (TURN, 4))
    out = corrupt(IMAGES[0], both, 5, ids=3, boxes=BOXES, keypoints=[[20.0, 20.0]])
    first = corrupt(IMAGES[0], "noc:translation", 2, ids=3, boxes=BOXES, keypoints=[[20.0, 20.0]])
    second = corrupt(IMAGES[0], TURN, 4, ids=3, boxes=first.boxes, keypoints=first.keypoints)
    assert out.moves == "by a map"
    assert np.allclose(out.boxes, second.boxes, atol=1e-4)
    assert np.allclose(out.keypoints, second.keypoints, atol=1e-4)
    assert chain((catalog["fog"], 3), (catalog["glass_blur"], 3)).moves == catalog["glass_blur"].moves


def test_a_random_severity_moves_labels_by_what_it_drew() -> None:
    any_turn = random_severity(TURN, 1, 5)
    image = torch.full((3, 40, 56), 30, dtype=torch.uint8)
    image[:, 12:20, 10:24] = 230
    for number in range(3):
        out = corrupt(image, any_turn, 5, ids=number, boxes=[[10, 12, 24, 20]])
        rows, columns = (out.images[0] > 130).nonzero().unbind(1)
        found = [int(columns.min()), int(rows.min()), int(columns.max()) + 1, int(rows.max()) + 1]
        assert np.allclose(out.boxes[0], found, atol=1.6)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "xywh": ({"boxes": [[30, 30, 10, 10]]}, "ends before it begins; expected left, top, right and bottom"),
    "three numbers": ({"boxes": [[1, 2, 3]]}, r"boxes of shape \(1, 3\)"),
    "not a number": ({"boxes": [[1, 2, 3, float("nan")]]}, "not finite"),
    "another size": ({"masks": np.zeros((40, 40))}, r"expected \(40, 56\)"),
    "one coordinate": ({"keypoints": [[1]]}, r"keypoints of shape \(1, 1\)"),
    "ragged": ({"boxes": [[1, 2, 3, 4], [1]]}, "boxes: "),
}


@pytest.mark.parametrize("case", list(REFUSED))
@pytest.mark.parametrize("name", ["fog", "noc:rotation"])
def test_labels_that_are_none_are_refused(case: str, name: str) -> None:
    labels, message = REFUSED[case]
    with pytest.raises(InputError, match=message):
        corrupt(IMAGES[0], name, 3, **labels)


@pytest.mark.parametrize("name", ["fog", "noc:rotation"])
def test_no_labels_at_all_are_labels(name: str) -> None:
    for given, shape in (([], (0, 2)), (np.zeros((0, 2)), (0, 2)), (np.zeros((0, 17, 3)), (0, 17, 3))):
        out = corrupt(IMAGES[0], name, 3, boxes=[], keypoints=given, masks=np.zeros((0, 40, 56)))
        assert len(out.boxes) == len(out.boxes_kept) == len(out.keypoints) == len(out.keypoints_visible) == 0
        assert name == "fog" or np.shape(out.keypoints) == shape


def test_boxes_without_area_are_gone_after_a_map() -> None:
    boxes = [[10, 10, 10, 20], [10, 10, 30, 10], [10, 10, 30, 20]]
    assert corrupt(IMAGES[0], "syn2nat:flip", 5, boxes=boxes).boxes_kept.tolist() == [False, False, True]
    assert corrupt(IMAGES[0], "fog", 3, boxes=boxes).boxes_kept.tolist() == [True, True, True]


def test_a_batch_needs_labels_for_each_image() -> None:
    with pytest.raises(InputError, match="boxes for a batch of 3 images"):
        corrupt(IMAGES, TURN, 3, boxes=BOXES)


def test_the_transform_takes_the_option() -> None:
    assert "move_labels=True" in repr(blemish.Corrupt(TURN, 3, move_labels=True))
