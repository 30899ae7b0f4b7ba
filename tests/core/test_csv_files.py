"""CSV that a spreadsheet may open: no formulas, and names that come back as they were."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pytest

from blemish.core.csv_files import csv_text, parse_csv
from blemish.evaluation.runs import find_runs
from blemish.metrics.compare import compare
from blemish.reports.reading import read_all
from blemish.reports.table_files import comparison_csv, scores_csv
from blemish.studies.construction.commands.common import write_rows
from blemish.studies.construction.matrices import OverlapMatrix, read_matrix, write_matrix
from blemish.studies.construction.tables import AccuracyTable, read_table, write_table
from synthetic_runs import write_run

FORMULAS = [
    '=HYPERLINK("http://x","y")',
    "=1+1",
    "+1+1",
    "-1+1",
    "-dash",
    "@SUM(1)",
    "\t=1+1",
    "\r=1+1",
    "＝1+1",
    "'=1+1",
    "''=1+1",
    "=cmd|' /C calc'!A0",
]
HARMLESS = ["fog", "'quoted'", "", "a=b", "a,b", 'a"b', "a\nb", "1e-3"]


def cells(text: str) -> list[str]:
    return [cell for row in csv.reader(io.StringIO(text, newline="")) for cell in row]


def computed(text: str) -> list[str]:
    """Cells that a spreadsheet takes for formulas."""

    def is_number(cell: str) -> bool:
        try:
            float(cell)
        except ValueError:
            return False
        return True

    return [cell for cell in cells(text) if cell[:1] in tuple("=+-@\t\r＝＋－＠") and cell and not is_number(cell)]


@pytest.mark.parametrize("name", [*FORMULAS, *HARMLESS])
def test_cells(name: str) -> None:
    text = csv_text([["name", name], [name, -0.5]])
    assert not computed(text)
    assert parse_csv(text) == [["name", name], [name, "-0.5"]]
    if name in HARMLESS:
        assert cells(text) == ["name", name, name, "-0.5"]


def test_numbers_stay_numbers() -> None:
    values = [-0.5, 1e-300, float("-inf"), np.float64(-1 / 3), -3, "-0.25", "+1e-3", None]
    text = csv_text([values])
    assert text == f"-0.5,1e-300,-inf,{-1 / 3!r},-3,-0.25,+1e-3,\n"


@pytest.mark.parametrize("name", FORMULAS)
def test_tables_come_back(name: str, tmp_path: Path) -> None:
    if name != name.strip():
        pytest.skip("names in tables have no spaces around them")
    table = AccuracyTable((name, "b"), ("clean", f"{name}2"), np.array([[0.1, 0.2], [0.3, 1 / 3]]))
    write_table(table, tmp_path / "t.csv")
    assert not computed((tmp_path / "t.csv").read_text())
    again = read_table(tmp_path / "t.csv")
    assert (again.models, again.settings) == (table.models, table.settings)
    np.testing.assert_array_equal(again.values, table.values)
    key = (name, "fog") if name <= "fog" else ("fog", name)
    matrix = OverlapMatrix((name, "fog"), np.array([[1, np.nan], [np.nan, 1]]), {key: "=none"})
    write_matrix(matrix, tmp_path / "m.csv")
    assert not computed((tmp_path / "m.csv").read_text())
    assert read_matrix(tmp_path / "m.csv").names == matrix.names
    write_rows(tmp_path / "r.csv", ["a", name], [[name, 1]])
    assert not computed((tmp_path / "r.csv").read_text())


def test_scores_and_comparisons(tmp_path: Path) -> None:
    for number, formula in enumerate(FORMULAS[:2]):
        write_run(tmp_path, f"m{number}", {"clean": 0.8, "fog@1": 0.5}, images=10, model={"name": formula})
    runs = find_runs([tmp_path])
    assert not computed(scores_csv(read_all(runs, replicates=5)))
    assert not computed(comparison_csv(compare(*runs, replicates=5)))
