"""Largest non-overlapping subsets: against brute force, with many optima, and what is said when there is none."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blemish.core.errors import InputError
from blemish.studies.construction.cliques import DEFAULT_STEPS, largest_cliques
from blemish.studies.construction.graphs import Graph
from blemish.studies.construction.matrices import OverlapMatrix
from blemish.studies.construction.min_weight_choice import min_weight_choice
from blemish.studies.construction.min_weight_clique import few_colours, min_weight_clique, weight
from blemish.studies.construction.selection import select_non_overlapping, sweep_thresholds


def brute_force(matrix: OverlapMatrix, threshold: float) -> tuple[set[tuple[str, ...]], float]:
    """Every subset, largest first: those of the first size that fits, and their lowest mean score."""
    for size in range(len(matrix.names), 1, -1):
        fitting = {}
        for subset in itertools.combinations(range(len(matrix.names)), size):
            scores = [matrix.scores[i, j] for i, j in itertools.combinations(subset, 2)]
            if all(score <= threshold for score in scores):
                fitting[tuple(matrix.names[i] for i in subset)] = float(np.mean(scores))
        if fitting:
            return set(fitting), min(fitting.values())
    return set(), float("nan")


@st.composite
def matrices(draw: st.DrawFn) -> OverlapMatrix:
    count = draw(st.integers(2, 9))
    scores = np.eye(count)
    values = draw(
        st.lists(
            st.sampled_from([0.0, 0.05, 0.1, 0.2, 0.4, 0.8]),
            min_size=count * (count - 1) // 2,
            max_size=count * (count - 1) // 2,
        )
    )
    scores[np.triu_indices(count, 1)] = values
    return OverlapMatrix(tuple(f"c{i}" for i in range(count)), np.maximum(scores, scores.T))


@settings(max_examples=150, deadline=None)
@given(matrices(), st.sampled_from([0.0, 0.1, 0.2, 0.5, 1.0]))
def test_against_brute_force(matrix: OverlapMatrix, threshold: float) -> None:
    subsets, mean = brute_force(matrix, threshold)
    if not subsets:
        with pytest.raises(InputError, match="no two corruptions"):
            select_non_overlapping(matrix, threshold=threshold)
        return
    found = select_non_overlapping(matrix, threshold=threshold)
    assert set(found.optima) == subsets
    assert found.count == len(subsets)
    assert found.members in subsets
    assert found.mean == pytest.approx(mean, abs=1e-12)
    # Listing only one still finds the lowest mean, by the other search.
    short = select_non_overlapping(matrix, threshold=threshold, limit=1)
    assert len(short.optima) == 1
    assert short.proven
    assert short.mean == pytest.approx(mean, abs=1e-12)


def test_ties_are_counted_and_the_first_is_taken() -> None:
    scores = np.array([[1, 0.5, 0.1], [0.5, 1, 0.1], [0.1, 0.1, 1]])
    found = select_non_overlapping(OverlapMatrix(("a", "b", "c"), scores), threshold=0.2)
    assert found.members == ("a", "c")
    assert (found.count, found.ties) == (2, 2)
    assert "shared by 2" in found.explain()


def test_the_threshold_itself_is_allowed() -> None:
    found = select_non_overlapping(OverlapMatrix(("a", "b"), np.array([[1, 0.1], [0.1, 1]])), threshold=0.1)
    assert found.size == 2
    assert found.explain().startswith("one largest subset under 0.1")


def test_undefined_pairs_never_stand_together() -> None:
    scores = np.array([[1, np.nan, 0], [np.nan, 1, 0.1], [0, 0.1, 1]])
    matrix = OverlapMatrix(("a", "b", "c"), scores, {("a", "b"): "why"})
    found = select_non_overlapping(matrix, threshold=1)
    assert found.members == ("a", "c")
    assert found.undefined == (("a", "b"),)
    assert "kept apart" in found.explain()
    nothing = OverlapMatrix(("a", "b"), np.array([[1, np.nan], [np.nan, 1]]), {("a", "b"): "why"})
    with pytest.raises(InputError, match="has a defined score"):
        select_non_overlapping(nothing, threshold=1)


def test_infeasible_thresholds_name_the_least_score() -> None:
    matrix = OverlapMatrix(("a", "b"), np.array([[1, 0.3], [0.3, 1]]))
    with pytest.raises(InputError, match=r"the least is 0\.3, of a and b"):
        select_non_overlapping(matrix, threshold=0.1)
    for threshold in (-0.1, 1.1, float("nan")):
        with pytest.raises(InputError, match="from 0 to 1"):
            select_non_overlapping(matrix, threshold=threshold)
    with pytest.raises(InputError, match="at least 1 of each"):
        select_non_overlapping(matrix, threshold=0.5, limit=0)


def test_a_sweep_goes_on_after_an_infeasible_threshold() -> None:
    matrix = OverlapMatrix(("a", "b"), np.array([[1, 0.3], [0.3, 1]]))
    swept = sweep_thresholds(matrix, thresholds=[0.5, 0.1])
    assert [item.threshold for item in swept] == [0.1, 0.5]
    assert swept[0].selection is None
    assert "no two" in swept[0].reason
    assert swept[1].selection is not None
    with pytest.raises(InputError, match="no thresholds"):
        sweep_thresholds(matrix, thresholds=[])


def pairs_graph(pairs: int) -> OverlapMatrix:
    """Pairs of corruptions that overlap completely, and nothing else: 2 ** pairs largest subsets."""
    scores = np.kron(np.eye(pairs), np.ones((2, 2)))
    draw = np.random.default_rng(0)
    noise = np.triu(draw.random(scores.shape) * 0.05, 1)
    scores = np.where(scores == 1, 1, noise + noise.T)
    return OverlapMatrix(tuple(f"c{i}" for i in range(2 * pairs)), scores)


def test_astronomically_many_optima_are_counted_and_the_list_is_cut() -> None:
    """200 corruptions, 100 pairs: 2 ** 100 subsets of 100. Too many to prove the lowest mean, and that is said."""
    found = select_non_overlapping(pairs_graph(100), threshold=0.1, limit=20, steps=2000)
    assert found.size == 100
    assert found.count == 2**100
    assert len(found.optima) == 20
    assert found.ties is None
    assert not found.proven
    assert 0 < found.mean_bound < found.mean
    assert "not ruled out" in found.explain()


def test_many_optima_are_searched_exactly() -> None:
    """2 ** 12 subsets, of which only ten may be listed: the lowest mean is still that of all of them."""
    matrix = pairs_graph(12)
    whole = select_non_overlapping(matrix, threshold=0.1)
    short = select_non_overlapping(matrix, threshold=0.1, limit=10)
    assert whole.count == short.count == len(whole.optima) == 4096
    assert len(short.optima) == 10
    assert short.proven
    assert short.members == whole.members
    assert short.mean == pytest.approx(whole.mean, abs=1e-15)


def random_graph(count: int, density: float, seed: int) -> Graph:
    draw = random.Random(seed)
    joined = [0] * count
    for i, j in itertools.combinations(range(count), 2):
        if draw.random() < density:
            joined[i] |= 1 << j
            joined[j] |= 1 << i
    return Graph(joined)


def all_maximal(graph: Graph) -> set[tuple[int, ...]]:
    """Plain Bron–Kerbosch with a pivot: slow, short, and nothing in common with the search under test."""
    found = []

    def grow(clique: list[int], left: int, done: int) -> None:
        if not left and not done:
            found.append(tuple(sorted(clique)))
            return
        pivot = max(
            (v for v in range(len(graph)) if (left | done) >> v & 1), key=lambda v: (graph.joined[v] & left).bit_count()
        )
        for v in range(len(graph)):
            if left & ~graph.joined[pivot] & 1 << v:
                grow([*clique, v], left & graph.joined[v], done & graph.joined[v])
                left &= ~(1 << v)
                done |= 1 << v

    grow([], graph.all, 0)
    size = max(map(len, found))
    return {clique for clique in found if len(clique) == size}


@pytest.mark.parametrize("density", [0.1, 0.5, 0.8, 0.9])
@pytest.mark.parametrize("seed", range(3))
def test_larger_graphs_against_plain_enumeration(density: float, seed: int) -> None:
    graph = random_graph(34, density, seed)
    expected = all_maximal(graph)
    found = largest_cliques(graph, limit=10**6)
    assert set(found.cliques) == expected
    assert found.count == len(expected)


@pytest.mark.parametrize("seed", range(5))
def test_the_least_weight_of_many(seed: int) -> None:
    graph = random_graph(26, 0.6, seed)
    draw = np.random.default_rng(seed).random((26, 26))
    weights = draw + draw.T
    cliques = [list(clique) for clique in largest_cliques(graph, limit=10**6).cliques]
    found = min_weight_clique(graph, weights, cliques[:1], steps=10**6)
    assert found.proven
    assert found.weight == pytest.approx(min(weight(clique, weights) for clique in cliques))
    assert found.weight == pytest.approx(weight(found.clique, weights))


@st.composite
def families(draw: st.DrawFn) -> tuple[list[list[int]], np.ndarray]:
    """Colours of one to four vertices, with weights that tie often, and pairs of different colours that are apart."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=5))
    colours = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    number = np.repeat(np.arange(len(sizes)), sizes)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    weights = draw(st.sampled_from([rng.random, lambda shape: rng.integers(0, 3, shape) / 2.0]))((sum(sizes),) * 2)
    apart = rng.random(weights.shape) < draw(st.sampled_from([0.0, 0.2]))
    upper = np.triu(np.where(apart, np.inf, weights), 1)
    weights = np.where(number[:, None] == number, np.inf, upper + upper.T)
    return [colour.tolist() for colour in colours], weights


@settings(max_examples=200, deadline=None)
@given(families(), st.integers(0, 60))
def test_one_of_each_colour_against_all_choices(family: tuple[list[list[int]], np.ndarray], few: int) -> None:
    """The choice with the least weight with many steps; with few, a bound that it does not fall below."""
    colours, weights = family
    choices = [list(choice) for choice in itertools.product(*colours)]
    sums = [weight(choice, weights) for choice in choices]
    if np.isinf(min(sums)):
        return
    start = choices[int(np.argmax([total if np.isfinite(total) else -1 for total in sums]))]

    def improve(choice: list[int]) -> tuple[list[int], float]:
        return choice, weight(choice, weights)

    found = min_weight_choice(colours, weights, start, improve=improve, steps=10**6)
    assert found.proven
    assert found.weight == pytest.approx(min(sums), abs=1e-9)
    assert found.weight == weight(found.clique, weights)
    assert found.bound == found.weight
    stopped = min_weight_choice(colours, weights, start, improve=improve, steps=few)
    assert stopped.bound <= min(sums) + 1e-9
    assert stopped.weight >= min(sums) - 1e-9
    assert not stopped.proven or stopped.weight == pytest.approx(min(sums), abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_both_searches_agree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve families of four, in which some pairs are apart: colours are known, and so is a largest clique."""
    rng = np.random.default_rng(seed)
    family = np.arange(48) // 4
    below = (family[:, None] != family) & (rng.random((48, 48)) < 0.9)
    below = np.triu(below, 1) | np.triu(below, 1).T
    below[::4, ::4] = family[::4, None] != family[::4]
    upper = np.triu(rng.random((48, 48)), 1)
    graph = Graph([sum(1 << int(u) for u in np.flatnonzero(row)) for row in below])
    start = [list(range(0, 48, 4))]
    assert len(few_colours(graph, 12)) == 12
    new = min_weight_clique(graph, upper + upper.T, start, steps=10**5)
    monkeypatch.setattr("blemish.studies.construction.min_weight_clique.few_colours", lambda *_: [])
    old = min_weight_clique(graph, upper + upper.T, start, steps=10**5)
    assert new.proven
    assert old.proven
    assert new.clique == old.clique
    assert new.weight == pytest.approx(old.weight, abs=1e-12)


def test_few_colours() -> None:
    """A ring of five needs three colours, a path of four two, however it is coloured first."""
    ring = Graph([1 << (v + 1) % 5 | 1 << (v - 1) % 5 for v in range(5)])
    path = Graph([0b0010, 0b0101, 0b1010, 0b0100])
    for graph, fewest in ((ring, 3), (path, 2)):
        colours = few_colours(graph, 1)
        assert len(colours) == fewest
        assert sum(colours) == graph.all
        assert all(not colour & graph.joined[v] for colour in colours for v in range(len(graph)) if colour >> v & 1)


def like_real(count: int, seed: int) -> OverlapMatrix:
    """Squared cosines of vectors with up to three of twenty properties, and a little noise."""
    rng = np.random.default_rng(seed)
    vectors = np.zeros((count, 20))
    for vector in vectors:
        places = rng.choice(20, size=rng.integers(1, 4), replace=False)
        vector[places] = rng.dirichlet(np.ones(len(places)))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    noise = np.triu(rng.normal(0, 0.02, (count, count)), 1)
    scores = np.clip((vectors @ vectors.T) ** 2 + noise + noise.T, 0, None)
    np.fill_diagonal(scores, 1)
    return OverlapMatrix(tuple(f"c{i}" for i in range(count)), scores)


def test_two_hundred_corruptions_with_families_are_proven() -> None:
    """More largest subsets than can be listed, and the lowest mean of all of them; 3,000 steps do not prove it."""
    matrix = like_real(200, 0)
    found = select_non_overlapping(matrix, threshold=0.35, limit=10, steps=20_000)
    assert found.count is None
    assert found.proven
    assert found.mean_bound == found.mean
    places = [matrix.index(name) for name in found.members]
    scores = [matrix.scores[i, j] for i, j in itertools.combinations(places, 2)]
    assert max(scores) <= 0.35
    assert found.mean == pytest.approx(float(np.mean(scores)), abs=1e-12)


def test_too_few_steps_to_list_all_are_enough_to_prove_the_size() -> None:
    """In very dense graphs there are far more largest cliques than steps."""
    graph = random_graph(120, 0.985, 0)
    found = largest_cliques(graph, limit=10**6, steps=3000)
    assert found.count is None
    assert found.size == largest_cliques(graph, limit=1, steps=10**5).size
    assert all(graph.joined[u] >> v & 1 for clique in found.cliques for u, v in itertools.combinations(clique, 2))


def test_too_few_steps_are_an_error_and_no_answer() -> None:
    with pytest.raises(InputError, match="stopped after 5 steps"):
        largest_cliques(random_graph(60, 0.7, 0), limit=10, steps=5)


@pytest.mark.parametrize(("density", "size", "steps"), [(0.3, 7, 2_000), (0.5, 11, 20_000), (0.6, 14, 60_000)])
def test_two_hundred_corruptions_in_few_steps(density: float, size: int, steps: int) -> None:
    """Random graphs have the largest cliques that theory expects (Matula): about 7, 11 and 14 of 200.

    All of them are listed, with about half of these steps; the default allows many more.
    """
    assert steps < DEFAULT_STEPS
    found = largest_cliques(random_graph(200, density, 0), limit=1000, steps=steps)
    assert found.size == size
    assert found.count is not None
