"""What the loggers under ``blemish`` say, to those who listen."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest
from PIL import Image

from blemish.data.cache import load
from blemish.data.open import open_source
from blemish.evaluation.executors.in_process import InProcess
from blemish.evaluation.executors.processes import Processes
from blemish.export import corrupt_tree, make_recipe
from blemish.models.open import open_model
from execution_jobs import Squares


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, logger="blemish")
    return caplog


def test_what_is_opened_and_where(said: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    source = open_source("demo:digits")
    assert said.messages == [f"opened demo:digits: {len(source)} images"]
    open_model("demo:plain", device="cpu")
    assert said.messages[1] == "opening model demo:plain on cpu"
    assert re.fullmatch(r"model demo:plain was opened in [\d.]+ s", said.messages[2])
    load(source.take(range(3)), workers=1, folder=tmp_path, limit=0)
    assert said.messages[3] == f"more than 0 bytes of pixels: they go to a file in {tmp_path}"
    assert re.fullmatch(r"3 images were decoded by 1 threads in [\d.]+ s", said.messages[4])
    levels = {record.levelname for record in said.records if record.msg.endswith("%.2f s")}
    assert levels == {"DEBUG"}


def test_what_is_written_and_skipped(said: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    (tmp_path / "src" / "class").mkdir(parents=True)
    Image.new("RGB", (24, 24)).save(tmp_path / "src" / "class" / "black.png")
    recipe = make_recipe(["fog"], [1])
    for written in (True, False):
        said.clear()
        outcome = corrupt_tree(tmp_path / "src", tmp_path / "dst", recipe)
        count = outcome.written if written else outcome.skipped
        assert count
        counts = f"{count} written, 0 skipped" if written else f"0 written, {count} skipped"
        assert f"{tmp_path / 'dst'}: {counts}, 0 failed" in said.messages


def test_what_is_tried_again(said: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    list(InProcess(retries=1).run(Squares(tmp_path, fail_always=(2,)), range(3)))
    assert said.messages == [f"2 failed, attempt {number} of 2: ZeroDivisionError: unit 2" for number in (1, 2)]


def test_workers_that_are_started_and_lost(said: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    outcomes = list(Processes(1, threads=1).run(Squares(tmp_path, die=(0,)), range(2)))
    assert len(outcomes) == 2
    assert said.messages == [
        "worker 1 of 1 starts with 1 threads",
        "worker 1 is lost: a worker process was ended by SIGKILL; perhaps memory was short: try fewer jobs",
        "0 is tried again",
        "worker 1 of 1 starts with 1 threads",
    ]
