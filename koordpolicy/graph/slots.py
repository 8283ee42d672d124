"""From a kind's slots to decisions: their roots in one order, their defaults as constants."""

from collections.abc import Mapping
from functools import cache, lru_cache
from typing import Any

from koordpolicy.graph.rules import Decision, DecisionKey, Rule
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.types import Type
from koordpolicy.language.cel.values import NONE
from koordpolicy.language.facts import ROOTS
from koordpolicy.language.kinds import KINDS, Kind, Slot, literal_value, slots


@cache
def nameable_roots(kind: Kind) -> frozenset[str]:
    """The roots that expressions of a kind may name in one slot or another; which slot, `roots_of` says."""
    own = (found.slot.roots for found in slots(kind.spec) if found.slot.roots is not None)
    return kind.roots.union(*own)


def roots_of(kind: Kind, slot: Slot) -> tuple[str, ...]:
    """The roots of a slot's expressions, in the order in which the language declares roots."""
    return _ordered(kind.roots if slot.roots is None else slot.roots)


@cache
def _ordered(named: frozenset[str]) -> tuple[str, ...]:
    return tuple(name for name in ROOTS if name in named)


def default_of(slot: Slot) -> ir.Const:
    """What holds where no rule says anything; null where the slot has no default."""
    if slot.type.name == "optional_type":
        return constant(slot.type, NONE)
    if slot.default is None:
        return ir.Const(slot.type, value=None, key="null")
    if isinstance(slot.default, str | bool | int | float):
        return _read(slot.type, slot.default)
    return constant(slot.type, literal_value(slot.type, slot.default))


@lru_cache(maxsize=1024, typed=True)
def _read(kind: Type, written: str | float) -> ir.Const:
    return constant(kind, literal_value(kind, written))


@cache
def defaults_of(kind: str) -> Mapping[str, Any]:
    """What holds of each field of a kind where no rule says anything; of those that hold keys, nothing."""
    return {
        found.field: default_of(found.slot).value
        for found in slots(KINDS[kind].spec)
        if "*" not in found.field
    }


def decision_of(key: DecisionKey, kind: Kind, slot: Slot, rules: tuple[Rule, ...] = ()) -> Decision:
    """The decision that a slot makes; `rules` come sorted, the winning rank first."""
    return Decision(
        key=key,
        type=slot.type,
        combine=slot.combine,
        components=kind.components if slot.components is None else slot.components,
        roots=roots_of(kind, slot),
        meaning=slot.meaning,
        default=default_of(slot),
        rules=rules,
    )
