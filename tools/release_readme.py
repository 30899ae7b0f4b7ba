"""The README as PyPI needs it: with links and the picture at addresses, since PyPI shows it without the repository.

    python tools/release_readme.py https://github.com/OWNER/blemish > README.pypi.md

It names the tag of this version, so that a page of an old release leads to the documents of that release.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "src"))

from blemish.version import VERSION  # noqa: E402

_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def absolute(text: str, address: str, tag: str) -> str:
    """The text with every link that leads into the repository at ``address``; pages as pages, pictures as files."""

    def turned(found: re.Match[str]) -> str:
        picture, words, target = found.groups()
        if "://" in target or target.startswith("#"):
            return found[0]
        kind = "raw" if picture else "blob"
        return f"{picture}[{words}]({address.rstrip('/')}/{kind}/{tag}/{target})"

    return _LINK.sub(turned, text)


if __name__ == "__main__":
    if len(sys.argv) != 2 or not sys.argv[1].startswith("https://"):
        sys.exit("expected the address of the repository: https://…")
    sys.stdout.write(absolute((ROOT / "README.md").read_text(encoding="utf-8"), sys.argv[1], f"v{VERSION}"))
