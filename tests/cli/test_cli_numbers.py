"""Numbers that are too large, too small or no numbers, on the command line and in TOML files: refused in words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from blemish.benchmarks.benchmark import only
from blemish.benchmarks.files import benchmark_toml, parse_benchmark
from blemish.cli.main import app
from blemish.core.errors import InputError
from blemish.metrics.plan import make_plan
from hostile_files import not_for_ever
from synthetic_runs import write_run

HUGE = ["1" + "0" * 30, "18446744073709551616", "-9223372036854775809", "9" * 5000]
ODD = [*HUGE, "0x" + "f" * 9000, "1e999", "nan", "true", "[]", '"x"']


def beginning(value: object) -> str:
    return str(value)[:22]


def invoke(*arguments: object) -> tuple[int, str, str]:
    with not_for_ever():
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.savez("a.npz", images=np.zeros((4, 16, 16, 3), np.uint8), labels=np.arange(4))
    np.savez("p.npz", x=np.eye(4), y=np.arange(4) % 2)
    return tmp_path


RUN = ("run", "digits-c", "-m", "demo:plain", "-d", "demo:digits", "-o", "out", "--only", "fog@1", "-n", "20")
OPTIONS = [
    (*RUN, "--seed"),
    (*RUN, "--gpus"),
    ("corrupt", "a.npz", "-o", "out", "-c", "fog", "-s", "1", "--seed"),
    ("corrupt", "a.npz", "-o", "out", "-c", "fog", "-s"),
    ("corrupt", "a.npz", "-o", "out", "-c", "fog", "-s", "1", "--resize"),
    ("mscr", "-d", "p.npz", "--train", "1nn", "--runs"),
    ("ccc", "calibrate", "-m", "demo:plain", "-d", "a.npz", "-o", "out", "-c", "fog,snow", "--seed"),
    ("build", "match-severities", "-c", "fog", "-m", "demo:plain", "-d", "a.npz", "-o", "r.csv", "--seed"),
    ("score", "runs", "--replicates"),
]


@pytest.mark.parametrize("value", HUGE, ids=beginning)
@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: f"{option[0]} {option[-1]}")
def test_options(option: tuple[str, ...], value: str, place: Path) -> None:
    write_run(place / "runs", "m", {"clean": 0.8, "fog@1": 0.5}, images=10)
    code, _, errors = invoke(*option, value)
    assert code == 2
    assert errors.strip()


@pytest.mark.parametrize("value", ODD, ids=beginning)
@pytest.mark.parametrize("key", ["seed", "resize", "crop"])
def test_protocols(key: str, value: str, place: Path) -> None:
    content = f'name = "x"\n[protocol]\n{key} = {value}\n[[conditions]]\ncorruptions = ["fog"]\nseverities = [1]\n'
    (place / "b.toml").write_text(content)
    code, _, errors = invoke("run", "b.toml", "-m", "demo:plain", "-d", "demo:digits", "-n", "20", "-o", "out")
    assert code == 2
    assert errors.startswith("error: ")


@pytest.mark.parametrize("value", [*ODD, "-1", "0"], ids=beginning)
@pytest.mark.parametrize("line", ["severities = [V]", "severity_range = [1, V]", "severity_range = [V, V]"])
def test_severities(line: str, value: str) -> None:
    content = f'name = "x"\n[[conditions]]\ncorruptions = ["fog"]\n{line.replace("V", value)}\n'
    with pytest.raises(InputError):
        parse_benchmark(content, where="b.toml")


@pytest.mark.parametrize("value", [*ODD, "-1"], ids=beginning)
@pytest.mark.parametrize("key", ["size", "std", "skip_classes"])
def test_settings_of_models(key: str, value: str, place: Path) -> None:
    (place / "m.toml").write_text(f'model = "demo:plain"\n{key} = {value}\n')
    code, _, errors = invoke("run", "digits-c", "-m", "m.toml", "-d", "demo:digits", "-n", "20", "-o", "out")
    assert code == 2
    assert errors.startswith("error: ")


class TestMany:
    """9,999 severities in a file: quadratic work made it a matter of minutes."""

    COUNT = 9_999

    def test_one_corruption(self) -> None:
        pytest.importorskip("tomli_w", reason="tomli-w is not installed, which writes benchmark files")
        levels = ", ".join(f"{5 * (number + 1) / self.COUNT:.17g}" for number in range(self.COUNT))
        with not_for_ever():
            found = parse_benchmark(
                f'name = "many"\n[[conditions]]\ncorruptions = ["fog"]\nseverities = [{levels}]\n', where="many"
            )
            assert len(found.conditions) == self.COUNT + 1
            assert parse_benchmark(benchmark_toml(found), where="again") == found
            assert len(only(found, ["fog@1.*"]).conditions) > 1000
            plan = make_plan(found.conditions, [], None, family=str)
            assert plan.missing

    def test_many_corruptions(self) -> None:
        chains = ", ".join(f'"fog@{5 * (number + 1) / self.COUNT:.17g}+snow@1"' for number in range(self.COUNT))
        names = ", ".join(f'"set{number}"' for number in range(self.COUNT))
        content = f'name = "many"\n[[conditions]]\nchains = [{chains}]\n[[conditions]]\nnatural = [{names}]\n'
        with not_for_ever():
            found = parse_benchmark(content, where="many")
            assert len(found.conditions) == 3 * self.COUNT + 1
            make_plan(found.conditions, [], None, family=str)

    def test_all_of_them_twice(self) -> None:
        levels = ", ".join(["1", "2"] * 5_000)
        with not_for_ever(), pytest.raises(InputError, match="fog@1, fog@2 given twice"):
            parse_benchmark(
                f'name = "many"\n[[conditions]]\ncorruptions = ["fog"]\nseverities = [{levels}]\n', where="many"
            )

    def test_a_message_names_a_few(self) -> None:
        levels = ", ".join(f"{number / 2000}" for number in range(1, 1001))
        with pytest.raises(InputError, match="and 995 more given twice") as refused:
            parse_benchmark(
                f'name = "many"\n[[conditions]]\ncorruptions = ["fog"]\nseverities = [{levels}, {levels}]\n', where="x"
            )
        assert len(str(refused.value)) < 200
