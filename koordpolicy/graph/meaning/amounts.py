"""Amounts that are hardly meant: millicores written as cores, mebibytes as bytes."""

from typing import Final

from koordpolicy.diagnostics import Severity
from koordpolicy.graph.meaning.constants import constants_of
from koordpolicy.graph.state import State
from koordpolicy.language.cel.types import CPU, MEMORY, Type

_CORES: Final = 1_024
"""No node has more; who writes 4000 means 4000m."""
_LEAST: Final = 1 << 20
"""Bytes. Nothing runs in less; who writes 64 means 64Mi or 64Gi."""


def amounts(state: State) -> None:
    """KP406 for constants of the bundle, where they stand by themselves, that seem to be in another unit."""
    for key, decision in state.decisions.items():
        if decision.type in (CPU, MEMORY):
            own = {rule for rule in decision.rules if rule.layer == state.own.name}
            for rule, value in constants_of(state, decision):
                if rule in own and isinstance(value, int) and _is_odd(decision.type, value):
                    state.found.add(
                        "KP406",
                        rule.span,
                        f"`{key}` is {_in_words(decision.type, value)}",
                        help=_advice(decision.type, value),
                        severity=Severity.WARNING,
                    )


def _is_odd(kind: Type, value: int) -> bool:
    return value > _CORES * 1_000 if kind == CPU else 0 < value < _LEAST


def _in_words(kind: Type, value: int) -> str:
    if kind == CPU:
        return f"{value // 1_000:,} cores, more than a node has"
    return f"{value:,} bytes, less than anything runs in"


def _advice(kind: Type, value: int) -> str:
    if kind == CPU:
        return f"a number without a unit counts cores: for millicores write `{value // 1_000}m`"
    return f"a number without a unit counts bytes: write `{value}Mi` or `{value}Gi`"
