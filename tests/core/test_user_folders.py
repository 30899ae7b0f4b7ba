"""Where a user's own files go, on each system."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from blemish.core.user_folders import cache_folder, data_folder


@pytest.mark.parametrize(
    ("platform", "variable", "data", "cache"),
    [
        ("linux", None, ".local/share", ".cache"),
        ("darwin", None, "Library/Application Support", "Library/Caches"),
        ("win32", None, "AppData/Local", "AppData/Local"),
        ("linux", "XDG_CACHE_HOME", ".local/share", "mine"),
        ("linux", "XDG_DATA_HOME", "mine", ".cache"),
        ("win32", "LOCALAPPDATA", "mine", "mine"),
    ],
)
def test_each_system(
    platform: str, variable: str | None, data: str, cache: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    if variable is not None:
        monkeypatch.setenv(variable, str(tmp_path / "mine"))
    assert data_folder() == tmp_path / data / "blemish"
    assert cache_folder() == tmp_path / cache / "blemish"
