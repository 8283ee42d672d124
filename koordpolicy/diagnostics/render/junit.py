"""Findings as JUnit XML, which every CI service shows as a test report."""

from collections import defaultdict
from xml.etree import ElementTree as ET

from koordpolicy.diagnostics.catalogue import CATALOGUE
from koordpolicy.diagnostics.render.report import Report
from koordpolicy.diagnostics.value import Diagnostic, Severity


def render_junit(report: Report) -> str:
    """A suite a file: a failed case for each error, a passed one with output for what is less, or one that passed."""
    by_file: dict[str, list[Diagnostic]] = defaultdict(list)
    for file in report.files:
        by_file[file] = []
    for found in report.findings:
        by_file[found.span.file].append(found)
    top = ET.Element("testsuites", name="koordpolicy")
    for file in sorted(by_file):
        top.append(_suite(file, by_file[file]))
    for count in ("tests", "failures"):
        top.set(count, str(sum(int(suite.get(count, "0")) for suite in top)))
    top.set("errors", "0")
    if report.omitted.total:
        suite = ET.SubElement(top, "testsuite", name="beyond the limit", tests="0", failures="0", errors="0")
        ET.SubElement(suite, "system-out").text = f"{report.omitted} more are not listed"
    ET.indent(top)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(top, encoding="unicode") + "\n"


def _suite(file: str, findings: list[Diagnostic]) -> ET.Element:
    failures = sum(found.severity is Severity.ERROR for found in findings)
    suite = ET.Element(
        "testsuite",
        name=file,
        tests=str(max(1, len(findings))),
        failures=str(failures),
        errors="0",
        skipped="0",
    )
    for found in findings:
        suite.append(_case(file, found))
    if not findings:
        ET.SubElement(suite, "testcase", name="no findings", classname=file, file=file)
    return suite


def _case(file: str, found: Diagnostic) -> ET.Element:
    page = CATALOGUE.get(found.code)
    place = f"{found.span.start.line}:{found.span.start.column}"
    case = ET.Element(
        "testcase",
        name=f"{found.code} {page.title} at {place}" if page else f"{found.code} at {place}",
        classname=file,
        file=file,
        line=str(found.span.start.line),
    )
    if found.severity is Severity.ERROR:
        failure = ET.SubElement(case, "failure", type=found.code, message=found.message)
        failure.text = _body(found)
    else:
        ET.SubElement(case, "system-out").text = f"{found.severity}: {_body(found)}"
    return case


def _body(found: Diagnostic) -> str:
    lines = [f"{found.span.file}:{found.span.start.line}:{found.span.start.column}: {found.message}"]
    for note in found.notes:
        where = f"{note.span.file}:{note.span.start.line}:{note.span.start.column}: " if note.span else ""
        lines.append(f"note: {where}{note.message}")
    if found.help is not None:
        lines.append(f"help: {found.help}")
    return "\n".join(lines)
