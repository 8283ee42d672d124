"""Findings as a Code Quality report, which GitLab shows in merge requests."""

import hashlib
from typing import Any

from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.diagnostics.render.report import Report
from koordpolicy.diagnostics.value import Diagnostic, Severity

_SEVERITIES = {Severity.ERROR: "critical", Severity.WARNING: "minor", Severity.NOTE: "info"}


def render_gitlab(report: Report) -> str:
    """A list with an entry a finding; empty without any, so that old ones close."""
    known: set[str] = set()
    entries = [_entry(found, known) for found in report.findings]
    return json_text(entries, indent=2) + "\n"


def _entry(found: Diagnostic, known: set[str]) -> dict[str, Any]:
    message = f"{found.message}; {found.help}" if found.help is not None else found.message
    return {
        "description": message,
        "check_name": found.code,
        "fingerprint": _fingerprint(found, known),
        "severity": _SEVERITIES[found.severity],
        "location": {"path": found.span.file, "lines": {"begin": found.span.start.line}},
    }


def _fingerprint(found: Diagnostic, known: set[str]) -> str:
    """What a finding is recognised by in the next run: its words, not its line. Equal ones are numbered."""
    number = 0
    while True:
        parts = (found.code, found.span.file, found.message, str(number))
        fingerprint = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
        if fingerprint not in known:
            known.add(fingerprint)
            return fingerprint
        number += 1
