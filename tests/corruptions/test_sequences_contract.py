"""What every one of ImageNet-P's sequences promises, what it refuses, and how difficulty thins it out."""

from __future__ import annotations

import itertools
import json
import pickle
import weakref

import numpy as np
import pytest
import torch
from torch import Tensor

import sequence_fingerprints
from blemish.core.errors import InputError
from blemish.corruptions.imagenet_p import PerturbationSequence, Sequences, sequences, strides
from blemish.corruptions.imagenet_p import sequence as sequences_base
from blemish.data.demo import demo_picture
from pictures import centre, kinds, pictures

NAMES = list(sequences)
BENCHMARK = [name for name in NAMES if not sequences[name].extra]
NOISES = ["p:gaussian_noise", "p:shot_noise", "p:speckle_noise"]
# Which frame is the image as it is.
STILL = {
    "p:zoom_blur": 0,
    "p:brightness": 15,
    "p:translate": 20,
    "p:rotate": 15,
    "p:tilt": 15,
    "p:scale": 24,
    "p:shear": 15,
    "p:saturate": 15,
    **dict.fromkeys(NOISES, 0),
}


@pytest.fixture(params=NAMES)
def sequence(request: pytest.FixtureRequest) -> PerturbationSequence:
    return sequences[request.param]


class TestEverySequence:
    def test_the_catalogue(self) -> None:
        assert len(NAMES) == 15
        assert len(BENCHMARK) == 10
        assert [name for name in NAMES if sequences[name].noise] == NOISES
        assert all(name == member.name and member.family == "p" for name, member in sequences.items())

    def test_frame_counts_and_shapes(self, sequence: PerturbationSequence) -> None:
        frames = list(sequence.frames(pictures(2, 3, 72, 80), preset="imagenet"))
        assert len(frames) == sequence.length() == (41 if sequence.name == "p:translate" else 31)
        small = list(sequence.frames(pictures(2, 3, 72, 80)))
        assert len(small) == sequence.length("imagenet64") == 31
        assert {tuple(frame.shape) for frame in frames} == {(2, 3, 72, 80)}
        assert {tuple(frame.shape) for frame in small} == {(2, 3, 64, 64)}
        assert all(frame.dtype == torch.uint8 and frame.is_contiguous() for frame in frames)

    def test_the_default_crop(self) -> None:
        shape = sequences["p:rotate"].frame(pictures(1, 1, 256, 300), 3).shape
        assert shape == (1, 1, 224, 224)
        for size, expected in (((230, 200), (224, 200)), ((200, 210), (200, 210)), ((20, 90), (20, 32))):
            assert sequences["p:brightness"].frame(pictures(1, 1, *size), 0).shape[-2:] == expected
        assert sequences["p:snow"].frame(pictures(1, 3, 50, 60), 0, crop=32).shape[-2:] == (32, 32)
        assert sequences["p:snow"].frame(pictures(1, 3, 50, 60), 0, crop=(50, 40)).shape[-2:] == (50, 40)

    def test_random_access_equals_the_generator(self, sequence: PerturbationSequence) -> None:
        images = pictures(2, 3, 40, 48)
        for index, frame in enumerate(sequence.frames(images, seed=5, ids=[7, 9], crop=32)):
            if index in (0, 1, 9, 15, 30):
                assert torch.equal(sequence.frame(images, index, seed=5, ids=[7, 9], crop=32), frame)

    def test_input_survives_and_frames_have_memory_of_their_own(self, sequence: PerturbationSequence) -> None:
        images = pictures(1, 3, 32, 32)
        before = images.clone()
        kept = [(frame, frame.clone()) for frame in sequence.frames(images)]
        assert torch.equal(images, before)
        images.zero_()
        assert all(torch.equal(frame, copy) for frame, copy in kept)

    @pytest.mark.parametrize("size", [(3, 40, 44), (1, 27, 27), (3, 67, 67), (3, 96, 31), (3, 48, 130)])
    def test_pixels_do_not_depend_on_the_batch(
        self, sequence: PerturbationSequence, size: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        images = pictures(5, *size)
        crop = min(size[1:]) - 4
        order = torch.tensor([3, 0, 4, 2, 1])
        monkeypatch.setattr(sequences_base, "_CPU_CHUNK", 2 * images[0].numel())
        chosen = [0, 1, 8]
        together = [sequence.frame(images, index, seed=2, crop=crop) for index in chosen]
        monkeypatch.undo()
        for index, expected in zip(chosen, together, strict=True):
            shuffled = sequence.frame(images[order], index, seed=2, ids=order, crop=crop)
            assert torch.equal(shuffled, expected[order])
            alone = sequence.frame(images[3:4], index, seed=2, ids=[3], crop=crop)
            assert torch.equal(alone[0], expected[3])

    def test_seeds_and_ids_decide(self, sequence: PerturbationSequence) -> None:
        image = pictures(1, 3, 64, 64)
        one = sequence.frame(image, 5, seed=0, ids=[1])
        random = sequence.noise or sequence.name in ("p:snow", "p:spatter")
        assert torch.equal(sequence.frame(image, 5, seed=1, ids=[1]), one) != random
        assert torch.equal(sequence.frame(image, 5, seed=0, ids=[2]), one) != random

    @pytest.mark.parametrize("size", [(8, 8), (31, 57), (57, 31)])
    def test_gray_and_odd_sizes(self, sequence: PerturbationSequence, size: tuple[int, int]) -> None:
        for channels in (1, 3):
            images = pictures(2, channels, *size)
            frames = list(sequence.frames(images, preset="imagenet"))
            assert all(frame.shape == images.shape for frame in frames)

    def test_black_and_white_images_survive(self, sequence: PerturbationSequence) -> None:
        images = torch.stack([torch.zeros(3, 24, 24), torch.full((3, 24, 24), 255)]).to(torch.uint8)
        assert len(list(sequence.frames(images, preset="imagenet"))) >= 31

    @pytest.mark.parametrize("channels", [1, 3])
    def test_kind_and_layout_of_tensors_do_not_matter(self, sequence: PerturbationSequence, channels: int) -> None:
        images = pictures(2, channels, 33, 40)
        expected = sequence.frame(images, 4)
        for kind, tensors in kinds(images).items():
            assert torch.equal(sequence.frame(tensors, 4), expected), kind

    def test_the_caller_keeps_its_settings(self, sequence: PerturbationSequence) -> None:
        images = pictures(1, 3, 32, 32)
        expected = [sequence.frame(images, index) for index in range(3)]
        torch.manual_seed(0)
        state = torch.get_rng_state()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            for frame, wanted in zip(sequence.frames(images), expected, strict=False):
                assert torch.is_grad_enabled()
                assert torch.is_autocast_enabled("cpu")
                assert torch.equal(frame, wanted)
        assert torch.equal(torch.get_rng_state(), state)

    def test_frames_are_not_held(self, sequence: PerturbationSequence) -> None:
        seen: list[weakref.ref[Tensor]] = []
        most = 0
        for frame in sequence.frames(pictures(2, 3, 32, 32)):
            seen.append(weakref.ref(frame))
            del frame
            most = max(most, sum(reference() is not None for reference in seen))
        assert most <= 2

    def test_one_frame_differs_little_from_the_next(self, sequence: PerturbationSequence) -> None:
        """Small steps are what the benchmark is about. A smear of whole pixels may stay the same over 4 degrees."""
        images = torch.from_numpy(np.array(demo_picture(256))).permute(2, 0, 1)[None]
        frames = [frame.double() for frame in sequence.frames(images)]
        changes = [(after - before).abs().mean() for before, after in itertools.pairwise(frames)]
        assert max(changes) < 24
        assert sum(float(change) > 0 for change in changes) >= len(changes) - 2

    def test_pixels_never_change_silently(self, sequence: PerturbationSequence) -> None:
        """Block means recorded when this version of the sequence was fixed (tests/sequence_fingerprints.py)."""
        recorded = json.loads(sequence_fingerprints.PATH.read_text())
        key = sequence_fingerprints.key(sequence)
        assert key in recorded, f"{key} has no fingerprint: run tests/sequence_fingerprints.py"
        now = torch.tensor(sequence_fingerprints.fingerprint(sequence))
        assert (now - torch.tensor(recorded[key])).abs().max() < 0.1

    def test_it_travels_between_processes(self, sequence: PerturbationSequence) -> None:
        images = pictures(1, 3, 24, 24)
        twin = pickle.loads(pickle.dumps(sequence))
        assert torch.equal(twin.frame(images, 2), sequence.frame(images, 2))

    def test_gpu_agrees(self, sequence: PerturbationSequence, device: torch.device) -> None:
        images = pictures(4, 3, 256, 256)
        there = sequence.frames(images.to(device))
        for index, (a, b) in enumerate(zip(sequence.frames(images), there, strict=True)):
            if index % 7 == 1:
                difference = (a.int() - b.cpu().int()).abs()
                assert (difference == 0).double().mean() >= 0.999
                assert difference.max() <= 1 or sequence.name in ("p:shot_noise", "p:spatter", "p:snow")


@pytest.mark.parametrize(("name", "index"), STILL.items())
def test_the_still_frame_is_the_crop_bit_for_bit(name: str, index: int) -> None:
    images = pictures(2, 3, 256, 280)
    assert torch.equal(sequences[name].frame(images, index), centre(images, 224))


class TestDifficulty:
    def test_strides(self) -> None:
        assert strides(31, 1) == [list(range(31))]
        assert strides(5, 3) == [[0, 3], [1, 4], [2]]

    def test_pairs(self) -> None:
        assert sequences["p:shot_noise"].pairs(3) == [(0, j) for j in range(1, 31)]
        assert sequences["p:tilt"].pairs() == [(j - 1, j) for j in range(1, 31)]
        wide = sequences["p:translate"].pairs(3)
        assert len(wide) == 41 - 3
        assert all(after - before == 3 for before, after in wide)
        assert wide[0] == (0, 3)

    def test_temporal_frames_do_not_depend_on_it(self) -> None:
        images = pictures(1, 3, 32, 32)
        for name in ("p:tilt", "p:spatter"):
            one, three = (sequences[name].frame(images, 6, difficulty=d) for d in (1, 3))
            assert torch.equal(one, three)


class TestBadInput:
    def test_unknown_names(self) -> None:
        with pytest.raises(InputError, match=r"unknown sequence 'tilt'; did you mean p:tilt"):
            sequences["tilt"]
        with pytest.raises(InputError, match=r"known: p:gaussian_noise, p:shot_noise"):
            sequences["???"]
        with pytest.raises(InputError, match="must be unique"):
            Sequences(sequences["p:tilt"], sequences["p:tilt"])
        with pytest.raises(TypeError):
            sequences["p:mine"] = sequences["p:tilt"]  # type: ignore[index]
        assert "p:tilt" in sequences
        assert "p:mine" not in sequences
        assert "p:tilt" in repr(sequences)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"difficulty": 4}, "difficulty 4; expected 1, 2 or 3"),
            ({"preset": "small"}, "unknown preset 'small' of p:tilt; expected one of imagenet, inception, imagenet64"),
            ({"crop": 33}, "a crop of 33×33 out of images of 32×40 pixels"),
            ({"crop": 4}, "a crop of 4×4 pixels; expected at least 8×8"),
            ({"ids": [1, 2, 3]}, "3 ids for 2 images"),
            ({"images": torch.zeros(3, 32, 32)}, "expected (batch, channels, height, width)"),
            ({"images": torch.zeros(1, 2, 32, 32)}, "2 channels"),
            ({"images": torch.full((1, 3, 32, 32), 7.0)}, "expected all in [0, 1]"),
        ],
    )
    def test_messages_come_before_the_first_frame(self, change: dict[str, object], message: str) -> None:
        arguments: dict[str, object] = {"images": pictures(2, 3, 32, 40), **change}
        with pytest.raises(InputError) as caught:
            sequences["p:tilt"].frames(**arguments)  # type: ignore[arg-type]
        assert message in str(caught.value)

    def test_frame_numbers(self) -> None:
        for index in (-1, 31):
            with pytest.raises(InputError, match=rf"frame {index} of p:tilt; expected 0 … 30"):
                sequences["p:tilt"].frame(pictures(1, 3, 32, 32), index)
