"""The page in a real browser: it draws its charts without errors, without the network, in both themes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from blemish.reports.html import write_report
from chromium import BROWSER, browse
from report_runs import HOSTILE, pictured_run

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser")
    names = [f"{HOSTILE}{i}" for i in range(30)]
    runs = [
        pictured_run(folder, "plain", names=names, classes=[HOSTILE] * 10),
        pictured_run(folder, "other", names=names, classes=[HOSTILE] * 10, seed=1, model={"name": HOSTILE}),
    ]
    return write_report(runs, folder / "report.html", replicates=10)


@pytest.mark.parametrize(("fragment", "theme"), [("", "light"), ("#theme=dark", "dark")])
def test_charts_are_drawn_without_errors(page: Path, tmp_path: Path, fragment: str, theme: str) -> None:
    result = browse(page, tmp_path, "--dump-dom", fragment=fragment)
    opening = re.search(r"<html[^>]*>", result.stdout)
    assert opening is not None
    assert f'data-theme="{theme}"' in opening[0]
    assert 'data-errors=""' in opening[0]
    # Two of models beside each other, three severity curves, families, and a reliability diagram for each model.
    assert 'data-charts="8"' in opening[0]
    console = [line for line in result.stderr.splitlines() if "CONSOLE" in line]
    assert not console, console
    assert "<title>Robustness report: A synthetic benchmark</title>" in result.stdout
    assert '<img src="x"' not in result.stdout


def test_a_script_from_elsewhere_would_not_run(page: Path, tmp_path: Path) -> None:
    """The policy is what stands between a mistake in escaping and its exploit, so it is tried."""
    text = page.read_text(encoding="utf-8")
    injected = tmp_path / "injected.html"
    injected.write_text(text.replace("</main>", "<script>document.title='owned'</script></main>", 1), encoding="utf-8")
    result = browse(injected, tmp_path, "--dump-dom")
    assert "<title>Robustness report" in result.stdout
    assert any("Content Security Policy" in line for line in result.stderr.splitlines() if "CONSOLE" in line)


def test_a_mistake_in_the_script_would_be_reported(page: Path, tmp_path: Path) -> None:
    """The check above can fail."""
    text = page.read_text(encoding="utf-8")
    broken = tmp_path / "broken.html"
    broken.write_text(text.replace('id="theme"', 'id="gone"', 1), encoding="utf-8")
    result = browse(broken, tmp_path, "--dump-dom")
    opening = re.search(r"<html[^>]*>", result.stdout)
    assert opening is not None
    assert 'data-errors=""' not in opening[0]
    assert any("CONSOLE" in line for line in result.stderr.splitlines())


def test_it_prints(page: Path, tmp_path: Path) -> None:
    target = tmp_path / "page.pdf"
    browse(page, tmp_path, f"--print-to-pdf={target}", "--no-pdf-header-footer")
    assert target.read_bytes().startswith(b"%PDF")
