"""Is an answer what a test expects?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from koordpolicy.language.cel.types import DURATION, DYN, TIMESTAMP, Type, Unit
from koordpolicy.language.cel.values import Duration, Optional, Timestamp, key_value
from koordpolicy.language.kinds import BadLiteral, LiteralProblem, literal_value
from koordpolicy.language.kinds.literals import rounded


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far numbers may lie from what is expected: by an amount in the value's unit, or a share of it."""

    amount: float = 0.0
    share: float = 0.0

    def permits(self, wanted: float, actual: float) -> bool:
        return abs(actual - wanted) <= max(self.amount, abs(wanted) * self.share)


EXACT = Tolerance()


def plain_type(type: Type) -> Type:
    """The type in which an expectation is written: an optional's value stands for itself."""
    return type.params[0] if type.name == "optional_type" and type.params else type


def expected_value(type: Type, plain: object) -> object:
    """The run-time value of an expectation; None for nothing. Raises `BadLiteral`, also for a quantity that no value can be."""
    if plain is None:
        return None
    value = literal_value(plain_type(type), plain)
    problem = rounded(plain_type(type), plain)
    if problem is not None:
        raise BadLiteral(problem)
    return value


def tolerance_of(type: Type, plain: object) -> Tolerance:
    """A tolerance as written: in the unit of the decision, or as a share of what is expected.

    `10m` or `5%` for CPU; `0.5%` for a percentage means half a point. Raises `BadLiteral`.
    """
    if plain is None:
        return EXACT
    number = _number_type(plain_type(type))
    if not number.is_number and number.name != "google.protobuf.Duration":
        problem = "only numbers, quantities and times can have a tolerance"
        raise BadLiteral(LiteralProblem(problem, "remove it"))
    if isinstance(plain, str) and plain.endswith("%") and number.unit is not Unit.PERCENT:
        share = literal_value(Type("double", unit=Unit.PERCENT), plain)
        assert isinstance(share, float)
        return Tolerance(share=abs(share) / 100)
    value = literal_value(Type("double") if number.unit is None and number.is_number else number, plain)
    if isinstance(value, Duration):
        return Tolerance(amount=abs(value.ns))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadLiteral(
            LiteralProblem("only numbers, quantities and times can have a tolerance", "remove it")
        )
    return Tolerance(amount=abs(value))


def _number_type(type: Type) -> Type:
    """What is measured: the elements of lists, the entries of maps; times in durations."""
    if type.name in ("list", "map") and type.params:
        return _number_type(type.params[-1])
    if type.name == "google.protobuf.Timestamp":
        return Type("google.protobuf.Duration")
    return Type("double") if type == DYN else type


def agrees(wanted: Any, actual: Any, tolerance: Tolerance = EXACT) -> bool:
    """Whether a value is the expected one, numbers within the tolerance, in lists and maps too."""
    if isinstance(actual, Optional):
        actual = actual.value
    if isinstance(wanted, Mapping) and isinstance(actual, Mapping):
        entries = {str(key_value(key)): item for key, item in actual.items()}
        return wanted.keys() == entries.keys() and all(
            agrees(wanted[k], entries[k], tolerance) for k in wanted
        )
    if _is_list(wanted) and _is_list(actual):
        return len(wanted) == len(actual) and all(
            agrees(left, right, tolerance) for left, right in zip(wanted, actual, strict=True)
        )
    if _is_number(wanted) and _is_number(actual):
        return bool(wanted == actual) or tolerance.permits(wanted, actual)
    if isinstance(wanted, str) and isinstance(actual, Duration | Timestamp):
        wanted = _time(type(actual), wanted)  # in a list of anything no type tells that the text is a time
    if isinstance(wanted, Duration | Timestamp) and type(wanted) is type(actual):
        return tolerance.permits(wanted.ns, actual.ns)
    return type(wanted) is type(actual) and bool(wanted == actual)


def _time(kind: type[Duration | Timestamp], text: str) -> object:
    """The time that a text stands for; the text where it stands for none."""
    try:
        return literal_value(DURATION if kind is Duration else TIMESTAMP, text)
    except BadLiteral:
        return text


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
