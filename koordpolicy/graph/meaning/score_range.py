"""Scores that can leave their range on a node which takes the pod: an input is looked for, and shown."""

from collections.abc import Iterator
from functools import partial
from typing import Final

from koordpolicy.graph.analysis.facts import fact_at
from koordpolicy.graph.decide import Expressions
from koordpolicy.graph.notation import show
from koordpolicy.graph.rules import Rule
from koordpolicy.graph.state import State
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.ir_walk import facts_of
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.types import BOOL, DOUBLE, INT
from koordpolicy.language.facts import ROOTS

_NODE: Final = "node"
_AT_MOST: Final = (
    (("pod", "request"), (_NODE, "free")),
    (("pod", "request"), (_NODE, "allocatable")),
    (("pod", "request"), (_NODE, "capacity")),
    ((_NODE, "free"), (_NODE, "allocatable")),
    ((_NODE, "free"), (_NODE, "capacity")),
    ((_NODE, "requested"), (_NODE, "allocatable")),
    ((_NODE, "requested"), (_NODE, "capacity")),
    ((_NODE, "allocatable"), (_NODE, "capacity")),
    ((_NODE, "reserved"), (_NODE, "capacity")),
    *(
        ((_NODE, f"usage.{what}"), (_NODE, "capacity"))
        for what in ("total", "system", "prod", "avg", "p50", "p90", "p95", "p99")
    ),
)
"""What is no more than what on a node that has room for the pod, so that no example says otherwise."""
_RESOURCES: Final = tuple(f"{tier}{one}" for tier in ("", "batch.", "mid.") for one in ("cpu", "memory"))
_SMALLEST: Final = {"cpu": 1_000, "memory": 1 << 30}
_WHOLE: Final = ("allocatable", "capacity", "physical")
"""Examples are about nodes of a core and a gibibyte at least: no share of a smaller one is worth a finding."""


def outside(
    state: State, expressions: Expressions, rule: Rule, least: int, most: int
) -> tuple[str, str] | None:
    """A value that the rule can have outside its range, and the input it has it on, both in words; None without one."""
    value = fold(expressions.resolved(rule.value, rule.key))
    test, _ = expressions.test(rule)
    return state.cache.get(("score range", value, test), partial(_outside, state, value, test, least, most))


def _outside(
    state: State, value: ir.Node, test: ir.Node | None, least: int, most: int
) -> tuple[str, str] | None:
    # Most scores keep their range for certain: those ask for none of this.
    from koordpolicy.graph.proof.examples import failing_input, in_words, texts_named_by  # noqa: PLC0415

    kind = "int" if value.type == INT else "double"
    low, high = (
        constant(INT, one) if kind == "int" else constant(DOUBLE, float(one)) for one in (least, most)
    )
    within = ir.And(
        BOOL,
        (
            ir.Call(BOOL, f"_>=_({kind},{kind})", (value, low)),
            ir.Call(BOOL, f"_<=_({kind},{kind})", (value, high)),
        ),
    )
    given = [*([] if test is None else [test]), *_usual(value)]
    whole = None if not given else given[0] if len(given) == 1 else ir.And(BOOL, tuple(given))
    found = failing_input(within, texts_named_by(state.classes.resolver), whole)
    if found is None:
        return None
    made = compile_row(tuple(ROOTS), value).call(*(found.get(root, {}) for root in ROOTS))
    read = (value,) if test is None else (value, test)
    return show(value.type, made), in_words(found, *read)


def _usual(value: ir.Node) -> Iterator[ir.Node]:
    """What holds on every node that takes the pod, of the facts that a score reads."""
    read = facts_of(value)
    for resource in _RESOURCES:
        for group, least in (("free", 0), *((whole, _SMALLEST.get(resource, 0)) for whole in _WHOLE)):
            if (_NODE, f"{group}.{resource}") in read:
                yield ir.Call(
                    BOOL, "_>=_(int,int)", (_field(_NODE, f"{group}.{resource}"), constant(INT, least))
                )
        for (root, less), (other, more) in _AT_MOST:
            one, two = (root, f"{less}.{resource}"), (other, f"{more}.{resource}")
            if one in read and two in read:
                holds = ir.Call(BOOL, "_<=_(int,int)", (_field(*one), _field(*two)))
                fact = fact_at(*one)
                yield _or_absent(holds, *one) if fact is not None and fact.may_be_missing else holds


def _or_absent(holds: ir.Node, root: str, path: str) -> ir.Node:
    there = ir.HasField(BOOL, ir.Var(ROOTS[root].type, root), (path,))
    return ir.Or(BOOL, (ir.Call(BOOL, "!_(bool)", (there,)), holds))


def _field(root: str, path: str) -> ir.Node:
    fact = fact_at(root, path)
    assert fact is not None
    return ir.Field(fact.type, ir.Var(ROOTS[root].type, root), path)
