"""Every reader of files, given files that nobody wants: refused in one line, without a traceback, and in time."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from blemish.benchmarks import files as benchmark_files
from blemish.benchmarks.files import load_benchmark
from blemish.cli.main import app
from blemish.core.errors import InputError, StorageError
from blemish.core.states import read_state as read_checked_state
from blemish.corruptions.catalog import catalog
from blemish.data.array_source import array_source
from blemish.data.arrays import read_arrays, read_labels, read_npy
from blemish.data.demo import demo_picture
from blemish.data.folders import folder_source, table_source
from blemish.data.frost_download import fetch_frost
from blemish.data.manifest import SetInfo
from blemish.data.open import open_source, open_stored
from blemish.data.pictures import read_picture
from blemish.data.webdataset import shard_source
from blemish.evaluation.header import read_info
from blemish.evaluation.pictures import _mark
from blemish.evaluation.records import read_correct, read_header, read_records
from blemish.evaluation.runs import find_runs, open_run
from blemish.export.manifest import check_manifest
from blemish.models.open import open_model
from blemish.models.torch_module import read_state
from blemish.ops.photographs import FILES
from blemish.reports.answers import read_pictures
from blemish.studies.construction.categories import read_categories
from blemish.studies.construction.commands.overlap_scores import _from_correctness
from blemish.studies.construction.matrices import read_matrix
from blemish.studies.construction.tables import read_table
from blemish.studies.equivalence.sets import open_other
from blemish.studies.separation.files import find_separation
from blemish.studies.separation.sources import read_points
from blemish.studies.streams.calibration import read_calibration
from blemish.studies.streams.run import read_result
from blemish.studies.streams.surface_files import read_surface
from blemish.studies.streams.walks import read_walk
from hostile_files import SPECIAL, hostile_contents, not_for_ever, place_special
from report_runs import pictured_run
from synthetic_runs import write_run
from toy_runs import source

LONG = "x" * 300
DIGITS = Path(benchmark_files.__file__).with_name("digits-c.toml")


def npy(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def npz(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def encoded(file_format: str) -> bytes:
    buffer = io.BytesIO()
    demo_picture(16).save(buffer, file_format)
    return buffer.getvalue()


def shard() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, content in (("a.png", encoded("PNG")), ("a.cls", b"3")):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def saved(value: Any) -> bytes:
    buffer = io.BytesIO()
    torch.save(value, buffer)
    return buffer.getvalue()


IMAGES = np.zeros((4, 16, 16, 3), np.uint8)
CLEAN_AND_FOG = np.array(["clean", "fog"])
WALK = '{"format": 1, "closed": false, "protocol": {}, "columns": [], "steps": [["fog", 1.0, "snow", 0.5, 3, 0.4, 0]]}'
MODULE_TOML = b'model = "demo:plain"\nname = "mine"\n'


def one_layer() -> bytes:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Flatten", ["x"], ["y"])],
        "g",
        [onnx.helper.make_tensor_value_info("x", 1, ["N", 3, 8, 8])],
        [onnx.helper.make_tensor_value_info("y", 1, ["N", 192])],
    )
    made = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    return bytes(made.SerializeToString())


def nothing_beside(folder: Path) -> None:
    """Most files stand alone."""


@dataclass(frozen=True)
class Reader:
    """``read`` is given the path of a file of this name, which holds ``valid`` content."""

    read: Callable[[Path], Any]
    name: str
    valid: Callable[[], bytes] = bytes
    beside: Callable[[Path], None] = nothing_beside
    missing_is_fine: bool = False


def of(kind: str) -> Callable[[Path], Any]:
    return lambda path: open_model(str(path), device="cpu")


def run_file() -> bytes:
    info = {
        "benchmark": {"name": "b", "title": "", "metric": "error", "baseline": None, "conditions": ["clean", "fog@1"]},
        "protocol": {},
        "model": {"name": "m"},
        "data": {"name": "d", "images": 3},
        "stages": [{"images": 3}],
        "until": False,
    }
    return json.dumps(info).encode()


def records_of(folder: Path) -> bytes:
    run = write_run(folder, "recorded", {"clean": 0.5}, images=6)
    return (run.folder / "records" / "clean.parquet").read_bytes()


def pictures_beside(folder: Path) -> None:
    (folder / "a.png").write_bytes(encoded("PNG"))


def class_folders(folder: Path) -> None:
    for name in ("cat", "dog"):
        (folder / "tree" / name).mkdir(parents=True)
        (folder / "tree" / name / "a.png").write_bytes(encoded("PNG"))


def stored_arrays(folder: Path) -> None:
    np.save(folder / "labels.npy", np.zeros(5, np.int64))
    np.save(folder / "fog.npy", np.zeros((5, 16, 16, 3), np.uint8))


def parquet_beside(folder: Path) -> None:
    (folder / "records").mkdir()
    (folder / "records" / "clean.parquet").write_bytes(b"")


READERS = {
    "benchmark": Reader(load_benchmark, "b.toml", lambda: DIGITS.read_bytes()),
    "model settings": Reader(of("toml"), "m.toml", lambda: MODULE_TOML),
    "onnx": Reader(of("onnx"), "m.onnx", one_layer),
    "pt": Reader(of("pt"), "m.pt", lambda: saved({"a": torch.zeros(3)})),
    "torchscript": Reader(of("pts"), "m.pts", lambda: saved({"a": torch.zeros(3)})),
    "exported": Reader(of("pt2"), "m.pt2", lambda: saved({"a": torch.zeros(3)})),
    "tflite": Reader(of("tflite"), "m.tflite", lambda: b"\x1c\0\0\0TFL3" + bytes(100)),
    "joblib": Reader(of("joblib"), "m.joblib", lambda: saved(3)),
    "weights": Reader(read_state, "w.pt", lambda: saved({"a": torch.zeros(3)})),
    "array weights": Reader(read_state, "w.npz", lambda: npz(a=np.zeros(3))),
    "checkpoint": Reader(lambda path: read_checked_state(path, ("a",)), "c.pt", lambda: saved({"a": 1})),
    "picture": Reader(read_picture, "a.png", lambda: encoded("PNG")),
    "photograph": Reader(read_picture, "a.jpg", lambda: encoded("JPEG")),
    "webp": Reader(read_picture, "a.webp", lambda: encoded("WEBP")),
    "bitmap": Reader(read_picture, "a.bmp", lambda: encoded("BMP")),
    "ppm": Reader(read_picture, "a.ppm", lambda: encoded("PPM")),
    "gif": Reader(read_picture, "a.png", lambda: encoded("GIF")),
    "array": Reader(read_npy, "a.npy", lambda: npy(IMAGES)),
    "image array": Reader(read_arrays, "a.npy", lambda: npy(IMAGES)),
    "image archive": Reader(read_arrays, "a.npz", lambda: npz(images=IMAGES, labels=np.arange(4))),
    "source archive": Reader(array_source, "a.npz", lambda: npz(images=IMAGES, labels=np.arange(4))),
    "labels": Reader(read_labels, "y.npy", lambda: npy(np.arange(4))),
    "label table": Reader(
        lambda path: table_source(path.parent), "labels.csv", lambda: b"file,class_index\na.png,1\n", pictures_beside
    ),
    "named label table": Reader(open_source, "y.csv", lambda: b"file,class_index\na.png,1\n", pictures_beside),
    "mapping": Reader(
        lambda path: folder_source(path.parent / "tree", mapping=path),
        "m.json",
        lambda: b'{"cat": 0, "dog": 1}',
        class_folders,
    ),
    "mapping list": Reader(
        lambda path: folder_source(path.parent / "tree", mapping=path), "m.txt", lambda: b"cat\ndog\n", class_folders
    ),
    "shard": Reader(shard_source, "s.tar", shard),
    "stored manifest": Reader(
        lambda path: open_stored(path.parent),
        "blemish.json",
        lambda: b'{"protocol": {"severities": [1, 2, 3, 4, 5]}}',
        stored_arrays,
        missing_is_fine=True,
    ),
    "stored labels": Reader(
        lambda path: [open_stored(path.parent).source(c) for c in open_stored(path.parent).conditions()],
        "labels.npy",
        lambda: npy(np.zeros(5, np.int64)),
        lambda folder: np.save(folder / "fog.npy", np.zeros((5, 16, 16, 3), np.uint8)),
    ),
    "other set": Reader(lambda path: open_other(path, source(4)), "o.npz", lambda: npz(**{"fog@1": IMAGES})),
    "manifest": Reader(
        lambda path: check_manifest(path.parent, SetInfo(layout="tree", severities=(1,), corruptions={}), []),
        "blemish.json",
        lambda: b'{"protocol": {"layout": "tree", "severities": [1], "corruptions": {}}}',
        missing_is_fine=True,
    ),
    "run": Reader(lambda path: open_run(path.parent), "run.json", run_file),
    "runs": Reader(lambda path: find_runs([path.parent]), "run.json", run_file),
    "run to go on with": Reader(
        lambda path: read_info(path.parent),
        "run.json",
        run_file,
        parquet_beside,
    ),
    "mark of pictures": Reader(_mark, "pictures.npz", lambda: npz(data=np.asarray("x")), missing_is_fine=True),
    "walk": Reader(read_walk, "w.json", lambda: WALK.encode()),
    "calibration": Reader(lambda path: read_calibration(path.parent), "calibration.json", lambda: b"{}"),
    "surface": Reader(read_surface, "fog+snow.parquet"),
    "stream run": Reader(lambda path: read_result(path.parent), "run.json", lambda: b'{"methods": ["none"]}'),
    "stream checkpoint": Reader(
        lambda path: read_result(path.parent),
        "checkpoint.pt",
        lambda: saved({"done": 4, "methods": {}}),
        lambda folder: (folder / "run.json").write_text('{"methods": ["none"]}') and None,
    ),
    "accuracies": Reader(read_table, "a.csv", lambda: b"model,clean,fog\nm,0.5,0.4\n"),
    "matrix": Reader(read_matrix, "m.csv", lambda: b"corruption,fog,snow\nfog,1,0.5\nsnow,0.5,1\n"),
    "matrix as json": Reader(
        read_matrix, "m.json", lambda: b'{"corruptions": ["a", "b"], "scores": [[1, 0.5], [0.5, 1]]}'
    ),
    "categories": Reader(read_categories, "c.json", lambda: b'{"a": ["fog", "snow"], "b": ["frost"]}'),
    "separation": Reader(
        lambda path: find_separation([], [path.parent]), "separation.json", lambda: b"{}", missing_is_fine=True
    ),
    "mscr": Reader(lambda path: find_separation([], [path.parent]), "mscr.json", lambda: b"{}", missing_is_fine=True),
    "correctness": Reader(
        lambda path: _from_correctness(path, None, "clean", 0.01, 10, 0.95, 0),
        "c.npz",
        lambda: npz(correct=np.ones((2, 2, 5), bool), models=np.array(["standard", "fog"]), settings=CLEAN_AND_FOG),
    ),
    "photograph of frost": Reader(
        lambda path: catalog.with_frost(path.parent)["frost"](torch.zeros(1, 3, 32, 32), severity=3),
        "frost1.png",
        lambda: encoded("PNG"),
        lambda folder: [(folder / name).write_bytes(encoded("JPEG")) for name in FILES] and None,
    ),
    "wheel": Reader(lambda path: fetch_frost(wheel=path, folder=path.parent / "to"), "frost.whl"),
    "points": Reader(read_points, "p.npz", lambda: npz(x=np.zeros((4, 2)), y=np.arange(4))),
    "point array": Reader(
        lambda path: read_points(path, labels=path.parent / "y.npy"),
        "p.npy",
        lambda: npy(np.zeros((4, 2))),
        lambda folder: np.save(folder / "y.npy", np.arange(4)),
    ),
}


def attempt(read: Callable[[Path], Any], path: Path, what: str) -> str | None:
    """What is wrong with how a file was refused; a file may also be taken, where there is nothing wrong with it."""
    try:
        with not_for_ever():
            read(path)
    except (InputError, StorageError) as error:
        return None if str(error).strip() else f"{what}: refused without a word"
    except Exception as error:
        return f"{what}: {type(error).__name__}: {str(error)[:200]}"
    return "taken"


@pytest.mark.parametrize("name", READERS)
@pytest.mark.filterwarnings("ignore")
def test_readers(name: str, tmp_path: Path) -> None:
    reader = READERS[name]
    folder = tmp_path / "valid"
    folder.mkdir()
    reader.beside(folder)
    valid = records_of(tmp_path) if name == "surface" else reader.valid()
    problems = []
    for number, (what, content) in enumerate(hostile_contents(valid).items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        reader.beside(folder)
        (folder / reader.name).write_bytes(content)
        problems.append(attempt(reader.read, folder / reader.name, what))
    for what in SPECIAL:
        folder = tmp_path / what
        folder.mkdir()
        reader.beside(folder)
        path = folder / reader.name
        if path.exists():
            path.unlink()
        place_special(what, path)
        outcome = attempt(reader.read, path, what)
        nothing = what in ("nothing", "link to nothing", "link to itself") and reader.missing_is_fine
        harmless = reader.read in (_mark,) or name == "stages"
        problems.append(f"{what}: taken" if outcome == "taken" and not (nothing or harmless) else outcome)
    if reader.read.__name__ != "<lambda>":
        problems.append(attempt(reader.read, tmp_path / f"{LONG}{Path(reader.name).suffix}", "a long name"))
        problems.append(attempt(reader.read, tmp_path / f"a\0b{Path(reader.name).suffix}", "a name with a NUL"))
    assert not [problem for problem in problems if problem not in (None, "taken")]


@pytest.mark.parametrize("read", [read_header, read_records, read_correct, read_pictures])
@pytest.mark.filterwarnings("ignore")
def test_records_and_pictures(read: Callable[..., Any], tmp_path: Path) -> None:
    run = pictured_run(tmp_path, "m", {"clean": 0.8, "fog@1": 0.5})
    path = run.folder / "pictures.npz" if read is read_pictures else run.folder / "records" / "clean.parquet"
    valid = path.read_bytes()
    problems = []
    for what, content in hostile_contents(valid).items():
        path.write_bytes(content)
        problems.append(attempt(read, run if read is read_pictures else path, what))  # type: ignore[arg-type]
    for what in SPECIAL:
        path.unlink()
        place_special(what, path)
        outcome = attempt(read, run if read is read_pictures else path, what)  # type: ignore[arg-type]
        missing = read is read_pictures and what in ("nothing", "link to nothing", "link to itself")
        problems.append(f"{what}: taken" if outcome == "taken" and not missing else outcome)
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
            path.touch()
        elif not path.is_symlink() and not path.exists():
            path.touch()
    assert not [problem for problem in problems if problem not in (None, "taken")]


def test_the_check_can_fail(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"[" * 100_000)
    assert "RecursionError" in str(attempt(lambda path: json.loads(path.read_bytes()), tmp_path / "a.json", "brackets"))


COMMANDS = [
    ("run", "F.toml", "-m", "demo:plain", "-d", "demo:digits", "-o", "out"),
    ("run", "digits-c", "-m", "F.toml", "-d", "demo:digits", "-o", "out"),
    ("run", "digits-c", "-m", "F.onnx", "-d", "demo:digits", "-o", "out"),
    ("run", "digits-c", "-m", "F.pt", "-d", "demo:digits", "-o", "out"),
    ("run", "digits-c", "-m", "python:json:loads", "--weights", "F.pt", "-d", "demo:digits", "-o", "out"),
    ("run", "digits-c", "-m", "demo:plain", "-d", "F.npz", "-o", "out"),
    ("run", "digits-c", "-m", "demo:plain", "-d", "F.tar", "-o", "out"),
    ("run", "digits-c", "-m", "demo:plain", "-d", "F.csv", "-o", "out"),
    ("run", "digits-c", "-m", "demo:plain", "-d", "a.npy", "--labels", "F.npy", "-o", "out"),
    ("run", "digits-c", "-m", "demo:plain", "-d", "tree", "--mapping", "F.json", "-o", "out"),
    ("benchmarks", "F.toml"),
    ("corrupt", "F.png", "-o", "out.png", "-c", "fog", "-s", "1"),
    ("corrupt", "F.npy", "-o", "out"),
    ("show", "F.png", "-o", "out.png"),
    ("separation", "-d", "F.npz"),
    ("equivalence", "-d", "a.npy", "--labels", "y.npy", "--stored", "F.npz"),
    ("build", "overlap-scores", "F.csv", "-o", "out.csv"),
    ("build", "overlap-scores", "F.npz", "-o", "out.csv"),
    ("build", "select", "F.csv", "-o", "out.toml"),
    ("build", "syn2nat", "F.csv", "F.json", "-o", "out.toml"),
    ("ccc", "run", "F.json", "-m", "demo:plain", "-d", "demo:digits", "-o", "out"),
    ("fetch-frost", "--from", "F.whl"),
]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands(command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One line on stderr, exit code 2, and no traceback."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    np.save("a.npy", IMAGES)
    np.save("y.npy", np.arange(4))
    class_folders(tmp_path)
    for suffix in ("toml", "onnx", "pt", "npz", "npy", "tar", "csv", "json", "png", "whl"):
        (tmp_path / f"brackets.{suffix}").write_bytes(b"[" * 100_000)
        place_special("pipe", tmp_path / f"pipe.{suffix}")
        place_special("endless device", tmp_path / f"device.{suffix}")
    for kind in ("brackets", "pipe", "device"):
        with not_for_ever():
            result = CliRunner().invoke(app, [word.replace("F.", f"{kind}.") for word in command])
        assert isinstance(result.exception, SystemExit), result.exception
        assert result.exit_code == 2
        assert result.stderr.startswith("error: ")
        assert result.stderr.count("\n") == 1
