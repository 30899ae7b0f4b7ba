"""The explorer as a person uses it, in a real browser: whatever the console complains of fails the test."""

from __future__ import annotations

import io
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import blemish
from blemish.corruptions.catalog import Catalog
from blemish.studies.explore.copies import Origin, texts_of
from blemish.studies.explore.export import write_export
from blemish.studies.explore.server import ExplorerServer
from blemish.studies.explore.views import View
from blemish.studies.streams.info import WalkInfo
from blemish.studies.streams.walks import Walk, WalkStep
from chromium import BROWSER
from explorers import CATALOG, digit_files, served, subject
from foreign import foreign
from until import PATIENCE

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="no Chromium on this machine")]

DESKTOP, PHONE = (1280, 900), (390, 844)


@dataclass
class Visit:
    """A page in the browser, and what went wrong there."""

    page: Any
    problems: list[str] = field(default_factory=list)
    expected: str | None = None

    def check(self) -> None:
        """Everything that was complained of was expected, and what was expected was complained of."""
        if self.expected is None:
            assert self.problems == []
        else:
            assert self.problems
            assert [text for text in self.problems if not re.search(self.expected, text)] == []

    def open(self, address: str) -> Visit:
        self.page.goto(address)
        self.page.wait_for_selector("html[data-ready]")
        return self

    def shows(self, condition: str, pane: int = 1, seed: int | None = None) -> None:
        """Wait until a picture shows this."""
        chosen = "" if seed is None else f'[data-seed="{seed}"]'
        self.page.wait_for_selector(f'#panes > :nth-child({pane + 1})[data-condition="{condition}"]{chosen}')

    def pixels(self, canvas: str = "picture-1") -> np.ndarray:
        width, height, levels = self.page.evaluate(
            """name => {
                const canvas = document.getElementById(name);
                const image = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
                return [canvas.width, canvas.height, Array.from(image.data)];
            }""",
            canvas,
        )
        return np.array(levels, dtype=np.uint8).reshape(height, width, 4)[..., :3]

    def pane(self, number: int = 1) -> Any:
        return self.page.locator(f"#panes > :nth-child({number + 1})")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = foreign("playwright.sync_api")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(
            executable_path=BROWSER,
            args=["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
        )
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return digit_files(tmp_path_factory.mktemp("digits"))


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ExplorerServer]:
    with served(subject(folder, ("demo:plain", "demo:noisy"), side=32)) as running:
        yield running


def context(browser: Any, size: tuple[int, int] = DESKTOP, **more: Any) -> Any:
    made = browser.new_context(viewport={"width": size[0], "height": size[1]}, **more)
    made.set_default_timeout(1000 * PATIENCE / 10)
    return made


def visit_in(opened: Any) -> Visit:
    visit = Visit(opened.new_page())
    noted = visit.problems.append
    # That these tests read pixels often is their own affair.
    visit.page.on(
        "console",
        lambda message: (
            message.type in ("error", "warning") and "willReadFrequently" not in message.text and noted(message.text)
        ),
    )
    visit.page.on("pageerror", lambda error: noted(str(error)))
    visit.page.on("requestfailed", lambda request: noted(f"{request.url} {request.failure}"))
    return visit


@pytest.fixture
def visit(browser: Any, server: ExplorerServer) -> Iterator[Visit]:
    opened = context(browser, permissions=["clipboard-read", "clipboard-write"])
    visit = visit_in(opened).open(server.address)
    yield visit
    visit.check()
    opened.close()


def picture(server: ExplorerServer, number: int = 0) -> Any:
    return list(server.explorer.shelf.given().values())[number]


def test_the_slider_changes_pixels_and_answers(visit: Visit, server: ExplorerServer) -> None:
    visit.shows("contrast@3", seed=7)
    slider = visit.pane().locator("input[type=range]")
    box = slider.bounding_box()
    visit.page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] / 2)
    visit.page.mouse.down()
    for share in (0.7, 0.8, 0.85, 0.3):
        visit.page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] / 2)
    visit.page.mouse.up()
    level = float(slider.input_value())
    assert 1.2 < level < 1.8
    condition = f"contrast@{level:g}"
    visit.shows(condition)
    expected = View.of(condition, 7).pixels(picture(server)).permute(1, 2, 0).numpy()
    assert np.array_equal(visit.pixels(), np.broadcast_to(expected, (32, 32, 3)))
    assert np.array_equal(visit.pixels("picture-0"), np.asarray(picture(server).image.convert("RGB")))
    visit.page.wait_for_selector(f'.answers[data-condition="{condition}"]')
    said = server.explorer.witnesses[0].told(picture(server), View.of(condition, 7))
    first = visit.pane().locator(".model").first.locator("li").first.inner_text().split("\n")
    assert first == [said["top"][0]["name"], f"{100 * said['top'][0]['confidence']:.1f} %"]
    assert visit.pane().locator(".model").count() == 2


def test_the_curve_is_computed_and_can_be_clicked(visit: Visit, server: ExplorerServer) -> None:
    visit.pane().locator(".curve[data-complete]").wait_for()
    dots = visit.pane().locator("svg circle")
    assert dots.count() == 2 * 21
    said = server.explorer.witnesses[0].told(picture(server), View.of("contrast@5", 7))
    last = visit.pane().locator("svg g.s0 circle title").last.text_content()
    assert f"at severity 5: {100 * said['clean']['confidence']:.1f} %" in last
    changed = sum(
        (told := server.explorer.witnesses[0].told(picture(server), View.of(f"contrast@{step / 4:g}", 7)))["top"][0][
            "class"
        ]
        != told["clean"]["class"]
        for step in range(1, 21)
    )
    assert visit.pane().locator("svg g.s0 circle.changed").count() == changed
    svg = visit.pane().locator("svg")
    width = svg.bounding_box()["width"]
    svg.click(position={"x": 36 + (width - 44) * 0.3, "y": 20})  # at three tenths of the axis
    visit.page.wait_for_function(
        "() => document.querySelectorAll('.pane')[1].dataset.condition.startsWith('contrast@1.')"
    )
    assert 1.4 < float(visit.pane().locator("output").inner_text()) < 1.6


def test_catalogues_seeds_chains_and_two_pictures(visit: Visit, server: ExplorerServer) -> None:
    pane = visit.pane()
    pane.locator(".corruption").select_option("gaussian_noise")
    visit.shows("gaussian_noise@3", seed=7)
    before = visit.pixels()
    pane.get_by_text("another", exact=True).click()
    visit.shows("gaussian_noise@3", seed=8)
    assert not np.array_equal(before, visit.pixels())
    pane.locator(".catalogue").select_option("cbar")
    visit.shows("cbar:sparkles@3")
    assert "stars" in pane.locator(".description").inner_text().lower()
    pane.get_by_text("+ then another").click()
    visit.shows("cbar:sparkles@3+fog@2")
    expected = View.of("cbar:sparkles@3+fog@2", 8).pixels(picture(server)).permute(1, 2, 0).numpy()
    assert np.array_equal(visit.pixels(), np.broadcast_to(expected, (32, 32, 3)))
    assert not pane.get_by_text("+ then another").is_visible()
    pane.locator(".remove").first.click()
    visit.shows("fog@2")
    # The other picture gets a corruption of its own, and this one keeps its.
    visit.pane(0).get_by_text("+ corruption").click()
    visit.shows("fog@2", pane=0)
    visit.pane(0).locator(".corruption").select_option("contrast")
    visit.shows("contrast@2", pane=0)
    visit.shows("fog@2")


def test_texts_are_copied(visit: Visit, server: ExplorerServer) -> None:
    visit.shows("contrast@3")
    visit.page.wait_for_selector('#copies[data-condition="contrast@3"]')
    texts = texts_of(picture(server), View.of("contrast@3", 7, CATALOG), Origin())
    for tab, kind in (("Benchmark (TOML)", "toml"), ("Command", "command"), ("Python", "python")):
        visit.page.get_by_role("tab", name=tab).click()
        assert visit.page.locator("#copy-text").text_content() == texts[kind]
        said = visit.page.locator("#copied").inner_text()
        assert ("exactly the pixels of B, contrast@3." in said) == (kind != "toml"), said
        visit.page.locator("#copy").click()
        visit.page.get_by_text("Copied").wait_for()
        assert visit.page.evaluate("navigator.clipboard.readText()") == texts[kind]


def test_the_keyboard_is_enough(visit: Visit) -> None:
    keys = visit.page.keyboard
    keys.press("5")
    visit.shows("contrast@5")
    keys.press("ArrowLeft")
    visit.shows("contrast@4.9")
    keys.press("]")
    visit.shows("gaussian_noise@4.9", seed=7)
    keys.press("r")
    visit.shows("gaussian_noise@4.9", seed=8)
    keys.press("[")
    visit.shows("contrast@4.9")
    keys.press("0")
    visit.shows("clean")
    keys.press("?")
    assert visit.page.locator("#keys").is_visible()
    light = visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
    keys.press("d")
    assert visit.page.evaluate("getComputedStyle(document.body).backgroundColor") != light
    for _ in range(40):  # every control is reached by Tab, and shows that it is
        keys.press("Tab")
        if visit.page.evaluate("document.activeElement.id") == "copy":
            break
    assert visit.page.evaluate("document.activeElement.id") == "copy"
    assert visit.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_the_system_decides_between_light_and_dark(browser: Any, server: ExplorerServer) -> None:
    colours = []
    for scheme in ("light", "dark"):
        opened = context(browser, color_scheme=scheme)
        visit = visit_in(opened).open(server.address)
        colours.append(visit.page.evaluate("getComputedStyle(document.body).backgroundColor"))
        visit.check()
        opened.close()
    assert len(set(colours)) == 2


def test_pictures_are_chosen_opened_dropped_and_refused(visit: Visit, server: ExplorerServer, tmp_path: Path) -> None:
    visit.page.locator("#shelf button").nth(1).click()
    visit.page.wait_for_selector("text=digit 1.png")
    visit.shows("contrast@3")
    visit.page.wait_for_function("name => document.querySelector('#lead').textContent.startsWith(name)", arg="digit 1")
    mine = tmp_path / "mine <b>.png"
    blemish.corrupt(picture(server).image, "contrast", 2).save(mine)
    visit.page.locator("#upload").set_input_files(mine)
    visit.page.wait_for_selector("text=mine <b>.png · 32 × 32 px · dropped here")
    drop = """content => {
        const data = new DataTransfer();
        data.items.add(new File([new Uint8Array(content)], "dropped.png"));
        document.body.dispatchEvent(new DragEvent("dragenter", {dataTransfer: data, bubbles: true}));
        document.body.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
    }"""
    visit.page.evaluate(drop, list(mine.read_bytes()))
    visit.page.wait_for_selector("text=dropped.png · 32 × 32 px")
    assert visit.page.locator("#drop").is_hidden()
    shown = visit.pixels("picture-0")
    visit.expected = "status of 400"  # which browsers write to the console
    visit.page.evaluate(drop, list(mine.read_bytes()[:60]))
    visit.page.wait_for_selector("text=dropped.png: not a readable picture")
    assert np.array_equal(visit.pixels("picture-0"), shown)


def test_a_file_that_is_too_large_is_refused_here(visit: Visit, tmp_path: Path) -> None:
    large = tmp_path / "large.png"
    with large.open("wb") as file:
        file.truncate(65_000_000)
    visit.page.locator("#upload").set_input_files(large)
    visit.page.wait_for_selector("text=large.png: 65 MB; expected at most 64 MB")


def test_the_clean_picture_is_seen_while_held(visit: Visit) -> None:
    visit.shows("contrast@3")
    before, clean = visit.pixels(), visit.pixels("picture-0")
    visit.pane().locator("canvas").hover()
    visit.page.mouse.down()
    visit.page.wait_for_function(
        """() => {
            const levels = n => document.getElementById(n).getContext("2d").getImageData(0, 0, 32, 32).data.join();
            return levels("picture-1") === levels("picture-0");
        }"""
    )
    assert np.array_equal(visit.pixels(), clean)
    visit.page.mouse.up()
    assert np.array_equal(visit.pixels(), before)


def test_a_short_click_leaves_the_corrupted_picture(visit: Visit) -> None:
    """The clean pixels come after the button was let go, and are not wanted any more."""
    visit.shows("contrast@3")
    before = visit.pixels()
    with visit.page.expect_response(lambda response: "c=clean" in response.url):
        visit.pane().locator("canvas").click()
    visit.page.evaluate("new Promise(resolve => setTimeout(resolve, 300))")
    assert np.array_equal(visit.pixels(), before)


def test_the_clean_picture_is_seen_while_a_key_is_held(visit: Visit) -> None:
    visit.shows("contrast@3")
    before, clean = visit.pixels(), visit.pixels("picture-0")
    assert not np.array_equal(before, clean)
    with visit.page.expect_response(lambda response: "c=clean" in response.url):
        visit.page.keyboard.down("h")
    visit.page.wait_for_function("panes[1].held")
    visit.page.evaluate("new Promise(resolve => setTimeout(resolve, 300))")
    assert np.array_equal(visit.pixels(), clean)
    visit.page.keyboard.up("h")
    assert np.array_equal(visit.pixels(), before)


def test_what_cannot_be_made_here_is_greyed_and_says_why(
    browser: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    what = subject(folder, side=32)
    shown = Catalog(
        *CATALOG.values(), *(blemish.catalog[f"sensor:{name}"] for name in ("h265_bit_error", "dead_pixels"))
    )
    with served(replace(what, catalog=shown)) as server:
        opened = context(browser)
        visit = visit_in(opened).open(server.address)
        assert not visit.pane().locator(".absent").is_visible()
        visit.pane().locator(".catalogue").select_option("sensor")
        visit.shows("sensor:dead_pixels@3")
        assert visit.pane().locator("option[disabled]").inner_text() == "h265_bit_error (not on this machine)"
        assert "h265_bit_error: " in visit.pane().locator(".absent").inner_text()
        assert "ffmpeg" in visit.pane().locator(".absent").inner_text()
        visit.check()
        opened.close()


def test_keys_work_while_the_slider_has_the_focus(visit: Visit) -> None:
    visit.shows("contrast@3", seed=7)
    visit.pane().locator("input[type=range]").focus()
    keys = visit.page.keyboard
    keys.press("ArrowRight")
    visit.shows("contrast@3.05")  # the browser's own step: it is not taken twice
    keys.press("4")
    visit.shows("contrast@4")
    keys.press("r")
    visit.shows("contrast@4", seed=8)


def test_who_chooses_by_the_keyboard_stays_at_the_control(visit: Visit) -> None:
    focus = "document.activeElement.className || document.activeElement.title || document.activeElement.type"
    visit.shows("contrast@3")
    visit.page.locator("#theme").focus()
    visit.page.keyboard.press("Tab")  # the keyboard is what moves the focus
    visit.pane().locator(".corruption").focus()
    visit.page.keyboard.press("ArrowUp")
    visit.shows("fog@3")
    assert visit.page.evaluate(focus) == "corruption"
    visit.page.keyboard.press("ArrowDown")
    visit.shows("contrast@3")
    visit.pane().locator(".remove").focus()
    visit.page.keyboard.press("Enter")
    visit.shows("clean")
    assert visit.page.evaluate(focus) == "add"
    visit.page.locator("#shelf button").nth(1).focus()
    visit.page.keyboard.press("Enter")
    visit.page.wait_for_function("document.querySelector('#lead').textContent.startsWith('digit 1')")
    assert visit.page.evaluate(focus) == "digit 1.png"


def test_the_walk_is_played(browser: Any, folder: Path, tmp_path: Path) -> None:
    steps = [WalkStep("contrast", 2 - level, "fog", level, 1, 0.4, 0) for level in (0.0, 0.5, 1.0, 1.5, 2.0)]
    path = tmp_path / "walk.json"
    path.write_text(Walk(tuple(steps), WalkInfo()).to_json(), encoding="utf-8")
    with served(subject(folder, side=32), path) as server:
        opened = context(browser)
        visit = visit_in(opened).open(server.address)
        visit.page.wait_for_selector("text=1 of 5 · contrast 2 · calibrated accuracy 40.0 %")
        visit.page.locator("#film-play").click()
        visit.page.wait_for_selector('#film[data-at="2"]')
        visit.page.keyboard.press("p")
        assert visit.page.locator("#film-play").inner_text() == "Play"
        visit.page.locator("#film-at").focus()
        visit.page.keyboard.press("End")
        visit.page.wait_for_selector("text=5 of 5 · fog 2")
        expected = View.of("fog@2", 7).pixels(picture(server)).permute(1, 2, 0).numpy()
        assert np.array_equal(visit.pixels("film-picture"), np.broadcast_to(expected, (32, 32, 3)))
        visit.page.wait_for_selector("#film-answers >> text=demo-plain")
        visit.check()
        opened.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(browser: Any, server: ExplorerServer, scheme: str) -> None:
    opened = context(browser, PHONE, color_scheme=scheme, has_touch=True, is_mobile=True)
    visit = visit_in(opened).open(server.address)
    visit.shows("contrast@3")
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    visit.pane().get_by_text("+ then another").tap()
    visit.shows("contrast@3+fog@2")
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
    boxes = [visit.pane(number).locator("canvas").bounding_box() for number in (0, 1)]
    assert boxes[0]["y"] == boxes[1]["y"]  # both are in sight
    visit.check()
    opened.close()


def test_the_command_prints_the_address_and_ends_with_ctrl_c(browser: Any, folder: Path) -> None:
    words = [sys.executable, "-m", "blemish", "explore", str(folder), "-m", "demo:plain", "-c", "contrast,fog"]
    command = subprocess.Popen(
        [*words, "--no-open"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Tests in the background of a shell ignore Ctrl-C, and so would what they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert command.stdout is not None
    address = command.stdout.readline().split()[-1]
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{20,}/", address)
    opened = context(browser)
    visit = visit_in(opened).open(address)
    visit.shows("fog@3")
    for _ in range(2):  # of few corruptions, the same one may come twice
        visit.pane(0).get_by_text("+ ").click()
    visit.shows("fog@2+contrast@2", pane=0)
    visit.pane(0).locator(".corruption").last.select_option("fog")
    visit.shows("fog@2+fog@2", pane=0)
    command.send_signal(signal.SIGINT)
    output, errors = command.communicate(timeout=PATIENCE)
    assert (command.returncode, errors) == (0, "")
    assert output.endswith("ended\n")
    visit.expected = "ERR_|Failed to load"
    visit.page.keyboard.press("5")
    visit.page.wait_for_selector("text=The explorer does not answer")
    visit.check()
    opened.close()


def test_a_script_from_elsewhere_would_not_run(visit: Visit) -> None:
    visit.page.evaluate(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'document.title = 1'}))"
    )
    assert visit.page.title() == "blemish explore"
    visit.expected = "Content Security Policy"


def test_the_export_works_from_a_disk(browser: Any, folder: Path, tmp_path: Path) -> None:
    what = subject(folder, side=32)
    page = write_export(tmp_path / "a page", what)
    opened = context(browser)
    visit = visit_in(opened).open(page.as_uri())
    visit.shows("contrast@3")
    visit.pane().locator(".curve[data-complete]").wait_for()
    visit.page.keyboard.press("ArrowRight")
    visit.shows("contrast@3.5")
    visit.page.wait_for_selector('.answers[data-condition="contrast@3.5"]')
    said = what.witnesses[0].told(what.pictures[0], View.of("contrast@3.5", 7))
    first = visit.pane().locator(".model li").first.inner_text().split("\n")
    assert first == [said["top"][0]["name"], f"{100 * said['top'][0]['confidence']:.1f} %"]
    visit.page.wait_for_selector('#copies[data-condition="contrast@3.5"]')
    assert "'contrast', 3.5, seed=7" in visit.page.locator("#copy-text").text_content()
    assert str(folder) not in visit.page.content()
    visit.page.locator("#shelf button").nth(2).click()
    visit.page.locator("#film-play").click()
    visit.page.wait_for_selector('#film[data-at="3"]')
    for gone in ("#upload", ".seed:visible", ".add:visible", ".save:visible"):
        assert visit.page.locator(gone).count() == 0
    shot = Image.open(io.BytesIO(visit.pane().locator("canvas").screenshot()))
    assert len(np.unique(np.asarray(shot))) > 20  # pixels of a file:// picture cannot be read, but are seen
    visit.check()
    opened.close()


def test_an_export_that_lacks_a_file_says_so(browser: Any, folder: Path, tmp_path: Path) -> None:
    """The console is looked at: this would fail every other test."""
    page = write_export(tmp_path / "page", subject(folder, (), side=32))
    for strip in (page.parent / "strips").glob("0-1-*.jpg"):
        strip.unlink()
    opened = context(browser)
    visit = visit_in(opened).open(page.as_uri())
    visit.page.wait_for_selector("text=is missing beside this page")
    visit.expected = "ERR_FILE_NOT_FOUND"
    visit.check()
    opened.close()
