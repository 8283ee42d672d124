"""Example inputs: facts on which given conditions hold, found by analysis and proved by running."""

from collections.abc import Callable, Mapping
from typing import Any

from koordpolicy.graph.analysis.region import Box, FactKey
from koordpolicy.graph.notation import show as show_value
from koordpolicy.graph.reads import fact_type

Facts = dict[str, dict[str, Any]]
Filler = Callable[[str, str], object]
"""Gives a harmless value for a fact that no condition pins down: (root, path) -> value."""


def example(box: Box, reads: frozenset[tuple[str, str]], fill: Filler) -> Facts | None:
    """Facts inside the box, with everything in `reads` present; None when a domain has no sample.

    `reads` are the (root, path) pairs that the conditions look at, so that an opaque condition has
    something to look at too.
    """
    facts: Facts = {}
    for root, path in sorted(reads):
        facts.setdefault(root, {})[path] = fill(root, path)
    for place, domain in box.domains.items():
        record = facts.setdefault(place.root, {})
        if domain.present is False:
            _remove(record, place)
            continue
        whole = not isinstance(record.get(place.path), float)
        value = domain.sample(whole)
        if value is None:
            return None
        if place.key is not None:
            entries = dict(record.get(place.path) or {})
            entries[place.key] = _text(value, domain.choices is None)
            record[place.path] = entries
        elif domain.choices is not None or _is_number(record.get(place.path)):
            record[place.path] = value
        elif isinstance(record[place.path], str | bool) and record[place.path] in domain.excluded:
            record[place.path] = _other(record[place.path])
    return facts


def _remove(record: dict[str, Any], place: FactKey) -> None:
    if place.key is None:
        record.pop(place.path, None)
    else:
        record[place.path] = {k: v for k, v in (record.get(place.path) or {}).items() if k != place.key}


def _text(value: object, free: bool) -> object:
    """A label's value: any text will do when the domain leaves it free."""
    return "any" if free and not isinstance(value, str) else value


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _other(value: object) -> object:
    return (not value) if isinstance(value, bool) else f"{value}other"


def show(facts: Mapping[str, Mapping[str, Any]]) -> str:
    """The example in one line, as policies write values: `node.capacity.cpu = 8, node.labels[pool] = a`."""
    parts = []
    for root, record in sorted(facts.items()):
        for path, value in sorted(record.items()):
            name = f"{root}.{path}"
            if isinstance(value, dict):
                parts += [f"{name}[{key}] = {item}" for key, item in sorted(value.items())]
            elif value not in (None, [], ""):
                parts.append(f"{name} = {show_value(fact_type(name), value)}")
    return ", ".join(parts) or "any input"
