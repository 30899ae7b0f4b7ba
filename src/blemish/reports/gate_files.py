"""What a gate decided, for people and for CI systems: a table, JSON and JUnit's XML."""

from __future__ import annotations

import json
from xml.etree import ElementTree

from blemish.core.marks import MADE_WITH, MARK
from blemish.core.printable import printable
from blemish.metrics.gate import Gate, Verdict
from blemish.metrics.gate_rules import Status
from blemish.reports.tables import Cell, Table


def gate_table(found: Gate) -> Table:
    """A row per requirement."""
    rows = tuple((Cell(v.requirement), Cell(v.status.value), Cell(v.why)) for v in found.verdicts)
    title = f"{found.model} on {found.benchmark}: {found.status.value}"
    return Table(title, ("requirement", "result", "why"), rows, text_columns=3, notes=(_rests_on(found), *found.notes))


def _rests_on(found: Gate) -> str:
    if found.by_point:
        return "Decided by values alone: intervals were left out of account (--point)."
    return f"Decided by {100 * found.level:g} % intervals over {found.images:,} images."


def gate_json(found: Gate) -> str:
    """Everything, with all digits."""
    content = {"made_with": MADE_WITH, **found.as_dict()}
    return json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def gate_junit(found: Gate) -> bytes:
    """JUnit's XML: a test case per requirement.

    What failed and what is undecided is a failure, of that type; a number that is not known is an error. Names are
    escaped, and signs that XML cannot hold are written as escapes.
    """
    counts = {
        "tests": len(found.verdicts),
        "failures": sum(v.status in (Status.FAILED, Status.UNDECIDED) for v in found.verdicts),
        "errors": sum(v.status is Status.UNKNOWN for v in found.verdicts),
        "skipped": 0,
    }
    numbers = {name: str(count) for name, count in counts.items()}
    root = ElementTree.Element("testsuites", {"name": "blemish gate", **numbers})
    suite = ElementTree.SubElement(root, "testsuite", {"name": printable(f"blemish gate {found.model}"), **numbers})
    for verdict in found.verdicts:
        _add_case(suite, found, verdict)
    notes = (_rests_on(found), *found.notes)
    ElementTree.SubElement(suite, "system-out").text = "\n".join(map(printable, notes))
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n<!-- {MARK} -->\n'.encode()


def _add_case(suite: ElementTree.Element, found: Gate, verdict: Verdict) -> None:
    names = {"classname": printable(found.model), "name": printable(verdict.requirement)}
    case = ElementTree.SubElement(suite, "testcase", names)
    why = printable(verdict.why)
    if verdict.status is Status.PASSED:
        ElementTree.SubElement(case, "system-out").text = why
        return
    kind = "error" if verdict.status is Status.UNKNOWN else "failure"
    ElementTree.SubElement(case, kind, {"type": verdict.status.value, "message": why}).text = why
