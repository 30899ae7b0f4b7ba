"""``blemish audit`` as people and CI systems meet it, and the results of runs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import blemish
from blemish.studies.audit.findings import CHECKS
from command_line import invoke
from synthetic_runs import severities, write_run

SMALL = ("-n", 48, "-m", "demo:plain", "-d", "demo:digits")


def checks_of(found: blemish.Run) -> set[str]:
    """The problems in a run, by check."""
    return {finding.check for finding in blemish.audit_run(found).problems}


class TestCommand:
    def test_nothing_found(self) -> None:
        code, output, _ = invoke("audit", *SMALL)
        assert code == 0
        assert "nothing found" in output
        assert "demo-plain on digits-test: 48 images" in output

    def test_a_problem_has_a_code_of_its_own_and_json(self) -> None:
        code, output, _ = invoke("audit", *SMALL, "--difference", 0.1, "--json")
        (entry,) = json.loads(output)["audits"]
        (finding,) = entry["findings"]
        assert code == 4
        assert entry["problems"] == 1
        assert (finding["check"], finding["level"], finding["sure"]) == ("precision", "problem", "certain")
        assert finding["numbers"]["asked"] == 0.1
        assert [check["check"] for check in entry["checks"]] == list(CHECKS)
        assert {check["state"] for check in entry["checks"]} == {"passed", "found", "not checked"}

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ((), "no --model and --data"),
            (("-m", "demo:plain"), "no --data"),
            (("-d", "demo:digits"), "no --model"),
            (("--mean", "0.5"), "--mean without --model"),
            (("-m", "demo:plain", "--mapping", "imagenet"), "--mapping without --data"),
            (("nowhere",), "nowhere: no such folder"),
            (("nowhere", "-m", "demo:plain"), "--model; expected the folder of a run, or a model"),
            ((*SMALL, "--accuracy", 0), "accuracy 0; expected percent"),
            ((*SMALL, "--difference", -1), "difference -1; expected points"),
            ((*SMALL, "-b", "imagenet-d"), "imagenet-d"),
        ],
    )
    def test_bad_input(self, arguments: tuple[object, ...], words: str) -> None:
        code, output, errors = invoke("audit", *arguments)
        assert (code, output) == (2, "")
        assert words in " ".join(errors.split())

    def test_folders_of_several_runs(self, tmp_path: Path) -> None:
        write_run(tmp_path, "one", severities(), images=200)
        write_run(tmp_path, "two", severities(clean=0.3, worst=0.8), images=200)
        code, output, _ = invoke("audit", tmp_path)
        assert code == 4
        first, second = output.split("two on synthetic")
        assert "nothing found" in first
        assert "fog: errors fall where severity rises" in second


class TestRuns:
    def test_a_good_run_is_silent(self, tmp_path: Path) -> None:
        found = blemish.audit_run(write_run(tmp_path, "good", severities(), images=300), difference=20, accuracy=80)
        assert not found.findings
        assert {check.name for check in found.checks} == set(CHECKS)

    def test_one_corruption_at_a_wrong_severity(self, tmp_path: Path) -> None:
        rates = severities() | {"fog@3": 0.8}
        run = write_run(tmp_path, "odd", rates, images=400, protocol={"preset": "imagenet"})
        assert checks_of(run) == {"severity-curves"}

    def test_labels_classes_and_accuracy(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "few", severities(), images=300, model={"outputs": 12})
        assert checks_of(run) == {"classes-missing"}
        assert [item.check for item in blemish.audit_run(run, accuracy=95).problems] == [
            "clean-accuracy",
            "classes-missing",
        ]

    def test_another_protocol_than_the_published_is_a_note(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "raw", severities(), images=300, benchmark={"name": "imagenet-c"})
        (finding,) = blemish.audit_run(run).findings
        assert (finding.check, finding.level) == ("jpeg", "note")
        assert "storage raw instead of jpeg85" in finding.seen

    def test_a_table_for_other_sizes(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "small", severities(), images=300, protocol={"preset": "imagenet", "crop": 32})
        assert checks_of(run) == {"severity-table"}

    def test_images_that_are_there_twice(self, tmp_path: Path) -> None:
        """Equal images get equal confidences wherever nothing is drawn."""
        source = blemish.open_source("demo:digits").take(np.arange(60))
        rows = np.concatenate([np.arange(60), np.arange(5)])
        pictures = np.stack([np.asarray(source.read(int(row))) for row in rows])
        data = (pictures, source.labels[rows])
        run = blemish.evaluate("demo:plain", data, ["contrast@3", "pixelate@3"], out=tmp_path)
        (finding,) = blemish.audit_run(run).problems
        assert finding.check == "duplicates"
        assert finding.numbers["exact"] == 5


def test_from_python_with_a_benchmark_and_notes() -> None:
    """Pictures of 32 pixels, enlarged to 40 only to be cut to 32 again."""
    protocol = blemish.Protocol(resize=40, crop=32)
    source = blemish.open_source("demo:digits").take(np.arange(64))
    found = blemish.audit("demo:plain", source, ["contrast"], protocol=protocol, images=64)
    assert "enlarged" in next(item for item in found.findings if item.check == "resizing").title
    states = {check.name: check.state for check in found.checks}
    assert states["severity-curves"] == states["severity-table"] == "passed"
    with pytest.raises(blemish.InputError, match="0 images"):
        blemish.audit("demo:plain", source, images=0)


@pytest.mark.usefixtures("no_photographs")
def test_what_cannot_be_made_is_left_out() -> None:
    source = blemish.open_source("demo:digits").take(np.arange(48))
    found = {check.name: check for check in blemish.audit("demo:plain", source, ["frost", "contrast"]).checks}
    assert found["severity-curves"].said == "1 corruptions on 48 images"
