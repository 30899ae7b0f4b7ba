"""What goes wrong on real machines, records: damaged, truncated, exchanged or emptied files are named, and mended."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from blemish.core.errors import InputError
from blemish.core.typed import as_json
from blemish.evaluation.info import ProtocolInfo, RecordsHeader
from blemish.evaluation.records import Records, read_header, read_records, records_bytes
from blemish.evaluation.runs import record_path
from fault_runs import FOG, RUN, invoke, the_run


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    assert invoke(*RUN, "--limit", 60, "-o", folder)[0] == 0
    return folder


def sample() -> Records:
    rng = np.random.default_rng(0)
    count = 20
    return Records(
        RecordsHeader("fog@1", protocol=ProtocolInfo(seed=3)),
        np.array([f"class/{i}.png" for i in range(count)]),
        rng.integers(0, 9, count).astype(np.int32),
        rng.integers(0, 9, (count, 5)).astype(np.int32),
        rng.random(count).astype(np.float32),
        rng.random(count).astype(np.float32),
    )


def test_no_flipped_bit_goes_unnoticed(tmp_path: Path) -> None:
    """Every byte of a file, data pages and footer alike, with one bit flipped, another bit from byte to byte."""
    content, path = records_bytes(sample()), tmp_path / "x.parquet"
    path.write_bytes(content)
    assert read_header(path) == sample().header
    unnoticed = []
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        for read in (read_header, read_records):
            with contextlib.suppress(InputError):
                read(path)
                unnoticed.append(place)
    assert not unnoticed


def test_records_without_a_digest_are_still_read(tmp_path: Path) -> None:
    """As blemish 0.1 wrote them before it sealed its files."""
    import pyarrow.parquet as pq

    path = tmp_path / "x.parquet"
    path.write_bytes(records_bytes(sample()))
    header = json.dumps({"format": 1, **as_json(sample().header)}).encode()
    pq.write_table(pq.read_table(path).replace_schema_metadata({b"blemish": header}), path)
    assert read_records(path).header == sample().header
    whole = json.dumps({"format": 1, "sealed": True, **as_json(sample().header)}).encode()
    pq.write_table(pq.read_table(path).replace_schema_metadata({b"blemish": whole}), path)
    with pytest.raises(InputError, match="the digest that was in it is gone"):
        read_records(path)


def _truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-50])


def _emptied(path: Path) -> None:
    path.write_bytes(b"")


def _flipped(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[200] ^= 16
    path.write_bytes(content)


def _of_another_condition(path: Path) -> None:
    path.write_bytes((path.parent / "clean.parquet").read_bytes())


def _a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("damage", [_truncated, _emptied, _flipped, _of_another_condition, _a_folder])
def test_damage_is_named_and_mended(tmp_path: Path, results: Path, damage: Callable[[Path], None]) -> None:
    """Scores, and the run that would go on, name the file; without it, it is measured again."""
    assert invoke(*RUN, "--limit", 60, "-o", tmp_path)[0] == 0
    path = record_path(the_run(tmp_path).folder, FOG)
    damage(path)
    code, said = invoke("score", tmp_path)
    if damage is _a_folder:
        assert "fog@1" in said or code == 2
    else:
        assert code == 2
        assert path.name in said
        code, said = invoke(*RUN, "--limit", 60, "-o", tmp_path)
        assert code == 2
        assert f"{path.name}" in said
        assert "remove the file to measure it again" in said
        path.unlink()
        assert invoke(*RUN, "--limit", 60, "-o", tmp_path)[0] == 0
        assert path.read_bytes() == record_path(the_run(results).folder, FOG).read_bytes()


def test_records_of_another_run(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 1)):
        assert invoke(*RUN, "--limit", 60, "--seed", seed, "-o", tmp_path / name)[0] == 0
    mine, other = (record_path(the_run(tmp_path / name).folder, FOG) for name in ("a", "b"))
    mine.write_bytes(other.read_bytes())
    code, said = invoke("score", tmp_path / "a")
    assert code == 2
    assert "its protocol is not that of" in said


@pytest.mark.parametrize("content", ["", "[]", "{", '{"model": 3}'])
def test_damaged_run_files(tmp_path: Path, results: Path, content: str) -> None:
    assert invoke(*RUN, "--limit", 60, "-o", tmp_path)[0] == 0
    path = the_run(tmp_path).folder / "run.json"
    path.write_text(content)
    for arguments in (["score", tmp_path], [*RUN, "--limit", 60, "-o", tmp_path]):
        code, said = invoke(*arguments)
        assert code == 2
        assert "run.json" in said
