"""The code in the README and the docs runs as it stands."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from blemish.version import VERSION
from command_line import invoke

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
DOCS = ROOT / "docs"
ALL = [README, *sorted(DOCS.rglob("*.md"))]
PAGES = [
    path
    for path in ALL
    # These have tests of their own: some are followed as a whole, the last needs packages of others.
    if "```python" in path.read_text()
    and path.parent.name != "tutorials"
    and path.name not in ("extending.md", "integrations.md")
]


def lines_of(text: str) -> list[str]:
    """Lines without the blanks at their ends, which tables are filled up with."""
    return [line.rstrip() for line in text.strip().splitlines()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = page.read_text(encoding="utf-8")
    for block, output in re.findall(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", text, re.DOTALL):
        capsys.readouterr()
        exec(compile(block, page.name, "exec"), {"__name__": "example"})
        printed = lines_of(capsys.readouterr().out)
        if output:  # a block of text right after an example is what it prints
            assert printed == lines_of(output)


def test_the_readme_shows_what_its_command_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = re.findall(r"```console\n\$ blemish (.*?)\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(shown) == 1
    words, output = shown[0]
    code, printed, _ = invoke(*shlex.split(words), columns=100)
    assert code == 0
    *told, rest = lines_of(output)
    assert rest == "…"
    assert lines_of(printed)[: len(told)] == told
    assert len(told) > 10


def test_the_readme_is_short() -> None:
    """About two screens, picture and table included."""
    text = README.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 115
    assert len(text.split()) <= 850
    assert text.count("](docs/pictures/") == 1


def test_the_readme_cites_the_version_and_title_of_the_citation_file() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    citation = dict(re.findall(r'^(\w+): "?(.*?)"?$', text, re.MULTILINE))
    assert citation["version"] == VERSION
    bibtex = dict(re.findall(r"^  (\w+) += \{+(.*?)\}+,?$", README.read_text(encoding="utf-8"), re.MULTILINE))
    assert {name: bibtex[name] for name in ("title", "version", "license")} == {
        name: citation[name] for name in ("title", "version", "license")
    }


def test_the_install_page_lists_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    theirs = extras.keys() - {"dev", "docs"}  # the others are for those who work on it
    asked = {"blemish": project["dependencies"]} | {f"`{name}`": extras[name] for name in theirs}
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| (blemish|`\w+`) \| ([\w-]+) \|", page, re.MULTILINE)
    assert sorted(told) == sorted((part, re.split(r"[<>=]", line)[0]) for part, all_ in asked.items() for line in all_)


def test_every_page_is_listed() -> None:
    listed = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name == "README.md" or f"]({page.name})" in listed, f"docs/README.md does not list {page.name}"


def test_there_are_examples() -> None:
    assert len(PAGES) >= 2


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert "://" in target or (page.parent / target).exists(), f"{page.name} links to {target}"
