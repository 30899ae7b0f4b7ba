"""Coverage, categories and generation."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blemish.core.errors import InputError
from blemish.studies.construction.categories import (
    Categories,
    check_categories,
    find_categories,
    read_categories,
    same_and_different,
    write_categories,
)
from blemish.studies.construction.coverage import (
    balance,
    coverage_by_overlap,
    coverage_by_training,
    mean_corruption_errors,
)
from blemish.studies.construction.generation import count_benchmarks, generate_benchmarks, select_least_overlapping
from blemish.studies.construction.matrices import OverlapMatrix
from blemish.studies.construction.overlap import overlap_matrix
from blemish.studies.construction.published import published_table
from blemish.studies.construction.substitution import (
    group_by_std,
    possible_substitutions,
    representation_std,
    unbalanced,
)
from blemish.studies.construction.tables import AccuracyTable


def made(*sizes: int) -> Categories:
    return Categories({f"k{i}": tuple(f"c{i}.{j}" for j in range(size)) for i, size in enumerate(sizes)})


def blocks(*sizes: int, inside: float = 0.8, outside: float = 0.05) -> OverlapMatrix:
    names = made(*sizes).corruptions
    labels = np.repeat(np.arange(len(sizes)), sizes)
    scores = np.where(labels[:, None] == labels, inside, outside)
    np.fill_diagonal(scores, 1)
    return OverlapMatrix(names, scores)


class TestCoverage:
    def test_by_overlap(self) -> None:
        """ImageNet-C without its noises: JPEG covers them (.60 in Figure 3), fog stays uncovered by anything left."""
        matrix = overlap_matrix(published_table("imagenet-c"))
        found = {
            item.corruption: item for item in coverage_by_overlap(matrix, ["jpeg_compression", "elastic_transform"])
        }
        assert found["shot_noise"].by == "jpeg_compression"
        assert found["shot_noise"].covered
        assert not found["fog"].covered
        assert len(found) == 13

    def test_undefined_scores_cover_nothing(self) -> None:
        matrix = OverlapMatrix(("a", "b"), np.array([[1, np.nan], [np.nan, 1]]), {("a", "b"): "why"})
        (found,) = coverage_by_overlap(matrix, ["a"])
        assert found.by is None
        assert not found.covered

    def test_bad_input(self) -> None:
        matrix = blocks(2, 2)
        with pytest.raises(InputError, match="no corruption 'fog'"):
            coverage_by_overlap(matrix, ["fog"])
        with pytest.raises(InputError, match="from 0 to 1"):
            coverage_by_overlap(matrix, ["c0.0"], threshold=2)
        with pytest.raises(InputError, match="every corruption"):
            coverage_by_overlap(matrix, matrix.names)
        with pytest.raises(InputError, match="at least two"):
            balance({"a": 1.0})
        table = AccuracyTable.of({"standard": {"clean": 0.9, "fog": 0.9}})
        with pytest.raises(InputError, match="no model 'all'"):
            coverage_by_training(table, "all")
        with pytest.raises(InputError, match="loses nothing under fog"):
            mean_corruption_errors(table, baseline="standard")

    def test_plain_and_relative_errors(self) -> None:
        """By hand: errors .2 → .6 against .4 → .8 are relative CE 1 and plain CE .75."""
        table = AccuracyTable.of({"base": {"clean": 0.6, "fog": 0.2}, "m": {"clean": 0.8, "fog": 0.4}})
        assert mean_corruption_errors(table, baseline="base")["m"] == pytest.approx(100)
        assert mean_corruption_errors(table, baseline="base", relative=False)["m"] == pytest.approx(75)


class TestCategories:
    def test_blocks_are_found(self) -> None:
        found, path = find_categories(blocks(4, 3, 5))
        assert list(found.members.values()) == list(made(4, 3, 5).members.values())
        assert [number for number, _ in path] == [2, 3]
        assert path[-1][1].same == pytest.approx(
            np.mean([_row_correlation(4), _row_correlation(3), _row_correlation(5)]), abs=0.1
        )

    def test_seeded_and_stopping(self) -> None:
        matrix = overlap_matrix(published_table("imagenet-c"))
        first, path = find_categories(matrix, restarts=10)
        assert find_categories(matrix, restarts=10)[0] == first
        assert path[-1][1].same is not None
        assert path[-1][1].same > 0.5
        assert all(check.same is None or check.same <= 0.5 for _, check in path[:-1])
        assert len(find_categories(matrix, count=6, restarts=10)[0].members) == 6

    def test_the_noises_are_one_category(self) -> None:
        """From Table 7: three categories, noises with JPEG, blurs with elastic and pixelate, and the rest."""
        found, _ = find_categories(overlap_matrix(published_table("imagenet-c")))
        assert len(found.members) == 3
        assert found.of("gaussian_noise") == found.of("shot_noise") == found.of("jpeg_compression")
        assert found.of("defocus_blur") == found.of("pixelate") != found.of("fog")

    def test_never_reached(self) -> None:
        scores = np.array([[1, 0.9, 0.0], [0.9, 1, 0.0], [0.0, 0.0, 1]])
        with pytest.raises(InputError, match="no number of categories from 2 to 2"):
            find_categories(OverlapMatrix(("a", "b", "c"), scores), stop_above=0.999)

    def test_bad_input(self) -> None:
        undefined = OverlapMatrix(
            ("a", "b", "c"), np.where(np.eye(3) == 1, 1, np.nan), dict.fromkeys(itertools.combinations("abc", 2), "x")
        )
        with pytest.raises(InputError, match="3 scores are undefined"):
            find_categories(undefined)
        with pytest.raises(InputError, match="expected 1 to 4"):
            find_categories(blocks(2, 2), count=5)
        with pytest.raises(InputError, match="to stop at"):
            find_categories(blocks(2, 2), stop_above=1)
        with pytest.raises(InputError, match="at least three"):
            find_categories(blocks(1, 1))
        for seed in (2**32, -1, 10**5000):
            with pytest.raises(InputError, match=r"seed .{1,60}; expected"):
                find_categories(blocks(2, 2), seed=seed)
        with pytest.raises(InputError, match="is empty"):
            Categories({"a": ()})
        with pytest.raises(InputError, match="fog given twice"):
            Categories({"a": ("fog",), "b": ("fog",)})

    def test_same_and_different_by_hand(self) -> None:
        vectors = np.array([[1.0, 2, 3], [2, 4, 6], [3, 2, 1]])
        found = same_and_different(vectors, ["c0.0", "c0.1", "c1.0"], made(2, 1))
        assert (found.same, found.different) == (pytest.approx(1), pytest.approx(-1))
        assert (found.same_pairs, found.different_pairs) == (1, 2)
        with pytest.raises(InputError, match=r"all values of c0\.0 are equal"):
            same_and_different(np.zeros((1, 3)), ["c0.0"], made(1))

    def test_the_check_over_models(self) -> None:
        """Models that lose alike on the first two corruptions and oppositely on the third."""
        losses = np.array([0.1, 0.2, 0.3, 0.15])
        values = np.column_stack([np.full(4, 0.9), 0.9 - losses, 0.9 - losses / 2, 0.5 + losses])
        table = AccuracyTable(("a", "b", "c", "d"), ("clean", "c0.0", "c0.1", "c1.0"), values)
        found = check_categories(table, made(2, 1))
        assert found.same == pytest.approx(1)
        assert found.different == pytest.approx(-1)

    def test_files(self, tmp_path: Path) -> None:
        write_categories(made(2, 3), tmp_path / "c.json")
        assert read_categories(tmp_path / "c.json") == made(2, 3)
        for text, said in (
            ("[1]", "expected JSON such as"),
            ("{", "not readable as JSON"),
            ('{"a": ["x"], "b": ["x"]}', "twice"),
        ):
            (tmp_path / "bad.json").write_text(text)
            with pytest.raises(InputError, match=said):
                read_categories(tmp_path / "bad.json")


def _row_correlation(size: int) -> float:
    return 0.9 if size > 2 else 0.8


class TestGeneration:
    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.integers(1, 4), st.integers(1, 3))
    def test_every_possibility_exactly_once(self, sizes: list[int], n: int, k: int) -> None:
        categories = made(*sizes)
        n = min(n, len(sizes))
        expected = {
            frozenset(itertools.chain(*choice))
            for chosen in itertools.combinations(categories.members.values(), n)
            for choice in itertools.product(*(itertools.combinations(found, k) for found in chosen))
        }
        assert count_benchmarks(categories, n=n, k=k) == len(expected)
        if expected:
            found = generate_benchmarks(categories, n=n, k=k, count=len(expected))
            assert {frozenset(benchmark) for benchmark in found} == expected
        with pytest.raises(InputError, match=f"only {len(expected):,} benchmarks"):
            generate_benchmarks(categories, n=n, k=k, count=len(expected) + 1)

    def test_uniform_over_the_possibilities(self) -> None:
        """Drawing categories first would take the one pair of the small category as often as all others together."""
        categories = made(2, 4)
        counts = Counter(generate_benchmarks(categories, n=1, k=2, count=1, seed=seed)[0] for seed in range(7000))
        assert len(counts) == 7
        # Each expected 1000 times, with a standard deviation of 29: five of them either way.
        assert all(abs(count - 1000) < 5 * math.sqrt(1000 * 6 / 7) for count in counts.values())

    def test_categories_first_prefers_small_categories(self) -> None:
        """Algorithm 1 by hand: of categories of 2 and 4, each is drawn half of the time, so its 1 and 6 pairs share."""
        categories = made(2, 4)
        drawn = [
            generate_benchmarks(categories, n=1, k=2, count=1, seed=s, draw="categories-first") for s in range(6000)
        ]
        counts = Counter(found[0] for found in drawn)
        assert len(counts) == 7
        for benchmark, count in counts.items():
            share = 1 / 2 if benchmark[0].startswith("c0") else 1 / 12
            assert abs(count - 6000 * share) < 5 * math.sqrt(6000 * share * (1 - share))

    def test_categories_first_gives_different_benchmarks_and_all_there_are(self) -> None:
        categories = made(2, 4, 1)
        found = generate_benchmarks(categories, n=2, k=1, count=14, draw="categories-first")
        assert sorted(found) == sorted(generate_benchmarks(categories, n=2, k=1, count=14))
        assert len(generate_benchmarks(categories, n=2, k=2, count=6, draw="categories-first")) == 6
        again = generate_benchmarks(categories, n=2, k=1, count=14, draw="categories-first")
        assert found == again
        with pytest.raises(InputError, match="there are only 6 benchmarks"):
            generate_benchmarks(categories, n=2, k=2, count=7, draw="categories-first")
        with pytest.raises(InputError, match="unknown draw 'paper'; expected uniform or categories-first"):
            generate_benchmarks(categories, n=2, k=2, count=1, draw="paper")

    def test_seeds_and_size(self) -> None:
        categories = made(10, 9, 8, 7, 6, 3)
        first = generate_benchmarks(categories, n=6, k=3, count=1000, seed=0)
        assert first == generate_benchmarks(categories, n=6, k=3, count=1000, seed=0)
        assert first != generate_benchmarks(categories, n=6, k=3, count=1000, seed=1)
        assert len(set(first)) == 1000
        assert all(representation_std(benchmark, categories) == 0 for benchmark in first)

    def test_numbers_beyond_machine_words(self) -> None:
        categories = made(*[40] * 10)
        assert count_benchmarks(categories, n=10, k=20) == math.comb(40, 20) ** 10
        assert len(set(generate_benchmarks(categories, n=10, k=20, count=5))) == 5

    def test_bad_input(self) -> None:
        with pytest.raises(InputError, match="n = 3 categories; expected 1 to 2"):
            generate_benchmarks(made(2, 2), n=3, k=1, count=1)
        with pytest.raises(InputError, match="k = 0"):
            generate_benchmarks(made(2, 2), n=1, k=0, count=1)
        with pytest.raises(InputError, match="0 benchmarks"):
            generate_benchmarks(made(2, 2), n=1, k=1, count=0)


class TestSubstitution:
    def test_the_three_conditions(self) -> None:
        categories = made(5, 4, 3)
        benchmark = ("c0.0", "c0.1", "c1.0", "c1.1")
        found = possible_substitutions(benchmark, categories)
        expected = []
        for removed, added in itertools.product(benchmark, categories.corruptions):
            after = [name for name in benchmark if name != removed] + [added]
            if (
                added not in benchmark
                and {categories.of(name) for name in after} == {categories.of(name) for name in benchmark}
                and representation_std(after, categories) > representation_std(benchmark, categories) + 1e-12
            ):
                expected.append((removed, added))
        assert sorted(found) == sorted(expected)
        assert found

    def test_the_paper_s_deviations(self) -> None:
        """Syn2Nat paper, Table 3: from n = 6, k = 2, one to five substitutions give exactly these, to one digit."""
        categories = made(8, 8, 8, 8, 8, 8)
        even = generate_benchmarks(categories, n=6, k=2, count=1000)
        groups = group_by_std([*even, *unbalanced(even, categories, times=5)], categories)
        assert [round(group.std, 1) for group in groups] == [0.0, 0.6, 0.8, 1.0, 1.2, 1.4, 1.5, 1.8, 2.2]
        for group in groups:
            assert len({frozenset(benchmark) for benchmark in group.benchmarks}) == len(group.benchmarks)
            assert {len(benchmark) for benchmark in group.benchmarks} == {12}

    def test_seeded_and_running_out(self) -> None:
        categories = made(3, 2)
        start = ("c0.0", "c0.1", "c1.0", "c1.1")
        [once] = unbalanced([start], categories, times=1, seed=4)
        assert [once] == unbalanced([start], categories, times=2, seed=4)
        assert Counter(categories.labels(once)) == {"k0": 3, "k1": 1}
        with pytest.raises(InputError, match="holds a corruption twice"):
            representation_std(["c0.0", "c0.0"], categories)
        with pytest.raises(InputError, match="is in no category"):
            representation_std(["fog"], categories)
        with pytest.raises(InputError, match="0 substitutions"):
            unbalanced([start], categories, times=0)


class TestLeastOverlapping:
    @pytest.mark.parametrize("seed", range(4))
    def test_against_all_benchmarks(self, seed: int) -> None:
        categories = made(4, 3, 5)
        count = len(categories.corruptions)
        upper = np.triu(np.random.default_rng(seed).random((count, count)), 1)
        matrix = OverlapMatrix(categories.corruptions, upper + upper.T + np.eye(count))
        every = generate_benchmarks(categories, n=3, k=3, count=count_benchmarks(categories, n=3, k=3))

        def overlap(benchmark: tuple[str, ...]) -> float:
            pairs = [(a, b) for a, b in itertools.combinations(benchmark, 2) if categories.of(a) == categories.of(b)]
            return float(np.mean([matrix.score(a, b) for a, b in pairs]))

        found = select_least_overlapping(matrix, categories)
        assert found.k == 3
        assert found.mean == pytest.approx(min(map(overlap, every)))
        assert overlap(found.members) == pytest.approx(found.mean)

    def test_large_categories_are_searched_too(self) -> None:
        """40 choose 10 is too many to list; planted members without overlap must be found."""
        categories = made(40)
        scores = np.full((40, 40), 0.5)
        planted = list(range(0, 40, 4))
        scores[np.ix_(planted, planted)] = 0.0
        np.fill_diagonal(scores, 1)
        found = select_least_overlapping(OverlapMatrix(categories.corruptions, scores), categories, k=10)
        assert found.members == tuple(categories.corruptions[i] for i in planted)
        assert found.proven
        assert found.mean == 0

    def test_bad_input(self) -> None:
        with pytest.raises(InputError, match="k1 has 1 corruptions"):
            select_least_overlapping(blocks(2, 1), made(2, 1), k=2)
        assert select_least_overlapping(blocks(2, 1), made(2, 1)).mean is None
        with pytest.raises(InputError, match="no corruption"):
            select_least_overlapping(blocks(2, 1), made(2, 2))
