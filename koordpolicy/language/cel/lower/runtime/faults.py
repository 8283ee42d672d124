"""Raising the errors that generated code meets, and counting its steps."""

from collections.abc import Sized
from typing import NoReturn, TypeVar

from koordpolicy.language.cel.errors import NoSuchKey, NoSuchOverload, Overflow, Unbound
from koordpolicy.language.cel.library.limits import MAX_STEPS, too_many_steps
from koordpolicy.language.cel.values import Value, key_value, type_name

SHOWN = 60
"""Characters of a key that a message shows."""

_Sized = TypeVar("_Sized", bound=Sized)


def overflow() -> NoReturn:
    """Raise the error of an integer result outside its range."""
    raise Overflow("the result does not fit its integer type")


def unbound(name: str) -> NoReturn:
    """Raise the error of a name that nothing declares."""
    raise Unbound(f"undeclared reference to `{name}`")


def no_overload(message: str) -> NoReturn:
    """Raise the error of a call that no signature takes."""
    raise NoSuchOverload(message)


def no_such_key(key: object) -> NoSuchKey:
    """The error of a map without `key`."""
    shown = repr(key_value(key))
    return NoSuchKey(f"no such key: {shown[:SHOWN]}")


def steps_exceeded() -> NoReturn:
    """Raise the error of comprehensions that visit too many elements."""
    raise too_many_steps()


def spend(steps: list[int], value: _Sized) -> _Sized:
    """Count a list or text that a loop makes as steps: elements, or eight characters each."""
    steps[0] += len(value) if isinstance(value, list) else len(value) // 8 + 1
    if steps[0] > MAX_STEPS:
        steps_exceeded()
    return value


def refused(operator: str, *operands: Value) -> NoSuchOverload:
    """The error of an operator that does not take these operands."""
    return NoSuchOverload(f"`{operator}` does not take {', '.join(map(type_name, operands))}")
