"""Which operators and functions an API server has, with the same meaning as here."""

import re
from typing import Final

from koordpolicy.graph.native.reasons import NotNative

_NUMBERS: Final = ("int,int", "double,double", "int,double", "double,int")
_ORDERED: Final = (
    *_NUMBERS,
    "string,string",
    "bool,bool",
    "google.protobuf.Duration,google.protobuf.Duration",
    "google.protobuf.Timestamp,google.protobuf.Timestamp",
)
LEVELS: Final = {
    "_||_": 1, "_&&_": 2,
    "_<_": 3, "_<=_": 3, "_>_": 3, "_>=_": 3, "_==_": 3, "_!=_": 3, "@in": 3,
    "_+_": 4, "_-_": 4, "_*_": 5, "_/_": 5, "_%_": 5,
}  # fmt: skip
"""How tightly operators bind."""

OPERATORS: Final = frozenset(
    (
        *(f"_{sign}_({kinds})" for sign in ("<", "<=", ">", ">=") for kinds in _ORDERED),
        *(f"_{sign}_({kind},{kind})" for sign in "+-*/" for kind in ("int", "double")),
        "_%_(int,int)", "_+_(string,string)", "_+_(list,list)", "_==_", "_!=_", "@in(dyn,list)", "@in(dyn,map)",
    )
)  # fmt: skip
"""Those of two operands, by overload."""

METHODS: Final = frozenset(
    (
        "startsWith(string,string)", "endsWith(string,string)", "contains(string,string)", "charAt(string,int)",
        "indexOf(string,string)", "indexOf(string,string,int)", "lastIndexOf(string,string)",
        "lastIndexOf(string,string,int)", "join(list(string))", "join(list(string),string)", "lowerAscii(string)",
        "upperAscii(string)", "replace(string,string,string)", "replace(string,string,string,int)",
        "split(string,string)", "split(string,string,int)", "substring(string,int)", "substring(string,int,int)",
        "trim(string)", ".matches(string,string)", "matches(string,string)", "find(string,string)",
        "sum(list(int))", "hasValue(optional_type(T))",
        "isInteger(kubernetes.Quantity)", "asInteger(kubernetes.Quantity)", "sign(kubernetes.Quantity)",
        "isLessThan(kubernetes.Quantity,kubernetes.Quantity)", "isGreaterThan(kubernetes.Quantity,kubernetes.Quantity)",
        "compareTo(kubernetes.Quantity,kubernetes.Quantity)",
    )
)  # fmt: skip
FUNCTIONS: Final = frozenset(
    (
        "int(string)",
        "int(int)",
        "string(int)",
        "string(bool)",
        "string(string)",
        "quantity(string)",
        "isQuantity(string)",
    )
)
UNITS: Final = frozenset(("number(int)", "number(double)", "amount(int)", "millicores(int)", "bytesOf(int)"))
"""Functions that give a unit or take it away, where the number stays."""
SIZES: Final = re.compile(r"\.?size\((?:string|list\(A\)|map\(A,B\))\)")


def missing(overload: str) -> NotNative:
    """Why a call cannot be written."""
    name = overload.partition("(")[0].removeprefix(".")
    if "dyn" in overload and name[:1] in "_@":
        return NotNative("it computes with values whose type only run time can tell")
    if name in LEVELS:
        return NotNative(f"an API server does not compute `{name.strip('_')}` of these types as policies do")
    return NotNative(f"an API server's CEL has no `{name}` that is certain to mean the same")
