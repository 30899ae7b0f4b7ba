"""How long the explorer takes from a slider's move to the pixels: `python perf/explore.py [-c imagenet-c]`.

For each corruption the page's slider is moved to other severities, and three times are noted: that of making the pixels
on the server, that of the whole request, and in headless Chromium that from the slider's event until the frame in which
the pixels are painted. The first move of each is left out: kernels may be compiled. It needs playwright and Chromium.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import threading
import time
import urllib.request
from urllib.parse import urlencode

import torch
from playwright.sync_api import sync_playwright

from blemish.core.errors import InputError
from blemish.corruptions.catalog import Catalog, catalog, catalogue_of
from blemish.studies.explore.pictures import pictures_at
from blemish.studies.explore.server import ExplorerServer
from blemish.studies.explore.show import server_for
from blemish.studies.explore.subject import Subject
from blemish.studies.explore.views import View

MOVE = """async severity => {
    const pane = document.querySelectorAll(".pane")[1];
    const slider = pane.querySelector("input[type=range]");
    const before = pane.dataset.condition;
    const begun = performance.now();
    slider.value = severity;
    slider.dispatchEvent(new Event("input"));
    while (pane.dataset.condition === before) await new Promise(resolve => setTimeout(resolve, 0));
    await new Promise(resolve => requestAnimationFrame(resolve));
    return performance.now() - begun;
}"""
CHOOSE = "([catalogue, name]) => { panes[1].steps[0] = {name, severity: 5}; panes[1].controls(); }"
TARGET = 100.0


def requests(server: ExplorerServer, name: str, levels: list[float]) -> tuple[list[float], list[float]]:
    """What making pixels took, and what the whole requests took, in milliseconds."""
    key = next(iter(server.explorer.shelf.given()))
    made, whole = [], []
    for level in levels:
        query = urlencode({"picture": key, "c": f"{name}@{level:g}", "seed": 0})
        start = time.perf_counter()
        with urllib.request.urlopen(f"{server.address}pixels?{query}") as answer:
            answer.read()
            whole.append(1000 * (time.perf_counter() - start))
            made.append(float(answer.headers["X-Milliseconds"]))
    return made, whole


def main() -> None:
    """Print a line for each corruption, and how many are within the target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-c", "--catalogue", action="append", help="only these; default: all")
    parser.add_argument("--moves", type=int, default=9)
    options = parser.parse_args()
    wanted = [unit for unit in catalog.values() if not options.catalogue or catalogue_of(unit) in options.catalogue]
    pictures, _ = pictures_at(None)
    levels = [0.55 + 4.4 * step / options.moves for step in range(options.moves)]
    levels = [round(level / 0.05) * 0.05 for level in levels]
    server = server_for(Subject(pictures, [], catalog, View.of("fog@3"), shown=Catalog(*wanted)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"{torch.get_num_threads()} threads; {options.moves} moves each; medians (largest), milliseconds")
    print(f"{'corruption':32} {'pixels':>16} {'request':>16} {'in the browser':>16}")
    within = total = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(120_000)
        page.goto(server.address)
        page.wait_for_selector("html[data-ready]")
        for unit in wanted:
            try:
                unit.check_files()
            except InputError as error:
                print(f"{unit.name:32} left out: {str(error)[:80]}")
                continue
            if unit.only_severity is not None:
                continue
            requests(server, unit.name, [5.0, 0.3])
            made, whole = requests(server, unit.name, levels)
            page.evaluate(CHOOSE, [catalogue_of(unit), unit.name])
            page.wait_for_selector(f'.pane:nth-child(2)[data-condition="{unit.name}@5"]')
            seen = [page.evaluate(MOVE, level + 0.15) for level in levels]  # others: draws are kept
            cells = [f"{statistics.median(each):6.1f} ({max(each):5.0f})" for each in (made, whole, seen)]
            print(f"{unit.name:32} " + " ".join(f"{cell:>16}" for cell in cells), flush=True)
            total += 1
            within += statistics.median(seen) <= TARGET
        browser.close()
    print(f"{within} of {total} corruptions within {TARGET:g} ms in the browser (median)")


if __name__ == "__main__":
    main()
