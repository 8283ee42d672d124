"""Row programs that go from one process to another of the same code: text, and recipes for what it finds by name.

A program whose constants are anything but plain values, functions of the library and patterns stays where it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from koordpolicy.language.cel.functions import overload_named
from koordpolicy.language.cel.library import FUNCTIONS
from koordpolicy.language.cel.library.regex import compile_pattern, tester
from koordpolicy.language.cel.lower.dispatch import dispatcher
from koordpolicy.language.cel.lower.row import RowProgram, load_row

_PLAIN: Final = frozenset((str, bytes, int, float, bool))

Recipe: TypeAlias = tuple[str, Any]
"""How a constant is made: "value" with itself, "function" or "unmetered" with an overload, "pattern" or "compiled" with its text."""


@dataclass(frozen=True, slots=True)
class Portable:
    """A program as values that any process can take: see `RowProgram`."""

    roots: tuple[str, ...]
    source: str
    facts: frozenset[tuple[str, str]]
    metered: bool
    price: int
    recipes: Mapping[str, Recipe]


def portable(program: RowProgram) -> Portable | None:
    """The program as values, None where that cannot be."""
    recipes = {name: _recipe(key, value) for name, (key, value) in program.constants.items()}
    known = {name: recipe for name, recipe in recipes.items() if recipe is not None}
    if len(known) < len(recipes):
        return None
    return Portable(program.roots, program.source, program.facts, program.metered, program.price, known)


def _recipe(key: object, value: object) -> Recipe | None:
    if isinstance(key, tuple) and key[0] in _CALLED and "(" in key[1] and _CALLED[key[0]](key[1]) is not None:
        return key[0], key[1]
    if isinstance(key, tuple) and key[0] in ("pattern", "compiled"):
        return key[0], key[1]
    plain = type(value) in _PLAIN or (type(value) is frozenset and all(type(one) in _PLAIN for one in value))
    return ("value", value) if plain else None


def loaded(given: Portable, budget: int) -> RowProgram:
    """The program again. Raises LookupError for a function that this process does not have."""
    constants = {name: ((kind, what), _made(kind, what)) for name, (kind, what) in given.recipes.items()}
    return load_row(given.roots, given.source, given.facts, given.metered, given.price, constants, budget)


def _made(kind: str, what: Any) -> Any:
    match kind:
        case "function" | "unmetered":
            found = _CALLED[kind](what)
            if found is None:
                raise LookupError(f"no function has the overload `{what}`")
            return found
        case "pattern":
            return tester(what)
        case "compiled":
            return compile_pattern(what)
    return what


def _function(overload: str) -> Any:
    """What generated code calls for an overload, None where there is nothing by that name."""
    known = overload_named(overload, FUNCTIONS)
    if known is not None:
        return known.metered or known.implementation
    return dispatcher(overload, FUNCTIONS)


def _unmetered(overload: str) -> Any:
    """What it calls where the price is known beforehand."""
    known = overload_named(overload, FUNCTIONS)
    return None if known is None else known.implementation


_CALLED: Final = MappingProxyType({"function": _function, "unmetered": _unmetered})
