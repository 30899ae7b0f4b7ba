"""Benchmark files, and the published benchmarks as they are shipped."""

from __future__ import annotations

from pathlib import Path

import pytest

import blemish
from blemish.benchmarks.benchmark import METRICS, Benchmark, Protocol, only
from blemish.benchmarks.condition import parse_condition
from blemish.benchmarks.files import benchmark_toml, built_in, load_benchmark, parse_benchmark
from blemish.core.errors import InputError
from blemish.corruptions.cbar import CBAR
from blemish.corruptions.med.published import data_sets
from blemish.corruptions.severity import DATA_SETS
from blemish.metrics.baselines import published_baseline

PUBLISHED = {
    # name: (conditions besides clean, corruptions or sequences, image preset); counts from the papers.
    "imagenet-c": (75, 15, "imagenet"),
    "imagenet-c-extra": (20, 4, "imagenet"),
    "cifar10-c": (75, 15, "cifar"),
    "tiny-imagenet-c": (75, 15, "imagenet64"),
    "cifar100-c": (75, 15, "cifar"),
    "imagenet64-c": (75, 15, "imagenet64"),
    "imagenet-c-299": (75, 15, "inception"),
    "imagenet-p": (10, 10, "imagenet"),
    "imagenet-p-299": (10, 10, "inception"),
    "tiny-imagenet-p": (10, 10, "imagenet64"),
    "cifar10-p": (10, 10, "cifar"),
    "imagenet-noc": (8, 8, "imagenet"),
    "noc-candidates": (23, 23, "imagenet"),
    "syn2nat-candidates": (40, 40, "imagenet"),
    "imagenet-syn2nat": (18, 18, "imagenet"),
    "imagenet-c-bar": (50, 10, "imagenet"),
    "cifar10-c-bar": (50, 10, "cifar"),
    "opticsbench": (20, 4, "imagenet"),
    "c-bar-candidates": (150, 30, "imagenet"),
    "blemish-core": (15, 7, "imagenet"),
    "blemish-core-32": (7, 7, "cifar"),
}

# The eighteen that the authors' release evaluates, in its order, without the prefix; three for each of six categories.
SYN2NAT = """
solarize random_sun_flare random_shadow affine perspective cutout sharpen random_rain emboss
random_contrast random_brightness random_gamma iso_noise downscale posterize color_jitter channel_dropout to_sepia
"""

MINE = """
name = "mine"
metric = "robustness"

[protocol]
seed = 7
crop = 32

[[conditions]]
corruptions = ["fog", "snow"]
severities = [1, 2.5]

[[conditions]]
corruptions = ["noc:border"]
severity_range = [1, 5]

[[conditions]]
chains = ["fog@2+jpeg_compression@1"]

[[conditions]]
sequences = ["p:tilt"]
difficulties = [1, 2]

[[conditions]]
natural = ["imagenet-r"]
"""


@pytest.mark.parametrize("name", built_in())
def test_built_in_benchmarks_survive_a_round_trip(name: str) -> None:
    pytest.importorskip("tomli_w", reason="tomli-w is not installed, which writes benchmark files")
    benchmark = load_benchmark(name)
    assert benchmark.name == name
    assert benchmark.title
    assert benchmark.metric in METRICS
    assert parse_benchmark(benchmark_toml(benchmark), where=name) == benchmark


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_benchmarks_have_their_sizes(name: str) -> None:
    conditions, groups, preset = PUBLISHED[name]
    benchmark = load_benchmark(name)
    assert len(benchmark.conditions) == conditions + 1
    assert len(benchmark.groups) == groups
    assert benchmark.protocol.preset == preset


def test_imagenet_syn2nat_is_the_released_list() -> None:
    benchmark = load_benchmark("imagenet-syn2nat")
    assert benchmark.groups == tuple(f"syn2nat:{name}" for name in SYN2NAT.split())
    assert all(condition.severity == 5 for condition in benchmark.conditions[1:])


@pytest.mark.parametrize("name", DATA_SETS)
def test_medical_benchmarks_are_the_published_ones(name: str) -> None:
    """All corruptions of a data set at five severities, with its own settings and AlexNet's numbers for each."""
    benchmark = load_benchmark(f"medmnist-c/{name}")
    corruptions = data_sets()[name]["corruptions"]
    assert benchmark.groups == tuple(f"med:{corruption}" for corruption in corruptions)
    assert len(benchmark.conditions) == 5 * len(corruptions) + 1
    assert (benchmark.protocol.preset, benchmark.protocol.storage, benchmark.metric) == (name, "raw", "mbe")
    baseline = published_baseline(benchmark.baseline or "")
    assert set(baseline.means) == set(benchmark.groups)
    assert (baseline.preset, baseline.classes) == (name, data_sets()[name]["classes"])


def test_a_misspelt_data_set_is_hinted_at() -> None:
    with pytest.raises(InputError, match="did you mean medmnist-c/pathmnist"):
        load_benchmark("medmnist-c/pathmnst")


def test_catalogues_are_complete() -> None:
    named = {*load_benchmark("imagenet-c").groups, *load_benchmark("imagenet-c-extra").groups}
    assert named == {*blemish.catalog.plain()}
    assert {*load_benchmark("noc-candidates").groups} == {name for name in blemish.catalog if name.startswith("noc:")}
    candidates = {name for name in blemish.catalog if name.startswith("syn2nat:")}
    assert {*load_benchmark("syn2nat-candidates").groups} == candidates
    both = {*load_benchmark("imagenet-c-bar").groups, *load_benchmark("cifar10-c-bar").groups}
    assert both == {corruption.name for corruption in CBAR}
    thirty = {name for name in blemish.catalog if name.startswith("cbar:")}
    assert {*load_benchmark("c-bar-candidates").groups} == thirty
    assert {*load_benchmark("imagenet-p").groups} == {n for n, s in blemish.sequences.items() if not s.extra}


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    pytest.importorskip("tomli_w", reason="tomli-w is not installed, which writes benchmark files")
    path = tmp_path / "mine.toml"
    path.write_text(MINE, encoding="utf-8")
    benchmark = load_benchmark(path)
    assert [str(condition) for condition in benchmark.conditions] == [
        "clean",
        *("fog@1", "fog@2.5", "snow@1", "snow@2.5"),
        "noc:border@1-5",
        "fog@2+jpeg_compression@1",
        *("p:tilt@1", "p:tilt@2"),
        *("clean:imagenet-r", "natural:imagenet-r"),
    ]
    assert benchmark.protocol == Protocol(seed=7, crop=32)
    assert parse_benchmark(benchmark_toml(benchmark), where="again") == benchmark


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('name = "mine"', "", "no name"),
        ('metric = "robustness"', 'metric = "mcee"', "did you mean mce"),
        ('metric = "robustness"', 'metrik = "mce"', "unknown key 'metrik'"),
        ("seed = 7", 'seed = "7"', "expected int"),
        ("seed = 7", 'storage = "png"', "expected raw or jpeg85"),
        ("crop = 32", "crop = 4", "at least 8"),
        ("crop = 32", 'preset = "mnist"', "unknown preset 'mnist'"),
        ('["fog", "snow"]', '["fog", "snwo"]', "did you mean snow"),
        ("[1, 2.5]", "[1, 7]", "severity 7"),
        ("[1, 2.5]", "[]", "expected a list"),
        ("[1, 2.5]", "[1, 1]", "given twice"),
        ("severities", "severitys", "unknown key 'severitys'"),
        ("[1, 5]", "[1]", "low, high"),
        ("[1, 5]", "[5, 1]", "low ≤ high"),
        ("chains", "corruptions", "severities = None"),
        ('name = "mine"', "name = ", "not readable as TOML"),
    ],
)
def test_what_is_refused(old: str, new: str, reason: str) -> None:
    assert old in MINE
    with pytest.raises(InputError, match=reason) as caught:
        parse_benchmark(MINE.replace(old, new, 1), where="mine.toml")
    assert "mine.toml" in str(caught.value)


def test_unknown_names_are_answered_with_near_ones(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean imagenet-c"):
        load_benchmark("imagnet-c")
    with pytest.raises(InputError, match="no such benchmark file"):
        load_benchmark(tmp_path / "none.toml")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not a text file"):
        load_benchmark(binary)


def test_only_takes_names_and_patterns() -> None:
    benchmark = load_benchmark("imagenet-c")
    part = only(benchmark, ["fog@3", "clean"])
    assert [str(c) for c in part.conditions] == ["clean", "fog@3"]
    assert part.name == "imagenet-c (1 of 75 conditions)"
    assert part.part_of == benchmark
    assert only(benchmark, ["*"]) == benchmark
    assert len(only(benchmark, ["*_noise"]).conditions) == 16
    with pytest.raises(InputError, match="did you mean fog"):
        only(benchmark, ["fogg"])


def test_a_benchmark_needs_conditions_besides_clean() -> None:
    with pytest.raises(InputError, match="no conditions"):
        Benchmark("empty", "", "error", (parse_condition("clean"),))
