"""Samples without torchvision: tuples and dictionaries of pictures, tensors and labels, and where they have an id."""

from __future__ import annotations

import pickle
from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from blemish import Corrupt, corrupt, hash_id
from blemish.core.errors import InputError
from pictures import pictures

FOG = Corrupt("fog", 3)
Pair = namedtuple("Pair", "image label")


def image(seed: int = 0) -> Tensor:
    return pictures(1, 3, 16, 16, first=seed)[0]


def picture(seed: int = 0) -> Image.Image:
    return Image.fromarray(image(seed).permute(1, 2, 0).numpy())


def same(one: Image.Image, other: Image.Image) -> bool:
    return one.tobytes() == other.tobytes()


class TestWhatIsAnImage:
    def test_the_first_tensor_only(self) -> None:
        label, mask = torch.tensor([3, 4]), torch.ones(1, 16, 16)
        result = FOG((image(), label, {"mask": mask, "name": "a"}))
        assert torch.equal(result[0], FOG(image()))
        assert result[1] is label
        assert result[2]["mask"] is mask
        assert result[2]["name"] == "a"

    def test_pictures_go_before_tensors(self) -> None:
        tensor = image(5)
        result = FOG({"tensor": tensor, "picture": picture()})
        assert result["tensor"] is tensor
        assert same(result["picture"], FOG(picture()))

    def test_several_arguments_are_one_sample(self) -> None:
        result = FOG(picture(), {"label": 3})
        assert same(result[0], FOG(picture()))
        assert result[1] == {"label": 3}

    @pytest.mark.parametrize("kind", [Pair, lambda *members: OrderedDict(zip("ab", members, strict=True))])
    def test_structures_stay_what_they_are(self, kind: Any) -> None:
        sample = kind(image(), 7)
        result = FOG(sample)
        assert type(result) is type(sample)

    def test_the_sample_is_left_as_it_is(self) -> None:
        sample = {"image": image(), "labels": [1, 2]}
        FOG(sample)
        assert torch.equal(sample["image"], image())

    def test_floats(self) -> None:
        unit = image().float() / 255
        result, _ = FOG((unit, 1))
        assert torch.equal(result, FOG(unit))

    def test_lists_of_pictures_are_batches(self) -> None:
        both = FOG([picture(0), picture(1)])
        assert same(both[0], FOG(picture(0)))
        assert same(both[1], FOG(picture(1)))


class TestOneDraw:
    def test_pictures_of_one_sample_share_it(self) -> None:
        left, right = FOG((picture(0), picture(1)))
        number = Corrupt("fog", 3)((picture(0),), id=4)
        assert same(left, FOG(picture(0)))
        assert not same(right, FOG(picture(1)))
        assert same(FOG((picture(0), picture(1)), id=4)[1], FOG(picture(1), id=4))
        assert same(number[0], FOG(picture(0), id=4))

    def test_a_batch_in_a_sample_has_an_id_for_each_image(self) -> None:
        batch = pictures(3, 3, 16, 16)
        labels = torch.arange(3)
        result = FOG((batch, labels), id=[7, 8, 9])
        assert torch.equal(result[0], corrupt(batch, "fog", 3, ids=[7, 8, 9]))
        assert torch.equal(FOG((batch, labels))[0], FOG(batch))
        with pytest.raises(InputError, match=r"the sample's \[0\]: one id \(7\) for a batch"):
            FOG((batch, labels), id=7)


class TestIds:
    @pytest.mark.parametrize(
        ("where", "sample"),
        [
            ("image_id", lambda: {"image": image(), "image_id": 9}),
            ("image_id", lambda: (image(), {"image_id": torch.tensor(9)})),
            (1, lambda: (image(), 9)),
            (-1, lambda: (image(), "label", np.int64(9))),
            (lambda sample: sample[1]["meta"]["id"], lambda: (image(), {"meta": {"id": 9}})),
        ],
    )
    def test_found_in_the_sample(self, where: Any, sample: Any) -> None:
        result = Corrupt("fog", 3, id_from=where)(sample())
        first = result["image"] if isinstance(result, dict) else result[0]
        assert torch.equal(first, FOG(image(), id=9))

    def test_names_are_hashed(self) -> None:
        result, _ = Corrupt("fog", 3, id_from=1)((image(), "a/b.jpg"))
        assert torch.equal(result, FOG(image(), id=hash_id("a/b.jpg")))

    def test_of_a_batch(self) -> None:
        batch = pictures(2, 3, 16, 16)
        result = Corrupt("fog", 3, id_from="name")({"image": batch, "name": ["a", "b"]})
        assert torch.equal(result["image"], FOG(batch, id=[hash_id("a"), hash_id("b")]))

    def test_one_that_is_given_goes_before(self) -> None:
        result, _ = Corrupt("fog", 3, id_from=1)((image(), 9), id=2)
        assert torch.equal(result, FOG(image(), id=2))

    @pytest.mark.parametrize(
        ("where", "sample", "message"),
        [
            ("id", lambda: {"image": image(), "label": 1}, "no ids called 'id' in the sample; .* keys: image, label"),
            ("id", lambda: ({"id": 1}, {"id": 2}, image()), "2 ids called 'id'"),
            ("id", image, "no ids called 'id' in the sample; .* keys: none"),
            (2, lambda: (image(), 1), "no id at position 2 of the sample, which is a tuple of 2"),
            (1, lambda: {"image": image()}, "no id at position 1 of the sample, which is a dict"),
            (1, lambda: (image(), None), r"the sample's id is None \(1\); expected a whole number or a text"),
            (1, lambda: (image(), 0.5), "id 0.5; expected a whole number"),
        ],
    )
    def test_refused(self, where: Any, sample: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            Corrupt("fog", 3, id_from=where)(sample())

    @pytest.mark.parametrize("where", [1.5, True, [1]])
    def test_no_place_at_all(self, where: Any) -> None:
        with pytest.raises(InputError, match=r"id_from .*; expected a key, a position or a function"):
            Corrupt("fog", 3, id_from=where)

    def test_is_shown_and_travels(self) -> None:
        transform = Corrupt("fog", 3, id_from="image_id")
        assert repr(transform).endswith(", id_from='image_id')")
        sample = {"image": image(), "image_id": 9}
        again = pickle.loads(pickle.dumps(transform))
        assert torch.equal(again(sample)["image"], transform(sample)["image"])


class TestRefusals:
    @pytest.mark.parametrize(
        ("sample", "message"),
        [
            (lambda: (1, "text"), r"a sample without an image \(int, str\)"),
            (lambda: (np.zeros((16, 16, 3), np.uint8), 1), r"without an image \(ndarray, int\).*NumPy arrays"),
            (dict, r"a sample without an image \(nothing\)"),
            (lambda: (torch.tensor(3), image()), r"the sample's \[0\]: a tensor of type torch.int64"),
            (lambda: {"a": {"b": torch.zeros(16, 16)}}, r"the sample's \['a'\]\['b'\]: a tensor of shape \(16, 16\)"),
            (lambda: [image(), 3], "a list with a Tensor at position 0; expected PIL pictures"),
        ],
    )
    def test_samples(self, sample: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            FOG(sample())

    def test_nothing(self) -> None:
        with pytest.raises(InputError, match="nothing to corrupt"):
            FOG()


class Named(Dataset[dict[str, Any]]):
    """Samples with a name of their own."""

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> dict[str, Any]:
        sample = {"image": image(index), "name": f"picture {index}", "label": index}
        result: dict[str, Any] = Corrupt("fog", 3, id_from="name")(sample)
        return result


def test_workers_do_not_matter() -> None:
    expected = torch.stack([Named()[row]["image"] for row in range(5)])
    for workers in (0, 2):
        batches = list(DataLoader(Named(), batch_size=2, num_workers=workers))
        assert torch.equal(torch.cat([batch["image"] for batch in batches]), expected)
        assert torch.equal(torch.cat([batch["label"] for batch in batches]), torch.arange(5))
