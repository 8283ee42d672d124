"""Raising the errors that generated code meets."""

from typing import NoReturn

from koordpolicy.language.cel.errors import NoSuchKey, NoSuchOverload, Overflow, Unbound
from koordpolicy.language.cel.values import Optional, Value, key_value, type_name

SHOWN = 60
"""Characters of a key that a message shows."""


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
    value = key_value(key)
    if isinstance(value, (list, tuple, dict, Optional)):  # which may be longer than any message
        shown = f"a {type_name(value)}"
    else:
        shown = repr(value[:SHOWN] if isinstance(value, (str, bytes)) else value)
    return NoSuchKey(f"no such key: {shown[:SHOWN]}")


def refused(operator: str, *operands: Value) -> NoSuchOverload:
    """The error of an operator that does not take these operands."""
    return NoSuchOverload(f"`{operator}` does not take {', '.join(map(type_name, operands))}")
