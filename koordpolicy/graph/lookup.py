"""Finding a decision by its name among the documents of a revision."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.graph.rules import DecisionKey
from koordpolicy.graph.state import Unit
from koordpolicy.language.kinds import Kind, Slot, slots

_ITEM = re.compile(r"\[[^\]]*\]")


@dataclass(frozen=True, slots=True)
class Declared:
    """A slot of a subject there is, whether a document fills it or not. `unit` speaks of that subject."""

    key: DecisionKey
    kind: Kind
    slot: Slot
    unit: Unit


class Names:
    """The names of a revision's decisions: those of `keys`, and those that its documents could fill."""

    def __init__(self, units: Iterable[Unit], keys: Collection[DecisionKey]) -> None:
        self._units = tuple(units)
        self._keys = keys

    def declared(self, name: str) -> Declared | None:
        """The slot behind a name; parameters are none, they are decisions only where a document declares them."""
        unit = self.speaker(name)
        if unit is None:
            return None
        field = name[len(unit.target) + 1 :]
        pattern = _ITEM.sub("[*]", field)
        for path in slots(unit.kind.spec):
            if path.field == pattern and self._has_item(unit.target, field):
                key = DecisionKey(unit.kind.name, unit.subject, field)
                return Declared(key, unit.kind, path.slot, unit)
        return None

    def speaker(self, name: str) -> Unit | None:
        """A document that speaks of the `Kind/subject` that a decision's name begins with, the longest there is."""
        fitting = [unit for unit in self._units if name.startswith(f"{unit.target}.")]
        return max(fitting, key=lambda unit: len(unit.target), default=None)

    def meant(self, name: str) -> str | None:
        """The decision that a mistyped name most likely stood for: of the same target, or nearly the same."""
        unit = self.speaker(name)
        if unit is not None:
            target, field = unit.target, name[len(unit.target) + 1 :]
        else:
            said, _, field = name.partition(".")
            of, _, subject = said.partition("/")
            near = nearest(of, {one.kind.name for one in self._units}) or of
            subjects = sorted({one.subject for one in self._units if one.kind.name == near})
            subject = subject if subject in subjects else nearest(subject, subjects) or ""
            if subject not in subjects:
                return None
            target = f"{near}/{subject}" if subject else near
        fields = self.fields(target)
        close = field if field in fields else nearest(field, fields)
        return f"{target}.{close}" if close else None

    def fields(self, target: str) -> list[str]:
        """The fields of a `Kind/subject` that documents fill, in their order."""
        return [key.field for key in self._keys if key.target == target]

    def _has_item(self, target: str, field: str) -> bool:
        """Whether the named list item that a field stands in exists."""
        if "[" not in field or "." not in field.partition("]")[2]:
            return True
        item = field.partition("]")[0] + "]"
        return any(key.target == target and key.field.startswith(item) for key in self._keys)
