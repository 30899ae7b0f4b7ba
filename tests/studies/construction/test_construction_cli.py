"""The commands under ``blemish build``, and the figures they draw."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from blemish.benchmarks.files import load_benchmark
from blemish.core.errors import InputError
from blemish.studies.construction.categories import read_categories
from blemish.studies.construction.commands.build import build_app
from blemish.studies.construction.matrices import read_matrix

runner = CliRunner()


def invoke(*arguments: object) -> tuple[int, str, str]:
    result = runner.invoke(build_app, [str(argument) for argument in arguments], env={"COLUMNS": "140"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def done(*arguments: object) -> str:
    code, output, errors = invoke(*arguments)
    assert (code, errors) == (0, "")
    return output


def refused(*arguments: object) -> str:
    code, _, errors = invoke(*arguments)
    assert code == 2
    assert errors.startswith("error: ")
    return errors


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, its overlap matrix and categories."""
    folder = tmp_path_factory.mktemp("build")
    done("table", "imagenet-c", "-o", folder / "accuracies.csv")
    done("overlap-scores", folder / "accuracies.csv", "-o", folder / "overlap.csv")
    done("categories", folder / "overlap.csv", "-o", folder / "categories.json", "--restarts", 10)
    return folder


def is_picture(path: Path) -> bool:
    with Image.open(path) as picture:
        pixels = np.asarray(picture.convert("L"))
    return pixels.shape[0] > 200 and pixels.std() > 5


def test_help_teaches() -> None:
    output = done("--help")
    for name in (
        "table",
        "overlap-scores",
        "compare",
        "select",
        "sweep",
        "coverage",
        "balance",
        "categories",
        "generate",
        "natural",
    ):
        assert name in output
        assert "Examples" in done(name, "--help")


def test_select(work: Path, tmp_path: Path) -> None:
    pytest.importorskip("tomli_w", reason="tomli-w is not installed, which writes benchmark files")
    output = done(
        "select", work / "overlap.csv", "-o", tmp_path / "mine.toml", "--threshold", 0.2,
        "--optima", tmp_path / "all.json", "--figure", tmp_path / "chosen.png",
    )  # fmt: skip
    assert "10 largest subsets" in output
    expected = ("snow", "brightness", "contrast", "elastic_transform", "jpeg_compression")
    assert load_benchmark(tmp_path / "mine.toml").groups == expected
    assert is_picture(tmp_path / "chosen.png")
    assert (tmp_path / "all.json").is_file()


def test_sweep_balance_and_coverage(work: Path, tmp_path: Path) -> None:
    output = done(
        "sweep",
        work / "overlap.csv",
        "-o",
        tmp_path / "s.csv",
        "--thresholds",
        "0.2,0.5",
        "--figure",
        tmp_path / "s.svg",
    )
    assert "snow, brightness" in output
    assert (tmp_path / "s.csv").read_text().splitlines()[1].startswith("0.2,5,10,")
    assert "<svg" in (tmp_path / "s.svg").read_text()
    output = done("balance", work / "accuracies.csv", "-o", tmp_path / "b.csv", "--figure", tmp_path / "b.png")
    assert "standard deviation 12.08" in output
    assert is_picture(tmp_path / "b.png")
    output = done("coverage", work / "overlap.csv", "-o", tmp_path / "c.csv", "-c", "jpeg_compression,fog")
    assert "of 13 corruptions are covered" in output
    assert "12 of 15" in done("coverage", work / "accuracies.csv", "-o", tmp_path / "c.csv", "--row", "fog")


def test_categories_and_what_follows(work: Path, tmp_path: Path) -> None:
    pytest.importorskip("tomli_w", reason="tomli-w is not installed, which writes benchmark files")
    figures = ("--figure", tmp_path / "blocks.png", "--tree", tmp_path / "tree.png")
    settings = ("--count", 3, "--restarts", 10, "--models", work / "accuracies.csv")
    assert "within categories" in done(
        "categories", work / "overlap.csv", "-o", tmp_path / "c.json", *settings, *figures
    )
    assert is_picture(tmp_path / "blocks.png")
    assert is_picture(tmp_path / "tree.png")
    assert len(read_categories(tmp_path / "c.json").members) == 3
    done(
        "generate",
        work / "categories.json",
        "-o",
        tmp_path / "even",
        "--categories",
        3,
        "--per-category",
        2,
        "--count",
        20,
    )
    assert len(list((tmp_path / "even").glob("*.toml"))) == 20
    assert load_benchmark(tmp_path / "even" / "n3k2-01.toml").conditions[1].severity == 1
    assert "drawn uniform, seed 0" in load_benchmark(tmp_path / "even" / "n3k2-01.toml").title
    drawn = ("--count", 5, "--draw", "categories-first", "--seed", 3)
    assert "as the paper draws" in done(
        "generate", work / "categories.json", "-o", tmp_path / "p", "--categories", 2, "--per-category", 2, *drawn
    )
    title = "2 of 3 categories, 2 corruptions of each; drawn categories-first, seed 3"
    assert {load_benchmark(path).title for path in (tmp_path / "p").glob("*.toml")} == {title}
    output = done("unbalance", work / "categories.json", tmp_path / "even", "-o", tmp_path / "uneven", "--times", 2)
    assert "std-0.82" in output
    assert list((tmp_path / "uneven" / "std-0.82").glob("*.toml"))
    done(
        "syn2nat",
        work / "overlap.csv",
        work / "categories.json",
        "-o",
        tmp_path / "s.toml",
        "--figure",
        tmp_path / "s.png",
    )
    assert len(load_benchmark(tmp_path / "s.toml").groups) == 12


def test_natural(work: Path, tmp_path: Path) -> None:
    pytest.importorskip("tomli_w", reason="tomli-w is not installed, which writes benchmark files")
    done(
        "generate",
        work / "categories.json",
        "-o",
        tmp_path / "one",
        "--categories",
        1,
        "--per-category",
        2,
        "--count",
        10,
    )
    done(
        "generate",
        work / "categories.json",
        "-o",
        tmp_path / "three",
        "--categories",
        3,
        "--per-category",
        1,
        "--count",
        10,
    )
    lines = (work / "accuracies.csv").read_text().splitlines()
    draw = np.random.default_rng(0)
    rows = [
        f"{line},{value:.3f}" for line, value in zip(lines[1:], draw.uniform(0.1, 0.5, len(lines) - 1), strict=True)
    ]
    (tmp_path / "models.csv").write_text("\n".join([lines[0] + ",v2", *rows]))
    arguments = ("natural", tmp_path / "models.csv", tmp_path / "one", tmp_path / "three", "-o", tmp_path / "r.csv")
    output = done(*arguments, "--natural", "v2", "--replicates", 50, "--figure", tmp_path / "n.png")
    assert "three" in output
    assert is_picture(tmp_path / "n.png")
    assert len((tmp_path / "r.csv").read_text().splitlines()) == 3
    assert "held fixed" in done(*arguments, "--natural", "v2=clean", "--partial", "--replicates", 0)
    assert "no column 'v3'" in refused(*arguments, "--natural", "v3")
    assert "expected COLUMN" in refused(*arguments, "--natural", "=clean")


def test_compare(work: Path, tmp_path: Path) -> None:
    output = done("compare", work / "overlap.csv", work / "overlap.csv", "--threshold", 0.2,
                  "-o", tmp_path / "pairs.csv", "--figure", tmp_path / "agreement.png")  # fmt: skip
    assert "Pearson 1.000" in output
    assert "the same benchmark is selected" in output
    assert len((tmp_path / "pairs.csv").read_text().splitlines()) == 106
    assert is_picture(tmp_path / "agreement.png")


def test_intervals(tmp_path: Path) -> None:
    names = np.array(["fog", "snow"])
    rates = np.array([[0.9, 0.4, 0.4], [0.9, 0.8, 0.5], [0.9, 0.6, 0.8]])
    correct = np.random.default_rng(1).random((3, 3, 300)) < rates[..., None]
    np.savez(tmp_path / "c.npz", correct=correct, models=["standard", *names], settings=["clean", *names])
    done(
        "overlap-scores",
        tmp_path / "c.npz",
        "-o",
        tmp_path / "m.json",
        "--intervals",
        tmp_path / "i.csv",
        "--replicates",
        100,
    )
    header, row = (tmp_path / "i.csv").read_text().splitlines()
    assert header == "first,second,score,low,high,undefined_share"
    score, low, high = map(float, row.split(",")[2:5])
    assert low < score < high
    assert read_matrix(tmp_path / "m.json").score("fog", "snow") == pytest.approx(score, abs=1e-5)


def test_bad_input_is_one_line(work: Path, tmp_path: Path) -> None:
    matrix = work / "overlap.csv"
    assert "from 0 to 1" in refused("select", matrix, "-o", tmp_path / "x.toml", "--threshold", 2)
    assert "ends in .toml" in refused("select", matrix, "-o", tmp_path / "x.txt")
    assert "ends in .png" in refused("sweep", matrix, "-o", tmp_path / "x.csv", "--figure", tmp_path / "x.gif")
    assert "look like fractions" in refused(
        "overlap-scores", work / "accuracies.csv", "-o", tmp_path / "x.csv", "--percent"
    )
    assert "no such file" in refused("overlap-scores", tmp_path / "gone.csv", "-o", tmp_path / "x.csv")
    assert "expected an .npz file" in refused(
        "overlap-scores", work / "accuracies.csv", "-o", tmp_path / "x.csv", "--intervals", tmp_path / "i.csv"
    )
    assert "only 0 benchmarks" in refused(
        "generate", work / "categories.json", "-o", tmp_path / "g", "--categories", 3, "--per-category", 5
    )
    assert "not an empty folder" in refused(
        "generate", work / "categories.json", "-o", work, "--categories", 3, "--per-category", 2, "--count", 2
    )
    assert "expected either" in refused("coverage", matrix, "-o", tmp_path / "x.csv")
    assert "expected numbers such as" in refused("sweep", matrix, "-o", tmp_path / "x.csv", "--thresholds", "low")
    said = refused("table", "catalogues-64", "-o", tmp_path / "x.csv")
    assert "no table 'catalogues-64'; expected one of imagenet-c, " in said
    assert "catalogues-32-seed2" in said
    assert not list(tmp_path.iterdir())


def test_figures_refuse_other_formats(tmp_path: Path) -> None:
    from blemish.reports.figure_files import save_figure

    with pytest.raises(InputError, match="ends in"):
        save_figure(None, tmp_path / "x.gif")
