"""What is worked out before columns: parts that nothing but constants decide, and macros over constant lists.

A policy's parameters are constants of its graph, so a macro over the names of a few resources is a
handful of plain operations. Written out, each step knows its resource, reads one column of a map, and
shares what does not change; as a loop it would know none of that.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final
from zlib import crc32

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.fold import FOLDING_BUDGET, fold
from koordpolicy.language.cel.ir_walk import bound_names, inline_binds, number, rewrite, walk
from koordpolicy.language.cel.lower.columns.choices import spread_choices
from koordpolicy.language.cel.lower.operators import EITHER
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.lower.runtime import map_pairs
from koordpolicy.language.cel.types import BOOL, INT, Type, optional_of
from koordpolicy.language.cel.values import NONE, Optional, Value
from koordpolicy.language.cel.walk import children, with_children

_ROUNDS: Final = 4
"""Writing a macro out may make others constant; deeper nests than this stay loops."""

_MAX_ELEMENTS: Final = 16
_MAX_NODES: Final = 2_000
"""Nodes that all macros written out in one expression may have."""

_MAX_SIZE: Final = 1_000
"""Elements or characters of a value worked out; larger ones are made when they are needed."""


def simplify(root: ir.Node) -> ir.Node:
    """The expression with the same meaning and less left to do. No binds are left."""
    root = fold(inline_binds(root))
    for _ in range(_ROUNDS):
        changed = spread_choices(_written_out(_worked_out(root)), _at_once)
        if changed is root:
            break
        root = fold(changed)
    return rewrite(root, _shortened)


def _shortened(node: ir.Node) -> ir.Node:
    return _counted(_without_neutral(node))


_NEUTRAL = {
    "_+_(int,int)": (0, True),
    "_-_(int,int)": (0, False),
    "_*_(int,int)": (1, True),
    "_/_(int,int)": (1, False),
}
"""Operations of int that an operand leaves as they are: that operand, and whether it may come first."""


def _without_neutral(node: ir.Node) -> ir.Node:
    """`x * 1` and its like are x."""
    if not isinstance(node, ir.Call) or node.overload not in _NEUTRAL:
        return node
    neutral, first = _NEUTRAL[node.overload]
    a, b = node.args
    if isinstance(b, ir.Const) and b.value == neutral and a.type == node.type:
        return a
    if first and isinstance(a, ir.Const) and a.value == neutral and b.type == node.type:
        return b
    return node


_COUNTS = {
    ("_==_", 0): True, ("_!=_", 0): False, ("_>_(int,int)", 0): False, ("_<=_(int,int)", 0): True,
    ("_>=_(int,int)", 1): False, ("_<_(int,int)", 1): True,
}  # fmt: skip
"""Comparisons of a number of elements that tell whether there is any: operator, number, whether for none."""


def _counted(node: ir.Node) -> ir.Node:
    """`size(list.filter(x, p)) == 0` over a constant list needs no number: some `p`, or none."""
    if not isinstance(node, ir.Call) or len(node.args) != 2:
        return node
    counted, limit = node.args
    if not isinstance(limit, ir.Const) or type(limit.value) is not int:
        return node
    none = _COUNTS.get((node.overload, limit.value))
    conditions = None if none is None else _conditions(counted)
    if not conditions:
        return node
    found = conditions[0]
    for condition in conditions[1:]:
        found = ir.Call(BOOL, EITHER, (found, condition), start=node.start, end=node.end)
    return ir.Call(BOOL, "!_(bool)", (found,), start=node.start, end=node.end) if none else found


def _conditions(node: ir.Node) -> list[ir.Node] | None:
    """On what the elements of a list depend whose size this is; None where it does not follow from that alone."""
    if not isinstance(node, ir.Call) or node.overload not in ("size(list(A))", ".size(list(A))"):
        return None
    counted = node.args[0]
    if not isinstance(counted, ir.MakeList) or len(counted.optional) < len(counted.elements):
        return None
    found = []
    for part in counted.elements:
        match part:
            case ir.Cond(
                condition=condition,
                then=ir.Const(value=Optional() as held),
                otherwise=ir.Const(value=Optional() as other),
            ) if held is not NONE and other is NONE and condition.type == BOOL:
                found.append(condition)
            case _:
                return None
    return found


# --- parts without roots ---------------------------------------------------------------------------


def _worked_out(root: ir.Node) -> ir.Node:
    """The largest parts that name no root replaced by their value, where they have one."""
    table = number([root])
    closed: list[bool] = []
    for node, operands in zip(table.nodes, table.operands, strict=True):
        closed.append(
            node.local if isinstance(node, ir.Var) else all(closed[operand] for operand in operands)
        )
    known: dict[int, ir.Node] = {}

    def value_of(node: ir.Node) -> ir.Node | None:
        at = table.of(node)
        if isinstance(node, (ir.Const, ir.Var)) or not closed[at] or table.free[at]:
            return None
        if at not in known:
            known[at] = _evaluated(node)
        return known[at] if known[at] is not node else None

    changed = from_the_top(root, value_of)
    return changed if any(isinstance(value, ir.Const) for value in known.values()) else root


def from_the_top(root: ir.Node, value_of: Callable[[ir.Node], ir.Node | None]) -> ir.Node:
    """Replace nodes, those further up first; what stands below a replaced node is not looked at."""
    done: dict[int, ir.Node] = {}
    stack: list[tuple[ir.Node, bool]] = [(root, False)]
    while stack:
        node, ready = stack.pop()
        if id(node) in done:
            continue
        if ready:
            done[id(node)] = with_children(node, lambda part: done[id(part)])
            continue
        value = value_of(node)
        if value is not None:
            done[id(node)] = value
            continue
        stack.append((node, True))
        stack.extend((part, False) for part in children(node))
    return done[id(root)]


def _evaluated(node: ir.Node) -> ir.Node:
    try:
        value: Value = compile_row((), node, budget=FOLDING_BUDGET).call()
    except CelError:
        return node
    if isinstance(value, (str, bytes, list, tuple, dict)) and len(value) > _MAX_SIZE:
        return node
    return constant(node.type, value)


# --- macros over constants -------------------------------------------------------------------------


def _written_out(root: ir.Node) -> ir.Node:
    budget = _MAX_NODES
    done = False

    def change(node: ir.Node) -> ir.Node:
        nonlocal budget, done
        if not isinstance(node, ir.Comprehension):
            return node
        elements = _elements(node)
        parts = [part for part in (node.predicate, node.transform) if part is not None]
        if elements is None:
            return node
        cost = len(elements) * sum(1 for part in parts for _ in walk(part))
        if cost > budget:
            return node
        written = _write_out(node, elements)
        if written is not node:
            budget, done = budget - cost, True
        return written

    changed = rewrite(root, change)
    return changed if done else root


def _elements(node: ir.Comprehension) -> Sequence[tuple[ir.Const, ...]] | None:
    """What the variables stand for, pass by pass; None where the range is no short constant."""
    walked = node.range
    if not isinstance(walked, ir.Const) or walked.type.name not in ("list", "map"):
        return None
    value, params = walked.value, walked.type.params
    if not isinstance(value, (list, tuple, dict)) or len(value) > _MAX_ELEMENTS:
        return None
    if isinstance(value, dict):
        pairs = [(constant(params[0], key), constant(params[1], held)) for key, held in map_pairs(value)]
        return pairs if len(node.variables) == 2 else [(key,) for key, _ in pairs]
    values = [constant(params[0], element) for element in value]
    if len(node.variables) == 1:
        return [(element,) for element in values]
    return [(constant(INT, at), element) for at, element in enumerate(values)]


def _at_once(node: ir.Comprehension) -> ir.Node | None:
    """A macro written out; None where its range is no short constant, or its macro has no such form."""
    elements = _elements(node)
    if elements is None:
        return None
    written = _write_out(node, elements)
    return None if written is node else written


def _write_out(node: ir.Comprehension, elements: Sequence[tuple[ir.Const, ...]]) -> ir.Node:
    predicates = [_applied(node, node.predicate, element) for element in elements]
    transforms = [_applied(node, node.transform, element) for element in elements]
    if node.macro in ("all", "exists"):
        neutral = constant(BOOL, node.macro == "all")
        logic = ir.And if node.macro == "all" else ir.Or
        args = (*(part for part in predicates if part is not None), neutral, neutral)
        return logic(BOOL, args, start=node.start, end=node.end)
    if node.macro in ("map", "transformList"):
        results = [part for part in transforms if part is not None]
    elif node.macro == "filter" and len(node.variables) == 1:
        results = [element[0] for element in elements]
    else:
        return node
    if node.predicate is None:
        return ir.MakeList(node.type, tuple(results), start=node.start, end=node.end)
    kind = optional_of(node.type.params[0])
    chosen = [
        ir.Cond(kind, predicate, _some(kind, result), constant(kind, NONE))
        for predicate, result in zip(predicates, results, strict=True)
        if predicate is not None
    ]
    positions = frozenset(range(len(chosen)))
    return ir.MakeList(node.type, tuple(chosen), positions, start=node.start, end=node.end)


def _some(kind: Type, value: ir.Node) -> ir.Node:
    if isinstance(value, ir.Const):
        return constant(kind, Optional(value.value))
    return ir.Call(kind, "optional.of(T)", (value,))


def _applied(node: ir.Comprehension, part: ir.Node | None, element: tuple[ir.Const, ...]) -> ir.Node | None:
    """A body with the variables replaced. Places in the source stay those of the body."""
    if part is None:
        return None
    meaning = dict(zip(node.variables, element, strict=True))
    table = number([part])
    # Inner macros that depend on the element are others in each pass, and so are their variables: equal
    # names would make unequal things equal. The rest keeps its names and is computed once for all passes.
    tag = format(crc32("|".join(value.key for value in element).encode()), "x")
    renamed = {
        name: f"{name}_{tag}"
        for inner, free in zip(table.nodes, table.free, strict=True)
        if not free.isdisjoint(meaning)
        for name in bound_names(inner)
    }

    def change(inner: ir.Node) -> ir.Node:
        match inner:
            case ir.Var(name=name, local=True) if name in meaning:
                return replace(meaning[name], start=inner.start, end=inner.end)
            case ir.Var(name=name, local=True) if name in renamed:
                return replace(inner, name=renamed[name])
            case ir.Comprehension(variables=variables):
                return replace(inner, variables=tuple(renamed.get(name, name) for name in variables))
            case ir.OptMap(name=name) if name in renamed:
                return replace(inner, name=renamed[name])
        return inner

    return rewrite(part, change)
