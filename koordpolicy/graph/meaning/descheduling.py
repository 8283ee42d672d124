"""Descheduling profiles: strategies that do nothing, thresholds that make no sense, and what undoes the work of others."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from koordpolicy.diagnostics import Note, Severity
from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.graph.meaning.constants import key_place, values_of
from koordpolicy.graph.meaning.occasions import moves_everybody, parameters_of_none, without_occasion
from koordpolicy.graph.meaning.strategies import (
    PAIRS,
    DeschedulingStrategy,
    may_deviate,
    shares_of,
    strategy_in,
)
from koordpolicy.graph.meaning.undoing import CAPACITY, against_each_other, against_scheduler
from koordpolicy.graph.notation import show
from koordpolicy.graph.rules import DecisionKey, Rule
from koordpolicy.graph.state import State, Unit
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.language.cel.types import PERCENT
from koordpolicy.language.kinds.descheduling import DeschedulingSpec
from koordpolicy.model.protocol import GPU_CORE, NVIDIA_GPU

_STATE_PARAMETERS: Final = ("podLifeTimeStates", "restartStates", "failedReasons")
_STATES: Final = [
    "Pending",
    "Running",
    "Succeeded",
    "Failed",
    "Unknown",
    "Evicted",
    "NodeLost",
    "NodeAffinity",
    "NodeShutdown",
    "Terminated",
    "Shutdown",
    "UnexpectedAdmissionError",
    "Preempting",
    "DeadlineExceeded",
    "OutOfcpu",
    "OutOfmemory",
    "OutOfpods",
    "PodInitializing",
    "ContainerCreating",
    "CrashLoopBackOff",
    "ImagePullBackOff",
    "ErrImagePull",
    "ErrImageNeverPull",
    "ImageInspectError",
    "InvalidImageName",
    "RegistryUnavailable",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "StartError",
    "ContainerCannotRun",
    "ContainerStatusUnknown",
    "OOMKilled",
    "Error",
    "Completed",
]
"""Phases of pods and usual reasons."""


def descheduling(state: State) -> None:
    """KP311 and KP418 for strategies without effect, KP307 and KP407 for their thresholds, KP417 for those that undo what others
    do, KP421 for nodes that are confused, KP422 for those that move everybody.
    """
    units: dict[str, list[Unit]] = {}
    for unit in state.units:
        if isinstance(unit.spec, DeschedulingSpec):
            units.setdefault(unit.target, []).append(unit)
    every: list[DeschedulingStrategy] = []
    for target, own in units.items():
        if not any(unit.layer_name == state.own.name for unit in own):
            continue
        _states(state, target)
        strategies = list(_strategies(state, target, own))
        every += strategies
        parameters_of_none(state, target, strategies)
        for strategy in strategies:
            if strategy.own:
                _without_effect(strategy)
                without_occasion(strategy)
                _of_what_is_left(strategy)
                moves_everybody(strategy)
                _thresholds(strategy)
    active = [one for one in every if one.enabled and one.decision("candidates") is not None]
    for strategy in active:
        against_scheduler(strategy)
    against_each_other(state, active)


def _strategies(state: State, target: str, units: Sequence[Unit]) -> Iterator[DeschedulingStrategy]:
    names = dict.fromkeys(
        one.name for unit in units if isinstance(unit.spec, DeschedulingSpec) for one in unit.spec.strategies
    )
    rules: dict[str, list[Rule]] = {name: [] for name in names}
    for key, decision in state.decisions.items():
        name = strategy_in(key.field) if key.target == target else None
        if name in rules:
            rules[name] += [rule for rule in decision.rules if rule.layer == state.own.name]
    for name, own in rules.items():
        yield DeschedulingStrategy(state, target, name, sorted(own, key=lambda rule: rule.span))


def _states(state: State, target: str) -> None:
    """KP307 for phases and reasons of pods that are nearly others; kubelets and runtimes have more of their own."""
    for name in _STATE_PARAMETERS:
        kind, _, subject = target.partition("/")
        decision = state.decisions.get(DecisionKey(kind, subject, f"parameters.{name}"))
        for said in values_of(state, decision) if decision is not None else ():
            value = str(said.value)
            close = None if value in _STATES else nearest(value, _STATES)
            if close is not None and said.rule.layer == state.own.name:
                state.found.add(
                    "KP307",
                    said.span,
                    f"no pod is `{value}`",
                    help=f"did you mean `{close}`?",
                    severity=Severity.WARNING,
                )


def _without_effect(strategy: DeschedulingStrategy) -> None:
    """A load that no plugin looks at, or fields of a strategy that is off."""
    state, first = strategy.state, strategy.own[0]
    if strategy.decision("plugin") is None:
        load = next((rule for rule in strategy.own if "].load." in rule.key.field), None)
        if load is not None:
            state.found.add(
                "KP311",
                load.span,
                f"`{strategy.name}` of `{strategy.target}` has a `load`, and no `plugin` that looks at it",
                help="say `plugin: LowNodeLoad`; without it every node that `release` permits gives pods away",
            )
    fields = {rule.key.field.partition("].")[2] for rule in strategy.own}
    if not strategy.enabled and "enabled" not in fields:
        state.found.add(
            "KP418",
            first.span,
            f"the strategy `{strategy.name}` of `{strategy.target}` is off, whatever this says of it",
            help="say `enabled: true` beside it",
            severity=Severity.WARNING,
        )


def _of_what_is_left(strategy: DeschedulingStrategy) -> None:
    """KP421 where which nodes take pods is said of the node that they leave."""
    for rule in strategy.own:
        if not rule.key.field.endswith("].takes"):
            continue
        read = {root for root, _ in facts_of(rule.value)}
        if "node" in read and "target" not in read:
            strategy.state.found.add(
                "KP421",
                rule.span,
                f"`takes` of `{strategy.name}` reads the node that a pod leaves, and never the one that takes it",
                help="`target` is the node that takes a pod: read it; which nodes give pods away, `release` says",
                severity=Severity.WARNING,
            )


def _thresholds(strategy: DeschedulingStrategy) -> None:
    """Names of resources, and which of two thresholds is the higher one."""
    state = strategy.state
    for low_field, high_field in PAIRS:
        low, high = shares_of(strategy, f"load.{low_field}"), shares_of(strategy, f"load.{high_field}")
        for rule, shares in (one for one in (low, high) if one is not None):
            for name in shares:
                meant = _meant(name)
                if meant is not None and rule.layer == state.own.name:
                    state.found.add(
                        "KP307",
                        key_place(state, rule, name),
                        f"no node has the resource `{name}`",
                        help=meant,
                        severity=Severity.WARNING,
                    )
        if may_deviate(strategy):
            continue
        _one_sided(strategy, (low_field, low), (high_field, high))
        if low is None or high is None:
            continue
        for name in sorted(low[1].keys() & high[1].keys()):
            if low[1][name] > high[1][name]:  # equal ones do no harm
                blamed, other = (low, high) if low[0].layer == state.own.name else (high, low)
                if blamed[0].layer != state.own.name:
                    continue
                state.found.add(
                    "KP407",
                    blamed[0].span,
                    f"of `{name}`, `{low_field}` is {show(PERCENT, low[1][name])}, above `{high_field}`, {show(PERCENT, high[1][name])}",
                    notes=(Note(f"`{other[0].key.field}` is said here", other[0].span),),
                    help="one node would be too full and have room at once, and pods would move in circles",
                )
                break


def _meant(name: str) -> str | None:
    """What to write for a resource whose name is nearly another's, or a word for some; None where it may well be one."""
    if name in CAPACITY:
        return None
    if name.casefold() in ("gpu", "gpus"):
        return (
            f"GPUs are counted as `{GPU_CORE}` or `{NVIDIA_GPU}`, by what pods request: `measure: Requests`"
        )
    close = nearest(name, CAPACITY)
    return None if close is None else f"did you mean `{close}`?"


_Side: TypeAlias = tuple[str, tuple[Rule, Mapping[str, float]] | None]
"""One of two thresholds: its field, and the shares that are said of it with who says them."""


def _one_sided(strategy: DeschedulingStrategy, low: _Side, high: _Side) -> None:
    """KP407 where a resource has a low threshold alone, KP419 where it has a high one alone: see `ThresholdShares.filled`."""
    if strategy.holds("enabled", default=True) is False:
        return
    for (field, said), (other_field, other) in ((low, high), (high, low)):
        if said is None or said[0].layer != strategy.state.own.name:
            continue
        if other is None and strategy.decision(f"load.{other_field}") is not None:
            continue  # it depends
        alone = said[1].keys() - (other[1] if other is not None else {}).keys()
        for name in sorted(one for one in alone if _meant(one) is None):
            if field == low[0]:
                strategy.state.found.add(
                    "KP407",
                    said[0].span,
                    f"`{field}` names `{name}`, and `{other_field}` does not: that counts as 0 %, and every node that uses some gives pods away",
                    help=f"say `{name}` in `load.{other_field}`, too",
                    severity=Severity.WARNING,  # Koordinator takes it so
                )
            else:
                strategy.state.found.add(
                    "KP419",
                    said[0].span,
                    f"`{field}` names `{name}`, and `{other_field}` does not: then no node has too much of it",
                    help=f"say `{name}` in `load.{other_field}`, too",
                    severity=Severity.WARNING,
                )
            break
