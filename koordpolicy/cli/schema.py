"""`koordpolicy schema`: the JSON Schemas of the policy kinds, for editors, and their CRDs, for clusters."""

import argparse
from pathlib import Path
from typing import Any

from koordpolicy.cli.command import OK, CannotRunError
from koordpolicy.cli.terminal import Terminal
from koordpolicy.cli.tuning.page import report_page
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.language.crds import write_crds
from koordpolicy.language.manual import write_manual
from koordpolicy.language.schema import schema_of, schemas, write_schemas
from koordpolicy.language_server.page import editors_page
from koordpolicy.runtime.metrics.page import metrics_page
from koordpolicy.simulator.fault_file import FaultFile

PAGES = {"editors.md": editors_page(), "metrics.md": metrics_page(), "report.md": report_page()}
"""Pages of the manual on what stands above the language."""
FAULTS = "faults"


def others() -> dict[str, dict[str, Any]]:
    """Schemas of files that are no policies, by their names."""
    return {FAULTS: schema_of(FaultFile)}


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    """Print or write what is made from the kinds."""
    if arguments.write is not None or arguments.crds is not None:
        for file in _write(arguments):
            terminal.say(f"wrote {file}")
        return OK
    known = {**schemas(), **others()}
    if arguments.kind is None:
        listed = json_text(list(known), indent=2) if arguments.output == "json" else "\n".join(known)
        terminal.print(listed)
        return OK
    found = known.get(arguments.kind)
    if found is None:
        close = nearest(arguments.kind, known)
        raise CannotRunError(
            f"there is no kind `{arguments.kind}`" + (f"; did you mean `{close}`?" if close else "")
        )
    terminal.print(json_text(found, indent=2))
    return OK


def _write(arguments: argparse.Namespace) -> list[Path]:
    """Write what is asked for; gives the files. Raises `CannotRunError`."""
    try:
        written = []
        if arguments.write is not None:
            written += write_schemas(arguments.write, others())
            written += write_manual(arguments.write / "manual", arguments.whole(), PAGES)
        if arguments.crds is not None:
            written += write_crds(arguments.crds)
    except OSError as error:
        raise CannotRunError(f"`{error.filename}` cannot be written: {error.strerror}") from None
    return written
