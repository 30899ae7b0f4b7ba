"""Names that are not UTF-8, or longer than file systems take: used where they can be, refused in words elsewhere."""

from __future__ import annotations

import io
import json
import os
import sys
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import command_line
from blemish.benchmarks.condition import parse_condition
from blemish.benchmarks.files import load_benchmark
from blemish.core.errors import BlemishError
from blemish.data.demo import demo_picture
from blemish.data.folders import folder_source
from blemish.data.open import open_source, open_stored
from blemish.data.pictures import picture_id
from blemish.data.webdataset import shard_source
from blemish.evaluation.run import evaluate
from blemish.evaluation.runs import find_runs, open_run, record_path
from blemish.models.open import open_model
from blemish.studies.streams.walks import read_walk
from toy_runs import benchmark, model, source

BYTES = "caf\udce9"
LONG = "x" * 300

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names themselves")


invoke = partial(command_line.invoke, columns=200)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / f"tree-{BYTES}"
    for name in (BYTES, "dog"):
        (folder / name).mkdir(parents=True)
        for file in (BYTES, "b"):
            # Pillow writes under the name of a stream.
            with (folder / name / f"{file}.png").open("wb") as stream:
                demo_picture(32).save(stream, "PNG")
    return folder


class TestNotUtf8:
    def test_sources_name_them_in_text(self, tree: Path) -> None:
        found = folder_source(tree)
        assert found.names[0] == "caf\\xe9/b.png"
        assert found.classes == ("caf\\xe9", "dog")
        assert found.name == "tree-caf\\xe9"
        assert int(found.ids[0]) == picture_id(f"{BYTES}/b.png")
        assert found.read(1).size == (32, 32)
        for name in (found.name, *found.names, *found.classes):
            name.encode()

    def test_shards(self, tmp_path: Path) -> None:
        picture = io.BytesIO()
        Image.new("RGB", (16, 16)).save(picture, "PNG")
        with tarfile.open(tmp_path / "s.tar", "w") as archive:
            for suffix, content in (("png", picture.getvalue()), ("cls", b"0")):
                entry = tarfile.TarInfo(f"{BYTES}.{suffix}")
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        found = shard_source(tmp_path / "s.tar")
        assert found.names == ("caf\\xe9.png",)
        assert found.read(0).size == (16, 16)

    def test_names_of_classes_in_json(self, tree: Path, tmp_path: Path) -> None:
        """JSON can hold half a pair of surrogates, which no file of results could."""
        (tmp_path / "m.json").write_text('{"dog": 0, "\\udce9": 2, "caf\\udce9": 1, "\\ud800": 3}')
        assert folder_source(tree, mapping=tmp_path / "m.json").classes == ("dog", "caf\\xe9", "\\xe9", "\\ud800")

    def test_a_run(self, tree: Path, tmp_path: Path) -> None:
        data = folder_source(tree, mapping={BYTES: 0, "dog": 6})
        run = evaluate(model(name=f"net-{BYTES}"), data, benchmark("fog@1"), out=tmp_path / BYTES, allow_chance=True)
        assert run.name == "net-caf\\xe9"
        again = open_run(run.folder)
        assert again.records(again.conditions[0]).images.tolist() == sorted(folder_source(tree).names)
        assert json.loads((run.folder / "run.json").read_text())["data"]["name"] == "tree-caf\\xe9"

    def test_commands(self, tree: Path, tmp_path: Path) -> None:
        out = tmp_path / f"out-{BYTES}"
        code, _, errors = invoke("corrupt", tree, "-o", out, "-c", "fog", "-s", "1", "--format", "png")
        assert (code, errors) == (0, "")
        assert (out / "fog" / "1" / BYTES / f"{BYTES}.png").is_file()
        code, output, _ = invoke("corrupt", tree, "-o", out, "-c", "fog", "-s", "1", "--format", "png")
        assert code == 0
        assert "4 were there already" in output
        stored = open_stored(out).source("fog@1", like=folder_source(tree))
        assert stored.names == folder_source(tree).names
        code, _, errors = invoke("separation", "-d", tree, "-o", tmp_path / "s.json")
        assert code == 0
        assert json.loads((tmp_path / "s.json").read_text())["data"] == f"tree-{BYTES}"
        picture = tree / BYTES / f"{BYTES}.png"
        code, output, errors = invoke("show", picture, "-o", out / f"{BYTES}.png", "-c", "fog", "-s", "1")
        assert (code, errors) == (0, "")


READERS: dict[str, Callable[[str], Any]] = {
    "source": open_source,
    "picture source": lambda name: open_source(f"{name}.png"),
    "array source": lambda name: open_source(f"{name}.npz"),
    "shards": lambda name: open_source(f"{name}.tar"),
    "table": lambda name: open_source(f"{name}.csv"),
    "stored": open_stored,
    "model": open_model,
    "model file": lambda name: open_model(f"{name}.onnx"),
    "settings": lambda name: open_model(f"{name}.toml"),
    "benchmark": load_benchmark,
    "benchmark file": lambda name: load_benchmark(f"{name}.toml"),
    "run": open_run,
    "runs": lambda name: find_runs([name]),
    "walk": read_walk,
    "mapping": lambda name: folder_source(Path(__file__).parent, mapping=name),
    "out": lambda name: evaluate(model(), source(7), benchmark("fog@1"), out=name),
}


@pytest.mark.parametrize("name", [LONG, "a\0b", "é" * 200], ids=["long", "NUL", "long in bytes"])
@pytest.mark.parametrize("reader", READERS)
def test_names_that_no_file_can_have(reader: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BlemishError):
        READERS[reader](name)


class TestLong:
    def test_names_of_conditions(self, tmp_path: Path) -> None:
        short = parse_condition("fog@1+jpeg_compression@2.5")
        assert short.slug == "fog@1+jpeg_compression@2.5"
        texts = ["+".join([f"fog@{severity}", *["jpeg_compression@2.5"] * 14]) for severity in (1, 2)]
        slugs = [parse_condition(text).slug for text in texts]
        assert len(set(slugs)) == 2
        assert all(len(slug.encode()) <= 180 for slug in slugs)
        assert slugs[0].startswith("fog@1+jpeg_compression@2.5")
        record_path(tmp_path, parse_condition(texts[0]), 12).parent.mkdir()
        record_path(tmp_path, parse_condition(texts[0]), 12).touch()

    def test_a_run_of_them(self, tmp_path: Path) -> None:
        text = "+".join(["jpeg_compression@1"] * 15)
        run = evaluate(model(name="é" * 300), source(7), benchmark(text), out=tmp_path)
        assert len(os.fsencode(run.folder.name)) <= 255
        assert len(open_run(run.folder).records(parse_condition(text))) == 7

    @pytest.mark.parametrize("letter", ["x", "é"])
    def test_pictures(self, letter: str, tmp_path: Path) -> None:
        """The longest name there is: copies in another format would need a longer one."""
        room = 251 // len(letter.encode())
        folder = tmp_path / "tree" / (letter * room)
        folder.mkdir(parents=True)
        demo_picture(16).save(folder / f"{letter * room}.png")
        demo_picture(16).save(folder / "a.png")
        code, _, errors = invoke(
            "corrupt", tmp_path / "tree", "-o", tmp_path / "out", "-c", "fog", "-s", "1", "--format", "png"
        )
        assert (code, errors) == (0, "")
        assert len(list((tmp_path / "out").rglob("*.png"))) == 2

    @pytest.mark.parametrize(
        "arguments",
        [
            ("run", LONG, "-m", "demo:plain", "-d", "demo:digits", "-o", "out"),
            ("run", "digits-c", "-m", LONG, "-d", "demo:digits", "-o", "out"),
            ("run", "digits-c", "-m", "demo:plain", "-d", LONG, "-o", "out"),
            ("run", "digits-c", "-m", "demo:plain", "-d", "demo:digits", "--only", "fog@1", "-n", "20", "-o", LONG),
            ("run", "digits-c", "-m", "demo:plain", "-d", "a.npz", "--labels", LONG, "-o", "out"),
            ("run", "digits-c", "-m", "demo:plain", "-d", "a.npz", "--mapping", LONG, "-o", "out"),
            ("run", "digits-c", "-m", "python:x:y", "--weights", LONG, "-d", "a.npz", "-o", "out"),
            ("run", "digits-c", "-m", "demo:plain", "-d", "a.npz", "--stored", LONG, "-o", "out"),
            ("run", "digits-c", "-m", "demo:plain", "-d", "a.npz", "--frost", LONG, "-o", "out"),
            (
                "run",
                "imagenet-natural",
                "-m",
                "demo:plain",
                "-d",
                "a.npz",
                "--natural",
                f"imagenet-a={LONG}",
                "-o",
                "o",
            ),
            ("score", LONG),
            ("score", "out", "--baseline", LONG),
            ("compare", LONG, LONG),
            ("report", LONG, "-o", "r.html"),
            ("report", "out", "-o", f"{LONG}.html"),
            ("benchmarks", LONG),
            ("benchmarks", f"{LONG}.toml"),
            ("corrupt", LONG, "-o", "out"),
            ("corrupt", "a.npz", "-o", LONG),
            ("corrupt", "a.png", "-o", f"{LONG}.png", "-c", "fog", "-s", "1"),
            ("corrupt", LONG, "-o", "out", "--sequence", "p:tilt"),
            ("show", LONG),
            ("show", "a.png", "-o", f"{LONG}.png"),
            ("separation", "-d", f"{LONG}.npz"),
            ("separation", "-d", "a.npz", "--labels", LONG),
            ("separation", "-d", "a.npz", "-o", f"{LONG}.json"),
            ("separation", "-d", "a.npz", "--figures", LONG),
            ("mscr", "-d", "a.npz", "-m", LONG, "--epsilon", "0.1"),
            ("equivalence", "-d", "a.npz", "--stored", LONG),
            ("equivalence", "-d", LONG, "--stored", "a.npz"),
            ("build", "gather", LONG, "-o", "a.csv"),
            ("build", "table", "imagenet-c", "-o", f"{LONG}.csv"),
            ("build", "overlap-scores", LONG, "-o", "m.csv"),
            ("build", "overlap-scores", f"{LONG}.npz", "-o", "m.csv"),
            ("build", "select", LONG, "-o", "m.toml"),
            ("build", "categories", LONG, "-o", "m.json"),
            ("build", "match-severities", "-c", "fog", "-m", "demo:plain", "-d", LONG, "-o", "r.csv"),
            ("ccc", "calibrate", "-m", "demo:plain", "-d", LONG, "-o", "cal"),
            ("ccc", "walk", LONG, "-o", "w.json", "--target", "0.4"),
            ("ccc", "run", LONG, "-m", "demo:plain", "-d", "a.npz", "-o", "out"),
            ("ccc", "materialise", LONG, "-d", "a.npz", "-o", "out"),
            ("train-overlap", "-c", "fog,snow", "-d", LONG, "-t", LONG, "-o", "out"),
        ],
        ids=lambda arguments: " ".join(word[:12] for word in arguments[:5]),
    )
    def test_commands(self, arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        np.savez("a.npz", images=np.zeros((4, 16, 16, 3), np.uint8), labels=np.arange(4))
        demo_picture(16).save("a.png")
        code, _, errors = invoke(*arguments)
        assert code == 2
        assert errors.strip()
