"""ImageNet-P's sequences, each against an independent computation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import ndimage
from torch import Tensor

from blemish.corruptions.draws import Field
from blemish.corruptions.imagenet_p import sequence as sequences_base
from blemish.corruptions.imagenet_p import sequences
from blemish.ops.levels import unit_range
from pictures import centre, pictures

NOISES = ["p:gaussian_noise", "p:shot_noise", "p:speckle_noise"]


def smooth(count: int, height: int, width: int) -> Tensor:
    """Pictures without grain, so that an error of a hundredth of a pixel stays below a level."""
    rows, columns = torch.arange(height)[:, None], torch.arange(width)
    waves = [
        128 + 100 * torch.sin(columns / (9 + i) + i) * torch.cos(rows / (11 + c) + c)
        for i in range(count)
        for c in range(3)
    ]
    return torch.stack(waves).to(torch.uint8).view(count, 3, height, width)


def pillow_affine(image: Tensor, matrix: tuple[float, ...], side: int) -> Tensor:
    """Pillow's own bilinear affine transform of a whole image, then a centre crop."""
    picture = Image.fromarray(image.permute(1, 2, 0).numpy())
    moved = picture.transform(picture.size, Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR)
    return centre(torch.from_numpy(np.array(moved)).permute(2, 0, 1), side)


def about(matrix: np.ndarray, height: int, width: int) -> tuple[float, ...]:
    """A backward 2×2 matrix as Pillow's six numbers, with torchvision 0.2's centre (w/2 + ½, h/2 + ½)."""
    middle = np.array([width / 2 + 0.5, height / 2 + 0.5])
    shift = middle - matrix @ middle
    return (*matrix[0].tolist(), float(shift[0]), *matrix[1].tolist(), float(shift[1]))


def assert_close(result: Tensor, expected: Tensor, *, same: float = 0.98) -> None:
    """Float32 positions against Pillow's double ones: at most one level, and seldom."""
    difference = (result.int() - expected.int()).abs()
    assert difference.max() <= 1
    assert (difference == 0).double().mean() > same


class TestNoise:
    @pytest.mark.parametrize(
        ("name", "preset", "sigmas"),
        [
            ("p:gaussian_noise", "imagenet", (0.03, 0.05, 0.08)),
            ("p:gaussian_noise", "imagenet64", (0.025, 0.05, 0.075)),
            ("p:speckle_noise", "imagenet", (0.05 / 2, 0.10 / 2, 0.15 / 2)),
            ("p:shot_noise", "imagenet", tuple((0.5 / n) ** 0.5 for n in (300, 120, 60))),
            ("p:shot_noise", "imagenet64", tuple((0.5 / n) ** 0.5 for n in (500, 250, 125))),
        ],
    )
    def test_strength(self, name: str, preset: str, sigmas: tuple[float, ...]) -> None:
        """On a mid-gray image, by the standard deviation that each law has there."""
        gray = torch.full((1, 3, 128, 128), 128, dtype=torch.uint8)
        for difficulty, sigma in enumerate(sigmas, 1):
            frame = sequences[name].frame(gray, 4, difficulty=difficulty, preset=preset, crop=128).double()
            assert frame.std() / 255 == pytest.approx(sigma, rel=0.02)
            assert frame.mean() == pytest.approx(127.5, abs=0.6)  # truncated, so half a level darker

    @pytest.mark.parametrize("name", NOISES)
    def test_frames_are_independent(self, name: str) -> None:
        gray = torch.full((1, 3, 64, 64), 128, dtype=torch.uint8)
        one, two = (sequences[name].frame(gray, index).double().flatten() - 128 for index in (3, 4))
        assert abs(torch.corrcoef(torch.stack([one, two]))[0, 1]) < 0.03


class TestWarps:
    def test_translate_moves_whole_pixels(self) -> None:
        images = pictures(1, 3, 256, 300)
        crop = centre(images, 224)
        for index, frame in enumerate(sequences["p:translate"].frames(images)):
            shift = index - 20
            whole = torch.zeros(1, 3, 256, 360, dtype=torch.uint8)
            whole[..., 30 + shift : 330 + shift] = images
            assert torch.equal(frame, centre(whole[..., 30:330], 224))
        assert torch.equal(frame[..., 20:], crop[..., :-20])

    def test_translate_at_64_pixels(self) -> None:
        images = pictures(1, 1, 64, 64)
        first = sequences["p:translate"].frame(images, 0)
        assert torch.equal(first[..., :49], images[..., 15:])
        assert not first[..., 49:].any()

    @pytest.mark.parametrize("index", [0, 7, 14, 16, 30])
    def test_rotate_shear_and_scale_against_pillow(self, index: int) -> None:
        images = smooth(1, 256, 270)
        angle = math.radians(index - 15)
        cos, sin = math.cos(angle), math.sin(angle)
        percent = 40 + 2.5 * index
        matrices = {
            "p:rotate": np.array([[cos, sin], [-sin, cos]]),
            # Vertical lines keep their length while they turn.
            "p:shear": np.linalg.inv(np.array([[1, -sin], [0, cos]])),
            "p:scale": np.eye(2) * 100 / percent,
        }
        for name, matrix in matrices.items():
            expected = pillow_affine(images[0], about(matrix, 256, 270), 224)
            # At 75 % positions are thirds, values often whole levels, and Pillow's rounding error takes one off those.
            same = 0.9 if name == "p:scale" else 0.98
            assert_close(sequences[name].frame(images, index)[0], expected, same=same)

    def test_black_surrounds_end_where_pillows_do(self) -> None:
        white = torch.full((1, 3, 256, 256), 255, dtype=torch.uint8)
        for name, index in (("p:scale", 3), ("p:scale", 8), ("p:rotate", 0), ("p:shear", 30)):
            angle = math.radians(index - 15)
            matrix = {
                "p:scale": np.eye(2) * 100 / (40 + 2.5 * index),
                "p:rotate": np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]),
                "p:shear": np.array([[1, math.tan(angle)], [0, 1 / math.cos(angle)]]),
            }[name]
            expected = pillow_affine(white[0], about(matrix, 256, 256), 224)
            assert torch.equal(sequences[name].frame(white, index)[0], expected)

    @pytest.mark.parametrize("index", [0, 5, 16, 30])
    def test_tilt_against_a_camera(self, index: int) -> None:
        """Every pixel's ray is followed to the turned plane, and the plane sampled by SciPy."""
        height, width, side = 256, 272, 224
        images = smooth(1, height, width)
        angle = math.radians(index - 15)
        cos, sin = math.cos(angle), math.sin(angle)
        turn = np.array([[1, 0, 0], [0, cos, -sin], [0, sin, cos]]) @ np.array(
            [[cos, 0, -sin], [0, 1, 0], [sin, 0, cos]]
        )
        focal = math.hypot(width, height)
        rows, columns = np.mgrid[16 : 16 + side, 24 : 24 + side].astype(np.float64)
        rays = np.stack([columns - width / 2, rows - height / 2, np.full_like(rows, focal)], axis=-1)
        # The eye is at −focal on the z axis, the plane through the origin has the normal turn · z.
        normal = turn[:, 2]
        distance = focal * normal[2] / (rays @ normal)
        points = rays * distance[..., None] - np.array([0, 0, focal])
        plane = points @ turn
        assert np.abs(plane[..., 2]).max() < 1e-9
        where = [plane[..., 1] + height / 2, plane[..., 0] + width / 2]
        frame = sequences["p:tilt"].frame(images, index)[0]
        inside = (where[0] > 0) & (where[0] < height - 1) & (where[1] > 0) & (where[1] < width - 1)
        assert inside.mean() > 0.9
        for channel in range(3):
            exact = ndimage.map_coordinates(images[0, channel].double().numpy(), where, order=1, mode="nearest")
            assert_close(frame[channel][inside], torch.from_numpy(exact)[inside].to(torch.uint8))

    def test_zoom_blur_is_the_running_mean(self) -> None:
        images = smooth(1, 256, 256)
        total = torch.zeros(3, 224, 224, dtype=torch.float64)
        for index, frame in enumerate(sequences["p:zoom_blur"].frames(images)):
            factor = 1 + 0.004 * index
            total += pillow_affine(images[0], about(np.eye(2) / factor, 256, 256), 224)
            assert_close(frame[0], (total / (index + 1)).floor().to(torch.uint8), same=0.97)

    def test_geometric_frames_come_from_the_whole_image(self) -> None:
        white = torch.full((1, 3, 320, 320), 255, dtype=torch.uint8)
        for name in ("p:translate", "p:rotate", "p:tilt", "p:shear"):
            frames = sequences[name].frames(white, preset="imagenet")
            assert all(bool((frame == 255).all()) for frame in frames), name


class TestFilters:
    @pytest.mark.parametrize(("preset", "step"), [("imagenet", 4), ("imagenet64", 5)])
    def test_motion_blur_smears_a_point_along_its_angle(self, preset: str, step: int) -> None:
        point = torch.zeros(1, 1, 64, 64, dtype=torch.uint8)
        point[..., 32, 32] = 255
        for index in (0, 8, 15, 22, 30):
            frame = sequences["p:motion_blur"].frame(point, index, preset=preset)[0, 0].double()
            rows, columns = torch.arange(64.0)[:, None] - 32, torch.arange(64.0) - 32
            down, right = float((frame * rows).sum()), float((frame * columns).sum())
            # Taps lie ahead of the pixel, so that a point is smeared the other way.
            angle = math.degrees(math.atan2(-down, -right))
            assert abs((angle - (index - 30) * step + 180) % 360 - 180) < 8

    @pytest.mark.parametrize(("preset", "radius", "step"), [("imagenet", 10, 4), ("imagenet64", 14, 5)])
    def test_motion_blur_is_a_line_of_taps(self, preset: str, radius: int, step: int) -> None:
        """Weights exp(−i²/2σ²) at the pixels nearest to a line, on one side only."""
        images = pictures(1, 3, 64, 60)
        reach = 2 * radius
        padded = np.pad(images[0].double().numpy(), ((0, 0), (reach, reach), (reach, reach)), mode="edge")
        weights = np.exp(-0.5 * (np.arange(reach + 1) / 3) ** 2)
        for index in (0, 9, 17, 30):
            angle = math.radians((index - 30) * step)
            expected = np.zeros((3, 64, 60))
            for i, weight in enumerate(weights / weights.sum()):
                top, left = (reach + math.ceil(i * part - 0.5) for part in (math.sin(angle), math.cos(angle)))
                expected += weight * padded[:, top : top + 64, left : left + 60]
            frame = sequences["p:motion_blur"].frame(images, index, preset=preset, crop=(64, 60))[0]
            assert_close(frame, torch.from_numpy(expected).to(torch.uint8))

    @pytest.mark.parametrize(
        ("preset", "first", "step", "truncate"), [("imagenet", 0.25, 0.035, 6), ("imagenet64", 0.35, 0.014, 7)]
    )
    def test_gaussian_blur_against_scipy(self, preset: str, first: float, step: float, truncate: float) -> None:
        images = pictures(1, 3, 48, 40)
        for index in (0, 11, 30):
            sigma = first + step * index
            exact = ndimage.gaussian_filter(
                images[0].double().numpy(), (0, sigma, sigma), truncate=truncate, mode="nearest"
            )
            frame = sequences["p:gaussian_blur"].frame(images, index, preset=preset)[0]
            assert_close(frame, torch.from_numpy(exact + 1e-6).to(torch.uint8))

    @pytest.mark.parametrize(("preset", "step"), [("imagenet", 0.02), ("cifar", 0.015)])
    def test_brightness_and_saturation_on_one_colour(self, preset: str, step: float) -> None:
        image = torch.tensor([200, 100, 50], dtype=torch.uint8).view(1, 3, 1, 1).expand(1, 3, 16, 16)
        for index in (0, 10, 25, 30):
            shift = (index - 15) * step
            value = min(1, max(0, 200 / 255 + shift))
            expected = [int(value * 255 * share + 1e-3) for share in (1, 0.5, 0.25)]
            assert sequences["p:brightness"].frame(image, index, preset=preset)[0, :, 0, 0].tolist() == expected
            saturation = min(1, 0.75 * (1 + (index - 15) * 0.04))
            low = 200 * (1 - saturation)
            middle = 200 - (200 - low) * 2 / 3
            frame = sequences["p:saturate"].frame(image, index)[0, :, 0, 0].tolist()
            assert frame == pytest.approx([200, middle, low], abs=1)

    def test_saturate_leaves_gray_images_alone(self) -> None:
        images = pictures(1, 1, 24, 24)
        assert all(torch.equal(frame, images) for frame in sequences["p:saturate"].frames(images))

    def test_snow_keeps_its_flakes_and_turns(self) -> None:
        """The layer of every frame is the same specks, smeared at another angle: its sum hardly changes."""
        black = torch.zeros(1, 1, 224, 224, dtype=torch.uint8)
        layers = [frame.double() - 0.15 * 0.5 * 255 for frame in sequences["p:snow"].frames(black, ids=[3])]
        sums = torch.stack([layer.clamp(min=0).sum() for layer in layers])
        assert sums.std() / sums.mean() < 0.05
        # Half a turn maps the layer to itself.
        assert torch.equal(layers[4], layers[4].flip(-2, -1))

    def test_spatter_runs_down(self) -> None:
        black = torch.zeros(1, 1, 96, 96, dtype=torch.uint8)
        frames = [frame[0, 0].double() for frame in sequences["p:spatter"].frames(black, ids=[1], preset="imagenet")]
        assert all(frame.max() > 100 for frame in frames)
        state = sequences["p:spatter"]
        assert state.advance is not None
        values = state.presets["imagenet"].rows[0]
        column = torch.from_numpy(np.random.default_rng(0).random(40)).float().view(1, 1, 40, 1)
        scene = sequences_base.Scene(black, sequences_base.Window(0, 0, 96, 96))
        expected = np.convolve(column.flatten().double().numpy(), [0.05, 0.1, 0.15, 0.7], mode="same")
        dragged = state.advance(scene, values, column, 1).flatten()
        assert np.abs(dragged.numpy() - expected).max() < 1e-6
        small = state.advance(scene, state.presets["imagenet64"].rows[0], column, 1).flatten()
        expected = np.convolve(column.flatten().double().numpy(), [0.2, 0.8], mode="same")
        assert np.abs(small.numpy() - expected).max() < 1e-6

    def test_an_injected_draw_is_used(self) -> None:
        """Drawn and deterministic parts are apart: known noise gives known pixels."""
        images = pictures(1, 3, 16, 16)
        scene = sequences_base.Scene(images, sequences_base.Window(0, 0, 16, 16))
        member = sequences["p:gaussian_noise"]
        out = member.render(scene, {"sigma": 0.1}, Field(torch.ones(1, 3, 16, 16)), 1)
        assert torch.allclose(out, unit_range(images) + 0.1)
