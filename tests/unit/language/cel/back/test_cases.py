"""Expressions with what they are, kept as data: see `cases/`."""

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.library import FUNCTIONS, OVERLOADS
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.types import TIMESTAMP
from koordpolicy.language.cel.values import Timestamp
from tests.conformance.values import same
from tests.unit.language.cel.back.expressions import ENVIRONMENT, typed
from tests.unit.language.cel.back.reference_interpreter import interpret


def _cases() -> list[Any]:
    files = sorted((Path(__file__).parent / "cases").glob("*.yaml"))
    return [pytest.param(row, id=row["cel"]) for file in files for row in YAML(typ="safe").load(file)]


def _outcome(text: str, *, folded: bool) -> Any:
    tree = typed(text)
    try:
        return compile_row((), fold(tree) if folded else tree).call()
    except CelError as error:
        return error


@pytest.mark.parametrize("folded", [False, True], ids=["plain", "folded"])
@pytest.mark.parametrize("case", _cases())
def test_an_expression_is_what_its_case_says(case: dict[str, str], folded: bool) -> None:
    found = _outcome(case["cel"], folded=folded)
    if "fails" in case:
        assert isinstance(found, CelError), found
        assert found.kind == case["fails"]
    else:
        assert not isinstance(found, CelError), found
        assert same(found, compile_row((), typed(case["is"])).call())


@pytest.mark.parametrize("case", [case for case in _cases() if "is" in case.values[0]])
def test_the_plain_interpreter_says_the_same(case: dict[str, str]) -> None:
    assert same(interpret(typed(case["cel"]), {}), interpret(typed(case["is"]), {}))


FACTS_OF_EXAMPLES: dict[str, Any] = {
    "node": {
        "name": "node-1",
        "capacity.cpu": 96_000,
        "free.cpu": 8_000,
        "reserved.cpu": 1_000,
        "usage.system.cpu": 2_000,
    },
    "pod": {"labels": {"app": "web"}},
    "now": Timestamp(1_900_000_000 * 10**9),
}


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_example_runs(name: str) -> None:
    tree = typed(FUNCTIONS[name].example, ENVIRONMENT.extended(variables={"now": TIMESTAMP}))
    roots = tuple(FACTS_OF_EXAMPLES)
    value = compile_row(roots, tree).call(*FACTS_OF_EXAMPLES.values())
    if tree.type.name == "bool":
        assert value is True


def test_every_function_is_described() -> None:
    for row in FUNCTIONS.values():
        assert row.summary and row.example and row.overloads, row.name
        assert row.summary[0].islower() or row.summary[0] in "-'ABCR0123456789", row.summary
        assert not row.summary.endswith("."), row.summary


def test_overload_ids_begin_with_their_function() -> None:
    for row in FUNCTIONS.values():
        for overload in row.overloads:
            assert overload.id.removeprefix(".").startswith(f"{row.name}(")
            assert OVERLOADS[overload.id] is overload
