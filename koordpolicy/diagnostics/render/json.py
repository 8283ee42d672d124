"""Findings for programs, in a format of our own that leaves nothing out."""

from typing import Any

from koordpolicy import __version__
from koordpolicy.diagnostics.catalogue import CATALOGUE
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.diagnostics.render.report import Counts, Report
from koordpolicy.diagnostics.value import Diagnostic, Span

FORMAT_VERSION = 1


def render_json(report: Report) -> str:
    """One JSON object: `findings` in order, `counts` of all findings, `omitted` of those beyond the cap.

    Lines and columns count from 1, columns in code points, `end` exclusive. `formatVersion` grows when a field
    changes its meaning or goes; new fields may come at any time.
    """
    document = {
        "formatVersion": FORMAT_VERSION,
        "tool": {"name": "koordpolicy", "version": __version__},
        "files": len(report.files),
        "counts": _counts(report.counts),
        "omitted": _counts(report.omitted),
        "findings": [_finding(found) for found in report.findings],
    }
    return json_text(document, indent=2, only_ascii=True) + "\n"


def _counts(counts: Counts) -> dict[str, int]:
    return {"error": counts.errors, "warning": counts.warnings, "note": counts.notes}


def _finding(found: Diagnostic) -> dict[str, Any]:
    page = CATALOGUE.get(found.code)
    result: dict[str, Any] = {
        "code": found.code,
        "title": page.title if page else None,
        "severity": found.severity.value,
        "message": found.message,
        **_place(found.span),
        "help": found.help,
        "notes": [
            {"message": note.message, **(_place(note.span) if note.span is not None else {})}
            for note in found.notes
        ],
        "fix": None,
    }
    if found.fix is not None:
        result["fix"] = {
            "description": found.fix.description,
            **_place(found.fix.span),
            "replacement": found.fix.replacement,
            "safe": found.fix.safe,
        }
    return result


def _place(span: Span) -> dict[str, Any]:
    return {
        "file": span.file,
        "start": {"line": span.start.line, "column": span.start.column},
        "end": {"line": span.end.line, "column": span.end.column},
    }
