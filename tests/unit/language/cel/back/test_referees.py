"""Other implementations of CEL as referees: Google's C++ runtime, and cel-python on what it gets right.

A disagreement is a defect here, or an entry in the lists below of what the referee is known to do
otherwise.
"""

import datetime as dt
import math
import sys
from typing import Any

import celpy
import celpy.adapter
import celpy.evaluation
import pytest
from celpy import celtypes
from hypothesis import assume, given, note
from hypothesis import strategies as st

from koordpolicy.language.cel.errors import CelError
from koordpolicy.language.cel.fold import fold
from koordpolicy.language.cel.lower.row import compile_row
from koordpolicy.language.cel.values import INT_MIN, Duration, Timestamp, UInt
from tests.unit.language.cel.back.expressions import PLAIN_VALUES, STANDARD, VARIABLES, Grammar, texts, typed

cel = pytest.importorskip("cel_expr_python.cel", reason="Google's runtime is not installed")

ERROR = "error"
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def ours(text: str, values: dict[str, Any]) -> Any:
    """Our value, or ERROR."""
    try:
        return compile_row(tuple(VARIABLES), fold(typed(text))).call(*(values[name] for name in VARIABLES))
    except CelError:
        return ERROR


def agree(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(agree, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(agree(one[key], other[key]) for key in one)
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other) and isinstance(one, str) == isinstance(other, str)


# Google's C++ runtime

_T = cel.Type
_TYPES = {
    "int": _T.INT, "uint": _T.UINT, "double": _T.DOUBLE, "bool": _T.BOOL, "string": _T.STRING,
    "ints": _T.List(_T.INT), "strings": _T.List(_T.STRING), "map": _T.Map(_T.STRING, _T.INT),
    "timestamp": _T.TIMESTAMP, "duration": _T.DURATION,
}  # fmt: skip
_GOOGLE = cel.NewEnv(variables={name: _TYPES[kind] for name, (kind, _) in VARIABLES.items()})


def _to_google(value: Any) -> Any:
    if isinstance(value, Duration):
        return dt.timedelta(microseconds=value.ns // 1000)
    if isinstance(value, Timestamp):
        return EPOCH + dt.timedelta(microseconds=value.ns // 1000)
    return int(value) if isinstance(value, UInt) else value


def googles(text: str, values: dict[str, Any]) -> Any:
    found = _GOOGLE.compile(text).eval(data={name: _to_google(value) for name, value in values.items()})
    return ERROR if found.type() == _T.ERROR else found.plain_value()


@given(
    st.sampled_from(("int", "uint", "double", "bool", "string", "ints", "map")).flatmap(
        lambda kind: texts(kind, STANDARD)
    ),
    PLAIN_VALUES,
)
def test_googles_runtime_agrees(text: str, values: dict[str, Any]) -> None:
    note(text)
    mine, theirs = ours(text, values), googles(text, values)
    assert agree(mine, theirs), (mine, theirs)


# cel-python

_SIMPLE_KINDS = ("int", "bool", "string", "ints")
# It has no `map` with a predicate, takes negative indexes of lists, and its other number types and times
# deviate in known ways.
_LEFT_OUT = ("[{int}]", "{double}", "{uint}", "{timestamp}", "{duration}", "{map}", "{{", ".map($x, {bool")
SIMPLE: Grammar = {
    kind: tuple(t for t in STANDARD[kind] if not any(part in t for part in _LEFT_OUT))
    for kind in _SIMPLE_KINDS
} | {"strings": STANDARD["strings"]}


def pythons(text: str, values: dict[str, Any]) -> Any:
    limit = sys.getrecursionlimit()
    environment = celpy.Environment()
    sys.setrecursionlimit(limit)  # its parser raises the limit, which hypothesis takes amiss
    program = environment.program(environment.compile(text))
    context = {name: celpy.adapter.json_to_cel(value) for name, value in values.items() if not _is_odd(value)}
    try:
        return _plain(program.evaluate(context))
    except celpy.evaluation.CELEvalError:
        return ERROR


def _is_odd(value: Any) -> bool:
    return isinstance(value, (UInt, Duration, Timestamp, float))


def _plain(value: Any) -> Any:
    if isinstance(value, (bool, celtypes.BoolType)):
        return bool(value)
    if isinstance(value, list):
        return [_plain(element) for element in value]
    return int(value) if isinstance(value, int) else str(value)


@given(st.sampled_from(_SIMPLE_KINDS).flatmap(lambda kind: texts(kind, SIMPLE)), PLAIN_VALUES)
def test_cel_python_agrees(text: str, values: dict[str, Any]) -> None:
    # It finds no overflow in the least integer modulo -1, where the other engines do.
    assume("%" not in text or INT_MIN not in values.values())
    note(text)
    mine, theirs = ours(text, values), pythons(text, values)
    # What `+` makes of strings and lists is of a plain Python class there, which methods then refuse.
    assume(
        theirs != ERROR or not any(f".{method}(" in text for method in ("contains", "startsWith", "endsWith"))
    )
    # An error in `map` is one of the whole expression there, whatever stands beside it.
    assume(theirs != ERROR or ".map(" not in text or not ("&&" in text or "||" in text))
    assert agree(mine, theirs), (mine, theirs)
