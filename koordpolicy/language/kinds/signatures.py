"""How functions are called, as people read it: signatures of one shape in one line, with what it stands for."""

from koordpolicy.language.cel.functions import Function, Overload
from koordpolicy.language.cel.types import Type
from koordpolicy.language.cel.units import KEEPS_FIRST, KEEPS_UNIT
from koordpolicy.language.kinds.typenames import type_name

_ANY = "T"
_AMOUNTS = "`cpu`, `bytes`, `percent` or another amount, which keeps its unit"

_Shape = tuple[tuple[str, ...], bool, bool]
"""Parameters, a receiver among them, a last one that may stand again."""


def signatures(function: Function) -> tuple[list[str], str]:
    """The ways to call a function, `max(T, ...) -> T` for several that differ in one type alone, and what T is; empty without."""
    shapes: dict[_Shape | str, list[Overload]] = {}
    for overload in function.overloads:
        shapes.setdefault(_shape(overload) or overload.id, []).append(overload)
    lines: list[str] = []
    kinds: dict[str, None] = {}
    for same in shapes.values():
        first = same[0]
        shape = _shape(first) if len(same) > 1 else None
        if shape is None:
            inputs = [type_name(parameter) for parameter in first.params]
            lines.append(_written(function, first, inputs, type_name(first.result)))
            continue
        kinds.update(dict.fromkeys(type_name(overload.result) for overload in same))
        lines.append(_written(function, first, list(shape[0]), _ANY))
    if not kinds:
        return lines, ""
    counted = {"int", "double"} & kinds.keys() and function.name in KEEPS_UNIT | KEEPS_FIRST
    meant = f"{_ANY} is {', '.join(f'`{kind}`' for kind in kinds)}"
    return lines, meant + (f", or {_AMOUNTS}" if counted else "")


def _shape(overload: Overload) -> _Shape | None:
    """The parameters with the result's type in general, where that is what tells the signature from others."""
    result = overload.result
    if result.params or result.unit is not None or result.name in ("dyn", "param"):
        return None
    inputs = tuple(_general(parameter, result) for parameter in overload.params)
    return (inputs, overload.receiver, overload.variadic) if any(_ANY in one for one in inputs) else None


def _general(parameter: Type, result: Type) -> str:
    if parameter == result:
        return _ANY
    inside = parameter.name == "list" and parameter.params == (result,)
    return f"list({_ANY})" if inside else type_name(parameter)


def _written(function: Function, overload: Overload, inputs: list[str], result: str) -> str:
    given = list(inputs)
    target = f"{given.pop(0)}." if overload.receiver and given else ""
    more = ", ..." if overload.variadic else ""
    return f"{target}{function.name}({', '.join(given)}{more}) -> {result}"
