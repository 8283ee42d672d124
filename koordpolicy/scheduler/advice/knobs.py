"""What would help against a filter's expression: another value of a parameter, or of a limit within it.

The expression is compiled once more with all these values as inputs; then each can be tried on all nodes.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from koordpolicy.algorithms.columns import Mask
from koordpolicy.algorithms.work import Work
from koordpolicy.cluster.nodes import Rows
from koordpolicy.cluster.prepared import Records
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.decide import parameters_of
from koordpolicy.graph.notation import written
from koordpolicy.graph.rules import Decision, DecisionKey, Rule, RuleMatch
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.ir_walk import facts_of, rewrite
from koordpolicy.language.cel.lower.columns import ColumnProgram, compile_columns
from koordpolicy.language.cel.types import BOOL, DOUBLE, DURATION, INT, Type, record
from koordpolicy.model.table import NodeTable
from koordpolicy.scheduler.advice.pace import Evaluations
from koordpolicy.scheduler.advice.steps import nearest_value
from koordpolicy.scheduler.plugins.base import PAUSE
from koordpolicy.scheduler.profile import KIND, ROOTS
from koordpolicy.scheduler.step import Step

_SUPPOSED: Final = "supposed"
_VAR: Final = ir.Var(record(_SUPPOSED), _SUPPOSED)
_COMPARED: Final = ("_<_(", "_<=_(", "_>_(", "_>=_(")
_SCALARS: Final = frozenset(one.name for one in (BOOL, INT, DOUBLE, DURATION))
_MOST_LITERALS: Final = 20


@dataclass(frozen=True, slots=True)
class Turn:
    """A value that would help: what it is called, what it is and what it would have to be, as policies write
    them, and for how many nodes. `wider` is a value for more of them, where there is one.
    """

    what: str
    now: str
    then: str
    nodes: int
    wider: tuple[str, int] | None = None

    @property
    def text(self) -> str:
        """The turn in words."""
        more = "" if self.wider is None else f", {self.wider[1]} with {self.wider[0]}"
        return f"{self.nodes} would take it with {self.what} {self.then} (now {self.now}){more}"


@dataclass(frozen=True, slots=True)
class _Knob:
    """One input of the expression: its path in the record of supposed values; `literal` for a limit's value."""

    path: str
    type: Type
    decision: str = ""
    literal: Any = None


class Knobs:
    """The values that a filter of a profile can be turned by."""

    def __init__(self, graph: RuleGraph, profile: str, step: Step) -> None:
        name = f"{KIND}/{profile}.filters[{step.name}].require"
        self._graph = graph
        self._knobs = list(_parameters(graph, graph.decision(name)))
        rules = [_rule(graph.decisions[key], knob) for key, knob in self._knobs]
        expression = graph.with_rules(rules).expression(name)
        literals: list[_Knob] = []
        expression = rewrite(expression, lambda node: _opened(node, literals))
        self._literals = literals
        self._program: ColumnProgram = compile_columns(
            {"": expression}, "node", (*ROOTS, _SUPPOSED), budget=graph.budget
        )

    def turns(
        self, table: NodeTable, records: Records, rows: Rows, evaluations: Evaluations
    ) -> Iterator[Turn | None]:
        """What would let nodes of some rows pass, a value at a time, with pauses.

        Raises CelError when the pod lacks facts, TooMuch when no evaluation is left.
        """
        present: dict[str, Any] = {knob.path: knob.literal for knob in self._literals}
        for _, knob in self._knobs:
            present[knob.path] = self._graph.value(knob.decision, **records)
        for knob in (*(knob for _, knob in self._knobs), *self._literals):
            value = present[knob.path]
            for name, type, now, with_value in _scalars(knob, value):

                def passing(number: Any, knob: _Knob = knob, with_value: Any = with_value) -> Mask:
                    evaluations.spend()
                    supposed = {**present, knob.path: with_value(number)}
                    return self._passing(table, {**records, _SUPPOSED: supposed}, rows)

                turn = yield from _turn(name, type, now, passing, len(rows))
                if turn is not None:
                    yield turn

    def _passing(self, table: NodeTable, records: Records, rows: Rows) -> Mask:
        found = self._program.call(table, records, rows)
        values: Mask = found.values
        return values if found.errors is None else values & ~found.errors


def _turn(name: str, type: Type, now: Any, passing: Callable[[Any], Mask], many: int) -> Work[Turn | None]:
    least = yield from nearest_value(type, now, lambda value: bool(passing(value).any()))
    if least is None:
        return None
    count = int(np.count_nonzero(passing(least)))
    yield PAUSE
    if not count:
        return None  # nodes have changed in the meantime
    wider: tuple[str, int] | None = None
    half = (many + 1) // 2
    if type.name != "bool" and count < half:
        more = yield from nearest_value(
            type, least, lambda value: int(np.count_nonzero(passing(value))) >= half
        )
        if more is not None and more != least:
            wider = _shown(type, more, name), int(np.count_nonzero(passing(more)))
            yield PAUSE
    return Turn(name, _shown(type, now, name), _shown(type, least, name), count, wider)


def _shown(type: Type, value: Any, name: str) -> str:
    resource = name.partition(".")[2] or None
    text = written(type, value, resource)
    return str(text).lower() if isinstance(text, bool) else str(text)


def _parameters(graph: RuleGraph, decision: Decision) -> Iterator[tuple[DecisionKey, _Knob]]:
    """The parameters that the expression reads, as far as nodes don't differ in them."""
    seen: set[DecisionKey] = set()
    for rule in decision.rules:
        for node in (rule.value, rule.match.test):
            for key in () if node is None else parameters_of(node, rule.key):
                parameter = graph.decisions.get(key)
                if parameter is None or key in seen:
                    continue
                seen.add(key)
                if not _depends_on_node(graph, str(key)):
                    name = key.field.removeprefix("parameters.")
                    yield key, _Knob(name, parameter.type, str(key))


def _depends_on_node(graph: RuleGraph, name: str) -> bool:
    return any(root == "node" for root, _ in facts_of(graph.expression(name)))


def _rule(decision: Decision, knob: _Knob) -> Rule:
    """The rule by which a parameter has the supposed value."""
    return replace(decision.rules[0], match=RuleMatch(), value=ir.Field(decision.type, _VAR, knob.path))


def _opened(node: ir.Node, literals: list[_Knob]) -> ir.Node:
    """A comparison with a literal, the literal made an input."""
    if not (isinstance(node, ir.Call) and node.overload.startswith(_COMPARED)):
        return node
    args: list[ir.Node] = []
    for arg in node.args:
        if (
            isinstance(arg, ir.Const)
            and arg.type.name in _SCALARS
            and (arg.type.unit is not None or arg.type == DURATION)
            and arg.value
            and len(literals) < _MOST_LITERALS
        ):
            knob = _Knob(f"literal{len(literals)}", arg.type, literal=arg.value)
            literals.append(knob)
            args.append(ir.Field(arg.type, _VAR, knob.path))
        else:
            args.append(arg)
    return replace(node, args=tuple(args))


def _scalars(knob: _Knob, value: Any) -> Iterator[tuple[str, Type, Any, Any]]:
    """The single values of a knob: its name, type, what it is now, and the whole with another one."""
    name = "the limit" if knob.literal is not None else knob.path
    if knob.type.name in _SCALARS and value is not None:
        yield name, knob.type, value, lambda one: one
    elif knob.type.name == "map" and isinstance(value, Mapping) and knob.type.params[1].name in _SCALARS:
        for key, now in value.items():
            yield f"{name}.{key}", knob.type.params[1], now, lambda one, key=key: {**value, key: one}
