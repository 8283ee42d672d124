"""Rollouts: kinds that there are, and steps that go forward."""

import re
from collections.abc import Iterator

from koordpolicy.diagnostics import Note, Severity, Span
from koordpolicy.graph.meaning.constants import constants_of
from koordpolicy.graph.meaning.names import report_unknown
from koordpolicy.graph.rules import DecisionKey, Rule
from koordpolicy.graph.state import State
from koordpolicy.language.kinds import KINDS
from koordpolicy.language.kinds.rollout import Canary, RolloutSpec, Shadow

_SHARE = re.compile(r"steps\[(?P<step>[^\]]*)\]\.canary\.share")


def rollouts(state: State) -> None:
    """KP307 for kinds that do not exist, KP706 for steps that lead nowhere, KP413 for two rollouts of one bundle."""
    asked = [name for name, kind in KINDS.items() if kind.components]
    for unit in state.units:
        if isinstance(unit.spec, RolloutSpec):
            for at, name in enumerate(unit.spec.kinds):
                if name not in asked:
                    place = unit.document.positions.value(("spec", "kinds", at))
                    report_unknown(state, place, f"there is no kind `{name}` with decisions", name, asked)
    _shares(state)
    if not state.found.has_errors:
        _idle(state)
        _together(state)


def _idle(state: State) -> None:
    """Steps by which nothing goes ahead and nothing is compared, before anything has."""
    for step in _steps(state):
        at = f"steps[{step}]"
        shadow, canary = _said(state, step)
        share, sample = _percent(state, f"{at}.canary.share"), _percent(state, f"{at}.shadow.sample")
        selects = canary is not None and (canary.nodes is not None or canary.pods is not None)
        if canary is not None and shadow is None and _is_of_others(state, canary):
            what = "pods" if canary.nodes is not None else "nodes"
            problem, help = f"lets no {what} go ahead", f"select `{what}`, or give a share alone"
            place = _place(state, step)
            state.found.add(
                "KP706", place, f"the step `{step}` {problem}", help=help, severity=Severity.WARNING
            )
            continue
        if canary is not None and (selects or share is None or share[1] > 0):
            return  # some go ahead, and what follows may be to wait for how they do
        if canary is not None and share is not None:
            problem, help, place = "lets no node go ahead", "give it a share above 0%", share[0].span
        elif shadow is None:
            problem, help, place = "does nothing but wait", "say `shadow` or `canary`", _place(state, step)
        elif sample is not None and sample[1] <= 0:
            problem, help, place = "compares no decision", "give it a sample above 0%", sample[0].span
        else:
            continue
        state.found.add(
            "KP706", place, f"the step `{step}` {problem}", help=help, severity=Severity.WARNING
        )  # fmt: skip


def _is_of_others(state: State, canary: Canary) -> bool:
    """Whether a canary selects nodes alone where all that goes by steps is how pods are placed, or the other way round."""
    specs = [unit.spec for unit in state.units if isinstance(unit.spec, RolloutSpec)]
    kinds = {kind for spec in specs for kind in spec.kinds}
    if not kinds or any(not spec.kinds for spec in specs):
        return False
    if canary.pods is None:
        return canary.nodes is not None and kinds == {_PLACING}
    return canary.nodes is None and _PLACING not in kinds


_PLACING = "SchedulingProfile"


def _said(state: State, step: str) -> tuple[Shadow | None, Canary | None]:
    """What the documents together say of a step, the highest layer last."""
    shadow: Shadow | None = None
    canary: Canary | None = None
    for unit in state.units:
        for one in unit.spec.steps if isinstance(unit.spec, RolloutSpec) else ():
            if one.name == step:
                shadow, canary = one.shadow or shadow, one.canary or canary
    return shadow, canary


def _percent(state: State, field: str) -> tuple[Rule, float] | None:
    """A share that is the same whatever the input, where one rule says it."""
    decision = state.decisions.get(DecisionKey("Rollout", "", field))
    if decision is None or len(decision.rules) != 1:
        return None
    found = [(rule, value) for rule, value in constants_of(state, decision) if isinstance(value, float)]
    return found[0] if len(found) == 1 else None


def _place(state: State, step: str) -> Span:
    """Where a step is first named."""
    return next(
        unit.document.positions.value(("spec", "steps", at, "name"))
        for unit in state.units
        if isinstance(unit.spec, RolloutSpec)
        for at, one in enumerate(unit.spec.steps)
        if one.name == step
    )


def _together(state: State) -> None:
    """Several documents with steps of their own: there is one rollout, of all of them one after the other."""
    own = [
        unit
        for unit in state.units
        if isinstance(unit.spec, RolloutSpec) and unit.spec.steps and unit.layer_name == state.own.name
    ]
    for other in own[1:]:
        state.found.add(
            "KP413",
            other.document.span,
            f"`{own[0].id}` and `{other.id}` are one rollout, with the steps of both",
            notes=(Note("the other one", own[0].document.span),),
            help="say all steps in one document; `kinds` says which changes go by them",
            severity=Severity.WARNING,
        )


def _shares(state: State) -> None:
    """Only steps without `nodes` are compared: of different nodes a smaller share may be more."""
    selecting = {
        step.name
        for unit in state.units
        if isinstance(unit.spec, RolloutSpec)
        for step in unit.spec.steps
        if step.canary is not None and (step.canary.nodes is not None or step.canary.pods is not None)
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
