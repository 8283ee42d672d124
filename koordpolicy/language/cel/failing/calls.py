"""Which functions fail of which arguments.

A function that no table here names is taken to fail of what no constant shows; tests try all of them with random values.
"""

from typing import Final

from koordpolicy.language.cel import ir

TOTAL: Final = frozenset(
    f"{dot}{id}"
    for dot in ("", ".")
    for id in (
        *(f"size({kind})" for kind in ("string", "bytes", "list(A)", "map(A,B)")),
        "startsWith(string,string)", "endsWith(string,string)", "contains(string,string)", "indexOf(string,string)",
        "indexOf(list(T),T)", "lastIndexOf(string,string)", "lastIndexOf(list(T),T)", "join(list(string))",
        "join(list(string),string)", "lowerAscii(string)", "upperAscii(string)", "replace(string,string,string)",
        "replace(string,string,string,int)", "split(string,string)", "split(string,string,int)", "trim(string)",
        "reverse(string)", "reverse(list(T))", "distinct(list(T))", "first(list(T))", "last(list(T))",
        "sum(list(double))", "flatten(list(list(T)))", "flatten(list(dyn))", "hasValue(optional_type(T))", "unwrapOpt(list(optional_type(T)))",
        "prefixLength(net.CIDR)", "masked(net.CIDR)", "family(net.IP)", "isUnspecified(net.IP)", "isLoopback(net.IP)",
        "isLinkLocalMulticast(net.IP)", "isLinkLocalUnicast(net.IP)", "isGlobalUnicast(net.IP)",
        "containsIP(net.CIDR,net.IP)", "containsCIDR(net.CIDR,net.CIDR)", "isInteger(kubernetes.Quantity)",
        "sign(kubernetes.Quantity)", "isLessThan(kubernetes.Quantity,kubernetes.Quantity)",
        "isGreaterThan(kubernetes.Quantity,kubernetes.Quantity)", "compareTo(kubernetes.Quantity,kubernetes.Quantity)",
        "getScheme(kubernetes.URL)", "getHost(kubernetes.URL)", "getHostname(kubernetes.URL)", "getPort(kubernetes.URL)",
        "getEscapedPath(kubernetes.URL)", "getQuery(kubernetes.URL)",
        *(f"get{part}(google.protobuf.Timestamp)" for part in (
            "FullYear", "Month", "Date", "DayOfMonth", "DayOfWeek", "DayOfYear", "Hours", "Minutes", "Seconds",
            "Milliseconds")),
        *(f"get{part}(google.protobuf.Duration)" for part in ("Hours", "Minutes", "Seconds", "Milliseconds")),
        *(f"{name}(list({kind}))" for name in ("sort", "isSorted") for kind in (
            "int", "uint", "double", "bool", "string", "bytes", "google.protobuf.Duration",
            "google.protobuf.Timestamp")),
    )
) | frozenset(
    (
        *(f"{kind}({kind})" for kind in ("int", "uint", "double", "string", "bytes", "bool")),
        "int(google.protobuf.Timestamp)", "double(int)", "double(uint)", "string(bool)", "string(int)", "string(uint)",
        "string(double)", "string(google.protobuf.Timestamp)", "string(google.protobuf.Duration)", "string(net.IP)",
        "string(net.CIDR)", "bytes(string)", "duration(google.protobuf.Duration)",
        "timestamp(google.protobuf.Timestamp)", "type(A)", "type(dyn)", "dyn(A)", "dyn(dyn)", "strings.quote(string)",
        *(f"{name}({kind})" for name in ("max", "min") for kind in (
            "int", "uint", "double", "google.protobuf.Duration", "google.protobuf.Timestamp")),
        *(f"math.{name}({kind})" for name in ("greatest", "least", "sign", "sqrt") for kind in ("int", "uint", "double")),
        *(f"math.{name}(double)" for name in (
            "ceil", "floor", "round", "trunc", "abs", "isNaN", "isInf", "isFinite")),
        "math.abs(uint)",
        *(f"math.{name}({kind},{kind})" for name in ("bitAnd", "bitOr", "bitXor") for kind in ("int", "uint")),
        "math.bitNot(int)", "math.bitNot(uint)",
        *(f"sets.{name}(list(T),list(T))" for name in ("contains", "equivalent", "intersects")),
        "optional.of(T)", "optional.none()", "optional.ofNonZeroValue(T)", "optional.unwrap(list(optional_type(T)))",
        "base64.encode(bytes)", "ip(net.CIDR)", "isIP(string)", "isQuantity(string)", "isCIDR(string)", "isURL(string)",
        "millicores(int)", "bytesOf(int)", "percent(int)", "percent(double)", "ratio(percent)", "amount(int)",
        "number(int)", "number(double)", "quantityText(cpu)", "quantityText(bytes)", "percentText(percent)", "percentText(double)",
        "@either(bool,bool)", "!_(bool)", "_==_", "_!=_", "@in(dyn,list)", "@in(dyn,map)",
        "_+_(double,double)", "_-_(double,double)", "_*_(double,double)", "_/_(double,double)", "-_(double)",
        "_+_(string,string)", "_+_(bytes,bytes)", "_+_(list,list)",
    )
)  # fmt: skip
"""Calls that have a value whatever their arguments, limits of size aside."""

OVERFLOWING: Final = frozenset(
    (
        *(f"_{sign}_({kind},{kind})" for sign in "+-*" for kind in ("int", "uint")),
        "-_(int)", "scale(int,double)", "percent_of(int,double)", "math.abs(int)", "int(double)", "int(uint)",
        "uint(int)", "uint(double)", "millicores(double)", "bytesOf(double)",
        *(f"{dot}sum(list({kind}))" for dot in ("", ".") for kind in ("int", "uint")),
    )
)  # fmt: skip
"""Calls that fail only where the result lies outside its type, which ranges can exclude."""

OVER_TIME: Final = frozenset(
    (
        *(f"_{sign}_(google.protobuf.{a},google.protobuf.{b})" for sign, a, b in (
            ("+", "Timestamp", "Duration"), ("+", "Duration", "Timestamp"), ("+", "Duration", "Duration"),
            ("-", "Timestamp", "Duration"), ("-", "Timestamp", "Timestamp"), ("-", "Duration", "Duration"))),
        *(f"{dot}sum(list(google.protobuf.Duration))" for dot in ("", ".")),
        *(f"{dot}{name}(kubernetes.Quantity,{kind})" for dot in ("", ".") for name in ("add", "sub")
          for kind in ("kubernetes.Quantity", "int")),
    )
)  # fmt: skip
"""Arithmetic that fails only beyond what clusters have: times more than 292 years apart, quantities of 30 digits."""

DIVIDING: Final = frozenset(
    (
        *(f"_{sign}_({kind},{kind})" for sign in "/%" for kind in ("int", "uint")),
        "divide(int,double)", "quotient(int,int)", "quotient(double,double)",
    )
)  # fmt: skip
"""Divisions, and remainders, that fail of a divisor of zero."""

CHOOSING: Final = frozenset(
    f"{name}(list({kind}))"
    for name in ("max", "min", "math.greatest", "math.least")
    for kind in (
        "int", "uint", "double", "bool", "string", "bytes", "google.protobuf.Duration", "google.protobuf.Timestamp",
        "dyn",
    )
)  # fmt: skip
"""Calls that fail of an empty list."""

_ORDERED: Final = ("_<_", "_<=_", "_>_", "_>=_")


def is_total(call: ir.Call) -> bool:
    """Whether a call has a value whatever its arguments."""
    if call.overload in TOTAL:
        return True
    operator = call.overload.partition("(")[0]
    return operator in _ORDERED and not call.overload.endswith("(dyn,dyn)")


def is_of_any_type(call: ir.Call) -> bool:
    """Whether only the values tell which function is called, or whether there is one."""
    return "dyn" in call.overload.partition("(")[2].rstrip(")").split(",") or call.overload.startswith(
        "error("
    )


CONSTANT_FIRST: Final = {
    "matches": 1, "find": 1, "findAll": 1, "regex.replace": 1, "regex.extract": 1, "regex.extractAll": 1, "format": 0,
    **{f"get{part}": 1 for part in (
        "FullYear", "Month", "Date", "DayOfMonth", "DayOfWeek", "DayOfYear", "Hours", "Minutes", "Seconds", "Milliseconds",
    )},
}  # fmt: skip
"""Functions that fail only of one argument (a pattern, a format, a time zone), which the checker has tried where constant."""
