"""Flat records of facts as maps in maps: how other implementations of the language read them."""

from collections.abc import Mapping
from typing import Any

from koordpolicy.language.cel.types import DURATION, TIMESTAMP, Type
from koordpolicy.language.facts import FACTS


def nested(record: str, facts: Mapping[str, Any], *, times: bool = False) -> dict[str, Any]:
    """A record as maps in maps; every group is there, so that has() of a fact below it answers.

    Elements of lists of records are nested too. Points in time and durations are left out unless `times` wants them.
    """
    tree: dict[str, Any] = {}
    for fact in FACTS.leaves(record):
        *groups, last = fact.path.split(".")
        inner = tree
        for group in groups:
            inner = inner.setdefault(group, {})
        if fact.path in facts and (times or fact.type not in (DURATION, TIMESTAMP)):
            inner[last] = unfolded(fact.type, facts[fact.path], times=times)
    return tree


def unfolded(type: Type, value: Any, *, times: bool = False) -> Any:
    """A value of a type with every record in it as maps in maps; anything else as it is."""
    if type.record is not None and isinstance(value, Mapping):
        return nested(type.record, value, times=times)
    if type.name == "list" and isinstance(value, list | tuple):
        return [unfolded(type.params[0], item, times=times) for item in value]
    return value
