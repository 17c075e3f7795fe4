"""A gate's result as JUnit XML, which build servers show: one test case a fixture, and one a state."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree

from .gate import GateResult


def junit_xml(result: GateResult) -> bytes:
    """The document."""
    cases = [
        *((f"fixture {checked.name}", checked.problems, checked.unreadable) for checked in result.fixtures),
        *((f"state {state}", _missing(names), False) for state, names in result.states.items()),
        ("gate", result.problems, False),
    ]
    suite = ElementTree.Element(
        "testsuite",
        name="glmsse gate",
        tests=str(len(cases)),
        failures=str(sum(bool(problems) and not unreadable for _, problems, unreadable in cases)),
        errors=str(sum(unreadable for *_, unreadable in cases)),
    )
    for name, problems, unreadable in cases:
        case = ElementTree.SubElement(suite, "testcase", classname="glmsse.gate", name=_xml_text(name))
        if problems:
            found = ElementTree.SubElement(case, "error" if unreadable else "failure", message=_xml_text(problems[0]))
            found.text = _xml_text("\n".join(problems))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    document: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return document


def _missing(names: Iterable[str]) -> tuple[str, ...]:
    return () if tuple(names) else ("no fixture covers it",)


def _xml_text(text: str) -> str:
    """Without the characters that XML cannot have (XML 1.0 §2.2)."""
    return "".join(char if char in "\t\n" or (char >= " " and char.isprintable()) else "?" for char in text)
