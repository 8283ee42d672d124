"""Pods that a ColocationProfile makes and admission then refuses: tried out on an example pod."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import islice, product
from typing import Any, Final

from koordpolicy.diagnostics import Note, Severity
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.meaning.constants import Said, values_of
from koordpolicy.graph.neutral import records_of
from koordpolicy.graph.rules import Decision, DecisionKey
from koordpolicy.graph.state import State
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.language.cel.types import BOOL, STRING, map_of
from koordpolicy.language.facts import FACTS, ROOTS
from koordpolicy.model.protocol import QOS_CLASS

_PROFILE: Final = "ColocationProfile"
_MADE: Final = frozenset(("qosLabel", "qos", "band", "rawBand", "priority"))
"""Facts of a pod that a profile's class and band settle; what it requests follows from them."""
_MOST_PAIRS: Final = 64
"""Classes with bands of one profile that are tried."""


def drawn(state: State) -> None:
    """KP411 where pods that get the class and band of a profile are refused, by the rules as they stand."""
    subjects = sorted({key.subject for key in state.decisions if key.kind == _PROFILE})
    if state.found.has_errors or not subjects:
        return
    graph: RuleGraph | None = None
    for subject in subjects:
        classes, bands = _said(state, subject, "qosClass"), _said(state, subject, "band")
        off = _said(state, subject, "enabled")
        if not bands or any(one.value is False for one in off):
            continue
        graph = graph or RuleGraph(
            "", state.units, state.classes, state.decisions, state.constants, state.matches
        )
        always = len(bands) == len(classes) == 1
        for qos, band in islice(product(classes or (None,), bands), _MOST_PAIRS):
            refused = next(
                _refusing(state, graph, "" if qos is None else str(qos.value), str(band.value)), None
            )
            if refused is None or not any(one.rule.layer == state.own.name for one in (qos, band) if one):
                continue
            if always and qos is not None:
                _report(state, subject, qos, band, refused)
            elif shown := _example(state, subject, qos, band):
                _report(state, subject, qos, band, refused, shown)


def _report(
    state: State, subject: str, qos: Said | None, band: Said, refused: Decision, shown: str = ""
) -> None:
    said = sorted((one for one in (qos, band) if one is not None), key=lambda one: (one.rule.rank, one.span))
    if qos is None:
        who = f"pods without a class that `{subject}` puts into the band `{band.value}`"
        help = "give them a class that goes with the band: `qosClass: BE` with batch"
    elif shown:
        who = f"some pods that `{subject}` gives the class {qos.value} in the band `{band.value}`"
        help = "choose a class and a band that go together, for these pods too"
    else:
        who = f"pods of the class {qos.value} in the band `{band.value}`"
        help = "every pod that the profile is applied to: choose a class and a band that go together"
    state.found.add(
        "KP411",
        said[-1].span,
        f"{who} are refused by `{refused.key.target}`",
        notes=(
            *(Note("said together with this", one.span) for one in said[:-1]),
            *([Note(f"such as: {shown}")] if shown else []),
            Note("refused here", refused.rules[0].span),
        ),
        help=help,
        severity=Severity.WARNING,
    )


def _said(state: State, subject: str, field: str) -> tuple[Said, ...]:
    """The values that a field can have, each once; those that only run time knows are left out."""
    decision = state.decisions.get(DecisionKey(_PROFILE, subject, field))
    found: dict[object, Said] = {}
    for one in values_of(state, decision) if decision is not None else ():
        found.setdefault(one.value, one)
    return tuple(found.values())


def _example(state: State, subject: str, qos: Said | None, band: Said) -> str:
    """A pod that gets this class and band, in words; empty where none was found, as where arms exclude each other."""
    holds = [_gives(state, subject, "band", band.value)]
    if qos is not None:
        holds.append(_gives(state, subject, "qosClass", qos.value))
    else:
        pod = ir.Var(ROOTS["pod"].type, "pod")
        unlabelled = ir.Call(BOOL, "_==_", (ir.Field(STRING, pod, "qosLabel"), constant(STRING, "")))
        labels = ir.Field(map_of(STRING, STRING), pod, "labels")
        labelled = ir.Select(BOOL, labels, QOS_CLASS, test=True)
        holds += [unlabelled, ir.Call(BOOL, "!_(bool)", (labelled,))]
    enabled = state.decisions.get(DecisionKey(_PROFILE, subject, "enabled"))
    if enabled is not None and enabled.rules:
        holds.append(state.expressions.value(enabled))
    given = ir.And(BOOL, tuple(holds)) if len(holds) > 1 else holds[0]
    return state.cache.get(("drawn", given), partial(_searched, state, given))


def _gives(state: State, subject: str, field: str, value: object) -> ir.Node:
    decision = state.decisions[DecisionKey(_PROFILE, subject, field)]
    return ir.Call(BOOL, "_==_", (state.expressions.value(decision), constant(STRING, value)))


def _searched(state: State, given: ir.Node) -> str:
    # Most profiles say one class and one band: those ask for none of this.
    from koordpolicy.graph.proof.examples import failing_input, in_words, texts_named_by  # noqa: PLC0415

    denied = ir.Call(BOOL, "!_(bool)", (given,))
    found = failing_input(denied, texts_named_by(state.classes.resolver))
    return "" if found is None else in_words(found, given)


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
