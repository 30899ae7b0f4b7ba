"""How far a call walks through the library: python tools/walks.py prints the functions and files that three calls pass.

The three are `corrupt` (one batch), `run` (a small benchmark) and `report` (the page of that run). Every function of
blemish that is entered counts once; comprehensions, lambdas, and what only happens on import, do not.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import torch

import blemish

ROOT = str(Path(blemish.__file__).parent)


def walk(call: Callable[[], object]) -> tuple[int, int]:
    """The numbers of functions and of files of blemish that a call enters."""
    functions: set[tuple[str, str, int]] = set()

    def enter(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT) and not code.co_name.startswith("<"):
            functions.add((code.co_filename, code.co_name, code.co_firstlineno))

    call()  # imports, and tables that are made once
    sys.setprofile(enter)
    try:
        call()
    finally:
        sys.setprofile(None)
    return len(functions), len({file for file, _, _ in functions})


def main() -> None:
    """Print a row for each."""
    images = torch.zeros(2, 3, 32, 32, dtype=torch.uint8)
    with tempfile.TemporaryDirectory() as folder:
        runs: list[blemish.Run] = []
        calls = {
            "corrupt": lambda: blemish.corrupt(images, "fog", 3),
            "run": lambda: runs.append(
                blemish.evaluate("demo:plain", "demo:digits", "digits-c", out=f"{folder}/{len(runs)}", limit=20)
            ),
            "report": lambda: blemish.write_report(runs[:1], Path(folder) / "report.html", replicates=10),
        }
        print("| call | functions | files |\n|---|---:|---:|")
        for name, call in calls.items():
            functions, files = walk(call)
            print(f"| {name} | {functions} | {files} |")


if __name__ == "__main__":
    main()
