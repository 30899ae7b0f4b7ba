"""Exact separation against brute force, and its reports of bad data."""

from __future__ import annotations

import itertools
import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from blemish.core.errors import InputError
from blemish.studies.separation import search
from blemish.studies.separation.bounds import Bound, short_vectors
from blemish.studies.separation.exact import NORMS, nearest_other_class, separation
from conftest import SHARED


def brute(points: NDArray[Any], norm: str) -> NDArray[np.float64]:
    """All distances, straight from the definition."""
    flat = points.reshape(len(points), -1).astype(np.float64)
    apart = np.abs(flat[:, None] - flat[None])
    if norm == "l1":
        return np.asarray(apart.sum(2))
    largest = np.asarray(apart.max(2))
    if norm == "linf":
        return largest
    scale = np.where(largest > 0, largest, 1)[..., None]  # squares of tiny differences would vanish
    return np.asarray(scale[..., 0] * np.sqrt(((apart / scale) ** 2).sum(2)))


def different(labels: NDArray[Any]) -> NDArray[np.bool_]:
    return np.asarray(labels[:, None] != labels[None])


SHAPES = st.sampled_from([(2,), (5,), (40,), (6, 7), (5, 6, 3), (3, 6, 5)])
DTYPES = {
    "uint8": arrays.from_dtype(np.dtype(np.uint8)),
    "few": st.integers(0, 2).map(np.uint8),
    "float32": st.floats(-4, 4, width=32).map(np.float32),
    "float64": st.floats(-1e3, 1e3).map(np.float64),
    "int64": st.integers(-1000, 1000).map(np.int64),
}


@st.composite
def labelled(draw: st.DrawFn) -> tuple[NDArray[Any], NDArray[Any]]:
    kind = draw(st.sampled_from(sorted(DTYPES)))
    count = draw(st.integers(2, 14))
    dtype = {"few": np.uint8}.get(kind, np.dtype(kind if kind != "few" else "uint8"))
    points = draw(arrays.arrays(dtype, (count, *draw(SHAPES)), elements=DTYPES[kind]))
    labels = np.array(draw(st.lists(st.integers(0, 3), min_size=count, max_size=count)))
    labels[:2] = 0, 1
    return points, labels


@settings(max_examples=150, deadline=None)
@example(data=(np.array([[0.0, 0.0], [0.0, 1.7e-189]]), np.array([0, 1])), norm="l2", per_pair=False, closest=1)
@given(data=labelled(), norm=st.sampled_from(NORMS), per_pair=st.booleans(), closest=st.integers(1, 5))
def test_separation_is_that_of_brute_force(
    data: tuple[NDArray[Any], NDArray[Any]], norm: Any, per_pair: bool, closest: int
) -> None:
    points, labels = data
    table = brute(points, norm)
    found = separation(points, labels, norm=norm, per_pair=per_pair, closest=closest, scale=1)
    pairs = np.argwhere(np.triu(different(labels)))
    expected = np.sort(table[pairs[:, 0], pairs[:, 1]])
    np.testing.assert_allclose([pair.distance for pair in found.closest], expected[:closest], rtol=1e-12)
    assert len({(pair.first, pair.second) for pair in found.closest}) == len(found.closest)
    for pair in (*found.closest, *(found.pairs or ())):
        assert pair.distance == pytest.approx(table[pair.first, pair.second], rel=1e-12)
        assert pair.classes == (labels[pair.first], labels[pair.second])
    if per_pair:
        matrix = found.matrix()
        for g, h in itertools.combinations(range(len(found.classes)), 2):
            block = table[labels == found.classes[g]][:, labels == found.classes[h]]
            assert matrix[g, h] == matrix[h, g] == pytest.approx(block.min(), rel=1e-12)
        assert np.isnan(np.diag(matrix)).all()
    else:
        assert found.pairs is None
    zeros = {(int(i), int(j)) for i, j in pairs if (points[i] == points[j]).all()}
    assert {(pair.first, pair.second) for pair in found.contradictions} == zeros
    assert found.contradiction_count == len(zeros)


@settings(max_examples=60, deadline=None)
@given(data=labelled(), norm=st.sampled_from(NORMS), above=st.booleans())
def test_nearest_other_class_is_that_of_brute_force(
    data: tuple[NDArray[Any], NDArray[Any]], norm: Any, above: bool
) -> None:
    points, labels = data
    table = np.where(different(labels), brute(points, norm), np.inf)
    if above:
        table[table == 0] = np.inf
    chosen = np.array([len(points) - 1, 0, 0])
    distance, other = nearest_other_class(points, labels, norm=norm, chosen=chosen, exclude_duplicates=above, scale=1)
    np.testing.assert_allclose(distance, table.min(1)[chosen], rtol=1e-12)
    for k, place, nearest in zip(chosen, other, distance, strict=True):
        if math.isfinite(nearest):
            assert table[k, place] == pytest.approx(nearest, rel=1e-12)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
@pytest.mark.parametrize("classes", [2, 5, 150])
def test_many_tiles_give_the_same(norm: Any, dtype: Any, classes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small leaves, so that leaves of one class and of several, tiles and box bounds all take part."""
    monkeypatch.setattr(search, "_LEAF", 16)
    rng = np.random.default_rng(classes)
    points = rng.integers(0, 256, (400, 4, 5, 3)).astype(np.uint8)
    points = (points // 2 + rng.integers(0, 128, (400, 1, 1, 1))).astype(dtype)
    labels = rng.integers(0, classes, 400)
    table = np.where(different(labels), brute(points, norm), np.inf)
    seen: list[tuple[int, int]] = []
    found = separation(points, labels, norm=norm, scale=1, progress=lambda done, total: seen.append((done, total)))
    assert found.distance == pytest.approx(table.min(), rel=1e-12)
    codes = np.searchsorted(found.classes, labels)
    best = np.full((len(found.classes), len(found.classes)), np.inf)
    np.minimum.at(best, (codes[:, None], codes[None]), table)
    np.testing.assert_allclose(found.matrix(), np.where(np.isinf(best), np.nan, best), rtol=1e-12)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1][0] == seen[-1][1]
    distance, _ = nearest_other_class(points, labels, norm=norm, scale=1)
    np.testing.assert_allclose(distance, table.min(1), rtol=1e-12)


@pytest.mark.parametrize("norm", NORMS)
def test_the_number_of_threads_changes_nothing(norm: Any) -> None:
    points = np.random.default_rng(0).integers(0, 4, (3000, 24)).astype(np.uint8)  # many ties
    labels = np.arange(3000) % 3
    results = []
    before = torch.get_num_threads()
    for threads in (1, 3):
        torch.set_num_threads(threads)
        results.append(separation(points, labels, norm=norm))
        assert torch.get_num_threads() == threads
    torch.set_num_threads(before)
    assert results[0] == results[1]


@settings(max_examples=100, deadline=None)
@given(data=labelled(), norm=st.sampled_from(NORMS))
def test_bounds_never_exceed_distances(data: tuple[NDArray[Any], NDArray[Any]], norm: Any) -> None:
    points, _ = data
    points = points if points.dtype == np.uint8 else points.astype(np.float64)
    table = brute(points, norm)
    everything = torch.arange(len(points))
    i, j = (grid.flatten() for grid in torch.meshgrid(everything, everything, indexing="ij"))
    for short in short_vectors(points, norm):
        bound = Bound.of(short, norm, torch.device("cpu"))
        assert (bound.dense(everything, everything).numpy() <= table).all()
        assert (bound.paired(i, j).numpy().reshape(table.shape) <= table).all()


def test_squares_of_uint8_are_exact() -> None:
    """Sums of squares near 2·10⁹, where float32 steps by 128: 30,000 · 255², and with one 254 instead of a 255."""
    far = np.full((2, 30_000), 255, np.uint8)
    far[1, 0] = 254  # 255² − 254² = 509
    points = np.concatenate([np.zeros((1, 30_000), np.uint8), far])
    found = separation(points, [0, 1, 2], norm="l2", scale=1)
    squares = sorted(round(pair.distance**2) for pair in found.pairs or ())
    assert squares == [1, 30_000 * 255**2 - 509, 30_000 * 255**2]


def test_tiny_differences_do_not_vanish_when_squared() -> None:
    found = separation(np.array([[0.0, 0.0], [3e-200, 4e-200]]), [0, 1], norm="l2")
    assert found.distance == pytest.approx(5e-200, rel=1e-12)


def test_uint8_is_reported_on_the_scale_from_0_to_1() -> None:
    points = np.array([[0, 10], [54, 0], [200, 200]], np.uint8)
    found = separation(points, [0, 1, 1])
    assert found.distance == 54 / 255  # the published separation of CIFAR-10 is 54/255
    assert found.epsilon_min == 27 / 255
    assert separation(points, [0, 1, 1], scale=1).distance == 54


def test_contradictions_are_reported_and_can_be_left_out() -> None:
    points = np.array([[1.0, 2.0], [1.0, 2.0], [5.0, 2.0], [-0.0, 0.0], [0.0, 0.0], [1.0, 2.0]])
    labels = ["cat", "dog", "dog", "cat", "dog", "cat"]
    found = separation(points, labels)
    assert found.distance == 0
    assert [(p.first, p.second) for p in found.contradictions] == [(0, 1), (1, 5), (3, 4)]
    assert found.contradictions[0].classes == ("cat", "dog")
    without = separation(points, labels, exclude_duplicates=True)
    assert without.distance == 2  # (0, 0) and (1, 2)
    assert without.contradictions == found.contradictions
    assert without.duplicates_excluded
    assert json.loads(json.dumps(without.record()))["distance"] == 2


def test_the_list_of_contradictions_is_cut_but_counted() -> None:
    found = separation(np.zeros((100, 3), np.uint8), np.arange(100) % 2)
    assert found.contradiction_count == 2500
    assert len(found.contradictions) == 1000
    with pytest.raises(InputError, match="all points of different class are equal"):
        separation(np.zeros((100, 3), np.uint8), np.arange(100) % 2, exclude_duplicates=True)


def test_binary_features_prune_too() -> None:
    """Every distance but one is 1: without strict limits all pairs would have to be measured."""
    rng = np.random.default_rng(0)
    points = rng.integers(0, 2, (4000, 64)).astype(np.float32)
    points[1] = points[0]
    points[1, 5] = 0.75 if points[0, 5] else 0.25
    found = separation(points, np.arange(4000) % 2, per_pair=False, closest=1)
    assert (found.distance, found.closest[0].first, found.closest[0].second) == (0.25, 0, 1)


@pytest.mark.parametrize(
    ("points", "labels", "settings", "message"),
    [
        (np.zeros((3, 2)), [1, 1, 1], {}, "all 3 points are of class 1; expected at least two classes"),
        (np.array([[0.0], [np.nan], [1.0]]), [0, 1, 1], {}, "point 1 holds NaN or infinity"),
        (np.array([[0.0], [1.0], [-np.inf]]), [0, 1, 1], {}, "point 2 holds NaN or infinity"),
        (np.zeros((3, 2)), [0, 1], {}, r"labels of shape \(2,\) for 3 points"),
        (np.zeros(3), [0, 1, 0], {}, r"points of shape \(3,\); expected \(N, …\)"),
        (np.zeros((0, 3)), [], {}, r"points of shape \(0, 3\)"),
        (np.array([["a"], ["b"]]), [0, 1], {}, "expected numbers"),
        (np.array([[0.0], [1e16]]), [0, 1], {}, "scale the data first"),
        (np.zeros((2, 2)), [0.0, np.nan], {}, "labels hold NaN"),
        (np.zeros((2, 2)), [0, 1], {"norm": "l3"}, "norm 'l3'; expected one of l1, l2, linf"),
        (np.zeros((2, 2)), [0, 1], {"closest": 0}, "closest=0"),
        (np.zeros((2, 2)), [0, 1], {"scale": 0.0}, "scale=0.0"),
        (np.zeros((5000, 2)), np.arange(5000), {}, "5000 classes; expected at most 4096 for per_pair=True"),
    ],
)
def test_bad_input_is_explained(points: Any, labels: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        separation(points, labels, **settings)


@pytest.mark.parametrize("chosen", [[5], [-1], [0.5], [], [[0]]])
def test_bad_positions_are_explained(chosen: Any) -> None:
    with pytest.raises(InputError, match="chosen"):
        nearest_other_class(np.zeros((3, 1)), [0, 1, 1], chosen=chosen)


def test_the_published_2d_set_is_separated_as_published() -> None:
    """Siedel et al. 2022, Table 1: 2r = 0.008026 of 4,674 points in L_∞."""
    path = SHARED / "data" / "mscr_2d" / "B_sep.npz"
    if not path.is_file():
        pytest.skip("the 2D sets of the paper (../shared/data/mscr_2d) are not beside this checkout")
    with np.load(path) as file:
        points, labels = file["x"], file["y"]
    found = separation(points, labels)
    assert found.points == 4674
    assert round(found.distance, 6) == 0.008026
    table = np.abs(points[labels == labels[0]][:, None] - points[labels != labels[0]][None]).max(2)
    assert found.distance == table.min()


def test_the_gpu_gives_the_same(device: torch.device) -> None:
    points = np.random.default_rng(0).integers(0, 256, (3000, 8, 8, 3)).astype(np.uint8)
    labels = np.arange(3000) % 4
    for norm in NORMS:
        there, here = (separation(points, labels, norm=norm, device=place) for place in (device, "cpu"))
        assert there.distance == here.distance
        np.testing.assert_array_equal(there.matrix(), here.matrix())
