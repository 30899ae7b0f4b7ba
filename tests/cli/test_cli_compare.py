"""``blemish compare`` as a user meets it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from command_line import invoke
from synthetic_runs import write_run

ONE = {"clean": [True] * 10, "fog@1": [True] * 8 + [False] * 2, "snow@1": [True] * 5 + [False] * 5}
TWO = {"clean": [True] * 10, "fog@1": [True] * 3 + [False] * 7, "snow@1": [True] * 5 + [False] * 5}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    write_run(folder, "one", ONE, images=10)
    model = {"training": {"corruptions": ["fog"], "augmentations": []}}
    write_run(folder, "two", TWO, images=10, model=model)
    write_run(folder, "seeded", TWO, images=10, protocol={"seed": 3})
    return folder


def row(text: str, start: str) -> list[str]:
    """The line of a corruption in the table of errors; the last table has one of error consistency."""
    line, _ = [line for line in text.splitlines() if line.strip().startswith(start)]
    return line.split()


def test_text(results: Path) -> None:
    code, output, errors = invoke("compare", results / "one", results / "two", "--replicates", 50)
    assert code == 0
    assert not errors
    # Errors of 2/10 and 7/10; the model was trained on fog, so the number is marked.
    assert row(output, "fog")[:4] == ["fog", "20.0", "70.0†", "+50.0†"]
    assert row(output, "snow")[:4] == ["snow", "50.0", "50.0", "0.0"]
    assert row(output, "snow")[-1] == "1.000"
    assert "† The model was trained" in output


def test_machine_formats(results: Path) -> None:
    _, output, _ = invoke("compare", results / "one", results / "two", "--json", "--replicates", 50)
    found = json.loads(output)
    assert (found["first"], found["second"]) == ("one", "two")
    fog = next(r for r in found["rows"] if (r["name"], r["scope"], r["of"]) == ("error", "condition", "fog@1"))
    # Five images that the first alone gets right: McNemar's exact p is 2 / 2⁵.
    assert fog["p_value"] == pytest.approx(0.0625)
    assert "trained_on_note" in found
    _, text, _ = invoke("compare", results / "one", results / "two", "--csv", "--replicates", 50)
    lines = text.splitlines()
    assert lines[-1].startswith("# † The model")
    rows = list(csv.DictReader(io.StringIO("\n".join(lines[:-1]))))
    assert float(next(r for r in rows if r["of"] == "fog@1" and r["metric"] == "error")["two"]) == pytest.approx(70)


def test_same_name_twice(results: Path) -> None:
    _, text, _ = invoke("compare", results / "one", results / "one", "--csv", "--replicates", 5)
    assert "one,one (second)" in text.splitlines()[0]


def test_protocols_that_differ_are_refused(results: Path) -> None:
    code, output, errors = invoke("compare", results / "one", results / "seeded")
    assert code == 2
    assert not output
    assert "protocol.seed is 0 and 3" in errors
    assert "--anyway" in errors


def test_anyway(results: Path) -> None:
    code, output, errors = invoke("compare", results / "one", results / "seeded", "--anyway", "--json")
    assert code == 0
    assert errors.strip() == "differs: protocol.seed is 0 and 3"
    assert json.loads(output)["protocol_differences"] == ["protocol.seed is 0 and 3"]


def test_level(results: Path) -> None:
    assert (
        "level 95; expected a number between 0 and 1"
        in invoke("compare", results / "one", results / "two", "--level", 95)[2]
    )


def test_folders_of_one_run_each(results: Path) -> None:
    code, _, errors = invoke("compare", results, results / "one")
    assert code == 2
    assert "holds 3 runs (one, seeded, two); expected the folder of one" in errors
