"""Findings as SARIF 2.1.0, the format of code-scanning services."""

import hashlib
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from koordpolicy import __version__
from koordpolicy.diagnostics.catalogue import CATALOGUE
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.diagnostics.render.report import Report
from koordpolicy.diagnostics.value import Diagnostic, Fix, Span

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def render_sarif(report: Report) -> str:
    """A SARIF log with one run. Relative file names stay relative, so that a service finds them in its checkout."""
    codes = sorted({found.code for found in report.findings})
    run: dict[str, Any] = {
        "tool": {
            "driver": {
                "name": "koordpolicy",
                "semanticVersion": __version__,
                "rules": [_rule(code) for code in codes],
            }
        },
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(report)],
        "results": [_result(report, found, codes.index(found.code)) for found in report.findings],
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}
    return json_text(log, indent=2, only_ascii=True) + "\n"


def _invocation(report: Report) -> dict[str, Any]:
    invocation: dict[str, Any] = {"executionSuccessful": True}
    if report.omitted.total:
        invocation["toolExecutionNotifications"] = [
            {"level": "warning", "message": {"text": f"{report.omitted} beyond the limit are not listed"}}
        ]
    return invocation


def _rule(code: str) -> dict[str, Any]:
    page = CATALOGUE.get(code)
    if page is None:
        return {"id": code}
    return {
        "id": code,
        "shortDescription": {"text": page.title},
        "fullDescription": {"text": page.explanation},
        "help": {"text": page.advice, "markdown": page.markdown()},
        "defaultConfiguration": {"level": page.severity.value},
    }


def _result(report: Report, found: Diagnostic, rule: int) -> dict[str, Any]:
    text = found.message if found.help is None else f"{found.message}\n\n{found.help}"
    result: dict[str, Any] = {
        "ruleId": found.code,
        "ruleIndex": rule,
        "level": found.severity.value,
        "message": {"text": text},
        "locations": [{"physicalLocation": _location(found.span)}],
        "partialFingerprints": {"koordpolicyFinding/v1": _fingerprint(report, found)},
    }
    related: list[dict[str, Any]] = []
    for note in found.notes:
        entry: dict[str, Any] = {"id": len(related), "message": {"text": note.message}}
        if note.span is not None:
            entry["physicalLocation"] = _location(note.span)
        related.append(entry)
    if related:
        result["relatedLocations"] = related
    if found.fix is not None:
        result["fixes"] = [_fix(found.fix)]
    return result


def _fix(fix: Fix) -> dict[str, Any]:
    return {
        "description": {"text": fix.description},
        "artifactChanges": [
            {
                "artifactLocation": {"uri": _uri(fix.span.file)},
                "replacements": [
                    {"deletedRegion": _region(fix.span), "insertedContent": {"text": fix.replacement}}
                ],
            }
        ],
    }


def _location(span: Span) -> dict[str, Any]:
    return {"artifactLocation": {"uri": _uri(span.file)}, "region": _region(span)}


def _region(span: Span) -> dict[str, Any]:
    return {
        "startLine": span.start.line,
        "startColumn": span.start.column,
        "endLine": span.end.line,
        "endColumn": span.end.column,
    }


def _uri(file: str) -> str:
    path = PurePath(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())


def _fingerprint(report: Report, found: Diagnostic) -> str:
    """Stays the same when lines above a finding come or go, so that a service recognises it again."""
    line = report.line(found.span.file, found.span.start.line) or ""
    text = f"{found.code}\0{found.span.file}\0{found.message}\0{line.strip()}"
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
