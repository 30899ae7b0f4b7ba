"""What the commands do with ``--sequence``, called as the commands call it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner, Result

from blemish.cli.main import app
from blemish.cli.sequence import chosen_sequences, show_sequence
from blemish.core.errors import InputError
from blemish.corruptions.imagenet_p import sequences
from blemish.data.demo import demo_picture


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "cat.png"
    demo_picture(48).save(path)
    return path


def test_names() -> None:
    assert chosen_sequences("p:tilt, p:snow,p:tilt") == ["p:tilt", "p:snow"]
    assert len(chosen_sequences("benchmark")) == 10
    assert chosen_sequences("all") == list(sequences)
    with pytest.raises(InputError, match="did you mean p:tilt"):
        chosen_sequences("tilt")
    with pytest.raises(InputError, match="no sequences named"):
        chosen_sequences(" , ")


class TestShow:
    def test_the_demo_picture(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        show_sequence(None, None, "p:rotate")
        with Image.open("rotate.gif") as film:
            assert film.size == (224, 224)
            assert film.n_frames == 31
        output = capsys.readouterr().out
        assert "preset: imagenet (nearest to the shorter side; here 256 px)" in output
        assert "wrote rotate.gif (31 frames of p:rotate)" in output

    def test_a_picture(self, picture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        show_sequence(picture, tmp_path / "out.gif", "p:translate", preset="imagenet")
        with Image.open(tmp_path / "out.gif") as film:
            assert (film.size, film.n_frames) == ((48, 48), 41)
        assert "preset: imagenet (as asked)" in capsys.readouterr().out

    def test_gray_and_difficulty(self, tmp_path: Path) -> None:
        Image.fromarray(np.random.default_rng(0).integers(0, 256, (40, 30), dtype=np.uint8)).save(tmp_path / "g.png")
        show_sequence(tmp_path / "g.png", tmp_path / "g.gif", "p:shot_noise", difficulty=3, seed=4)
        with Image.open(tmp_path / "g.gif") as film:
            assert film.n_frames == 31

    def test_refusals(self, picture: Path, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="2 sequences for one animation"):
            show_sequence(picture, tmp_path / "x.gif", "p:tilt,p:snow")
        with pytest.raises(InputError, match=r"ends in \.gif or \.webp"):
            show_sequence(picture, tmp_path / "x.png", "p:tilt")
        with pytest.raises(InputError, match="no such file"):
            show_sequence(tmp_path / "gone.png", tmp_path / "x.gif", "p:tilt")
        Image.new("RGB", (5, 30)).save(tmp_path / "thin.png")
        with pytest.raises(InputError, match="5×30 pixels; expected at least 8×8"):
            show_sequence(tmp_path / "thin.png", tmp_path / "x.gif", "p:tilt")


def corrupt(source: Path, out: Path, names: str) -> Result:
    return CliRunner().invoke(app, ["corrupt", str(source), "-o", str(out), "--sequence", names])


class TestCorrupt:
    def test_frames(self, picture: Path, tmp_path: Path) -> None:
        result = corrupt(picture, tmp_path / "dst", "p:scale,p:shear")
        assert result.exit_code == 0, result.output
        assert "preset: cifar (nearest to the shorter side; here 48 px)" in result.output
        assert "wrote 62 images" in result.output
        assert len(list((tmp_path / "dst" / "scale" / "cat").glob("*.png"))) == 31

    def test_refusals_come_before_any_work(self, tmp_path: Path) -> None:
        np.save(tmp_path / "images.npy", np.zeros((2, 16, 16, 3), np.uint8))
        for source, names, message in (
            (tmp_path / "gone", "p:tilt", "no such file or folder"),
            (tmp_path / "images.npy", "p:tilt", "expected a picture or a folder"),
            (tmp_path, "tilt", "did you mean p:tilt"),
        ):
            result = corrupt(source, tmp_path / "dst", names)
            assert result.exit_code == 2
            assert message in result.output
        assert not (tmp_path / "dst").exists()


@pytest.mark.parametrize("options", [["-s", "1,3"], ["-c", "fog"]])
@pytest.mark.parametrize("command", ["show", "corrupt"])
def test_options_that_sequences_do_not_have_are_refused(
    command: str, options: list[str], picture: Path, tmp_path: Path
) -> None:
    target = tmp_path / "out.gif"
    result = CliRunner().invoke(app, [command, str(picture), "-o", str(target), "--sequence", "p:tilt", *options])
    assert result.exit_code == 2
    assert "--sequence stands alone" in result.output
    assert not target.exists()
