"""Flat records of facts as maps in maps: how other implementations of the language read them."""

from collections.abc import Mapping
from typing import Any

from koordpolicy.language.facts import FACTS


def nested(record: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    """A record as maps in maps; every group is there, so that has() of a fact below it answers.

    Elements of lists of records are nested too.
    """
    tree: dict[str, Any] = {}
    for fact in FACTS.leaves(record):
        *groups, last = fact.path.split(".")
        inner = tree
        for group in groups:
            inner = inner.setdefault(group, {})
        if fact.path in facts:
            value = facts[fact.path]
            element = fact.type.params[0].record if fact.type.name == "list" else None
            inner[last] = value if element is None else [nested(element, item) for item in value]
    return tree
