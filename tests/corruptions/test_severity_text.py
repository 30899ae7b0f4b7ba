"""Two severities that differ, by however little, differ in every name, file and message; 3.0 reads 3."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import blemish
from blemish.benchmarks.condition import Condition, Step, parse_condition
from blemish.benchmarks.files import benchmark_toml, parse_benchmark
from blemish.core.errors import InputError
from blemish.corruptions.compose import chain, random_severity
from blemish.corruptions.severity import severity_text
from blemish.data.stored import open_stored
from blemish.export.recipe import make_recipe
from blemish.export.trees import corrupt_tree
from blemish.reports.examples import condition_label
from blemish.reports.reading import column_of
from blemish.studies.construction.benchmark_files import make_benchmark
from blemish.studies.overlap.plan import Plan, conditions
from blemish.studies.overlap.training import Schedule
from blemish.studies.streams.walks import WalkStep

NEAR = (1.0000001, 1.0000002)
TEXTS = ("1.0000001", "1.0000002")
FOG = blemish.catalog["fog"]


@given(st.floats(0, 5))
def test_text_and_back(severity: float) -> None:
    text = severity_text(severity)
    assert float(text) == severity
    assert "e" not in text


@pytest.mark.parametrize(("severity", "text"), [(3.0, "3"), (3, "3"), (2.5, "2.5"), (0.1 + 0.2, "0.30000000000000004")])
def test_short_where_it_can_be(severity: float, text: str) -> None:
    assert severity_text(severity) == text


def test_conditions() -> None:
    found = [Condition((Step("fog", severity, severity),)) for severity in NEAR]
    assert [str(condition) for condition in found] == [f"fog@{text}" for text in TEXTS]
    assert found[0].slug != found[1].slug
    assert [condition_label(condition)[-9:] for condition in found] == list(TEXTS)
    assert [column_of(condition) for condition in found] == list(TEXTS)
    assert str(parse_condition("fog@1.0000001-1.0000002")) == "fog@1.0000001-1.0000002"


def test_benchmark_files() -> None:
    benchmark = make_benchmark("mine", ["fog"], severities=NEAR)
    assert [str(condition) for condition in benchmark.conditions[1:]] == [f"fog@{text}" for text in TEXTS]
    assert parse_benchmark(benchmark_toml(benchmark), where="again") == benchmark
    ranged = 'name = "x"\n[[conditions]]\ncorruptions = ["fog"]\nseverity_range = [1.0000001, 1.0000002]'
    assert str(parse_benchmark(ranged, where="x").conditions[1]) == "fog@1.0000001-1.0000002"


@pytest.mark.parametrize("level", ["1" + 18 * "0", "1e400", "-1", "6", "nan"])
@pytest.mark.parametrize("key", ["severities = [{}]", "severity_range = [1, {}]"])
def test_severities_in_benchmark_files_are_checked(key: str, level: str) -> None:
    content = f'name = "x"\n[[conditions]]\ncorruptions = ["fog"]\n{key.format(level)}'
    with pytest.raises(InputError, match=r"x: (severity .*; expected a number in 0 … 5|not readable as TOML)"):
        parse_benchmark(content, where="x")


def test_corruptions_made_of_others() -> None:
    assert chain((FOG, NEAR[0])).name != chain((FOG, NEAR[1])).name
    assert random_severity(FOG, *NEAR).name == "fog@1.0000001-1.0000002"
    assert random_severity(FOG).name == "fog@1-5"
    assert repr(blemish.Corrupt("fog", NEAR[0])).startswith("Corrupt('fog', severity=1.0000001, seed=0")
    for severity in (10**400, True, float("nan"), 6):
        with pytest.raises(InputError, match="fog in a chain: severity"):
            chain((FOG, severity))
        with pytest.raises(InputError, match="severity"):
            random_severity(FOG, 1, severity)


def test_folders(tmp_path: Path) -> None:
    source = tmp_path / "pictures" / "one"
    source.mkdir(parents=True)
    Image.new("RGB", (16, 16), "teal").save(source / "a.png")
    outcome = corrupt_tree(source.parent, tmp_path / "out", make_recipe(["fog"], NEAR, file_format="png"))
    assert outcome.written == 2
    assert sorted(path.name for path in (tmp_path / "out" / "fog").iterdir()) == list(TEXTS)
    assert open_stored(tmp_path / "out").conditions() == [f"fog@{text}" for text in TEXTS]


def test_walks_and_plans() -> None:
    steps = [str(WalkStep("fog", severity, "snow", 0.0, 1, 0.5, 0)) for severity in NEAR]
    assert steps == [f"fog@{text}" for text in TEXTS]
    plan = Plan(("fog",), schedule=Schedule(severities=NEAR))
    assert [str(condition) for condition in conditions(plan)] == ["fog@1.0000001-1.0000002"]
