"""Records of any task: written, read again, joined, and refused where they contradict their header."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from blemish.core.errors import InputError
from blemish.evaluation.answers import Answers, Lists, answers_bytes, join_answers, read_answers
from blemish.evaluation.info import RecordsHeader, TaskInfo
from blemish.evaluation.records import read_records

TASK = TaskInfo("boxes", {"value": "double", "scores": "list<float>", "seen": "bool"}, {"classes": ["cat"]})


def answers(*names: str) -> Answers:
    counts = np.arange(len(names), dtype=np.int64)
    return Answers(
        RecordsHeader("fog@3", task=TASK),
        np.array(names),
        {
            "scores": Lists(np.arange(counts.sum(), dtype=np.float32), counts),
            "seen": counts > 0,
            "value": counts / 3,
        },
    )


def test_what_is_written_is_read(tmp_path: Path) -> None:
    made = answers("a", "b", "c", "d")
    (tmp_path / "x.parquet").write_bytes(answers_bytes(made))
    read = read_answers(tmp_path / "x.parquet")
    assert read.header == made.header
    assert dict(read.table()) == dict(made.table())
    assert read.table()["scores"] == [[], [0.0], [1.0, 2.0], [3.0, 4.0, 5.0]]
    assert answers_bytes(read) == answers_bytes(made)
    assert answers_bytes(replace(read, header=made.header)) == answers_bytes(made)
    with pytest.raises(InputError, match="without label, top5"):
        read_records(tmp_path / "x.parquet")


def test_rows_are_taken_with_their_lists() -> None:
    taken = answers("d", "c", "b", "a").in_order()
    assert taken.images.tolist() == ["a", "b", "c", "d"]
    assert taken.table()["scores"] == [[3.0, 4.0, 5.0], [1.0, 2.0], [0.0], []]
    both = join_answers([answers("a", "b"), answers("c", "d")])
    assert both.table()["scores"] == [[], [0.0], [], [0.0]]
    with pytest.raises(InputError, match="image a has several records"):
        join_answers([answers("a"), answers("a")]).in_order()


def test_damage_and_contradictions_are_refused(tmp_path: Path) -> None:
    made = answers("a", "b")
    content = bytearray(answers_bytes(made))
    content[20] ^= 1
    (tmp_path / "bad.parquet").write_bytes(content)
    with pytest.raises(InputError, match="damaged records"):
        read_answers(tmp_path / "bad.parquet")
    with pytest.raises(InputError, match="expected value, scores, seen"):
        replace(made, columns={"seen": made["seen"]})
    with pytest.raises(InputError, match="2 entries for 1 images"):
        replace(made, images=made.images[:1])
    with pytest.raises(InputError, match="3 values in lists of 2"):
        Lists(np.arange(3), np.array([1, 1]))
