"""Constant folding: what no fact can change is computed once, while compiling.

Errors stay where they are: an expression that fails keeps failing, at run time and only if it is
reached. Macros over small constant lists and maps are written out, so that both back ends see plain logic.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.casts import cast, caster
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.defects import guarded
from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.functions import Function
from koordpolicy.language.cel.ir_walk import rewrite, walk
from koordpolicy.language.cel.library import FUNCTIONS
from koordpolicy.language.cel.lower import runtime
from koordpolicy.language.cel.lower.apply import implementation
from koordpolicy.language.cel.meter import Meter, meter_of
from koordpolicy.language.cel.types import BOOL
from koordpolicy.language.cel.values import NONE, Optional, Value

_MAX_SIZE = 1_000
"""Elements or characters of a folded value: larger ones are cheaper to make again than to keep."""

_MAX_UNROLLED = 64
"""Nodes that a macro written out may have."""


FOLDING_BUDGET: Final = 100_000
"""Units that folding one expression may spend, and that a value worked out beforehand may cost."""


def fold(root: ir.Node, functions: Mapping[str, Function] = FUNCTIONS, meter: Meter | None = None) -> ir.Node:
    """The expression with constant parts computed, as far as the meter reaches. Types stay as they are."""
    return _Folding(functions, meter_of(FOLDING_BUDGET) if meter is None else meter).fold(root)


@dataclass(frozen=True, slots=True)
class _Folding:
    """One expression being folded."""

    functions: Mapping[str, Function]
    meter: Meter

    def fold(self, root: ir.Node) -> ir.Node:
        """Fold all nodes, each once."""
        return rewrite(root, self._node)

    def again(self, root: ir.Node) -> ir.Node:
        """Fold a part that became another, which is charged: parts within parts may become others many times over."""
        return rewrite(root, self._node_again)

    def _node(self, node: ir.Node) -> ir.Node:
        return _folded(node, self)

    def _node_again(self, node: ir.Node) -> ir.Node:
        self.meter[0] -= _NODE
        return _folded(node, self)


_NODE = 20
"""Units of folding a node again."""


_AS_THEY_ARE = frozenset((ir.Const, ir.Var, ir.Field))
"""What most nodes are, and nothing is to fold in."""


def _folded(node: ir.Node, run: _Folding) -> ir.Node:
    if type(node) in _AS_THEY_ARE:
        return node
    if run.meter[0] < 0 and isinstance(node, (ir.Bind, ir.OptMap, ir.Comprehension)):
        return node
    match node:
        case ir.Call():
            return _call(node, run)
        case ir.And():
            return _logic(node, node.args, False)
        case ir.Or():
            return _logic(node, node.args, True)
        case ir.Cond():
            return _condition(node)
        case ir.Holds(operand=ir.Const(value=bool())):
            return node.operand
        case ir.OrElse():
            return _or_else(node)
        case ir.Cast():
            return _cast(node)
        case ir.MakeList() | ir.MakeMap():
            return _literal(node)
        case ir.Select(operand=ir.Const(value=value)):
            return _attempt(node, lambda: _selected(node, value))
        case ir.Index(operand=ir.Const(value=value), index=ir.Const(value=at)):
            find = runtime.find if node.optional else runtime.index
            return _attempt(node, lambda: find(value, at))
        case ir.Bind(init=ir.Const() as init):
            return run.again(_with_local(node.body, node.name, init))
        case ir.OptMap(operand=ir.Const(value=Optional() as held)):
            return _opt_map(node, held, run)
        case ir.Comprehension():
            return _comprehension(node, run)
    return node


def _constant(node: ir.Node, value: Value) -> ir.Const:
    """A constant in the place of a node."""
    return constant(node.type, value, node.start, node.end)


def _attempt(node: ir.Node, compute: Callable[[], Value]) -> ir.Node:
    """The constant that a computation gives, or the node when it fails or gets too large."""
    try:
        value = guarded(compute)
    except CelError:
        return node
    if isinstance(value, (str, bytes, list, tuple, dict)) and len(value) > _MAX_SIZE:
        return node
    return _constant(node, value)


def _call(node: ir.Call, run: _Folding) -> ir.Node:
    if not all(isinstance(argument, ir.Const) for argument in node.args):
        return node
    apply = implementation(node.overload, run.functions)
    if apply is None:
        return node
    values = [argument.value for argument in node.args if isinstance(argument, ir.Const)]
    return _attempt(node, lambda: apply(run.meter, *values))


def _selected(node: ir.Select, value: Value) -> Value:
    if node.test:
        return runtime.has_key(value, node.field)
    return runtime.find_select(value, node.field) if node.optional else runtime.select(value, node.field)


def _logic(node: ir.And | ir.Or, arguments: tuple[ir.Node, ...], decisive: bool) -> ir.Node:
    """A decisive constant wins over everything, errors included; neutral ones go."""
    if any(isinstance(a, ir.Const) and a.value is decisive for a in arguments):
        return _constant(node, decisive)
    kept = tuple(a for a in arguments if not (isinstance(a, ir.Const) and a.value is (not decisive)))
    if not kept:
        return _constant(node, not decisive)
    if len(kept) == 1:
        # A lone operand stands for the whole unless only run time can tell that it is a bool.
        return kept[0] if kept[0].type == BOOL else node
    flat = tuple(part for a in kept for part in (a.args if type(a) is type(node) else (a,)))
    return node if flat == arguments else replace(node, args=flat)


def _condition(node: ir.Cond) -> ir.Node:
    if isinstance(node.condition, ir.Const) and isinstance(node.condition.value, bool):
        chosen = node.then if node.condition.value else node.otherwise
        return _widened(chosen, node)
    return node


def _widened(chosen: ir.Node, whole: ir.Node) -> ir.Node:
    """A part in the place of the whole, whose type may be wider (dyn)."""
    return chosen if chosen.type == whole.type else replace(chosen, type=whole.type)


def _cast(node: ir.Cast) -> ir.Node:
    operand, permitted = node.operand, node.permitted
    if permitted is not None:
        if not isinstance(operand, ir.Const):
            return node
        value = operand.value
        return _attempt(node, lambda: caster(node.type, permitted)(value))
    if isinstance(operand, ir.Call) and operand.overload == "dyn(A)" and operand.args[0].type == node.type:
        return operand.args[0]  # what `dyn` hid is known
    return cast(operand, node.type) if isinstance(operand, ir.Const) else node


def _or_else(node: ir.OrElse) -> ir.Node:
    while node.unwrap and isinstance(node.operand, ir.OrElse) and not node.operand.unwrap:
        # `a.or(b).orValue(c)` is `a.orValue(b.orValue(c))`, which makes no optional on the way.
        inner = node.operand
        other = _or_else(replace(node, operand=inner.other, start=inner.other.start))
        node = replace(node, operand=inner.operand, other=other)
    held = node.operand.value if isinstance(node.operand, ir.Const) else None
    if not isinstance(held, Optional):
        return node
    if held is not NONE:
        return _constant(node, held.value if node.unwrap else held)
    # What is no optional has to fail where one is wanted.
    fits = node.unwrap or node.other.type.name == "optional_type"
    return _widened(node.other, node) if fits else node


def _literal(node: ir.MakeList | ir.MakeMap) -> ir.Node:
    if node.optional:
        return node
    if isinstance(node, ir.MakeList):
        values = [element.value for element in node.elements if isinstance(element, ir.Const)]
        return _attempt(node, lambda: values) if len(values) == len(node.elements) else node
    pairs = [
        (key.value, value.value)
        for key, value in node.entries
        if isinstance(key, ir.Const) and isinstance(value, ir.Const)
    ]
    return _attempt(node, lambda: runtime.make_map(*pairs)) if len(pairs) == len(node.entries) else node


def _with_local(body: ir.Node, name: str, value: ir.Node) -> ir.Node:
    """The body with a local variable replaced."""

    def change(node: ir.Node) -> ir.Node:
        return value if isinstance(node, ir.Var) and node.local and node.name == name else node

    return rewrite(body, change)


def _opt_map(node: ir.OptMap, held: Optional, run: _Folding) -> ir.Node:
    if held is NONE:
        return _constant(node, NONE)
    inner = node.operand.type.params[0] if node.operand.type.params else node.operand.type
    value = constant(inner, held.value, node.start, node.end)
    body = run.again(_with_local(node.body, node.name, value))
    if node.flat:
        return body if body.type == node.type else node
    return _constant(node, Optional(body.value)) if isinstance(body, ir.Const) else node


def _comprehension(node: ir.Comprehension, run: _Folding) -> ir.Node:
    elements = _elements(node)
    if elements is None:
        return node
    size = sum(1 for part in (node.predicate, node.transform) if part is not None for _ in walk(part))
    if size * max(len(elements), 1) > _MAX_UNROLLED:
        return node
    steps = [_step(node, element, run) for element in elements]
    predicates = tuple(predicate for predicate, _ in steps if predicate is not None)
    transforms = tuple(transform for _, transform in steps if transform is not None)
    if node.macro in ("all", "exists"):
        if len(predicates) < 2:
            neutral = constant(BOOL, node.macro == "all", node.start, node.end)
            predicates = (*predicates, neutral, neutral)
        logic = ir.And if node.macro == "all" else ir.Or
        return run.again(logic(node.type, predicates, start=node.start, end=node.end))
    passed = [p.value for p in predicates if isinstance(p, ir.Const) and isinstance(p.value, bool)]
    if len(passed) != len(predicates):
        return node
    match node.macro:
        case "exists_one":
            return _constant(node, sum(passed) == 1)
        case "filter":
            kept = zip(elements, passed, strict=True)
            return _attempt(node, lambda: [element[-1].value for element, passes in kept if passes])
        case "map" | "transformList":
            chosen = transforms if node.predicate is None else _picked(transforms, passed)
            return run.again(ir.MakeList(node.type, chosen, start=node.start, end=node.end))
    return node


def _picked(parts: tuple[ir.Node, ...], passed: list[bool]) -> tuple[ir.Node, ...]:
    return tuple(part for part, passes in zip(parts, passed, strict=True) if passes)


def _elements(node: ir.Comprehension) -> list[tuple[ir.Const, ...]] | None:
    """What the variables of a macro over a constant list or map stand for, element by element."""
    walked = node.range
    if not isinstance(walked, ir.Const) or not isinstance(walked.value, (list, tuple, dict)):
        return None
    if walked.type.name not in ("list", "map") or len(walked.value) > _MAX_UNROLLED:
        return None
    kind = walked.type.params[0]
    if isinstance(walked.value, dict):
        held = walked.type.params[1]
        pairs = [
            (constant(kind, key), constant(held, value)) for key, value in runtime.map_pairs(walked.value)
        ]
        return [(key,) for key, _ in pairs] if len(node.variables) == 1 else list(pairs)
    values = [constant(kind, value) for value in walked.value]
    if len(node.variables) == 1:
        return [(value,) for value in values]
    whole = replace(kind, name="int", params=(), unit=None, record=None)
    return [(constant(whole, at), value) for at, value in enumerate(values)]


def _step(
    node: ir.Comprehension, element: tuple[ir.Const, ...], run: _Folding
) -> tuple[ir.Node | None, ir.Node | None]:
    """Predicate and transform of one element, folded."""

    def applied(part: ir.Node | None) -> ir.Node | None:
        if part is None:
            return None
        for name, value in zip(node.variables, element, strict=True):
            part = _with_local(part, name, value)
        return run.again(part)

    return applied(node.predicate), applied(node.transform)
