"""Gangs that are never placed, whatever room there is: tried out on a small gang with all its pods."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.diagnostics import Severity
from koordpolicy.graph.answer import Answer
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.graph.meaning.behind import highest_behind
from koordpolicy.graph.neutral import records_of
from koordpolicy.graph.rules import Rule
from koordpolicy.graph.state import State
from koordpolicy.language.cel.values import Duration

KIND: Final = "GangScheduling"
_PODS: Final = 2
_MATCH: Final = ("once-satisfied", "only-waiting", "waiting-and-running")
_DECLARED: Final = {"minimum": _PODS, "mode": "Strict", "kind": "PodGroup", "groups": []}
_STANDS: Final = {"minimum": _PODS, "total": _PODS, "mode": "Strict", "pods": _PODS}


@dataclass(frozen=True, slots=True)
class _Try:
    """A decision that is asked of an example, what a sound answer is, and what another one means."""

    field: str
    records: Mapping[str, Any]
    sound: Callable[[Any], bool]
    means: str
    help: str


def gangs(state: State) -> None:
    """KP415 where a gang whose pods are all there, and have room, is not bound all the same."""
    own = [one for key, one in state.decisions.items() if key.kind == KIND]
    if state.found.has_errors or not own:
        return
    values = tuple(map(state.expressions.value, own))
    keys = tuple([one.key for one in own])
    if state.cache.same(("sound", keys), values, lambda: _are_sound(_graph(state))):
        return
    graph = _graph(state)
    told: set[Rule] = set()
    for one in _tries(graph):
        answer = graph.ask(f"{KIND}.{one.field}", **one.records)
        if _is_sound(one, answer):
            continue
        behind = highest_behind(state, graph, answer)
        if behind and behind[0] not in told:
            told.add(behind[0])
            state.found.add(
                "KP415",
                behind[0].span,
                f"`{KIND}.{one.field}`: {one.means}",
                severity=Severity.WARNING,
                help=one.help,
            )


def _graph(state: State) -> RuleGraph:
    return RuleGraph("", state.units, state.classes, state.decisions, state.constants, state.matches)


def _are_sound(graph: RuleGraph) -> bool:
    """Whether all that is asked of gangs has a sound answer."""
    return all(_is_sound(one, graph.ask(f"{KIND}.{one.field}", **one.records)) for one in _tries(graph))


def _is_sound(one: _Try, answer: Answer) -> bool:
    return answer.error is not None or answer.value is None or one.sound(answer.value)


def _tries(graph: RuleGraph) -> Iterator[_Try]:
    declared = _records("gangDeclaration", {**_DECLARED, "matchPolicy": _MATCH[0]})
    yield _Try(
        "initialised",
        declared,
        lambda value: value is True,
        f"a gang that says it needs {_PODS} pods is never tried",
        "hold back those alone that say too little of themselves",
    )
    yield _Try(
        "minimum",
        declared,
        lambda value: value >= 1,
        f"a gang that says it needs {_PODS} pods needs none, so that its pods are placed in part",
        "a gang needs 1 pod at least; to place pods one by one, say `free: true`",
    )
    placed = _records("gang", {**_STANDS, "matchPolicy": _MATCH[0], "pending": _PODS})
    if graph.value(f"{KIND}.placement", **placed) != "AtOnce":
        yield _Try(
            "waitingTime",
            declared,
            lambda value: not isinstance(value, Duration) or value.ns > 0,
            "pods give their nodes back before the others of their gang have one, so that none is ever bound",
            "let them wait for as long as the others may take, as `600s`, or say `placement: AtOnce`",
        )
    for match in _MATCH:
        said = {**_STANDS, "matchPolicy": match}
        yield _Try(
            "complete",
            _records("gang", {**said, "pending": _PODS}),
            lambda value: value is True,
            f"a gang that needs {_PODS} pods and has {_PODS} is never tried (match policy {match})",
            "a gang is complete once it has as many pods as it needs",
        )
        yield _Try(
            "satisfied",
            _records("gang", {**said, "waiting": _PODS}),
            lambda value: value is True,
            f"a gang all of whose {_PODS} pods have a node is never bound (match policy {match})",
            "a gang is satisfied once as many of its pods wait on nodes as it needs",
        )


def _records(root: str, said: Mapping[str, Any]) -> dict[str, Any]:
    return records_of({(root, name): value for name, value in said.items()})
