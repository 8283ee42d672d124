"""Scheduling profiles in which nothing checks room: of their own, or where what does is turned off or replaced."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

from koordpolicy.diagnostics import Note, Severity
from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.graph.analysis.outcome import outcome
from koordpolicy.graph.rules import Decision, DecisionKey, Rule
from koordpolicy.graph.state import State, Unit
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.language.cel.types import BOOL
from koordpolicy.language.kinds.scheduling import SchedulingProfileSpec

_LEFT: Final = ("free", "requested", "nonzeroRequested", "resources.requested", "resources.nonzeroRequested")
"""Facts of a node, and groups of them, that say what pods have left there."""
_WHOLE: Final = ("allocatable", "capacity", "physical", "resources.allocatable", "resources.capacity")
"""Those that say what there is: a filter that compares the node's pods with them checks room, too."""
_HOW_MANY: Final = ".pods"

_TRUE: Final = constant(BOOL, True)
_FALSE: Final = constant(BOOL, False)


def profiles(state: State) -> None:
    """KP408 for a profile where nothing checks room, for all pods or for some; KP307 where another one was meant."""
    units: dict[str, list[Unit]] = {}
    for unit in state.units:  # the lowest layer comes first
        if isinstance(unit.spec, SchedulingProfileSpec):
            units.setdefault(unit.target, []).append(unit)
    wrong = {found.span.file for found in state.found if found.severity is Severity.ERROR}
    checked = {
        target: _checked(state, target)
        for target, own in units.items()
        if not any(unit.document.file in wrong for unit in own)
    }
    for target, room in checked.items():
        comes = outcome(room)
        if comes is None:
            _sometimes(state, target, room)
        elif not comes and _turning(state, target):
            _never(state, target)
        elif not comes:
            others = [units[one][0].subject for one, other in checked.items() if outcome(other) is not False]
            _empty(state, units[target][0], others)


def _empty(state: State, first: Unit, others: list[str]) -> None:
    """Of a profile that has no filter which could check room."""
    place = first.document.positions.value(("spec", "schedulerName"))
    # A document is often called after its profile, so that its name says what a slip was meant to be.
    close = nearest(first.subject, others) or next(
        (one for one in others if one == first.document.name), None
    )
    if close is not None:
        state.found.add(
            "KP307",
            place,
            f"`{first.subject}` begins a profile of its own, where nothing checks whether a node has room",
            help=f"did you mean `{close}`? A profile of its own gets no filters of another",
            severity=Severity.WARNING,
        )
        return
    state.found.add(
        "KP408",
        place,
        f"no filter of the profile `{first.subject}` checks whether a node has room",
        help="add the filter `{name: NodeResourcesFit, plugin: NodeResourcesFit}` and the others that its pods need",
        severity=Severity.WARNING,
    )


def _never(state: State, target: str) -> None:
    """Of a profile whose filters for room are all turned off, or replaced."""
    [rule, *further] = _turning(state, target)
    state.found.add(
        "KP408",
        rule.span,
        f"with this, no filter of the profile `{rule.key.subject}` checks whether a node has room",
        notes=tuple(Note("and with this", other.span) for other in further),
        help="leave `NodeResourcesFit` on, or require what is free by a filter of your own",
        severity=Severity.WARNING,
    )


def _sometimes(state: State, target: str, room: ir.Node) -> None:
    """Of a profile in which nothing checks room for some of the pods, as an example shows."""
    blamed = _turning(state, target)
    if not blamed or state.found.has_errors:
        return
    shown = state.cache.get(("room", target, room), partial(_example, state, room))
    if shown:
        state.found.add(
            "KP408",
            blamed[0].span,
            f"with this, no filter of the profile `{blamed[0].key.subject}` checks for some pods whether a node has room",
            notes=(Note(f"such as: {shown}"), *(Note("and with this", other.span) for other in blamed[1:])),
            help="leave `NodeResourcesFit` on, or require what is free by a filter of your own",
            severity=Severity.WARNING,
        )


def _example(state: State, room: ir.Node) -> str:
    # What is always checked, as in nearly every profile, needs none of this.
    from koordpolicy.graph.proof.examples import failing_input, in_words, texts_named_by  # noqa: PLC0415

    found = failing_input(room, texts_named_by(state.classes.resolver))
    return "" if found is None else in_words(found, room)


def _turning(state: State, target: str) -> list[Rule]:
    """The rules of the bundle that say when filters are in use and what they are, the first in the text first."""
    own = [
        rule
        for key, decision in state.decisions.items()
        if key.target == target
        and key.field.startswith("filters[")
        and key.field.endswith(("].enabled", "].plugin", "].require"))
        and _could_check(state, DecisionKey(key.kind, key.subject, key.field.rpartition(".")[0]))
        for rule in decision.rules
        if rule.layer == state.own.name
    ]
    ranked = sorted(own, key=lambda rule: (not rule.key.field.endswith(".enabled"), rule.span))
    return [
        rule for rule in ranked if not rule.key.field.endswith("].plugin") or not _names_room(state, rule)
    ]


def _could_check(state: State, item: DecisionKey) -> bool:
    """Whether anything that is said of a filter, in whichever layer, would check room."""
    plugin, require = (_of(state, item, field) for field in ("plugin", "require"))
    return any(_names_room(state, rule) for rule in _rules(plugin)) or any(
        _reads_room(rule.value) for rule in _rules(require)
    )


def _names_room(state: State, rule: Rule) -> bool:
    return any(
        isinstance(one, ir.Const) and _is_for_room(state, one.value)
        for one in _leaves(state.resolve_constants(rule.value))
    )


def _checked(state: State, target: str) -> ir.Node:
    """For which pods some filter of a profile checks room, as an expression."""
    items = {
        DecisionKey(key.kind, key.subject, key.field.rpartition("].")[0] + "]")
        for key in state.decisions
        if key.target == target and key.field.startswith("filters[")
    }
    return _any(_item(state, item) for item in sorted(items))


def _item(state: State, item: DecisionKey) -> ir.Node:
    """For which pods one filter checks room."""
    enabled, plugin, require = (_of(state, item, field) for field in ("enabled", "plugin", "require"))
    checks = [] if plugin is None else [_with_room(state, state.expressions.value(plugin))]
    for rule in _rules(require):
        value = state.expressions.resolved(rule.value, rule.key)
        if _reads_room(value) and outcome(value) is None:
            test, _ = state.expressions.test(rule)
            checks.append(_TRUE if test is None else test)
    found = _any(checks)
    if found == _FALSE or not _rules(enabled):
        return found
    assert enabled is not None
    return fold(ir.And(BOOL, (state.expressions.value(enabled), found)))


def _of(state: State, item: DecisionKey, field: str) -> Decision | None:
    return state.decisions.get(DecisionKey(item.kind, item.subject, f"{item.field}.{field}"))


def _rules(decision: Decision | None) -> Sequence[Rule]:
    return () if decision is None else decision.rules


def _with_room(state: State, plugin: ir.Node) -> ir.Node:
    """Whether the name that an expression gives is that of a plugin which checks room."""
    if isinstance(plugin, ir.Cond):
        then, otherwise = _with_room(state, plugin.then), _with_room(state, plugin.otherwise)
        return fold(ir.Cond(BOOL, plugin.condition, then, otherwise))
    return constant(BOOL, isinstance(plugin, ir.Const) and _is_for_room(state, plugin.value))


def _leaves(node: ir.Node) -> Iterator[ir.Node]:
    if isinstance(node, ir.Cond):
        yield from _leaves(node.then)
        yield from _leaves(node.otherwise)
    else:
        yield node


def _is_for_room(state: State, name: object) -> bool:
    plugin = state.plugins.get(str(name))
    return plugin is not None and plugin.checks_room


def _reads_room(value: ir.Node) -> bool:
    """Whether an expression reads what pods have left on a node; how many they are says nothing of it."""
    read = {path for record, path in facts_of(value) if record == "node" and not path.endswith(_HOW_MANY)} | {
        path for record, path in facts_of(value) if (record, path) == ("node", "pods")
    }
    return _is_among(read, _LEFT) or ("pods" in read and _is_among(read, _WHOLE))


def _is_among(paths: Iterable[str], groups: Sequence[str]) -> bool:
    return any(path == group or path.startswith(f"{group}.") for path in paths for group in groups)


def _any(checks: Iterable[ir.Node]) -> ir.Node:
    """Any of these conditions: false of none."""
    found = tuple(dict.fromkeys(one for one in checks if one != _FALSE))
    return (
        _TRUE
        if _TRUE in found
        else found[0]
        if len(found) == 1
        else fold(ir.Or(BOOL, found))
        if found
        else _FALSE
    )
