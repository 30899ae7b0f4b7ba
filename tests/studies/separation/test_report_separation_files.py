"""Damaged files on class separation and MSCR: refused by name, with what was found and what was expected."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from blemish.core.errors import InputError
from blemish.evaluation.runs import Run
from blemish.reports.html import report_page
from blemish.studies.separation.section import separation_sections
from separation_records import MODEL, MSCR, SEPARATION, changed, write
from synthetic_runs import write_run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return write_run(tmp_path / "results", "m", {"clean": 0.8, "fog@1": 0.5}, images=10)


def page(run: Run) -> str:
    return report_page([run], replicates=2, extra=[separation_sections([run])])


class TestDamaged:
    @pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\xff", b"[" * 100_000, b"9" * 5000])
    @pytest.mark.parametrize("name", ["separation.json", "mscr.json"])
    def test_no_json(self, run: Run, name: str, content: bytes) -> None:
        (run.folder / name).write_bytes(content)
        with pytest.raises(InputError, match=f"{re.escape(str(run.folder / name))}: not readable as JSON"):
            page(run)

    def test_folder_of_that_name(self, run: Run) -> None:
        (run.folder / "mscr.json").mkdir()
        with pytest.raises(InputError, match=r"mscr\.json: is a folder"):
            page(run)

    @pytest.mark.parametrize("record", [[], 3, None, {}, {"epsilon": 0.1}])
    def test_another_kind_of_file(self, run: Run, record: Any) -> None:
        path = write(run.folder, "mscr.json", record)
        with pytest.raises(InputError, match=re.escape(str(path))):
            page(run)

    @pytest.mark.parametrize(
        ("way", "new", "message"),
        [
            ("norm", "l5", "norm is 'l5'; expected one of l1, l2, linf"),
            ("norm", ["l1"], "norm is ['l1']"),
            ("points", 2.5, "points is 2.5; expected int from 2"),
            ("points", True, "points is True"),
            ("classes", "ab", "classes is 'ab'; expected list"),
            ("classes/0", {}, "classes[0] is {}; expected str or bool or int or float"),
            ("distance", "0.5", "distance is '0.5'; expected float from 0"),
            ("distance", -1, "distance is -1"),
            ("distance", 10**400, "a whole number of 401 digits"),
            ("distance", 0.6, "expected a pair at the distance 0.6"),
            ("epsilon_min", 0.5, "epsilon_min is 0.5; expected half of the distance 0.5"),
            ("scale", 0, "scale is 0"),
            ("closest", [], "expected a pair at the distance 0.5"),
            ("closest/0/first", ..., "not what blemish separation writes (no closest[0].first in it)"),
            ("closest/0/classes", ["a"], "closest[0].classes is ['a']; expected list of 2"),
            ("contradiction_count", 2, "contradiction_count is 2"),
            ("contradictions", [{"first": 0, "second": 1, "classes": [0, 1], "distance": 0.0}], "distance is 0.5"),
            ("duplicates_excluded", 1, "duplicates_excluded is 1; expected bool"),
            ("data", 7, "data is 7; expected str"),
        ],
    )
    def test_separation(self, run: Run, way: str, new: Any, message: str) -> None:
        path = write(run.folder, "separation.json", changed(SEPARATION, way, new))
        with pytest.raises(InputError) as caught:
            page(run)
        assert str(caught.value).startswith(f"{path}: ")
        assert message in str(caught.value)

    @pytest.mark.parametrize(
        ("way", "new", "message"),
        [
            ("epsilon", 0, "epsilon is 0"),
            ("epsilon", 0.3, "models.forest.protocol.epsilon_min is 0.25; expected 0.3, the epsilon of the file"),
            ("models/forest/mscr/0/mean", "x", "models.forest.mscr[0].mean is 'x'"),
            ("models/forest/mscr/0/mean", -1.5, "expected float from -1"),
            ("models/forest/mscr", [], "models.forest: mscr has 0 entries; expected 2, one for each ε_train"),
            ("models/forest/accuracy/0.25/1/mean", 1.5, "accuracy.0.25[1].mean is 1.5; expected float from 0 to 1"),
            (
                "models/forest/accuracy/0.5",
                ...,
                "models.forest: accuracy at ['0.0', '0.25']; expected it at ['0.0', '0.25', '0.5']",
            ),
            ("models/forest/protocol/eps_test", [0.0], "expected it at ['0.0'], with 0 and ε_min among them"),
            ("models/forest/protocol/norm", None, "norm is None"),
            ("models/forest/runs", 0, "runs is 0; expected int from 1"),
            ("trained/0/clean", float("inf"), "Infinity in place of a number"),
            ("trained/0/epsilon", 1.0, "trained[0].epsilon is 1;"),
            ("trained/0/robust/half_width", -1.0, "half_width is -1.0"),
            ("trained/0/model", None, "trained[0].model is None; expected str"),
            ("settings", {"k": 1}, "no settings.norm in it"),
        ],
    )
    def test_mscr(self, run: Run, way: str, new: Any, message: str) -> None:
        path = run.folder / "mscr.json"
        path.write_text(json.dumps(changed(MSCR, way, new)))
        with pytest.raises(InputError) as caught:
            page(run)
        assert str(caught.value).startswith(f"{path}: ")
        assert message in str(caught.value)

    def test_models_of_different_commands(self, run: Run) -> None:
        other = changed(MODEL, "protocol/k", 1)
        write(run.folder, "mscr.json", {**MSCR, "models": {"forest": MODEL, "1nn": other}})
        with pytest.raises(InputError, match=r"models\.1nn was measured with other settings"):
            page(run)
        write(run.folder, "mscr.json", {**MSCR, "models": {}, "trained": []})
        with pytest.raises(InputError, match="at least one, under models or trained"):
            page(run)
