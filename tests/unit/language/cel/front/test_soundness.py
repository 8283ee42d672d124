"""What the checker promises holds at run time: a value has the type, and so the unit, that was found for it."""

from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.errors import CelError, NoSuchOverload
from koordpolicy.language.cel.ir_walk import walk
from koordpolicy.language.cel.lower.row import RowProgram, compile_row
from koordpolicy.language.cel.types import DURATION, ERROR, TIMESTAMP, Type
from koordpolicy.language.cel.values import NONE, Duration, Optional, Timestamp, UInt, key_value, type_name
from tests.unit.language.cel.front.expressions import expressions
from tests.unit.language.cel.front.world import POLICY, checked

POD = {
    "name": "a",
    "band": "prod",
    "priority": 9,
    "request.cpu": 500,
    "request.memory": 2**30,
    "labels": {"a": "b"},
}
NODE: dict[str, Any] = {
    "name": "n", "labels": {"zone": "z", "a": "1"}, "schedulable": True, "capacity.cpu": 4000, "capacity.memory": 2**33,
    "capacity.pods": 110, "usage.prod.cpu": 1200, "usage.prod.memory": 2**31, "usage.total.cpu": 2000,
    "network": 10**9, "pressure": 12.5, "score": 0.5, "seen": Timestamp(0), "age": Duration(90 * 10**9),
    "amounts": {"a": 5, "cpu": 1000}, "pods": [POD, {**POD, "name": "b"}], "best": POD,
}  # fmt: skip
MAY_BE_MISSING = ["usage.prod.cpu", "usage.prod.memory", "pressure", "pods", "labels", "age"]


@given(
    expressions(), st.sets(st.sampled_from(MAY_BE_MISSING)), st.sampled_from([1, "a", None, [1], {"a": 1}])
)
def test_a_value_has_the_type_that_was_found(source: str, missing: set[str], anything: object) -> None:
    node, problems = checked(source)
    assert node is not None
    assume(not problems and node.type != ERROR)
    assume(not any(isinstance(part, ir.Ref) for part in walk(node)))
    facts = {path: value for path, value in NODE.items() if path not in missing}
    program = compile_row(tuple(POLICY.variables), node)
    values = {"node": facts, "pod": POD, "now": Timestamp(10**18), "anything": anything, "broken": None}
    outcome = attempt(program, [values[name] for name in POLICY.variables])
    if isinstance(outcome, NoSuchOverload):
        # Where nothing is left open, no operator can meet operands that it does not know.
        # A format takes a list of anything, and null fits timestamps in CEL.
        loose = any(part.type.name in ("dyn", "null_type") for part in walk(node))
        assert loose or "format" in source, outcome
    if not isinstance(outcome, CelError):
        assert belongs(outcome, node.type), (outcome, node.type)


def attempt(program: RowProgram, values: list[Any]) -> Any:
    try:
        return program.call(*values)
    except CelError as error:
        return error


def belongs(value: Any, kind: Type) -> bool:
    """Whether a run-time value is one of a type. In CEL, null is one of every message's."""
    if value is None and kind.name in ("record", TIMESTAMP.name, DURATION.name):
        return True
    match kind.name:
        case "dyn":
            return True
        case "record":
            return isinstance(value, dict)
        case "list":
            return isinstance(value, list | tuple) and all(belongs(each, kind.params[0]) for each in value)
        case "map":
            return isinstance(value, dict) and all(
                belongs(key_value(key), kind.params[0]) and belongs(each, kind.params[1])
                for key, each in value.items()
            )
        case "optional_type":
            return value is NONE or (isinstance(value, Optional) and belongs(value.value, kind.params[0]))
        case "uint":
            return isinstance(value, UInt)
    return type_name(value) == kind.name
