"""Pages that are followed from their first line to their last, in a folder of their own, as a reader would.

- A block of `python` or `toml` whose first line is `# NAME` is a file, which is written.
- Another block of `python` is run; a block of `text` right after it is what it prints.
- A block of `console` holds commands behind `$`, and below each what it prints. A line `…` stands for lines left out,
  and `…` at the end of a line for the rest of it.
- A block of `sh` holds commands whose output is not shown; one of `bash` what needs more than one machine or a GPU.

`python tests/followed.py PAGE …` writes what comes out into the pages, but for outputs that hold `…`.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from command_line import command

COLUMNS = 100
LEFT_OUT = "…"
# What readers type once, to have something to work with; not here.
SETTING_UP = ("pip", "python3", "git", "cd", ".", "sbatch", "ssh")

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"# ([\w.-]+\.(?:py|toml))\n")


class Step(NamedTuple):
    """What a page says is printed, what was printed, and where in the page the former stands."""

    what: str
    told: str
    printed: str
    place: tuple[int, int]


def follow(page: Path, *, strict: bool = True) -> Iterator[Step]:
    """Do what a page says in the current folder; a command fails if an error is what it is told to print."""
    text = page.read_text(encoding="utf-8")
    blocks = list(_BLOCK.finditer(text))
    names: dict[str, object] = {"__name__": "example"}
    for at, block in enumerate(blocks):
        kind, body = block.groups()
        if named := _FILE.match(body):
            Path(named[1]).write_text(body, encoding="utf-8")
        elif kind == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(body, page.name, "exec"), names)
            after = blocks[at + 1] if at + 1 < len(blocks) else None
            if after is not None and after[1] == "text" and not text[block.end() : after.start()].strip():
                yield Step(body, after[2], printed.getvalue(), after.span(2))
        elif kind == "sh":
            for line in body.replace("\\\n", "").splitlines():
                if shlex.split(line)[0] not in SETTING_UP:
                    run(line, fails=False)
        elif kind == "console":
            yield from _console(body, block.start(2), strict)


def _console(body: str, start: int, strict: bool) -> Iterator[Step]:
    for part in re.finditer(r"^\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)", body, re.MULTILINE):
        told = part[2]
        printed = run(part[1].replace("\\\n", ""), fails="error: " in told if strict else None)
        yield Step(part[1], told, printed, (start + part.start(2), start + part.end(2)))


def run(line: str, *, fails: bool | None) -> str:
    """What a command prints; of one that fails, with its complaints."""
    first, *words = shlex.split(line)
    if first == "python":
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            runpy.run_path(words[0], run_name="__main__")
        return printed.getvalue()
    if first in ("cat", "ls"):
        return _shown(first, words)
    assert first == "blemish", line
    result = command(*words, columns=COLUMNS)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert fails is None or (result.exit_code != 0) == fails, f"{line}\n{result.output}"
    return result.output if result.exit_code != 0 else result.stdout


def _shown(kind: str, words: list[str]) -> str:
    """What `cat FILE` or `ls FOLDER` prints."""
    if kind == "cat":
        return Path(words[0]).read_text(encoding="utf-8")
    return "".join(f"{path.name}\n" for path in sorted(Path(words[0]).iterdir()))


def lines_of(text: str) -> list[str]:
    """Lines without the blanks that fill them up, and without empty ones at both ends."""
    lines = [line.rstrip() for line in text.splitlines()]
    while lines and not lines[0]:
        lines.pop(0)
    while lines and not lines[-1]:
        lines.pop()
    return lines


def agrees(told: str, printed: str) -> bool:
    """Whether what was told is what was printed, but for lines left out."""
    return _agrees(lines_of(told), lines_of(printed))


def _agrees(told: list[str], printed: list[str]) -> bool:
    if not told:
        return not printed
    if told[0].strip() == LEFT_OUT:
        return any(_agrees(told[1:], printed[at:]) for at in range(len(printed) + 1))
    if not printed:
        return False
    beginning, left_out, rest = told[0].partition(f" {LEFT_OUT}")
    same = printed[0].startswith(beginning) if left_out and not rest else told[0] == printed[0]
    return same and _agrees(told[1:], printed[1:])


@contextlib.contextmanager
def reader(folder: Path) -> Iterator[None]:
    """Work in a folder, which modules can be imported from, and forget them afterwards."""
    before = Path.cwd()
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        os.chdir(before)
        sys.path.remove(str(folder))
        for name, module in list(sys.modules.items()):
            if Path(getattr(module, "__file__", None) or "/").is_relative_to(folder):
                del sys.modules[name]


def renew(page: Path) -> None:
    """Write what comes out into a page."""
    with tempfile.TemporaryDirectory() as folder, reader(Path(folder).resolve()):
        steps = list(follow(page, strict=False))
    text = page.read_text(encoding="utf-8")
    for step in reversed(steps):
        if agrees(step.told, step.printed):
            continue
        if LEFT_OUT in step.told:
            print(f"{page.name}: renew by hand what is printed by {step.what}\n{step.printed}")
            continue
        start, end = step.place
        text = text[:start] + "".join(f"{line}\n" for line in lines_of(step.printed)) + text[end:]
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        renew(Path(name).resolve())
