"""Files in JSON with an entry of the wrong kind, or without it: refused in words, wherever the entry is."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from blemish.core.errors import InputError
from blemish.core.reading import parse_json, parse_toml
from blemish.core.typed import read_typed
from blemish.data.manifest import SetInfo
from blemish.evaluation.runs import open_run
from blemish.export.manifest import check_manifest
from blemish.metrics.compare import compare
from blemish.models.base import ModelInfo
from blemish.reports.reading import read_all
from blemish.reports.score_tables import score_tables
from blemish.reports.table_files import comparison_json, scores_csv, scores_json
from blemish.reports.tables import markdown
from blemish.studies.construction.categories import read_categories
from blemish.studies.construction.matrices import read_matrix
from blemish.studies.streams.commands.options import other_model_text
from blemish.studies.streams.images import from_tensor
from blemish.studies.streams.protocols import protocol_differences
from blemish.studies.streams.stream import Stream
from blemish.studies.streams.walks import read_walk
from hostile_files import not_for_ever
from synthetic_runs import write_run

GONE = object()
VALUES = [GONE, None, [], {}, "x\ud800", -1, True, [None], {"a": None}, 2**63, 1e308]

Place = tuple[str | int, ...]


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Every entry of a value, of a list the first."""
    yield place
    inside = value.items() if isinstance(value, dict) else list(enumerate(value))[:1] if isinstance(value, list) else ()
    for name, item in inside:
        yield from places(item, (*place, name))


def changed(value: Any, place: Place, new: Any) -> Any:
    if not place:
        return new
    copied = copy.deepcopy(value)
    holder = copied
    for name in place[:-1]:
        holder = holder[name]
    if new is GONE:
        del holder[place[-1]]
    else:
        holder[place[-1]] = new
    return copied


def tracebacks(valid: Any, path: Path, read: Callable[[], Any], values: list[Any] = VALUES) -> list[str]:
    """What ends in anything but a refusal."""
    found = []
    path.write_text(json.dumps(valid))
    read()
    for place in places(valid):
        for value in values:
            if value is GONE and not place:
                continue
            path.write_text(json.dumps(changed(valid, place, value)))
            try:
                with not_for_ever():
                    read()
            except InputError:
                continue
            except Exception as error:
                found.append(f"{place} = {value!r}: {type(error).__name__}: {error}")
    return found


def test_runs(tmp_path: Path) -> None:
    run = write_run(tmp_path, "m", {"clean": 0.8, "fog@1": 0.5}, images=6)
    other = write_run(tmp_path, "o", {"clean": 0.8, "fog@1": 0.5}, images=6)
    valid = json.loads((run.folder / "run.json").read_text())
    valid |= {"until": False, "classes": ["a", "b"], "benchmark": {**valid["benchmark"], "part_of": None}}
    valid["benchmark"]["part_of"] = {"name": "whole", "conditions": 7}
    del valid["made_with"]

    def read() -> None:
        readings = read_all([open_run(run.folder), other], replicates=2)
        markdown(score_tables(readings))
        scores_json(readings)
        scores_csv(readings)
        comparison_json(compare(readings[0].run, other, replicates=2, allow_mismatch=True))

    assert not tracebacks(valid, run.folder / "run.json", read, [GONE, [None]])


def test_no_stages(tmp_path: Path) -> None:
    run = write_run(tmp_path, "m", {"clean": 0.8, "fog@1": 0.5}, images=6)
    path = run.folder / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "stages": []}))
    with pytest.raises(InputError, match="stages is empty"):
        open_run(run.folder)


def test_walks(tmp_path: Path) -> None:
    model = {"name": "x", "kind": "torch"}
    valid = {
        "format": 1,
        "closed": False,
        "protocol": {
            "target": 0.4,
            "subset": 5,
            "calibration": {"model": model, "preset": None, "shape": [3, 8, 8], "preparation": "as they are"},
        },
        "seams": {"count": 1, "jumping": 1, "mean": 1.0, "largest": 1.0, "closing": None},
        "columns": ["first"],
        "steps": [["fog", 1.0, "snow", 0.5, 3, 0.4, 0], ["snow", 1.0, "fog", 0.0, 3, 0.4, 1]],
    }
    path = tmp_path / "w.json"
    images = from_tensor(torch.zeros(2, 3, 8, 8, dtype=torch.uint8), [0, 1])

    def read() -> None:
        walk = read_walk(path)
        str(walk.accuracy)
        other_model_text(walk, read_typed(ModelInfo, model))
        stream = Stream(images, walk)
        stream.describe()
        protocol_differences(stream)

    assert not tracebacks(valid, path, read)


def test_manifests(tmp_path: Path) -> None:
    wanted = {"layout": "tree", "seed": 0, "severities": [1, 2.5], "corruptions": {"fog": {"version": 1}}}
    path = tmp_path / "blemish.json"
    assert not tracebacks({"protocol": wanted}, path, lambda: check_manifest(tmp_path, read_typed(SetInfo, wanted), []))


def test_matrices_and_categories(tmp_path: Path) -> None:
    undefined = [{"pair": ["a", "b"], "reason": "x"}]
    valid = {"corruptions": ["a", "b"], "scores": [[1, None], [None, 1]], "undefined": undefined}
    assert not tracebacks(valid, tmp_path / "m.json", lambda: read_matrix(tmp_path / "m.json"))
    valid = {"a": ["fog", "snow"], "b": ["frost"]}
    assert not tracebacks(valid, tmp_path / "c.json", lambda: read_categories(tmp_path / "c.json"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"a":' * 100_000, "nested too deeply"),
        ("9" * 5000, "5000 digits"),
        (f"{2**64}", "20 digits"),
        ("1e999", "too large"),
        ("-1e999", "too large"),
        ("NaN", "NaN in place of a number"),
        ("Infinity", "Infinity in place of a number"),
        ("", "Expecting value"),
    ],
)
def test_json(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_json(text)


def test_json_that_is_fine() -> None:
    assert parse_json(f"[{2**64 - 1}, {-(2**63)}, 1e308, null, 0.1]") == [2**64 - 1, -(2**63), 1e308, None, 0.1]
    assert parse_json("[NaN]", nan=True) == [None]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a = " + "[" * 100_000, "nested too deeply"),
        ("a = " + "9" * 5000, "integer string conversion"),
        ("a = 0x" + "f" * 5000, "20000 bits"),
        ("b = [{a = 0x" + "f" * 5000 + "}]", "20000 bits"),
        ("a" + ".a" * 100_000 + " = 1", "a key of more than 32 parts"),
        ("[" + '"a".' * 100_000 + "b]", "a key of more than 32 parts"),
        ("x = {" + "'a' . " * 100_000 + "b = 1}", "a key of more than 32 parts"),
    ],
)
def test_toml(text: str, reason: str) -> None:
    with not_for_ever(), pytest.raises(ValueError, match=reason):
        parse_toml(text)
