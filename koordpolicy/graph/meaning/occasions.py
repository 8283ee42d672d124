"""Strategies that are on and never find anything to do, or always everything, whatever nodes and pods are like, and parameters of
such as are off.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from koordpolicy.diagnostics import Note, Severity
from koordpolicy.graph.decide import parameter_key
from koordpolicy.graph.meaning.constants import constants_of, reached_constants
from koordpolicy.graph.meaning.strategies import PAIRS, DeschedulingStrategy, strategy_in
from koordpolicy.graph.rules import Rule
from koordpolicy.graph.state import State
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.values import Duration

_BY_LOAD: Final = "LowNodeLoad"
_ASKED: Final = ("candidates", "release")
"""What has to be true of a pod, and of its node, for it to go."""
_NUMBERS: Final = ("most", "total")
"""What says how many go in a round."""
_EVERYBODY: Final = MappingProxyType({"takes": True, "candidates": False, "release": True})
"""What says who goes, and whether it is true where nothing is said."""


def without_occasion(strategy: DeschedulingStrategy) -> None:
    """KP418 for a strategy that is on and has no thresholds, may move no pod, or whose conditions are never true."""
    if not strategy.enabled or strategy.state.found.has_errors:
        return
    found = _why(strategy)
    if found is None:
        return
    why, notes, advice = found
    place = next((rule for rule in strategy.own if rule.key.field.endswith("].enabled")), strategy.own[0])
    strategy.state.found.add(
        "KP418",
        place.span,
        f"the strategy `{strategy.name}` of `{strategy.target}` is on and moves nobody: {why}",
        notes=notes,
        help=advice,
        severity=Severity.WARNING,
    )


def moves_everybody(strategy: DeschedulingStrategy) -> None:
    """KP422 for a strategy by which all pods leave all nodes in each round: nothing of pods, nodes or numbers holds any of them.

    `release` is true where nothing is said: it is no mistake by itself where `candidates`, or the scheduler, says who goes.
    """
    if strategy.state.found.has_errors or not strategy.enabled or strategy.decision("plugin") is not None:
        return
    if any(strategy.holds(field, default=False) for field in ("dryRun", "ended")):
        return
    if any(strategy.decision(field) is not None for field in _NUMBERS):
        return
    asks_scheduler = strategy.value("relocating.better")
    if not (isinstance(asks_scheduler, ir.Const) and asks_scheduler.value is False):
        return
    if not all(isinstance(one, ir.Const) and one.value is True for one in strategy.seen):
        return
    if not all(strategy.always(field, default=unsaid) for field, unsaid in _EVERYBODY.items()):
        return
    fields = [f"].{field}" for field in reversed(_EVERYBODY)]
    place = next(
        (rule for end in fields for rule in strategy.own if rule.key.field.endswith(end)), strategy.own[0]
    )
    strategy.state.found.add(
        "KP422",
        place.span,
        f"by the strategy `{strategy.name}` of `{strategy.target}` every pod that may be moved leaves its node, in each round",
        help="say in `candidates` which pods go, or in `release` which nodes give some away; with `relocating: {better: true}` only those"
        " go that end better elsewhere",
        severity=Severity.WARNING,
    )


def parameters_of_none(state: State, target: str, strategies: Sequence[DeschedulingStrategy]) -> None:
    """KP418 for parameters that the bundle sets and that only strategies read which are off."""
    own = [(key, one) for key, one in state.decisions.items() if key.target == target]
    by_name = {strategy.name: strategy for strategy in strategies}
    for key, decision in own:
        said = [rule for rule in decision.rules if rule.layer == state.own.name]
        name = key.field.removeprefix("parameters.")
        if not said or name == key.field:
            continue
        readers = {
            strategy_in(one.field) or ""
            for one, other in own
            if any(name in rule.parameters for rule in other.rules)
        }
        off = [
            by_name[reader] for reader in sorted(readers) if reader in by_name and not by_name[reader].enabled
        ]
        # What says something of such a strategy beside it is told so there.
        if not off or len(off) < len(readers) or any(strategy.own for strategy in off):
            continue
        names = " and ".join(f"`{strategy.name}`" for strategy in off)
        state.found.add(
            "KP418",
            said[0].span,
            f"`{name}` of `{target}` is read by {names} alone, which {'is' if len(off) == 1 else 'are'} off",
            help=f"say it is on: `strategies: [{{name: {off[0].name}, enabled: true}}]`",
            severity=Severity.WARNING,
        )


_Found = tuple[str, tuple[Note, ...], str]


def _why(strategy: DeschedulingStrategy) -> _Found | None:
    """Why it never moves a pod, with what to do about it; None where it may."""
    if strategy.decision("candidates") is None:
        return (
            "no `candidates` says which pods may go",
            (),
            "say `candidates: true`, or an expression over `pod`",
        )
    plugin = strategy.said("plugin")
    thresholds = [f"load.{field}" for pair in PAIRS for field in pair]
    by_load = plugin is not None and plugin[1] == _BY_LOAD
    if by_load and not any(_says_some(strategy, field) for field in thresholds):
        advice = (
            "say from where nodes give pods away and up to where they take some, such as "
            "`load: {high: {cpu: 65%}, low: {cpu: 45%}}`"
        )
        return "it has no thresholds, so no node has ever too much", (), advice
    total = strategy.said("total")
    if total is not None and total[1] == 0:
        notes = (Note("`total` is said here", total[0].span),)
        return "its `total` is 0", notes, "say how many pods may go in a round: `total: 5`"
    for field in _ASKED:
        if field == "release" and plugin is not None:
            continue  # the plugin says which nodes give pods away
        value, decision = strategy.value(field), strategy.decision(field)
        if decision is None or value is None or not _is_never(value):
            continue
        said = decision.rules[0]
        notes = (Note(f"`{field}` is said here", said.span),)
        unset = _unset(strategy, decision.rules)
        if not unset:
            return f"its `{field}` is never true", notes, f"say another `{field}`"
        names = " or ".join(f"the parameter `{name}`" for name in unset)
        name, example = next(iter(unset.items()))
        return (
            f"its `{field}` is never true while nothing is said of {names}",
            notes,
            f"say it, such as `parameters: {{{name}: {{value: {example}}}}}` beside `strategies`",
        )
    return None


def _is_never(condition: ir.Node) -> bool:
    """Whether a condition is false of everything: by itself, or as it asks whether something is among nothing."""
    match condition:
        case ir.Const(value=value):
            return value is False
        case ir.And(args=args):
            return any(map(_is_never, args))
        case ir.Call(overload=overload, args=(_, ir.Const(value=list() | tuple() | dict() as held))):
            return overload.startswith("@in") and not held
    return False


def _says_some(strategy: DeschedulingStrategy, field: str) -> bool:
    """Whether thresholds are said; so, too, where that depends on the node."""
    decision = strategy.decision(field)
    if decision is None:
        return False
    said = list(constants_of(strategy.state, decision))
    return len(said) < len(decision.rules) or any(shares != {} for _, shares in said)


def _unset(strategy: DeschedulingStrategy, rules: Sequence[Rule]) -> dict[str, str]:
    """The parameters that rules refer to and that are empty or 0, with an example of what to say of each."""
    decisions = strategy.state.decisions
    found = {}
    for rule in rules:
        for name in sorted(rule.parameters):
            decision = decisions.get(parameter_key(rule.key, name))
            said = [] if decision is None else reached_constants(strategy.state, decision)
            if said and said[0][1] is not False and not _is_some(said[0][1]):
                found[name] = _example(said[0][1])
    return found


def _is_some(value: object) -> bool:
    return value.ns != 0 if isinstance(value, Duration) else bool(value)


def _example(value: object) -> str:
    match value:
        case Duration():
            return "168h"
        case Mapping():
            return "{cpu: 20%}"
        case list() | tuple():
            return "[...]"
    return "5"
