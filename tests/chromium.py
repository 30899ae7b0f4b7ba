"""Pages in a real browser, which has no network."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from until import PATIENCE

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)


def browse(page: Path, folder: Path, *options: str, fragment: str = "") -> subprocess.CompletedProcess[str]:
    """What the browser prints of a page; ``folder`` is for what it keeps."""
    assert BROWSER is not None
    command = [
        BROWSER,
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--enable-logging=stderr",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={folder / 'profile'}",
        "--virtual-time-budget=30000",
        "--window-size=1280,2000",
        *options,
        f"{page.as_uri()}{fragment}",
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
