"""What computing a node costs: what it charges the meter for sizes, and units of each step of a loop."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.functions import Overload, is_small
from koordpolicy.language.cel.library.row import CALL
from koordpolicy.language.cel.lower.operators import OPERATORS, specialise
from koordpolicy.language.cel.prices import is_operator, own_price
from koordpolicy.language.cel.values_equality import ELEMENT

Overloads: TypeAlias = Callable[[str], Overload | None]
"""The overload with an id; None for an id that asks for dispatch."""

SCALARS = frozenset(
    (
        "bool", "int", "uint", "double", "string", "bytes", "null_type", "type", "net.IP", "net.CIDR",
        "kubernetes.Quantity", "kubernetes.URL",
    )
)  # fmt: skip
TIMES = frozenset(("google.protobuf.Timestamp", "google.protobuf.Duration"))
_PLAIN = frozenset(("bool", "int", "uint", "double")) | TIMES
"""Types whose values are all of one size."""


def charges(overloads: Overloads, node: ir.Node) -> bool:
    """Whether computing a node may charge the meter for the sizes of its operands."""
    if isinstance(node, ir.Comprehension):
        return True
    if isinstance(node, ir.Cast):
        return bool(node.type.params)
    if not isinstance(node, ir.Call):
        return False
    if node.overload in ("_==_", "_!=_"):
        a, b = (argument.type.name for argument in node.args)
        return "null_type" not in (a, b) and not (a == b and (a in SCALARS or a in TIMES))
    if node.overload.startswith("@in("):
        return True
    row = specialise(node.overload, node.args) or OPERATORS.get(node.overload)
    if row is not None:
        return row.charges
    overload = overloads(node.overload)
    return overload is None or (overload.metered is not None and not is_priced(overload, node))


def is_priced(overload: Overload, node: ir.Call) -> bool:
    """Whether the price of a call is known beforehand, as the function is given few values that are written out."""
    return not overload.charges and node.type.name in _PLAIN and all(map(_is_small, node.args))


def _is_small(node: ir.Node) -> bool:
    if isinstance(node, ir.MakeList):
        return (
            is_small(len(node.elements), False)
            and not node.optional
            and all(element.type.name in _PLAIN for element in node.elements)
        )
    if isinstance(node, ir.Const) and isinstance(node.value, str | bytes):
        return is_small(len(node.value), True)
    return node.type.name in _PLAIN


STEP: Mapping[str, int] = MappingProxyType(
    {
        "all": 2, "exists": 2, "exists_one": 2, "filter": 2, "map": 2, "transformList": 2, "transformMap": 2 * ELEMENT,
        "transformMapEntry": ELEMENT, "sortBy": 2 * CALL,
    }
)  # fmt: skip
"""Units of one step of each macro, beside its body."""


def step_price(overloads: Overloads, node: ir.Node) -> int:
    """What a node costs in each step of a loop, apart from what it charges itself."""
    if not isinstance(node, ir.Call) or is_operator(node.overload):
        return own_price(node)
    if charges(overloads, node):
        return 0
    overload = overloads(node.overload)
    if overload is None or specialise(node.overload, node.args) or node.overload in OPERATORS:
        return own_price(node)
    return max(own_price(node), overload.usual_price)
