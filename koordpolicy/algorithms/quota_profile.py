"""What a set of nodes offers together, as the root of a quota tree counts it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from koordpolicy.model.amounts import add_to, all_within
from koordpolicy.model.reading import Amounts

_OFFSET: Final = 0xCBF29CE484222325
_PRIME: Final = 0x100000001B3
_MASK: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class TreeTotals:
    """What the nodes offer, and the part of it that no pod can be placed on."""

    total: Amounts
    unschedulable: Amounts


def tree_totals(nodes: Iterable[tuple[Amounts, bool]], ratio: float) -> TreeTotals:
    """The sums over nodes, each with whether it counts as unschedulable, times `ratio`.

    Products are truncated to whole amounts (millicores, units), as doubles come out.
    """
    total: dict[str, int] = {}
    unschedulable: dict[str, int] = {}
    for allocatable, excluded in nodes:
        add_to(total, allocatable)
        if excluded:
            add_to(unschedulable, allocatable)
    return TreeTotals(_scaled(total, ratio), _scaled(unschedulable, ratio))


def fnv64a(text: str) -> int:
    """The 64-bit FNV-1a hash of a text's UTF-8."""
    value = _OFFSET
    for octet in text.encode():
        value = ((value ^ octet) * _PRIME) & _MASK
    return value


def _scaled(amounts: Amounts, ratio: float) -> Amounts:
    if ratio == 1:
        return all_within(amounts)
    return all_within({name: int(number * ratio) for name, number in amounts.items()})
