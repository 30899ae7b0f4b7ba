"""Notebooks as pages: their words and their code."""

from __future__ import annotations

import json
from pathlib import Path


def page(path: Path) -> str:
    """A notebook as Markdown, with a line that says where it lies."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts = []
    for cell in cells:
        text = "".join(cell["source"]).strip()
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
    where = f"*A notebook: `examples/{path.name}` in the repository.*"
    return "\n\n".join([parts[0], where, *parts[1:]]) + "\n"
