"""The site made from the docs: every page has its place, it is built without a warning, and needs no network."""

from __future__ import annotations

import dataclasses
import html
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.main import get_command

import blemish
from blemish.benchmarks.benchmark import METRICS, Benchmark, Protocol
from blemish.benchmarks.files import built_in
from blemish.cli.main import COMMANDS, app, import_command
from blemish.corruptions.catalog import catalog
from blemish.data.manifest import CopiesInfo, SetInfo
from blemish.evaluation.info import BenchmarkInfo, DataInfo, ProtocolInfo, RecordsHeader, RunInfo, TaskInfo
from blemish.models.base import ModelInfo
from chromium import BROWSER, browse
from foreign import foreign

ROOT = Path(__file__).resolve().parents[1]
# Fields that hold what has a section or a table of its own.
OBJECTS = {"conditions", "part_of", "protocol"}
TOOLS = ROOT / "tools" / "docs_site"
PLACES = re.findall(r"(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)


def test_every_page_has_its_place() -> None:
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert pages <= set(PLACES), f"mkdocs.yml has no place for {sorted(pages - set(PLACES))}"
    assert len(PLACES) == len(set(PLACES))


def test_the_api_page_has_every_public_name() -> None:
    spec = importlib.util.spec_from_file_location("api_page", TOOLS / "api_page.py")
    assert spec is not None
    assert spec.loader is not None
    api_page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(api_page)
    listed = [name for names in api_page.GROUPS.values() for name in names]
    assert sorted(listed) == sorted(blemish.__all__)


@pytest.mark.parametrize(
    ("kind", "section"),
    [
        (BenchmarkInfo, "Run files"),
        (ProtocolInfo, "Run files"),
        (DataInfo, "Run files"),
        (ModelInfo, "Run files"),
        (RunInfo, "Run files"),
        (TaskInfo, "Run files"),
        (RecordsHeader, "Records"),
        (SetInfo, "Corrupted sets"),
        (CopiesInfo, "Corrupted sets"),
        (Protocol, "Benchmark files"),
        (Benchmark, "Benchmark files"),
    ],
)
def test_the_page_of_formats_names_every_field(kind: type, section: str) -> None:
    text = (ROOT / "docs" / "reference" / "formats.md").read_text(encoding="utf-8")
    _, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    (told,) = (text for text in sections if text.startswith(section))
    names = {field.name for field in dataclasses.fields(kind)} - OBJECTS
    assert not {name for name in names if f"`{name}`" not in told}


def test_the_page_of_formats_names_every_column_and_key(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "reference" / "formats.md").read_text(encoding="utf-8")
    run = blemish.evaluate("demo:plain", "demo:digits", ["fog@3"], limit=20, out=tmp_path)
    columns = pq.read_schema(run.folder / "records" / "fog@3.parquet").names
    assert all(f"| `{name}` |" in text for name in columns)
    assert all(f"`{name}`" in text for name in METRICS)


def test_the_page_on_measuring_names_every_benchmark() -> None:
    text = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")
    families = {name.partition("/")[0] for name in built_in() if "/" in name}
    assert not {name for name in built_in() if f"`{name}`" not in text and name.partition("/")[0] not in families}
    assert all(f"`{name}/" in text for name in families)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for module in ("mkdocs", "material", "mkdocstrings"):
        foreign(module)
    folder = tmp_path_factory.mktemp("site")
    # Whoever asks for the network is told that there is none.
    nowhere = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
    environment = os.environ | nowhere | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def read(site: Path, page: str) -> str:
    return (site / page).read_text(encoding="utf-8")


@pytest.mark.slow
def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        if page.name == "404.html":  # which a server shows, and so begins all addresses at its root
            continue
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe|source)[^>]*\ssrc=\"([^\"]+)", text)
        loaded += re.findall(r"<link[^>]*rel=\"(?:stylesheet|icon|preconnect|preload)\"[^>]*href=\"([^\"]+)", text)
        loaded += re.findall(r"<link[^>]*href=\"([^\"]+)\"[^>]*rel=\"(?:stylesheet|icon|preconnect|preload)\"", text)
        assert loaded
        away = [address for address in loaded if "//" in address and not address.startswith("data:")]
        assert not away, f"{page.name} loads {away}"
        for address in loaded:
            assert address.startswith("data:") or (page.parent / address.partition("?")[0]).is_file(), address


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_command_pages_have_every_option(site: Path, name: str) -> None:
    text = html.unescape(read(site, f"reference/commands/{name}.html"))
    commands = [import_command(name)]
    while commands:
        command = commands.pop()
        commands += getattr(command, "commands", {}).values()
        for one in command.params:
            if one.param_type_name == "option":
                assert all(f"<code>{option}</code>" in text for option in (*one.opts, *one.secondary_opts)), one.name


@pytest.mark.slow
def test_reference_pages_are_whole(site: Path) -> None:
    text = html.unescape(read(site, "reference/commands/index.html"))
    assert all(f'href="{name}.html"' in text for name in COMMANDS)
    assert all(option in text for one in get_command(app).params for option in one.opts)
    benchmarks = read(site, "reference/benchmarks.html")
    assert all(f"<code>{name}</code>" in benchmarks for name in built_in())
    api = read(site, "reference/api.html")
    # An object without a docstring would be left out.
    assert all(f'id="blemish.{name}"' in api for name in blemish.__all__)


@pytest.mark.slow
def test_the_gallery_shows_or_names_every_corruption(site: Path) -> None:
    text = html.unescape(read(site, "gallery.html"))
    assert all(f"<code>{name}</code>" in text for name in catalog)
    assert len(set(re.findall(r"gallery/[\w.-]+\.webp", text))) > 400


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
def test_search_works_from_a_disk(site: Path, tmp_path: Path) -> None:
    shown = browse(site / "index.html", tmp_path, "--dump-dom", fragment="?q=rolling+shutter")
    assert not [line for line in shown.stderr.splitlines() if "CONSOLE" in line]
    assert re.search(r"[1-9]\d* matching documents", shown.stdout)
    assert "sensors.html" in re.search(r"md-search-result__list.*", shown.stdout, re.DOTALL)[0]


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
def test_options_are_found_as_they_are_written(site: Path, tmp_path: Path) -> None:
    shown = browse(site / "index.html", tmp_path, "--dump-dom", fragment="?q=--max-drop")
    assert not [line for line in shown.stderr.splitlines() if "CONSOLE" in line]
    assert "gate.html" in re.search(r"md-search-result__list.*", shown.stdout, re.DOTALL)[0]


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
def test_the_gallery_is_searched_as_one_types(site: Path, tmp_path: Path) -> None:
    shown = browse(site / "gallery.html", tmp_path, "--dump-dom", fragment="?find=Motion+blur")
    assert not [line for line in shown.stderr.splitlines() if "CONSOLE" in line]
    cards = re.findall(r"<div class=\"gallery-card\"( hidden=\"\")?><code>([^<]*)", shown.stdout)
    seen = {name for hidden, name in cards if not hidden}
    assert {"motion_blur", "med:motion_blur", "syn2nat:motion_blur"} <= seen
    assert "fog" not in seen
