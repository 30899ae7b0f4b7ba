"""``blemish run`` and ``blemish benchmarks`` as a user types them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import blemish
from blemish.benchmarks.condition import parse_condition
from blemish.data.classes import natural_groups
from blemish.evaluation.runs import open_run
from command_line import command as blemish_command

FOG = """
name = "foggy"
metric = "error"
[protocol]
seed = 1
[[conditions]]
corruptions = ["fog"]
severities = [1, 3]
"""


@pytest.fixture
def fog(tmp_path: Path) -> Path:
    path = tmp_path / "fog.toml"
    path.write_text(FOG, encoding="utf-8")
    return path


def test_running_and_reading(tmp_path: Path, fog: Path) -> None:
    out = tmp_path / "results"
    result = blemish_command("run", fog, "-m", "demo:plain", "-d", "demo:digits", "-o", out, "-n", 60)
    assert result.exit_code == 0, result.output
    assert "mean error" in result.output.lower()
    run = open_run(out / "demo-plain")
    assert run.info.data.images == 60
    scored = blemish_command("score", out, "--json")
    assert scored.exit_code == 0, scored.output
    assert json.loads(scored.output)
    page = tmp_path / "report.html"
    assert blemish_command("report", out, "-o", page).exit_code == 0
    assert page.stat().st_size > 10_000


def test_until_goes_on(tmp_path: Path, fog: Path) -> None:
    out = tmp_path / "results"
    result = blemish_command(
        "run", fog, "-m", "demo:plain", "-d", "demo:digits", "-o", out, "-n", 100, "--until", 12, "--only", "fog@3"
    )
    assert result.exit_code == 0, result.output
    run = open_run(out / "demo-plain")
    assert run.info.until
    assert 1 < run.stages <= 4
    row = json.loads(blemish_command("score", out, "--json").output)
    text = json.dumps(row)
    assert "fog@3" in text


def test_stored_sets_beside_ours(tmp_path: Path, fog: Path) -> None:
    digits = tmp_path / "digits.npz"
    source = blemish_digits(40)
    np.savez(digits, images=source[0], labels=source[1])
    stored = tmp_path / "digits-c"
    made = blemish_command("corrupt", digits, "-o", stored, "-c", "fog", "-s", "1,3", "--seed", 1)
    assert made.exit_code == 0, made.output
    common = ("run", fog, "-m", "demo:plain", "-d", digits)
    assert blemish_command(*common, "-o", tmp_path / "ours").exit_code == 0
    result = blemish_command(*common, "-o", tmp_path / "theirs", "--stored", stored)
    assert result.exit_code == 0, result.output
    ours, theirs = (open_run(tmp_path / name / "demo-plain") for name in ("ours", "theirs"))
    assert theirs.info.protocol.pixels == "stored"
    for text in ("clean", "fog@1", "fog@3"):
        one, other = (run.records(parse_condition(text)) for run in (ours, theirs))
        np.testing.assert_array_equal(one.top5, other.top5)
    mixed = tmp_path / "other-c"
    assert blemish_command("corrupt", digits, "-o", mixed, "-c", "fog", "-s", "1,3", "--seed", 2).exit_code == 0
    (theirs.folder / "records" / "fog@3.parquet").unlink()
    other = blemish_command(*common, "-o", tmp_path / "theirs", "--stored", mixed)
    assert other.exit_code == 2
    assert "protocol.stored" in other.output
    assert blemish_command(*common, "-o", tmp_path / "theirs", "--stored", stored).exit_code == 0
    refused = blemish_command("compare", tmp_path / "ours", tmp_path / "theirs")
    assert refused.exit_code == 2
    assert "pixels" in refused.output
    assert blemish_command("compare", tmp_path / "ours", tmp_path / "theirs", "--anyway").exit_code == 0
    absent = blemish_command("run", "cifar10-c", *common[2:], "-o", tmp_path / "no", "--stored", stored)
    assert absent.exit_code == 2
    assert "no images of gaussian_noise@1" in absent.output


def blemish_digits(count: int) -> tuple[np.ndarray, np.ndarray]:
    from blemish.data.digits import digits_source

    source = digits_source()
    return np.stack([np.asarray(source.read(i)) for i in range(count)]), source.labels[:count]


MODEL = """
import torch

def build():
    class Brightest(torch.nn.Module):
        def forward(self, images):
            shade = (images.mean((1, 2, 3)) * 1000).long()
            return torch.nn.functional.one_hot(shade, 1000).float() * 9
    return Brightest()
"""


def test_natural_sets_with_their_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that names the shade of a picture, on pictures whose shade is their class: all right, unless masked."""
    from blemish.data.classes import imagenet_wnids

    wnids = imagenet_wnids()
    inside = [group[0] for group in natural_groups("imagenet-r") if 40 < group[0] < 900][:6]
    outside = [index for index in range(40, 900) if (index,) not in set(natural_groups("imagenet-r"))][:3]

    def picture(path: Path, index: int) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        level = (index + 0.5) / 1000 * 255
        low = int(level)
        pixels = np.full((64, 64, 3), low, dtype=np.uint8)
        pixels.reshape(-1)[: round((level - low) * pixels.size)] += 1
        Image.fromarray(pixels).save(path)

    for index in (*inside, *outside):
        picture(tmp_path / "val" / wnids[index] / "a.png", index)
    for index in inside:
        picture(tmp_path / "r" / wnids[index] / "b.png", index)
    (tmp_path / "shades.py").write_text(MODEL, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    result = blemish_command(
        "run", "imagenet-natural", "-m", "python:shades:build", "-d", "val", "-o", "out", "--mapping", "imagenet",
        "--natural", "imagenet-r=r", "--resize", 0, "--crop", 0,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    (place,) = Path("out").iterdir()
    run = open_run(place)
    assert [str(condition) for condition in run.conditions] == ["clean", "clean:imagenet-r", "natural:imagenet-r"]
    assert [len(run.records(condition)) for condition in run.conditions] == [9, 6, 6]
    for condition in run.conditions:
        assert run.records(condition).correct.all()
    labels = run.records(parse_condition("natural:imagenet-r")).labels
    groups = natural_groups("imagenet-r")
    assert [groups[label][0] for label in labels] == inside
    unmapped = blemish_command(
        "run", "imagenet-natural", "-m", "python:shades:build", "-d", "val", "-o", "out", "--natural", "imagenet-r=r",
        "--resize", 0, "--crop", 0,
    )  # fmt: skip
    assert unmapped.exit_code == 0, unmapped.output  # the rule for WordNet ids says the same: it is the same run
    missing = blemish_command("run", "imagenet-natural", "-m", "python:shades:build", "-d", "val", "-o", "out2")
    assert missing.exit_code == 2
    assert "needs --natural NAME=FOLDER" in missing.output


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["imagnet-c", "-m", "demo:plain", "-d", "demo:digits"], "did you mean imagenet-c"),
        (["FOG", "-m", "demo:plane", "-d", "demo:digits"], "expected plain or noisy"),
        (["FOG", "-m", "nothing.onnx", "-d", "demo:digits"], "nothing.onnx"),
        (["FOG", "-m", "demo:plain", "-d", "nowhere"], "nowhere: no such file or folder"),
        (["FOG", "-m", "demo:plain", "-d", "demo:digits", "--only", "snow"], "nothing in foggy is called 'snow'"),
        (["FOG", "-m", "demo:plain", "-d", "demo:digits", "--mean", "a"], "--mean 'a'"),
        (["FOG", "-m", "demo:plain", "-d", "demo:digits", "--storage", "gif"], "unknown storage 'gif'"),
        (["FOG", "-m", "demo:plain", "-d", "demo:digits", "--trained-on", "fogg"], "did you mean fog"),
        (["FOG", "-m", "demo:plain", "-d", "demo:digits", "--channels", "cmyk"], "cmyk"),
        (["FOG", "-m", "demo:plain", "-d", "demo:digits", "--natural", "imagenet-r"], "expected NAME=FOLDER"),
    ],
)
def test_bad_input_is_explained(tmp_path: Path, fog: Path, options: list[str], reason: str) -> None:
    arguments = [str(fog) if option == "FOG" else option for option in options]
    result = blemish_command("run", *arguments, "-o", tmp_path / "out")
    assert result.exit_code == 2, result.output
    assert reason in result.output
    assert not (tmp_path / "out").exists()


def test_benchmarks_are_listed_and_shown(tmp_path: Path) -> None:
    pytest.importorskip("tomli_w", reason="tomli-w is not installed, which writes benchmark files")
    listed = blemish_command("benchmarks")
    assert "imagenet-noc" in listed.output
    shown = blemish_command("benchmarks", "imagenet-c")
    assert "JPEG of quality 85" in shown.output
    assert "gaussian_noise" in shown.output
    mine = tmp_path / "mine.toml"
    mine.write_text(blemish_command("benchmarks", "imagenet-c", "--toml").output, encoding="utf-8")
    assert json.loads(blemish_command("benchmarks", mine, "--json").output)["conditions"][1] == "gaussian_noise@1"
    assert len(json.loads(blemish_command("benchmarks", "--json").output)) >= 8
    assert blemish.__version__ in blemish_command("--version").output
