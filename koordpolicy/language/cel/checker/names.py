"""Names, fields of records, keys of maps, indexes."""

from dataclasses import dataclass, replace

from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.language.cel import ast, ir
from koordpolicy.language.cel.ast import qualified_name, root_of
from koordpolicy.language.cel.checker.context import Context
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.environment import TYPE_NAMES
from koordpolicy.language.cel.habits import called_elsewhere
from koordpolicy.language.cel.types import BOOL, DYN, ERROR, INT, STRING, Type, optional_of, type_of
from koordpolicy.language.cel.values import TypeValue
from koordpolicy.language.cel.wording import several, spoken


@dataclass(frozen=True, slots=True)
class FactGroup:
    """An inner step of a path through a record, such as `node.usage`: no value by itself.

    `optional` when a `?` stands somewhere before it, so that the facts below are optionals.
    """

    base: ir.Node
    record: str
    path: str
    optional: bool
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class NameSpace:
    """`variables`, `parameters` or `constants`: names of the rule graph stand behind it."""

    name: str
    start: int
    end: int


NamedPlace = ir.Node | FactGroup | NameSpace


def check_ident(context: Context, node: ast.Ident) -> ir.Node:
    """A name as a value."""
    return as_value(context, _ident(context, node))


def check_select(context: Context, node: ast.SelectExpr) -> ir.Node:
    """A selection, or `has()` of one, as a value."""
    return as_value(context, place(context, node))


def check_index(context: Context, node: ast.IndexExpr) -> ir.Node:
    """An element of a list or map."""
    where = place(context, node.operand)
    if isinstance(where, FactGroup | NameSpace) or where.type.name == "record":
        return context.fail(
            "KP203", f"`{context.text(where)}` has fields, not keys", node.operand.start, node.end,
            "write a dot and the name of the field",
        )  # fmt: skip
    index = context.visit(node.index)
    if ERROR in (where.type, index.type):
        return error_at(node)
    whole = context.type(where)
    inner = whole.params[0] if whole.name == "optional_type" else whole
    element, key = _element(inner)
    if element is None or key is None:
        return context.fail(
            "KP205", f"`{context.text(where)}` is {spoken(whole)}, it has no elements",
            node.operand.start, node.operand.end,
        )  # fmt: skip
    given = context.type(index)
    if not context.unifier.fits((given,), (key,)):
        what = "a list is indexed by an int" if inner.name == "list" else f"the keys are {key}"
        return context.fail(
            "KP205", f"{what}, `{context.text(index)}` is {spoken(given)}", index.start, index.end,
            "a number that is only known at run time to be a whole one can be wrapped in `int()`"
            if inner.name == "list" and given.is_number else None,
        )  # fmt: skip
    optional = node.optional or whole.name == "optional_type"
    result = optional_of(element) if optional else element
    return ir.Index(result, where, index, node.optional, start=node.start, end=node.end)


def _element(type: Type) -> tuple[Type | None, Type | None]:
    """The types of an element and of its index; both None when there are no elements."""
    if type.name == "list":
        return type.params[0], INT
    if type.name == "map":
        return type.params[1], type.params[0]
    return (DYN, DYN) if type.name in ("dyn", "param") else (None, None)


def place(context: Context, node: ast.Expr) -> NamedPlace:
    """What a chain of selections leads to; unlike a value, it may still be a group."""
    found = _place(context, node)
    if context.watch is not None:
        context.watch(node, found, context.scope)
    return found


def _place(context: Context, node: ast.Expr) -> NamedPlace:
    if isinstance(node, ast.Ident):
        return _ident(context, node)
    if not isinstance(node, ast.SelectExpr):
        return context.visit(node)
    if not (node.test or node.optional):
        whole = _qualified(context, node)
        if whole is not None:
            return whole
    operand = place(context, node.operand)
    if isinstance(operand, FactGroup):
        return _step(context, operand, node)
    if isinstance(operand, NameSpace):
        return _reference(context, operand, node)
    if operand.type == ERROR:
        return error_at(node)
    return _member(context, operand, node)


def as_value(context: Context, where: NamedPlace) -> ir.Node:
    """The value at a place; a group is none, and is reported with what it holds."""
    if isinstance(where, FactGroup):
        children = context.environment.fact_children(where.record, where.path)
        return context.fail(
            "KP203", f"`{context.text(where)}` is a group of facts, not a value", where.start, where.end,
            f"name one of them: {several(children)}" if children else None,
        )  # fmt: skip
    if isinstance(where, NameSpace):
        return context.fail(
            "KP203", f"`{where.name}` is not a value by itself", where.start, where.end,
            f"write `{where.name}.` and a name",
        )  # fmt: skip
    return where


def error_at(node: ast.Expr) -> ir.Node:
    """What stands in for a node in which something was reported already."""
    return ir.Const(ERROR, key="error", start=node.start, end=node.end)


# --- names ------------------------------------------------------------------------------------------


def _ident(context: Context, node: ast.Ident) -> NamedPlace:
    name = node.name
    if not node.absolute:
        local = context.scope.get(name)
        if local is not None:
            return replace(local, start=node.start, end=node.end)
    found = _global(context, name, node.absolute, node)
    if found is not None:
        return found
    if name in context.environment.refs:
        return NameSpace(name, node.start, node.end)
    if context.environment.unchecked:
        return ir.Call(DYN, "error(unbound)", (constant(STRING, name),), start=node.start, end=node.end)
    return _unknown_name(context, node)


def _unknown_name(context: Context, node: ast.Ident) -> ir.Node:
    environment = context.environment
    known = [*context.scope, *environment.variables, *environment.refs]
    close = nearest(node.name, (name for name in known if not name.startswith("@")))
    help = f"did you mean `{close}`?" if close else None
    if help is None:
        homes = [space for space, names in environment.refs.items() if node.name in names]
        if homes:
            help = f"write `{homes[0]}.{node.name}`"
        elif environment.function(node.name) is not None:
            help = f"`{node.name}` is a function: write `{node.name}(..)`"
        elif environment.variables:
            help = f"known here: {several(tuple(sorted(environment.variables)), 'and')}"
    return context.fail("KP202", f"unknown name `{node.name}`", node.start, node.end, help, close)


def _global(context: Context, name: str, absolute: bool, node: ast.Expr) -> ir.Node | None:
    """A declared variable or a type, searched for in the container."""
    environment = context.environment
    names = (name,) if absolute or not environment.container else environment.candidates(name)
    for full in names:
        declared = environment.variables.get(full)
        if declared == ERROR:
            return error_at(node)
        if declared is not None:
            return ir.Var(declared, full, start=node.start, end=node.end)
        denoted = TYPE_NAMES.get(full)
        if denoted is not None:
            return constant(type_of(denoted), TypeValue(denoted.name), node.start, node.end)
    return None


def _qualified(context: Context, node: ast.SelectExpr) -> ir.Node | None:
    """`a.b.c` as one declared name, which goes before a field of `a.b`."""
    environment = context.environment
    root = root_of(node)
    if not isinstance(root, ast.Ident) or (root.name in context.scope and not root.absolute):
        return None
    if root.name not in environment.heads and not environment.container:
        return None
    name = qualified_name(node)
    return None if name is None else _global(context, name, root.absolute, node)


# --- fields -----------------------------------------------------------------------------------------


def _member(context: Context, operand: ir.Node, node: ast.SelectExpr) -> NamedPlace:
    """A field of a value: a fact of a record, or a key of a map."""
    whole = context.type(operand)
    optional = whole.name == "optional_type"
    inner = whole.params[0] if optional else whole
    if inner.name == "record" and inner.record is not None:
        return _step(
            context, FactGroup(operand, inner.record, "", optional, operand.start, operand.end), node
        )
    if inner.name in ("dyn", "param"):
        value = DYN
    elif inner.name == "map" and context.unifier.fits((STRING,), (inner.params[0],)):
        value = inner.params[1]
    else:
        return _no_fields(context, operand, inner, node)
    if node.test:
        result = BOOL
    else:
        result = optional_of(value) if optional or node.optional else value
    return ir.Select(result, operand, node.field, node.optional, node.test, start=node.start, end=node.end)


def _no_fields(context: Context, operand: ir.Node, type: Type, node: ast.SelectExpr) -> ir.Node:
    text, field = context.text(operand), node.field
    why = "its keys are no strings" if type.name == "map" else "it has no fields"
    function = context.environment.function(field)
    method = function is not None and any(
        overload.receiver and overload.params[0].name in (type.name, "param")
        for overload in function.overloads
    )
    usage = called_elsewhere(field)
    help = (
        f"`{field}` is a method: write `{text}.{field}()`"
        if method
        else f"write `{usage}`"
        if usage
        else None
    )
    return context.fail(
        "KP205", f"`{text}` is {spoken(type)}, {why}", node.field_start, node.field_start + len(field), help
    )


def _step(context: Context, group: FactGroup, node: ast.SelectExpr) -> NamedPlace:
    """One step further along a path of facts."""
    environment = context.environment
    path = f"{group.path}.{node.field}" if group.path else node.field
    optional = group.optional or node.optional
    declared = environment.fact_type(group.record, path)
    leaves = (path,) if declared is not None else environment.fact_leaves(group.record, path)
    if not leaves:
        return _unknown_field(context, group, node)
    if node.test:
        return _presence(context, group, leaves, node)
    if declared is None:
        return FactGroup(group.base, group.record, path, optional, node.start, node.end)
    if optional:
        return ir.OptField(optional_of(declared), group.base, path, start=node.start, end=node.end)
    return ir.Field(declared, group.base, path, start=node.start, end=node.end)


def _presence(context: Context, group: FactGroup, leaves: tuple[str, ...], node: ast.SelectExpr) -> ir.Node:
    if not group.optional:
        return ir.HasField(BOOL, group.base, leaves, start=node.start, end=node.end)
    parts: list[ir.Node] = []
    for leaf in leaves:
        declared = context.environment.fact_type(group.record, leaf) or DYN
        field = ir.OptField(optional_of(declared), group.base, leaf, start=node.start, end=node.end)
        parts.append(has_value(field))
    return parts[0] if len(parts) == 1 else ir.Or(BOOL, tuple(parts), start=node.start, end=node.end)


def has_value(optional: ir.Node) -> ir.Node:
    """`o.hasValue()`."""
    return ir.Call(BOOL, ".hasValue(dyn)", (optional,), start=optional.start, end=optional.end)


def _unknown_field(context: Context, group: FactGroup, node: ast.SelectExpr) -> ir.Node:
    field, owner = node.field, context.text(group)
    children = context.environment.fact_children(group.record, group.path)
    close = nearest(field, children)
    elsewhere = () if close else _deeper(context, group, field)
    if field == "age" and "createdAt" in children:
        help: str | None = f"write `now - {owner}.createdAt`, a duration"
        close, elsewhere = None, ()
    elif close:
        help = f"did you mean `{owner}.{close}`?"
    elif elsewhere:
        help = f"did you mean {several(tuple(f'{owner}.{path}' for path in elsewhere), most=4)}?"
    else:
        help = f"it has {several(children, 'and')}" if children else None
    replacement = close or (elsewhere[0] if len(elsewhere) == 1 else None)
    return context.fail(
        "KP203",
        f"`{owner}` has no `{field}`",
        node.field_start,
        node.field_start + len(field),
        help,
        replacement,
    )


def _deeper(context: Context, group: FactGroup, field: str) -> tuple[str, ...]:
    """Paths below a group that lead to a step of this name: `usage.total.cpu` for the `cpu` of a node."""
    prefix = f"{group.path}." if group.path else ""
    found: dict[str, None] = {}
    for leaf in context.environment.fact_leaves(group.record, group.path):
        steps = leaf.removeprefix(prefix).split(".")
        if field in steps:
            found[".".join(steps[: steps.index(field) + 1])] = None
    return tuple(found)


# --- names of the rule graph ------------------------------------------------------------------------

_NOUNS = {"variables": "variable", "parameters": "parameter", "constants": "constant"}


def _reference(context: Context, space: NameSpace, node: ast.SelectExpr) -> ir.Node:
    names = context.environment.refs[space.name]
    declared = names.get(node.field)
    noun = _NOUNS.get(space.name, "name")
    at = (node.field_start, node.field_start + len(node.field))
    if declared is None:
        close = nearest(node.field, names)
        if close:
            help = f"did you mean `{space.name}.{close}`?"
        elif names:
            help = f"known here: {several(tuple(sorted(names)), 'and')}"
        else:
            help = f"no {noun} is defined here"
        code = "KP305" if space.name == "parameters" else "KP202"
        return context.fail(code, f"unknown {noun} `{node.field}`", *at, help, close)
    reference = ir.Ref(declared, space.name, node.field, start=node.start, end=node.end)
    if declared == ERROR:
        return error_at(node)
    if not (node.test or node.optional):
        return reference
    if declared.name != "optional_type":
        return context.fail(
            "KP205", f"{noun} `{node.field}` always has a value", *at,
            "leave `?` out" if node.optional else "leave `has()` out, or declare it `optional: true`",
        )  # fmt: skip
    return has_value(reference) if node.test else reference
