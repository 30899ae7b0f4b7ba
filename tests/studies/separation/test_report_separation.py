"""Class separation and MSCR on the page: what the commands write is found, checked and shown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from blemish.cli.report import report_command
from blemish.evaluation.runs import Run
from blemish.reports.html import report_page
from blemish.studies.separation.commands.mscr import mscr_command
from blemish.studies.separation.commands.separation import separation_command
from blemish.studies.separation.exact import separation
from blemish.studies.separation.files import find_separation
from blemish.studies.separation.section import separation_sections
from report_runs import HOSTILE
from separation_records import MODEL, MSCR, SCORE, SEPARATION, Words, write
from synthetic_runs import write_run

app = typer.Typer(pretty_exceptions_enable=False)
app.command("separation")(separation_command)
app.command("mscr")(mscr_command)
app.command("report")(report_command)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return write_run(tmp_path / "results", "m", {"clean": 0.8, "fog@1": 0.5}, images=10)


def page(run: Run, folders: Sequence[Path] = ()) -> Words:
    return Words(report_page([run], replicates=2, extra=[separation_sections([run], folders)]))


def invoke(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "140"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


class TestContent:
    def test_nothing_there(self, run: Run) -> None:
        assert not {"separation", "mscr"} & set(page(run).sections)

    def test_separation(self, run: Run) -> None:
        write(run.folder, "separation.json", {"data": "points.npz", **SEPARATION})
        texts = page(run).sections["separation"]
        assert texts[0] == "Class separation"
        facts = ["Data", "points.npz", "2r", "0.5", "ε_min", "0.25", "Norm", "L∞", "Points", "3", "Classes", "2"]
        start = texts.index("Data")
        assert texts[start : start + len(facts)] == facts
        rows = texts[texts.index("distance") + 1 :]
        assert rows == ["a – b", "0", "2", "0.5", "a – b", "1", "2", "0.75"]

    def test_first_ten_pairs_of_images(self, run: Run) -> None:
        images = np.arange(24, dtype=np.uint8).reshape(24, 1)
        write(run.folder, "separation.json", separation(images, np.arange(24) % 2, closest=15).record())
        texts = page(run).sections["separation"]
        assert texts.count("0.003922 (1/255)") == 1 + 10  # 2r and ten pairs; 1/255 by hand
        assert "0.001961 (0.5/255)" in texts

    def test_contradictions_are_warned_of(self, run: Run) -> None:
        points, labels = [[0.0], [0.0], [0.0], [2.0]], ["x", "y", "y", "x"]
        write(run.folder, "separation.json", {"data": "d", **separation(points, labels).record()})
        found = page(run)
        text = "equal points have different labels: 2 pairs, such as points 0 (x) and 1 (y). "
        assert f"d: {text}So the classes touch, and ε_min is 0." in found.top
        assert f"Contradictions: {text}So the classes touch, and ε_min is 0." in found.sections["separation"]
        write(run.folder, "separation.json", separation(points, labels, exclude_duplicates=True).record())
        assert f"Contradictions: {text}Such pairs are left out." in page(run).sections["separation"]

    def test_mscr(self, run: Run) -> None:
        write(run.folder, "mscr.json", MSCR)
        texts = page(run).sections["mscr"]
        assert texts[0] == "Minimal-separation robustness (MSCR)"
        assert "ε = 0.25 (as asked), L∞, k = 10, 1 run, not clipped, seed -3." in texts
        assert any("tests with 20 % of the points and trains with the others, shared draws." in text for text in texts)
        start = texts.index("ε_train") + 1
        assert texts[start : start + 4] == [
            "clean accuracy, %",
            "accuracy at ε = 0.25, %",
            "accuracy at ε = 0.5, %",
            "MSCR, %",
        ]
        assert texts[start + 4 : start + 15] == [
            *("forest", "0", "80.000", "60.000", "50.000", "−25.000"),
            *("forest", "0.25", "75.000", "75.000", "51.000"),
        ]
        assert texts[-5:-1] == ["net", "90.000", "81.000 ± 1.000", "−10.000 ± 1.250"]

    def test_points_that_were_left_out(self, run: Run) -> None:
        left_out = [[{"point": 3, "label": "a", "name": "a/3.png"}, {"point": 7, "label": "b", "name": None}]]
        write(run.folder, "mscr.json", {**MSCR, "left_out": left_out})
        text = "without 2 points that are equal but have different labels, such as a/3.png (a) = 7 (b)."
        assert any(text in part for part in page(run).sections["mscr"])

    def test_trained_models_alone_say_how_they_were_measured(self, run: Run) -> None:
        settings = {"k": 2, "runs": 3, "norm": "l2", "seed": 0, "clip": True}
        record = {"epsilon": 0.25, "radius": "as asked", "settings": settings, "models": {}, "trained": [SCORE]}
        write(run.folder, "mscr.json", record)
        texts = page(run).sections["mscr"]
        assert "ε = 0.25 (as asked), L₂, k = 2, 3 runs, clipped to 0 … 1, seed 0." in texts
        assert "ε_train" not in texts

    def test_nan_of_python_is_no_interval(self, run: Run) -> None:
        (run.folder / "mscr.json").write_text(json.dumps(MSCR).replace("null", "NaN"))
        assert "60.000" in page(run).sections["mscr"]


class TestFinding:
    def test_each_place_once(self, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for folder in (tmp_path / "other", run.folder, run.folder.parent):
            write(folder, "separation.json", SEPARATION)
        found = find_separation([run], [tmp_path / "other", run.folder.parent])
        assert [entry.path.parent.name for entry in found.separations] == ["other", "results", "m"]
        titles = [text for text in page(run).sections["separation"] if text.endswith("separation.json")]
        assert len(titles) == 2
        monkeypatch.chdir(run.folder)
        assert len(find_separation([Run(Path(), run.info)]).separations) == 2

    def test_text_that_windows_shells_write(self, run: Run) -> None:
        (run.folder / "separation.json").write_bytes(json.dumps(SEPARATION).encode("utf-16"))
        assert "separation" in page(run).sections


def test_hostile_names_are_text(run: Run) -> None:
    points = [[0.0], [0.0], [2.0], [5.0]]
    found = separation(points, [HOSTILE, f"{HOSTILE}2", HOSTILE, "\udcff"]).record()
    write(run.folder, "separation.json", {"data": HOSTILE, **found})
    texts = {"data": HOSTILE, "radius": HOSTILE}
    write(
        run.folder, "mscr.json", {**MSCR, **texts, "models": {HOSTILE: MODEL}, "trained": [{**SCORE, "model": HOSTILE}]}
    )
    text = report_page([run], replicates=2, extra=[separation_sections([run])])
    parsed = Words(text)
    assert not [name for _, attributes in parsed.tags for name in attributes if name.startswith("on")]
    assert not [attributes for tag, attributes in parsed.tags if tag == "img"]
    assert len([tag for tag, _ in parsed.tags if tag == "script"]) == 1
    shown = HOSTILE.replace("\u202e", "\\u202e")
    assert f"{shown} – {shown}2" in parsed.sections["separation"]
    # Two rows of one trained with noise, the second of which is not seen, and one of one that was trained before.
    assert parsed.sections["mscr"].count(shown) == 3
    assert HOSTILE not in text


class TestCommands:
    def test_files_reach_the_page(self, run: Run, tmp_path: Path) -> None:
        points = np.stack([np.linspace(0, 1, 30), np.repeat([0.0, 0.2], 15)], 1)
        np.savez(tmp_path / "points.npz", x=points, y=np.repeat([0, 1], 15))
        results = run.folder.parent
        code, out, err = invoke(
            "separation", "-d", tmp_path / "points.npz", "--json", "-o", results / "separation.json"
        )
        assert code == 0
        assert f"wrote {results / 'separation.json'}" in err
        assert (results / "separation.json").read_text(encoding="utf-8") == out
        assert json.loads(out)["data"] == "points.npz"
        arguments = [
            "mscr",
            "-d",
            tmp_path / "points.npz",
            "--train",
            "1nn",
            "--eps-train",
            "0,min",
            "--runs",
            1,
            "-k",
            2,
        ]
        code, out, _ = invoke(*arguments, "-o", results / "mscr.json")
        assert code == 0
        assert "1nn: accuracy and MSCR" in out  # the table, as no JSON was asked for
        written = (results / "mscr.json").read_text(encoding="utf-8")
        assert "NaN" not in written
        assert json.loads(written)["settings"] == {"k": 2, "runs": 1, "norm": "linf", "seed": 0, "clip": False}
        assert sorted(path.name for path in results.iterdir()) == ["m", "mscr.json", "separation.json"]
        code, _, _ = invoke("report", results, "-o", tmp_path / "page.html", "--replicates", 2)
        assert code == 0
        sections = Words((tmp_path / "page.html").read_text(encoding="utf-8")).sections
        assert {"points.npz", "0.2", "0.1"} <= set(sections["separation"])  # the rows lie 0.2 apart
        assert any("ε = 0.1 (ε_min of the data)" in text for text in sections["mscr"])

    def test_damaged_file_leaves_no_page(self, run: Run, tmp_path: Path) -> None:
        (run.folder.parent / "mscr.json").write_text("{}")
        code, _, err = invoke("report", run.folder, "-o", tmp_path / "page.html")
        assert code == 2
        assert "mscr.json: not what blemish mscr writes (no epsilon in it)" in err
        assert not (tmp_path / "page.html").exists()

    @pytest.mark.parametrize("command", [["separation"], ["mscr", "--train", "1nn"]])
    def test_bad_places_are_refused_before_any_work(self, command: list[str], tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        code, _, err = invoke(*command, "-d", "gone.npz", "-o", tmp_path)
        assert code == 2
        assert "is a folder; expected a file name" in err
        code, _, err = invoke(*command, "-d", "gone.npz", "-o", tmp_path / "file" / "x.json")
        assert code == 2
        assert "is a file; expected a folder to write to" in err

    def test_labels_that_json_does_not_know(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "points.npz", x=np.arange(6.0).reshape(3, 2), y=np.array([b"a", b"b", b"b"]))
        code, out, _ = invoke("separation", "-d", tmp_path / "points.npz", "--json")
        assert code == 0
        assert json.loads(out)["classes"] == ["b'a'", "b'b'"]
