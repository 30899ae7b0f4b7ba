"""What the commands about separation write, and a reader of pages, for the tests of the report."""

from __future__ import annotations

import copy
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from blemish.studies.separation.commands.separation import json_text
from blemish.studies.separation.exact import separation

# Clean 90 %, 81 % under noise: MSCR = (0.81 − 0.9) / 0.9 = −10 %, by hand.
SCORE = {
    "model": "net",
    "epsilon": 0.25,
    "clean": 0.9,
    "robust": {"mean": 0.81, "half_width": 0.01, "deviation": 0.004, "runs": 3},
    "mscr": {"mean": -0.1, "half_width": 0.0125, "deviation": 0.005, "runs": 3},
}
PROTOCOL = {
    "model": "forest",
    "norm": "linf",
    "epsilon_min": 0.25,
    "eps_train": [0.0, 0.25],
    "eps_test": [0.0, 0.25, 0.5],
    "k": 10,
    "seed": -3,
    "test_share": 0.2,
    "clip": False,
    "draws": "shared",
    "data": "00",
}


def value(mean: float) -> dict[str, Any]:
    return {"mean": mean, "half_width": None, "deviation": None, "runs": 1}


MODEL = {
    "protocol": PROTOCOL,
    "runs": 1,
    "accuracy": {
        "0.0": [value(0.8), value(0.75)],
        "0.25": [value(0.6), value(0.75)],
        "0.5": [value(0.5), value(0.51)],
    },
    "mscr": [value(-0.25), value(0.0)],  # (0.6 − 0.8) / 0.8, and no loss
}
MSCR = {
    "epsilon": 0.25,
    "radius": "as asked",
    "settings": {"k": 10, "runs": 1, "norm": "linf", "seed": -3, "clip": False},
    "models": {"forest": MODEL},
    "trained": [SCORE],
}
SEPARATION = separation([[0.0, 0.0], [1.0, 0.0], [0.25, 0.5]], ["a", "a", "b"]).record()


class Words(HTMLParser):
    """The sections of a page, each with its texts, and all tags."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.sections: dict[str, list[str]] = {}
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.top: list[str] = []
        self._now = self.top
        # Places where a line may be broken break no text.
        self.feed(page.replace("<wbr>", ""))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag == "section":
            self._now = self.sections.setdefault(str(dict(attrs)["id"]), [])

    def handle_data(self, data: str) -> None:
        if data.strip():
            self._now.append(data)


def write(folder: Path, name: str, record: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json_text(record), encoding="utf-8")
    return folder / name


def changed(record: Any, way: str, new: Any) -> Any:
    """A copy with one value replaced; ``way`` is such as ``closest.0.first``."""
    result = copy.deepcopy(record)
    *steps, last = [int(part) if part.isdigit() else part for part in way.split("/")]
    inner = result
    for step in steps:
        inner = inner[step]
    if new is ...:
        del inner[last]
    else:
        inner[last] = new
    return result
