"""The commands as a user meets them: what they print, where, and their exit codes."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import blemish.core.errors
from blemish.cli.main import app
from blemish.core.errors import InputError
from blemish.corruptions.catalog import Catalog, catalog
from blemish.data.demo import demo_picture
from command_line import invoke

runner = CliRunner()


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    path = tmp_path / "cat.png"
    demo_picture(48).save(path)
    return path


class TestMain:
    def test_help_teaches(self) -> None:
        for arguments in (["--help"], ["-h"], ["list", "--help"], ["show", "--help"], ["corrupt", "-h"]):
            code, output, _ = invoke(*arguments)
            assert code == 0
            assert ("Examples" in output) == (len(arguments) > 1)

    def test_help_fits_narrow_terminals(self) -> None:
        """Paragraphs are wrapped by the terminal alone: at 80 columns no line may end long before it."""
        for arguments in (["-h"], ["run", "-h"], ["build", "-h"], ["ccc", "calibrate", "-h"]):
            output = runner.invoke(app, arguments, env={"COLUMNS": "80"}).stdout
            prose = [line.strip() for line in output.partition("╭")[0].splitlines()]
            for line, following in itertools.pairwise(prose):
                if following and line:
                    assert len(line) + len(following.split()[0]) > 75, line

    def test_version(self) -> None:
        code, output, _ = invoke("--version")
        assert code == 0
        assert output.startswith("blemish ")

    def test_unknown_command(self) -> None:
        assert invoke("corupt")[0] == 2

    def test_real_process(self, tmp_path: Path) -> None:
        source = str(Path(blemish.__file__).parents[1])
        environment = {**os.environ, "PYTHONPATH": source, "NO_COLOR": "1"}
        command = [sys.executable, "-m", "blemish", "corrupt", "gone.jpg", "-o", str(tmp_path / "dst")]
        result = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert result.returncode == 2
        assert result.stderr == "error: gone.jpg: no such file or folder\n"
        assert result.stdout == ""

    def test_library_works_without_cli_packages(self) -> None:
        code = (
            "import sys; sys.modules['typer'] = sys.modules['rich'] = None\n"
            "import blemish.corruptions.transform, blemish.export, blemish.data.demo, blemish.reports.contact_sheet"
        )
        environment = {**os.environ, "PYTHONPATH": str(Path(blemish.__file__).parents[1])}
        subprocess.run([sys.executable, "-c", code], env=environment, check=True)


class TestList:
    def test_table(self) -> None:
        code, output, _ = invoke("list")
        assert code == 0
        for name in catalog:
            assert name in output

    def test_family(self) -> None:
        _, output, _ = invoke("list", "--family", "weather")
        assert "fog" in output
        assert "gaussian_noise" not in output
        code, _, errors = invoke("list", "--family", "wether")
        assert code == 2
        assert "unknown family 'wether'; expected one of noise, blur, weather, digital" in errors

    def test_words(self) -> None:
        _, output, _ = invoke("list", "NOC:", "rain")
        assert "noc:rain" in output
        assert "syn2nat:random_rain" not in output
        _, output, _ = invoke("list", "fog")
        assert "fog" in output
        assert "gaussian_noise" not in output
        code, _, errors = invoke("list", "no such thing")
        assert code == 2
        assert f"no corruption with no such thing in it; blemish list shows all {len(catalog)}" in errors

        code, _, errors = invoke("list", "--family", "weather", "--catalogue", "cbar")
        assert code == 2
        assert "no corruption with family weather and catalogue cbar in it" in errors

    def test_a_narrow_screen_has_room_for_what_corruptions_do(self) -> None:
        wide, narrow = (invoke("list", "perlin", columns=columns)[1] for columns in (100, 60))
        assert "alpha" in wide
        assert "alpha" not in narrow
        assert max(map(len, narrow.splitlines())) <= 60
        assert "Mixes in a bright haze" in narrow

    def test_what_is_not_verified_says_so(self) -> None:
        entries = json.loads(invoke("list", "--catalogue", "cbar", "--json")[1])
        unverified = {entry["name"] for entry in entries if "Unverified." in entry["description"]}
        assert unverified == {entry["name"] for entry in entries if "without pixels to compare" in entry["source"]}
        assert len(unverified) == 15

    def test_catalogue(self) -> None:
        entries = json.loads(invoke("list", "--catalogue", "cbar", "--json")[1])
        assert {entry["name"] for entry in entries} == {name for name in catalog if name.startswith("cbar:")}
        entries = json.loads(invoke("list", "--catalogue", "imagenet-c", "--json")[1])
        assert {entry["name"] for entry in entries} == {name for name in catalog if ":" not in name}
        code, _, errors = invoke("list", "--catalogue", "cbarr")
        assert code == 2
        assert "unknown catalogue 'cbarr'; expected one of imagenet-c, noc" in errors

    def test_json(self) -> None:
        entries = json.loads(invoke("list", "--json")[1])
        assert {entry["name"] for entry in entries} == set(catalog)
        noise = next(entry for entry in entries if entry["name"] == "gaussian_noise")
        assert noise["family"] == "noise"
        assert noise["parameters"] == ["sigma"]
        assert noise["severities"]["imagenet"][2] == [0.18]  # published: severity 3 of ImageNet-C
        assert noise["published"] == [1, 2, 3, 4, 5]
        assert "Hendrycks and Dietterich" in noise["source"]


class TestShow:
    def test_picture(self, picture: Path, tmp_path: Path) -> None:
        sheet = tmp_path / "sheet.png"
        code, output, _ = invoke("show", picture, "-o", sheet, "-c", "fog,noise", "-s", "1,2.5", "--seed", "3")
        assert code == 0
        assert "preset: cifar (nearest to the shorter side: cifar 32" in output
        assert f"wrote {sheet}" in output
        assert "5 corruptions" in output
        with Image.open(sheet) as made:
            assert made.width > 400

    def test_demo(self, tmp_path: Path) -> None:
        code, output, _ = invoke("show", "-o", tmp_path / "s.png", "-c", "contrast", "-s", "3", "--preset", "cifar")
        assert code == 0
        assert "preset: cifar (as asked)" in output
        assert (tmp_path / "s.png").exists()

    def test_a_catalogue_by_its_prefix(self, picture: Path, tmp_path: Path) -> None:
        code, output, _ = invoke("show", picture, "-o", tmp_path / "s.png", "-c", "lp", "-s", "1")
        assert code == 0
        assert "5 corruptions" in output  # L0, L1, L2, L∞ and the Gaussian

    def test_gallery(self, picture: Path, tmp_path: Path) -> None:
        page = tmp_path / "g.html"
        for done in ("wrote", "replaced"):
            code, output, _ = invoke("show", picture, "--gallery", "-c", "fog,laion:glitched", "-o", page)
            assert code == 0
            assert f"{done} {page}" in output
        assert "2 corruptions of 2 catalogues" in page.read_text(encoding="utf-8")

    def test_a_gallery_of_everything_leaves_out_what_cannot_be_made(
        self, picture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Codec:
            kind, note = "codec", None

            def check(self) -> None:
                raise InputError("lost needs a codec, which is not on this machine")

        small = Catalog(catalog["fog"], replace(catalog["snow"], name="lost", files=Codec()))
        monkeypatch.setattr("blemish.cli.show.chosen_catalog", lambda *_: small)
        code, output, _ = invoke("show", picture, "--gallery", "-o", tmp_path / "g.html")
        assert code == 0
        assert "left out: lost needs a codec" in output
        assert "1 corruption)" in output
        code, _, errors = invoke("show", picture, "--gallery", "-c", "lost", "-o", tmp_path / "h.html")
        assert code == 2
        assert "lost needs a codec" in errors
        assert not (tmp_path / "h.html").exists()

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["--gallery", "-o", "sheet.png"], "sheet.png: expected a file name that ends in .html"),
            (["--gallery", "--sequence", "p:tilt"], "--sequence stands alone"),
            (["-c", "fogg"], "did you mean fog"),
            (["-c", ","], "no corruptions named"),
            (["-s", "6"], "severity 6; expected a number in 0 … 5"),
            (["-s", "one"], "expected numbers such as 1,2,3"),
            (["-s", ","], "expected numbers such as 1,2,3"),
            (["--preset", "big"], "unknown preset 'big'"),
            (["-o", "sheet.xyz"], "ends in .png or .jpg"),
            (["-o", "gone/sheet.png"], "no such folder"),
            (["gone.png"], "gone.png: no such file"),
        ],
    )
    def test_refusals(
        self, arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        code, output, errors = invoke("show", *arguments)
        assert code == 2
        assert output == ""
        assert errors.startswith("error: ")
        assert errors.count("\n") == 1
        assert message in errors
        assert not list(tmp_path.iterdir())


class TestCorrupt:
    def test_picture(self, picture: Path, tmp_path: Path) -> None:
        code, output, _ = invoke("corrupt", picture, "-o", tmp_path / "foggy.png", "-c", "fog", "-s", "3")
        assert code == 0
        assert "wrote 1 image to" in output
        assert "here 48 px" in output

    def test_tree_with_a_broken_picture(self, tmp_path: Path) -> None:
        for name in ("a/1.png", "b/2.png"):
            (tmp_path / "src" / name).parent.mkdir(parents=True)
            demo_picture(40).save(tmp_path / "src" / name)
        command = ["corrupt", tmp_path / "src", "-o", tmp_path / "dst", "-c", "digital", "-s", "2", "--crop", "32"]
        code, output, _ = invoke(*command)
        assert code == 0
        assert "wrote 10 images" in output
        assert "preset: cifar" in output
        (tmp_path / "src" / "a" / "bad.jpg").write_bytes(b"broken")
        code, output, errors = invoke(*command)
        assert code == 1
        assert "wrote 0 images" in output
        assert "10 were there already" in output
        assert "1 picture could not be used; all others are done" in errors
        assert "a/bad.jpg: not a readable" in errors

    def test_mixed_presets_are_counted(self, tmp_path: Path) -> None:
        (tmp_path / "src").mkdir()
        demo_picture(32).save(tmp_path / "src" / "a.png")
        demo_picture(64).save(tmp_path / "src" / "b.png")
        _, output, _ = invoke("corrupt", tmp_path / "src", "-o", tmp_path / "dst", "-c", "contrast", "-s", "1")
        assert "preset: for each picture" in output
        assert "presets used: cifar 1, imagenet64 1" in output

    def test_array(self, tmp_path: Path) -> None:
        np.save(tmp_path / "x.npy", np.zeros((3, 32, 32, 3), np.uint8))
        np.save(tmp_path / "y.npy", np.arange(3))
        code, output, _ = invoke(
            "corrupt", tmp_path / "x.npy", "-o", tmp_path / "dst", "-c", "fog", "--labels", tmp_path / "y.npy"
        )
        assert code == 0
        assert "preset: cifar" in output
        assert "wrote 15 images" in output
        assert np.load(tmp_path / "dst" / "labels.npy").tolist() == [0, 1, 2] * 5

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["-c", "gausian_noise"], "did you mean gaussian_noise"),
            (["-s", "0,9"], "severity 9"),
            (["--labels", "y.npy", "-c", "fog"], "--labels is for array files"),
            (["--crop", "500", "--resize", "256"], "a crop of 500"),
            (["-c", "fog", "-s", "1", "--crop", "49"], "too few for a centre crop"),
        ],
    )
    def test_refusals(self, picture: Path, tmp_path: Path, arguments: list[str], message: str) -> None:
        code, _, errors = invoke("corrupt", picture, "-o", tmp_path / "dst", *arguments)
        assert code == 2
        assert errors.startswith("error: ")
        assert errors.count("\n") == 1
        assert message in errors
        assert not (tmp_path / "dst").exists()

    def test_refused_protocol(self, picture: Path, tmp_path: Path) -> None:
        command = ["corrupt", picture, "-o", tmp_path / "dst", "-c", "fog", "-s", "1"]
        assert invoke(*command)[0] == 0
        code, _, errors = invoke(*command, "--seed", "1")
        assert code == 2
        assert "seed was 0, now 1" in errors
