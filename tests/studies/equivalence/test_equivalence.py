"""Equivalence of our images with another set: the intervals, the verdicts, and sets whose answer is known."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import blemish
from blemish.benchmarks.condition import parse_condition
from blemish.core.errors import InputError
from blemish.core.statistics import Estimate
from blemish.data.cache import load
from blemish.data.images import Images
from blemish.data.source import Source
from blemish.studies.equivalence.compare_sets import Equivalence, equivalence
from blemish.studies.equivalence.copies import statistics
from blemish.studies.equivalence.sets import chosen_cells, fair_storage, open_other
from blemish.studies.equivalence.verdicts import Verdict, paired_interval

SAME, EQUIVALENT, DIFFERENT, UNDECIDED = Verdict.SAME, Verdict.EQUIVALENT, Verdict.DIFFERENT, Verdict.UNDECIDED


def test_statistics_by_hand() -> None:
    """Columns 0, 10, 0, 10 …: steps of 10 to the side and 0 downwards, mean 5, deviation 5."""
    stripes = torch.tensor([0, 10] * 4, dtype=torch.uint8).expand(1, 3, 8, 8)
    clean = torch.full_like(stripes, 20)
    found = {name: float(value) for name, value in statistics(stripes, clean).items()}
    assert found == {"level": 5.0, "contrast": 5.0, "sharpness": 5.0, "change": 15.0}


# Sets whose answer is known


def smooth(count: int, side: int = 32) -> NDArray[np.uint8]:
    """Gratings, each of its own direction, frequency and colour."""
    rng = np.random.default_rng(1)
    y, x = np.mgrid[:side, :side] / side
    images = []
    for _ in range(count):
        fx, fy, phase = rng.uniform(-4, 4), rng.uniform(-4, 4), rng.uniform(0, 6, 3)
        wave = np.sin(2 * np.pi * (fx * x + fy * y)[..., None] + phase)
        images.append(128 + rng.uniform(20, 100, 3) * wave)
    return np.clip(np.stack(images), 0, 255).astype(np.uint8)


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Source:
    path = tmp_path_factory.mktemp("clean") / "clean.npz"
    np.savez(path, images=smooth(120), labels=np.arange(120) % 10)
    return blemish.open_source(path)


def corrupted(images: Images, cell: str, seed: int = 0) -> NDArray[np.uint8]:
    rows = list(range(len(images)))
    changed = parse_condition(cell).apply(images.batch(rows), seed=seed, ids=torch.from_numpy(images.ids))
    return changed.permute(0, 2, 3, 1).contiguous().numpy()


def against(folder: Path, source: Source, theirs: dict[str, NDArray[np.uint8]], **settings: object) -> Equivalence:
    np.savez(folder / "theirs.npz", **theirs)  # type: ignore[arg-type]
    other = open_other(folder / "theirs.npz", source)
    cells, _ = chosen_cells(other)
    return equivalence(load(source), other, cells, **settings)  # type: ignore[arg-type]


class Brightness(torch.nn.Module):
    """Ten classes by the mean level of an image."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return -((10 * images.mean((1, 2, 3))[:, None] - torch.arange(10)) ** 2)


def test_the_same_draws_are_the_same_pixels(tmp_path: Path, clean: Source) -> None:
    images = load(clean)
    found = against(tmp_path, clean, {cell: corrupted(images, cell) for cell in ("fog@3", "gaussian_noise@2")})
    assert found.verdicts("images") == [SAME, SAME]
    assert found.verdicts("images", "jpeg85") != [SAME, SAME]
    side = found.cells[0].sides["raw"]
    assert side.close == 1
    for item in side.statistics:
        assert (item.difference, item.verdict) == (Estimate(0, 0, 0), SAME)
    # No distance between the sets, and none is expected of the same draws.
    assert (side.statistics[-1].theirs, side.statistics[-1].ours) == (0, 0)


@pytest.mark.parametrize("count", [5, 40])
def test_the_same_pixels_are_equivalent_whatever_the_number_of_images(
    tmp_path: Path, clean: Source, count: int
) -> None:
    """A model that sees the same pixels says the same: there is nothing to estimate, with few images either."""
    few = clean.take(range(count))
    theirs = {cell: corrupted(load(few), cell) for cell in ("gaussian_noise@2", "contrast@2")}
    found = against(tmp_path, few, theirs, model=blemish.from_module(Brightness(), name="ten"))
    assert found.verdicts("accuracy") == [SAME, SAME]
    for cell in found.cells:
        accuracy = cell.sides["raw"].accuracy
        assert accuracy is not None
        assert accuracy.difference == Estimate(0, 0, 0)
    assert (found.mean["raw"].difference, found.mean["raw"].verdict) == (Estimate(0, 0, 0), SAME)
    # Ours stored as JPEG are other pixels, so that few images leave it open.
    assert found.mean["jpeg85"].difference.width > 0


def test_a_model_that_wavers_gets_no_certainty(tmp_path: Path, clean: Source) -> None:
    class Wavering(Brightness):
        calls = 0

        def forward(self, images: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return super().forward(images).roll(self.calls, dims=1)

    few = clean.take(range(40))
    theirs = {"contrast@2": corrupted(load(few), "contrast@2")}
    found = against(tmp_path, few, theirs, model=blemish.from_module(Wavering(), name="wavering"))
    assert found.verdicts("images") == [SAME]
    assert SAME not in found.verdicts("accuracy")
    assert found.mean["raw"].difference.width > 0


def test_the_mean_of_cells_is_only_as_certain_as_the_cell_that_differs(tmp_path: Path, clean: Source) -> None:
    few = clean.take(range(40))
    theirs = {"contrast@2": corrupted(load(few), "contrast@2"), "fog@3": corrupted(load(few), "fog@3", seed=77)}
    found = against(tmp_path, few, theirs, model=blemish.from_module(Brightness(), name="ten"))
    assert found.mean["raw"].difference.width > 0


def test_almost_the_same_pixels_are_compared_with_no_distance(tmp_path: Path, clean: Source) -> None:
    """One level off in a tenth of the values: the same pixels, 0.1 apart, and not 8 nearer than chance."""
    theirs = corrupted(load(clean), "gaussian_noise@2")
    theirs[:, :, ::10] ^= 1
    side = against(tmp_path, clean, {"gaussian_noise@2": theirs}).cells[0].sides["raw"]
    assert side.images is SAME
    assert {item.verdict for item in side.statistics} == {SAME}
    last = side.statistics[-1]
    assert last.difference.value == last.theirs == pytest.approx(0.125)  # 4 of 32 columns
    assert last.ours == 0


def test_nearer_than_two_draws_is_no_difference(tmp_path: Path, clean: Source) -> None:
    """The same draws, but a level or three off here and there: far nearer to ours than another draw of ours."""
    theirs = corrupted(load(clean), "gaussian_noise@3").astype(np.int16)
    theirs[:, ::8] += np.where(np.arange(32) % 2, 3, -3)[None, None, :, None].astype(np.int16)
    side = against(tmp_path, clean, {"gaussian_noise@3": theirs.clip(0, 255).astype(np.uint8)}).cells[0].sides["raw"]
    last = side.statistics[-1]
    assert side.close < 0.995
    assert last.difference.value < -10 * last.margin
    assert last.verdict is EQUIVALENT
    assert side.images is EQUIVALENT


def test_other_draws_are_equivalent(tmp_path: Path, clean: Source) -> None:
    images = load(clean)
    cells = ("gaussian_noise@2", "impulse_noise@3", "shot_noise@3")
    found = against(tmp_path, clean, {cell: corrupted(images, cell, seed=77) for cell in cells})
    assert found.verdicts("images") == [EQUIVALENT] * 3
    for cell in found.cells:
        last = cell.sides["raw"].statistics[-1]
        assert last.theirs == pytest.approx(last.ours, rel=0.02)


@pytest.mark.parametrize(("cell", "labelled"), [("gaussian_noise@3", "gaussian_noise@2"), ("contrast@3", "contrast@2")])
def test_another_severity_is_different(tmp_path: Path, clean: Source, cell: str, labelled: str) -> None:
    found = against(tmp_path, clean, {labelled: corrupted(load(clean), cell, seed=77)})
    assert found.verdicts("images") == [DIFFERENT]


def test_moved_pixels_are_different_although_all_else_agrees(tmp_path: Path, clean: Source) -> None:
    """Flipping keeps level, contrast and sharpness; only pixel by pixel does it show."""
    theirs = corrupted(load(clean), "brightness@2")[:, :, ::-1]
    side = against(tmp_path, clean, {"brightness@2": theirs}).cells[0].sides["raw"]
    by_name = {item.name: item for item in side.statistics}
    assert {by_name[name].verdict for name in ("level", "contrast", "sharpness")} == {EQUIVALENT}
    assert by_name["distance"].verdict is DIFFERENT
    assert side.images is DIFFERENT


def test_few_images_are_undecided(tmp_path: Path, clean: Source) -> None:
    few = clean.take(range(5))
    theirs = {cell: corrupted(load(few), cell, seed=77) for cell in ("fog@3", "contrast@2")}
    found = against(tmp_path, few, theirs)
    assert dict(zip([str(c.condition) for c in found.cells], found.verdicts("images"), strict=True)) == {
        "contrast@2": SAME,
        "fog@3": UNDECIDED,
    }


class Darkness(torch.nn.Module):
    """Class 1 where an image's red is brighter than its blue, else class 0: known accuracies."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        gap = images[:, 0].mean((1, 2)) - images[:, 2].mean((1, 2))
        return torch.stack([-gap, gap], dim=1) * 1000


def coloured(share: float, count: int = 200) -> NDArray[np.uint8]:
    images = np.full((count, 32, 32, 3), 100, np.uint8)
    images[: round(share * count), :, :, 0] = 120
    images[round(share * count) :, :, :, 2] = 120
    return images


def test_accuracies_and_their_gap(tmp_path: Path) -> None:
    """All of ours keep their colour, 10 of 200 of theirs do not: a gap of 5 points, with Tango's interval."""
    np.savez(tmp_path / "clean.npz", images=coloured(1.0), labels=np.ones(200, np.int64))
    source = blemish.open_source(tmp_path / "clean.npz")
    model = blemish.from_module(Darkness(), name="colour")
    theirs = {"contrast@1": coloured(0.95)}
    found = against(tmp_path, source, theirs, model=model, margin=1.0)
    accuracy = found.cells[0].sides["raw"].accuracy
    assert accuracy is not None
    assert (accuracy.theirs, accuracy.ours) == (pytest.approx(95), pytest.approx(100))
    expected = paired_interval(10, 0, 200)
    assert accuracy.difference.value == pytest.approx(5)
    assert accuracy.difference.low == pytest.approx(100 * expected.low)
    assert accuracy.verdict is DIFFERENT
    assert found.mean["raw"].verdict is DIFFERENT
    assert found.mean["raw"].difference.low == pytest.approx(accuracy.difference.low)  # the mean of one cell
    assert found.mean["raw"].difference.high == pytest.approx(accuracy.difference.high)
    wide = against(tmp_path, source, theirs, model=model, margin=10.0)
    assert wide.verdicts("accuracy") == [EQUIVALENT]
    alike = against(tmp_path, source, {"contrast@1": coloured(1.0) - 40}, model=model, margin=1.0)
    # No image tells the two apart, but 200 of them cannot exclude a gap of 1.9 points.
    assert alike.verdicts("accuracy") == [UNDECIDED]
    needed = alike.images_needed()
    assert needed is not None
    assert 500 < needed < 1000


@pytest.mark.parametrize(
    ("count", "margin", "expected"),
    [(30, 1.0, UNDECIDED), (30, 11.4, EQUIVALENT), (380, 1.0, UNDECIDED), (381, 1.0, EQUIVALENT), (12, 1.0, UNDECIDED)],
)
def test_no_prediction_differs_in_any_cell(tmp_path: Path, count: int, margin: float, expected: Verdict) -> None:
    """By hand: ± z²/(n + z²), on images rather than images × cells, is 11.35 points for 30; below 1 from n = 99 z²."""
    np.savez(tmp_path / "clean.npz", images=coloured(1.0, count), labels=np.ones(count, np.int64))
    theirs = {cell: coloured(1.0, count) - 40 for cell in ("contrast@1", "contrast@2", "brightness@1")}
    model = blemish.from_module(Darkness(), name="colour")
    found = against(tmp_path, blemish.open_source(tmp_path / "clean.npz"), theirs, model=model, margin=margin)
    half = 100 * 1.959964**2 / (count + 1.959964**2)
    for mean in found.mean.values():
        assert mean.difference.value == 0
        assert (mean.difference.low, mean.difference.high) == (pytest.approx(-half), pytest.approx(half))
        assert mean.verdict is expected
    assert found.verdicts("accuracy") == [expected] * 3


def test_the_mean_of_cells_is_resampled_where_many_images_differ(tmp_path: Path) -> None:
    """40 of 200 differ in one of two cells: a gap of 10 points, with an error of √(0.2 · 0.25 − 0.01) / √200."""
    np.savez(tmp_path / "clean.npz", images=coloured(1.0), labels=np.ones(200, np.int64))
    theirs = {"contrast@1": coloured(0.8), "contrast@2": coloured(1.0)}
    model = blemish.from_module(Darkness(), name="colour")
    mean = against(tmp_path, blemish.open_source(tmp_path / "clean.npz"), theirs, model=model).mean["raw"]
    assert mean.difference.value == pytest.approx(10)
    assert mean.difference.width / 2 == pytest.approx(196 * math.sqrt(0.04 / 200), rel=0.1)


def test_false_alarms_are_rare(tmp_path: Path, clean: Source) -> None:
    """Over many cells that are all drawn alike, none may be called different."""
    images = load(clean)
    cells = [
        f"{name}@{level}" for name in ("fog", "frost_drawn", "snow", "glass_blur", "spatter") for level in (1, 3, 5)
    ]
    found = against(tmp_path, clean, {cell: corrupted(images, cell, seed=5) for cell in cells})
    assert DIFFERENT not in found.verdicts("images")
    assert found.verdicts("images").count(EQUIVALENT) >= 5


# Opening sets


def test_a_file_of_arrays(tmp_path: Path, clean: Source) -> None:
    part = np.zeros((120, 32, 32, 3), np.uint8)
    np.savez(tmp_path / "o.npz", **{"fog@3": part, "unheard_of@2": part, "labels": np.zeros(120)})  # type: ignore[arg-type]
    other = open_other(tmp_path / "o.npz", clean)
    cells, unknown = chosen_cells(other)
    assert ([str(cell) for cell in cells], unknown) == (["fog@3"], ["unheard_of@2"])
    assert fair_storage(other, cells[0]) == "raw"
    assert other.source("fog@3", like=load(clean.take([3, 1]))).names == ("3", "1")
    with pytest.raises(InputError, match="nothing in o is called 'snow'"):
        chosen_cells(other, ["snow"])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"fog@3": np.zeros((7, 32, 32, 3), np.uint8)}, "7 images of fog@3, but 120 in clean"),
        ({"fog@3": np.zeros((120, 32, 32, 3))}, "fog@3: images of type float64; expected uint8"),
        ({"fog@3": np.zeros((120, 16, 16, 3), np.uint8)}, "has 16×16 pixels .* but 32×32"),
        ({"fogg@3": np.zeros((120, 32, 32, 3), np.uint8)}, "none of fogg@3 … .* is a corruption"),
        ({"labels": np.zeros(120)}, "no arrays of images in it"),
    ],
)
def test_files_that_do_not_fit(
    tmp_path: Path, clean: Source, arrays: dict[str, NDArray[np.uint8]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        against(tmp_path, clean, arrays)


def test_a_file_that_is_no_archive(tmp_path: Path, clean: Source) -> None:
    (tmp_path / "x.npz").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"not a readable \.npz file"):
        open_other(tmp_path / "x.npz", clean)
    with pytest.raises(InputError, match="no such file or folder"):
        open_other(tmp_path / "y.npz", clean)


def test_a_tree_of_jpeg_files_is_compared_with_jpeg(tmp_path: Path, clean: Source) -> None:
    """Files written with Pillow at quality 85 are ours stored as jpeg85, pixel by pixel."""
    from PIL import Image

    part = clean.take(range(40))
    for suffix, root in ((".jpg", tmp_path / "jpeg"), (".png", tmp_path / "png")):
        for row, picture in enumerate(corrupted(load(part), "gaussian_noise@2")):
            target = root / "gaussian_noise" / "2" / str(int(part.labels[row])) / f"{row}{suffix}"
            target.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture).save(target, quality=85)
    folder = tmp_path / "originals"
    for row in range(40):
        target = folder / str(int(part.labels[row])) / f"{row}.png"
        target.parent.mkdir(parents=True, exist_ok=True)
        part.read(row).save(target)
    source = blemish.open_source(folder)
    for kind, storage in (("jpeg", "jpeg85"), ("png", "raw")):
        other = open_other(tmp_path / kind, source)
        cells, _ = chosen_cells(other)
        assert fair_storage(other, cells[0]) == storage
    # Ids are those of the folder's names, so the draws are others: equivalent in JPEG, and not in raw pixels.
    other = open_other(tmp_path / "jpeg", source)
    found = equivalence(load(source), other, cells, storage="jpeg85")
    assert found.verdicts("images") == [EQUIVALENT]
    assert found.verdicts("images", "raw") == [DIFFERENT]


def test_settings_that_mean_nothing(tmp_path: Path, clean: Source) -> None:
    theirs = {"contrast@1": np.zeros((120, 32, 32, 3), np.uint8)}
    for settings_, message in (
        ({"margin": 0.0}, "expected more than 0"),
        ({"storage": "webp"}, "unknown storage 'webp'"),
        ({"level": 2.0}, "level 2"),
    ):
        with pytest.raises(InputError, match=message):
            against(tmp_path, clean, theirs, **settings_)
