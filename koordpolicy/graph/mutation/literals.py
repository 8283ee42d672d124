"""What may go wrong in a value that is no expression: thresholds, weights, lists, words."""

from collections.abc import Iterator
from typing import Any

from koordpolicy.graph.mutation.domains import ValueDomains
from koordpolicy.graph.mutation.operators import Operator
from koordpolicy.language.cel.types import DURATION, STRING, Type
from koordpolicy.language.documents.document import Path
from koordpolicy.language.kinds import Slot

_MOST_ENTRIES = 6

Other = tuple[Operator, Path, object]
"""Another value at a path below the literal; an empty path is the literal itself."""


def others(slot: Slot, literal: Any, domains: ValueDomains, name: str) -> Iterator[Other]:
    """The values that might stand in the place of a literal; `name` is that of the field or parameter."""
    if isinstance(literal, list):
        yield from _list(slot, literal, domains, name)
    elif isinstance(literal, dict):
        yield from _map(slot, literal, domains, name)
    else:
        yield from ((operator, (), value) for operator, value in _scalars(slot, literal, domains, name))


def _scalars(slot: Slot, literal: Any, domains: ValueDomains, name: str) -> Iterator[tuple[Operator, object]]:
    if isinstance(literal, bool):
        yield Operator.TRUTH, not literal
    elif isinstance(literal, int | float):
        yield from ((Operator.NUMBER, n) for n in domains.numbers(literal, slot.minimum, slot.maximum))
    elif isinstance(literal, str):
        amounts = (
            ()
            if _holds(slot.type) == STRING
            else domains.amounts(literal, time=_holds(slot.type) == DURATION)
        )
        found = list(amounts)
        yield from found
        if slot.choices:
            yield Operator.TEXT, slot.choices[(slot.choices.index(literal) + 1) % len(slot.choices)]
        elif not found and not set(literal) & set(" \n"):
            yield from ((Operator.TEXT, text) for text in domains.others(name, literal))


def _holds(type: Type) -> Type:
    """The type of a scalar in a value of that type."""
    return _holds(type.params[-1]) if type.params else type


def _list(slot: Slot, literal: list[Any], domains: ValueDomains, name: str) -> Iterator[Other]:
    for at in range(min(len(literal), _MOST_ENTRIES)):
        yield Operator.ENTRY, (), literal[:at] + literal[at + 1 :]
    if len(literal) > 1 and literal[0] != literal[-1]:
        yield Operator.ORDER, (), literal[::-1]


def _map(slot: Slot, literal: dict[str, Any], domains: ValueDomains, name: str) -> Iterator[Other]:
    for key in list(literal)[:_MOST_ENTRIES]:
        yield Operator.ENTRY, (), {one: value for one, value in literal.items() if one != key}
        for operator, path, value in others(slot, literal[key], domains, key):
            yield operator, (key, *path), value
