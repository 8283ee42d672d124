"""Formulas that promise more than a node has, or nothing even where it is idle: tried out on example nodes."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from koordpolicy.diagnostics import Note, Severity
from koordpolicy.graph.analysis.domain import one_of
from koordpolicy.graph.analysis.region import Box, boxes
from koordpolicy.graph.decide import Expressions, parameter_key, rules_behind
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.meaning.behind import highest_behind
from koordpolicy.graph.neutral import records_of
from koordpolicy.graph.notation import about, show
from koordpolicy.graph.rules import Decision, Rule
from koordpolicy.graph.state import State
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.ir_walk import substitute
from koordpolicy.language.cel.lower.row import RowProgram, compile_row
from koordpolicy.language.cel.types import CPU, DURATION, MEMORY, Type, Unit
from koordpolicy.language.cel.values import Duration
from koordpolicy.language.facts import FACTS

MAX_RULES = 50
"""Rules of one decision that are tried out; beyond it the rest is left untried rather than unbounded."""
MAX_EXAMPLES = 50
"""Example nodes that each of them is tried on."""

_CAPACITY = {"cpu": 16_000, "memory": 64 << 30, "ephemeralStorage": 100 << 30, "pods": 110}


@dataclass(frozen=True, slots=True)
class Law:
    """What holds for a formula on an idle node: more than nothing, and no more than the `of` fact.

    `nothing` and `more` say what the opposite means.
    """

    kind: str
    field: str
    of: tuple[str, str]
    type: Type
    nothing: str
    nothing_is: Severity
    more: str
    more_is: Severity


LAWS: tuple[Law, ...] = (
    Law(
        "CPUSuppress",
        "target",
        ("node", "capacity.cpu"),
        CPU,
        "best-effort work would stand still for ever",
        Severity.ERROR,
        "best-effort work would never yield",
        Severity.ERROR,
    ),
    Law(
        "Overcommit",
        "cpu",
        ("node", "capacity.cpu"),
        CPU,
        "nothing would ever be offered",
        Severity.WARNING,
        "pods would share CPUs that are not there",
        Severity.WARNING,
    ),
    Law(
        "Overcommit",
        "memory",
        ("node", "capacity.memory"),
        MEMORY,
        "nothing would ever be offered",
        Severity.WARNING,
        "the kernel would kill pods as soon as they use what they were promised",
        Severity.WARNING,  # as with CPU: Koordinator permits it, and some nodes live with it
    ),
)
"""What the formulas of the built-in kinds are held to."""


def formulas(state: State) -> None:
    """KP406 where a formula, run on an example node, breaks its law; at the rule that makes the difference."""
    if state.found.has_errors:
        return  # a formula that does not stand cannot be tried out
    expressions = state.expressions
    graph = RuleGraph("", state.units, state.classes, state.decisions, state.constants, state.matches)
    for law in LAWS:
        for key, decision in list(state.decisions.items()):
            if key.kind == law.kind and key.field == law.field:
                _hold(state, law, decision, expressions, graph)


def _hold(state: State, law: Law, decision: Decision, expressions: Expressions, graph: RuleGraph) -> None:
    told: set[Rule] = set()
    for rule in decision.rules[:MAX_RULES]:
        below = rules_behind(
            (parameter_key(rule.key, name) for name in sorted(rule.parameters)), state.decisions
        )
        key = ("formula", rule, *below, *state.constants.values())
        for records in state.cache.get(key, partial(_breaking, law, decision, expressions, rule, below)):
            _report(state, law, decision, graph, expressions, records, told)


def _breaking(
    law: Law, decision: Decision, expressions: Expressions, rule: Rule, below: list[Rule]
) -> tuple[Mapping[str, Any], ...]:
    """The examples on which a rule breaks its law, which has its decision to itself."""
    program = compile_row(decision.roots, expressions.resolved(rule.value, rule.key))
    return tuple(
        records
        for records in _examples([rule, *below], expressions)
        if _breaks(law, program, decision, records)
    )


def _breaks(law: Law, program: RowProgram, decision: Decision, records: Mapping[str, Any]) -> bool:
    whole = records[law.of[0]].get(law.of[1], 0)
    try:
        value = program.call(*(records.get(root, {}) for root in decision.roots))
    except CelError:
        return False  # it asks for something that an example does not have
    return isinstance(value, int) and whole > 0 and not 0 < value <= whole


def _report(
    state: State,
    law: Law,
    decision: Decision,
    graph: RuleGraph,
    expressions: Expressions,
    records: Mapping[str, Any],
    told: set[Rule],
) -> None:
    """Ask the whole decision: only what it really answers is told."""
    target = decision.key.target
    if graph.value(f"{target}.enabled", **records) is False:
        return
    answer = graph.ask(str(decision.key), **records)
    whole = records[law.of[0]][law.of[1]]
    value = answer.value
    if not isinstance(value, int) or 0 < value <= whole:
        return
    behind = highest_behind(state, graph, answer)
    blamed = _blamed(behind, partial(_would_keep, law, decision, expressions, records))
    if blamed is None or blamed in told:
        return
    told.add(blamed)
    nothing = value <= 0
    state.found.add(
        "KP406",
        blamed.span,
        f"`{decision.key}` is {about(law.type, value)} on an idle node of {show(law.type, whole)}: "
        + (law.nothing if nothing else law.more),
        notes=_labels(records),
        help=f"an idle node leaves {'more than nothing' if nothing else 'no more than it has'}; "
        + ("to turn it off, say `enabled: false`" if nothing else "lower the share"),
        severity=law.nothing_is if nothing else law.more_is,
    )


def _blamed(behind: list[Rule], would_keep: Callable[[Rule, Rule], bool]) -> Rule | None:
    """The rule to change: a parameter where another value of it would keep the law, else the formula."""
    formula = next((rule for rule in behind if not _is_parameter(rule)), None)
    for rule in reversed(behind):
        if formula is None or rule is formula or would_keep(formula, rule):
            return rule
    return formula


def _is_parameter(rule: Rule) -> bool:
    return rule.key.field.startswith("parameters.")


def _would_keep(
    law: Law,
    decision: Decision,
    expressions: Expressions,
    records: Mapping[str, Any],
    formula: Rule,
    parameter: Rule,
) -> bool:
    """Whether a formula keeps its law with some other value of a parameter; so it is said of what is not tried out."""
    name = parameter.key.field.removeprefix("parameters.")
    kind = parameter.value.type
    values = _OTHERS.get(kind.unit) if kind.unit is not None else None
    if not _is_parameter(parameter) or values is None or name not in formula.parameters:
        return True
    for value in values:
        given = constant(kind, float(value) if kind.name == "double" else value)
        whole = substitute(formula.value, {("parameters", name): given})
        program = compile_row(decision.roots, expressions.resolved(whole, formula.key))
        if not _breaks(law, program, decision, records):
            return True
    return False


_OTHERS: Mapping[Unit, tuple[int, ...]] = MappingProxyType(
    {Unit.PERCENT: (0, 5, 50, 90, 100), Unit.CPU: (0, 1_000), Unit.BYTES: (0, 1 << 30)}
)
"""Values of a parameter that are tried in its place."""


def _labels(records: Mapping[str, Any]) -> tuple[Note, ...]:
    labels = records["node"].get("labels") or {}
    return (
        (Note("with " + ", ".join(f"{key}={value}" for key, value in sorted(labels.items()))),)
        if labels
        else ()
    )


def _examples(rules: list[Rule], expressions: Expressions) -> Iterator[Mapping[str, Any]]:
    """The idle node, and for each rule with a match one that it applies to."""
    base = idle()
    yield base
    count = 0
    for rule in rules:
        if rule.match.test is None:
            continue
        for box in boxes(expressions.resolved(rule.match.test, rule.key))[:1]:
            count += 1
            if count <= MAX_EXAMPLES:
                yield _within(base, box)


def _within(base: Mapping[str, Any], box: Box) -> Mapping[str, Any]:
    """The base with what a box demands; a value that fits stays."""
    records = {root: dict(value) if isinstance(value, dict) else value for root, value in base.items()}
    for place, domain in box.domains.items():
        record = records.get(place.root)
        if not isinstance(record, dict):
            continue
        if place.key is not None:
            entries = dict(record.get(place.path) or {})
            entries.pop(place.key, None)
            value = domain.sample(whole=False)
            if domain.present is not False:
                entries[place.key] = value if isinstance(value, str) else "any"
            record[place.path] = entries
            continue
        now = record.get(place.path)
        fits = (
            isinstance(now, int | float | str | bool) and domain.meet(one_of(frozenset((now,)))) is not None
        )
        if domain.present is False:
            record.pop(place.path, None)
        elif not fits:
            sample = domain.sample(whole=not isinstance(now, float))
            if sample is not None:
                record[place.path] = sample
    return records


def idle() -> dict[str, Any]:
    """A node of 16 CPUs and 64 GiB on which nothing runs, just measured, and everything else as it usually is.

    Half of it is predicted to stay unused.
    """
    said: dict[tuple[str, str], Any] = {}
    for root in ("node", "zone"):
        for fact in FACTS.records[root].facts:
            group, _, resource = fact.path.rpartition(".")
            if group in ("capacity", "allocatable", "physical", "free"):
                said[root, fact.path] = _CAPACITY.get(resource if "." not in resource else "", 0)
            elif group.startswith("prediction."):
                said[root, fact.path] = (
                    _CAPACITY.get(resource, 0) // 2
                )  # else nothing could be offered for it
            elif fact.may_be_missing and fact.type in (CPU, MEMORY):
                said[root, fact.path] = 0
            elif fact.may_be_missing and fact.type == DURATION:
                said[root, fact.path] = Duration(0)
    return records_of(said)
