"""The algebra of units, and that the advice on units is right."""

import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from koordpolicy.language.cel.types import AMOUNT, BANDWIDTH, CPU, DOUBLE, INT, MEMORY, PERCENT, UINT, Type
from koordpolicy.language.cel.units import arithmetic, without_units
from tests.unit.language.cel.front.world import checked

QUANTITIES = [CPU, MEMORY, BANDWIDTH, AMOUNT]
NUMBERS = [*QUANTITIES, PERCENT, INT, UINT, DOUBLE]
PAIRS = [(one, other) for one, other in product(NUMBERS, NUMBERS) if one.unit or other.unit]


def result(operator: str, one: Type, other: Type) -> Type | None:
    plan = arithmetic(operator, one, other)
    return None if plan is None else plan.result


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=str)
def test_only_equal_units_add_up(one: Type, other: Type) -> None:
    for operator in ("_+_", "_-_"):
        assert result(operator, one, other) == (one if one == other else None)


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=str)
def test_a_product_has_at_most_one_quantity_and_no_order(one: Type, other: Type) -> None:
    product_of = result("_*_", one, other)
    assert product_of == result("_*_", other, one)
    quantities = [each for each in (one, other) if each in QUANTITIES]
    if UINT in (one, other) or len(quantities) == 2 or one == other == PERCENT:
        assert product_of is None
    else:
        assert product_of == (quantities[0] if quantities else PERCENT)


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=str)
def test_a_quotient_of_equals_is_a_ratio(one: Type, other: Type) -> None:
    quotient = result("_/_", one, other)
    if one == other:
        assert quotient == DOUBLE
    else:
        assert quotient == (one if one.unit and other in (INT, DOUBLE) else None)


@pytest.mark.parametrize(("one", "other"), PAIRS, ids=str)
def test_a_plan_runs_on_what_the_operands_are(one: Type, other: Type) -> None:
    for operator in ("_+_", "_-_", "_*_", "_/_", "_%_"):
        plan = arithmetic(operator, one, other)
        if plan is None:
            continue
        names = [without_units(each).name for each in (one, other)]
        if plan.widen:
            names = ["double", "double"]
        if plan.swap:
            names.reverse()
        assert plan.overload.partition("(")[2] == f"{','.join(names)})"


CASES: list[dict[str, Any]] = YAML(typ="safe", pure=True).load(Path(__file__).parent / "problems.yaml")
BARE = [case for case in CASES if len(case["found"]) == 1 and case["found"][0]["code"] == "KP213"]


@pytest.mark.parametrize("case", BARE, ids=lambda case: case["cel"])
def test_what_is_advised_for_a_bare_number_works(case: dict[str, Any]) -> None:
    (found,) = case["found"]
    source = case["cel"]
    at = found.get("at", source.find(found["marks"]))
    advised = [text for text in re.findall(r"`([^`]+)`", found["help"]) if "(" in text and text != "number()"]
    assert advised
    for text in advised:
        mended = source[:at] + text + source[at + len(found["marks"]) :]
        _, problems = checked(mended)
        assert problems == [], mended
