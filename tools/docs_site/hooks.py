"""What mkdocs calls while it builds the site: pages that code makes, pages from beside docs/, and links.

Pages are written so that links work in the repository. Here those that leave docs/ are turned to what the site has.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "src"))  # this checkout's, whatever is installed

import api_page  # noqa: E402
import benchmark_pages  # noqa: E402
import command_pages  # noqa: E402
import gallery_page  # noqa: E402
import notebook_pages  # noqa: E402

# Pages that lie elsewhere in the repository, and where the site has them.
BESIDE = {
    "CHANGELOG.md": "about/changelog.md",
    "CONTRIBUTING.md": "about/contributing.md",
    "ARCHITECTURE.md": "about/architecture.md",
    "RELEASING.md": "about/releasing.md",
    "perf/README.md": "research/speed.md",
    "perf/roofline.md": "research/roofline.md",
}
NOTEBOOKS = {f"examples/{one.name}": f"examples/{one.stem}.md" for one in sorted((ROOT / "examples").glob("*.ipynb"))}
# A link to one of these is a link to that page.
ELSEWHERE = BESIDE | NOTEBOOKS | {"README.md": "README.md", "examples": "notebooks.md", "docs": "README.md"}
SOURCES = {site: repository for repository, site in (BESIDE | NOTEBOOKS).items()}
# What is made for pages whose heads lie in docs/; it takes the place of what is said there in the repository.
filled: dict[str, str] = {}
_ONLY_THERE = re.compile("<!-- in the repository -->.*?<!-- on the site -->", re.DOTALL)
# How far up the search shows pages of a folder, beside 1 for the others.
WEIGHTS = {"tutorials": 2, "research": 0.3, "about": 0.2}

_LINK = re.compile(r"\[([^\[\]]*)\]\(([^)\s#]+)(#[^)\s]*)?\)")


def on_config(config: Any) -> Any:
    """Add the commands, which know themselves, to the navigation."""
    (listed,) = _lists(config.nav, "Commands")
    listed += [{f"blemish {name}": f"{command_pages.FOLDER}/{name}.md"} for name in command_pages.COMMANDS]
    return config


def _lists(nav: list[Any], title: str) -> list[list[Any]]:
    found = []
    for entry in nav:
        if isinstance(entry, dict):
            for name, inside in entry.items():
                if isinstance(inside, list):
                    found += [inside] if name == title else _lists(inside, title)
    return found


def on_files(files: Files, config: Any) -> Files:
    """Add what is not a file in docs/."""
    made: dict[str, str | bytes] = {
        **{site: (ROOT / path).read_text(encoding="utf-8") for path, site in BESIDE.items()},
        **{site: notebook_pages.page(ROOT / path) for path, site in NOTEBOOKS.items()},
        **api_page.pages(),
        **command_pages.pages(),
        **benchmark_pages.pages(),
        **gallery_page.pages(),
    }
    for uri, content in made.items():
        if (ROOT / "docs" / uri).is_file():
            filled[uri] = str(content)
        else:
            files.append(File.generated(config, uri, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Turn links that leave docs/, and those of pages from beside it, to where the site has what they lead to."""
    here = page.file.src_uri
    weight = WEIGHTS.get(here.partition("/")[0])
    if weight is not None:
        page.meta.setdefault("search", {})["boost"] = weight
    if here in filled:
        markdown, count = _ONLY_THERE.subn(lambda _: filled[here], markdown)
        assert count == 1, f"docs/{here} has no place for what is made"
    return linked(markdown, here, SOURCES.get(here, f"docs/{here}"))


def linked(markdown: str, here: str, source: str) -> str:
    """The page at ``here`` of the site, whose text is the repository's file ``source``, with its links turned.

    What only the repository has, such as code, is named without a link.
    """

    def turned(found: re.Match[str]) -> str:
        words, target, anchor = found.groups()
        if "://" in target or (found.start() and markdown[found.start() - 1] == "!"):
            return found[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if path in ELSEWHERE:
            uri = ELSEWHERE[path]
        elif path.startswith("docs/"):
            uri = path.removeprefix("docs/")
        else:
            return words if (ROOT / path).exists() else found[0]
        return f"[{words}]({posixpath.relpath(uri, posixpath.dirname(here) or '.')}{anchor or ''})"

    return _LINK.sub(turned, markdown)
