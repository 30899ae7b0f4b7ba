"""Distances of corrupted images: kept, resumed, refused where they are another study's; LPIPS against the original."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch

from blemish.benchmarks.benchmark import Benchmark, Protocol
from blemish.benchmarks.condition import Condition, parse_condition
from blemish.core.errors import InputError
from blemish.data.cache import load
from blemish.ops.similarity import ms_ssim, ssim
from blemish.studies.perceptual.distances import MS_SSIM, SSIM, measure_distances
from blemish.studies.perceptual.lpips import read_lpips
from lpips_weights import images as pairs
from lpips_weights import linear_weights, network_weights
from toy_runs import source

IMAGES = load(source(5, sizes=((32, 32), (24, 40))))


def benchmark(*conditions: str, protocol: Protocol = Protocol()) -> Benchmark:  # noqa: B008
    return Benchmark("axis", "", "error", tuple(parse_condition(text) for text in conditions), protocol)


def test_each_image_against_its_clean_one(tmp_path: Path) -> None:
    (found,) = measure_distances(IMAGES, benchmark("fog@3", protocol=Protocol(seed=4)), folder=tmp_path)
    for row in range(len(IMAGES)):
        clean = IMAGES.batch([row])
        foggy = parse_condition("fog@3").apply(clean, seed=4, ids=torch.from_numpy(IMAGES.ids[[row]]))
        assert found.values["ssim"][row] == pytest.approx(1 - float(ssim(clean, foggy)), abs=1e-6)
        assert found.values["ms_ssim"][row] == pytest.approx(1 - float(ms_ssim(clean, foggy)), abs=1e-6)
    mean = found.mean("ssim")
    assert mean.value == pytest.approx(found.values["ssim"].mean(), abs=1e-6)
    assert mean.low < mean.value < mean.high


def test_what_is_there_is_not_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    plain = Condition.apply

    def noted(self: Condition, *args: object, **settings: object) -> torch.Tensor:
        made.append(str(self))
        return plain(self, *args, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(Condition, "apply", noted)
    measure_distances(IMAGES, benchmark("fog@3"), folder=tmp_path, measures=[SSIM])
    assert set(made) == {"fog@3"}
    made.clear()
    first = measure_distances(IMAGES, benchmark("fog@3", "snow@1"), folder=tmp_path, measures=[SSIM])
    assert set(made) == {"snow@1"}
    made.clear()
    again = measure_distances(IMAGES, benchmark("fog@3", "snow@1"), folder=tmp_path, measures=[SSIM, MS_SSIM])
    assert set(made) == {"fog@3", "snow@1"}  # for the other measure
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.values["ssim"], other.values["ssim"])


def test_another_study_is_refused(tmp_path: Path) -> None:
    measure_distances(IMAGES, benchmark("fog@3"), folder=tmp_path)
    with pytest.raises(InputError, match=r"holds distances of another study \(protocol.seed was 0, now 1\)"):
        measure_distances(IMAGES, benchmark("fog@3", protocol=Protocol(seed=1)), folder=tmp_path)
    with pytest.raises(InputError, match=r"holds distances of another study \(images was"):
        measure_distances(IMAGES.take([0, 1]), benchmark("fog@3"), folder=tmp_path)
    next(tmp_path.rglob("*.npz")).write_bytes(b"PK")
    with pytest.raises(InputError, match="not a readable"):
        measure_distances(IMAGES, benchmark("fog@3"), folder=tmp_path)


def test_sequences_have_no_clean_image(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="p:tilt@1: no distance from a clean image of the same view"):
        measure_distances(IMAGES, benchmark("p:tilt@1"), folder=tmp_path / "out")
    assert not (tmp_path / "out").exists()


class TestLpips:
    @pytest.fixture
    def files(self, tmp_path: Path) -> tuple[Path, Path]:
        torch.save(network_weights(), tmp_path / "alexnet.pth")
        torch.save(linear_weights(), tmp_path / "linear.pth")
        return tmp_path / "alexnet.pth", tmp_path / "linear.pth"

    def test_recorded_values_of_the_original(self, files: tuple[Path, Path]) -> None:
        """The package lpips 0.1.4 with net="alex", version="0.1" and these weights."""
        measure = read_lpips(*files, device=torch.device("cpu"))
        first, second = pairs()
        assert measure(first, second).tolist() == pytest.approx([0.7600119, 0.7085693], abs=2e-6)
        assert measure(first, first).tolist() == [0, 0]

    def test_refusals(self, files: tuple[Path, Path]) -> None:
        network, linear = files
        with pytest.raises(InputError, match=r"features.0.weight is missing, not \(64, 3, 11, 11\); expected AlexNet"):
            read_lpips(linear, linear, device=torch.device("cpu"))
        with pytest.raises(InputError, match=re.escape("lin0.model.1.weight is missing")):
            read_lpips(network, network, device=torch.device("cpu"))
        torch.save([torch.zeros(1)], network)
        with pytest.raises(InputError, match="holds a list; expected AlexNet"):
            read_lpips(network, linear, device=torch.device("cpu"))

    def test_small_images(self, files: tuple[Path, Path]) -> None:
        small = torch.zeros(1, 3, 31, 40, dtype=torch.uint8)
        with pytest.raises(InputError, match="31×40 pixels; LPIPS needs at least 32×32"):
            read_lpips(*files, device=torch.device("cpu"))(small, small)
