"""What an audit comes to: checks that were made, and what they found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from blemish.core.statistics import Estimate

Level = Literal["problem", "note"]
Sure = Literal["certain", "very likely", "likely"]

CHECKS = {
    "clean-accuracy": "clean accuracy against the published one",
    "near-chance": "better than chance",
    "class-order": "order of the classes",
    "random-labels": "labels belong to the images",
    "classes-missing": "every class has images",
    "duplicates": "images that are there twice",
    "jpeg": "traces of JPEG, or other storage than the published",
    "value-range": "range of the values: 0 … 1 or 0 … 255",
    "channel-order": "order of the channels: RGB or BGR",
    "normalisation": "mean and standard deviation",
    "resizing": "size, crop and interpolation",
    "repeatable": "the same answers again",
    "batch": "answers do not depend on the batch",
    "severity-curves": "errors rise with severity",
    "severity-table": "severities that fit the size of the images",
    "precision": "enough images for the difference in question",
}
"""The checks by name, in the order in which they are shown."""


@dataclass(frozen=True)
class Finding:
    """Something to look at: in a few words, what was seen, how sure that is, and what to do.

    A ``problem`` makes numbers wrong or useless; a ``note`` only has to be known by whoever compares them.
    ``numbers`` are those of the text, for other programs.
    """

    check: str
    title: str
    seen: str
    todo: str
    sure: Sure = "certain"
    level: Level = "problem"
    numbers: Mapping[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """As it is written for other programs."""
        return {
            "check": self.check,
            "level": self.level,
            "title": self.title,
            "seen": self.seen,
            "sure": self.sure,
            "todo": self.todo,
            "numbers": dict(self.numbers),
        }


@dataclass(frozen=True)
class Check:
    """A check that was made, with what it looked at and found; or why it was not made."""

    name: str
    said: str = ""
    findings: tuple[Finding, ...] = ()
    skipped: str = ""

    @property
    def state(self) -> str:
        """``found``, ``passed`` or ``not checked``; notes alone are no reason not to pass."""
        if self.skipped:
            return "not checked"
        return "found" if any(finding.level == "problem" for finding in self.findings) else "passed"


@dataclass(frozen=True)
class Audit:
    """All checks of a model with its images, or of a folder of results."""

    model: str
    data: str
    images: int
    accuracy: Estimate
    checks: tuple[Check, ...]

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found, problems first."""
        findings = [finding for check in self.checks for finding in check.findings]
        return tuple(sorted(findings, key=lambda finding: finding.level != "problem"))

    @property
    def problems(self) -> tuple[Finding, ...]:
        """What makes numbers wrong or useless."""
        return tuple(finding for finding in self.findings if finding.level == "problem")


def in_order(checks: Sequence[Check]) -> tuple[Check, ...]:
    """Checks as they are shown; several by one name become one."""
    by_name: dict[str, Check] = {}
    for check in checks:
        if (before := by_name.get(check.name)) is not None:
            said = "; ".join(text for text in (before.said, check.said) if text)
            skipped = "" if said or before.findings or check.findings else before.skipped or check.skipped
            check = Check(check.name, said, (*before.findings, *check.findings), skipped)
        by_name[check.name] = check
    return tuple(by_name[name] for name in CHECKS if name in by_name)
