"""How kernels are compiled, said and kept on disk, and what happens where they cannot be."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import blemish
from blemish.ops.compiled import compiled


def test_compiling_is_said_once_and_kept(tmp_path: Path) -> None:
    if compiled("words") is None:
        pytest.skip("no numba, or no processor with AVX2")
    code = (
        "import logging, torch, blemish\n"
        "logging.basicConfig(level=logging.INFO)\n"
        "blemish.corrupt(torch.zeros(3, 32, 32, dtype=torch.uint8), 'contrast', 3)\n"
    )
    settings = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    said = []
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], env=settings, capture_output=True, text=True, check=True)
        said.append([line for line in done.stderr.splitlines() if "compiled" in line])
    assert len(said[0]) == 1
    assert "flatten for this processor in" in said[0][0]
    assert said[1] == []


class TestWithoutCache:
    """A kernel is compiled where nothing can be kept on disk, and that is said once."""

    @pytest.fixture(autouse=True)
    def fresh(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        numba = pytest.importorskip("numba")
        from blemish.ops.compiled import jit

        monkeypatch.setattr(jit, "_unkept", [])
        monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))

    def check(self, caplog: pytest.LogCaptureFixture, why: str) -> None:
        from blemish.ops.compiled.jit import kernel

        def twice(value: int) -> int:
            return 2 * value

        for argument in (3, 3.5):  # two types: compiled twice
            assert kernel(twice)(argument) == 2 * argument
        said = [message for message in caplog.messages if "not kept" in message]
        assert len(said) == 1
        assert why in said[0]

    def test_full_disk(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        """A limit of no bytes for every file stands for a disk that is full."""
        resource = pytest.importorskip("resource")
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
        try:
            self.check(caplog, "File too large")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []

    def test_folder_that_is_gone(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        from blemish.ops.compiled.jit import kernel

        def thrice(value: int) -> int:
            return 3 * value

        made = kernel(thrice)
        (folder,) = tmp_path.iterdir()
        folder.rmdir()
        folder.touch()  # a file in its place: not even root can write into it
        assert made(5) == 15
        assert "not kept" in caplog.text
        assert str(folder) in caplog.text

    def test_damaged_file(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        from blemish.ops.compiled.jit import kernel

        def fourfold(value: int) -> int:
            return 4 * value

        assert kernel(fourfold)(5) == 20
        (code,) = (path for path in tmp_path.rglob("*") if path.is_file())
        code.write_bytes(code.read_bytes()[:-5])
        for compiled_again in (1, 0):  # and kept this time
            made = kernel(fourfold)
            assert made(5) == 20
            assert len(made._dispatcher.stats.cache_misses) == compiled_again
        assert "not kept" not in caplog.text

    def test_each_kind_of_arguments_has_a_file_of_its_own(self, tmp_path: Path) -> None:
        """Whoever compiles first: with numbers and an index, two processes at once could mix up their code."""
        from blemish.ops.compiled.jit import kernel

        def total(values: Any) -> int:
            found = 0
            for i in range(values.shape[0]):
                found += 10 * found + values[i, 0]
            return found

        def files() -> set[str]:
            return {path.name for path in tmp_path.rglob("*") if path.is_file()}

        rows, columns = np.arange(6).reshape(3, 2), np.asfortranarray(np.arange(6).reshape(3, 2))
        assert kernel(total)(rows) == kernel(total)(columns) == 26
        both = files()
        assert len(both) == 2
        for path in tmp_path.rglob("*.nbc"):
            path.unlink()
        kernel(total)(columns)
        alone = files()
        assert len(alone) == 1
        assert alone < both
        old = next(tmp_path.rglob("*.nbc"))
        stale = old.with_name(old.name.replace(old.name.split(".")[-2], "0123456789ab-0"))
        old.rename(stale)  # code of other sources
        kernel(total)(columns)
        assert files() == alone

    def test_no_folder_at_all(self, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
        from numba.core.caching import CacheImpl

        monkeypatch.setattr(CacheImpl, "_locator_classes", [])
        self.check(caplog, "no locator available")


@pytest.mark.parametrize("why", ["NUMBA_DISABLE_JIT is set", "numba: import of numba halted", "AVX2"])
def test_it_is_said_once_why_there_are_no_kernels(
    why: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from blemish.ops import compiled as module

    images = torch.arange(3 * 64, dtype=torch.uint8).reshape(1, 3, 8, 8)
    before = blemish.corrupt(images, "gaussian_noise", severity=3)
    if why.startswith("NUMBA"):
        monkeypatch.setattr(pytest.importorskip("numba").config, "DISABLE_JIT", 1)
    elif why == "AVX2":
        monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "DEFAULT")
    else:
        monkeypatch.setitem(sys.modules, "numba", None)
    for known in (module._are_there, module._module):
        known.cache_clear()
    try:
        with caplog.at_level(logging.INFO, "blemish.ops.compiled"):
            found = [blemish.corrupt(images, name, severity=3) for name in ("gaussian_noise", "contrast")]
        assert torch.equal(found[0], before)
        (said,) = [message for message in caplog.messages if "no compiled kernels" in message]
        assert why in said
    finally:
        for known in (module._are_there, module._module):
            known.cache_clear()
