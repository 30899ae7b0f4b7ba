"""``blemish gate`` as a CI system meets it."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from blemish.core.statistics import Estimate
from blemish.metrics.gate import Gate, Verdict
from blemish.metrics.gate_rules import Status
from blemish.reports.gate_files import gate_junit, gate_table
from blemish.reports.tables import markdown
from command_line import invoke
from synthetic_runs import write_run

# 80 of 100 right, 52 of 100 right, and one condition without records.
OUTCOMES = {
    "clean": [True] * 90 + [False] * 10,
    "fog@1": [True] * 80 + [False] * 20,
    "snow@1": [True] * 52 + [False] * 48,
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    write_run(folder, "one", OUTCOMES)
    write_run(folder, "two", {**OUTCOMES, "fog@1": [True] * 40 + [False] * 60})
    write_run(folder, "seeded", OUTCOMES, protocol={"seed": 3})
    write_run(folder, "started", {**OUTCOMES, "snow@1": None})
    return folder


def cases(path: Path) -> dict[str, str]:
    """The requirements in a JUnit file, and the kind and type of what became of them."""
    root = ElementTree.parse(path).getroot()
    found = {}
    for case in root.iter("testcase"):
        bad = [item for item in case if item.tag in ("failure", "error")]
        found[case.attrib["name"]] = f"{bad[0].tag} {bad[0].attrib['type']}" if bad else "passed"
    return found


@pytest.mark.parametrize(
    ("run", "rule", "code", "word"),
    [
        ("one", "fog@1 accuracy > 0.5", 0, "passed"),
        ("one", "fog@1 accuracy > 0.95", 1, "failure failed"),
        ("one", "snow@1 accuracy > 0.5", 3, "failure undecided"),
        ("started", "snow@1 accuracy > 0.5", 1, "error not measured"),
    ],
)
def test_exit_codes_and_files(run: str, rule: str, code: int, word: str, results: Path, tmp_path: Path) -> None:
    xml, table = tmp_path / "gate.xml", tmp_path / "gate.md"
    arguments = ("gate", results / run, "--require", rule, "-o", xml, "-o", table)
    found, output, errors = invoke(*arguments)
    assert (found, errors) == (code, "")
    assert f"wrote {xml}" in output
    assert [*cases(xml).values()] == [word]
    suite = ElementTree.parse(xml).getroot()[0].attrib
    kinds = (word.startswith("failure"), word.startswith("error"))
    assert (suite["tests"], suite["failures"], suite["errors"]) == ("1", *(str(int(kind)) for kind in kinds))
    assert f"| {word.split(' ', 1)[-1]} |" in table.read_text(encoding="utf-8")
    assert invoke(*arguments)[0] == code  # files of its own are replaced
    table.write_text("mine", encoding="utf-8")
    assert invoke(*arguments)[0] == 2
    assert table.read_text(encoding="utf-8") == "mine"
    assert invoke(*arguments, "--overwrite")[0] == code


def test_json_and_point(results: Path, tmp_path: Path) -> None:
    rule = ("--require", "snow@1 accuracy > 0.5")
    code, output, errors = invoke("gate", results / "one", *rule, "--json", "-o", tmp_path / "gate.xml")
    found = json.loads(output)
    assert code == 3
    assert "wrote" in errors
    assert (found["status"], found["verdicts"][0]["status"]) == ("undecided", "undecided")
    assert found["verdicts"][0]["estimate"]["value"] == pytest.approx(52)
    assert found["verdicts"][0]["images"] > 100
    code, output, _ = invoke("gate", results / "one", *rule, "--point")
    assert code == 0
    assert "intervals were left out of account" in output


def test_against(results: Path) -> None:
    # The mean error is 34 % of one and 54 % of two: 20 points worse.
    code, output, _ = invoke("gate", results / "two", "--against", results / "one", "--max-drop", 1.5)
    assert code == 1
    assert "error rises by at most 1.5 points against one" in " ".join(output.split())
    assert invoke("gate", results / "one", "--against", results / "two", "--max-drop", 1.5)[0] == 0
    code, _, errors = invoke("gate", results / "seeded", "--against", results / "one", "--max-drop", 1.5)
    assert code == 2
    assert "protocol.seed is 0 and 3" in errors
    assert "--anyway" not in errors  # which a gate does not have


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing is required"),
        (("--require", "mcee < 60"), "no metric 'mcee'; did you mean mce"),
        (("--require", "fog@1 error < 0.5"), "0.5 may be 0.5 % or 50 %"),
        (("--require", "fog@7 error < 50"), "no 'fog@7'"),
        (("--max-drop", 1), "without --against"),
        (("--require", "error < 50", "--level", 95), "level 95; expected"),
    ],
)
def test_bad_input_writes_nothing(arguments: tuple[object, ...], message: str, results: Path, tmp_path: Path) -> None:
    code, output, errors = invoke("gate", results / "one", *arguments, "-o", tmp_path / "gate.xml")
    assert (code, output) == (2, "")
    assert message in errors
    assert not [*tmp_path.iterdir()]


def test_the_suffix_says_the_format(results: Path, tmp_path: Path) -> None:
    rule = ("--require", "snow@1 accuracy > 0.5")
    assert invoke("gate", results / "one", *rule, "-o", tmp_path / "gate.json")[0] == 3
    assert json.loads((tmp_path / "gate.json").read_bytes())["status"] == "undecided"
    code, _, errors = invoke("gate", results / "one", *rule, "-o", tmp_path / "gate.txt")
    assert code == 2
    assert "gate.txt: a file of an unknown kind; expected .xml, .md, .json" in errors


def test_a_place_that_cannot_be_written(results: Path, tmp_path: Path) -> None:
    folder = tmp_path / "gate.xml"
    folder.mkdir()
    code, output, errors = invoke("gate", results / "one", "--require", "error < 50", "-o", folder)
    assert (code, output) == (2, "")  # no verdict is told where the file that was asked for is missing
    assert f"cannot write {folder}" in errors


def test_several_runs_are_refused(results: Path) -> None:
    code, _, errors = invoke("gate", results, "--require", "error < 50")
    assert code == 2
    assert "expected the folder of one" in errors


HOSTILE = '</testcase><x a="1">&amp;]]>\x00\x1b[31m\udce9\uffff|`<script>\nnext'


def test_junit_has_only_what_strict_readers_know() -> None:
    """The attributes that junit-10.xsd of Jenkins' xUnit plugin allows; it refuses a file with any other."""
    allowed = {
        "testsuites": {"name", "time", "tests", "failures", "errors"},
        "testsuite": {"name", "time", "tests", "failures", "errors", "skipped", "timestamp", "hostname"},
        "testcase": {"name", "time", "classname", "group"},
        "failure": {"type", "message"},
        "error": {"type", "message"},
        "system-out": set[str](),
    }
    statuses = (Status.PASSED, Status.FAILED, Status.UNDECIDED, Status.UNKNOWN)
    verdicts = tuple(Verdict("error < 5 %", status, "why") for status in statuses)
    root = ElementTree.fromstring(gate_junit(Gate("net", "digits-c", None, verdicts, (), False, 0.95, 10)))
    assert {item.tag for item in root.iter()} == set(allowed)
    for item in root.iter():
        assert set(item.attrib) <= allowed[item.tag]


def test_hostile_names() -> None:
    verdict = Verdict(f"error < 5 % {HOSTILE}", Status.FAILED, HOSTILE, Estimate(1, 0, 2), 5.0, "%")
    found = Gate(HOSTILE, HOSTILE, HOSTILE, (verdict, verdict), (HOSTILE,), False, 0.95, 10)
    root = ElementTree.fromstring(gate_junit(found))
    assert {item.tag for item in root.iter()} == {"testsuites", "testsuite", "testcase", "failure", "system-out"}
    case = next(root.iter("testcase"))
    # What XML can hold is read back as it is, the rest as escapes.
    assert case.attrib["classname"].startswith('</testcase><x a="1">&amp;]]>\\u0000\\u001b[31m\\udce9\\uffff|`<script>')
    assert "\n" not in case.attrib["name"]
    lines = markdown([gate_table(found)]).splitlines()
    assert not any(line.startswith(("next", "<")) for line in lines)
    assert "<script>" not in "\n".join(lines)
    assert sum(line.startswith("| error") for line in lines) == 2
