"""Names and messages of others on the terminal: shown, never obeyed."""

from __future__ import annotations

import ast
import io
import json
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from rich.table import Table
from rich.text import Text

import blemish.cli
import command_line
from blemish.core.errors import InputError
from blemish.core.live import bar
from blemish.core.printable import as_text, printable, printable_lines
from blemish.data.demo import demo_picture
from blemish.terminal import printing as terminal
from blemish.terminal.commands import exit_on_input_error
from synthetic_runs import write_run

ESCAPES = {
    "colour": "\x1b[31m",
    "title": "\x1b]0;owned\x07",
    "eight bits": "\x9b31m",
    "backspace": "\b\b\b",
    "carriage return": "\rerror",
    "vertical tab": "\v\f",
    "delete": "\x7f",
    "direction": "\u202egnp.exe",
    "isolate": "\u2066x\u2069",
    "line separator": "\u2028x",
    "a byte": "caf\udce9",
    "tag": "\U000e0041",
}
HOSTILE = "".join(ESCAPES.values())


invoke = partial(command_line.invoke, columns=300)


def obeyed(text: str) -> list[str]:
    """What a terminal would obey."""
    return [sign for sign in text if not sign.isprintable() and sign != "\n"]


@pytest.mark.parametrize("kind", ESCAPES)
def test_printable(kind: str) -> None:
    text = f"a{ESCAPES[kind]}b"
    shown = printable(text)
    assert not obeyed(shown)
    assert "\n" not in shown
    assert shown.startswith("a")
    assert shown.endswith("b")
    assert shown != text


def test_printable_leaves_words_alone() -> None:
    for text in ("", "cat.png", "Größe 5 × 3 …", "日本語.jpg", "a\u202fb\u00a0c"):
        assert printable(text) == text


def test_json_stays_json() -> None:
    value = {HOSTILE: [HOSTILE, "a\nb"]}
    text = json.dumps(value, ensure_ascii=False, indent=1)
    assert json.loads(printable_lines(text)) == value


def test_names_as_text() -> None:
    assert as_text("café") == "café"
    assert as_text("caf\udce9") == "caf\\xe9"
    assert as_text("\ud800") == "\\ud800"


def test_commands_print_through_one_place() -> None:
    """Nothing else in the command line writes to the terminal, or makes a console that would."""
    folder = Path(blemish.cli.__file__).parent
    for path in sorted(folder.glob("*.py")):
        if path.name == "terminal.py":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        attributes = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        imported = {
            f"{node.module}.{alias.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        assert not names & {"print", "Console", "TextColumn"}, path.name
        assert not attributes & {"sys.stdout", "sys.stderr", "typer.echo", "typer.secho"} - {"typer.echo"}, path.name
        assert "typer.echo" not in attributes or path.name == "main.py", path.name  # the version
        assert not imported & {"rich.console.Console", "rich.print", "rich.progress.TextColumn"}, path.name


class TestConsole:
    def printed(self, what: Any) -> str:
        stream = io.StringIO()
        terminal.console(file=stream, width=200).print(what)
        return stream.getvalue()

    @pytest.mark.parametrize("wrap", [str, Text], ids=["str", "Text"])
    def test_texts(self, wrap: Callable[[str], Any]) -> None:
        assert not obeyed(self.printed(wrap(f"a{HOSTILE}b")))

    @pytest.mark.parametrize("text", ["[red]x", "[/]", "[/red]", "[link=http://x]y[/link]", ":smile:", "[bold"])
    def test_markup_is_text(self, text: str) -> None:
        assert text in self.printed(text)
        table = Table(title=text)
        table.add_column(text)
        table.add_row(text)
        assert self.printed(table).count(text) == 3

    @pytest.mark.parametrize("wrap", [str, Text], ids=["str", "Text"])
    def test_cells(self, wrap: Callable[[str], Any]) -> None:
        table = Table(title=HOSTILE)
        table.add_column(HOSTILE)
        table.add_row(wrap(HOSTILE))
        assert not obeyed(self.printed(table))

    def test_styles_stay(self) -> None:
        stream = io.StringIO()
        text = Text(f"a{HOSTILE}b").append("c", style="red")
        page = terminal.console(file=stream, width=200)
        segments = [segment for segment in page.render(text) if segment.text.strip()]
        assert [segment.text for segment in segments if segment.style and segment.style.color] == ["c"]


def test_a_message_of_several_lines_cannot_pass_for_ours(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.complain("error: a\nerror: b\x1b[2J")
    assert capsys.readouterr().err == "error: a\n  error: b\\u001b[2J\n"
    terminal.say("a\nwrote b")
    assert capsys.readouterr().out == "a\\nwrote b\n"


def test_a_reader_that_leaves_is_no_error() -> None:
    """As after ``| head -1``: the end of a pipe was taken for a model that ends the program."""
    command = [sys.executable, "-m", "blemish", "list"]
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (result.returncode, result.stderr) == (1, "")


def test_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """A description with markup that is not closed ended the run it described."""
    stream = io.StringIO()
    console = terminal.console(file=stream, width=200)
    console._force_terminal = True
    with bar(console, f"[/]{HOSTILE}", "images") as report:
        report(3, 3, "[/red]\nx")
    shown = stream.getvalue()
    assert "[/red]\\nx" in shown
    assert "\x1b[31m" not in shown
    assert "\x1b]0" not in shown
    assert "\x9b" not in shown


class TestErrors:
    @pytest.mark.parametrize(
        "arguments",
        [
            (HOSTILE,),
            ("run", HOSTILE, "-m", "demo:plain", "-d", "demo:digits", "-o", "out"),
            ("run", "digits-c", "-m", HOSTILE, "-d", "demo:digits", "-o", "out"),
            ("run", "digits-c", "-m", f"{HOSTILE}.onnx", "-d", "demo:digits", "-o", "out"),
            ("run", "digits-c", "-m", "demo:plain", "-d", HOSTILE, "-o", "out"),
            ("run", "digits-c", "-m", "demo:plain", "-d", "demo:digits", "-o", "out", "--limit", HOSTILE),
            ("run", "digits-c", "-m", "demo:plain", "-d", "demo:digits", "-o", "out", f"--{HOSTILE}"),
            ("run", "digits-c", "-m", "demo:plain", "-d", "demo:digits", "-o", "out", HOSTILE),
            ("score", HOSTILE),
            ("benchmarks", f"{HOSTILE}.toml"),
            ("corrupt", HOSTILE, "-o", "out"),
            ("ccc", "run", HOSTILE, "-m", "demo:plain", "-d", "demo:digits", "-o", "out"),
            ("ccc", HOSTILE),
            ("build", "overlap-scores", HOSTILE, "-o", "out.csv"),
            ("build", HOSTILE),
            ("separation", "-d", f"{HOSTILE}.npz"),
        ],
    )
    def test_what_was_typed(self, arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        code, output, errors = invoke(*arguments)
        assert code == 2
        assert not obeyed(output + errors)

    def test_bad_input(self) -> None:
        code, _, errors = self.raising(InputError(f"bad {HOSTILE}"))
        assert code == 2
        assert errors.startswith("error: bad ")
        assert not obeyed(errors)

    def test_names_that_are_too_long(self) -> None:
        code, _, errors = self.raising(OSError(36, "File name too long", f"{HOSTILE}xxx"))
        assert code == 2
        assert errors.rstrip().endswith(": File name too long")
        assert not obeyed(errors)

    def test_other_errors_of_the_system_keep_their_traceback(self) -> None:
        with pytest.raises(OSError, match="Bad address"):
            self.raising(OSError(14, "Bad address", "x"))

    def raising(self, error: Exception) -> tuple[int, str, str]:
        small = typer.Typer(pretty_exceptions_enable=False)

        @small.command()
        @exit_on_input_error
        def command() -> None:
            raise error

        return invoke(where=small)

    def test_tracebacks(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        small = terminal.App(pretty_exceptions_enable=False)

        @small.command()
        def command() -> None:
            sys.stderr.write(warnings.formatwarning(f"beware {HOSTILE}", UserWarning, "x.py", 1))
            raise RuntimeError(f"unexpected {HOSTILE}\nsecond line")

        monkeypatch.setattr(sys, "argv", ["small"])
        plain = warnings.formatwarning
        with pytest.raises(SystemExit) as left:
            small()
        assert warnings.formatwarning is plain
        errors = capsys.readouterr().err
        assert left.value.code == 1
        assert "Traceback" in errors
        assert "RuntimeError: unexpected" in errors
        assert "second line" in errors
        assert "beware" in errors
        assert not obeyed(errors)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Class folders and pictures with names that a terminal would obey, one of them no picture."""
    folder = tmp_path / "tree"
    for name in (HOSTILE, "[/]", "a\nerror: b"):
        (folder / name).mkdir(parents=True)
        for file in (HOSTILE, "[red]"):
            path = folder / name / f"{file}.png"
            demo_picture(32).save(tmp_path / "picture.png")
            shutil.copy(tmp_path / "picture.png", path)
    return folder


class TestNames:
    def test_run_and_read(self, tree: Path, tmp_path: Path) -> None:
        for name in "3456789":  # as many as the model has outputs
            shutil.copytree(tree / "[/]", tree / name)
        out = tmp_path / HOSTILE
        settings = ("-m", "demo:plain", "-d", tree, "-o", out, "--only", "fog@1", "--name", f"[/]{HOSTILE}")
        code, output, errors = invoke("run", "digits-c", *settings, "--augmentations", HOSTILE, "--anyway")
        assert (code, errors) == (0, "")
        assert not obeyed(output)
        for command in (
            ("score", out),
            ("score", out, "--json"),
            ("score", out, "--csv"),
            ("score", out, "--markdown"),
        ):
            code, output, errors = invoke(*command, "--replicates", 5)
            assert (code, errors) == (0, "")
            assert not obeyed(output)
        code, output, errors = invoke("report", out, "-o", tmp_path / "report.html")
        assert code == 0
        assert not obeyed(output + errors)

    def test_corrupt(self, tree: Path, tmp_path: Path) -> None:
        (tree / "[/]" / f"{HOSTILE}2.png").write_bytes(b"nonsense")
        code, output, errors = invoke("corrupt", tree, "-o", tmp_path / "out", "-c", "fog", "-s", "1")
        assert code == 1
        assert "not a readable picture" in errors
        assert not obeyed(output + errors)
        assert len(list((tmp_path / "out").rglob("*.jpg"))) == 6

    def test_separation(self, tree: Path) -> None:
        for more in ((), ("--json",)):
            code, output, errors = invoke("separation", "-d", tree, *more)
            assert code == 0
            assert not obeyed(output + errors)

    def test_benchmarks(self, tmp_path: Path) -> None:
        pytest.importorskip("tomli_w", reason="tomli-w is not installed, which writes benchmark files")
        path = tmp_path / "b.toml"
        content = 'title = "[/] \\u001b[31m \\u009b"\n[[conditions]]\ncorruptions = ["fog"]\nseverities = [1]\n'
        path.write_text(f'name = "[red]x\\u001b"\n{content}')
        for more in ((), ("--toml",), ("--json",)):
            code, output, errors = invoke("benchmarks", path, *more)
            assert (code, errors) == (0, "")
            assert not obeyed(output)
        printed = tmp_path / "again.toml"
        printed.write_text(invoke("benchmarks", path, "--toml")[1])
        assert invoke("benchmarks", printed, "--json")[1] == invoke("benchmarks", path, "--json")[1]

    def test_compare_and_build(self, tmp_path: Path) -> None:
        for name in ("first", "second"):
            model = {"name": f"{name}[/]{HOSTILE}".encode("utf-8", "replace").decode()}
            write_run(tmp_path / "runs", name, {"clean": 0.8, "fog@1": 0.5}, images=10, model=model)
        runs = (tmp_path / "runs" / "first", tmp_path / "runs" / "second")
        for more in ((), ("--json",), ("--csv",), ("--markdown",), ("--latex",)):
            code, output, errors = invoke("compare", *runs, "--replicates", 5, *more)
            assert code == 0
            assert not obeyed(output + errors)
        code, output, errors = invoke("build", "gather", tmp_path / "runs", "-o", tmp_path / "table.csv")
        assert code == 0
        code, output, errors = invoke("build", "overlap-scores", tmp_path / "table.csv", "-o", tmp_path / "m.csv")
        assert code == 2
        assert not obeyed(output + errors)

    def test_equivalence(self, tree: Path, tmp_path: Path) -> None:
        invoke("corrupt", tree, "-o", tmp_path / "stored", "-c", "fog", "-s", "1", "--format", "png")
        shutil.copytree(tmp_path / "stored" / "fog", tmp_path / "stored" / HOSTILE)
        code, output, errors = invoke("equivalence", "-d", tree, "--stored", tmp_path / "stored")
        assert code == 0
        assert "not compared" in errors
        assert not obeyed(output + errors)

    def test_arrays(self, tmp_path: Path) -> None:
        classes = np.array([f"[/]{HOSTILE}".encode("utf-8", "replace").decode()] * 3)
        images = np.zeros((3, 16, 16, 3), np.uint8)
        np.savez(tmp_path / "a.npz", images=images, labels=np.arange(3), classes=classes)
        settings = ("-m", "demo:plain", "-d", tmp_path / "a.npz", "-o", tmp_path / "out", "--only", "fog@1")
        code, output, errors = invoke("run", "digits-c", *settings)
        assert (code, errors) == (0, "")
        assert not obeyed(output)
