"""``blemish arena``: as a user runs it, with the method of the documentation."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from command_line import invoke

DOCS = Path(__file__).parents[3] / "docs" / "arena.md"


def test_the_documented_method_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = DOCS.read_text(encoding="utf-8")
    example = re.findall(r"```python\n(.*?)```", text, re.DOTALL)[0]
    setting = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)[0]
    (tmp_path / "my_arena_method.py").write_text(example)
    (tmp_path / "twice.toml").write_text(setting)
    monkeypatch.chdir(tmp_path)
    words = (
        "arena run -m demo:plain -d demo:digits -n 40 -b digits-c -c brightness,contrast --batch-size 20 "
        "--clean-images 10 --methods none,t3a,python:my_arena_method:Mine "
        "--settings constant_speed,twice.toml -o out --batch-sizes 10"
    )
    code, printed, complaints = invoke(*words.split())
    assert code == 0, complaints
    assert "python:my_arena_method:Mine" in printed
    scores = json.loads((tmp_path / "out" / "scores.json").read_text())["settings"]
    assert scores["twice_slowly"]["images"] == 40 * 2 * 3 * 2
    mine = scores["constant_speed"]["methods"]["python:my_arena_method:Mine"]
    assert mine["adapted"] == 0.5  # two batches for each corruption: one is missed
    assert mine["rank"] is not None
    assert scores["constant_speed"]["choices"]["t3a"]["oracle"].startswith("t3a")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<svg" in page
    again = invoke(*words.split())
    assert again[0] == 0
    assert "everything is finished" in again[1] + again[2]
    (tmp_path / "mine.html").write_text("mine")
    code, _, complaints = invoke("arena", "report", "out", "-o", "mine.html")
    assert code == 2
    assert "--overwrite" in complaints
    assert (tmp_path / "mine.html").read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--settings ccc", "setting ccc shows a walk"),
        ("--settings continuous", "unknown setting 'continuous'"),
        ("--methods tend", "unknown adaptation method 'tend'"),
        ("--methods bn", "bn needs batch norm layers"),
        ("--tuned-for mnist", "--tuned-for mnist; expected imagenet or cifar"),
        ("--list ours", "list 'ours'; expected robustbench"),
        ("--list robustbench", "0 of the 5,000 images"),
        ("--seeds one", "--seeds 'one'"),
    ],
)
def test_what_is_refused(tmp_path: Path, words: str, message: str) -> None:
    line = f"arena run -m demo:plain -d demo:digits -n 10 -b digits-c -c contrast -o {tmp_path / 'out'} {words}"
    code, printed, complaints = invoke(*line.split())
    assert code != 0
    assert message in " ".join((printed + complaints).split())
    assert not (tmp_path / "out").exists()


def test_lists() -> None:
    for words, expected in (("settings", "label_shift"), ("methods", "Marsden"), ("settings gradual", "first = [5")):
        code, printed, _ = invoke("arena", *words.split())
        assert code == 0
        assert expected in printed


def test_a_folder_without_results(tmp_path: Path) -> None:
    code, printed, complaints = invoke("arena", "report", str(tmp_path))
    assert code != 0
    assert "arena.json" in printed + complaints
