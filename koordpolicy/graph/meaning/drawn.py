"""Pods that a ColocationProfile makes and admission then refuses: tried out on an example pod."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from koordpolicy.diagnostics import Note, Severity
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.meaning.constants import Said, elements_of
from koordpolicy.graph.neutral import records_of
from koordpolicy.graph.rules import Decision, DecisionKey
from koordpolicy.graph.state import State
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.language.facts import FACTS

_PROFILE: Final = "ColocationProfile"
_MADE: Final = frozenset(("qosLabel", "qos", "band", "rawBand", "priority"))
"""Facts of a pod that a profile's class and band settle; what it requests follows from them."""


def drawn(state: State) -> None:
    """KP411 where each pod that gets the class and band of a profile is refused, by the rules as they stand."""
    subjects = sorted({key.subject for key in state.decisions if key.kind == _PROFILE})
    if state.found.has_errors or not subjects:
        return
    graph: RuleGraph | None = None
    for subject in subjects:
        qos = _only(state, subject, "qosClass")
        band = _only(state, subject, "band")
        off = _only(state, subject, "enabled")
        if qos is None or band is None or (off is not None and off.value is False):
            continue
        graph = graph or RuleGraph(
            "", state.units, state.classes, state.decisions, state.constants, state.matches
        )
        refused = next(_refusing(state, graph, str(qos.value), str(band.value)), None)
        if refused is None:
            continue
        first, last = sorted((qos, band), key=lambda one: (one.rule.rank, one.span))
        state.found.add(
            "KP411",
            last.span,
            f"pods of the class {qos.value} in the band `{band.value}` are refused by `{refused.key.target}`",
            notes=(Note("said together with this", first.span), Note("refused here", refused.rules[0].span)),
            help="every pod that the profile is applied to: choose a class and a band that go together",
            severity=Severity.WARNING,
        )


def _only(state: State, subject: str, field: str) -> Said | None:
    """The value of a field where it has just one, whatever the input."""
    decision = state.decisions.get(DecisionKey(_PROFILE, subject, field))
    found = (
        []
        if decision is None
        else [(rule, one) for rule in decision.rules for one in elements_of(state, rule)]
    )
    if len(found) != 1 or not found[0][1].known:
        return None
    rule, one = found[0]
    return Said(rule, one.value, state, one)


def _refusing(state: State, graph: RuleGraph, qos: str, band: str) -> Iterator[Decision]:
    """The requirements that such a pod does not meet, but any other one does, by their order."""
    plain, made = _pod("", ""), _pod(qos, band)
    for key, decision in sorted(state.decisions.items(), key=lambda pair: pair[0].subject):
        if key.kind != "AdmissionRule" or key.field != "require" or not _asks_no_more(decision):
            continue
        name = f"{key.target}"
        if (
            graph.value(f"{name}.enabled", **made) is False
            or graph.value(f"{name}.enforcement", **made) != "enforce"
        ):
            continue
        if graph.ask(str(key), **made).value is False and graph.ask(str(key), **plain).value is True:
            yield decision


def _asks_no_more(decision: Decision) -> bool:
    """Whether a requirement reads only what class and band settle."""
    return all(
        root == "pod" and (path in _MADE or path.startswith("request."))
        for rule in decision.rules
        for node in (rule.value, *([] if rule.match.test is None else [rule.match.test]))
        for root, path in facts_of(node)
    )


def _pod(qos: str, band: str) -> Mapping[str, Any]:
    """An example pod that asks for a CPU and a gibibyte, as its band names them."""
    own = f"request.{band}"
    group = own if band and FACTS.resolve("pod", f"{own}.cpu") is not None else "request"
    return records_of(
        {
            ("pod", "qosLabel"): qos,
            ("pod", "qos"): qos,
            ("pod", "band"): band,
            ("pod", "rawBand"): band,
            ("pod", f"{group}.cpu"): 1_000,
            ("pod", f"{group}.memory"): 1 << 30,
        }
    )
