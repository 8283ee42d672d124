"""Macros: what binds a name for part of an expression."""

from collections.abc import Mapping

from koordpolicy.language.cel import ast, ir
from koordpolicy.language.cel.checker.context import Context, block_slot
from koordpolicy.language.cel.checker.logic import condition
from koordpolicy.language.cel.checker.names import error_at
from koordpolicy.language.cel.syntax import MAX_DEPTH
from koordpolicy.language.cel.types import BOOL, DYN, ERROR, INT, Type, list_of, map_of, optional_of
from koordpolicy.language.cel.wording import open_type, spoken

_COMPREHENSIONS: Mapping[tuple[str, int], tuple[str, int, bool]] = {
    ("all", 2): ("all", 1, True),
    ("exists", 2): ("exists", 1, True),
    ("exists_one", 2): ("exists_one", 1, True),
    ("existsOne", 2): ("exists_one", 1, True),
    ("filter", 2): ("filter", 1, True),
    ("map", 2): ("map", 1, False),
    ("map", 3): ("map", 1, True),
    ("sortBy", 2): ("sortBy", 1, False),
    ("all", 3): ("all", 2, True),
    ("exists", 3): ("exists", 2, True),
    ("exists_one", 3): ("exists_one", 2, True),
    ("existsOne", 3): ("exists_one", 2, True),
    ("transformList", 3): ("transformList", 2, False),
    ("transformList", 4): ("transformList", 2, True),
    ("transformMap", 3): ("transformMap", 2, False),
    ("transformMap", 4): ("transformMap", 2, True),
    ("transformMapEntry", 3): ("transformMapEntry", 2, False),
    ("transformMapEntry", 4): ("transformMapEntry", 2, True),
}
"""Name and number of arguments → the macro, how many names it binds, whether it has a predicate."""

_ONLY_PREDICATE = frozenset(("all", "exists", "exists_one", "filter"))
_SORTABLE = frozenset(
    (
        "bool", "int", "uint", "double", "string", "bytes", "dyn", "param",
        "google.protobuf.Timestamp", "google.protobuf.Duration",
    )
)  # fmt: skip


USAGE = {
    "all": "list.all(x, x > 0)",
    "exists": "list.exists(x, x > 0)",
    "exists_one": "list.exists_one(x, x > 0)",
    "existsOne": "list.existsOne(x, x > 0)",
    "filter": "list.filter(x, x > 0)",
    "map": "list.map(x, x + 1)",
    "sortBy": "list.sortBy(x, x.name)",
    "transformList": "list.transformList(i, x, x + i)",
    "transformMap": "map.transformMap(k, v, v + 1)",
    "transformMapEntry": "map.transformMapEntry(k, v, {v: k})",
    "optMap": "optional.optMap(x, x + 1)",
    "optFlatMap": "optional.optFlatMap(x, x.?name)",
    "has": "has(record.field)",
    "bind": "cel.bind(name, value, name + name)",
}


def macro_usage(name: str) -> str | None:
    """How the macro of that name is written; None when there is none."""
    return USAGE.get(name)


def check_macro(context: Context, node: ast.CallExpr) -> ir.Node | None:
    """The meaning of a macro; None when the call is none."""
    target = node.target
    if target is None:
        return None
    shape = (node.function, len(node.args))
    if shape in _COMPREHENSIONS:
        return _comprehension(context, node, target)
    if node.function in ("optMap", "optFlatMap") and len(node.args) == 2:
        return _opt_map(context, node, target)
    if isinstance(target, ast.Ident) and target.name == "cel":
        if shape == ("bind", 3):
            return _bind(context, node)
        if shape == ("block", 2) and isinstance(node.args[0], ast.ListLiteral):
            return _block(context, node, node.args[0])
        slot = block_slot(node)
        if slot is not None and slot in context.scope:
            return context.scope[slot]
    return None


def _comprehension(context: Context, node: ast.CallExpr, target: ast.Expr) -> ir.Node:
    macro, count, has_predicate = _COMPREHENSIONS[node.function, len(node.args)]
    walked = context.visit(target)
    names = [_variable(context, node, arg) for arg in node.args[:count]]
    rest = node.args[count:]
    if walked.type == ERROR or None in names:
        return error_at(node)
    if len(set(names)) < count:
        return context.fail(
            "KP205", f"`{names[0]}` stands for two variables", node.args[1].start, node.args[1].end,
            "give them different names, such as `i, v`",
        )  # fmt: skip
    kinds = _elements(context.type(walked), count)
    if kinds is None or (macro == "sortBy" and context.type(walked).name == "map"):
        return context.fail(
            "KP205", f"`{context.text(walked)}` is {spoken(context.type(walked))}, `{node.function}` walks lists"
            + (" and maps" if kinds is None and macro != "sortBy" else ""),
            target.start, target.end, _unwrap_help(context, walked),
        )  # fmt: skip
    variables = {
        name: ir.Var(kind, context.local_name(node, name), True)
        for name, kind in zip(names, kinds, strict=True)
        if name is not None
    }
    with context.bound(variables):
        parts = [context.visit(arg) for arg in rest]
    if any(part.type == ERROR for part in parts):
        return error_at(node)
    predicate = parts[0] if has_predicate else None
    transform = None if macro in _ONLY_PREDICATE else parts[-1]
    if predicate is not None and not condition(context, predicate):
        return error_at(node)
    result = _result(context, macro, context.type(walked), kinds, transform)
    if result is None:
        assert transform is not None
        return _bad_transform(context, macro, transform)
    bound = tuple(variable.name for variable in variables.values())
    return ir.Comprehension(
        result, macro, walked, bound, predicate, transform, start=node.start, end=node.end
    )


def _unwrap_help(context: Context, walked: ir.Node) -> str | None:
    if context.type(walked).name == "optional_type":
        return f"take its value: `{context.text(walked)}.orValue([])`"
    return None


def _variable(context: Context, node: ast.CallExpr, arg: ast.Expr) -> str | None:
    if isinstance(arg, ast.Ident) and not arg.absolute:
        return arg.name
    slot = block_slot(arg)
    if slot is not None:
        return slot
    context.fail(
        "KP205", f"`{context.text(arg)}` is not a simple name", arg.start, arg.end,
        f"write `{USAGE[node.function]}`",
    )  # fmt: skip
    return None


def _elements(walked: Type, count: int) -> tuple[Type, ...] | None:
    """The types of the variables; None when there is nothing to walk."""
    if open_type(walked):
        return (DYN,) * count
    if walked.name == "list":
        return walked.params if count == 1 else (INT, walked.params[0])
    if walked.name == "map":
        return walked.params[:count]
    return None


def _result(
    context: Context, macro: str, walked: Type, kinds: tuple[Type, ...], transform: ir.Node | None
) -> Type | None:
    """The type of a comprehension; None when the transform does not fit the macro."""
    if transform is None:
        return list_of(kinds[0]) if macro == "filter" else BOOL
    given = context.type(transform)
    if macro == "sortBy":
        if given.name not in _SORTABLE:
            return None
        return DYN if open_type(walked) else walked
    if macro == "transformMapEntry":
        if given.name == "map":
            return given
        return map_of(DYN, DYN) if open_type(given) else None
    if macro == "transformMap":
        return map_of(kinds[0], given)
    return list_of(given)


def _bad_transform(context: Context, macro: str, transform: ir.Node) -> ir.Node:
    given = f"`{context.text(transform)}` is {spoken(context.type(transform))}"
    if macro == "sortBy":
        return context.fail(
            "KP205", f"{given}, which has no order to sort by", transform.start, transform.end
        )
    return context.fail(
        "KP205", f"{given}, `{macro}` wants a map of one entry", transform.start, transform.end,
        "write `{newKey: newValue}`",
    )  # fmt: skip


def _opt_map(context: Context, node: ast.CallExpr, target: ast.Expr) -> ir.Node:
    operand = context.visit(target)
    name = _variable(context, node, node.args[0])
    if operand.type == ERROR or name is None:
        return error_at(node)
    whole = context.type(operand)
    if whole.name != "optional_type" and not open_type(whole):
        return context.fail(
            "KP205", f"`{context.text(operand)}` is {spoken(whole)}, `{node.function}` belongs to optionals",
            target.start, target.end,
        )  # fmt: skip
    inner = whole.params[0] if whole.params else DYN
    variable = ir.Var(inner, context.local_name(node, name), True)
    with context.bound({name: variable}):
        body = context.visit(node.args[1])
    if body.type == ERROR:
        return error_at(node)
    given = context.type(body)
    flat = node.function == "optFlatMap"
    if flat and given.name != "optional_type" and not open_type(given):
        return context.fail(
            "KP205", f"`{context.text(body)}` is {spoken(given)}, `optFlatMap` wants an optional",
            body.start, body.end, "write `optMap` for a plain value",
        )  # fmt: skip
    result = (given if given.params else optional_of(DYN)) if flat else optional_of(given)
    return ir.OptMap(result, operand, variable.name, body, flat, start=node.start, end=node.end)


def _bind(context: Context, node: ast.CallExpr) -> ir.Node:
    name = _variable(context, node, node.args[0])
    init = context.visit(node.args[1])
    if name is None:
        return error_at(node)
    # A reported value is bound all the same, so that the body is checked too.
    variable = ir.Var(init.type, context.local_name(node, name), True)
    with context.bound({name: variable}):
        body = context.visit(node.args[2])
    if ERROR in (init.type, body.type):
        return error_at(node)
    return ir.Bind(context.type(body), variable.name, init, body, start=node.start, end=node.end)


def _block(context: Context, node: ast.CallExpr, values: ast.ListLiteral) -> ir.Node:
    """`cel.block([a, b], body)`: an optimiser's list of shared values, each seeing those before it."""
    if len(values.elements) > MAX_DEPTH:
        return context.fail("KP211", "the block holds too many values", node.start, node.end)
    bound: list[tuple[str, ir.Node]] = []
    before = context.scope
    try:
        for at, element in enumerate(values.elements):
            value = context.visit(element)
            name = context.local_name(node, f"index_{at}")
            bound.append((name, value))
            context.scope = {**context.scope, f"@index_{at}": ir.Var(value.type, name, True)}
        body = context.visit(node.args[1])
    finally:
        context.scope = before
    if body.type == ERROR or any(value.type == ERROR for _, value in bound):
        return error_at(node)
    context.expanded += len(bound)
    for name, value in reversed(bound):
        body = ir.Bind(body.type, name, value, body, start=node.start, end=node.end)
    return body
