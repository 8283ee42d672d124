"""A plain interpreter of the typed form: slow, obvious, and written apart from the lowering.

Errors are exceptions; a record is one flat dict. Named functions come from the function table (their
own tests stand elsewhere); operators, logic, selection and macros are spelled out here.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

from koordpolicy.language.cel import ir
from koordpolicy.language.cel.errors import (
    DivisionByZero,
    EvaluationError,
    InvalidArgument,
    MissingFact,
    NoSuchKey,
    NoSuchOverload,
    NotPermitted,
    Overflow,
    Unbound,
    WrongType,
)
from koordpolicy.language.cel.library import FUNCTIONS, OVERLOADS
from koordpolicy.language.cel.lower.dispatch import dispatcher
from koordpolicy.language.cel.meter import UNMETERED
from koordpolicy.language.cel.types import DOUBLE
from koordpolicy.language.cel.values import (
    NONE,
    BoolKey,
    Duration,
    Optional,
    Timestamp,
    UInt,
    key_of,
    key_value,
    type_name,
)

Scope = Mapping[str, Any]
_RANGES: dict[Any, tuple[int, int]] = {int: (-(2**63), 2**63 - 1), UInt: (0, 2**64 - 1)}


def interpret(node: ir.Node, scope: Scope) -> Any:  # noqa: C901, PLR0912 - one case a kind of node
    """The value of a node, local and root variables taken from `scope`. Raises CelError."""
    match node:
        case ir.Const(value=value):
            return value
        case ir.Var(name=name):
            return scope[name]() if callable(scope[name]) else scope[name]
        case ir.Field(base=base, path=path):
            record = interpret(base, scope)
            if path not in record:
                raise MissingFact(path)
            return record[path]
        case ir.HasField(base=base, paths=paths):
            record = interpret(base, scope)
            if isinstance(record, Optional):
                record = {} if record is NONE else record.value
            return any(path in record for path in paths)
        case ir.OptField(base=base, path=path):
            record = interpret(base, scope)
            if isinstance(record, Optional):
                if record is NONE:
                    return NONE
                record = record.value
            return Optional(record[path]) if path in record else NONE
        case ir.Call(args=args):
            return _call(node, [lambda a=a: interpret(a, scope) for a in args])  # type: ignore[misc]
        case ir.And(args=args):
            return _decide([lambda a=a: interpret(a, scope) for a in args], False)  # type: ignore[misc]
        case ir.Or(args=args):
            return _decide([lambda a=a: interpret(a, scope) for a in args], True)  # type: ignore[misc]
        case ir.Cond():
            chosen = node.then if _bool(interpret(node.condition, scope)) else node.otherwise
            return interpret(chosen, scope)
        case ir.Holds(operand=operand, otherwise=otherwise):
            try:
                return _bool(interpret(operand, scope))
            except EvaluationError:
                return _bool(interpret(otherwise, scope))
        case ir.OrElse(operand=operand, other=other, unwrap=unwrap):
            found = _optional(interpret(operand, scope))
            if found is not NONE:
                return found.value if unwrap else found
            return interpret(other, scope) if unwrap else _optional(interpret(other, scope))
        case ir.Cast(type=wanted, operand=operand, permitted=permitted):
            value = interpret(operand, scope)
            if wanted == DOUBLE and type_name(value) in ("int", "uint"):
                return float(value)
            if wanted.name != "dyn" and type_name(value) != wanted.name:
                raise WrongType("another type")
            if permitted is not None and not permitted.admits(value):
                raise NotPermitted("another value")
            return value
        case ir.Select():
            return _select(interpret(node.operand, scope), node.field, node.optional, node.test)
        case ir.Index():
            return _index(interpret(node.operand, scope), interpret(node.index, scope), node.optional)
        case ir.MakeList(elements=elements, optional=optional):
            made: list[Any] = []
            for at, element in enumerate(elements):
                value = interpret(element, scope)
                if at not in optional:
                    made.append(value)
                elif _optional(value) is not NONE:
                    made.append(value.value)
            return made
        case ir.MakeMap(entries=entries, optional=optional):
            result: dict[Any, Any] = {}
            for at, (key, value) in enumerate(entries):
                k, v = interpret(key, scope), interpret(value, scope)
                if at in optional:
                    if _optional(v) is NONE:
                        continue
                    v = v.value
                _put(result, k, v)
            return result
        case ir.Comprehension():
            return _macro(node, scope)
        case ir.Bind(name=name, init=init, body=body):
            return interpret(body, {**scope, name: lambda: interpret(init, scope)})
        case ir.OptMap(operand=operand, name=name, body=body, flat=flat):
            held = _optional(interpret(operand, scope))
            if held is NONE:
                return NONE
            value = interpret(body, {**scope, name: held.value})
            return _optional(value) if flat else Optional(value)
    raise AssertionError(f"no meaning for {type(node).__name__}")


def _bool(value: Any) -> bool:
    if not isinstance(value, bool):
        raise NoSuchOverload("not a bool")
    return value


def _optional(value: Any) -> Optional:
    if not isinstance(value, Optional):
        raise NoSuchOverload("not an optional")
    return value


def _decide(operands: list[Callable[[], Any]], decisive: bool) -> bool:
    errors = []
    for operand in operands:
        try:
            if _bool(operand()) is decisive:
                return decisive
        except EvaluationError as error:
            errors.append(error)
    if errors:
        raise errors[0]
    return not decisive


def _call(node: ir.Call, operands: list[Callable[[], Any]]) -> Any:
    name = node.overload.partition("(")[0]
    if node.overload == "error(unbound)":
        raise Unbound("unbound")
    if node.overload == "error(no_such_overload)":
        raise NoSuchOverload("no overload")
    values = [operand() for operand in operands]
    if name in _OPERATORS:
        return _OPERATORS[name](*values)
    if node.overload in OVERLOADS:
        return OVERLOADS[node.overload].implementation(*values)
    found = dispatcher(node.overload, FUNCTIONS)
    assert found is not None, node.overload
    return found(UNMETERED, *values)


# Operators


def _arithmetic(name: str, exact: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    def apply(a: Any, b: Any) -> Any:
        kind = type(a)
        if kind is not type(b) or kind not in (int, UInt, float):
            return _other_arithmetic(name, a, b)
        if kind is float:
            return exact(a, b)
        return _in_range(kind, exact(int(a), int(b)))

    return apply


def _in_range(kind: Any, value: int) -> Any:
    low, high = _RANGES[kind]
    if not low <= value <= high:
        raise Overflow("out of range")
    return kind(value)


def _time(kind: type, ns: int) -> Any:
    low, high = (-62135596800 * 10**9, 253402300800 * 10**9 - 1) if kind is Timestamp else _RANGES[int]
    if not low <= ns <= high:
        raise Overflow("out of range")
    return kind(ns)


def _other_arithmetic(name: str, a: Any, b: Any) -> Any:
    if name == "+":
        if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
            return [*a, *b]
        if type(a) is type(b) and type(a) in (str, bytes):
            return a + b
    times = {
        ("+", Timestamp, Duration): Timestamp, ("+", Duration, Timestamp): Timestamp,
        ("+", Duration, Duration): Duration, ("-", Timestamp, Duration): Timestamp,
        ("-", Timestamp, Timestamp): Duration, ("-", Duration, Duration): Duration,
    }  # fmt: skip
    kind = times.get((name, type(a), type(b)))
    if kind is None:
        raise NoSuchOverload(f"{type_name(a)} {name} {type_name(b)}")
    return _time(kind, a.ns + b.ns if name == "+" else a.ns - b.ns)


def _divide(a: Any, b: Any) -> Any:
    if isinstance(a, float):
        if b == 0:
            return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)
        return a / b
    if b == 0:
        raise DivisionByZero("by zero")
    magnitude = abs(a) // abs(b)
    return magnitude if (a < 0) == (b < 0) else -magnitude


def _modulo(a: int, b: int) -> int:
    if b == 0:
        raise DivisionByZero("by zero")
    if (a, b) == (-(2**63), -1):
        raise Overflow("the quotient is out of range")
    return a - b * int(_divide(a, b))


def _negate(a: Any) -> Any:
    if isinstance(a, float):
        return -a
    if type(a) is not int:
        raise NoSuchOverload("-")
    return _in_range(int, -a)


def _equal(a: Any, b: Any) -> bool:
    if _is_number(a) and _is_number(b):
        return _sign(a, b) == 0
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(_equal(x, y) for x, y in zip(a, b, strict=True))
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return len(a) == len(b) and all(k in b and _equal(v, b[k]) for k, v in a.items())
    if isinstance(a, Optional):
        return a is b if a is NONE or b is NONE else _equal(a.value, b.value)
    return bool(a == b)


def _is_number(a: Any) -> bool:
    return type(a) in (int, UInt, float)


def _sign(a: Any, b: Any) -> int | None:
    """-1, 0, 1, or None with a NaN. Doubles meet integers as doubles, after a look at the range."""
    if isinstance(a, float) and isinstance(b, float):
        pass
    elif isinstance(a, float):
        low, high = (0.0, 2.0**64) if type(b) is UInt else (-(2.0**63), 2.0**63)
        if a < low:
            return -1
        if a > high:
            return 1
        b = float(b)
    elif isinstance(b, float):
        sign = _sign(b, a)
        return None if sign is None else -sign
    return 0 if a == b else -1 if a < b else 1 if a > b else None


def _compare(accepted: tuple[int, ...]) -> Callable[[Any, Any], bool]:
    def apply(a: Any, b: Any) -> bool:
        if _is_number(a) and _is_number(b):
            return _sign(a, b) in accepted
        if type(a) is not type(b) or type(a) not in (bool, str, bytes, Timestamp, Duration):
            raise NoSuchOverload("compare")
        x, y = (a.ns, b.ns) if isinstance(a, (Timestamp, Duration)) else (a, b)
        return ((x > y) - (x < y)) in accepted

    return apply


def _in(a: Any, b: Any) -> bool:
    if isinstance(b, (list, tuple)):
        return any(_equal(a, element) for element in b)
    if isinstance(b, dict):
        return any(_equal(a, key_value(key)) for key in b)
    raise NoSuchOverload("in")


def _whole(value: float) -> int:
    if not -(2.0**63) < value < 2.0**63:
        raise Overflow("quantity")
    return math.trunc(value)


def _ratio(a: Any, b: Any) -> float:
    if b == 0:
        raise DivisionByZero("by zero")
    return float(a) / float(b)


_OPERATORS: dict[str, Callable[..., Any]] = {
    "_+_": _arithmetic("+", lambda a, b: a + b),
    "_-_": _arithmetic("-", lambda a, b: a - b),
    "_*_": _arithmetic("*", lambda a, b: a * b),
    "_/_": _arithmetic("/", _divide),
    "_%_": _arithmetic("%", _modulo),
    "-_": _negate,
    "!_": lambda a: not _bool(a),
    "_==_": _equal,
    "_!=_": lambda a, b: not _equal(a, b),
    "_<_": _compare((-1,)),
    "_<=_": _compare((-1, 0)),
    "_>_": _compare((1,)),
    "_>=_": _compare((0, 1)),
    "@in": _in,
    "scale": lambda q, r: _whole(float(q) * r),
    "percent_of": lambda q, p: _whole(float(q) * p / 100.0),
    "quotient": _ratio,
    "divide": lambda q, r: _whole(_ratio(q, r)),
}


# Selection and macros


def _select(value: Any, name: str, optional: bool, test: bool) -> Any:
    if isinstance(value, Optional):
        if value is NONE:
            return False if test else NONE
        return _select(value.value, name, True, test)
    if not isinstance(value, dict):
        raise NoSuchKey(name)
    if test:
        return name in value
    if optional:
        return Optional(value[name]) if name in value else NONE
    if name not in value:
        raise NoSuchKey(name)
    return value[name]


def _index(value: Any, at: Any, optional: bool) -> Any:
    if isinstance(value, Optional):
        return NONE if value is NONE else _index(value.value, at, True)
    if isinstance(value, dict):
        found = [v for k, v in value.items() if _key_is(k, at)]
        if not found and not optional:
            raise NoSuchKey("key")
        return (Optional(found[0]) if found else NONE) if optional else found[0]
    if not isinstance(value, (list, tuple)):
        raise NoSuchOverload("index")
    if not _is_number(at) or (isinstance(at, float) and not at.is_integer()):
        raise InvalidArgument("index")
    inside = 0 <= at < len(value)
    if optional:
        return Optional(value[int(at)]) if inside else NONE
    if not inside:
        raise InvalidArgument("index")
    return value[int(at)]


def _key_is(key: Any, wanted: Any) -> bool:
    held = key_value(key)
    if isinstance(held, bool) or isinstance(wanted, bool):
        return held is wanted
    return bool(held == wanted) if isinstance(wanted, (str, int, float)) else False


def _put(result: dict[Any, Any], key: Any, value: Any) -> None:
    if type(key) not in (str, int, UInt, bool):
        raise NoSuchOverload("key")
    if key_of(key) in result:
        raise InvalidArgument("twice")
    result[key_of(key)] = value


def _macro(node: ir.Comprehension, scope: Scope) -> Any:
    steps = [{**scope, **step} for step in _steps(node, interpret(node.range, scope))]
    predicate, transform = node.predicate, node.transform

    def passes(step: Scope) -> bool:
        return predicate is None or _bool(interpret(predicate, step))

    def transformed(step: Scope) -> Any:
        assert transform is not None
        return interpret(transform, step)

    last = node.variables[-1]
    match node.macro:
        case "all":
            return _decide([lambda s=s: passes(s) for s in steps], False)  # type: ignore[misc]
        case "exists":
            return _decide([lambda s=s: passes(s) for s in steps], True)  # type: ignore[misc]
        case "exists_one":
            return sum([passes(step) for step in steps]) == 1
        case "filter":
            return [step[last] for step in steps if passes(step)]
        case "map" | "transformList":
            return [transformed(step) for step in steps if passes(step)]
        case "sortBy":
            return [step[last] for step in _sorted(steps, transformed)]
    result: dict[Any, Any] = {}
    for step in steps:
        if passes(step):
            value = transformed(step)
            entries = {key_of(step[node.variables[0]]): value} if node.macro == "transformMap" else value
            for key, entry in entries.items():
                _put(result, key_value(key), entry)
    return result


def _sorted(steps: list[dict[str, Any]], key: Callable[[Scope], Any]) -> list[dict[str, Any]]:
    """Insertion, which needs nothing but the order of two keys."""
    ordered: list[tuple[Any, dict[str, Any]]] = []
    less_equal = _compare((-1, 0))
    for value, step in [(key(step), step) for step in steps]:
        less_equal(value, value)
        at = 0
        while at < len(ordered) and less_equal(ordered[at][0], value):
            at += 1
        ordered.insert(at, (value, step))
    return [step for _, step in ordered]


def _steps(node: ir.Comprehension, walked: Any) -> list[dict[str, Any]]:
    names = node.variables
    if isinstance(walked, dict):
        keys = sorted((key_value(key) for key in walked), key=_key_rank)
        return [dict(zip(names, (key, walked[key_of(key)]), strict=False)) for key in keys]
    if not isinstance(walked, (list, tuple)):
        raise NoSuchOverload("macro")
    if len(names) == 1:
        return [{names[0]: element} for element in walked]
    return [dict(zip(names, pair, strict=True)) for pair in enumerate(walked)]


def _key_rank(key: Any) -> tuple[int, Any]:
    assert not isinstance(key, BoolKey)
    return (0 if isinstance(key, bool) else 2 if isinstance(key, str) else 1, key)
