"""An audit as text that people read on a terminal, and as JSON for other programs."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Sequence

from blemish.core.marks import MADE_WITH
from blemish.studies.audit.findings import Audit, Check, Finding

_WIDEST = 110
_LEAST = 40


def audit_json(audits: Sequence[Audit]) -> str:
    """Audits with all digits."""
    content = {"made_with": MADE_WITH, "audits": [audit_entry(audit) for audit in audits]}
    return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def audit_entry(audit: Audit) -> dict[str, object]:
    """An audit as JSON holds it."""
    accuracy = audit.accuracy
    return {
        "model": audit.model,
        "data": audit.data,
        "images": audit.images,
        "accuracy": {"value": accuracy.value, "low": accuracy.low, "high": accuracy.high},
        "problems": len(audit.problems),
        "findings": [finding.as_dict() for finding in audit.findings],
        "checks": [
            {"check": check.name, "state": check.state, "said": check.said, "skipped": check.skipped}
            for check in audit.checks
        ],
    }


def audit_lines(audit: Audit, width: int) -> list[tuple[str, str]]:
    """An audit as lines of text, each with its style."""
    wide = max(_LEAST, min(width, _WIDEST))
    accuracy = audit.accuracy
    interval = f"{100 * accuracy.value:.1f} % [{100 * accuracy.low:.1f}, {100 * accuracy.high:.1f}]"
    title = f"{audit.model} on {audit.data}: {audit.images:,} images, clean accuracy {interval}"
    lines = [*_filled(title, "", wide, "bold"), ("", "")]
    for finding in audit.findings:
        lines += [*_finding(finding, wide), ("", "")]
    passed = [check for check in audit.checks if check.state == "passed"]
    skipped = [check for check in audit.checks if check.state == "not checked"]
    notes, problems = len(audit.findings) - len(audit.problems), len(audit.problems)
    if problems or notes:
        lines += _filled(f"{_several(problems, 'problem')}, {_several(notes, 'note')}", "", wide, "bold")
    else:
        lines += _filled("nothing found", "", wide, "bold green")
    lines += _filled(f"passed: {', '.join(check.name for check in passed) or 'none'}", "", wide, "")
    lines += _skipped(skipped, wide)
    return lines


def _finding(finding: Finding, wide: int) -> list[tuple[str, str]]:
    style = "bold red" if finding.level == "problem" else "bold yellow"
    title = f"{finding.level}: {finding.title} ({finding.check}, {finding.sure})"
    return [
        *_filled(title, "", wide, style),
        *_filled(f"seen: {finding.seen}", "  ", wide, ""),
        *_filled(f"do: {finding.todo}", "  ", wide, ""),
    ]


def _skipped(checks: Sequence[Check], wide: int) -> list[tuple[str, str]]:
    """What was not checked, by the reason."""
    reasons: dict[str, list[str]] = {}
    for check in checks:
        reasons.setdefault(check.skipped, []).append(check.name)
    return [
        line
        for reason, names in reasons.items()
        for line in _filled(f"not checked: {', '.join(names)} ({reason})", "", wide, "dim")
    ]


def _filled(text: str, indent: str, wide: int, style: str) -> list[tuple[str, str]]:
    """A text in lines, those after the first a little further in."""
    lines = textwrap.wrap(
        text,
        wide,
        initial_indent=indent,
        subsequent_indent=f"{indent}  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [(line, style) for line in lines]


def _several(count: int, what: str) -> str:
    """A number of things.

    >>> _several(1, "note"), _several(2, "note")
    ('1 note', '2 notes')
    """
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
