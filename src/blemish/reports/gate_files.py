"""What a gate decided, for people and for CI systems: a table, JSON and JUnit's XML."""

from __future__ import annotations

import json
from xml.etree import ElementTree

from blemish.core.marks import MADE_WITH, MARK
from blemish.core.printable import printable
from blemish.metrics.gate import Gate, Verdict
from blemish.metrics.gate_rules import Status
from blemish.reports.tables import Cell, Table


def gate_table(outcome: Gate) -> Table:
    """A row per requirement."""
    rows = tuple((Cell(v.requirement), Cell(v.status.value), Cell(v.why)) for v in outcome.verdicts)
    title = f"{outcome.model} on {outcome.benchmark}: {outcome.status.value}"
    notes = (_rests_on(outcome), *outcome.notes)
    return Table(title, ("requirement", "result", "why"), rows, text_columns=3, notes=notes)


def _rests_on(outcome: Gate) -> str:
    if outcome.by_point:
        return "Decided by values alone: intervals were left out of account (--point)."
    return f"Decided by {100 * outcome.level:g} % intervals over {outcome.images:,} images."


def gate_json(outcome: Gate) -> str:
    """Everything, with all digits."""
    content = {"made_with": MADE_WITH, **outcome.as_dict()}
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def gate_junit(outcome: Gate) -> bytes:
    """JUnit's XML: a test case per requirement.

    What failed and what is undecided is a failure, of that type; a number that is not known is an error. Names are
    escaped, and signs that XML cannot hold are written as escapes.
    """
    counts = {
        "tests": len(outcome.verdicts),
        "failures": sum(v.status in (Status.FAILED, Status.UNDECIDED) for v in outcome.verdicts),
        "errors": sum(v.status is Status.UNKNOWN for v in outcome.verdicts),
    }
    numbers = {name: str(count) for name, count in counts.items()}
    root = ElementTree.Element("testsuites", {"name": "blemish gate", **numbers})
    # Of all suites together Jenkins' schema knows no number that were skipped, and it refuses files with more.
    own = {"name": printable(f"blemish gate {outcome.model}"), **numbers, "skipped": "0"}
    suite = ElementTree.SubElement(root, "testsuite", own)
    for verdict in outcome.verdicts:
        _add_case(suite, outcome, verdict)
    notes = (_rests_on(outcome), *outcome.notes)
    ElementTree.SubElement(suite, "system-out").text = "\n".join(map(printable, notes))
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n<!-- {MARK} -->\n'.encode()


def _add_case(suite: ElementTree.Element, outcome: Gate, verdict: Verdict) -> None:
    names = {"classname": printable(outcome.model), "name": printable(verdict.requirement)}
    case = ElementTree.SubElement(suite, "testcase", names)
    why = printable(verdict.why)
    if verdict.status is Status.PASSED:
        ElementTree.SubElement(case, "system-out").text = why
        return
    kind = "error" if verdict.status is Status.UNKNOWN else "failure"
    ElementTree.SubElement(case, kind, {"type": verdict.status.value, "message": why}).text = why
