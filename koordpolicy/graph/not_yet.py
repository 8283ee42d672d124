"""What documents set and nothing in a cluster acts on yet: told as notes, which fail no check."""

from collections.abc import Iterable
from typing import Any

from koordpolicy.diagnostics import Diagnostics, Severity
from koordpolicy.graph.state import Unit
from koordpolicy.language.kinds.actors import Actor, awaited


def not_yet(units: Iterable[Unit]) -> Diagnostics:
    """KP312 for each such field of these documents, once a file."""
    found = Diagnostics()
    told: set[tuple[str, str, str]] = set()
    for unit in units:
        for field, actor in awaited(unit.kind.name):
            path = ("spec", *field.split("."))
            key = (unit.document.file, unit.kind.name, field)
            if key not in told and _is_set(unit.document.data, path):
                told.add(key)
                found.add(
                    "KP312",
                    unit.document.positions.key(path),
                    _message(f"{unit.kind.name}.{field}", actor),
                    severity=Severity.NOTE,
                )
    return found


def _is_set(data: Any, path: tuple[str, ...]) -> bool:
    for step in path:
        if not isinstance(data, dict) or step not in data:
            return False
        data = data[step]
    return True


def _message(name: str, actor: Actor) -> str:
    what = "acts in simulations alone" if actor.parts else "does nothing"
    return f"`{name}` {what} until the {actor.awaited} comes"
