"""The smallest set that covers the most, against brute force; how stable choices are; both on the command line."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from blemish.benchmarks.files import load_benchmark
from blemish.core.errors import InputError
from blemish.studies.construction.commands.build import build_app
from blemish.studies.construction.core import mutual_coverage, select_core
from blemish.studies.construction.coverage import balance_by
from blemish.studies.construction.graphs import Graph
from blemish.studies.construction.matrices import OverlapMatrix
from blemish.studies.construction.most_covering import most_covering
from blemish.studies.construction.overlap import overlap_matrix
from blemish.studies.construction.published import BASELINE, published_table
from blemish.studies.construction.selection import select_non_overlapping
from blemish.studies.construction.stability import choice_stability, resampled_matrices


def brute_force(matrix: OverlapMatrix, threshold: float, covering: float) -> tuple[int, int, set[tuple[str, ...]]]:
    """Over all subsets: the most that is covered, the least size that does so, and all subsets of that size."""
    best: tuple[int, int] = (0, 0)
    found: set[tuple[str, ...]] = set()
    indices = range(len(matrix.names))
    for size in range(1, len(matrix.names) + 1):
        for subset in itertools.combinations(indices, size):
            if not all(matrix.scores[i, j] <= threshold for i, j in itertools.combinations(subset, 2)):
                continue
            if any(np.isnan(matrix.scores[i, i]) for i in subset):
                continue
            covered = sum(any(i == j or matrix.scores[i, j] > covering for j in subset) for i in indices)
            names = tuple(matrix.names[i] for i in subset)
            if (covered, -size) > best:
                best, found = (covered, -size), {names}
            elif (covered, -size) == best:
                found.add(names)
    return best[0], -best[1], found


@st.composite
def matrices(draw: st.DrawFn) -> OverlapMatrix:
    count = draw(st.integers(1, 9))
    pairs = list(itertools.combinations(range(count), 2))
    values = draw(st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.4, 0.8]), min_size=len(pairs), max_size=len(pairs)))
    lost = draw(st.sets(st.integers(0, count - 1), max_size=max(0, count - 1)))
    scores = np.eye(count)
    for (i, j), value in zip(pairs, values, strict=True):
        scores[i, j] = scores[j, i] = value
    names = tuple(f"c{i}" for i in range(count))
    reasons = {}
    for i in lost:  # training on it did not help against it
        scores[i, :] = scores[:, i] = np.nan
        reasons |= {(names[i], other): "no gain" for other in names}
    return OverlapMatrix(names, scores, {(min(a, b), max(a, b)): reason for (a, b), reason in reasons.items()})


@settings(max_examples=200, deadline=None)
@given(matrices(), st.sampled_from([0.0, 0.1, 0.2]), st.sampled_from([0.2, 0.3, 0.5]))
def test_against_brute_force(matrix: OverlapMatrix, threshold: float, covering: float) -> None:
    covered, size, sets = brute_force(matrix, threshold, covering)
    found = select_core(matrix, threshold=threshold, covering=covering)
    assert (found.coverage, len(found.members), found.most) == (covered, size, covered)
    assert found.proven
    assert found.count == len(sets)
    assert found.members in sets
    means = {
        names: np.mean([matrix.score(*pair) for pair in itertools.combinations(names, 2)] or [0]) for names in sets
    }
    assert found.mean == pytest.approx(min(means.values()))
    assert {*found.members, *found.covered, *found.uncovered} == set(matrix.names)
    for name, by in found.covered.items():
        assert matrix.score(name, by) > covering


@settings(max_examples=40, deadline=None)
@given(matrices(), st.integers(1, 4))
def test_with_too_few_steps_the_bound_holds(matrix: OverlapMatrix, steps: int) -> None:
    covered, size, _ = brute_force(matrix, 0.1, 0.3)
    found = select_core(matrix, steps=steps)
    assert found.coverage <= covered <= found.most
    if found.proven:
        assert (found.coverage, len(found.members)) == (covered, size)


def test_a_search_that_is_stopped_says_so() -> None:
    draw = np.random.default_rng(0)
    upper = np.triu(draw.random((60, 60)), 1)
    matrix = OverlapMatrix(tuple(f"c{i}" for i in range(60)), upper + upper.T + np.eye(60))
    found = select_core(matrix, threshold=0.5, covering=0.9, steps=20)
    assert not found.proven
    assert found.most > found.coverage
    assert f"more is not ruled out (none covers more than {found.most}): allow more steps" in found.explain()
    assert "not all sets that are as good were compared" in found.explain()


def test_ties_are_broken_by_balance_then_mean_then_order() -> None:
    """Four corruptions, two twins of each: any one of each pair will do."""
    names = ("a", "b", "c", "d")
    scores = np.eye(4)
    scores[0, 1] = scores[1, 0] = scores[2, 3] = scores[3, 2] = 0.9
    scores[0, 2] = scores[2, 0] = 0.05
    matrix = OverlapMatrix(names, scores)
    plain = select_core(matrix)
    assert (plain.count, plain.members, plain.covered) == (4, ("a", "d"), {"b": "a", "c": "d"})
    assert "of 4 that are as good, this one has the lowest mean score" in plain.explain()
    weighed = select_core(matrix, balance=lambda members: float("a" in members) + float("d" in members))
    assert (weighed.members, weighed.balance) == (("b", "c"), 0.0)
    few = select_core(matrix, limit=2)
    assert few.count is None
    assert few.proven


def test_the_published_tables() -> None:
    """ImageNet-C's fifteen from the NOC paper's Table 7: exhaustive search over all 2¹⁵ subsets gives the same."""
    table = published_table("imagenet-c")
    matrix = overlap_matrix(table)
    found = select_core(matrix, balance=balance_by(table, baseline=BASELINE))
    covered, size, sets = brute_force(matrix, 0.1, 0.3)
    assert (found.coverage, len(found.members), found.count) == (covered, size, len(sets))
    assert found.members in sets
    benchmarks = {"core": found.members, "all": matrix.names, "noises": ["gaussian_noise", "shot_noise", "elsewhere"]}
    shares = mutual_coverage(matrix, benchmarks)
    assert shares["core", "all"] == (covered, 15)
    assert shares["all", "core"] == (size, size)
    assert shares["noises", "noises"] == (2, 2)  # what the matrix does not hold does not count
    with pytest.raises(InputError, match="no corruption of strange is in the matrix"):
        mutual_coverage(matrix, {"strange": ["elsewhere"]})


def test_balance_of_a_set_by_hand() -> None:
    """mCE of each model over both corruptions, relative to alexnet: the deviation of two numbers is half their gap."""
    table = published_table("imagenet-c")
    base, fog, snow = (
        {c: table.accuracy(model, "clean") - table.accuracy(model, c) for c in ("fog", "snow")}
        for model in (BASELINE, "fog", "snow")
    )
    means = [50 * (losses["fog"] / base["fog"] + losses["snow"] / base["snow"]) for losses in (fog, snow)]
    weigh = balance_by(table, baseline=BASELINE)
    assert weigh(["fog", "snow"]) == pytest.approx(abs(means[0] - means[1]) / 2)
    assert weigh(["fog"]) == 0.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"threshold": 1.5}, "an overlapping threshold of 1.5"),
        ({"covering": 1.0}, "a covering score of 1; expected a number from 0 to below 1"),
        ({"limit": 0}, "a limit of 0"),
    ],
)
def test_bad_settings_are_explained(changes: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        select_core(OverlapMatrix(("a",), np.eye(1)), **changes)  # type: ignore[arg-type]


def test_nothing_defined_is_explained() -> None:
    with pytest.raises(InputError, match="no corruption has a defined score"):
        select_core(OverlapMatrix(("a",), np.full((1, 1), np.nan), {("a", "a"): "no gain"}))


def test_a_single_vertex_that_covers_more_than_two() -> None:
    star = Graph([0, 0b1100, 0b1010, 0b0110])  # 0 stands alone, 1 to 3 can stand together
    found = most_covering(star, [0b1111, 0b0010, 0b0100, 0b1000], 0b1111, steps=100)
    assert (found.chosen, found.covered, found.proven) == (0b0001, 4, True)


NAMES = ("fog", "snow", "frost", "contrast", "brightness", "pixelate")


def correctness(seed: int, images: int = 1500) -> np.ndarray:
    """Three pairs of twins: training on one helps against the other by two thirds, up to chance."""
    rng = np.random.default_rng(seed)
    right = np.full((7, 7), 0.5)
    right[:, 0] = 0.9
    for i, j in itertools.product(range(6), repeat=2):
        right[i + 1, j + 1] += 0.3 if i == j else 0.2 if i // 2 == j // 2 else 0.0
    return rng.random((7, 7, images)) < right[..., None]


def save(path: Path, seed: int) -> Path:
    np.savez(path, correct=correctness(seed), models=["standard", *NAMES], settings=["clean", *NAMES])
    return path


def test_stability_of_a_choice() -> None:
    models, setting = ["standard", *NAMES], ["clean", *NAMES]
    drawn = list(resampled_matrices(correctness(0), models, setting, resamples=12))
    again = list(resampled_matrices(correctness(0), models, setting, resamples=12))
    assert len(drawn) == 12
    np.testing.assert_array_equal(drawn[3].scores, again[3].scores)
    found = choice_stability(drawn[0], drawn, lambda m: select_non_overlapping(m, threshold=0.2).members)
    assert found.choices[0] == found.reference
    assert found.same >= 1 / 12
    assert found.sizes == {3: 12}  # one of each pair, whichever
    assert found.replaced == (1.0,) * 12
    shares = found.shares()
    assert sum(shares.values()) == pytest.approx(3)
    for first in range(0, 6, 2):
        assert shares[NAMES[first]] + shares[NAMES[first + 1]] == pytest.approx(1)


def test_choices_that_cannot_be_made_are_empty() -> None:
    apart, close = (OverlapMatrix(("a", "b"), np.array([[1, score], [score, 1]])) for score in (0.0, 0.9))
    found = choice_stability(apart, [apart, close], lambda m: select_non_overlapping(m, threshold=0.1).members)
    assert found.choices == (("a", "b"), ())
    assert (found.same, found.likeness, found.replaced) == (0.5, 0.5, (1.0, 0.0))
    with pytest.raises(InputError, match="expected at least one"):
        choice_stability(apart, [], lambda m: m.names)
    with pytest.raises(InputError, match="different corruptions"):
        choice_stability(apart, [OverlapMatrix(("c",), np.eye(1))], lambda m: m.names)


def invoke(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(build_app, [str(argument) for argument in arguments], env={"COLUMNS": "160"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


def test_the_command_writes_a_benchmark(tmp_path: Path) -> None:
    pytest.importorskip("tomli_w", reason="tomli-w is not installed, which writes benchmark files")
    assert invoke("table", "imagenet-c", "-o", tmp_path / "a.csv")[0] == 0
    assert invoke("overlap-scores", tmp_path / "a.csv", "-o", tmp_path / "o.csv")[0] == 0
    code, text = invoke(
        *("core", tmp_path / "o.csv", "-o", tmp_path / "core.toml", "--threshold", 0.2, "--baseline", "alexnet"),
        *("--accuracies", tmp_path / "a.csv", "--covered", tmp_path / "c.csv", "--figure", tmp_path / "core.png"),
    )
    assert code == 0
    assert "cover 15 of 15: no such set covers more, and no smaller one as many" in text
    assert "this one has the best balance" in text
    members = list(load_benchmark(tmp_path / "core.toml").groups)
    lines = [line.split(",") for line in (tmp_path / "c.csv").read_text().splitlines()]
    assert lines[0] == ["corruption", "covered_by", "score"]
    assert [line[0] for line in lines if line[0] == line[1]] == members
    assert len(lines) == 16
    assert (tmp_path / "core.png").stat().st_size > 10_000
    code, text = invoke("core", tmp_path / "o.csv", "-o", tmp_path / "one.toml")
    assert code == 0
    assert "not covered: " in text


def test_the_command_says_how_stable_choices_are(tmp_path: Path) -> None:
    files = [save(tmp_path / f"seed{seed}.npz", seed) for seed in (0, 1)]
    for flag in ((), ("--core",)):
        out = tmp_path / f"stability{len(flag)}.csv"
        code, text = invoke("stability", *files, "-o", out, "--threshold", 0.2, "--replicates", 8, *flag)
        assert code == 0
        assert "chosen from all: " in text
        rows = [line.split(",") for line in out.read_text().splitlines()]
        assert rows[0] == ["corruption", "chosen", "seed0_resampled", "seed1_resampled", "seeds"]
        assert [row[0] for row in rows[1:]] == list(NAMES)
        assert sum(row[1] == "yes" for row in rows) == 3
        assert sum(float(row[2]) for row in rows[1:]) == pytest.approx(3)
    np.savez(
        tmp_path / "other.npz", correct=correctness(2)[:6], models=["standard", *NAMES[:5]], settings=["clean"] * 7
    )
    code, text = invoke("stability", files[0], tmp_path / "other.npz", "-o", tmp_path / "no.csv")
    assert code == 2
    assert "other models or settings" in text
