"""What the front end says of a faulty expression: each finding, its place, its words and its advice."""

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from koordpolicy.diagnostics.value import Severity
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.checker import Problem, check
from koordpolicy.language.cel.ir_walk import walk
from koordpolicy.language.cel.parser import parse
from koordpolicy.language.cel.types import CPU, DOUBLE, ERROR, INT, MEMORY, PERCENT, STRING, Type, optional_of
from tests.unit.language.cel.front.world import POLICY, checked

CASES: list[dict[str, Any]] = YAML(typ="safe", pure=True).load(Path(__file__).parent / "problems.yaml")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["cel"][:60])
def test_faults_are_found_where_they_are(case: dict[str, Any]) -> None:
    source = case["cel"]
    _, problems = checked(source)
    found = [
        {
            "code": problem.code,
            "marks": source[problem.start : problem.end],
            "at": problem.start,
            "says": problem.message,
            "help": problem.help,
            "replacement": problem.replacement,
        }
        for problem in problems
    ]
    assert found == [
        {"at": source.find(one["marks"]), "help": None, "replacement": None, **one} for one in case["found"]
    ]


REPLACED = [case for case in CASES if len(case["found"]) == 1 and case["found"][0].get("replacement")]


@pytest.mark.parametrize("case", REPLACED, ids=lambda case: case["cel"][:60])
def test_a_replacement_mends_the_expression(case: dict[str, Any]) -> None:
    source = case["cel"]
    _, (problem,) = checked(source)
    mended = source[: problem.start] + case["found"][0]["replacement"] + source[problem.end :]
    _, problems = checked(mended)
    assert problem not in problems
    assert case["found"][0]["says"] not in [other.message for other in problems]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["cel"][:60])
def test_messages_are_worded_alike(case: dict[str, Any]) -> None:
    for one in case["found"]:
        for text in (one["says"], one.get("help")):
            if text is not None:
                assert not text.endswith("."), "no final stop"
                assert text[0] == "`" or text[0].islower(), "lower case"
                assert text.count("`") % 2 == 0 or "backtick" in text or "``" in text, "backticks are paired"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["cel"][:60])
def test_only_an_error_leaves_a_hole(case: dict[str, Any]) -> None:
    node, problems = checked(case["cel"])
    if node is None:
        return
    errors = any(problem.severity is Severity.ERROR for problem in problems)
    assert errors == any(part.type == ERROR for part in walk(node))


@pytest.mark.parametrize(
    "source", ["broken + 1", "broken.a.b", "variables.failed * 2 > broken", "max(broken, 1)"]
)
def test_what_was_reported_elsewhere_is_not_reported_again(source: str) -> None:
    node, problems = checked(source)
    assert node is not None and node.type == ERROR
    assert problems == []


FITTING: list[tuple[str, Type]] = [
    ("node.capacity.cpu", CPU),
    ("0", CPU),
    ("0", PERCENT),
    ("true ? 0 : node.capacity.memory", MEMORY),
    ("true ? 0 : 0", CPU),
    ("1", DOUBLE),
    ("anything", STRING),
    ("parameters.limit", optional_of(CPU)),
]


@pytest.mark.parametrize(("source", "wanted"), FITTING)
def test_a_value_fits_what_is_wanted(source: str, wanted: Type) -> None:
    node, problems = checked(source, wanted=wanted)
    assert problems == []
    assert node is not None and node.type.name in (wanted.name, "dyn")


def test_a_zero_becomes_the_quantity_that_is_wanted() -> None:
    node, _ = checked("0", wanted=PERCENT)
    assert isinstance(node, ir.Const)
    assert (node.type, node.value, type(node.value)) == (PERCENT, 0.0, float)


UNFITTING: list[tuple[str, Type, str, str]] = [
    ("1000", CPU, "KP213", "`1000` is a bare number, a value in millicores is wanted"),
    (
        "node.capacity.memory",
        CPU,
        "KP208",
        "`node.capacity.memory` is in bytes, a value in millicores is wanted",
    ),
    ("'a'", INT, "KP208", "`'a'` is a string, an int is wanted"),
    ("node.pressure", DOUBLE, "KP208", "`node.pressure` is a percentage, a double is wanted"),
    (
        "parameters.limit",
        CPU,
        "KP208",
        "`parameters.limit` is an optional cpu, a value in millicores is wanted",
    ),
    ("node.capacity.pods", DOUBLE, "KP208", "`node.capacity.pods` is a bare number, a double is wanted"),
    ("node.capacity.cpu", STRING, "KP208", "`node.capacity.cpu` is in millicores, a string is wanted"),
]


@pytest.mark.parametrize(("source", "wanted", "code", "message"), UNFITTING)
def test_a_value_that_is_not_what_is_wanted_is_refused(
    source: str, wanted: Type, code: str, message: str
) -> None:
    node, problems = checked(source, wanted=wanted)
    assert node is not None and node.type == ERROR
    assert [(problem.code, problem.message) for problem in problems] == [(code, message)]


def test_nothing_else_is_wanted_of_a_faulty_expression() -> None:
    _, problems = checked("nod.x", wanted=CPU)
    assert [problem.code for problem in problems] == ["KP202"]


def test_without_the_text_the_message_still_stands() -> None:
    problems: list[Problem] = []
    check(parse("node.capacity.cpu + node.capacity.memory"), POLICY, problems)
    assert [problem.code for problem in problems] == ["KP204"]
