"""Rollouts: kinds that there are, and steps that go forward."""

import re
from collections.abc import Iterator

from koordpolicy.diagnostics import Note, Severity
from koordpolicy.graph.meaning.constants import constants_of
from koordpolicy.graph.meaning.names import report_unknown
from koordpolicy.graph.rules import Rule
from koordpolicy.graph.state import State
from koordpolicy.language.kinds import KINDS
from koordpolicy.language.kinds.rollout import RolloutSpec

_SHARE = re.compile(r"steps\[(?P<step>[^\]]*)\]\.canary\.share")


def rollouts(state: State) -> None:
    """KP307 for kinds that do not exist, KP706 for a step whose share of nodes an earlier one exceeds."""
    asked = [name for name, kind in KINDS.items() if kind.components]
    for unit in state.units:
        if isinstance(unit.spec, RolloutSpec):
            for at, name in enumerate(unit.spec.kinds):
                if name not in asked:
                    place = unit.document.positions.value(("spec", "kinds", at))
                    report_unknown(state, place, f"there is no kind `{name}` with decisions", name, asked)
    _shares(state)


def _shares(state: State) -> None:
    """Only steps without `nodes` are compared: of different nodes a smaller share may be more."""
    selecting = {
        step.name
        for unit in state.units
        if isinstance(unit.spec, RolloutSpec)
        for step in unit.spec.steps
        if step.canary is not None and step.canary.nodes is not None
    }
    known = {step: found for step, found in _constant_shares(state) if step not in selecting}
    before: tuple[str, Rule, float] | None = None
    for step in _steps(state):
        if step not in known:
            continue
        rule, share = known[step]
        if before is not None and share < before[2]:
            state.found.add(
                "KP706",
                rule.span,
                f"the step `{step}` lets no further node go ahead than `{before[0]}` before it",
                notes=(Note(f"the share of `{before[0]}`", before[1].span),),
                help="let the share of nodes grow from step to step",
                severity=Severity.WARNING,
            )
        if before is None or share > before[2]:
            before = (step, rule, share)


def _steps(state: State) -> list[str]:
    """The steps in the order in which documents introduce them, the lowest layer first."""
    order: dict[str, None] = {}
    for unit in state.units:
        if isinstance(unit.spec, RolloutSpec):
            order.update(dict.fromkeys(step.name for step in unit.spec.steps))
    return list(order)


def _constant_shares(state: State) -> Iterator[tuple[str, tuple[Rule, float]]]:
    for key, decision in state.decisions.items():
        found = _SHARE.fullmatch(key.field) if key.kind == "Rollout" else None
        if found is None or len(decision.rules) != 1:
            continue
        for rule, value in constants_of(state, decision):
            if isinstance(value, float):
                yield found["step"], (rule, value)
