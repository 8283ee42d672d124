"""Policies that undo each other: a scheduler that fills what a strategy empties, and strategies that pack what others spread."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from koordpolicy.diagnostics import Note, Severity
from koordpolicy.graph.meaning.constants import reached_constants
from koordpolicy.graph.meaning.strategies import (
    PAIRS,
    DeschedulingStrategy,
    are_apart,
    may_deviate,
    shares_of,
)
from koordpolicy.graph.notation import show
from koordpolicy.graph.rules import Rule
from koordpolicy.graph.state import State
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.language.cel.lower.row import RowProgram, compile_row
from koordpolicy.language.cel.types import BOOL, PERCENT
from koordpolicy.model.facts.node import AGGREGATIONS

_LIMITS: Final = (("high", "usageThresholds"), ("prodHigh", "prodUsageThresholds"))
"""Where a strategy begins to empty nodes, and the scheduler's parameter up to which it fills them."""
_COUNTED: Final = ("cpu", "memory")
"""What every report of a node's use has."""
_NONE: Final = 0.0
_FULL: Final = 100.0


def against_scheduler(strategy: DeschedulingStrategy) -> None:
    """KP417 where a scheduler fills nodes further than the strategy leaves them."""
    state = strategy.state
    if strategy.decision("plugin") is None or may_deviate(strategy) or not _by_usage(strategy):
        return
    for field, parameter in _LIMITS:
        high = shares_of(strategy, f"load.{field}")
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


def _by_usage(strategy: DeschedulingStrategy) -> bool:
    measure = strategy.said("load.measure")
    return strategy.decision("load.measure") is None or (measure is not None and measure[1] == "Usage")


def _compare(
    strategy: DeschedulingStrategy,
    high: tuple[Rule, Mapping[str, float]],
    filled: Rule,
    limits: Mapping[str, float],
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
        emptied = (
            f"`{strategy.name}` takes pods from nodes above {show(PERCENT, shares[name])} of `{name}`, and "
            f"`{filled.key.target}` places pods on them up to {show(PERCENT, limit)}"
        )
        advice = f"let `{filled.key.field.removeprefix('parameters.')}` be no higher than `{rule.key.field.rpartition('.')[2]}`, resource by resource"
        held = _asks_scheduler(strategy)
        if held:
            emptied += (
                ": others may come where a pod went; none goes back and forth, for each goes only where "
                "the scheduler says that it ends better (`relocating.better`)"
            )
        elif unheld := strategy.decision("relocating.better"):
            said = unheld.rules[0]
            notes.append(
                Note(f"pods for which this is false go without asking the scheduler: `{said.key}`", said.span)
            )
            advice += ", or let `relocating.better` be true of every pod that may go"
        state.found.add(
            "KP417",
            own[0].span,
            emptied,
            notes=tuple(notes),
            help=advice,
            severity=Severity.NOTE if held else Severity.WARNING,
        )
        return


def _asks_scheduler(strategy: DeschedulingStrategy) -> bool:
    """Whether no pod goes by a strategy unless the scheduler says that it ends better."""
    if strategy.always("relocating.better", default=True):
        return True
    better, candidates = strategy.value("relocating.better"), strategy.value("candidates")
    if (
        better is None
        or candidates is None
        or isinstance(better, ir.Const)
        or strategy.state.found.has_errors
    ):
        return False
    return are_apart(strategy.state, [candidates, ir.Call(BOOL, "!_(bool)", (better,))])


def against_each_other(state: State, active: Sequence[DeschedulingStrategy]) -> None:
    """KP417 where one strategy empties nodes that are nearly empty into those that another one empties, for they are full."""
    spreads = [one for one in active if one.decision("plugin") is not None and _gives_away(one)]
    if not spreads or state.found.has_errors:
        return
    for packing in (one for one in active if one.decision("plugin") is None):
        tried = _Packing.of(packing)
        if tried is None or not tried.packs:
            continue
        for spreading in spreads:
            mine = [*packing.own, *spreading.own]
            if not mine or not tried.fills(_least_high(spreading)) or _are_held_apart(packing, spreading):
                continue
            other = spreading if packing.own and mine[0] in packing.own else packing
            unasked = next((one.name for one in (packing, spreading) if not _asks_scheduler(one)), None)
            state.found.add(
                "KP417",
                mine[0].span,
                f"`{_name(packing, spreading)}` moves pods to nodes that have many, and `{_name(spreading, packing)}` away from them",
                notes=(
                    *(Note(f"`{other.name}` is said here", one.span) for one in other.own[:1]),
                    Note(
                        "no pod goes back and forth, for each goes only where the scheduler says that it ends better (`relocating.better`)"
                        if unasked is None
                        else f"`{unasked}` moves pods without asking the scheduler whether they end better"
                    ),
                ),
                help=f"have one of them alone, let each look at nodes of its own (`nodes`), or let `takes` of `{packing.name}` "
                f"refuse nodes (`target`) that `{spreading.name}` empties",
                severity=Severity.NOTE if unasked is None else Severity.WARNING,
            )


def _name(strategy: DeschedulingStrategy, other: DeschedulingStrategy) -> str:
    """A strategy's name, with its profile's where that of another is not the same."""
    return strategy.name if strategy.target == other.target else f"{strategy.target}.{strategy.name}"


def _are_held_apart(packing: DeschedulingStrategy, spreading: DeschedulingStrategy) -> bool:
    """Whether they have nodes or pods of their own."""
    state, mine = packing.state, [packing, spreading]
    if are_apart(state, [test for one in mine for test in one.seen]):
        return True
    pods = [value for one in mine if (value := one.value("candidates")) is not None]
    of_pods_alone = all(root != "node" for value in pods for root, _ in facts_of(value))
    return of_pods_alone and are_apart(state, pods)


def _gives_away(strategy: DeschedulingStrategy) -> bool:
    """Whether some node can be above its thresholds."""
    return _least_high(strategy) < 1.0


def _least_high(strategy: DeschedulingStrategy) -> float:
    """The least share of some resource above which a node gives pods away, 1 where none does; 0 where that depends."""
    least = 1.0
    for low_field, high_field in PAIRS:
        if strategy.decision(f"load.{high_field}") is None:
            continue
        low, high = shares_of(strategy, f"load.{low_field}"), shares_of(strategy, f"load.{high_field}")
        if high is None or (may_deviate(strategy) and high[1]):
            return 0.0
        counted = high[1].keys() if low is None else high[1].keys() & low[1].keys()
        least = min(least, *(high[1][name] / _FULL for name in counted), 1.0)
    return least


_LITTLE: Final = 0.01
_MUCH: Final = 0.99
_STEPS: Final = 100


@dataclass(frozen=True, slots=True)
class _Packing:
    """A strategy of expressions, tried on nodes of which shares are requested and used."""

    roots: Sequence[str]
    release: RowProgram
    takes: tuple[Sequence[str], RowProgram] | None

    @classmethod
    def of(cls, strategy: DeschedulingStrategy) -> "_Packing | None":
        """None where its `release` does not ask how much of a node is taken."""
        release, value = strategy.decision("release"), strategy.value("release")
        if release is None or value is None:
            return None
        read = {path for root, path in facts_of(value) if root == "node"}
        if not any("requested" in path or "usage" in path or "free" in path for path in read):
            return None
        takes, target = strategy.decision("takes"), strategy.value("takes")
        refuses = None
        if takes is not None and target is not None:
            refuses = (takes.roots, compile_row(takes.roots, target))
        return cls(release.roots, compile_row(release.roots, value), refuses)

    @property
    def packs(self) -> bool:
        """Whether a node gives pods away that is nearly empty, and not one that is full."""
        little, much = (
            _tried(self.release, self.roots, {"node": _node(share)}) for share in (_LITTLE, _MUCH)
        )
        return little is True and much is False

    def fills(self, high: float) -> bool:
        """Whether pods are moved to nodes of which more is taken than a share; so, too, where that cannot be told."""
        if self.takes is None:
            return True
        roots, program = self.takes
        shares = [at / _STEPS for at in range(_STEPS) if at / _STEPS > high]
        records = ({"node": _node(_LITTLE), "target": _node(share)} for share in (*shares, _MUCH))
        return any(_tried(program, roots, one) is not False for one in records)


def _tried(program: RowProgram, roots: Sequence[str], records: Mapping[str, object]) -> object:
    """What an expression says of an example; None where it asks for something that examples do not have."""
    try:
        return program.call(*(records.get(root, {}) for root in roots))
    except (CelError, KeyError, TypeError):
        return None


_TAKEN: Final = (
    "requested",
    "nonzeroRequested",
    "load",
    "usage.total",
    *(f"usage.{one}" for one in AGGREGATIONS),
)
"""Facts that say how much of a node pods request or use."""

CAPACITY: Final = {"cpu": 16_000, "memory": 64 << 30, "pods": 110, "ephemeral-storage": 100 << 30}


def _node(share: float) -> dict[str, object]:
    """A node of which so much is requested and used."""
    from koordpolicy.graph.meaning.formulas import idle  # noqa: PLC0415  # few bundles need an example

    record: dict[str, object] = dict(idle()["node"])
    taken = {name: int(share * of) for name, of in CAPACITY.items()}
    record["resources.allocatable"] = record["resources.capacity"] = dict(CAPACITY)
    record["resources.requested"] = record["resources.usage"] = taken
    for name in ("cpu", "memory"):
        record[f"allocatable.{name}"] = CAPACITY[name]
        for fact in _TAKEN:
            record[f"{fact}.{name}"] = taken[name]
        record[f"free.{name}"] = CAPACITY[name] - taken[name]
    return record
