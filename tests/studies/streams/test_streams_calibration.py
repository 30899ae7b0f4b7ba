"""Calibration: counts against doing it one cell at a time, files that resume, and the adaptive mode."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import blemish
from blemish.benchmarks.condition import Condition
from blemish.core.errors import InputError
from blemish.models.base import Classifier, Preprocessing
from blemish.studies.streams.adaptive import Refinement, compared, refined
from blemish.studies.streams.calibration import PROTOCOL_FILE, Bench, calibrate, pair_file, read_calibration
from blemish.studies.streams.paths import find_path
from blemish.studies.streams.surface import Surface
from tensor_images import images_of

GRID = (0.0, 1.25, 2.5, 5.0)
NAMES = ("contrast", "gaussian_noise", "fog")


def brightest_quarter(images: Tensor) -> Tensor:
    """A classifier whose accuracy suffers: which quarter of the image is the brightest."""
    halves = images.float().mean(1).unflatten(1, (2, -1)).unflatten(3, (2, -1))
    return halves.mean((2, 4)).flatten(1)


def bench(batch: int = 64, count: int = 10, **changes: Callable[[Tensor], Tensor]) -> Bench:
    pixels = torch.randint(0, 256, (count, 3, 16, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(1))
    images = images_of(pixels, brightest_quarter(pixels).argmax(1), torch.arange(count) + 100)
    return Bench(quarters(**changes), images, seed=3, batch_size=batch, grid=GRID)


def quarters(forward: Callable[[Tensor], Tensor] = brightest_quarter) -> Classifier:
    return Classifier("quarters", "function", forward, "w", preprocessing=Preprocessing(levels=True))


def measure(place: Bench, first: str, second: str, refinement: Refinement | None = None) -> Surface:
    return place.surface(first, second, refinement=refinement)


def tensors(place: Bench) -> tuple[Tensor, Tensor, Tensor]:
    images = place.images
    return images.batch(range(len(images))), torch.from_numpy(images.labels), torch.from_numpy(images.ids)


class TestMeasuring:
    def test_each_cell_by_itself(self) -> None:
        place = bench()
        clean, labels, ids = tensors(place)
        found = measure(place, "contrast", "gaussian_noise")
        for a, first in enumerate(GRID):
            for b, second in enumerate(GRID):
                images = clean
                if first:
                    images = blemish.corrupt(images, "contrast", severity=first, seed=3, ids=ids)
                if second:
                    images = blemish.corrupt(images, "gaussian_noise", severity=second, seed=3, ids=ids)
                right = (brightest_quarter(images).argmax(1) == labels).float().mean()
                assert found.accuracy[a, b] == pytest.approx(float(right)), (a, b)
        assert found.accuracy[0, 0] == 1
        assert found.accuracy.min() < 1
        assert found.evaluated == 16

    @pytest.mark.parametrize("batch", [3, 25, 1000])
    def test_batches_do_not_matter(self, batch: int) -> None:
        expected = measure(bench(), "gaussian_noise", "fog")
        assert np.array_equal(measure(bench(batch), "gaussian_noise", "fog").accuracy, expected.accuracy)

    @pytest.mark.parametrize("room", [1, 2**31])
    def test_the_first_corruption_is_applied_once_where_there_is_room(
        self, room: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        expected = measure(bench(), "gaussian_noise", "fog")
        applied: list[tuple[str, ...]] = []
        plain = Condition.apply

        def counted(self: Condition, *arguments: Any, **settings: Any) -> Tensor:
            applied.append(self.names())
            return plain(self, *arguments, **settings)

        monkeypatch.setattr(Condition, "apply", counted)
        monkeypatch.setattr("blemish.evaluation.prefixes._BYTES", room)
        found = measure(bench(7), "gaussian_noise", "fog")
        assert np.array_equal(found.accuracy, expected.accuracy)
        assert np.array_equal(found.hits, expected.hits)
        # 10 images in batches of 7 make 2 calls. Of 3 severities: alone, and before 3 severities of fog.
        assert applied.count(("gaussian_noise",)) == 2 * 3 * (2 if room > 1 else 3)

    @pytest.mark.parametrize("bad", [float("nan"), float("inf")])
    def test_scores_that_are_not_numbers(self, bad: float) -> None:
        """argmax takes the first of them for the best class; the images of one cell are enough to notice."""
        calls = iter(range(1000))
        place = bench(batch=7, forward=lambda images: brightest_quarter(images) * (bad if next(calls) == 5 else 1))
        with pytest.raises(InputError, match=r"contrast \+ fog: model quarters: scores that are infinite"):
            measure(place, "contrast", "fog")

    def test_which_images_were_right(self) -> None:
        place = bench()
        found = measure(place, "contrast", "gaussian_noise")
        clean, labels, ids = tensors(place)
        images = blemish.corrupt(clean, "contrast", severity=5, seed=3, ids=ids)
        images = blemish.corrupt(images, "gaussian_noise", severity=5, seed=3, ids=ids)
        right = (brightest_quarter(images).argmax(1) == labels).numpy()
        assert 0 < right.sum() < 10
        assert found.right((3, 3)).tolist() == right.tolist()

    def test_single_corruptions_are_shared(self) -> None:
        place = bench()
        one, other = measure(place, "contrast", "fog"), measure(place, "fog", "contrast")
        assert np.array_equal(one.accuracy[:, 0], other.accuracy[0])
        assert np.array_equal(one.accuracy[0], other.accuracy[:, 0])


class TestFiles:
    def test_resumed(self, tmp_path: Path) -> None:
        whole = calibrate(bench(), NAMES, folder=tmp_path / "whole")
        seen: list[tuple[int, int]] = []

        def stop_at_two(done: int, total: int) -> None:
            seen.append((done, total))
            if done == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            calibrate(bench(), NAMES, folder=tmp_path / "stopped", progress=stop_at_two)
        assert seen == [(1, 6), (2, 6)]
        kept = (tmp_path / "stopped" / pair_file("contrast", "gaussian_noise")).stat().st_mtime_ns
        calibrate(bench(), NAMES, folder=tmp_path / "stopped")
        assert (tmp_path / "stopped" / pair_file("contrast", "gaussian_noise")).stat().st_mtime_ns == kept
        for name in sorted(path.name for path in (tmp_path / "whole").iterdir()):
            assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "stopped" / name).read_bytes()
        found, protocol = read_calibration(tmp_path / "stopped")
        assert found.keys() == whole.keys()
        assert all(np.array_equal(found[pair].accuracy, whole[pair].accuracy) for pair in whole)
        assert protocol.images == 10

    def test_another_protocol_is_refused(self, tmp_path: Path) -> None:
        calibrate(bench(), NAMES[:2], folder=tmp_path)
        half = replace(bench(), model=replace(quarters(), name="half"))
        with pytest.raises(InputError, match=r'made otherwise \(model\.name was "quarters", now "half"\); choose'):
            calibrate(half, NAMES[:2], folder=tmp_path)
        with pytest.raises(
            InputError,
            match=r"\(images was 10, now 8; data_fingerprint was",
        ):
            calibrate(bench(count=8), NAMES[:2], folder=tmp_path)
        # Further corruptions may be added.
        assert len(calibrate(bench(), NAMES, folder=tmp_path)) == 6

    def test_refusals(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"no calibration\.json"):
            read_calibration(tmp_path)
        with pytest.raises(InputError, match="at least two"):
            calibrate(bench(), ["fog"])
        calibrate(bench(), NAMES[:2], folder=tmp_path)
        path = tmp_path / pair_file(*NAMES[:2])
        content = path.read_bytes()
        path.write_bytes((tmp_path / pair_file(*NAMES[1::-1])).read_bytes())
        with pytest.raises(InputError, match=r"contrast\+gaussian_noise\.parquet: the surface of gaussian_noise and"):
            calibrate(bench(), NAMES[:2], folder=tmp_path)
        calibrate(bench(count=8), NAMES[:2], folder=tmp_path / "other")
        path.write_bytes((tmp_path / "other" / path.name).read_bytes())
        for read in (lambda: calibrate(bench(), NAMES[:2], folder=tmp_path), lambda: read_calibration(tmp_path)):
            with pytest.raises(InputError, match="measured otherwise than"):
                read()
        path.write_bytes(content[: len(content) // 2])
        with pytest.raises(InputError, match=r"contrast\+gaussian_noise\.parquet: not a readable file of records"):
            calibrate(bench(), NAMES[:2], folder=tmp_path)
        assert (tmp_path / PROTOCOL_FILE).is_file()


def smooth(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return 0.8 * np.exp(-0.12 * a - 0.06 * b - 0.004 * a * b)


class TestAdaptive:
    def measured(self, how: Refinement, noise: float = 0.0) -> tuple[Surface, Surface, list[tuple[int, int]]]:
        index = np.arange(21)
        truth = smooth(index[:, None], index[None, :])
        truth = np.clip(truth + noise * np.random.default_rng(0).normal(size=truth.shape), 0, 1)
        asked: list[tuple[int, int]] = []

        def count(cells: list[tuple[int, int]]) -> np.ndarray:
            asked.extend(cells)
            return np.array([truth[cell] for cell in cells])

        values, known = refined(count, 21, how)
        assert np.array_equal(values[known], truth[known])
        return Surface("a", "b", values, 1000, measured=known), Surface("a", "b", truth, 1000), asked

    @pytest.mark.parametrize("noise", [0.0, 0.01])
    def test_it_saves_and_loses_little(self, noise: float) -> None:
        how = Refinement((0.4, 0.2))
        adaptive, full, asked = self.measured(how, noise)
        assert len(asked) == len(set(asked)) == adaptive.evaluated
        error = compared(adaptive, full, how)
        assert error.saving > 0.4
        assert error.mean < 0.005 + noise
        assert error.path_loss < 0.002 + noise

    @pytest.mark.parametrize("objective", ["mean", "reference", "pointwise"])
    def test_paths_never_use_a_guess(self, objective: str) -> None:
        how = Refinement((0.3,), margin=0.02, objective=objective)  # type: ignore[arg-type]
        adaptive, _, _ = self.measured(how, 0.02)
        path = find_path(adaptive, 0.3, objective=how.objective)
        assert adaptive.measured is not None
        assert all(adaptive.measured[cell] for cell in path.cells)

    def test_without_a_margin_it_is_the_full_grid(self) -> None:
        adaptive, full, _ = self.measured(Refinement((0.3,), margin=1.0))
        assert adaptive.evaluated == 441
        assert np.array_equal(adaptive.accuracy, full.accuracy)
        assert compared(adaptive, full, Refinement((0.3,))) == (0.0, 0.0, 0.0, 0.0, 0.0)

    def test_on_a_model(self) -> None:
        how = Refinement((0.6,), margin=0.2, spacing=2)
        surface = measure(bench(), "gaussian_noise", "fog", refinement=how)
        full = measure(bench(), "gaussian_noise", "fog")
        assert surface.measured is not None
        assert np.array_equal(surface.accuracy[surface.measured], full.accuracy[surface.measured])

    def test_refusals(self) -> None:
        with pytest.raises(InputError, match="targets"):
            self.measured(Refinement(()))
        with pytest.raises(InputError, match="spacing 0"):
            self.measured(Refinement((0.3,), spacing=0))
