"""The page of functions and macros."""

from koordpolicy.language.cel.functions import Function, Overload
from koordpolicy.language.cel.library import FUNCTIONS
from koordpolicy.language.kinds import type_name
from koordpolicy.language.manual.markdown import code, table

_MACROS = (
    ("has(e.f)", "whether the fact or key is there"),
    ("e.all(x, p)", "whether p holds for every element, or key of a map"),
    ("e.exists(x, p)", "whether p holds for at least one"),
    ("e.exists_one(x, p)", "whether p holds for exactly one; `existsOne` is the same"),
    ("e.filter(x, p)", "the elements for which p holds"),
    ("e.map(x, t)", "t for every element"),
    ("e.map(x, p, t)", "t for every element for which p holds"),
    ("e.sortBy(x, k)", "the list in ascending order of k"),
    ("e.all(k, v, p)", "the same over index and value of a list, key and value of a map"),
    ("e.exists(k, v, p)", "likewise"),
    ("e.exists_one(k, v, p)", "likewise; `existsOne` is the same"),
    ("e.transformList(k, v, t)", "a list of t for every entry; with p before t, of those for which it holds"),
    ("e.transformMap(k, v, t)", "a map with the same keys and t as values; with p before t likewise"),
    ("e.transformMapEntry(k, v, {a: b})", "a map of the entries made; with p before the entry likewise"),
    ("cel.bind(x, e, t)", "t, in which x stands for e"),
    ("o.optMap(x, t)", "an optional of t when o has a value x, else none"),
    ("o.optFlatMap(x, t)", "the optional t when o has a value x, else none"),
)

_INTRODUCTION = """# Functions

The [standard definitions](#standard) of CEL with its operators, the extension libraries, Kubernetes' quantities and
addresses, and helpers for units. A `Library` document adds functions of your own. In signatures `bytes` is the unit
of memory, `octets` are CEL's strings of bytes; A and B stand for any type.
"""


def functions_page() -> str:
    """The page, ending with a line break."""
    libraries: dict[str, list[Function]] = {}
    for function in FUNCTIONS.values():
        libraries.setdefault(function.library, []).append(function)
    macros = table(("macro", "meaning"), ((code(usage), meaning) for usage, meaning in _MACROS))
    parts = [_INTRODUCTION, f"## macros\n\n{macros}"]
    return "\n".join([*parts, *(_library(name, rows) for name, rows in libraries.items())])


def _library(name: str, functions: list[Function]) -> str:
    rows = [
        (
            code(function.name),
            "<br>".join(code(_signature(function, overload)) for overload in function.overloads),
            function.summary,
            code(function.example) if function.example else "",
        )
        for function in functions
    ]
    return f"## {name}\n\n" + table(("function", "signatures", "meaning", "example"), rows)


def _signature(function: Function, overload: Overload) -> str:
    types = [type_name(parameter) for parameter in overload.params]
    target = ""
    if overload.receiver and types:
        target = types.pop(0) + "."
    if overload.variadic and types:
        types[-1] += "..."
    return f"{target}{function.name}({', '.join(types)}) → {type_name(overload.result)}"
