"""``blemish report`` as a user meets it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import command_line
from report_runs import pictured_run

invoke = partial(command_line.invoke, "report")


def test_page(tmp_path: Path) -> None:
    pictured_run(tmp_path / "results", "one")
    pictured_run(tmp_path / "results", "two", seed=1)
    target = tmp_path / "report.html"
    code, output, _ = invoke(tmp_path / "results", "-o", target, "--replicates", 5)
    assert code == 0
    assert output.startswith(f"wrote {target} (")
    assert output.endswith("MB, 2 models)\n")
    assert "<h1>A synthetic benchmark</h1>" in target.read_text(encoding="utf-8")


def test_bad_input_leaves_nothing(tmp_path: Path) -> None:
    code, _, errors = invoke(tmp_path / "gone", "-o", tmp_path / "report.html")
    assert code == 2
    assert "no such folder" in errors
    pictured_run(tmp_path / "results", "one")
    code, _, errors = invoke(tmp_path / "results", "-o", tmp_path / "report.txt")
    assert code == 2
    assert "ends in .html" in errors
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results"]


def test_a_stream_is_no_run(tmp_path: Path) -> None:
    """A folder of blemish ccc run is named for what it is; beside runs, it is passed over."""
    folder = tmp_path / "results" / "stream"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text('{"stream": {}, "methods": ["none"], "images": 5, "model": {}, "settings": {}}')
    for place in (folder, folder.parent):
        code, _, errors = invoke(place, "-o", tmp_path / "report.html")
        assert code == 2
        assert errors.startswith(f"error: {folder}: made by blemish ccc run")
        assert "summary.json" in errors
    pictured_run(tmp_path / "results", "one")
    code, output, _ = invoke(tmp_path / "results", "-o", tmp_path / "report.html", "--replicates", 5)
    assert code == 0
    assert "1 model" in output


def test_a_run_file_without_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"model": {"name": "net"}}')
    code, _, errors = invoke(tmp_path, "-o", tmp_path / "report.html")
    assert code == 2
    assert "run.json: not a readable run file (no benchmark in it)" in errors


def test_others_are_compared_with_one_that_is_named(tmp_path: Path) -> None:
    few = {"clean": 0.9, "fog@3": 0.5}
    for seed, name in enumerate(("one", "two", "three")):
        pictured_run(tmp_path / "results", name, few, seed=seed)
    target = tmp_path / "report.html"
    quick = (tmp_path / "results", "-o", target, "--replicates", 5)
    for options in (("--against", "two"), ("--baseline", "two"), ("--baseline", tmp_path / "results" / "two")):
        code, _, _ = invoke(*quick, *options)
        assert code == 0
        page = target.read_text(encoding="utf-8")
        assert "<h3>one minus two</h3>" in page
        assert "<h3>three minus two</h3>" in page
        # Only what errors are divided by is a baseline.
        assert ("(two = 100)" in page) == (options[0] == "--baseline")
    before = target.read_bytes()
    code, _, errors = invoke(*quick, "--against", "four")
    assert code == 2
    assert "'four' names none of the models; expected one of one, three, two" in errors
    assert target.read_bytes() == before
