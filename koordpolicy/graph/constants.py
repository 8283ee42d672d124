"""Literals of documents as constants of the typed form."""

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.types import Type


def constant(type: Type, value: object) -> ir.Const:
    """A constant with the key by which equal ones are recognised."""
    return ir.Const(type, value=value, key=f"{type}:{value!r}")
