"""What keeps an expression from Google's C++ runtime: names of ours, and known deviations with their reason.

Those of cel-python are in `koordpolicy.graph.testing.celpython`, which users have too.
"""

import re
from collections.abc import Callable

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.types import DURATION, TIMESTAMP
from koordpolicy.language.cel.walk import children

_NAME = re.compile(r"\.?([^(]*)")

OURS = frozenset(
    {
        "cpu", "memory", "millicores", "percent", "ratio", "number", "scale", "percent_of", "quotient", "divide",
        "min", "max", "sum", "percentText", "isSorted", "indexOf",
    }
)  # fmt: skip
"""Functions and operators of ours: units, and helpers of Kubernetes' list library."""


def _time_fact(node: ir.Node) -> bool:
    return isinstance(node, ir.Field | ir.OptField) and any(
        one in (DURATION, TIMESTAMP) for one in (node.type, *node.type.params)
    )


def _text_of_double(node: ir.Node) -> bool:
    return isinstance(node, ir.Call) and node.overload.startswith("string(double")


def _order_of_keys(node: ir.Node) -> bool:
    return (
        isinstance(node, ir.Comprehension)
        and node.range.type.name == "map"
        and node.macro in ("map", "transformList")
    )


def _substring(node: ir.Node) -> bool:
    return isinstance(node, ir.Call) and node.overload.startswith(("substring(string,int,int", ".substring"))


def _int_of_anything(node: ir.Node) -> bool:
    return isinstance(node, ir.Call) and node.overload == "int(dyn)"


DEVIATIONS: tuple[tuple[Callable[[ir.Node], bool], str], ...] = (
    (_time_fact, "times inside of maps: the Python binding has no value for them"),
    (_order_of_keys, "lists made from maps: the order of keys is not defined"),
    (_substring, "substring with an end: refused where it is the size"),
    (_int_of_anything, "int() of any value: takes bools"),
    (_text_of_double, "texts of doubles: spelt as C++ does"),
)
"""Test of one node of the typed form, and what the runtime does otherwise there."""


def google_outside(root: ir.Node) -> str | None:
    """Why an expression is not put to Google's runtime; None when it is."""
    if root.type in (DURATION, TIMESTAMP):
        return "results that are times: the Python binding gives microseconds"
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ir.Call):
            found = _NAME.match(node.overload)
            if found and found.group(1) in OURS:
                return "functions and units of ours"
        if isinstance(node, ir.HasField) and len(node.paths) != 1:
            return "has() of a group of facts"
        for test, reason in DEVIATIONS:
            if test(node):
                return reason
        waiting.extend(children(node))
    return None
