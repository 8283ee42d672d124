"""Amounts that are hardly meant: millicores written as cores, mebibytes as bytes."""

from typing import Final

from koordpolicy.diagnostics import Severity
from koordpolicy.graph.meaning.constants import constants_of
from koordpolicy.graph.rules import Rule
from koordpolicy.graph.state import State
from koordpolicy.language.cel.types import CPU, MEMORY, PERCENT, Type

_CORES: Final = 1_024
"""No node has more; who writes 4000 means 4000m."""
_LEAST: Final = 1 << 20
"""Bytes. Nothing runs in less; who writes 64 means 64Mi or 64Gi."""


def amounts(state: State) -> None:
    """KP406 for constants of the bundle, where they stand by themselves, that seem to be in another unit."""
    for key, decision in state.decisions.items():
        if decision.type in (CPU, MEMORY, PERCENT):
            own = {rule for rule in decision.rules if rule.layer == state.own.name}
            if not own:
                continue
            for rule, value in constants_of(state, decision):
                if rule in own and isinstance(value, int | float) and _is_odd(decision.type, value):
                    if decision.type == PERCENT and _is_told(state, rule):
                        continue
                    state.found.add(
                        "KP406",
                        rule.span,
                        f"`{key}` is {_in_words(decision.type, value)}",
                        help=_advice(decision.type, value),
                        severity=Severity.WARNING,
                    )


def _is_told(state: State, rule: Rule) -> bool:
    """Whether the number within an expression was found odd already."""
    return any(one.code == "KP209" and rule.span.holds(one.span) for one in state.found)


def _is_odd(kind: Type, value: float) -> bool:
    if kind == PERCENT:
        return 0 < value < 1
    return value > _CORES * 1_000 if kind == CPU else 0 < value < _LEAST


def _in_words(kind: Type, value: float) -> str:
    if kind == PERCENT:
        return f"{value:g} %, less than one in a hundred"
    if kind == CPU:
        return f"{int(value) // 1_000:,} cores, more than a node has"
    return f"{value:,} bytes, less than anything runs in"


def _advice(kind: Type, value: float) -> str:
    if kind == PERCENT:
        return f"write `{round(value * 100, 9):g}%` for the share {value:g}"
    if kind == CPU:
        return f"a number without a unit counts cores: for millicores write `{int(value) // 1_000}m`"
    return f"a number without a unit counts bytes: write `{value}Mi` or `{value}Gi`"
