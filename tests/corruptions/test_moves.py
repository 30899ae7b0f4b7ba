"""What every corruption says of places: those that leave pixels do, and those with a map agree with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import blemish
from blemish.corruptions.moves import A_LITTLE, STILL
from frost_files import skip_without_files

HEIGHT, WIDTH = 72, 96
LIGHT, DARK = 215, 40

STAYING = [name for name, unit in blemish.catalog.items() if unit.moves == STILL]
MAPPED = [name for name, unit in blemish.catalog.items() if unit.moves is not None and unit.moves.maps is not None]

# Strong enough to move markers by pixels, and weak enough to leave them in the image.
WEAKER = {
    "syn2nat:translate": 1.5,
    "syn2nat:rotate": 0.8,
    "syn2nat:optical_distortion": 1.0,
    "human:rotation": 1.0,
    "cbar:caustic_refraction": 1.0,
}


def severity_of(name: str) -> float:
    only = blemish.catalog[name].only_severity
    return WEAKER.get(name, 2.0 if only is None else only)


def marked(left: int, top: int, right: int, bottom: int) -> Tensor:
    """A dark image with a light rectangle."""
    image = torch.full((3, HEIGHT, WIDTH), DARK, dtype=torch.uint8)
    image[:, top:bottom, left:right] = LIGHT
    return image


def light(image: Tensor) -> Tensor:
    """Where a corrupted image shows the rectangle."""
    return image.to(torch.float64).mean(0) > (LIGHT + DARK) / 2


def bounds(seen: Tensor) -> list[float]:
    rows, columns = seen.any(1).nonzero(), seen.any(0).nonzero()
    return [float(columns.min()), float(rows.min()), float(columns.max()) + 1, float(rows.max()) + 1]


def test_every_corruption_says_whether_it_moves_pixels() -> None:
    assert [name for name, unit in blemish.catalog.items() if unit.moves is None] == []
    assert {unit.moves.how for unit in blemish.catalog.values() if unit.moves} == {"not at all", "a little", "by a map"}
    for name in ("glass_blur", "motion_blur", "zoom_blur"):
        assert blemish.catalog[name].moves == A_LITTLE
    assert {"elastic_transform", "noc:rotation", "noc:shear", "syn2nat:flip", "syn2nat:cutout"} <= set(MAPPED)


def test_those_that_say_so_leave_pixels_where_they_are() -> None:
    """A texture is shifted by up to two pixels over the corrupted one: they fit best where they are."""
    coarse = torch.rand(1, 1, 16, 16, generator=torch.Generator().manual_seed(3))
    smooth = F.interpolate(coarse, size=(96, 96), mode="bicubic").clamp(0, 1)
    texture = (smooth * 200 + 28).to(torch.uint8)[0, 0]
    images = texture.expand(5, 3, -1, -1).contiguous()
    shifts = [(down, right) for down in range(-2, 3) for right in range(-2, 3)]
    windows = torch.stack([texture[2 + y : 94 + y, 2 + x : 94 + x] for y, x in shifts]).flatten(1).to(torch.float64)
    windows -= windows.mean(1, keepdim=True)
    windows /= windows.norm(dim=1, keepdim=True)
    moved = []
    for name in STAYING:
        unit = blemish.catalog[name]
        if unit.files is not None and name.startswith(("frost", "sensor")):
            continue
        out = unit(images, severity=unit.only_severity or 1.0, seed=1)
        inner = out[..., 2:94, 2:94].to(torch.float64).mean(1).flatten(1)
        inner -= inner.mean(1, keepdim=True)
        fit = (inner @ windows.T / inner.norm(dim=1, keepdim=True).clamp(min=1e-9)).abs().sum(0)
        if shifts[int(fit.argmax())] != (0, 0):
            moved.append(name)
    assert moved == []


@pytest.mark.parametrize("name", MAPPED)
def test_boxes_and_masks_are_around_the_marker(name: str) -> None:
    skip_without_files(blemish.catalog[name])
    image, box = marked(33, 22, 60, 47), [[33.0, 22.0, 60.0, 47.0]]
    mask = (image[0] == LIGHT).to(torch.uint8)
    for seed in range(3):
        out = blemish.corrupt(image, name, severity_of(name), seed=seed, ids=7, boxes=box, masks=mask, fill=9)
        assert out.moves == "by a map"
        assert torch.equal(out.images, blemish.corrupt(image, name, severity_of(name), seed=seed, ids=7))
        seen = light(out.images) & (out.masks != 9)
        both, either = (seen & (out.masks == 1)).sum(), (seen | (out.masks == 1)).sum()
        assert both / either > 0.9, (seed, float(both / either))
        assert out.boxes_kept.tolist() == [True]
        found = bounds(seen)
        # A rectangle's corner may be too thin to be light where the map is not along the axes.
        assert np.allclose(out.boxes[0], found, atol=1.6), (seed, out.boxes[0], found)


@pytest.mark.parametrize("name", MAPPED)
def test_keypoints_are_in_the_marker(name: str) -> None:
    skip_without_files(blemish.catalog[name])
    x, y = 43, 34
    image, mask = marked(x - 2, y - 2, x + 3, y + 3), torch.zeros(HEIGHT, WIDTH)
    for seed in range(3):
        point = torch.tensor([[x + 0.5, y + 0.5, 2]])
        out = blemish.corrupt(image, name, severity_of(name), seed=seed, ids=3, keypoints=point, masks=mask, fill=9)
        rows, columns = (light(out.images) & (out.masks != 9)).nonzero().to(torch.float64).unbind(1)
        if not bool(out.keypoints_visible):  # a cut-out, or a tile that went with some of the marker
            assert out.keypoints.tolist() == [[0, 0, 0]]
            assert len(rows) < 25
            continue
        place = torch.stack([columns.median(), rows.median()]) + 0.5
        found = out.keypoints[0, :2].to(torch.float64)
        assert torch.allclose(found, place, atol=2), (seed, found, place)
        assert bool(((rows + 0.5 - found[1]).abs() + (columns + 0.5 - found[0]).abs() < 1.2).any()), (seed, found)
        assert out.keypoints[0, 2] == 2


def moved_by(name: str, image: Tensor, severity: float, **labels: Any) -> blemish.Corrupted:
    return blemish.corrupt(image, name, severity, ids=1, **labels)


class TestByHand:
    """Results that can be worked out without looking at the image."""

    def test_a_flip(self) -> None:
        """A flip left to right takes x to width − x, upside down y to height − y; one draw is one of three."""
        image = marked(10, 20, 30, 25)
        points = np.array([[12.25, 20.5]])
        seen = set()
        for seed in range(12):
            out = blemish.corrupt(
                image, "syn2nat:flip", 5, seed=seed, boxes=[[10, 20, 30.5, 25]], keypoints=points, masks=image[0]
            )
            left, top, right, bottom = out.boxes[0].tolist()
            across, down = left != 10, top != 20
            assert [left, right] == pytest.approx([WIDTH - 30.5, WIDTH - 10] if across else [10, 30.5])
            assert [top, bottom] == pytest.approx([HEIGHT - 25, HEIGHT - 20] if down else [20, 25])
            expected = [WIDTH - 12.25 if across else 12.25, HEIGHT - 20.5 if down else 20.5]
            assert out.keypoints[0].tolist() == pytest.approx(expected)
            assert torch.equal(out.masks, out.images[0])
            seen.add((across, down))
        assert seen == {(True, False), (False, True), (True, True)}

    def test_a_quarter_turn_of_an_oblong_image(self) -> None:
        """Anticlockwise about the centre (w/2, h/2): x′ = w/2 + y − h/2, y′ = h/2 − (x − w/2)."""
        box = [[40.0, 20.0, 60.0, 30.0]]
        out = moved_by("human:rotation", marked(40, 20, 60, 30), 1.0, boxes=box, keypoints=[[41.0, 22.0]])
        turned = bounds(light(out.images))
        assert out.boxes[0].tolist() == pytest.approx(turned)
        assert out.boxes[0].tolist() == pytest.approx([32, 24, 42, 44])
        assert out.keypoints[0].tolist() == pytest.approx([34, 43])

    def test_an_obstruction_clips_and_empties(self) -> None:
        image = torch.zeros(3, HEIGHT, WIDTH, dtype=torch.uint8)
        whole = [[0.0, 0.0, WIDTH, HEIGHT]]
        hidden = moved_by("noc:obstruction", image, 5, masks=torch.ones(HEIGHT, WIDTH), boxes=whole, fill=255)
        left, top, right, bottom = bounds(hidden.masks == 255)
        assert (hidden.masks == 255).sum() == (right - left) * (bottom - top) > 0
        assert hidden.boxes[0].tolist() == whole[0]
        inside = [[left + 2, top + 2, right - 2, bottom - 2], [left - 3, top + 1, right - 5, bottom - 1]]
        out = moved_by("noc:obstruction", image, 5, boxes=inside, keypoints=[[left + 3, top + 3], [left - 1, top + 2]])
        assert out.boxes_kept.tolist() == [False, True]
        assert out.boxes[0].tolist() == [0, 0, 0, 0]
        assert out.boxes[1].tolist() == pytest.approx([left - 3, top + 1, left, bottom - 1])
        assert out.keypoints_visible.tolist() == [False, True]
        assert np.isnan(out.keypoints[0]).all()

    def test_a_translation_by_whole_pixels(self) -> None:
        """15 of 224 pixels at severity 1, of 72: ⌊4.82 + ½⌋ = 5 down, of 96: ⌊6.43 + ½⌋ = 6 across."""
        out = moved_by("noc:translation", marked(33, 22, 60, 47), 1, boxes=[[33.25, 22.0, 60.0, 47.5], [-9, -9, 2, 2]])
        across, down = out.boxes[0, 0].item() - 33.25, out.boxes[0, 1].item() - 22
        assert (abs(across), abs(down)) == (6, 5)
        assert out.boxes[0].tolist() == [33.25 + across, 22 + down, 60 + across, 47.5 + down]
        corner = [max(across, 0), max(down, 0), 2 + across, 2 + down]
        assert out.boxes_kept[1] == (across > 0 and down > 0)
        assert out.boxes[1].tolist() == (corner if out.boxes_kept[1] else [0, 0, 0, 0])
