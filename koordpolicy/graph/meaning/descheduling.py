"""Descheduling profiles: strategies that do nothing, thresholds that make no sense, and what undoes the work of others."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from koordpolicy.diagnostics import Note, Severity
from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.graph.decide import Expressions
from koordpolicy.graph.meaning.constants import reached_constants, values_of
from koordpolicy.graph.notation import show
from koordpolicy.graph.rules import Decision, DecisionKey, Rule
from koordpolicy.graph.state import State, Unit
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.types import PERCENT
from koordpolicy.language.kinds.descheduling import DeschedulingSpec

_KIND: Final = "Descheduling"
_PAIRS: Final = (("low", "high"), ("prodLow", "prodHigh"))
_LIMITS: Final = (("high", "usageThresholds"), ("prodHigh", "prodUsageThresholds"))
"""Where a strategy begins to empty nodes, and the scheduler's parameter up to which it fills them."""
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
_COUNTED: Final = ("cpu", "memory")
"""What every report of a node's use has."""
_NONE: Final = 0.0
_FULL: Final = 100.0


@dataclass(frozen=True, slots=True)
class _Strategy:
    """One strategy of a profile. `own` are its rules that the bundle itself says, in the order of the text."""

    state: State
    target: str
    name: str
    own: Sequence[Rule]

    def decision(self, field: str) -> Decision | None:
        """What is said of one of its fields."""
        kind, _, subject = self.target.partition("/")
        return self.state.decisions.get(DecisionKey(kind, subject, f"strategies[{self.name}].{field}"))

    def said(self, field: str) -> tuple[Rule, object] | None:
        """The constant that holds for a field, and who says it; None where none does, or it depends."""
        decision = self.decision(field)
        found = [] if decision is None else reached_constants(self.state, decision)
        return found[0] if found else None

    def holds(self, field: str, *, default: bool) -> bool:
        """Whether a field is true; so, too, where that depends."""
        if self.decision(field) is None:
            return default
        said = self.said(field)
        return said is None or said[1] is True

    @property
    def enabled(self) -> bool:
        """Whether it may be in use."""
        return self.holds("enabled", default=True)


def descheduling(state: State) -> None:
    """KP311 and KP418 for strategies without effect, KP307 and KP407 for their thresholds, KP417 for those that undo what others do."""
    units: dict[str, list[Unit]] = {}
    for unit in state.units:
        if isinstance(unit.spec, DeschedulingSpec):
            units.setdefault(unit.target, []).append(unit)
    every: list[_Strategy] = []
    for target, own in units.items():
        if not any(unit.layer_name == state.own.name for unit in own):
            continue
        _states(state, target)
        for strategy in _strategies(state, target, own):
            every.append(strategy)
            if strategy.own:
                _without_effect(strategy)
                _thresholds(strategy)
    active = [one for one in every if one.enabled and one.decision("candidates") is not None]
    for strategy in active:
        _against_scheduler(strategy)
    _against_each_other(state, active)


def _strategies(state: State, target: str, units: Sequence[Unit]) -> Iterator[_Strategy]:
    names = dict.fromkeys(
        one.name for unit in units if isinstance(unit.spec, DeschedulingSpec) for one in unit.spec.strategies
    )
    rules: dict[str, list[Rule]] = {name: [] for name in names}
    for key, decision in state.decisions.items():
        if key.target == target and key.field.startswith("strategies["):
            name = key.field.removeprefix("strategies[").partition("]")[0]
            if name in rules:
                rules[name] += [rule for rule in decision.rules if rule.layer == state.own.name]
    for name, own in rules.items():
        yield _Strategy(state, target, name, sorted(own, key=lambda rule: rule.span))


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


def _without_effect(strategy: _Strategy) -> None:
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


def _thresholds(strategy: _Strategy) -> None:
    """Names of resources, and which of two thresholds is the higher one."""
    state = strategy.state
    for low_field, high_field in _PAIRS:
        low, high = _shares(strategy, f"load.{low_field}"), _shares(strategy, f"load.{high_field}")
        for rule, shares in (one for one in (low, high) if one is not None):
            for name in shares:
                close = _meant(name)
                if close is not None and rule.layer == state.own.name:
                    state.found.add(
                        "KP307",
                        rule.span,
                        f"no node has the resource `{name}`",
                        help=f"did you mean `{close}`?",
                        severity=Severity.WARNING,
                    )
        if _may_deviate(strategy):
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
    """What a resource was most likely called, whose name is nearly another's."""
    return None if name in _CAPACITY else nearest(name, _CAPACITY)


_Side: TypeAlias = tuple[str, tuple[Rule, Mapping[str, float]] | None]
"""One of two thresholds: its field, and the shares that are said of it with who says them."""


def _one_sided(strategy: _Strategy, low: _Side, high: _Side) -> None:
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


def _shares(strategy: _Strategy, field: str) -> tuple[Rule, Mapping[str, float]] | None:
    said = strategy.said(field)
    return (said[0], said[1]) if said is not None and isinstance(said[1], Mapping) else None


def _may_deviate(strategy: _Strategy) -> bool:
    return strategy.holds("load.deviation", default=False)


def _against_scheduler(strategy: _Strategy) -> None:
    """KP417 where a scheduler fills nodes further than the strategy leaves them."""
    state = strategy.state
    if strategy.decision("plugin") is None or _may_deviate(strategy) or not _by_usage(strategy):
        return
    for field, parameter in _LIMITS:
        high = _shares(strategy, f"load.{field}")
        if high is None:
            continue
        for key, decision in state.decisions.items():
            if key.kind != "SchedulingProfile" or key.field != f"parameters.{parameter}":
                continue
            found = reached_constants(state, decision)
            if not found or not isinstance(found[0][1], Mapping):
                continue
            filled, limits = found[0][0], found[0][1]
            if parameter != _LIMITS[0][1] and not limits:
                continue  # the limits for all pods hold for these, too
            _compare(strategy, high, filled, limits)


def _by_usage(strategy: _Strategy) -> bool:
    measure = strategy.said("load.measure")
    return strategy.decision("load.measure") is None or (measure is not None and measure[1] == "Usage")


def _compare(
    strategy: _Strategy, high: tuple[Rule, Mapping[str, float]], filled: Rule, limits: Mapping[str, float]
) -> None:
    state, [rule, shares] = strategy.state, high
    for name in sorted(shares):
        limit = limits.get(name, _NONE) or _FULL  # 0 is no limit
        if not shares[name] < limit or name not in (*_COUNTED, *limits):
            continue
        own = [one for one in (rule, filled) if one.layer == state.own.name]
        if not own:
            return
        notes = [Note(f"`{one.key}` is said here", one.span) for one in (rule, filled) if one is not own[0]]
        state.found.add(
            "KP417",
            own[0].span,
            f"`{strategy.name}` takes pods from nodes above {show(PERCENT, shares[name])} of `{name}`, and "
            f"`{filled.key.target}` places pods on them up to {show(PERCENT, limit)}",
            notes=tuple(notes),
            help=f"let `{filled.key.field.removeprefix('parameters.')}` be no higher than `{rule.key.field.rpartition('.')[2]}`, resource by resource",
            severity=Severity.WARNING,
        )
        return


def _against_each_other(state: State, active: Sequence[_Strategy]) -> None:
    """KP417 where one strategy empties nodes that are nearly empty, and another those that are full."""
    spreads = [one for one in active if one.decision("plugin") is not None and _has_thresholds(one)]
    if not spreads or state.found.has_errors:
        return
    expressions = Expressions(state.decisions, state.constants)
    for packing in (one for one in active if one.decision("plugin") is None and _packs(one, expressions)):
        for spreading in spreads:
            mine = [*packing.own, *spreading.own]
            apart = packing.decision("nodes") is not None and spreading.decision("nodes") is not None
            if not mine or apart:
                continue
            other = spreading if packing.own and mine[0] in packing.own else packing
            state.found.add(
                "KP417",
                mine[0].span,
                f"`{packing.name}` moves pods to nodes that have many, and `{spreading.name}` away from them",
                notes=tuple(Note(f"`{other.name}` is said here", one.span) for one in other.own[:1]),
                help="have one of them alone, or let each look at nodes of its own: `nodes`",
                severity=Severity.WARNING,
            )


def _has_thresholds(strategy: _Strategy) -> bool:
    return any(
        strategy.decision(f"load.{high}") is not None
        and ((found := _shares(strategy, f"load.{high}")) is None or bool(found[1]))
        for _, high in _PAIRS
    )


def _packs(strategy: _Strategy, expressions: Expressions) -> bool:
    """Whether a node gives pods away that is nearly empty, and not one that is full: tried out."""
    release = strategy.decision("release")
    if release is None:
        return False
    value = expressions.value(release)
    read = {path for root, path in facts_of(value) if root == "node"}
    if not any("requested" in path or "usage" in path or "free" in path for path in read):
        return False
    try:
        program = compile_row(release.roots, value)
        little, much = (
            program.call(*({"node": _node(share)}.get(root, {}) for root in release.roots))
            for share in (0.01, 0.99)
        )
    except (CelError, KeyError, TypeError):
        return False  # it asks for something that an example does not have
    return little is True and much is False


_CAPACITY: Final = {"cpu": 16_000, "memory": 64 << 30, "pods": 110, "ephemeral-storage": 100 << 30}


def _node(share: float) -> dict[str, object]:
    """A node of which so much is requested and used."""
    from koordpolicy.graph.meaning.formulas import idle  # noqa: PLC0415  # few bundles need an example

    record: dict[str, object] = dict(idle()["node"])
    taken = {name: int(share * of) for name, of in _CAPACITY.items()}
    record["resources.allocatable"] = record["resources.capacity"] = dict(_CAPACITY)
    record["resources.requested"] = taken
    for name in ("cpu", "memory"):
        record[f"allocatable.{name}"] = _CAPACITY[name]
        for fact in ("requested", "usage"):
            record[f"{fact}.{name}"] = taken[name]
        record[f"free.{name}"] = _CAPACITY[name] - taken[name]
    return record
