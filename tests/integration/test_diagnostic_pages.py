"""Every page tells the truth: its example is reported by its code alone, and its remedy is clean."""

import pytest

from koordpolicy import resources
from koordpolicy.cli.proofs import with_proofs
from koordpolicy.diagnostics import Diagnostics, Severity
from koordpolicy.diagnostics.catalogue import CATALOGUE, Code
from koordpolicy.diagnostics.render import render
from koordpolicy.graph import Compiler, Layer
from koordpolicy.graph.exceptions import judge_exceptions
from koordpolicy.graph.not_yet import not_yet
from koordpolicy.graph.testing import with_tests
from koordpolicy.language.cel.values_time import parse_timestamp

ELSEWHERE = {
    "KP001": "files are read before anything is compiled",
    "KP312": "now every field is acted on: see tests/unit/graph/test_not_yet.py",
    "KP211": "a text long enough would fill pages",
}
"""Codes whose example the compiler alone cannot report."""

MOMENT = parse_timestamp("2026-06-01T00:00:00Z")
"""When the pages are read: exceptions are over, or are not, by the clock."""

EACH = [pytest.param(code, id=code.code) for code in CATALOGUE.values()]
COMPILED = [pytest.param(code, id=code.code) for code in CATALOGUE.values() if code.code not in ELSEWHERE]


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    """One for all pages: it remembers the pack."""
    root = resources.policies()
    files = {
        f"policies/{path.relative_to(root).as_posix()}": path.read_text()
        for path in sorted(root.rglob("*.yaml"))
    }
    pack = Layer("koordinator", files)
    return Compiler({pack.name: pack}.get)


def check(code: Code, text: str, compiler: Compiler) -> tuple[set[str], str]:
    """The codes that a file above the built-in pack is reported with, and the report.

    Proofs are made for the codes that speak of them; of notes only the one of the page counts.
    """
    own = Layer("example", {"example.yaml": text + "\n"})
    done = with_tests(compiler.compile(own))
    if code.code.startswith("KP8"):
        done = with_proofs(done)
    found = Diagnostics()
    found.extend(done.found)
    found.extend(judge_exceptions(done.units, MOMENT))
    if code.severity is Severity.NOTE:
        found.extend(not_yet([unit for unit in done.units if unit.layer_name == own.name]))
    return {finding.code for finding in found}, render("text", found, done.sources)


@pytest.mark.parametrize("code", COMPILED)
def test_the_example_is_reported_by_its_code(code: Code, compiler: Compiler) -> None:
    codes, report = check(code, code.example, compiler)
    assert codes == {code.code}, report
    assert f"{code.severity}[{code.code}]" in report


@pytest.mark.parametrize("code", EACH)
def test_the_remedy_is_clean(code: Code, compiler: Compiler) -> None:
    codes, report = check(code, code.remedy, compiler)
    assert codes == set(), report
