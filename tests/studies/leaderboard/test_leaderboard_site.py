"""The site: all pages are there and link to each other, nothing of others is obeyed, and it works in a browser."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

from blemish.core.errors import InputError
from blemish.metrics.imports import TableInfo
from blemish.studies.leaderboard.board import boards_of
from blemish.studies.leaderboard.entry import find_entries
from blemish.studies.leaderboard.make import import_table, make_entry
from blemish.studies.leaderboard.site import write_site
from chromium import BROWSER, browse
from command_line import invoke
from synthetic_runs import severities, write_run

HOSTILE = "</script><img src=x onerror=alert(1)>'\"&"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    for seed, name in enumerate(("plain", "other")):
        run = write_run(
            folder / "runs",
            name,
            severities(("fog", "snow")),
            seed=seed,
            images=60,
            model={"name": HOSTILE if name == "other" else name},
            benchmark={"title": f"A {HOSTILE} benchmark"},
        )
        make_entry(run, folder / "board", notes=HOSTILE, link="javascript:alert(1)")
    cells = folder / "mine.csv"
    cells.write_text("model,clean,fog@1,fog@2\nplain,5,10,20\nother net,6,12,30\n")
    title = f"my_own_table {HOSTILE}"
    info = TableInfo("mine", title, "synthetic", "per-cell", "error", HOSTILE, 1000, cells="error", cannot=(HOSTILE,))
    import_table(cells, folder / "board", info)
    boards = boards_of(find_entries(folder / "board"), imports=["robustbench/cifar10-c"], replicates=50)
    pages = write_site(boards, folder / "site", title="Ours")
    assert pages == len(list((folder / "site").rglob("*.html")))
    return folder / "site"


def test_every_link_leads_somewhere(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    linked = {site / "index.html"}
    for page in pages:
        text = page.read_text()
        for target in re.findall(r'(?:href|src)="([^"]*)"', text):
            if target.startswith(("https://", "#")):
                continue
            path, _, fragment = html.unescape(target).partition("#")
            place = (page.parent / unquote(path)).resolve()
            assert place.is_file(), f"{page.name} links to {target}"
            linked.add(place)
            if fragment:
                assert f'id="{fragment}"' in place.read_text()
    assert {page.resolve() for page in pages} <= {page.resolve() for page in linked}, "every page can be reached"


def test_there_is_a_page_for_each_model_corruption_and_benchmark(site: Path) -> None:
    assert len(list((site / "models").iterdir())) == 3 + 23
    assert {path.stem for path in (site / "corruptions" / "synthetic").iterdir()} == {"fog", "snow"}
    assert len(list((site / "corruptions" / "cifar10-c").iterdir())) == 15
    assert {path.stem for path in (site / "boards").iterdir()} == {"synthetic", "cifar10-c"}
    plain = (site / "models" / "plain.html").read_text()
    assert plain.count("<section") == 2, "one for each ranking that has a model of this name"
    assert "sha256:" in plain
    fog = (site / "corruptions" / "synthetic" / "fog.html").read_text()
    assert fog.index("plain.html") < fog.index("other-net.html"), "in the order of their errors"


def test_nothing_of_others_is_obeyed(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text()
        assert "<img" not in text
        assert 'href="javascript' not in text
        assert text.count("<script") == text.count("</script>") == (2 if page.name == "index.html" else 1)


@pytest.mark.parametrize(
    "name", ["index.html", "boards/synthetic.html", "models/plain.html", "corruptions/synthetic/fog.html"]
)
def test_titles_are_broken_at_the_ends_of_words(site: Path, name: str) -> None:
    assert re.search(r"<h\d>(<a [^>]*>)?my_<wbr>own_<wbr>table ", (site / name).read_text())


def test_tiers_are_apart(site: Path) -> None:
    text = (site / "boards" / "synthetic.html").read_text()
    sections = re.findall(r'<section id="([^"]+)" class="ranking" data-tier="([^"]+)"', text)
    assert [tier for _, tier in sections] == ["recomputable", "per-cell"]


def test_all_numbers_can_be_taken_along(site: Path) -> None:
    content = json.loads((site / "leaderboard.json").read_text())
    assert len(content["boards"]) == 2
    assert (site / "leaderboard.csv").read_text().count("\n") == 1 + 2 + 2 + 23


def test_a_site_of_others_is_kept(site: Path, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("mine")
    boards = boards_of([], imports=["imagenet-c/readme"])
    with pytest.raises(InputError, match="not made by blemish"):
        write_site(boards, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["index.html"]
    write_site(boards, tmp_path / "own")
    write_site(boards, tmp_path / "own")


def test_results_of_one_name_are_refused_before_any_work(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        write_run(tmp_path / folder, "net", {"clean": 0.9, "fog@3": 0.5}, images=40)
    code, _, complaint = invoke("leaderboard", "add", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "board")
    assert (code, "several of these results" in complaint) == (2, True)
    assert not (tmp_path / "board").exists()
    code, _, complaint = invoke("leaderboard", "add", tmp_path / "a", "-o", tmp_path / "board", "--on", "x")
    assert (code, "--images-per-second" in complaint) == (2, True)


def test_the_commands(tmp_path: Path) -> None:
    write_run(tmp_path / "runs", "net", severities(("fog", "snow")), images=50)
    board = tmp_path / "board"
    code, out, _ = invoke("leaderboard", "add", tmp_path / "runs", "-o", board)
    assert code == 0
    assert "sha256:" in out
    cells = tmp_path / "cells.csv"
    cells.write_text("model,mce\nours,40\n")
    arguments = ("--benchmark", "imagenet-c", "--metric", "mce", "--source", "Table 3", "--images", 50000)
    assert invoke("leaderboard", "import", cells, "-o", board, *arguments)[0] == 0
    code, out, _ = invoke("leaderboard", "verify", board)
    assert code == 0
    assert "holds" in out
    code, out, _ = invoke("leaderboard", "show", board, "--published", "none", "--csv", "--replicates", 20)
    assert code == 0
    assert len(out.splitlines()) == 3
    code, out, _ = invoke("leaderboard", "show", board, "--benchmark", "imagenet-c", "--replicates", 20, "--top", 3)
    assert (code, "ours" in out, "resnext101_32x8d_deepaugment_augmix" in out) == (0, True, True)
    code, _, complaint = invoke("leaderboard", "show", board, "--name", "nobody")
    assert (code, "no model fits" in complaint) == (2, True)
    site = tmp_path / "site"
    assert invoke("leaderboard", "site", board, "--published", "none", "--replicates", 20, "-o", site)[0] == 0
    assert (site / "models" / "net.html").is_file()
    code, out, _ = invoke("leaderboard", "tables", "testbed/in-memory")
    assert (code, "glass blur is missing" in " ".join(out.split())) == (0, True)
    code, _, complaint = invoke("leaderboard", "verify", board, "--model", "demo:plain")
    assert (code, "--rerun" in complaint) == (2, True)
    entry = board / "net" / "entry.json"
    entry.write_text(entry.read_text().replace('"error": ', '"error": 1'))
    code, _, complaint = invoke("leaderboard", "verify", board)
    assert (code, "entry.json: was changed after it was sealed" in complaint) == (2, True)


TRIED = """
<script>
(() => {
  const root = document.documentElement, found = {};
  const table = document.querySelectorAll("#robustbench-cifar10-c table.sortable")[0];
  const rows = () => [...table.tBodies[0].rows].filter((row) => !row.hidden);
  const names = () => rows().map((row) => row.cells[0].textContent.trim());
  found.first = names()[0];
  table.tHead.rows[0].cells[2].querySelector("button").click();
  table.tHead.rows[0].cells[2].querySelector("button").click();
  found.worst = names()[0];
  const form = document.querySelector(".filters");
  form.elements.name.value = "AugMix";
  form.dispatchEvent(new Event("input"));
  found.shown = names().length;
  form.elements.tier.value = "claimed";
  form.dispatchEvent(new Event("input"));
  found.claimed = names().length;
  found.wide = root.scrollWidth - root.clientWidth;
  found.width = root.clientWidth;
  root.dataset.found = JSON.stringify(found);
})();
</script>
"""


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
@pytest.mark.parametrize("size", ["1280,900", "500,900"])
def test_in_a_browser(site: Path, tmp_path: Path, size: str) -> None:
    """From a file; it is sorted and filtered, is no wider than the window, and complains of nothing."""
    page = site / "boards" / "cifar10-c.html"
    tried = page.with_name("tried.html")
    tried.write_text(page.read_text().replace("</body>", f"{TRIED}</body>"))
    try:
        result = browse(tried, tmp_path, f"--window-size={size}", "--dump-dom")
    finally:
        tried.unlink()
    opening = re.search(r"<html[^>]*>", result.stdout)
    assert opening is not None
    assert 'data-errors=""' in opening[0]
    found = json.loads(html.unescape(re.search(r'data-found="([^"]*)"', opening[0])[1]))  # type: ignore[index]
    assert found["first"].startswith("Diffenderfer2021Winning_LRR_CARD_Deck")
    assert found["worst"] == "Standard"
    assert found["shown"] == 5
    assert found["claimed"] == 0
    assert found["wide"] == 0, "nothing is wider than the window"
    assert found["width"] <= int(size.partition(",")[0])
    assert not [line for line in result.stderr.splitlines() if "CONSOLE" in line]


PHONE = """
<style>html { width: 375px; }</style>
<script>
(() => {
  const free = [...document.body.querySelectorAll("*")].filter((item) => !item.closest(".scroll table, svg, .skip"));
  const wide = free.filter((item) => item.getBoundingClientRect().right > 375.5);
  document.documentElement.dataset.wide = wide.map((item) => item.outerHTML.slice(0, 80)).join(" ");
})();
</script>
"""


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")
@pytest.mark.parametrize(
    "name", ["index.html", "boards/synthetic.html", "models/plain.html", "corruptions/synthetic/fog.html"]
)
def test_pages_fit_a_phone(site: Path, tmp_path: Path, name: str) -> None:
    """Of 375 pixels, less than this browser's windows have: what does not scroll by itself is no wider."""
    page = site / name
    tried = page.with_name("tried.html")
    tried.write_text(page.read_text().replace("</body>", f"{PHONE}</body>"))
    try:
        result = browse(tried, tmp_path, "--window-size=500,900", "--dump-dom")
    finally:
        tried.unlink()
    opening = re.search(r"<html[^>]*>", result.stdout)
    assert opening is not None
    assert 'data-wide=""' in opening[0]
    assert 'data-errors=""' in opening[0]
    assert not [line for line in result.stderr.splitlines() if "CONSOLE" in line]
