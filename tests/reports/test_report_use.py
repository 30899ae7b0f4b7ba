"""A page in use, in a real browser: sorting, switching models off, severities, tips, a phone, and printing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from blemish.reports.html import write_report
from chromium import BROWSER
from foreign import foreign
from report_runs import CONDITIONS, pictured_run
from synthetic_runs import severities, write_run

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")]

LONG = "vit_base_patch16_224.augreg2_in21k_ft_in1k"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three models, of which one is near chance."""
    folder = tmp_path_factory.mktemp("use")
    names = [f"n{i % 10}/{i:06d}.png" for i in range(120)]
    lost = dict.fromkeys(CONDITIONS, 0.1)
    runs = [
        pictured_run(folder, "plain", names=names),
        pictured_run(folder, LONG, {name: min(0.95, rate + 0.15) for name, rate in CONDITIONS.items()}, names=names),
        pictured_run(folder, "lost", lost, names=names),
    ]
    return write_report(runs, folder / "report.html", replicates=50)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = foreign("playwright.sync_api")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(
            executable_path=BROWSER, args=["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND"]
        )
        yield opened
        opened.close()


@pytest.fixture
def used(browser: Any, page: Path) -> Iterator[Callable[..., Any]]:
    """Opens the page in a window of some size; whatever the console complains of fails the test."""
    problems: list[str] = []
    contexts = []

    def opened(width: int = 1280, height: int = 900) -> Any:
        contexts.append(browser.new_context(viewport={"width": width, "height": height}))
        found = contexts[-1].new_page()
        found.on("console", lambda message: problems.append(message.text))
        found.on("pageerror", lambda error: problems.append(str(error)))
        found.goto(page.as_uri())
        return found

    yield opened
    for context in contexts:
        context.close()
    assert problems == []


def test_tables_are_sorted(used: Callable[..., Any]) -> None:
    found = used().evaluate(
        """() => {
        const table = document.querySelector("#ranking table");
        const press = [...table.querySelectorAll("thead button")][2];
        const shown = () => [...table.tBodies[0].rows].map((row) => parseFloat(row.cells[2].textContent));
        const before = shown();
        press.click(); const up = shown(); const sort = press.closest("th").getAttribute("aria-sort");
        press.click(); const down = shown();
        press.click(); const after = shown();
        return { before, up, down, after, sort };
        }"""
    )
    assert found["up"] == sorted(found["before"])
    assert found["down"] == found["up"][::-1]
    assert found["after"] == found["before"]
    assert found["sort"] == "ascending"


def test_models_are_switched_off(used: Callable[..., Any]) -> None:
    found = used().evaluate(
        """() => {
        const seen = (what) => [...document.querySelectorAll(what)].filter((x) => x.getClientRects().length).length;
        const counts = () => ({
          cards: seen(".card"), rows: seen("#ranking tbody tr"), columns: seen("#overview thead th"),
          lines: seen("#curve-0 g[data-m]"), answers: seen("#examples .said"), all: seen("#standings tbody tr"),
        });
        const before = counts();
        document.querySelector('input[data-switch="0"]').click();
        const off = counts();
        const words = document.getElementById("shown").textContent;
        document.getElementById("all").click();
        const rest = [1, 2].map((number) => {
          const box = document.querySelector(`input[data-switch="${number}"]`);
          box.click();
          const shown = seen("#ranking tbody tr");
          box.click();
          return shown;
        });
        return { before, off, words, rest, after: counts() };
        }"""
    )
    assert found["before"]["cards"] == 3
    assert found["off"]["cards"] == 2
    assert found["off"]["columns"] == found["before"]["columns"] - 1 == 3
    assert (found["before"]["rows"], found["off"]["rows"]) == (3, 2)
    assert (found["before"]["all"], found["off"]["all"]) == (3, 2)
    assert (found["before"]["lines"], found["off"]["lines"]) == (3, 2)
    assert found["off"]["answers"] * 3 == found["before"]["answers"] * 2
    assert found["rest"] == [2, 2], "the best, which has a star after its name, and the one without a rank"
    assert found["words"] == "2 of 3"
    assert found["after"] == found["before"]


def test_names_keep_their_words_together_where_a_table_scrolls(used: Callable[..., Any]) -> None:
    """A table that is too wide narrows its columns to single words; a name would stand in six lines."""
    found = used(width=760).evaluate(
        """() => {
        const table = document.querySelector("#standings table");
        const heads = [...table.tBodies[0].rows].map((row) => row.cells[0].getBoundingClientRect().height);
        const lines = parseFloat(getComputedStyle(table).lineHeight);
        return { scrolls: table.parentElement.scrollWidth > table.parentElement.clientWidth,
                 most: Math.round(Math.max(...heads) / lines) };
        }"""
    )
    assert found["scrolls"]
    assert found["most"] <= 3


def test_examples_at_another_severity(used: Callable[..., Any]) -> None:
    found = used().evaluate(
        """() => {
        const slider = document.querySelector("input[data-levels]");
        const shown = () => [...document.querySelectorAll("#examples .tiles figcaption")]
          .filter((x) => x.getClientRects().length).map((x) => x.firstChild.textContent);
        const pictures = () => document.querySelectorAll("#examples img").length;
        const before = [shown(), pictures()];
        slider.value = 2; slider.dispatchEvent(new Event("input"));
        const output = slider.parentElement.querySelector("output").textContent;
        return { before, after: [shown(), pictures()], output };
        }"""
    )
    (middle, few), (strongest, more) = found["before"], found["after"]
    assert {text[-1] for text in middle} == {"3"}
    assert {text[-1] for text in strongest} == {"5"}
    assert len(middle) == len(strongest)
    assert found["output"] == "5"
    assert more > few  # pictures of other severities are made when they are asked for


def test_pictures_are_loaded_when_they_are_seen(used: Callable[..., Any]) -> None:
    found = used(1280, 700)
    there = found.evaluate("document.images.length")

    def loaded(expected: Callable[[int], bool]) -> int:
        """How many, once it is as expected; the policy of the page forbids to wait in it."""
        for _ in range(100):
            count = int(found.evaluate("[...document.images].filter((x) => x.complete && x.naturalWidth).length"))
            if expected(count):
                return count
            found.wait_for_timeout(50)
        raise AssertionError(count)

    found.wait_for_timeout(300)
    assert loaded(lambda _: True) == 0
    found.locator("#examples .tile img").first.scroll_into_view_if_needed()
    assert 0 < loaded(lambda count: count > 0) < there
    found.evaluate('dispatchEvent(new Event("beforeprint"))')
    loaded(lambda count: count == there)


def test_marks_say_what_they_stand_for(used: Callable[..., Any]) -> None:
    found = used().evaluate(
        """() => {
        const mark = document.querySelector("#curve-0 .mark");
        mark.scrollIntoView();
        const box = mark.getBoundingClientRect();
        const at = { clientX: box.x + 4, clientY: box.y + 4, bubbles: true };
        mark.dispatchEvent(new PointerEvent("pointermove", at));
        const tip = document.getElementById("tip");
        return [tip.hidden, tip.textContent];
        }"""
    )
    assert found[0] is False
    assert re.fullmatch(r"\S+( \(near chance\))?: \d+\.\d % \(\d+\.\d to \d+\.\d\) at severity 0", found[1])


def test_on_a_phone(used: Callable[..., Any]) -> None:
    """No word is broken in the middle, nothing but tables goes beyond the screen, and those that do say so."""
    found = used(390, 844).evaluate(
        r"""() => {
        const broken = [];
        const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        for (let node = walker.nextNode(); node; node = walker.nextNode()) {
          if (["SCRIPT", "STYLE", "TEMPLATE"].includes(node.parentElement.tagName)) continue;
          for (const word of node.textContent.matchAll(/[A-Za-z]{2,}/g)) {
            const range = document.createRange();
            range.setStart(node, word.index); range.setEnd(node, word.index + word[0].length);
            if (new Set([...range.getClientRects()].map((box) => Math.round(box.y))).size > 1) broken.push(word[0]);
          }
        }
        const wide = [...document.querySelectorAll(".scroll")].filter((x) => x.scrollWidth > x.clientWidth + 2);
        const hints = wide.filter((x) => x.parentElement.querySelector(".hint").getClientRects().length);
        const captions = [...document.querySelectorAll(".caption, figcaption")]
          .filter((x) => x.getClientRects().length && x.getBoundingClientRect().right > 390.5).length;
        return { broken, page: document.documentElement.scrollWidth, wide: wide.length, hints: hints.length, captions };
        }"""
    )
    assert found["broken"] == []
    assert found["page"] <= 390
    assert found["wide"] == found["hints"] > 0
    assert found["captions"] == 0


def test_six_models_fit_on_paper(browser: Any, tmp_path: Path) -> None:
    """What is wider than a sheet makes the browser print everything smaller: 718 pixels are A4 without its margins."""
    names = [f"{LONG}.{number}" for number in range(6)]
    runs = [
        write_run(tmp_path, name, severities(clean=0.9 - number / 20), images=40, model={"weights": f"{number}" * 32})
        for number, name in enumerate(names)
    ]
    page = write_report(runs, tmp_path / "report.html", replicates=50)
    opened = browser.new_page(viewport={"width": 718, "height": 1000})
    opened.goto(page.as_uri())
    opened.emulate_media(media="print")
    opened.evaluate('dispatchEvent(new Event("beforeprint"))')
    assert opened.locator("#standings thead th").count() > 15
    assert opened.evaluate("document.documentElement.scrollWidth") <= 718


def test_printed_pages_hold_all(used: Callable[..., Any]) -> None:
    """What is folded is printed, and no table is cut off."""
    found = used().evaluate(
        """() => {
        dispatchEvent(new Event("beforeprint"));
        const folded = document.querySelectorAll("main details:not([open])").length;
        dispatchEvent(new Event("afterprint"));
        return [folded, document.querySelectorAll("main details:not([open])").length];
        }"""
    )
    assert found[0] == 0
    assert found[1] > 0
