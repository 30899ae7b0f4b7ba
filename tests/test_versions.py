"""The versions that pyproject.toml claims to work with are those that make test-lowest and make test install."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
NOT_RUN = {"mypy", "ruff"}  # they read the code; the tests do not run them
OWN = "blemish"


def claimed(*extras: str) -> dict[str, Version]:
    """The lowest version of each library, for using blemish and with some of its extras; by default all of them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for extra in extras or optional for line in optional[extra])]
    found = {}
    for requirement in map(Requirement, lines):
        if requirement.name == OWN:
            found |= claimed(*requirement.extras)
            continue
        (bound,) = (each for each in requirement.specifier if each.operator != "<")
        assert bound.operator == ">=", f"{requirement}: expected a lowest version"
        found[canonicalize_name(requirement.name)] = Version(bound.version)
    return found


def pinned(file: str) -> dict[str, Version]:
    """What a file of constraints installs."""
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    pins = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {canonicalize_name(name): Version(version) for name, version in pins}


def test_the_lowest_versions_are_those_that_are_tried() -> None:
    """Of blemish itself and the extras in dev; the others are only tried with the versions of every day."""
    assert pinned("constraints-lowest.txt") == {n: v for n, v in claimed("dev").items() if n not in NOT_RUN}


def test_the_versions_of_every_day_are_allowed() -> None:
    versions = pinned("constraints.txt")
    assert {name: version for name, version in claimed().items() if versions[name] < version} == {}


def test_foreign_packages_have_a_version() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8").replace("\\\n", " ")
    words = shlex.split(" ".join(re.findall(r"^FOREIGN_(?:WHOLE|ALONE) := (.*)$", makefile, re.MULTILINE)))
    packages = {canonicalize_name(Requirement(word).name) for word in words}
    assert len(packages) > 10
    assert packages - pinned("constraints.txt").keys() == set()
