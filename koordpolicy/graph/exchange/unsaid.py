"""What the user's own policies say and the documents of `slo-controller-config` cannot: formulas above all."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from koordpolicy.graph.exchange.documents import Taken
from koordpolicy.graph.exchange.fields import FIELDS, RENDERED, SETTLED
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.rules import Decision, Rule

_APPLICATIONS: Final = "HostApplicationSet"
_PROFILE: Final = "ColocationProfile"
_ELSEWHERE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "SchedulingProfile": "it belongs in a KubeSchedulerConfiguration, which `--scheduler` writes",
        "AdmissionRule": "Koordinator has no such rules; `--admission-policies` writes what API servers can do of it",
    }
)
_NO_POLICY: Final = frozenset({"PolicyBundle", "PolicyTest", "Invariant", "CELLibrary", "PolicyException"})
"""Kinds that decide nothing by themselves; the rules of exceptions are those of the decisions that they override."""


def unsaid(graph: RuleGraph) -> Iterator[Taken]:
    """What the highest of several layers says that no document can say, in the order of the decisions and documents."""
    own = max((unit.layer for unit in graph.units), default=0)
    if not own:
        return
    kinds = {row.kind for rows in FIELDS.values() for row in rows} | {_APPLICATIONS}
    carried = {
        (row.target, field)
        for rows in FIELDS.values()
        for row in rows
        for field in (
            row.field,
            SETTLED.get((row.target, row.field), row.field),
            RENDERED.get((row.target, row.field), row.field),
        )
    }
    for key, decision in graph.decisions.items():
        if key.kind not in kinds or (key.target, key.field.partition("[")[0]) in carried:
            continue
        mine = [rule for rule in decision.rules if rule.rank.layer == own]
        if not mine or (len(mine) == len(decision.rules) and key.field.startswith("parameters.")):
            continue  # a parameter of the user's own is told with the formula that reads it
        for rule in mine:
            yield Taken(f"{key} ({_place(rule)})", reason=_reason(decision, rule))
    for unit in graph.units:
        kind = unit.kind.name
        if unit.layer == own and kind not in {*kinds, *_NO_POLICY, _PROFILE}:
            yield Taken(
                unit.target, reason=_ELSEWHERE.get(kind, "Koordinator's configuration has nothing like it")
            )


def _place(rule: Rule) -> str:
    return f"{rule.span.file}:{rule.span.start.line}"


def _reason(decision: Decision, rule: Rule) -> str:
    if any(other.rank.layer < rule.rank.layer for other in decision.rules):
        return "Koordinator decides it by a formula of its own, of which the configuration says the parameters alone"
    return "Koordinator's configuration has nothing like it"
