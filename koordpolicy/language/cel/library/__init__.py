"""The function table: every named function of the language, one file a library.

A new function is a row in the tuple of its library; a new library is a file and a line here.
"""

from koordpolicy.language.cel.functions import Function, Overload
from koordpolicy.language.cel.library import (
    encoders,
    lists,
    math,
    network,
    optionals,
    quantities,
    regex,
    standard,
    strings,
    units,
    urls,
)

LIBRARIES: tuple[tuple[Function, ...], ...] = (
    standard.LIBRARY,
    strings.LIBRARY,
    regex.LIBRARY,
    math.LIBRARY,
    lists.LIBRARY,
    optionals.LIBRARY,
    encoders.LIBRARY,
    network.LIBRARY,
    quantities.LIBRARY,
    urls.LIBRARY,
    units.LIBRARY,
)


def _by_name(libraries: tuple[tuple[Function, ...], ...]) -> dict[str, Function]:
    """One row a name: libraries may add overloads to a name of another (`reverse`, `string`)."""
    table: dict[str, Function] = {}
    for row in (row for library in libraries for row in library):
        known = table.get(row.name)
        table[row.name] = row if known is None else Function(
            row.name, known.library, f"{known.summary}; {row.summary}",
            known.overloads + row.overloads, known.example,
        )  # fmt: skip
    return table


def overloads_by_id(functions: dict[str, Function]) -> dict[str, Overload]:
    """All overloads of a table. Raises ValueError when two share an id."""
    table: dict[str, Overload] = {}
    for row in functions.values():
        for overload in row.overloads:
            if overload.id in table:
                raise ValueError(f"two overloads are called {overload.id}")
            table[overload.id] = overload
    return table


FUNCTIONS: dict[str, Function] = _by_name(LIBRARIES)
OVERLOADS: dict[str, Overload] = overloads_by_id(FUNCTIONS)
