"""Files of surfaces, intervals of cells and of means, and rises beyond chance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from blemish.core.errors import InputError
from blemish.core.statistics import wilson_interval
from blemish.evaluation.info import RecordsHeader
from blemish.evaluation.records import Records, parquet_bytes, read_header_as, records_bytes
from blemish.studies.streams.certainty import cell_interval, certain_rises, mean_interval
from blemish.studies.streams.info import CalibrationInfo
from blemish.studies.streams.surface import Surface, repaired
from blemish.studies.streams.surface_files import read_surface, surface_bytes

GRID = (0.0, 2.0, 5.0)


def made(right: np.ndarray, measured: np.ndarray | None = None) -> Surface:
    """A surface of 3 × 3 cells from which images are right (3, 3, images); unmeasured cells are interpolated to 0.3."""
    known = np.ones((3, 3), dtype=bool) if measured is None else measured
    right = right & known[..., None]
    values = np.where(known, right.mean(2), 0.3)
    return Surface("fog", "snow", values, right.shape[2], GRID, measured, np.packbits(right, axis=2))


def random_right(images: int = 13, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((3, 3, images)) < 0.6


class TestFiles:
    @pytest.mark.parametrize("images", [1, 8, 13])
    @pytest.mark.parametrize("partly", [False, True])
    def test_there_and_back(self, tmp_path: Path, images: int, partly: bool) -> None:
        measured = np.random.default_rng(1).random((3, 3)) < 0.5 if partly else None
        surface = made(random_right(images), measured)
        path = tmp_path / "fog+snow.parquet"
        path.write_bytes(surface_bytes(surface, CalibrationInfo(seed=3)))
        found, info = read_surface(path)
        assert info == CalibrationInfo(seed=3)
        for field in ("first", "second", "images", "grid"):
            assert getattr(found, field) == getattr(surface, field)
        for field in ("accuracy", "measured", "hits"):
            assert np.array_equal(getattr(found, field), getattr(surface, field))
        assert surface_bytes(found, info) == path.read_bytes()

    def test_columns(self, tmp_path: Path) -> None:
        measured = np.eye(3, dtype=bool)
        right = random_right()
        path = tmp_path / "file.parquet"
        path.write_bytes(surface_bytes(made(right, measured), CalibrationInfo()))
        rows = pq.read_table(path).to_pylist()
        assert [(row["first_severity"], row["second_severity"]) for row in rows[:4]] == [(0, 0), (0, 2), (0, 5), (2, 0)]
        assert rows[1] | {"accuracy": 0.3, "images": None, "correct": None, "hits": None} == rows[1]
        assert (rows[4]["images"], rows[4]["correct"]) == (13, right[1, 1].sum())
        assert np.unpackbits(np.frombuffer(rows[4]["hits"], np.uint8), count=13).tolist() == right[1, 1].tolist()
        header = json.loads(pq.read_schema(path).metadata[b"blemish"])
        assert (header["kind"], header["pair"], header["grid"]) == ("ccc calibration", ["fog", "snow"], list(GRID))

    def test_damage_and_strangers_are_named(self, tmp_path: Path) -> None:
        path = tmp_path / "file.parquet"
        path.write_bytes(surface_bytes(made(random_right()), CalibrationInfo()))
        whole, header = pq.read_table(path), read_header_as(dict[str, Any], path)
        sealed = whole.schema.metadata[b"blemish"]

        def changed(column: str, values: list[object]) -> pa.Table:
            place = whole.column_names.index(column)
            return whole.set_column(place, column, pa.array(values, whole.schema.field(column).type))

        counts = whole["correct"].to_pylist()
        hits = whole["hits"].to_pylist()
        for table, message in (
            (changed("correct", [counts[0] - 1, *counts[1:]]), "counts of correct images do not agree"),
            (changed("hits", [hits[0][:-1] + bytes([hits[0][-1] | 1]), *hits[1:]]), "do not agree with the images"),
            (changed("hits", [hits[0] + b"?", *hits[1:]]), "not a calibration surface"),
            (changed("accuracy", [0.123, *whole["accuracy"].to_pylist()[1:]]), "accuracies do not agree"),
            (whole.slice(0, 8), "8 rows; expected the 9 cells"),
            (whole.drop_columns(["hits"]), "without hits"),
            (whole.replace_schema_metadata({}), "it has no header"),
            (whole.replace_schema_metadata({b"blemish": b'{"format": 1, "kind": "ccc run"}'}), "records of ccc run"),
            (whole.replace_schema_metadata({b"blemish": b'{"format": 2}'}), "records of format 2"),
            (whole.replace_schema_metadata({b"blemish": sealed}), "the digest that was in it is gone"),
        ):
            if table.schema.metadata == whole.schema.metadata:
                path.write_bytes(parquet_bytes(table, header))  # sealed again, as if somebody meant it
            else:
                pq.write_table(table, path)
            with pytest.raises(InputError, match=message) as caught:
                read_surface(path)
            assert str(caught.value).startswith(str(path))
        content = bytearray(surface_bytes(made(random_right()), CalibrationInfo()))
        content[200] ^= 16
        path.write_bytes(content)
        with pytest.raises(InputError, match="does not fit the digest"):
            read_surface(path)
        one = np.zeros(1, np.float32)
        records = Records(
            RecordsHeader("fog@1"), np.array(["a"]), np.zeros(1, np.int32), np.zeros((1, 5), np.int32), one, one
        )
        path.write_bytes(records_bytes(records))
        with pytest.raises(InputError, match="records of a model on a benchmark; expected ccc calibration"):
            read_surface(path)

    def test_a_repaired_surface_is_not_a_measurement(self) -> None:
        surface = repaired(made(random_right()))
        with pytest.raises(InputError, match="expected one that knows its images"):
            surface_bytes(surface, CalibrationInfo())
        with pytest.raises(InputError, match="nothing is known of the images"):
            surface.right((0, 0))


class TestIntervals:
    def test_of_a_cell(self) -> None:
        measured = np.eye(3, dtype=bool)
        surface = made(random_right(), measured)
        assert cell_interval(surface, (1, 1)) == wilson_interval(int(surface.right((1, 1)).sum()), 13)
        with pytest.raises(InputError, match=r"cell \(0, 1\) of fog and snow was interpolated"):
            cell_interval(surface, (0, 1))

    def test_the_mean_of_cells_that_share_images(self) -> None:
        """Two equal cells tell no more than one; two that complement each other leave nothing uncertain."""
        right = np.random.default_rng(0).random(100) < 0.5
        assert mean_interval([right, right]) == mean_interval([right])
        assert mean_interval([right, ~right]).width == 0

    def test_refusals(self) -> None:
        with pytest.raises(InputError, match="no cells"):
            mean_interval([])


class TestRises:
    def test_by_hand(self) -> None:
        """Of 40 images none is right at severity 0 of snow and 20 at 2: McNemar's p = 2 / 2²⁰, certain among 12 steps.
        From 2 to 5 one more turns right, p = 1: a rise by chance. Along fog nothing changes."""
        right = np.zeros((3, 3, 40), dtype=bool)
        right[:, 1, :20] = True
        right[:, 2, :21] = True
        assert certain_rises([made(right)]) == (12, 6, 3)
        assert certain_rises([made(right)], alpha=12 * 2 / 2**20) == (12, 6, 0)

    def test_measured_neighbours_only(self) -> None:
        right = np.zeros((3, 3, 40), dtype=bool)
        right[:, 1:] = True
        measured = np.array([[True, True, False], [True, False, True], [False, False, False]])
        assert certain_rises([made(right, measured)]) == (2, 1, 1)

    def test_it_needs_the_images(self) -> None:
        with pytest.raises(InputError, match="does not say which images"):
            certain_rises([Surface("fog", "snow", np.zeros((3, 3)), 5, GRID)])
