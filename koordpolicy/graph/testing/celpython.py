"""cel-python as a referee: what it understands as the language says, and its value of one expression.

It has no types, no units and few of the libraries, and deviates in known ways; `outside` names what keeps an
expression out of the part on which both have to agree.
"""

import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import celpy
from celpy import celtypes
from celpy.celparser import CELParseError
from celpy.evaluation import CELEvalError

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.types import DURATION, DYN, TIMESTAMP, Type
from koordpolicy.language.cel.values import Duration, Optional, Timestamp, UInt
from koordpolicy.language.cel.walk import children

FAILED: Final = object()
"""Stands for an evaluation that ended in an error: which one is not compared."""

_ARITHMETIC = frozenset({"_+_", "_-_", "_*_", "_/_", "_%_", "-_", "!_"})
_COMPARISONS = frozenset({"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"})
_METHODS = frozenset({"contains", "startsWith", "endsWith"})
_FUNCTIONS = _ARITHMETIC | _COMPARISONS | _METHODS | {"@in", "size", "int", "double", "string"}
_MACROS = frozenset({"all", "exists", "exists_one", "map", "filter"})
_UNITS = frozenset({"scale", "percent_of", "quotient", "divide", "ratio", "percent", "cpu", "memory"})
_NAME = re.compile(r"\.?([^(]*)")
_PLAIN = frozenset({"int", "double", "bool", "string"})

# cel-python tells its log of every error it meets; here an error is an answer like any other.
_LOG = "celpy"

Reason = str


def outside(root: ir.Node) -> Reason | None:
    """Why an expression, in the form before folding, lies outside cel-python's subset; None when it lies within.

    The first reason met from the top; recursion is bounded by the depth that the parser permits.
    """
    return next(_reasons(root), None)


def _reasons(node: ir.Node) -> Iterator[Reason]:
    own = _strange_type(node.type) or _strange_node(node)
    if own:
        yield own
    for part in children(node):
        yield from _reasons(part)


def _strange_type(type: Type) -> Reason | None:
    if type in (TIMESTAMP, DURATION):
        return "times: kept in microseconds, ranges not checked"
    if type.name == "uint":
        return "unsigned numbers: ranges not checked"
    if type.name == "optional_type":
        return "no optionals"
    if type == DYN:
        return "values of any type: unlike types are not compared"
    return None


def _strange_node(node: ir.Node) -> Reason | None:
    match node:
        case ir.Call():
            return _strange_call(node)
        case ir.OptField() | ir.OptMap() | ir.OrElse() | ir.Select(optional=True) | ir.Index(optional=True):
            return "no optionals"
        case ir.MakeList(optional=skipped) | ir.MakeMap(optional=skipped) if skipped:
            return "no optionals"
        case ir.MakeMap(entries=entries) if not all(isinstance(value, ir.Const) for _, value in entries):
            return "maps of computed values: an error stays among them"
        case ir.Select(test=True):
            return "has() of a map's key: false where there is no map"
        case ir.Bind():
            return "no cel.bind"
        case ir.Holds():
            return "no conditions that do not hold where they fail"
        case ir.HasField(paths=paths) if len(paths) != 1:
            return "has() of a group of facts"
        case ir.Index(operand=operand, index=index) if operand.type.name == "list":
            known = isinstance(index, ir.Const) and isinstance(index.value, int) and index.value >= 0
            return None if known else "a computed index of a list: negative ones count from the end"
        case ir.And(args=operands) | ir.Or(args=operands) if any(map(_macro_may_fail, operands)):
            return _NOT_ABSORBED
        case ir.Comprehension(macro=macro, range=walked, variables=names, predicate=predicate):
            if macro not in _MACROS or len(names) > 1:
                return "no macros of two variables"
            if macro == "map" and predicate is not None:
                return "no map with a predicate"
            if macro == "map" and walked.type.name == "map":
                return "lists made from maps: the order of keys is not defined"
            if macro in ("all", "exists") and predicate is not None and _macro_may_fail(predicate):
                return _NOT_ABSORBED
    return None


_NOT_ABSORBED: Final = "an error within a macro: no operand beside it absorbs it"


def _macro_may_fail(node: ir.Node) -> bool:
    """Whether there is a macro within whose body may end in an error."""
    if isinstance(node, ir.Comprehension):
        bodies = (node.predicate, node.transform)
        if any(body is not None and _may_fail(body) for body in bodies):
            return True
    return any(map(_macro_may_fail, children(node)))


def _may_fail(node: ir.Node) -> bool:
    """Whether a node may end in an error; those that surely do not are few."""
    sure = isinstance(node, ir.Const | ir.And | ir.Or | ir.HasField) or (
        isinstance(node, ir.Var) and node.local
    )
    return not sure or any(map(_may_fail, children(node)))


def _strange_call(node: ir.Call) -> Reason | None:
    found = _NAME.match(node.overload)
    name = found.group(1) if found else node.overload
    if name in _UNITS:
        return "arithmetic with units"
    if name not in _FUNCTIONS:
        return f"no function {name}"
    kinds = {arg.type.name for arg in node.args}
    if name in _COMPARISONS and (len(kinds) > 1 or not kinds <= _PLAIN):
        return "comparison of lists, maps or unlike types"
    if name in ("_==_", "_!=_", "@in") and _has_double(node):
        return "equality of doubles: NaN equals NaN"
    if name == "@in" and node.args[0].type not in (node.args[1].type.params or (DYN,)):
        return "comparison of lists, maps or unlike types"
    if name in ("int", "string") and "double" in kinds:
        return "texts and whole numbers of doubles: Python's"
    if name == "_%_":
        return "remainders: that of the least number by -1 is no error"
    if name == "_/_" and "double" in kinds:
        return "division of doubles: by zero it is never NaN"
    if name == "_+_" and not kinds <= {"int", "double"}:
        return "`+` of texts and lists: the result is not of the language's class"
    return None


def _has_double(node: ir.Call) -> bool:
    return any(part.name == "double" for arg in node.args for part in (arg.type, *arg.type.params))


class CelPython:
    """One expression for cel-python. Raises `CelPythonRefuses` for a text that it does not parse."""

    def __init__(self, text: str) -> None:
        limit = sys.getrecursionlimit()
        environment = celpy.Environment()
        sys.setrecursionlimit(limit)  # making its parser raises the limit of the whole process
        try:
            self._program = environment.program(environment.compile(text))
        except CELParseError as problem:
            raise CelPythonRefuses(str(problem)) from None

    def value(self, context: Mapping[str, Any]) -> Any:
        """The value as plain data, or `FAILED`. `context` has run-time values, records as nested maps."""
        log = logging.getLogger(_LOG)
        level = log.level
        log.setLevel(logging.CRITICAL)
        try:
            return plain(self._program.evaluate({name: _given(value) for name, value in context.items()}))
        except CELEvalError:
            return FAILED
        finally:
            log.setLevel(level)


class CelPythonRefuses(Exception):
    """cel-python cannot parse the text."""


_CLASSES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (bool, celtypes.BoolType),
    (UInt, celtypes.UintType),
    (int, celtypes.IntType),
    (float, celtypes.DoubleType),
    (str, celtypes.StringType),
)


def _given(value: Any) -> Any:
    """A run-time value as cel-python has it; what it has no class for is left out of maps and lists."""
    for kind, made in _CLASSES:
        if isinstance(value, kind):
            return made(value)
    if isinstance(value, Mapping):
        known = {key: item for key, item in value.items() if not _unknown(item)}
        return celtypes.MapType({_given(key): _given(item) for key, item in known.items()})
    if isinstance(value, list | tuple):
        return celtypes.ListType([_given(item) for item in value if not _unknown(item)])
    return None


def _unknown(value: Any) -> bool:
    return isinstance(value, Duration | Timestamp | Optional | bytes)


def plain(value: Any) -> Any:
    """What cel-python gave, as Python's own classes."""
    if isinstance(value, bool | celtypes.BoolType):
        return bool(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    for made in (int, float, str):
        if isinstance(value, made):
            return made(value)
    return value


def same(ours: Any, theirs: Any) -> bool:
    """Whether both are the same value of the same type, or both `FAILED`; a NaN is like another."""
    if ours is FAILED or theirs is FAILED:
        return ours is theirs
    if isinstance(ours, bool) or isinstance(theirs, bool):
        return ours is theirs
    if isinstance(ours, list | tuple) and isinstance(theirs, list | tuple):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        return ours.keys() == theirs.keys() and all(same(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, float) != isinstance(theirs, float) or isinstance(ours, str) != isinstance(
        theirs, str
    ):
        return False
    return bool(ours == theirs or (ours != ours and theirs != theirs))
