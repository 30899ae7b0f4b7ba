"""Equivalence of our images with another set: the intervals, the verdicts, and sets whose answer is known."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import blemish
from blemish.benchmarks.condition import parse_condition
from blemish.data.cache import load
from blemish.data.images import Images
from blemish.data.source import Source
from blemish.metrics.bootstrap import Estimate
from blemish.metrics.equivalence import Equivalence, equivalence
from blemish.metrics.equivalence_images import statistics
from blemish.metrics.equivalence_sets import chosen_cells, fair_storage, open_other
from blemish.metrics.equivalence_verdicts import Verdict, judge, mean_interval, overall, paired_interval
from blemish.types import InputError

SAME, EQUIVALENT, DIFFERENT, UNDECIDED = Verdict.SAME, Verdict.EQUIVALENT, Verdict.DIFFERENT, Verdict.UNDECIDED


# Intervals


def test_students_quantile() -> None:
    """Published table: t of 29 degrees of freedom at 95 % is 2.045, at 99.9 % 3.659; of 60 at 95 % 2.000."""
    values = np.array([-1.0, 1.0] * 15)
    error = values.std(ddof=1) / math.sqrt(30)
    assert mean_interval(values).high == pytest.approx(2.045 * error, rel=5e-4)
    assert mean_interval(values, level=0.999).high == pytest.approx(3.659 * error, rel=5e-4)
    many = np.array([-1.0, 1.0] * 30 + [0.0])
    assert mean_interval(many).high == pytest.approx(2.000 * many.std(ddof=1) / math.sqrt(61), rel=5e-4)


def test_few_images_have_no_interval() -> None:
    found = mean_interval(np.zeros(29))
    assert (found.low, found.high) == (-math.inf, math.inf)
    assert judge(found, found, 100.0) is UNDECIDED


def test_no_disagreement_at_all() -> None:
    """With none of n images telling the two apart, Tango's interval ends at ± z²/(n + z²)."""
    z2 = 1.959964**2
    found = paired_interval(0, 0, 300)
    assert found.value == 0
    assert found.high == pytest.approx(z2 / (300 + z2), rel=1e-5)
    assert found.low == pytest.approx(-found.high)


def restricted_score(first: int, second: int, images: int, gap: float) -> float:
    """The score statistic with the nuisance parameter found by trying them all."""
    low, high = max(0.0, -gap), min(1.0, (1 - gap) / 2)
    q = np.linspace(low, high, 200_001)[1:-1]
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [k * np.log(p) if k else 0.0 for k, p in ((first, q + gap), (second, q))]
        likelihood = terms[0] + terms[1] + (images - first - second) * np.log(1 - gap - 2 * q)
    best = float(q[np.nanargmax(likelihood)])
    return (first - second - images * gap) / math.sqrt(images * (2 * best + gap - gap**2))


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 100))
@settings(max_examples=25, deadline=None)
def test_ends_of_the_paired_interval_are_two_deviations_away(first: int, second: int, rest: int) -> None:
    images = first + second + rest + 1
    found = paired_interval(first, second, images)
    assert -1 <= found.low <= found.value <= found.high <= 1
    assert restricted_score(first, second, images, found.low) == pytest.approx(1.96, abs=0.02)
    assert restricted_score(first, second, images, found.high) == pytest.approx(-1.96, abs=0.02)
    mirrored = paired_interval(second, first, images)
    assert (mirrored.low, mirrored.high) == (pytest.approx(-found.high), pytest.approx(-found.low))


def test_impossible_counts() -> None:
    with pytest.raises(InputError, match="5 and 6 of 10 images"):
        paired_interval(5, 6, 10)


@pytest.mark.parametrize(
    ("interval", "widened", "expected"),
    [
        ((0.2, -0.5, 0.9), (0.2, -1.0, 1.4), EQUIVALENT),
        ((0.8, 0.7, 0.9), (0.8, 0.6, 1.0), EQUIVALENT),  # a difference, but a small one
        ((0.8, 0.3, 1.3), (0.8, 0.1, 1.5), UNDECIDED),  # a difference that may be larger than the margin
        ((3.0, 1.5, 4.5), (3.0, 0.5, 5.5), DIFFERENT),
        ((-3.0, -4.5, -1.5), (-3.0, -5.5, -0.5), DIFFERENT),
        ((3.0, 1.5, 4.5), (3.0, -0.5, 6.5), UNDECIDED),  # one of many comparisons may look so by chance
        ((0.0, -3.0, 3.0), (0.0, -5.0, 5.0), UNDECIDED),
    ],
)
def test_verdicts(interval: tuple[float, ...], widened: tuple[float, ...], expected: Verdict) -> None:
    assert judge(Estimate(*interval), Estimate(*widened), 1.0) is expected


def test_the_whole_is_as_good_as_its_worst_part() -> None:
    assert overall([SAME, SAME]) is SAME
    assert overall([SAME, EQUIVALENT]) is EQUIVALENT
    assert overall([EQUIVALENT, UNDECIDED]) is UNDECIDED
    assert overall([EQUIVALENT, UNDECIDED, DIFFERENT]) is DIFFERENT
    assert overall([]) is UNDECIDED


# Statistics


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


def test_the_same_draws_are_the_same_pixels(tmp_path: Path, clean: Source) -> None:
    images = load(clean)
    found = against(tmp_path, clean, {cell: corrupted(images, cell) for cell in ("fog@3", "gaussian_noise@2")})
    assert found.verdicts("images") == [SAME, SAME]
    assert found.verdicts("images", "jpeg85") != [SAME, SAME]
    side = found.cells[0].sides["raw"]
    assert side.close == 1
    assert [item.difference.value for item in side.statistics[:-1]] == [0, 0, 0, 0]
    # No distance between the sets, while another draw of ours would be far away.
    assert side.statistics[-1].theirs == 0
    assert side.statistics[-1].ours > 1


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
    wide = against(tmp_path, source, theirs, model=model, margin=10.0)
    assert wide.verdicts("accuracy") == [EQUIVALENT]
    alike = against(tmp_path, source, {"contrast@1": coloured(1.0)}, model=model, margin=1.0)
    # No image tells the two apart, but 200 of them cannot exclude a gap of 1.9 points.
    assert alike.verdicts("accuracy") == [UNDECIDED]
    needed = alike.images_needed()
    assert needed is not None
    assert 500 < needed < 1000


def test_false_alarms_are_rare(tmp_path: Path, clean: Source) -> None:
    """Over many cells that are all drawn alike, none may be called different."""
    images = load(clean)
    cells = [f"{name}@{level}" for name in ("fog", "frost", "snow", "glass_blur", "spatter") for level in (1, 3, 5)]
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
