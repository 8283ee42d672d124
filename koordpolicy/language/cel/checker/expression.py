"""From what was written to what is meant: names resolved, types and units checked.

A check never raises for a mistake in the expression. It reports problems, puts an error node in the
place of what it could not understand, and goes on; whatever contains that node stays silent.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from koordpolicy.language.cel import ast, ir, units
from koordpolicy.language.cel.casts import cast, strangers
from koordpolicy.language.cel.checker.calls import check_call
from koordpolicy.language.cel.checker.context import Context, Problem, Watch
from koordpolicy.language.cel.checker.macros import check_macro
from koordpolicy.language.cel.checker.messages import check_message
from koordpolicy.language.cel.checker.names import check_ident, check_index, check_select, error_at
from koordpolicy.language.cel.checker.operands import as_number, as_text
from koordpolicy.language.cel.checker.operators import OPERATORS, check_operator
from koordpolicy.language.cel.checker.quantities import (
    as_double,
    clash,
    operand,
    take_unit,
    zero_as,
)
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.environment import Environment
from koordpolicy.language.cel.ir_change import depth, with_types
from koordpolicy.language.cel.syntax import MAX_TYPED_DEPTH
from koordpolicy.language.cel.types import (
    DOUBLE,
    DYN,
    ERROR,
    INT,
    STRING,
    Type,
    Unit,
    list_of,
    map_of,
)
from koordpolicy.language.cel.values import UInt
from koordpolicy.language.cel.wording import open_type, spoken, spoken_bare, wished

_KEYS = frozenset(("int", "uint", "bool", "string", "dyn", "param"))


def check(node: ast.Expr, environment: Environment, problems: list[Problem], source: str = "") -> ir.Node:
    """The typed form of an expression. Mistakes are appended to `problems`.

    `source` is the text that `node` was parsed from, quoted in messages. After a mistake the result
    is, or holds in place of a part, a constant of type `ERROR`.
    """
    context = _context(environment, problems, source)
    return _finished(context, context.visit(node))


def check_as(
    node: ast.Expr, wanted: Type, environment: Environment, problems: list[Problem], source: str = ""
) -> ir.Node:
    """As `check`, for a value that must be of the type `wanted` (KP208, or KP213 for a lost unit).

    A literal 0 takes any unit, and a literal int stands for a double.
    """
    context = _context(environment, problems, source)
    found = context.visit(node)
    if found.type != ERROR:
        found = _fitted(context, found, wanted)
    return cast(_finished(context, found), wanted)


def watched(node: ast.Expr, environment: Environment, source: str, watch: Watch) -> ir.Node:
    """As `check`, telling `watch` what each part turned out to be, for editors. What is wrong is told nobody."""
    context = _context(environment, [], source)

    def visit(part: ast.Expr) -> ir.Node:
        found = _visit(context, part)
        watch(part, found, context.scope)
        return found

    context.visit, context.watch = visit, watch
    return _finished(context, visit(node))


def _context(environment: Environment, problems: list[Problem], source: str) -> Context:
    def visit(node: ast.Expr) -> ir.Node:
        return _visit(context, node)

    context = Context(environment, problems, source, visit)
    return context


def _finished(context: Context, root: ir.Node) -> ir.Node:
    if context.expanded and depth(root) > MAX_TYPED_DEPTH:
        return context.fail(
            "KP211", "the functions called here nest too deeply", root.start, root.end,
            "bind intermediate results to variables",
        )  # fmt: skip
    return with_types(root, context.unifier.final) if context.unifier.used else root


def _visit(context: Context, node: ast.Expr) -> ir.Node:
    match node:
        case ast.Ident():
            return check_ident(context, node)
        case ast.SelectExpr():
            return check_select(context, node)
        case ast.Literal():
            value = (
                UInt(node.value) if node.type.name == "uint" and isinstance(node.value, int) else node.value
            )
            return constant(node.type, value, node.start, node.end)
        case ast.CallExpr():
            if node.target is None and node.function in OPERATORS:
                return check_operator(context, node)
            found = check_macro(context, node) if context.environment.macros else None
            return check_call(context, node) if found is None else found
        case ast.IndexExpr():
            return check_index(context, node)
        case ast.ListLiteral():
            return _list_literal(context, node)
        case ast.MapLiteral():
            return _map_literal(context, node)
        case ast.MessageLiteral():
            return check_message(context, node)
        case ast.Broken():
            for part in node.parts:
                context.visit(part)
            return error_at(node)
    raise TypeError(f"{type(node).__name__} is no syntax node")


# --- literals of lists and maps ---------------------------------------------------------------------


def _list_literal(context: Context, node: ast.ListLiteral) -> ir.Node:
    elements = [context.visit(element) for element in node.elements]
    if any(element.type == ERROR for element in elements):
        return error_at(node)
    joined = _joined(context, elements, node.optional, "elements of a list")
    if joined is None:
        return error_at(node)
    parts, element = joined
    return ir.MakeList(list_of(element), parts, node.optional, start=node.start, end=node.end)


def _map_literal(context: Context, node: ast.MapLiteral) -> ir.Node:
    keys = [context.visit(key) for key, _ in node.entries]
    values = [context.visit(value) for _, value in node.entries]
    if any(part.type == ERROR for part in (*keys, *values)):
        return error_at(node)
    for key in keys:
        given = context.type(key)
        if given.name not in _KEYS:
            return context.fail(
                "KP205", f"`{context.text(key)}` is {spoken(given)}, which cannot be a key", key.start, key.end,
                "keys are int, uint, bool or string",
            )  # fmt: skip
    joined_keys = _joined(context, keys, frozenset(), "keys of a map")
    joined_values = _joined(context, values, node.optional, "values of a map")
    if joined_keys is None or joined_values is None:
        return error_at(node)
    entries = tuple(zip(joined_keys[0], joined_values[0], strict=True))
    kind = map_of(joined_keys[1], joined_values[1])
    return ir.MakeMap(kind, entries, node.optional, start=node.start, end=node.end)


def _joined(
    context: Context, parts: list[ir.Node], optional: frozenset[int], what: str
) -> tuple[tuple[ir.Node, ...], Type] | None:
    """The parts of a literal and the type that holds them all; None after a report."""
    if not parts:
        return (), context.unifier.fresh()
    if context.environment.unchecked:
        return tuple(parts), DYN
    parts = take_unit(context, parts)
    joined: Type | None = None
    mixed = False
    for at, part in enumerate(parts):
        given = context.type(part)
        if at in optional:
            if given.name != "optional_type" and not open_type(given):
                context.fail(
                    "KP205", f"`{context.text(part)}` is {spoken(given)}, `?` wants an optional",
                    part.start, part.end, "leave the `?` out",
                )  # fmt: skip
                return None
            given = given.params[0] if given.params else DYN
        wider = given if joined is None else context.unifier.join(joined, given)
        if wider is None:
            assert joined is not None
            if context.environment.homogeneous_literals and not context.mixed_literals:
                _report_mixed(context, parts[0], joined, part, given, what)
                return None
            mixed = True
        else:
            joined = wider
    return tuple(parts), DYN if mixed or joined is None else joined


def _report_mixed(
    context: Context, first: ir.Node, joined: Type, part: ir.Node, given: Type, what: str
) -> None:
    if joined.is_number and given.is_number and joined.unit != given.unit:
        clash(context, ",", operand(context, first), operand(context, part), part)
        return
    help = "wrap the whole literal in `dyn()` where that is meant"
    if joined == STRING and given.is_number:
        help = _text_of(context, part) or help
    context.fail(
        "KP205",
        f"the {what} differ in type: `{context.text(first)}` is {spoken(joined)}, "
        f"`{context.text(part)}` is {spoken(given)}",
        part.start, part.end, help,
    )  # fmt: skip


def _text_of(context: Context, part: ir.Node) -> str | None:
    """How a number is written where a text belongs."""
    written = context.text(part)
    plain = isinstance(part, ir.Const) and context.type(part).unit is None
    return f"write it as a text: `'{written}'`" if plain else as_text(context, part)


def _value_of_map(context: Context, node: ir.MakeMap, wanted: Type) -> str | None:
    """What to do about the first value of a map that is no text where all are to be."""
    if wanted.params[-1] != STRING:
        return None
    other = next((value for _, value in node.entries if context.type(value) != STRING), None)
    return None if other is None else _text_of(context, other)


_WHOLES: Final[Mapping[Unit | None, str]] = MappingProxyType({Unit.CPU: "cpu", Unit.BYTES: "memory"})
_COUNTED: Final[Mapping[Unit | None, str]] = MappingProxyType({Unit.CPU: "millicores", Unit.BYTES: "bytes"})
"""What a quantity is divided by to become a share, and what its bare number counts."""


# --- the type that is wanted ------------------------------------------------------------------------


def _fitted(context: Context, node: ir.Node, wanted: Type) -> ir.Node:
    given = context.type(node)
    if wanted.unit is not None and (zero := zero_as(node, wanted)) is not None:
        return zero
    if given == INT and wanted == DOUBLE and isinstance(node, ir.Const):
        return as_double(node)
    if given.name != "null_type" and context.unifier.fits((given,), (wanted,)):
        refused = [_fitted(context, one, wanted) for one in strangers(node, wanted) if one is not node]
        return refused[0] if refused else node
    text = context.text(node)
    help: str | None = None
    replacement: str | None = None
    if given.is_number and given.unit is None and wanted.unit is not None:
        code, message = "KP213", f"`{text}` is a bare number, {wished(wanted)} is wanted"
        bare = operand(context, node)
        help, replacement = units.give_unit(bare, wanted.unit), units.spelling(bare, wanted.unit)
    else:
        code, message = "KP208", f"`{text}` is {spoken_bare(given)}, {wished(wanted)} is wanted"
        if given.name == "optional_type":
            help = f"say what holds without a value: `{text}.orValue(..)`"
        elif given.unit is Unit.PERCENT and wanted == DOUBLE:
            help = f"write `ratio({text})` for the share or `double({text})` for the points"
        elif given.unit in _WHOLES and wanted == DOUBLE:
            whole = f"node.allocatable.{_WHOLES[given.unit]}"
            help = f"divide it: `{text} / {whole} * 100.0` is a share from 0 to 100; `double({text})` counts {_COUNTED[given.unit]}"
        elif given.is_number and wanted.is_number and wanted.unit is None:
            help = f"convert it: `{wanted.name}({text})`"
        elif wanted.name == "string":
            help = as_text(context, node)
        elif wanted.name == "map" and isinstance(node, ir.MakeMap):
            help = _value_of_map(context, node, wanted)
        elif given == STRING and wanted.is_number and not isinstance(node, ir.Cond):
            help = as_number(context, node, wanted)
    return context.fail(code, message, node.start, node.end, help, replacement)
