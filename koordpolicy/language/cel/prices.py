"""What a node of the typed form costs by itself, whatever the sizes of its operands: the same in loops and estimates.

What depends on sizes is priced by the rows of the function table, and for operators here.
"""

from collections.abc import Iterable

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.functions import Size
from koordpolicy.language.cel.library.row import CALL, tenths
from koordpolicy.language.cel.types import Type
from koordpolicy.language.cel.values_equality import ELEMENT, LONG_TEXT

DISPATCHED = 60
"""Units of a call whose overload is picked at run time."""

ABSORBED = 30
"""Units of an error that is raised in a loop, and absorbed there."""

COMPREHENSION = 12
"""Units of a macro, beside its steps."""

KEY = 16
"""Units of bringing one key of a map in order."""

_DYNAMIC = 12
_MIXED_NUMBERS = frozenset(
    f"({a},{b})" for a in ("int", "uint", "double", "dyn") for b in ("int", "uint", "double", "dyn") if a != b
)


def own_price(node: ir.Node) -> int:
    """Units of the node itself, operands and bodies apart."""
    match node:
        case ir.Field() | ir.Var():  # most nodes
            return 1
        case ir.Const() | ir.Bind():
            return 0
        case ir.HasField(paths=paths):
            return len(paths)
        case ir.OptField() | ir.OptMap() | ir.OrElse():
            return CALL
        case ir.Cast():
            return 10 * CALL
        case ir.Select(operand=operand) | ir.Index(operand=operand):
            return CALL if operand.type.name in ("map", "list") else 2 * CALL
        case ir.And(args=args) | ir.Or(args=args):
            return len(args)
        case ir.MakeList(elements=elements):
            return CALL + len(elements) + CALL * len(node.optional)
        case ir.MakeMap(entries=entries):
            return CALL + (ELEMENT + CALL) * len(entries)
        case ir.Comprehension():
            return COMPREHENSION
        case ir.Call():
            return _call(node)
    return 1


def _call(node: ir.Call) -> int:
    name, _, kinds = node.overload.partition("(")
    if name in ("_==_", "_!=_"):
        a, b = (argument.type.name for argument in node.args)
        return 2 if a == b and a not in ("list", "map", "dyn", "optional_type") else _DYNAMIC
    if not is_operator(name):
        return CALL if name.removeprefix(".") in _QUICK else 4 * CALL
    return _DYNAMIC if "dyn" in kinds or f"({kinds}" in _MIXED_NUMBERS else 2


_QUICK = frozenset(
    (
        "amount", "bytesOf", "contains", "double", "dyn", "endsWith", "first", "hasValue", "int", "last", "max",
        "millicores", "min", "number", "optional.none", "optional.of", "percent", "ratio", "size", "startsWith",
        "string", "type", "value",
    )
)  # fmt: skip
"""Functions that are written out in place, or that do no more than look something up."""


def is_operator(name: str) -> bool:
    """Whether the part of an overload's id before its types is an operator's, not a function's."""
    return name.startswith(("_", "-", "!", "@"))


def operator_price(node: ir.Call, sizes: tuple[Size, ...]) -> int:
    """Units that an operator takes for the sizes of its operands, beside its own price."""
    name = node.overload.partition("(")[0]
    kinds = tuple(argument.type.name for argument in node.args)
    if name == "_+_":
        text = all(kind in ("string", "bytes") for kind in kinds)
        return tenths(sizes[0].length + sizes[1].length) if text else sum(_lengths(kinds, sizes))
    if name == "@in":
        if kinds[1] == "map":
            return _long(sizes[0].length)
        return _membership(node, sizes)
    if name in ("_==_", "_!=_"):
        held = tuple(_held(argument.type) for argument in node.args)
        opened = 0 if held == kinds else 2 * ELEMENT
        if all(kind in ("string", "bytes") for kind in held):
            return opened + _long(min(size.length for size in sizes))
        if not any(kind in _PARTED for kind in held):
            return opened
        return opened + 2 * ELEMENT * min(size.extent for size in sizes)
    if name in ("_<_", "_<=_", "_>_", "_>=_"):
        return 2 * _long(min(_lengths(kinds, sizes), default=0))
    return 0


def _held(kind: Type) -> str:
    """The name of a type, of what an optional may hold for one of those."""
    return kind.params[0].name if kind.name == "optional_type" and kind.params else kind.name


def _membership(node: ir.Call, sizes: tuple[Size, ...]) -> int:
    """Lists of one plain type are searched by Python, and constant ones are no longer than the expression."""
    needle, container = node.args
    element = container.type.params[0] if container.type.name == "list" else container.type
    if element.name != needle.type.name or needle.type.name not in ("string", "int", "bool"):
        return ELEMENT * sizes[1].length + ELEMENT * sizes[1].extent
    if isinstance(container, ir.Const):
        return 0
    return sizes[1].length * (1 + sizes[0].length // 256)


_PARTED = frozenset(("list", "map", "dyn", "optional_type", "record"))
_SIZED = frozenset(("string", "bytes", "list", "map", "dyn"))


def _lengths(kinds: Iterable[str], sizes: Iterable[Size]) -> list[int]:
    return [size.length for kind, size in zip(kinds, sizes, strict=True) if kind in _SIZED]


def _long(characters: int) -> int:
    """Units of comparing or hashing a text: none where it is short."""
    return 0 if characters <= LONG_TEXT else characters // 256
