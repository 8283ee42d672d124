"""Test results as JUnit XML: a suite for each test document, a case for each case."""

from collections import defaultdict
from xml.etree import ElementTree as ET

from koordpolicy.cli.results.shown import ShownRun, place
from koordpolicy.diagnostics import Diagnostic
from koordpolicy.diagnostics.escaping import safe
from koordpolicy.graph.testing.findings import actual_text, expected_text, facts_of
from koordpolicy.graph.testing.results import CaseResult


def render_junit(shown: ShownRun) -> str:
    """A failure for each case that failed; a case whose facts or decisions are none is an error."""
    suites: dict[tuple[str, str], list[CaseResult]] = defaultdict(list)
    told: set[Diagnostic] = set()
    for case in shown.run.cases:
        suites[case.span.file, case.suite].append(case)
        told.update(case.found)
    top = ET.Element("testsuites", name="koordpolicy test")
    for (file, name), cases in suites.items():
        top.append(_suite(file, name, cases))
    rest = [found for found in shown.run.found if found.code != "KP501" and found not in told]
    if rest:
        top.append(_findings(rest))
    for count in ("tests", "failures", "errors"):
        top.set(count, str(sum(int(suite.get(count, "0")) for suite in top)))
    for element in top.iter():
        element.attrib = {name: safe(value) for name, value in element.attrib.items()}
        element.text = element.text and safe(element.text)
    ET.indent(top)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(top, encoding="unicode") + "\n"


def _suite(file: str, name: str, cases: list[CaseResult]) -> ET.Element:
    wrong = sum(bool(case.found) for case in cases)
    failed = sum(not case.passed for case in cases) - wrong
    suite = ET.Element(
        "testsuite",
        name=name,
        file=file,
        tests=str(len(cases)),
        failures=str(failed),
        errors=str(wrong),
    )
    for case in cases:
        element = ET.SubElement(
            suite, "testcase", name=case.name, classname=name, line=str(case.span.start.line)
        )
        if case.found:
            text = "\n".join(_finding(found) for found in case.found)
            ET.SubElement(
                element, "error", type=case.found[0].code, message=case.found[0].message
            ).text = text
        elif not case.passed:
            failure = ET.SubElement(element, "failure", type="KP501", message=_headline(case))
            failure.text = _body(case)
    return suite


def _headline(case: CaseResult) -> str:
    first = next(outcome for outcome in case.outcomes if not outcome.passed)
    return f"{first.expectation.decision} is {actual_text(first)}, expected {expected_text(first)}"


def _body(case: CaseResult) -> str:
    lines = []
    for outcome in case.outcomes:
        if outcome.passed:
            continue
        where = place(outcome.expectation.span)
        lines.append(f"{where}: {outcome.expectation.decision}")
        lines.append(f"  expected {expected_text(outcome)}")
        lines.append(f"  actual {actual_text(outcome)}")
        lines += [f"  by {ref.document} {place(ref.span)}" for ref in outcome.answer.provenance.rules]
        lines += [f"  from {fact.path} = {fact.value}" for fact in facts_of(outcome)]
    return "\n".join(lines)


def _findings(found: list[Diagnostic]) -> ET.Element:
    """What is wrong with a document as a whole."""
    suite = ET.Element(
        "testsuite", name="findings", tests=str(len(found)), failures="0", errors=str(len(found))
    )
    for one in found:
        case = ET.SubElement(
            suite, "testcase", name=f"{one.code} at {place(one.span)}", classname=one.span.file
        )
        ET.SubElement(case, "error", type=one.code, message=one.message).text = _finding(one)
    return suite


def _finding(found: Diagnostic) -> str:
    help = f" ({found.help})" if found.help else ""
    return f"{place(found.span)}: {found.code} {found.message}{help}"
