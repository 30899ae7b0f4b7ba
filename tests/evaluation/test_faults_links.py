"""What goes wrong on real machines, links: a folder of results from elsewhere may hold links to a user's own files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from blemish.core.files import STAGING
from fault_runs import RUN, invoke
from quarter_nets import NET

CCC = ["-m", "python:quarter_net:build", "--device", "cpu", "-d", "data.npz"]

COMMANDS = {
    "run": [*RUN, "--limit", "20", "-o", "OUT"],
    "corrupt a tree": ["corrupt", "tree", "-o", "OUT", "-c", "fog", "-s", "1"],
    "corrupt a picture": ["corrupt", "tree/a/x.png", "-o", "OUT", "-c", "fog", "-s", "1"],
    "corrupt an array": ["corrupt", "data.npz", "-o", "OUT", "-c", "fog", "-s", "1"],
    "corrupt to sequences": ["corrupt", "tree", "-o", "OUT", "--sequence", "p:brightness"],
    "ccc calibrate": ["ccc", "calibrate", *CCC, "-c", "contrast,pixelate", "-n", "4", "-o", "OUT"],
    "ccc run": ["ccc", "run", "walk.json", *CCC, "--methods", "none", "-o", "OUT"],
    "ccc materialise": ["ccc", "materialise", "walk.json", "-d", "data.npz", "-o", "OUT", "--shard-images", "20"],
    "mscr": ["mscr", "-d", "data.npz", "--train", "1nn", "--runs", "1", "-k", "1", "--keep", "OUT"],
    "overlap": [
        "train-overlap",
        "-c",
        "fog,contrast",
        "-d",
        "data.npz",
        "-t",
        "data.npz",
        "--epochs",
        "1",
        "-o",
        "OUT",
    ],
}

LINKS = {
    "run": ["demo-plain", f"demo-plain/{STAGING}", "demo-plain/unfinished", "demo-plain/unfinished/fog@1.0"],
    "corrupt a tree": [STAGING, "fog", "fog/1/a", "blemish-files.jsonl", "failures.txt"],
    "corrupt a picture": [STAGING, "fog/1"],
    "corrupt an array": [STAGING, "fog.npy", "labels.npy"],
    "corrupt to sequences": [STAGING, "brightness/a/x"],
    "ccc calibrate": [STAGING, "calibration.json"],
    "ccc run": [STAGING, "checkpoint-0000000008.pt", f".run.json.{16 * '0'}.part"],
    "ccc materialise": [STAGING, "serial_00000.tar", "failures-0-of-2"],
    "mscr": ["1nn", f"1nn/{STAGING}"],
    "overlap": ["networks", f"networks/{STAGING}", "networks/models", f"results/fog/{STAGING}"],
}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Everything that the commands start from, and a thesis."""
    from blemish.data.demo import demo_picture
    from blemish.studies.streams.info import WalkInfo
    from blemish.studies.streams.walks import Walk, WalkStep

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "quarter_net.py").write_text(NET)
    images = np.random.default_rng(0).integers(60, 180, (8, 16, 16, 3)).astype(np.uint8)
    np.savez("data.npz", images=images, labels=np.arange(8) % 4)
    (tmp_path / "tree" / "a").mkdir(parents=True)
    demo_picture(32).save("tree/a/x.png")
    steps = [WalkStep("contrast", 1.0, "pixelate", 0.5, 8, 0.5, 0)]
    (tmp_path / "walk.json").write_text(Walk(tuple(steps), WalkInfo()).to_json())
    (tmp_path / "thesis" / "deep.0").mkdir(parents=True)
    for name in ("one.tex", "deep.0/two.tex", "lock", f"{16 * '0'}.part", "1.parquet"):
        (tmp_path / "thesis" / name).write_text("years of work")
    return tmp_path


def texts(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("command", "link"), [(name, link) for name, links in LINKS.items() for link in links])
@pytest.mark.parametrize("target", ["thesis", "thesis/one.tex"])
def test_nothing_of_the_user_is_touched(place: Path, command: str, link: str, target: str) -> None:
    arguments = ["out" if item == "OUT" else item for item in COMMANDS[command]]
    if command.startswith("corrupt"):  # without the manifest it would be refused anyway
        assert invoke(*arguments)[0] == 0
    before = texts(place / "thesis")
    path = place / "out" / link
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        path.rename(place / "moved")
    path.symlink_to(place / target)
    code, said = invoke(*arguments)
    assert code == 2, said
    assert f"{link} is a link to {place / target}" in said
    assert texts(place / "thesis") == before
