"""Accuracy tables and overlap matrices: reading, writing, and what is said about bad ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blemish.core.errors import InputError
from blemish.studies.construction.matrices import OverlapMatrix, read_matrix, write_matrix
from blemish.studies.construction.tables import AccuracyTable, read_table, write_table


def file(folder: Path, text: str, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


class TestTables:
    def test_fractions_and_percent(self, tmp_path: Path) -> None:
        fractions = read_table(file(tmp_path, "model,clean,fog\na,0.8,0.5\n"))
        percent = read_table(file(tmp_path, "model,clean,fog\na,80,50\n"), unit="percent")
        assert np.array_equal(fractions.values, percent.values)
        assert fractions.accuracy("a", "fog") == 0.5

    def test_round_trip_is_exact(self, tmp_path: Path) -> None:
        table = AccuracyTable(("a", "b"), ("clean", "fog, thick"), np.array([[1 / 3, 0.1], [0.7, 2 / 7]]))
        write_table(table, tmp_path / "out.csv")
        again = read_table(tmp_path / "out.csv")
        assert again.settings == table.settings
        assert np.array_equal(again.values, table.values)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("model,clean\na,good\n", "model a, column clean: 'good'; expected a number"),
            ("model,clean\na,\n", "an empty cell"),
            ("model,clean\na,nan\n", "expected a finite number"),
            ("model,clean\na,0.5\na,0.6\n", "model a given twice"),
            ("model,clean,clean\na,0.5,0.5\n", "column clean given twice"),
            ("model,clean,fog\na,0.5\n", "row 2 has 2 cells; expected 3"),
            ("model,clean\n", "expected a header"),
            ("", "expected a header"),
            ("model,clean\na,80\n", "found 80; expected fractions"),
            ("model,clean\na,-0.1\n", "expected a fraction from 0 to 1"),
        ],
    )
    def test_bad_files_are_explained(self, tmp_path: Path, text: str, said: str) -> None:
        with pytest.raises(InputError, match=said.replace("(", r"\(")):
            read_table(file(tmp_path, text))

    def test_fractions_called_percent(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="look like fractions"):
            read_table(file(tmp_path, "model,clean\na,0.8\n"), unit="percent")

    def test_missing_column_and_file(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="did you mean fog"):
            read_table(file(tmp_path, "model,clean,fog\na,0.5,0.5\n"), columns=["fogg"])
        with pytest.raises(InputError, match="no such file"):
            read_table(tmp_path / "gone.csv")

    def test_incomplete_models_are_left_out_on_demand(self, tmp_path: Path) -> None:
        path = file(tmp_path, "model,clean,fog,snow\na,0.5,,0.1\nb,0.6,0.2,\n")
        table = read_table(path, columns=["clean", "fog"], complete_only=True)
        assert table.models == ("b",)

    def test_unknown_rows_and_columns(self) -> None:
        table = AccuracyTable.of({"a": {"clean": 0.5, "fog": 0.4}})
        with pytest.raises(InputError, match="no column 'snow'"):
            table.columns(["snow"])
        with pytest.raises(InputError, match="no model 'b'"):
            table.only(models=["b"])
        with pytest.raises(InputError, match="differ in fog"):
            AccuracyTable.of({"a": {"clean": 0.5, "fog": 0.4}, "b": {"clean": 0.5}})

    def test_values_cannot_be_changed(self) -> None:
        table = AccuracyTable.of({"a": {"clean": 0.5}})
        with pytest.raises(ValueError, match="read-only"):
            table.values[0, 0] = 1


def matrix() -> OverlapMatrix:
    scores = np.array([[1, 0.25, np.nan], [0.25, 1, 1 / 3], [np.nan, 1 / 3, 1]])
    return OverlapMatrix(("fog", "snow", "hue"), scores, {("hue", "fog"): "no gain, none: at all"})


class TestMatrices:
    @pytest.mark.parametrize("name", ["m.csv", "m.json"])
    def test_round_trip(self, tmp_path: Path, name: str) -> None:
        write_matrix(matrix(), tmp_path / name)
        again = read_matrix(tmp_path / name)
        assert again.names == matrix().names
        assert np.array_equal(again.scores, matrix().scores, equal_nan=True)
        assert again.undefined == matrix().undefined

    def test_an_undefined_score_is_no_number(self) -> None:
        with pytest.raises(InputError, match="undefined: no gain"):
            matrix().score("fog", "hue")
        assert matrix().score("hue", "snow") == 1 / 3
        assert matrix().defined().names == ("snow", "hue")

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            (",a,b\na,1,0.2\n", "1 rows for 2 columns; expected a square matrix"),
            (",a,b\na,1,0.2\nb,0.3,1\n", "not symmetric: the score of a and b is 0.2 one way and 0.3"),
            (",a,b\na,1,0.2\nc,0.2,1\n", "row 2 is named 'c' and column 2 'b'"),
            (",a,\na,1,0.2\n,0.2,1\n", "without a name"),
            (",a,a\na,1,0.2\na,0.2,1\n", "given twice"),
            (",a,b\na,1,nan\nb,nan,1\n", "expected a finite number"),
            (",a,b\na,1,-0.2\nb,-0.2,1\n", "not negative"),
            (",a,b\na,0.5,0.2\nb,0.2,1\n", "overlaps itself completely"),
            (",a,b\na,1,\nb,0.2,1\n", "an empty cell"),
            ("", "expected a header"),
            (",a,b\na,1\nb,0.2,1\n", "row a has 1 scores; expected 2"),
            (",a,b\na,1,undefined\nb,0.2,1\n", "called undefined, but"),
        ],
    )
    def test_bad_files_are_explained(self, tmp_path: Path, text: str, said: str) -> None:
        with pytest.raises(InputError, match=said) as caught:
            read_matrix(file(tmp_path, text))
        assert "t.csv" in str(caught.value)

    @pytest.mark.parametrize(
        ("text", "said"),
        [
            ("[1, 2]", "expected JSON with corruptions"),
            ('{"corruptions": ["a"], "scores": [[1, 0]]}', "expected a square matrix"),
            ('{"corruptions": ["a", "b"], "scores": [[1, null], [null, 1]]}', "is NaN"),
            ('{"corruptions": ["a"], "scores": [["x"]]}', "expected JSON"),
            ("{", "expected JSON"),
        ],
    )
    def test_bad_json_is_explained(self, tmp_path: Path, text: str, said: str) -> None:
        with pytest.raises(InputError, match=said):
            read_matrix(file(tmp_path, text, "t.json"))

    def test_unknown_names(self) -> None:
        with pytest.raises(InputError, match="did you mean snow"):
            matrix().only(["snwo"])
        with pytest.raises(InputError, match="undefined score of 'rain'"):
            OverlapMatrix(("fog",), np.ones((1, 1)), {("fog", "rain"): "why"})
        with pytest.raises(InputError, match=r"ends in \.csv or \.json"):
            write_matrix(matrix(), Path("m.txt"))

    @settings(deadline=None)  # files are sent to the disk, which takes its time on a busy machine
    @given(st.lists(st.floats(0, 2), min_size=3, max_size=3))
    def test_any_matrix_survives_a_file(self, values: list[float]) -> None:
        import tempfile

        scores = np.eye(3)
        scores[np.triu_indices(3, 1)] = values
        made = OverlapMatrix(("a", "b", "c"), np.maximum(scores, scores.T))
        with tempfile.TemporaryDirectory() as folder:
            for name in ("m.csv", "m.json"):
                write_matrix(made, Path(folder) / name)
                assert np.array_equal(read_matrix(Path(folder) / name).scores, made.scores)
