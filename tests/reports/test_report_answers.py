"""The answers of a model side by side, the images it lost, and the pictures kept for the report."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from blemish.benchmarks.condition import parse_condition
from blemish.core.errors import InputError
from blemish.corruptions.catalog import catalog
from blemish.evaluation.records import read_records, records_bytes
from blemish.evaluation.runs import Run, record_path
from blemish.reports.answers import gather, read_pictures, worst_hit
from blemish.reports.examples import Subject, shown_conditions, unmakeable
from report_runs import pictured_run
from synthetic_runs import write_run

# Four images; by hand: the second is wrong under two of three conditions, the third under one, the fourth when clean.
BY_HAND = {
    "clean": [True, True, True, False],
    "fog@1": [True, True, True, False],
    "fog@2": [True, False, True, False],
    "snow@1": [True, False, False, False],
}


class TestGather:
    def test_rows_and_columns(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", BY_HAND, images=4)
        answers = gather(run)
        assert answers is not None
        assert [str(c) for c in answers.conditions] == ["fog@1", "fog@2", "snow@1"]
        np.testing.assert_array_equal(~answers.wrong, [BY_HAND["fog@1"], BY_HAND["fog@2"], BY_HAND["snow@1"]])
        assert answers.column("c1/000001.png") == 1
        assert answers.column("gone") is None

    def test_images_in_another_order(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", BY_HAND, images=4)
        path = record_path(run.folder, parse_condition("snow@1"))
        path.write_bytes(records_bytes(read_records(path).take(np.array([3, 1, 0, 2]))))
        answers = gather(run)
        assert answers is not None
        np.testing.assert_array_equal(~answers.wrong[2], BY_HAND["snow@1"])

    def test_other_images_are_refused(self, tmp_path: Path) -> None:
        run = write_run(tmp_path, "m", BY_HAND, images=4)
        path = record_path(run.folder, parse_condition("snow@1"))
        path.write_bytes(records_bytes(read_records(path).take(np.array([0, 1, 2]))))
        with pytest.raises(InputError, match="images of snow@1 are not those of clean"):
            gather(run)

    def test_what_is_left_out(self, tmp_path: Path) -> None:
        conditions = {"clean": 0.5, "fog@1": None, "p:tilt@1": 0.1, "natural:imagenet-a": 0.2}
        answers = gather(write_run(tmp_path, "m", conditions, images=10))
        assert answers is not None
        assert answers.conditions == ()
        assert worst_hit(answers, 3) == []

    def test_without_clean_images(self, tmp_path: Path) -> None:
        assert gather(write_run(tmp_path, "m", {"clean": None, "fog@1": 0.5}, images=4)) is None


class TestWorstHit:
    def test_by_hand(self, tmp_path: Path) -> None:
        answers = gather(write_run(tmp_path, "m", BY_HAND, images=4))
        assert answers is not None
        hits = worst_hit(answers, 5)
        assert [(hit.name, hit.wrong, hit.out_of) for hit in hits] == [
            ("c1/000001.png", 2, 3),
            ("c2/000002.png", 1, 3),
        ]
        # Of the second image's two, snow is of the lower severity.
        assert [str(answers.conditions[row]) for row in hits[0].mildest] == ["snow@1", "fog@2"]
        assert hits[1].mistaken_for == answers.top1[2, 2]
        assert len(worst_hit(answers, 1)) == 1


class TestPictures:
    def test_read(self, tmp_path: Path) -> None:
        pictures = read_pictures(pictured_run(tmp_path, "m", classes=["a"] * 10))
        assert pictures is not None
        assert pictures.images.shape == (6, 32, 32, 3)
        assert pictures.row("c2/000002.png") == 2
        assert pictures.classes == ("a",) * 10

    def test_none(self, tmp_path: Path) -> None:
        assert read_pictures(write_run(tmp_path, "m", BY_HAND, images=4)) is None

    @pytest.fixture
    def run(self, tmp_path: Path) -> Run:
        return pictured_run(tmp_path, "m")

    def rewrite(self, run: Run, **changes: object) -> None:
        with np.load(run.folder / "pictures.npz") as found:
            arrays = {**found, **changes}
        np.savez(run.folder / "pictures.npz", **{k: v for k, v in arrays.items() if v is not None})

    def test_code_in_a_file_is_not_run(self, run: Run) -> None:
        self.rewrite(run, names=np.array([{"x": 1}] * 6, dtype=object))
        with pytest.raises(InputError, match=r"pictures\.npz: not a readable array file"):
            read_pictures(run)

    def test_damaged(self, run: Run) -> None:
        (run.folder / "pictures.npz").write_bytes(b"PK\x03\x04nonsense")
        with pytest.raises(InputError, match="not a readable array file"):
            read_pictures(run)

    def test_wrong_arrays(self, run: Run) -> None:
        self.rewrite(run, labels=np.arange(2))
        with pytest.raises(InputError, match=r"labels of shape \(2,\) for 6 images"):
            read_pictures(run)
        self.rewrite(run, labels=np.arange(6), images=np.zeros((6, 8, 8, 3), np.float32))
        with pytest.raises(InputError, match="images of float32"):
            read_pictures(run)
        self.rewrite(run, images=None)
        with pytest.raises(InputError, match="no images in it"):
            read_pictures(run)

    def test_bombs_are_refused(self, run: Run) -> None:
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            header, {"descr": "|u1", "fortran_order": False, "shape": (1, 1 << 15, 6400, 3)}
        )
        with (
            zipfile.ZipFile(run.folder / "pictures.npz", "w", zipfile.ZIP_DEFLATED) as archive,
            archive.open("images.npy", "w", force_zip64=True) as member,
        ):
            member.write(header.getvalue())
            for _ in range(600):
                member.write(bytes(1 << 20))
        with pytest.raises(InputError, match="unpacks to"):
            read_pictures(run)


class TestUnmakeable:
    def test_reasons(self, tmp_path: Path) -> None:
        fog, drawn = parse_condition("fog@1"), parse_condition("frost_drawn@1")
        plain = pictured_run(tmp_path, "plain")
        assert unmakeable(plain, fog) is None
        assert unmakeable(plain, drawn) is None
        stored = pictured_run(tmp_path, "stored", protocol={"pixels": "stored"})
        assert "stored" in str(unmakeable(stored, fog))
        older = pictured_run(tmp_path, "older", protocol={"corruptions": {"fog": catalog["fog"].version + 1}})
        assert "version" in str(unmakeable(older, fog))

    def test_other_photographs_of_frost(self, tmp_path: Path) -> None:
        run = pictured_run(tmp_path, "custom", {"clean": 0.8, "fog@3": 0.5, "frost@3": 0.5})
        reason = "frost was measured with custom-0123456789abcdef photographs"
        assert reason in str(unmakeable(run, parse_condition("frost@3")))
        answers = gather(run)
        assert answers is not None
        assert [str(c) for c in shown_conditions(Subject("m", run, answers, None, 0))] == ["fog@3"]

    @pytest.mark.usefixtures("no_photographs")
    def test_photographs_that_are_not_here(self, tmp_path: Path) -> None:
        conditions = {"clean": 0.8, "fog@3": 0.5, "frost@3": 0.5}
        run = pictured_run(tmp_path, "reference", conditions, protocol={"frost": "reference"})
        assert "blemish fetch-frost" in str(unmakeable(run, parse_condition("frost@3")))
