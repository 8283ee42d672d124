"""What is evaluated only sometimes stays so in every program: rows, columns, one row after another, folded.

Which operands those are stands in the typed form (`walk.strict_children`), from where all programs have it.
"""

from dataclasses import replace
from typing import Any

import pytest

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.ir_walk import walk
from koordpolicy.language.cel.lower.columns import compile_columns
from koordpolicy.language.cel.lower.columns.symbols import kind_of
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.types import BOOL
from koordpolicy.language.cel.walk import children, strict_children, with_children
from tests.unit.language.cel.columns.support import NOW, ROOT_NAMES, assert_same, columns, table_of, typed

ROWS = (
    {"name": "a", "labels": {"gpu": "yes", "pool": "a"}, "pods": [{"known": True}], "capacity.cpu": 4000},
    {"name": "b", "labels": {"pool": "b"}, "pods": [], "capacity.cpu": 0},
    {"name": "c", "labels": {}},
    {"name": "d"},
)
PODS: tuple[dict[str, Any], ...] = ({"labels": {}}, {"labels": {"pool": "a"}}, {})

CHOICE = '(pod.labels.pool == "a" ? optional.of("yes") : optional.none())'
OF_ROW = '(node.labels.pool == "a" ? optional.of("yes") : optional.none())'
TEXTS = f"""
node.labels.?gpu.or({CHOICE}).orValue("no") == "yes"
node.labels.?gpu.or({OF_ROW}).orValue("no") == "yes"
node.labels.?gpu.or({CHOICE}).hasValue()
node.labels.?gpu.or({CHOICE}.or({OF_ROW})).orValue(pod.name)
node.labels.?gpu.orValue({CHOICE}.value())
node.labels.?gpu.optFlatMap(g, {CHOICE}).orValue("no")
node.labels.?gpu.optMap(g, pod.labels.pool == "a" ? [g] : ["x"]).hasValue()
node.labels.?gpu.optMap(g, (pod.labels.pool == "a" ? [g] : ["x"])[0]).orValue("no")
{CHOICE}.or(node.labels.?gpu).orValue("no")
{CHOICE}.orValue(node.labels["gpu"])
dyn(node.labels.?gpu).or({CHOICE}).orValue("no") == "yes"
node.labels.?gpu.or(dyn({CHOICE})).orValue("no") == "yes"
dyn(node.labels).?gpu.orValue(dyn(pod.labels).pool) == "yes"
cel.bind(o, {CHOICE}, node.labels.?gpu.or(o).orValue("no"))
"gpu" in node.labels || (pod.labels.pool == "a" ? ["x"] : [])[0] == "x"
"gpu" in node.labels ? "yes" : (pod.labels.pool == "a" ? {{"k": "v"}} : {{"k": "w"}})["k"]
node.pods.all(p, (pod.labels.pool == "a" ? [p.known] : [false])[0])
node.pods.exists(p, p.known || (pod.labels.pool == "a" ? [true] : [])[0])
node.pods.filter(p, p.known).map(p, (pod.labels.pool == "a" ? ["x"] : ["y"])[0]).size()
["gpu", "pool"].exists(k, k in node.labels && (pod.labels.pool == "a" ? [k] : ["x"])[0] == "gpu")
[?node.labels.?gpu, node.labels.?gpu.or({CHOICE}).orValue("no")].size()
has(node.labels.gpu) && node.labels.?gpu.or({CHOICE}).orValue("no") == "yes"
""".strip().splitlines()


@pytest.mark.parametrize("text", TEXTS)
def test_lazy_operands_stay_lazy(text: str) -> None:
    for pod in PODS:
        assert_same(text, table_of(ROWS), pod)


def test_the_finding_itself() -> None:
    program = columns(TEXTS[0])
    assert program.fallback == ()
    result = program.call(table_of(ROWS), {"pod": {"labels": {}}, "now": NOW})
    assert result.error(0) is None
    assert result.value(0) is True


SAMPLES = """
node
node.labels
has(node.labels)
node.?labels
node.labels.gpu
node.labels["gpu"]
1 + 2
node.unschedulable && node.unschedulable
node.unschedulable || node.unschedulable
node.unschedulable ? 1 : 2
node.labels.?gpu.or(node.labels.?pool)
[1]
{"a": 1}
node.pods.all(p, p.known)
node.pods.map(p, p.known, p.band)
cel.bind(x, 1, true)
node.labels.?gpu.optMap(o, 1)
now
""".strip().splitlines()


def test_every_class_of_node_is_among_the_samples() -> None:
    there = {type(node) for sample in samples() for node in walk(sample)}
    known = {kind for kind in vars(ir).values() if isinstance(kind, type) and issubclass(kind, ir.Node)}
    assert known - {ir.Node, ir.Ref} == there


def samples() -> list[ir.Node]:
    """The samples, and what no expression says, but the place where it stands: a cast, and what holds where one fails."""
    holds = ir.Holds(BOOL, typed("node.labels.gpu == 'yes'"), typed("node.unschedulable"))
    return [*map(typed, SAMPLES), ir.Cast(BOOL, typed("dyn(node.unschedulable)")), holds]


FACTS: tuple[dict[str, Any], ...] = (
    {},
    {"labels": {}, "pods": [], "unschedulable": False, "known": True},
    {"labels": {"gpu": "x"}, "pods": [{"known": True, "band": "a"}], "unschedulable": True},
    {"labels": {"pool": "x"}, "pods": [{"known": False}], "unschedulable": False},
)


def replaced(node: ir.Node, operand: ir.Node, other: ir.Node) -> ir.Node:
    return with_children(node, lambda part: other if part is operand else part)


@pytest.mark.parametrize("node", samples(), ids=[*SAMPLES, "a cast", "a condition"])
def test_a_node_fails_with_its_strict_operands_and_not_always_with_a_lazy_one(node: ir.Node) -> None:
    strict = strict_children(node)
    assert set(map(id, strict)) <= set(map(id, children(node)))
    for operand in children(node):
        if operand.type.name == "record":
            continue  # a root; it cannot fail
        broken = ir.Call(operand.type, "error(unbound)", (typed('"broken"'),))
        failing = replaced(node, operand, broken)
        program = compile_row(ROOT_NAMES, failing)
        answers = []
        for facts in FACTS:
            try:
                answers.append(program.call(facts, {}, NOW))
            except CelError as error:
                answers.append(error)
        always = all(isinstance(answer, CelError) for answer in answers)
        assert always == any(part is operand for part in strict), operand


def test_choices_are_lifted_out_of_strict_operands_only() -> None:
    """Every class of node with a choice in each of its places: never another answer."""
    for text in SAMPLES:
        node = typed(text)
        for operand in children(node):
            if kind_of(operand.type) is not None or operand.type.name == "record":
                continue
            choice = ir.Cond(
                operand.type, typed('pod.labels.pool == "a"'), operand, replace(operand, start=1)
            )
            chosen = replaced(node, operand, choice)
            programs = compile_columns(chosen, "node", ROOT_NAMES), compile_row(ROOT_NAMES, chosen)
            for pod in PODS:
                assert_same(text, table_of(ROWS), pod, programs)
