"""A page for each command, from the command itself: how it is called, what it says of itself, and all its options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from typer.main import get_command

from blemish.cli.main import COMMANDS, app, import_command

FOLDER = "reference/commands"


def pages() -> dict[str, str]:
    """The pages, and one that lists them."""
    made = {f"{FOLDER}/{name}.md": page(name) for name in COMMANDS}
    made[f"{FOLDER}/index.md"] = index()
    return made


def index() -> str:
    """All commands, by what they are for."""
    lines: list[str] = []
    for panel in dict.fromkeys(command.panel for command in COMMANDS.values()):
        lines += ["", f"## {panel}", "", "| command | what it does |", "|---|---|"]
        lines += [
            f"| [`blemish {name}`]({name}.md) | {cell(command.help)} |"
            for name, command in COMMANDS.items()
            if command.panel == panel
        ]
    common = get_command(app)
    lines += ["", "## For every command", "", "These stand before the command's name: `blemish -v run …`.", ""]
    options = [option for option in common.params if option.param_type_name == "option"]
    lines += _table(options, common.make_context("blemish", [], resilient_parsing=True))
    return "\n".join(lines) + "\n"


def page(name: str) -> str:
    """The page of a command, its own commands included."""
    return "\n".join(_described(import_command(name), f"blemish {name}", 1)) + "\n"


def _described(command: Any, called: str, level: int) -> Iterator[str]:
    yield f"{'#' * level} {called}"
    yield ""
    context = command.make_context(called, [], resilient_parsing=True)
    yield from ("```", f"{called} {' '.join(command.collect_usage_pieces(context))}", "```", "")
    yield from _words(command.help or "")
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    if arguments:
        yield from ("", "| argument | what it is |", "|---|---|")
        for one in arguments:
            yield f"| `{one.display_name_raw}` | {cell(one.help or '')} |"
    panels: dict[str, list[Any]] = {}
    for one in command.params:
        if one.param_type_name == "option" and not one.hidden:
            panels.setdefault(getattr(one, "rich_help_panel", None) or "Options", []).append(one)
    for panel, options in panels.items():
        yield from ("", f"**{panel}**", "")
        yield from _table(options, context)
    for child_name, child in getattr(command, "commands", {}).items():
        yield ""
        yield from _described(child, f"{called} {child_name}", level + 1)


def _words(text: str) -> Iterator[str]:
    """A command's help; the lines of examples, which are indented, become a block of code."""
    examples: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        if paragraph.startswith("  blemish "):
            examples.append(paragraph.strip())
            continue
        if examples:
            yield from ("```sh", *examples, "```", "")
            examples = []
        yield from (" ".join(escaped(line.strip()) for line in paragraph.splitlines()), "")
    if examples:
        yield from ("```sh", *examples, "```", "")


def _table(options: list[Any], context: Any) -> Iterator[str]:
    yield "| option | takes | what it does |"
    yield "|---|---|---|"
    for option in options:
        names = ", ".join(f"`{name}`" for name in sorted([*option.opts, *option.secondary_opts], key=len, reverse=True))
        yield f"| {names} | {_takes(option, context)} | {_told(option)} |"


def _takes(option: Any, context: Any) -> str:
    if option.is_flag or option.count:
        return ""
    return f"`{(option.metavar or option.display_type(context)).strip('<>')}`".replace("|", "\\|")


def _told(option: Any) -> str:
    told = cell(option.help or "")
    default = option.default
    if option.required:
        return f"{told} **Required.**"
    if option.is_flag or option.count or default is None or callable(default) or default in ((), [], ""):
        return told
    defaults = default if isinstance(default, list | tuple) else [default]
    shown = ", ".join(str(getattr(one, "value", one)) for one in defaults)
    return f"{told} Default: `{shown}`."


def cell(text: str) -> str:
    """A text as it stands in a table."""
    return escaped(" ".join(text.split())).replace("|", "\\|")


def escaped(text: str) -> str:
    """A text without what Markdown would read as more than words."""
    return re.sub(r"([*_<\[\]`])", r"\\\1", text)
