"""Which overloads of a function take given types."""

from collections.abc import Sequence
from dataclasses import dataclass

from koordpolicy.language.cel.functions import Function, Overload
from koordpolicy.language.cel.types import Type
from koordpolicy.language.cel.unify import Unifier


@dataclass(frozen=True, slots=True)
class OverloadMatch:
    """An overload that fits, with its parameters and result as they are in this call."""

    overload: Overload
    params: tuple[Type, ...]
    result: Type


def takers(function: Function, count: int, receiver: bool) -> list[Overload]:
    """The overloads of one style that take so many arguments, the target of a method included."""
    return [
        overload
        for overload in function.overloads
        if overload.receiver == receiver
        and (count == len(overload.params) or (overload.variadic and count > len(overload.params)))
    ]


def spread(overload: Overload, count: int) -> tuple[Type, ...]:
    """The parameters for so many arguments: the last one of a variadic overload repeats."""
    missing = count - len(overload.params)
    return overload.params + overload.params[-1:] * missing if missing > 0 else overload.params


def matches(unifier: Unifier, overloads: Sequence[Overload], types: Sequence[Type]) -> list[OverloadMatch]:
    """The overloads that take arguments of these types."""
    found: list[OverloadMatch] = []
    for overload in overloads:
        params: tuple[Type, ...] = spread(overload, len(types))
        result = overload.result
        if any(map(is_generic, (*params, result))):
            *fresh, result = unifier.instance((*params, result))
            params = tuple(fresh)
        if unifier.fits(types, params):
            found.append(OverloadMatch(overload, params, result))
    return found


def choose(unifier: Unifier, found: Sequence[OverloadMatch], types: Sequence[Type]) -> OverloadMatch | None:
    """The one overload that is meant; None when only run time can tell."""
    if len(found) == 1:
        return found[0]
    for match in found:
        if all(unifier.resolved(param) == given for param, given in zip(match.params, types, strict=True)):
            return match
    return None


def loose(given: Type, wanted: Type) -> bool:
    """Whether a value of the given type may turn out at run time not to be what is wanted."""
    if wanted.name in ("dyn", "param"):
        return False
    if given.name in ("dyn", "param") or given.name != wanted.name:
        return True
    return any(map(loose, given.params, wanted.params))


def is_generic(type: Type) -> bool:
    """Whether a type of a declaration holds type parameters."""
    return type.name == "param" or any(map(is_generic, type.params))
