"""Message literals: the wrappers that stand for plain values; there are no other messages here."""

import struct

from koordpolicy.language.cel import ast, ir
from koordpolicy.language.cel.ast import qualified_name
from koordpolicy.language.cel.checker.context import Context
from koordpolicy.language.cel.checker.names import error_at
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.types import (
    BOOL,
    BYTES_VALUE,
    DOUBLE,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    UINT,
    Type,
    list_of,
    map_of,
)
from koordpolicy.language.cel.values import UInt
from koordpolicy.language.cel.wording import short, spoken

_LIST = list_of(DYN)
_STRUCT = map_of(STRING, DYN)

_MESSAGES: dict[str, dict[str, Type]] = {
    "BoolValue": {"value": BOOL},
    "BytesValue": {"value": BYTES_VALUE},
    "DoubleValue": {"value": DOUBLE},
    "FloatValue": {"value": DOUBLE},
    "Int32Value": {"value": INT},
    "Int64Value": {"value": INT},
    "StringValue": {"value": STRING},
    "UInt32Value": {"value": UINT},
    "UInt64Value": {"value": UINT},
    "ListValue": {"values": _LIST},
    "Struct": {"fields": _STRUCT},
    "Value": {
        "null_value": NULL, "bool_value": BOOL, "number_value": DOUBLE, "string_value": STRING,
        "list_value": _LIST, "struct_value": _STRUCT,
    },
}  # fmt: skip
"""Messages of `google.protobuf` with one value, by the fields that it may stand in."""

_DEFAULTS: dict[Type, object] = {
    BOOL: False, BYTES_VALUE: b"", DOUBLE: 0.0, INT: 0, STRING: "", UINT: UInt(0), NULL: None,
}  # fmt: skip
_PACKAGE = "google.protobuf."
_NULL = "NullValue.NULL_VALUE"


def check_message(context: Context, node: ast.MessageLiteral) -> ir.Node:
    """The value that a wrapper stands for."""
    name = qualified_name(node.name) or ""
    message = next(
        (
            full.removeprefix(_PACKAGE)
            for full in context.environment.candidates(name)
            if full.startswith(_PACKAGE) and full.removeprefix(_PACKAGE) in _MESSAGES
        ),
        None,
    )
    if message is None:
        return context.fail(
            "KP202", f"unknown message type `{name}`", node.name.start, node.name.end,
            "records are maps here: `{'name': value}`",
        )  # fmt: skip
    fields = _MESSAGES[message]
    if not node.fields:
        (wanted, *others) = fields.values()
        return _empty(node, NULL if others else wanted)
    values = [_field(context, message, field, value) for field, value in node.fields]
    if any(value.type == ERROR for value in values):
        return error_at(node)
    if len(values) > 1:
        return context.fail("KP205", f"`{message}` holds one value", node.start, node.end)
    return _narrowed(context, message, values[0])


def _empty(node: ast.Expr, wanted: Type) -> ir.Node:
    if wanted == _LIST:
        return ir.MakeList(_LIST, (), start=node.start, end=node.end)
    if wanted == _STRUCT:
        return ir.MakeMap(_STRUCT, (), start=node.start, end=node.end)
    return constant(wanted, _DEFAULTS[wanted], node.start, node.end)


def _field(context: Context, message: str, field: str, node: ast.Expr) -> ir.Node:
    wanted = _MESSAGES[message].get(field)
    if wanted is None:
        fields = ", ".join(f"`{each}`" for each in _MESSAGES[message])
        return context.fail(
            "KP203", f"`{message}` has no `{field}`", node.start, node.end, f"it has {fields}"
        )
    if wanted == NULL and (qualified_name(node) or "").endswith(_NULL):
        return constant(NULL, None, node.start, node.end)
    value = context.visit(node)
    if value.type == ERROR:
        return value
    if not context.unifier.fits((context.type(value),), (wanted,)):
        return context.fail(
            "KP205", f"`{field}` of `{message}` is {short(wanted)}, `{context.text(value)}` is "
            f"{spoken(context.type(value))}", node.start, node.end,
        )  # fmt: skip
    return value


def _narrowed(context: Context, message: str, value: ir.Node) -> ir.Node:
    """The value within the 32 bits of those wrappers that have no more."""
    if message not in ("Int32Value", "UInt32Value", "FloatValue"):
        return value
    if not isinstance(value, ir.Const):
        return context.fail(
            "KP205", f"the value of `{message}` must be a literal", value.start, value.end,
            f"write `{message.replace('32', '64').replace('Float', 'Double')}`",
        )  # fmt: skip
    number = value.value
    assert isinstance(number, int | float)
    try:
        if message == "FloatValue":
            (number,) = struct.unpack("<f", struct.pack("<f", number))
        else:
            struct.pack("<i" if message == "Int32Value" else "<I", number)
    except (struct.error, OverflowError):
        return context.fail("KP210", f"the value does not fit `{message}`", value.start, value.end)
    return constant(value.type, number, value.start, value.end)
