"""Scores as tables: the numbers of the metrics, marked where the model was trained on them."""

from __future__ import annotations

from pathlib import Path

import pytest

from blemish.core.errors import InputError
from blemish.metrics.compare import compare
from blemish.reports.compare_tables import comparison_tables
from blemish.reports.reading import Reading, labels, read_all
from blemish.reports.score_cards import heatmap
from blemish.reports.score_tables import score_tables, summary_table
from blemish.reports.tables import Table
from blemish.tasks.predictions import read_predictions
from synthetic_runs import write_run

CONDITIONS = {
    "clean": [True] * 8 + [False] * 2,
    "fog@1": [True] * 6 + [False] * 4,
    "fog@3": [True] * 4 + [False] * 6,
    "snow@1": [True] * 5 + [False] * 5,
    "p:tilt@1": 0.2,
    "clean:imagenet-a": [True] * 5,
    "natural:imagenet-a": [True] * 3 + [False] * 7,
}


def read(tmp_path: Path, *names: str, **more: object) -> list[Reading]:
    runs = [write_run(tmp_path, name, CONDITIONS, images=10, **more) for name in names]  # type: ignore[arg-type]
    return read_all(runs, replicates=20)


def cells(table: Table) -> list[list[str]]:
    return [[cell.value for cell in row] for row in table.rows]


def named(tables: list[Table], start: str) -> Table:
    (found,) = [table for table in tables if table.title.startswith(start)]
    return found


class TestScoreTables:
    def test_by_hand(self, tmp_path: Path) -> None:
        tables = score_tables(read(tmp_path, "m"))
        errors = named(tables, "m: error by corruption and severity")
        assert errors.columns == ("corruption", "1", "3", "mean", "R", "residual", "ECE")
        # fog: errors 4/10 and 6/10, mean 5/10; R = 0.5 / 0.8; residual 80 − 50 points.
        assert cells(errors)[0][:6] == ["fog", "40.0", "60.0", "50.0", "0.625", "30.0"]
        assert cells(errors)[1][:4] == ["snow", "50.0", "–", "50.0"]
        assert cells(named(tables, "Mean error by family")) == [["weather", "50.0"]]
        assert cells(named(tables, "Natural sets")) == [["imagenet-a", "m", "30.0", "100.0", "70.0"]]
        summary = {row[0].text: row[1] for row in tables[0].rows}
        assert summary["mean error, %"].text == "50.0"
        assert summary["clean error, %"].text == "20.0"
        assert tables[0].rows[0][0].text == "mean error, %"
        low, high = summary["clean error, %"].interval.split(", ")
        assert float(low) <= 20 <= float(high)

    def test_runs_of_several_benchmarks_are_called_by_theirs(self, tmp_path: Path) -> None:
        """Numbers of images made here never stand under the title of published ones alone."""
        stored, made = (
            write_run(tmp_path / title, "m", CONDITIONS, images=10, benchmark={"title": title})
            for title in ("LAION-C", "LAION-C-like distortions")
        )
        readings = read_all([stored, made], replicates=20)
        summary = summary_table(readings)
        assert summary.title == "LAION-C · LAION-C-like distortions"
        assert f"{readings[1].name}: LAION-C-like distortions." in summary.notes
        alone = summary_table(readings[:1])
        assert alone.title == "LAION-C"
        assert not any(note.endswith("LAION-C.") for note in alone.notes)

    def test_no_calibration_without_confidences(self, tmp_path: Path) -> None:
        """The pooled probability of a superclass is no confidence; an empty diagram would say nothing."""
        protocol = {"superclasses": "sixteen", "pool": "mean"}
        tables = score_tables(read(tmp_path, "m", protocol=protocol))
        assert not [table for table in tables if table.title == "Calibration"]
        assert [table for table in score_tables(read(tmp_path / "plain", "m")) if table.title == "Calibration"]

    def test_what_is_missing(self, tmp_path: Path) -> None:
        table = named(score_tables(read(tmp_path, "a", "b")), "What could not be computed")
        reasons = {row[0]: row[1:] for row in cells(table)}
        assert reasons["mean Zipf distance"][0] == "all models"
        assert any("no baseline was given" in why for _, why in reasons.values())

    def test_conditions_without_records_are_one_line(self, tmp_path: Path) -> None:
        (tmp_path / "m.csv").write_text("image,condition,score\na,clean,1\na,fog@1,0.5\n")
        runs = read_predictions(tmp_path / "m.csv", benchmark="imagenet-c")
        table = named(score_tables(read_all(runs, replicates=5)), "What could not be computed")
        (row,) = [row for row in cells(table) if row[2] == "no records"]
        assert row[0].startswith("score of gaussian_noise@1, gaussian_noise@2")
        assert len(table.rows) < 20  # not one for each of 74 conditions

    def test_trained_on(self, tmp_path: Path) -> None:
        model = {"training": {"corruptions": ["fog"], "augmentations": []}}
        tables = score_tables(read(tmp_path, "m", model=model))
        errors = named(tables, "m: error by")
        assert cells(errors)[0][:4] == ["fog", "40.0†", "60.0†", "50.0†"]
        assert cells(errors)[1][1] == "50.0"
        summary = {row[0].text: row[1] for row in tables[0].rows}
        assert summary["mean error, %"].marked
        assert not summary["clean error, %"].marked
        assert all("trained on" in table.footnotes[0] for table in (errors, tables[0]))

    def test_many_models_are_rows(self, tmp_path: Path) -> None:
        names = [f"m{number}" for number in range(5)]
        table = summary_table(read(tmp_path, *names))
        assert table.columns[:3] == ("model", "mean error, %", "clean error, %")
        assert [row[0] for row in cells(table)] == names

    def test_a_benchmark_without_severities(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", {"clean": 0.8, "noc:border@1-5": 0.5, "noc:hue@1-5": 0.4}, images=10)
        (table,) = [t for t in score_tables(read_all([run], replicates=5)) if t.title.startswith("m: error")]
        assert table.columns[:2] == ("corruption", "mean")

    def test_chains(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", {"clean": 0.8, "fog@2+snow@1": 0.5}, images=10)
        families = named(score_tables(read_all([run], replicates=5)), "Mean error by family")
        assert cells(families)[0][0] == "chains"

    def test_equal_names_get_their_folders(self, tmp_path: Path) -> None:
        runs = [write_run(tmp_path / place, "m", CONDITIONS, images=10) for place in ("a", "b")]
        assert labels(runs) == [f"m ({tmp_path / 'a' / 'm'})", f"m ({tmp_path / 'b' / 'm'})"]

    def test_protocols_that_differ_are_named(self, tmp_path: Path) -> None:
        same = read(tmp_path / "same", "a", "b")
        assert not any("same way" in note for note in summary_table(same).notes)
        other = write_run(tmp_path, "c", CONDITIONS, images=10, protocol={"storage": "jpeg85"})
        notes = summary_table(read_all([*(reading.run for reading in same), other], replicates=5)).notes
        (note,) = [note for note in notes if "same way" in note]
        assert note == 'a and c were not measured in the same way: protocol.storage is "raw" and "jpeg85".'

    def test_part_of_a_benchmark(self, tmp_path: Path) -> None:
        part = {"part_of": {"name": "imagenet-c", "conditions": 75}}
        assert "only 6 of the 75" in " ".join(summary_table(read(tmp_path, "m", benchmark=part)).notes)

    def test_unknown_metric(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", CONDITIONS, images=10, benchmark={"metric": "charm"})
        with pytest.raises(InputError, match="its benchmark's metric is 'charm'"):
            read_all([run])


class TestComparison:
    def test_by_hand(self, tmp_path: Path) -> None:
        one = write_run(tmp_path, "one", {"clean": [True] * 10, "fog@1": [True] * 8 + [False] * 2}, images=10)
        model = {"training": {"corruptions": ["fog"], "augmentations": []}}
        two = write_run(
            tmp_path, "two", {"clean": [True] * 10, "fog@1": [True] * 3 + [False] * 7}, images=10, model=model
        )
        tables = comparison_tables(compare(one, two, replicates=50), "one", "two")
        fog = named(tables, "Mean error by corruption").rows[0]
        assert [cell.value for cell in fog[:4]] == ["fog", "20.0", "70.0†", "+50.0†"]
        low, high = fog[3].interval.split(", ")
        assert low.startswith("+")
        assert float(low) <= 50 <= float(high)
        clean = tables[0].rows[-1]
        assert [cell.value for cell in clean] == ["clean error, %", "0.0", "0.0", "0.0", "1.000"]


def test_single_severities_stand_beside_their_corruptions(tmp_path: Path) -> None:
    """A heading for each would be empty for all others."""
    names = ("clean", "noc:hue@1.35-5", "noc:border@1-5", "syn2nat:flip@5")
    run = write_run(tmp_path, "r", dict.fromkeys(names, [True] * 8 + [False] * 2), images=10)
    (reading,) = read_all([run], replicates=20)
    table = named(score_tables([reading]), "r: error by corruption, %")
    assert table.columns[:2] == ("corruption", "mean")
    assert [row[0].text for row in table.rows] == ["noc:hue 1.35–5", "noc:border 1–5", "syn2nat:flip 5"]
    rows = [row.name for rows in heatmap(reading).families.values() for row in rows]
    assert rows == [row[0].text for row in table.rows]


@pytest.mark.parametrize("replicates", [5])
def test_all_tables_are_rectangular(tmp_path: Path, replicates: int) -> None:
    runs = [write_run(tmp_path, name, CONDITIONS, images=10) for name in ("a", "b")]
    for table in score_tables(read_all(runs, replicates=replicates)):
        assert {len(row) for row in table.rows} == {len(table.columns)}
