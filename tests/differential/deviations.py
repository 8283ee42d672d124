"""What keeps an expression from a referee: names of ours, and known deviations with their reason.

Those of cel-python are in `koordpolicy.graph.testing.celpython`, which users have too.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.types import DOUBLE, DURATION, DYN, TIMESTAMP, Type, optional_of
from koordpolicy.language.cel.walk import children
from tests.differential.libraries import ALL_IDS
from tests.differential.outcomes import Error, Failed, Refused

_NAME = re.compile(r"\.?([^(]*)")

OURS = frozenset(
    {
        "cpu", "memory", "millicores", "percent", "ratio", "number", "scale", "percent_of", "quotient", "divide",
        "min", "max", "sum", "percentText", "quantityText", "isSorted", "indexOf",
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


def _is_ours(overload: str) -> bool:
    found = _NAME.match(overload)
    return found is not None and found.group(1) in _OPERATORS


_OPERATORS = frozenset({"scale", "percent_of", "quotient", "divide", "percentile"})
"""Operators of quantities, and functions that are ours by name."""


def program_outside(root: ir.Node, overloads: frozenset[str]) -> str | None:
    """Why an expression is not put to a referee that has these overloads of ours; None when it is."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ir.Call) and (
            (node.overload in ALL_IDS and node.overload not in overloads) or _is_ours(node.overload)
        ):
            return "functions and units of ours, or of the other referee"
        if (
            isinstance(node, ir.Comprehension)
            and node.macro == "sortBy"
            and "lists.range(int)" not in overloads
        ):
            return "sortBy is of cel-go's lists"
        if isinstance(node, ir.HasField) and len(node.paths) != 1:
            return "has() of a group of facts"
        if isinstance(node, ir.Field | ir.OptField) and node.type.unit is not None:
            return "facts with units"
        waiting.extend(children(node))
    return None


# --- differences of values that are known ------------------------------------------------------------


def _anything(node: ir.Node) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Deviation:
    """A known difference: the nodes that bring it about, how it shows, what it is, and what must stand in the expression."""

    at: Callable[[ir.Node], bool]
    shows: Callable[[Any, Any], bool]
    reason: str
    referees: frozenset[str] = frozenset(("cel-go", "kubernetes-cel"))
    given: Callable[[ir.Node], bool] = _anything


def _calls(*prefixes: str) -> Callable[[ir.Node], bool]:
    return lambda node: isinstance(node, ir.Call) and node.overload.lstrip(".").startswith(prefixes)


def _text_of_duration(node: ir.Node) -> bool:
    if not isinstance(node, ir.Call):
        return False
    if node.overload.lstrip(".").startswith("format("):
        values = node.args[1]
        shown = values.elements if isinstance(values, ir.MakeList) else (values,)
        return any(_may_hold(one.type, DURATION) for one in shown)
    return node.overload in ("string(google.protobuf.Duration)", "string(dyn)")


def _may_hold(type: Type, wanted: Type) -> bool:
    return type in (wanted, DYN) or any(_may_hold(inner, wanted) for inner in type.params)


def _with_text(pattern: str) -> Callable[[ir.Node], bool]:
    """Whether a literal anywhere in an expression holds such a text."""
    wanted = re.compile(pattern)
    return lambda root: any(
        isinstance(node, ir.Const) and isinstance(node.value, str) and wanted.search(node.value) is not None
        for node in _below(root)
    )


def _below(node: ir.Node) -> Iterator[ir.Node]:
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(children(node))


def _adds_bytes_twice(root: ir.Node) -> bool:
    adding = _calls("_+_(bytes,bytes)")
    return sum(adding(node) for node in _below(root)) > 1


def _orders_numbers_of_two_types(node: ir.Node) -> bool:
    if not _calls("_<_(", "_<=_(", "_>_(", "_>=_(")(node):
        return False
    kinds = {argument.type.name for argument in children(node)}
    return len(kinds) > 1 and "double" in kinds


def _has_free_type(root: ir.Node) -> bool:
    """Whether an empty literal, or an optional that has nothing, stands anywhere in an expression."""
    return any(
        (isinstance(node, ir.MakeMap) and not node.entries)
        or (isinstance(node, ir.MakeList) and not node.elements)
        or (isinstance(node, ir.Call) and node.overload.startswith("optional.none("))
        for node in _below(root)
    )


def _asks_anything(node: ir.Node) -> bool:
    """`.?a`, `[?0]` and `has()` of a value whose type only run time knows."""
    if isinstance(node, ir.Select) and (
        node.optional or node.test or node.operand.type.name == "optional_type"
    ):
        return node.operand.type in (DYN, optional_of(DYN))
    if isinstance(node, ir.Index) and (node.optional or node.operand.type.name == "optional_type"):
        return node.operand.type in (DYN, optional_of(DYN))
    return False


def _sorts_doubles(node: ir.Node) -> bool:
    if isinstance(node, ir.Comprehension) and node.macro == "sortBy" and node.transform is not None:
        return node.transform.type in (DOUBLE, DYN)
    return isinstance(node, ir.Call) and node.overload in ("sort(list(double))", "sort(dyn)")


def _either(ours: Any, theirs: Any) -> bool:
    return True


def _theirs_says(*words: str) -> Callable[[Any, Any], bool]:
    return lambda ours, theirs: any(word in getattr(theirs, "reason", "") for word in words)


def _theirs_fails(ours: Any, theirs: Any) -> bool:
    return isinstance(theirs, Error) and not isinstance(ours, Failed)


def _ours_fails(ours: Any, theirs: Any) -> bool:
    return isinstance(ours, Failed) and not isinstance(theirs, Error | Refused)


DEVIATIONS_OF_GO: tuple[Deviation, ...] = (
    Deviation(
        _calls("_<_(dyn", "_<=_(dyn", "_>_(dyn", "_>=_(dyn"),
        _ours_fails,
        "a NaN compared with a value that has no order beside it: false, no error",
    ),
    Deviation(
        lambda node: isinstance(node, ir.Comprehension) and node.range.type == DYN,
        _ours_fails,
        "macros over an empty text whose type only run time knows: as over an empty list",
    ),
    Deviation(
        _calls("sub("), _either, "a quantity less the least int: added instead", frozenset({"kubernetes-cel"})
    ),
    Deviation(
        _calls("quantity(", "isQuantity("),
        _either,
        "quantities without digits: taken as 0",
        frozenset({"kubernetes-cel"}),
        _with_text("^[+-]?[.]?(?:[numkMGTPE]i?)?$"),
    ),
    Deviation(
        _calls("_==_", "_!=_"),
        _theirs_says("applied to '(type("),
        "types of unlike values are of unlike types: refused when checked",
    ),
    Deviation(
        _calls("_+_(bytes,bytes)", "_+_(dyn,dyn)"),
        lambda ours, theirs: "b'" in repr(ours),
        "bytes with something added to them twice: the second overwrites the first",
    ),
    Deviation(
        _calls("_+_(bytes,bytes)"),
        _either,
        "bytes with something added to them twice: the second overwrites the first",
        given=_adds_bytes_twice,
    ),
    Deviation(
        _calls("format("),
        lambda ours, theirs: any(word in repr(ours) for word in ("\ufffd", r"\xef\xbf\xbd")),
        "bytes in a format that are no UTF-8: the text holds them as they are",
    ),
    Deviation(
        _orders_numbers_of_two_types,
        _theirs_fails,
        "comparisons with a NaN: an error, not false",
        frozenset({"kubernetes-cel"}),
    ),
    Deviation(
        _anything,
        _theirs_says(
            "invalid matches argument",
            "invalid cidr argument",
            "invalid ip argument",
            "invalid timestamp argument",
            "invalid duration argument",
        ),
        "arguments that are literals are tried when checked, in parts that are never evaluated, too",
    ),
    Deviation(_order_of_keys, _either, "lists made from maps: the order of keys is not defined"),
    Deviation(
        _calls(*(f"get{unit}(google.protobuf.Duration" for unit in ("Hours", "Minutes", "Seconds"))),
        _either,
        "whole hours, minutes and seconds of a duration: by way of a double",
    ),
    Deviation(
        _calls("matches(", "find(", "findAll("),
        _theirs_says("error parsing regexp"),
        "patterns are compiled when checked, in parts that are never evaluated, too",
    ),
    Deviation(_text_of_duration, _either, "texts of durations: by way of a double, which loses nanoseconds"),
    Deviation(
        _calls("getMilliseconds("),
        _either,
        "getMilliseconds() of a duration: all of them, not those within the second",
    ),
    Deviation(
        _calls("math.least(", "math.greatest("),
        _theirs_fails,
        "math.least and math.greatest of a NaN: no overload",
    ),
    Deviation(_sorts_doubles, _either, "sorting with a NaN: wherever it comes to stand"),
    Deviation(
        _calls("indexOf(string,string,int", "lastIndexOf(string,string,int"),
        _ours_fails,
        "indexOf from beyond the end: -1, where the conformance cases want an error",
    ),
    Deviation(
        _asks_anything,
        _ours_fails,
        "`.?`, `[?]` and has() of a value without members: none and false, no error",
    ),
    Deviation(
        _calls("_-_(google.protobuf.Timestamp,", "_-_(dyn,"),
        _theirs_says("integer overflow"),
        "a time less the least duration, or times that far apart: an overflow on the way",
    ),
    Deviation(
        _anything, _theirs_says("NaN values cannot be ordered"), "comparisons with a NaN: an error, not false"
    ),
    Deviation(
        _calls("string(google.protobuf.Timestamp", "string(dyn", "format("),
        _either,
        "texts of times: with the offset that they were read with, ours in UTC",
        given=_with_text(r"[+-]\d\d:\d\d$"),
    ),
    Deviation(
        _calls("quantity("),
        _either,
        "binary quantities above 2^63 - 1: cut to it",
        frozenset({"kubernetes-cel"}),
        _with_text("Ei$"),
    ),
    Deviation(
        _calls("ip(", "isIP(", "isCanonical(", "ip.isCanonical(", "containsIP("),
        _either,
        "IPv4 mapped to IPv6 as `::ffff:102:304`: refused, where the conformance cases want the IPv4 address",
        given=_with_text("(?i)ffff:"),
    ),
    Deviation(
        _anything,
        _theirs_says("unhashable type types.Bytes"),
        "bytes looked for among the keys of a map: a panic",
    ),
    Deviation(
        _anything,
        _theirs_says("invalid qualifier type", "unsupported index"),
        "a list or map as an optional index: an error, not none",
    ),
    Deviation(
        lambda node: isinstance(node, ir.MakeMap),
        _ours_fails,
        "literals of maps with a key twice: the last value holds",
    ),
    Deviation(
        _calls("bool(string", "bool(dyn"),
        _ours_fails,
        "bool('T') and bool('F'): taken beside the language's ten spellings",
    ),
    Deviation(_calls("double(string"), _ours_fails, "double() of hexadecimal texts: as Go reads numbers"),
    Deviation(
        _calls("-_(dyn)"), _ours_fails, "a minus before a duration whose type only run time knows: taken"
    ),
    Deviation(
        _calls("asApproximateFloat("), _either, "a quantity as a double: by powers of ten, not the nearest"
    ),
    Deviation(
        _calls("isInteger(", "asInteger("),
        _either,
        "whether a quantity is whole: by its form, `1.5Gi` is not",
    ),
    Deviation(
        _calls("sign("),
        _theirs_says("overload for 'sign'"),
        "sign() of a quantity: not declared as documented",
    ),
    Deviation(
        _anything, _theirs_says("reference to undefined type"), "lists of types: refused by the older cel-go"
    ),
    Deviation(
        _calls("get"),
        _ours_fails,
        "zones such as `24:00`: taken by the older cel-go",
        frozenset({"kubernetes-cel"}),
    ),
    Deviation(
        _calls("timestamp(string"),
        _ours_fails,
        "times with a comma: taken by the older cel-go",
        frozenset({"kubernetes-cel"}),
    ),
    Deviation(
        _calls("int(dyn)"), _ours_fails, "int() of a duration whose type only run time knows: its nanoseconds"
    ),
    Deviation(
        lambda node: isinstance(node, ir.Select | ir.Index) and node.operand.type == DYN,
        lambda ours, theirs: _ours_fails(ours, theirs) or _theirs_fails(ours, theirs),
        "a member of an optional whose type only run time knows: an optional again, but of none",
    ),
    Deviation(
        _calls("math.least(", "math.greatest("),
        _theirs_says("invalid single argument value"),
        "math.least and math.greatest of a literal list: looked at when checked",
    ),
    Deviation(
        _anything,
        _theirs_says("found no matching overload"),
        "what an empty literal or optional.none() would hold: typed by the first operator or function that meets it",
        given=_has_free_type,
    ),
    Deviation(
        _calls("-_("), _theirs_says("invalid int literal"), "two signs before 2^63: refused when parsed"
    ),
    Deviation(_calls("url(", "isURL("), _either, "URLs: taken with characters that RFC 3986 does not have"),
    Deviation(
        _calls("format("),
        _theirs_says(
            "string.format",
            "error during formatting",
            "out of range\n",
            "could not parse formatting clause",
            "unexpected end of string",
        ),
        "literal formats are tried when checked, in parts that are never evaluated, too; too many arguments are refused",
    ),
)


def deviation(referee: str, root: ir.Node, ours: Any, theirs: Any) -> str | None:
    """Why a referee that is a program may differ here; None when it may not."""
    known = [
        one
        for one in DEVIATIONS_OF_GO
        if referee in one.referees and one.shows(ours, theirs) and one.given(root)
    ]
    for node in _below(root):
        for one in known:
            if one.at(node):
                return one.reason
    return None
