"""The direction of imports is law: a file imports only from lower layers, or from its own package."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import blemish

ROOT = Path(blemish.__file__).parent

# The longest matching prefix decides. Modules of one prefix may import each other; two prefixes of one level may not.
LAYERS = {
    "ops.transfer": -1,
    "version": 0,
    "core": 1,
    "ops.fused": 0,
    "ops.compiled": 0,
    "ops": 2,
    "corruptions": 3,
    "corruptions.catalog": 4,
    "corruptions.plugins": 5,
    "corruptions.transform": 5,
    "data": 6,
    "models": 6,
    "models.open": 7,
    "benchmarks": 6,
    "evaluation.executors": 6,
    "evaluation": 8,
    "export": 9,
    "metrics": 9,
    "tasks": 9,
    "reports": 10,
    "terminal": 11,
    "studies.adaptation": 12,
    "studies.audit": 12,
    "studies.construction": 12,
    "studies.separation": 12,
    "studies.equivalence": 12,
    "studies.perceptual": 12,
    "studies.overlap": 13,
    "studies.streams": 13,
    "studies.arena": 14,
    "studies": 14,
    "cli": 15,
    "integrations": 16,
    "": 17,
}


def layer(module: str) -> tuple[str, int]:
    parts = module.split(".")
    for length in range(len(parts), -1, -1):
        prefix = ".".join(parts[:length])
        if prefix in LAYERS:
            return prefix, LAYERS[prefix]
    raise AssertionError(f"no layer for {module}")


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


def imported_modules(path: Path) -> set[str]:
    """What a file imports from blemish, as dotted names below it, in functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        found |= {name.removeprefix("blemish").lstrip(".") for name in names if name.split(".")[0] == "blemish"}
    return found


FILES = sorted(ROOT.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_downwards(path: Path) -> None:
    here, level = layer(module_name(path))
    for name in imported_modules(path):
        there, other = layer(name)
        assert other < level or there == here, (
            f"{path.name} ({here}, L{level}) imports blemish.{name} ({there}, L{other})"
        )


def test_nothing_imports_the_integrations() -> None:
    """They need the libraries that they are for."""
    others = [path for path in FILES if not module_name(path).startswith("integrations")]
    assert len(others) < len(FILES)
    assert [
        path.name for path in others if any(name.startswith("integrations") for name in imported_modules(path))
    ] == []


def test_metrics_read_records_and_run_no_model() -> None:
    """Of evaluation they know what was recorded and not how, and of models nothing."""
    readings = ("evaluation.chance", "evaluation.answers", "evaluation.records", "evaluation.runs")
    running = {"evaluation", "export", "models"}
    paths = [path for path in FILES if module_name(path).startswith("metrics")]
    names = {name for path in paths for name in imported_modules(path)}
    assert any(name.startswith(readings) for name in names)
    assert [name for name in names if name.split(".")[0] in running and not name.startswith(readings)] == []


def test_the_measuring_loop_knows_no_task() -> None:
    """What is asked of a model besides classes is data; only tasks/ and metrics/ know what it means."""
    words = ("detection", "segmentation", "boxes", "pixel class")
    sources = [path for path in FILES if module_name(path).startswith("evaluation")]
    assert len(sources) > 20
    assert [(path.name, word) for path in sources for word in words if word in path.read_text("utf-8").lower()] == []


def test_the_check_can_fail(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("def f():\n    from blemish.cli.main import app\n")
    (name,) = imported_modules(bad)
    assert layer(name)[1] > layer("ops.filters")[1]


def test_nothing_heavy_is_imported_with_the_library() -> None:
    """Corrupting tensors needs torch, numpy and Pillow only; numba, where it is installed, is a choice."""
    code = (
        "import sys, torch, blemish\n"
        "blemish.corrupt(torch.zeros(3, 32, 32, dtype=torch.uint8), 'fog', severity=1)\n"
        "heavy = {'typer', 'rich', 'scipy', 'cv2', 'skimage', 'numba', 'matplotlib', 'pandas', 'torchvision',"
        "'pyarrow', 'sklearn'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    plain = {**os.environ, "BLEMISH_COMPILED": "0"}
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=plain)
    assert result.stdout.strip() == "[]"


def test_the_sources_know_nothing_of_the_folder_beside_the_checkout() -> None:
    assert not [path for path in FILES if "shared/" in path.read_text(encoding="utf-8")]


def test_lists_of_names_stand_only_where_names_are_passed_on() -> None:
    needless = []
    for path in FILES:
        body = ast.parse(path.read_text(encoding="utf-8")).body
        listed = [
            node.value for node in body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
        ]
        imported = {
            alias.asname or alias.name for node in body if isinstance(node, ast.ImportFrom) for alias in node.names
        }
        if listed and path.name != "__init__.py" and not imported & {*ast.literal_eval(listed[0])}:
            needless.append(str(path.relative_to(ROOT)))
    assert not needless


def test_files_can_be_read_in_one_go() -> None:
    assert {path.name: count for path in FILES if (count := len(path.read_text("utf-8").splitlines())) > 300} == {}


PAGES = [Path(__file__).resolve().parents[1] / name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md")]


def named_by(page: Path) -> set[str]:
    """The files and folders that a page names between backticks."""
    texts = re.findall(r"`([^`\s]+)`", page.read_text(encoding="utf-8"))
    return {text for text in texts if re.fullmatch(r"[\w./*-]+(/|\.(py|md|toml|txt|yml))", text)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_the_page_names_is_there(page: Path) -> None:
    """As a path below the repository, below the package, or below the folder of it that is just spoken of."""
    root = page.parent
    names = named_by(page)
    assert len(names) > 5
    below = [root, ROOT, *(ROOT / name for name in ("evaluation", "studies", "corruptions", "export"))]
    assert [name for name in sorted(names) if not any(next(each.glob(name.rstrip("/")), None) for each in below)] == []


def test_every_folder_has_its_room() -> None:
    page = PAGES[0].read_text(encoding="utf-8")
    inside = [path for path in ROOT.iterdir() if path.is_dir() and path.name != "__pycache__"]
    inside += [path for path in (ROOT / "studies").iterdir() if path.is_dir() and path.name != "__pycache__"]
    assert len(inside) > 20
    assert [path.name for path in inside if f"`{path.name}/`" not in page] == []
