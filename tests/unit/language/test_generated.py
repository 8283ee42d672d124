"""What stands in `schemas/` is what the declarations say now. `pytest --update-goldens` writes it anew."""

from collections.abc import Callable
from pathlib import Path

import pytest

from koordpolicy.cli.main import COMMANDS, parser
from koordpolicy.cli.schema import PAGES as MORE
from koordpolicy.cli.schema import others
from koordpolicy.cli.tuning.measures import MEASURED
from koordpolicy.diagnostics.catalogue import CATALOGUE
from koordpolicy.language.cel.checker.macros import USAGE as MACROS
from koordpolicy.language.cel.library import FUNCTIONS
from koordpolicy.language.facts import FACTS, ROOTS
from koordpolicy.language.kinds import KINDS, slots
from koordpolicy.language.manual import manual
from koordpolicy.language.schema import schema_files
from koordpolicy.runtime.metrics.table import METRICS

SCHEMAS = schema_files(others())
PAGES = manual(parser(), MORE)


@pytest.mark.parametrize("name", SCHEMAS)
def test_schemas_are_fresh(name: str, repository: Path, golden: Callable[[Path, str], None]) -> None:
    golden(repository / "schemas" / name, SCHEMAS[name])


@pytest.mark.parametrize("name", PAGES)
def test_the_manual_is_fresh(name: str, repository: Path, golden: Callable[[Path, str], None]) -> None:
    golden(repository / "schemas" / "manual" / name, PAGES[name])


def test_nothing_else_stands_there(repository: Path) -> None:
    there = {
        path.relative_to(repository / "schemas").as_posix() for path in (repository / "schemas").rglob("*")
    }
    known = {*SCHEMAS, "manual", *(f"manual/{name}" for name in PAGES)}
    by_hand = {name for name in there if name.partition("/")[0] == "guide"}
    assert there - known - by_hand - {"README.md"} == set()


def cells(page: str) -> set[str]:
    """The first cell of every row of the tables of a page."""
    return {
        line.split(" | ")[0].removeprefix("| ") for line in PAGES[page].splitlines() if line.startswith("| ")
    }


def test_every_kind_is_in_the_manual() -> None:
    assert [kind for kind in KINDS if f"\n## {kind}\n" not in PAGES["kinds.md"]] == []


def test_every_decision_is_in_the_manual() -> None:
    listed = cells("decisions.md")
    assert [
        path.field for kind in KINDS.values() for path in slots(kind.spec) if f"`{path.field}`" not in listed
    ] == []


def test_every_fact_is_in_the_manual() -> None:
    listed = cells("facts.md")
    assert [name for name in ROOTS if f"`{name}`" not in listed] == []
    facts = [fact.path for record in FACTS.records.values() for fact in record.facts]
    assert [path for path in facts if f"`{path}`" not in listed] == []


def test_every_function_and_macro_is_in_the_manual() -> None:
    listed = cells("functions.md")
    assert [name for name in FUNCTIONS if f"`{name}`" not in listed] == []
    assert [
        name for name in MACROS if not any(f"{name}(" in cell for cell in listed) and name != "existsOne"
    ] == []


def test_every_code_is_in_the_manual() -> None:
    assert [code for code in CATALOGUE if f"\n### {code}: " not in PAGES["diagnostics.md"]] == []


def test_every_command_and_its_arguments_are_in_the_manual() -> None:
    page = PAGES["commands.md"]
    assert [name for name in COMMANDS if f"## koordpolicy {name}\n" not in page] == []
    assert "--output" in page


def test_every_metric_is_in_the_manual() -> None:
    listed = cells("metrics.md")
    assert [metric.name for metric in METRICS if f"`{metric.name}`" not in listed] == []


def test_every_number_of_the_report_is_in_the_manual() -> None:
    listed = cells("report.md")
    assert [one.path for one in MEASURED if f"`report.{one.path}`" not in listed] == []


def test_every_field_has_a_meaning() -> None:
    rows = [line.split(" | ") for line in PAGES["kinds.md"].splitlines() if line.startswith("| `")]
    assert len(rows) > 100
    assert [row[0] for row in rows if not row[3].rstrip(" |")] == []
