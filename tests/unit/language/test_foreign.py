"""What is told apart from policies, and what is not."""

from pathlib import Path
from typing import Any

import pytest

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.language.documents import read_documents
from koordpolicy.language.foreign import foreign, foreign_files

CASES = Path(__file__).with_name("foreign.yaml")


def cases() -> list[dict[str, Any]]:
    from ruamel.yaml import YAML  # noqa: PLC0415

    loaded: list[dict[str, Any]] = YAML(typ="safe").load(CASES.read_text(encoding="utf-8"))
    return loaded


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["text"][:40])
def test_only_what_says_so_itself_is_foreign(case: dict[str, Any]) -> None:
    found = Diagnostics()
    documents = read_documents("a.yaml", case["text"], found)
    what = foreign(case["text"], documents, readable=not found.has_errors)
    assert what == case["is"]
    assert foreign_files({"a.yaml": case["text"]}) == ({} if what is None else {"a.yaml": what})
