"""Texts of policy files: read, formatted, and what is wrong with them shown in every format."""

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from xml.etree import ElementTree as ET

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.diagnostics.render import RENDERERS, render
from koordpolicy.language.documents import read_documents
from koordpolicy.language.format import format_text
from tests.conftest import REPOSITORY
from tests.fuzz.mutations import mutate_text
from tests.fuzz.target import Defect, Target

FILE = "fuzzed.yaml"
_LONGEST = 20_000


@lru_cache(maxsize=1)
def policy_texts() -> Sequence[bytes]:
    """The policies that stand in the repository, good and broken ones."""
    folders = (REPOSITORY / "policies", REPOSITORY / "examples", REPOSITORY / "tests/broken")
    files = sorted(file for folder in folders for file in folder.rglob("*.yaml"))
    return tuple(text for text in map(Path.read_bytes, files) if len(text) <= _LONGEST)


def _run(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    found = Diagnostics()
    read_documents(FILE, text, found)
    for format in RENDERERS:
        shown = render(format, found, {FILE: text}, width=80)
        shown.encode()
        if format in ("json", "sarif", "gitlab") and shown:
            json.loads(shown)
        elif format == "junit":
            ET.fromstring(shown)
    if found.has_errors:
        return
    formatted = format_text(FILE, text, Diagnostics())
    if format_text(FILE, formatted, Diagnostics()) != formatted:
        raise Defect("formatting twice is not formatting once")


YAML = Target("yaml", "texts of policy files", policy_texts, mutate_text, _run)
