"""Findings as workflow commands of GitHub Actions, shown there beside the changed lines."""

from koordpolicy.diagnostics.catalogue import CATALOGUE
from koordpolicy.diagnostics.render.report import Report
from koordpolicy.diagnostics.value import Diagnostic, Severity

_COMMAND = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def render_github(report: Report) -> str:
    """One command a line; whatever a policy contains can start no command of its own."""
    lines = [_command(found) for found in report.findings]
    if report.omitted.total:
        lines.append(f"::notice title=koordpolicy::{_data(f'{report.omitted} more are not listed')}")
    return "".join(f"{line}\n" for line in lines)


def _command(found: Diagnostic) -> str:
    page = CATALOGUE.get(found.code)
    span = found.span
    properties = {
        "file": span.file,
        "line": str(span.start.line),
        "col": str(span.start.column),
        "endLine": str(span.end.line),
        "endColumn": str(span.end.column),
        "title": f"{found.code} {page.title}" if page else found.code,
    }
    if span.end.line != span.start.line:
        # Columns of different lines are refused there.
        del properties["col"], properties["endColumn"]
    message = [found.message]
    for note in found.notes:
        place = f" ({note.span.file}:{note.span.start.line}:{note.span.start.column})" if note.span else ""
        message.append(f"note: {note.message}{place}")
    if found.help is not None:
        message.append(f"help: {found.help}")
    written = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{_COMMAND[found.severity]} {written}::{_data(chr(10).join(message))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
