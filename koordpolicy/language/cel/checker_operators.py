"""Operators: arithmetic, comparison, logic and the conditional."""

from dataclasses import replace

from koordpolicy.language.cel import ast, ir, units
from koordpolicy.language.cel.checker_context import Context, constant
from koordpolicy.language.cel.checker_names import error_at
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
from koordpolicy.language.cel.wording import spoken

_NUMBERS = (INT, UINT, DOUBLE)
_ORDERED = (BOOL, INT, UINT, DOUBLE, STRING, BYTES_VALUE, TIMESTAMP, DURATION)

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


def check_operator(context: Context, node: ast.Call) -> ir.Node:
    """The meaning of an operator on its checked operands."""
    name = node.function
    args = [context.visit(arg) for arg in node.args]
    if any(arg.type == ERROR for arg in args):
        return error_at(node)
    if name in ("_&&_", "_||_"):
        return _logic(context, node, args)
    if name == "_?_:_":
        return _conditional(context, node, args)
    if name in ("!_", "-_"):
        return _prefix(context, node, args[0])
    if name in _EQUALITIES:
        return _equality(context, node, args)
    if name == "@in":
        return _membership(context, node, args)
    return _relation(context, node, args) if name in _RELATIONS else _arithmetic(context, node, args)


def open_type(type: Type) -> bool:
    """Whether only run time can tell."""
    return type.name in ("dyn", "param")


# --- arithmetic -------------------------------------------------------------------------------------


def _arithmetic(context: Context, node: ast.Call, args: list[ir.Node]) -> ir.Node:
    name = node.function
    left, right = _settled(context, args)
    if left.unit is not None or right.unit is not None:
        return _with_units(context, node, args)
    result = _RESULTS.get((name, left.name, right.name))
    if result is not None:
        if right.is_number and name in ("_/_", "_%_") and _divides_by_zero(context, node, args[1]):
            return error_at(node)
        return _call(node, f"{name}({left.name},{right.name})", result, args)
    if name == "_+_" and left.name == right.name == "list":
        joined = context.unifier.join(left, right)
        if joined is not None:
            return _call(node, "_+_(list,list)", joined, args)
    if open_type(left) or open_type(right):
        results = _open_results(name, left, right)
        if results:
            only = results.pop() if len(results) == 1 else DYN
            return _call(node, f"{name}(dyn,dyn)", only, args)
    return _no_operator(context, node, left, right, args)


def _open_results(name: str, left: Type, right: Type) -> set[Type]:
    """What the overloads give that a known side leaves open."""
    results = {
        result for one, other, result in _ARITHMETIC[name]
        if (open_type(left) or left.name == one.name) and (open_type(right) or right.name == other.name)
    }  # fmt: skip
    if name == "_+_" and all(open_type(side) or side.name == "list" for side in (left, right)):
        results.add(list_of(DYN))
    return results


def _settled(context: Context, args: list[ir.Node]) -> tuple[Type, Type]:
    """The types of two operands; the element of an empty list takes the type of the other side."""
    left, right = context.type(args[0]), context.type(args[1])
    if left.name == "param" and not open_type(right):
        context.unifier.fits((left,), (right,))
        return right, right
    if right.name == "param" and not open_type(left):
        context.unifier.fits((right,), (left,))
        return left, left
    return left, right


def _with_units(context: Context, node: ast.Call, args: list[ir.Node]) -> ir.Node:
    """Arithmetic on quantities, where at least one side has a unit."""
    name = node.function
    if name in ("_+_", "_-_", "_%_"):
        args = list(take_unit(context, args))
    left, right = context.type(args[0]), context.type(args[1])
    if open_type(left) or open_type(right):
        known = right if open_type(left) else left
        kept = known if name in ("_+_", "_-_") else DYN
        return _call(node, f"{name}(dyn,dyn)", kept, args)
    if not (left.is_number and right.is_number):
        return _no_operator(context, node, left, right, args)
    plan = units.arithmetic(name, left, right)
    if plan is None:
        return _clash(context, node, args)
    if name in ("_/_", "_%_") and _divides_by_zero(context, node, args[1], always=True):
        return error_at(node)
    if plan.widen:
        args = [as_double(arg) if arg.type == INT else arg for arg in args]
    if plan.swap:
        args.reverse()
    return _call(node, plan.overload, plan.result, args)


def _divides_by_zero(context: Context, node: ast.Call, divisor: ir.Node, always: bool = False) -> bool:
    """Report a literal zero below a division that would fail every time."""
    fails = always or divisor.type.name != "double"
    if not (context.environment.literal_checks and fails and _is_zero(divisor, any_unit=True)):
        return False
    context.fail("KP212", f"`{context.text(node)}` divides by zero", divisor.start, divisor.end)
    return True


def as_double(node: ir.Node) -> ir.Node:
    """An int as a double."""
    if isinstance(node, ir.Const) and isinstance(node.value, int):
        return constant(DOUBLE, float(node.value), node.start, node.end)
    return ir.Call(DOUBLE, "double(int)", (node,), start=node.start, end=node.end)


def take_unit(context: Context, args: list[ir.Node]) -> list[ir.Node]:
    """The operands with literal zeros given the unit of the others: `x > 0`, `max(x, 0)`."""
    quantity = next((found for arg in args if (found := context.type(arg)).unit is not None), None)
    if quantity is None:
        return args
    return [zero_as(arg, quantity) or arg for arg in args]


def zero_as(node: ir.Node, wanted: Type) -> ir.Node | None:
    """A literal zero as a quantity; also where each branch of a conditional is zero or such a quantity."""
    if node.type == wanted:
        return node
    if _is_zero(node):
        return constant(wanted, 0.0 if wanted.name == "double" else 0, node.start, node.end)
    if isinstance(node, ir.Cond):
        then, otherwise = zero_as(node.then, wanted), zero_as(node.otherwise, wanted)
        if then is not None and otherwise is not None:
            return replace(node, type=wanted, then=then, otherwise=otherwise)
    return None


def _is_zero(node: ir.Node, any_unit: bool = False) -> bool:
    return (
        isinstance(node, ir.Const)
        and node.type.name in ("int", "uint", "double")
        and (any_unit or (node.type.unit is None and node.type.name != "uint"))
        and node.value == 0
    )


def operand(context: Context, node: ir.Node) -> units.Operand:
    """An operand as messages speak of it."""
    value = node.value if isinstance(node, ir.Const) else None
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
    return units.Operand(context.type(node), context.text(node), number)


def _clash(context: Context, node: ast.Call, args: list[ir.Node]) -> ir.Node:
    sign = "in" if node.function == "@in" else node.function[1:-1]
    code, message, help = units.clash(sign, operand(context, args[0]), operand(context, args[1]))
    return context.fail(code, message, node.start, node.end, help)


# --- comparison -------------------------------------------------------------------------------------


def _relation(context: Context, node: ast.Call, args: list[ir.Node]) -> ir.Node:
    name = node.function
    left, right = _settled(context, args)
    if left.unit is not None or right.unit is not None:
        matched = _matched(context, node, args)
        if not isinstance(matched, list):
            return matched
        args = matched
        left, right = context.type(args[0]), context.type(args[1])
    if open_type(left) or open_type(right):
        if all(open_type(side) or side.name in _ORDERED_NAMES for side in (left, right)):
            return _call(node, f"{name}(dyn,dyn)", BOOL, args)
    elif left.name in _ORDERED_NAMES and (left.name == right.name or (left.is_number and right.is_number)):
        return _call(node, f"{name}({left.name},{right.name})", BOOL, args)
    return _no_operator(context, node, left, right, args)


_ORDERED_NAMES = frozenset(each.name for each in _ORDERED)


def _matched(context: Context, node: ast.Call, args: list[ir.Node]) -> list[ir.Node] | ir.Node:
    """Two operands to compare, brought to one unit, or the error node of the report."""
    args = take_unit(context, args)
    left, right = context.type(args[0]), context.type(args[1])
    if not (left.is_number and right.is_number) or left.unit == right.unit:
        return args
    if units.comparable_as_share(left, right):
        return [arg if context.type(arg).unit is None else _as_share(arg) for arg in args]
    return _clash(context, node, args)


def _as_share(node: ir.Node) -> ir.Node:
    return ir.Call(DOUBLE, "ratio(percent)", (node,), start=node.start, end=node.end)


def _equality(context: Context, node: ast.Call, args: list[ir.Node]) -> ir.Node:
    left, right = context.type(args[0]), context.type(args[1])
    if left.unit is not None or right.unit is not None:
        matched = _matched(context, node, args)
        if not isinstance(matched, list):
            return matched
        args = matched
        left, right = context.type(args[0]), context.type(args[1])
    if context.unifier.join(left, right) is None:
        help = None
        if left.is_number and right.is_number:
            help = "convert one side, or wrap it in `dyn()` to compare across number types"
        elif STRING in (left, right):
            other = args[1] if left == STRING else args[0]
            help = f"compare texts: `string({context.text(other)})`"
        return context.fail(
            "KP205",
            f"`{context.text(args[0])}` is {spoken(left)}, `{context.text(args[1])}` is {spoken(right)}: "
            "they are never equal",
            node.start, node.end, help,
        )  # fmt: skip
    return _call(node, node.function, BOOL, args)


def _membership(context: Context, node: ast.Call, args: list[ir.Node]) -> ir.Node:
    element, container = context.type(args[0]), context.type(args[1])
    if open_type(container):
        return _call(node, "@in(dyn,dyn)", BOOL, args)
    if container.name not in ("list", "map"):
        return context.fail(
            "KP205", f"`{context.text(args[1])}` is {spoken(container)}; `in` looks into lists and maps",
            args[1].start, args[1].end,
            "use `text.contains(part)` for a part of a string" if container == STRING else None,
        )  # fmt: skip
    inner = container.params[0]
    if inner.unit is not None and (taken := zero_as(args[0], inner)) is not None:
        args = [taken, args[1]]
    elif not context.unifier.fits((element,), (inner,)):
        what = "elements" if container.name == "list" else "keys"
        return context.fail(
            "KP204" if element.unit != inner.unit and element.is_number and inner.is_number else "KP205",
            f"`{context.text(args[0])}` is {spoken(element)}, the {what} of `{context.text(args[1])}` are {inner}",
            node.start, node.end,
        )  # fmt: skip
    return _call(node, f"@in(dyn,{container.name})", BOOL, args)


# --- logic ------------------------------------------------------------------------------------------


def condition(context: Context, node: ir.Node) -> bool:
    """Whether a node can be a condition; reported when it cannot."""
    given = context.type(node)
    if given.name == "bool" or open_type(given):
        return True
    if given.is_number:
        help: str | None = f"compare it: `{context.text(node)} != 0`"
    elif given.name in ("string", "list", "map", "bytes"):
        help = f"ask for its size: `size({context.text(node)}) > 0`"
    elif given.name == "optional_type":
        help = f"ask whether it has a value: `{context.text(node)}.hasValue()`"
    else:
        help = None
    context.fail(
        "KP205", f"`{context.text(node)}` is {spoken(given)}, a condition is true or false",
        node.start, node.end, help,
    )  # fmt: skip
    return False


def _logic(context: Context, node: ast.Call, args: list[ir.Node]) -> ir.Node:
    conditions = [condition(context, arg) for arg in args]  # each is reported, not only the first
    if not all(conditions):
        return error_at(node)
    make = ir.And if node.function == "_&&_" else ir.Or
    return make(BOOL, tuple(args), start=node.start, end=node.end)


def _conditional(context: Context, node: ast.Call, args: list[ir.Node]) -> ir.Node:
    test, then, otherwise = args
    if not condition(context, test):
        return error_at(node)
    if context.environment.unchecked:
        return ir.Cond(DYN, test, then, otherwise, start=node.start, end=node.end)
    then, otherwise = take_unit(context, [then, otherwise])
    left, right = context.type(then), context.type(otherwise)
    joined = context.unifier.join(left, right)
    if joined is None:
        if left.is_number and right.is_number and left.unit != right.unit:
            code, message, help = units.clash(":", operand(context, then), operand(context, otherwise))
            return context.fail(code, message, node.start, node.end, help)
        return context.fail(
            "KP205",
            f"`{context.text(then)}` is {spoken(left)}, `{context.text(otherwise)}` is {spoken(right)}: "
            "both branches must give one type",
            node.start, node.end, "convert one of them, or wrap it in `dyn()`",
        )  # fmt: skip
    return ir.Cond(joined, test, then, otherwise, start=node.start, end=node.end)


def _prefix(context: Context, node: ast.Call, arg: ir.Node) -> ir.Node:
    given = context.type(arg)
    if node.function == "!_":
        if not condition(context, arg):
            return error_at(node)
        return _call(node, f"!_({'dyn' if open_type(given) else 'bool'})", BOOL, [arg])
    if open_type(given):
        return _call(node, "-_(dyn)", DYN, [arg])
    if given.name in ("int", "double"):
        return _call(node, f"-_({given.name})", given, [arg])
    return context.fail(
        "KP205", f"`{context.text(arg)}` is {spoken(given)}, it has no negative", node.start, node.end,
        f"convert it: `-int({context.text(arg)})`" if given == UINT else None,
    )  # fmt: skip


# --- making nodes -----------------------------------------------------------------------------------


def _call(node: ast.Node, overload: str, result: Type, args: list[ir.Node]) -> ir.Node:
    return ir.Call(result, overload, tuple(args), start=node.start, end=node.end)


_VERBS = {"_+_": "added", "_-_": "subtracted", "_*_": "multiplied", "_/_": "divided", "_%_": "divided"}


def _no_operator(context: Context, node: ast.Call, left: Type, right: Type, args: list[ir.Node]) -> ir.Node:
    verb = _VERBS.get(node.function, "compared")
    if left == right:
        message = f"`{context.text(args[0])}` and `{context.text(args[1])}` are {spoken(left)} each, they cannot be {verb}"
    else:
        message = (
            f"`{context.text(args[0])}` is {spoken(left)}, `{context.text(args[1])}` is {spoken(right)}: "
            f"they cannot be {verb}"
        )
    return context.fail("KP205", message, node.start, node.end, _conversion(context, left, right, args))


def _conversion(context: Context, left: Type, right: Type, args: list[ir.Node]) -> str | None:
    """How two operands of different types might be brought together."""
    if left.is_number and right.is_number:
        target = "double" if "double" in (left.name, right.name) else "int"
        other = args[0] if left.name != target else args[1]
        text = context.text(other)
        if isinstance(other, ir.Const) and other.type == INT:
            return f"write `{text}.0`"
        return f"convert it: `{target}({text})`"
    for one, other in ((left, args[1]), (right, args[0])):
        if one == STRING and "optional_type" not in (left.name, right.name):
            return f"convert it: `string({context.text(other)})`"
    for side, node in ((left, args[0]), (right, args[1])):
        if side.name == "optional_type":
            return f"take its value: `{context.text(node)}.orValue(..)`"
    return None
