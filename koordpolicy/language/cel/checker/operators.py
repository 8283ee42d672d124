"""Operators: arithmetic, comparison, logic and the conditional."""

from koordpolicy.language.cel import ast, ir, units
from koordpolicy.language.cel.checker.comparisons import check_equality, check_membership, check_relation
from koordpolicy.language.cel.checker.context import Context
from koordpolicy.language.cel.checker.logic import check_conditional, check_logic, condition
from koordpolicy.language.cel.checker.names import error_at
from koordpolicy.language.cel.checker.operands import call, no_operator, settled, sign_of
from koordpolicy.language.cel.checker.quantities import as_double, clash, is_zero, operand, take_unit
from koordpolicy.language.cel.types import (
    BOOL,
    BYTES_VALUE,
    DOUBLE,
    DURATION,
    DYN,
    ERROR,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
)
from koordpolicy.language.cel.wording import open_type, spoken

_NUMBERS = (INT, UINT, DOUBLE)

_ARITHMETIC: dict[str, tuple[tuple[Type, Type, Type], ...]] = {
    "_+_": (
        *((number, number, number) for number in _NUMBERS),
        (STRING, STRING, STRING),
        (BYTES_VALUE, BYTES_VALUE, BYTES_VALUE),
        (TIMESTAMP, DURATION, TIMESTAMP),
        (DURATION, TIMESTAMP, TIMESTAMP),
        (DURATION, DURATION, DURATION),
    ),
    "_-_": (
        *((number, number, number) for number in _NUMBERS),
        (TIMESTAMP, TIMESTAMP, DURATION),
        (TIMESTAMP, DURATION, TIMESTAMP),
        (DURATION, DURATION, DURATION),
    ),
    "_*_": tuple((number, number, number) for number in _NUMBERS),
    "_/_": tuple((number, number, number) for number in _NUMBERS),
    "_%_": ((INT, INT, INT), (UINT, UINT, UINT)),
}
"""Left, right and result of each overload, without units and lists."""

_RESULTS = {
    (operator, left.name, right.name): result
    for operator, rows in _ARITHMETIC.items()
    for left, right, result in rows
}
_RELATIONS = frozenset(("_<_", "_<=_", "_>_", "_>=_"))
_EQUALITIES = frozenset(("_==_", "_!=_"))

OPERATORS = frozenset((*_ARITHMETIC, *_RELATIONS, *_EQUALITIES, "@in", "_&&_", "_||_", "_?_:_", "!_", "-_"))


def check_operator(context: Context, node: ast.CallExpr) -> ir.Node:
    """The meaning of an operator on its checked operands."""
    name = node.function
    args = [context.visit(arg) for arg in node.args]
    if any(arg.type == ERROR for arg in args):
        return error_at(node)
    if name in ("_&&_", "_||_"):
        return check_logic(context, node, args)
    if name == "_?_:_":
        return check_conditional(context, node, args)
    if name in ("!_", "-_"):
        return _prefix(context, node, args[0])
    if name in _EQUALITIES:
        return check_equality(context, node, args)
    if name == "@in":
        return check_membership(context, node, args)
    return check_relation(context, node, args) if name in _RELATIONS else _arithmetic(context, node, args)


def _arithmetic(context: Context, node: ast.CallExpr, args: list[ir.Node]) -> ir.Node:
    name = node.function
    left, right = settled(context, args)
    if left.unit is not None or right.unit is not None:
        return _with_units(context, node, args)
    result = _RESULTS.get((name, left.name, right.name))
    if result is not None:
        if right.is_number and name in ("_/_", "_%_") and _divides_by_zero(context, node, args[1]):
            return error_at(node)
        return call(node, f"{name}({left.name},{right.name})", result, args)
    if name == "_+_" and left.name == right.name == "list":
        joined = context.unifier.join(left, right)
        if joined is not None:
            return call(node, "_+_(list,list)", joined, args)
    if open_type(left) or open_type(right):
        results = _open_results(name, left, right)
        if results:
            only = results.pop() if len(results) == 1 else DYN
            return call(node, f"{name}(dyn,dyn)", only, args)
    return no_operator(context, node, left, right, args)


def _open_results(name: str, left: Type, right: Type) -> set[Type]:
    """What the overloads give that a known side leaves open."""
    results = {
        result for one, other, result in _ARITHMETIC[name]
        if (open_type(left) or left.name == one.name) and (open_type(right) or right.name == other.name)
    }  # fmt: skip
    if name == "_+_" and all(open_type(side) or side.name == "list" for side in (left, right)):
        results.add(list_of(DYN))
    return results


def _with_units(context: Context, node: ast.CallExpr, args: list[ir.Node]) -> ir.Node:
    """Arithmetic on quantities, where at least one side has a unit."""
    name = node.function
    if name in ("_+_", "_-_", "_%_"):
        args = list(take_unit(context, args))
    left, right = context.type(args[0]), context.type(args[1])
    if open_type(left) or open_type(right):
        known = right if open_type(left) else left
        kept = known if name in ("_+_", "_-_") else DYN
        return call(node, f"{name}(dyn,dyn)", kept, args)
    if not (left.is_number and right.is_number):
        return no_operator(context, node, left, right, args)
    plan = units.arithmetic(name, left, right)
    if plan is None:
        return clash(context, sign_of(node), operand(context, args[0]), operand(context, args[1]), node)
    if name in ("_/_", "_%_") and _divides_by_zero(context, node, args[1], always=True):
        return error_at(node)
    if plan.widen:
        args = [as_double(arg) if arg.type == INT else arg for arg in args]
    if plan.swap:
        args.reverse()
    return call(node, plan.overload, plan.result, args)


def _divides_by_zero(context: Context, node: ast.CallExpr, divisor: ir.Node, always: bool = False) -> bool:
    """Report a literal zero below a division that would fail every time."""
    fails = always or divisor.type.name != "double"
    if not (context.environment.literal_checks and fails and is_zero(divisor, any_unit=True)):
        return False
    context.fail(
        "KP212",
        f"`{context.text(node)}` divides by zero",
        divisor.start,
        divisor.end,
        "write the divisor that was meant; one that may be 0 is tested first: `d == 0 ? 0 : n / d`",
    )
    return True


def _prefix(context: Context, node: ast.CallExpr, arg: ir.Node) -> ir.Node:
    given = context.type(arg)
    if node.function == "!_":
        if not condition(context, arg):
            return error_at(node)
        return call(node, f"!_({'dyn' if open_type(given) else 'bool'})", BOOL, [arg])
    if open_type(given):
        return call(node, "-_(dyn)", DYN, [arg])
    if given.name in ("int", "double"):
        return call(node, f"-_({given.name})", given, [arg])
    return context.fail(
        "KP205", f"`{context.text(arg)}` is {spoken(given)}, it has no negative", node.start, node.end,
        f"convert it: `-int({context.text(arg)})`" if given == UINT else None,
    )  # fmt: skip
