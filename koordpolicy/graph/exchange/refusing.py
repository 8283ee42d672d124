"""What was imported and would be refused: it is left out, field by field, and the table says why."""

import json
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, Final, Protocol

from koordpolicy.diagnostics import Diagnostic, Diagnostics, Severity, Span
from koordpolicy.graph.exchange.documents import SOURCE, Imported, Taken
from koordpolicy.language.documents.document import Path, Positions
from koordpolicy.language.documents.manifests import read_manifests

_MOST_ROUNDS: Final = 20
"""Compilations: what is left out may uncover another error, seldom more than one."""

Documents = Sequence[dict[str, Any]]


def files_of(documents: Documents) -> dict[str, str]:
    """The documents as files, one each, by a name that tells their place in the list."""
    return {f"{number}.yaml": json.dumps(one) for number, one in enumerate(documents)}


class Checked(Protocol):
    """What came of compiling documents."""

    @property
    def found(self) -> Diagnostics:
        """Its findings."""
        ...


def without_refused(imported: Imported, compiling: Callable[[Documents], Checked]) -> Imported:
    """What of it compiles. An error whose place is in no field that was imported stays, for `check` to tell."""
    documents, table = deepcopy(imported.documents), list(imported.table)
    for _ in range(_MOST_ROUNDS):
        errors = [one for one in compiling(documents).found if one.severity is Severity.ERROR]
        left_out = [_leave_out(documents, table, error) for error in errors]
        if not any(left_out):
            break
    return Imported(documents, table)


def _leave_out(documents: list[dict[str, Any]], table: list[Taken], error: Diagnostic) -> bool:
    """Take the field away that an error points at; whether there was one."""
    document = dict(zip(files_of(documents), documents, strict=True)).get(error.span.file)
    if document is None:
        return False
    path = _path_at(document, error.span)
    target, source = _target(document), document["metadata"]["annotations"][SOURCE]
    for length in range(len(path), 1, -1):
        names = _names(target, path[1:length])
        rows = [at for at, row in enumerate(table) if row.decision in names and _within(row.source, source)]
        if rows:
            _delete(document, path[:length])
            for at in rows:
                table[at] = replace(table[at], decision="", reason=f"{error.code}: {error.message}")
            return True
    return False


def _within(place: str, source: str) -> bool:
    return place == source or place.startswith((f"{source}.", f"{source} "))


def _names(target: str, path: Path) -> set[str]:
    *steps, last = map(str, path)
    dotted = ".".join((*steps, last))
    return {f"{target}.{dotted}", f"{target}.{'.'.join(steps)}[{last}]"}


def _target(document: dict[str, Any]) -> str:
    kind, spec = document["kind"], document["spec"]
    if kind in _SUBJECTS:
        return f"{kind}/{spec[_SUBJECTS[kind]]}"
    return f"{kind}/{document['metadata']['name']}" if kind in _NAMED else str(kind)


_SUBJECTS: Final = {"Overcommit": "resource", "Isolation": "group"}
_NAMED: Final = frozenset({"ColocationProfile", "SchedulingProfile"})


def _path_at(document: dict[str, Any], span: Span) -> Path:
    """The path of the innermost value that a place lies in."""
    (read,) = read_manifests(span.file, json.dumps(document), Diagnostics())
    found: Path = ()
    for path in _paths(document["spec"], ("spec",)):
        if _covers(read.positions, path, span):
            found = path
    return found


def _covers(positions: Positions, path: Path, span: Span) -> bool:
    """Files have one line each, so columns alone tell."""
    key, value = positions.key(path), positions.value(path)
    return min(key.start, value.start) <= span.start <= value.end


def _paths(value: Any, at: Path) -> Iterator[Path]:
    yield at
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in pairs:
        yield from _paths(one, (*at, key))


def _delete(document: dict[str, Any], path: Path) -> None:
    *steps, last = path
    place: Any = document
    for step in steps:
        place = place[step]
    del place[last]
