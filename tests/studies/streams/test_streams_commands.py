"""The commands of ``blemish ccc``, from calibration to shards, on a small network."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from blemish.studies.streams.commands.ccc import ccc_app
from blemish.studies.streams.run import read_result
from blemish.studies.streams.walks import read_walk
from quarter_nets import write_quarters

runner = CliRunner()


def invoke(*arguments: object) -> tuple[int, str, str]:
    result = runner.invoke(ccc_app, [str(argument) for argument in arguments], env={"COLUMNS": "160"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pictures of which one quarter is the brightest, and a network that finds it while it can."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    write_quarters(tmp_path)
    return tmp_path


MODEL = ("-m", "python:quarter_net:build", "--device", "cpu")


def test_from_calibration_to_shards(place: Path) -> None:
    common = ("-d", "data.npz")
    names = "contrast,gaussian_noise,pixelate"
    calibrate = ("calibrate", *MODEL, *common, "-c", names, "-n", 20, "--targets", "0.6", "-o", "cal")
    code, output, _ = invoke(*calibrate)
    assert code == 0
    assert "6 surfaces in cal" in output
    assert "on 20 images each" in output
    # Wilson's interval of 10 of 20, worked by hand: z² = 3.8415, half its width 1.96 · √(.0125 + .0024) / 1.192.
    assert "known to within 20.1 points" in output
    assert "more than by chance" in output
    assert invoke(*calibrate)[1] == output
    code, output, _ = invoke(
        "walk", "cal", "--target", "0.6", "--speed", 5, "--length", 200, "--closed", "-o", "walk.json", "--figure",
        "walk.png", "--surface", "surface.svg",
    )  # fmt: skip
    assert code == 0
    walk = read_walk(place / "walk.json")
    assert f"{len(walk):,} images in {len(walk.steps)} steps, closed, pointwise paths, joint ends" in output
    seams = walk.seams
    assert (
        f"{seams.jumping} of {seams.count} jump, by {seams.largest:g} in severity at most, {seams.mean:.2f} on"
        in output
    )
    assert f", {seams.closing:g} from its end to its beginning" in output
    assert " at 95 %), target 60 %" in output
    assert walk.protocol.calibration.model.name == "net"
    assert (place / "walk.png").stat().st_size > 5000
    assert b"<svg" in (place / "surface.svg").read_bytes()
    arguments = (
        "run", "walk.json", *MODEL, *common, "-o", "run", "--methods", "all", "--tuned-for", "cifar", "--length", 60,
        "--batch-size", 20, "--figure", "run.png", "--reset", 2,
    )  # fmt: skip
    code, output, _ = invoke(*arguments)
    assert code == 0
    assert "running mean over 6 of 60 images" in output
    assert "rdumb" in output
    scores = json.loads((place / "run" / "summary.json").read_text())
    result = read_result(place / "run")
    assert scores["methods"]["none"]["accuracy"] == pytest.approx(result.correct("none").mean())
    assert (place / "run.png").stat().st_size > 5000
    assert "another model" not in output
    assert invoke(*arguments)[1] == output
    code, output, _ = invoke(
        "run", "walk.json", *MODEL, "--mean", "0.4", *common, "-o", "other", "--methods", "none", "--length", 20
    )
    assert code == 0
    assert "calibrated with another model (net; other preprocessing)" in output
    shards = ("materialise", "walk.json", *common, "-o", "shards", "--length", 60, "--shard-images", 25)
    code, output, errors = invoke(*shards)
    assert code == 2
    assert "not shown as the walk was calibrated (jpeg was false, now true); expected the same" in errors
    code, output, _ = invoke(*shards, "--anyway")
    assert code == 0
    assert "not shown as the walk was calibrated (jpeg was false, now true): its target accuracy need not" in output
    assert "wrote 60 images to shards, 0 were there already" in output
    assert len(list((place / "shards").glob("serial_*.tar"))) == 3


def test_walks_over_cells_that_were_not_measured_say_so(place: Path) -> None:
    calibrate = ("calibrate", *MODEL, "-d", "data.npz", "-c", "contrast,gaussian_noise", "-n", 20, "--margin", "0.01")
    assert invoke(*calibrate, "--targets", "0.6", "-o", "cal")[0] == 0
    walk = ("walk", "cal", "--speed", 5, "--length", 20, "-o", "walk.json")
    assert "interpolated" not in invoke(*walk, "--target", "0.6")[1]
    code, output, _ = invoke(*walk, "--target", "0.8")
    assert code == 0
    assert "interpolated, not measured" in output
    assert "at 95 %" not in output
    assert invoke(*calibrate, "--targets", "0.6", "--objective", "mean", "-o", "mean")[0] == 0
    walk = ("walk", "mean", "--speed", 5, "--length", 20, "-o", "walk.json", "--target", "0.6", "--objective", "mean")
    assert "interpolated" not in invoke(*walk)[1]


def test_refusals_are_one_line(place: Path) -> None:
    for arguments, message in (
        (("walk", "gone", "--target", "0.4", "-o", "w.json"), "no calibration.json in it"),
        (("run", "gone.json", *MODEL, "-d", "data.npz", "-o", "run"), "gone.json: no such file"),
        (("calibrate", *MODEL, "-d", "data.npz", "-c", "fogg", "-o", "cal"), "did you mean fog"),
        (("calibrate", *MODEL, "-d", "data.npz", "-c", "fog", "--set", "easy", "-o", "cal"), "one or the other"),
        (("calibrate", *MODEL, "-d", "data.npz", "-c", "fog,snow", "--targets", "40", "-o", "cal"), "expected shares"),
        (
            (
                "calibrate",
                *MODEL,
                "-d",
                "data.npz",
                "-c",
                "fog,snow",
                "--targets",
                "0.4",
                "--objective",
                "best",
                "-o",
                "cal",
            ),
            "--objective best; expected one of mean",
        ),
        (("materialise", "w.json", "-d", "data.npz", "-o", "s", "--part", "1"), "--part 1; expected a share"),
    ):
        code, _, errors = invoke(*arguments)
        assert code == 2
        assert message in errors
        assert errors.startswith("error: ")
        assert errors.count("\n") == 1
    assert not (place / "cal").exists()


def test_a_model_that_cannot_be_adapted(place: Path) -> None:
    invoke("calibrate", *MODEL, "-d", "data.npz", "-c", "contrast,fog", "-n", 8, "--targets", "0.6", "-o", "cal")
    invoke("walk", "cal", "--target", "0.6", "--speed", 5, "--length", 50, "-o", "walk.json")
    model = ("-m", "python:quarter_net:function", "--device", "cpu")
    code, _, errors = invoke("run", "walk.json", *model, "-d", "data.npz", "-o", "run")
    assert code == 2
    assert "only those can be adapted" in errors
    code, _, errors = invoke("walk", "cal", "-o", "walk.json")
    assert code == 2
    assert "no target accuracy; expected --target" in errors


def test_methods_that_a_network_does_not_suit(place: Path) -> None:
    """Left out with a word where nobody named them, refused by name where somebody did."""
    common = ("-m", "python:quarter_net:unnormalised", "--device", "cpu", "-d", "data.npz")
    invoke("calibrate", *common, "-c", "contrast,fog", "-n", 8, "--targets", "0.3", "-o", "cal")
    invoke("walk", "cal", "--target", "0.3", "--speed", 5, "--length", 40, "-o", "walk.json")
    run = ("run", "walk.json", *common, "--length", 40, "--batch-size", 20)
    code, output, errors = invoke(*run, "-o", "all", "--methods", "all")
    assert code == 0
    made = list(json.loads((place / "all" / "summary.json").read_text())["methods"])
    assert made == ["none", "t3a", "lame", "cotta", "rmt", "adacontrast"]
    assert "left out, because Sequential has no batch norm layers: bn, norm_alpha, norm_ema, rotta, note\n" in output
    assert "left out, because it takes 129 passes an image; name it to run it: memo\n" in output
    lack = "Sequential has no scales and shifts of normalisation layers"
    assert f"left out, because {lack}: tent, rpl, cpl, eta, eata, rdumb, sar, deyo, roid, cmf, asr\n" in output
    code, output, errors = invoke(*run, "-o", "usual")
    assert code == 0
    assert list(json.loads((place / "usual" / "summary.json").read_text())["methods"]) == ["none"]
    for name in ("bn", "tent", "rdumb"):
        code, _, errors = invoke(*run, "-o", "named", "--methods", f"none,{name}")
        assert code == 2
        assert errors.splitlines()[-1].startswith(f"error: {name} ")
        assert "Sequential has none" in errors
    code, _, errors = invoke(*run, "-o", "named", "--methods", "none,rdumb:every=5")
    assert code == 2
    assert "expected rdumb, whose options are --reset and --rdumb-margin here" in " ".join(errors.split())
    assert not (place / "named").exists()


@pytest.mark.parametrize("step", ["0", "-1", "0.3", "7"])
def test_a_step_that_does_not_divide_the_range_is_explained(step: str, tmp_path: Path) -> None:
    code, _, said = invoke(
        *("calibrate", "-m", "demo:plain", "-d", "demo:digits", "-c", "fog,snow", "-n", 5),
        *(f"--step={step}", "-o", tmp_path / "surfaces"),
    )
    assert code == 2
    assert f"--step {float(step):g}; expected a number that divides 5" in said


def test_a_coarser_grid(tmp_path: Path) -> None:
    """Two pairs of 5 × 5 cells, in full and near a target; a walk follows the grid."""
    common = ("-m", "demo:plain", "-d", "demo:digits", "-n", "20", "-c", "contrast,fog", "--step", "1.25")
    for name, more in (("full", ()), ("near", ("--targets", "0.5"))):
        code, said, wrong = invoke("calibrate", *common, *more, "-o", tmp_path / name)
        assert code == 0, wrong
        assert "of 50 cells measured" in said + wrong
        code, _, wrong = invoke("walk", tmp_path / name, "--target", 0.5, "-o", tmp_path / f"{name}.json")
        assert code == 0, wrong
