"""When one type fits where another is wanted, and what type parameters stand for then.

`dyn` fits everywhere. Nothing else converts by itself: int is no double, and millicores are no bare
int, because the unit is part of the type.
"""

from collections.abc import Iterable

from koordpolicy.language.cel.types import DYN, Type

_VALUES = frozenset(("bool", "int", "uint", "double", "string", "bytes", "list", "map", "type"))
"""Types that have no null."""


_NULLABLE = frozenset(("record", "null_type", "dyn", "param"))
"""Types whose values programs take for null as well."""


class Unifier:
    """Free type parameters of one expression and what they have been found to be."""

    __slots__ = ("_found", "_fresh")

    def __init__(self) -> None:
        self._found: dict[str, Type] = {}
        self._fresh = 0

    @property
    def used(self) -> bool:
        """Whether any parameter was made, so that types may hold one."""
        return self._fresh > 0

    def fresh(self) -> Type:
        """A parameter that stands for nothing yet."""
        self._fresh += 1
        return Type("param", record=f"#{self._fresh}")

    def instance(self, types: Iterable[Type]) -> tuple[Type, ...]:
        """Types of a declaration with its parameters replaced by fresh ones, the same for the same."""
        names: dict[str, Type] = {}
        return tuple(self._instance(each, names) for each in types)

    def _instance(self, type: Type, names: dict[str, Type]) -> Type:
        if type.name == "param":
            letter = type.record or ""
            if letter not in names:
                names[letter] = self.fresh()
            return names[letter]
        if not type.params:
            return type
        return Type(type.name, tuple(self._instance(each, names) for each in type.params))

    def resolved(self, type: Type) -> Type:
        """The type with all that is known put in; parameters without a meaning stay."""
        if type.name == "param":
            found = self._found.get(type.record or "")
            return type if found is None else self.resolved(found)
        if not type.params or not self._fresh:
            return type
        params = tuple(self.resolved(each) for each in type.params)
        return type if params == type.params else Type(type.name, params, type.unit, type.record)

    def final(self, type: Type) -> Type:
        """The type as shown: what stands for nothing may be anything."""
        known = self.resolved(type)
        if known.name == "param":
            return DYN
        if not known.params:
            return known
        return Type(known.name, tuple(self.final(each) for each in known.params), known.unit, known.record)

    def fits(self, given: Iterable[Type], wanted: Iterable[Type]) -> bool:
        """Whether each type is assignable to its counterpart, all at once.

        When they fit, the parameters keep what they were found to be; else nothing changes.
        """
        before = dict(self._found)
        if all(self._assignable(one, other) for one, other in zip(given, wanted, strict=True)):
            return True
        self._found = before
        return False

    def join(self, one: Type, other: Type) -> Type | None:
        """The type that holds both, or None."""
        if one == other:
            return one
        if not self.fits((one,), (other,)):
            return None
        return self._wider(self.resolved(one), self.resolved(other))

    def _assignable(self, given: Type, wanted: Type) -> bool:
        if given is wanted:
            return True
        if wanted.name == "param":
            known = wanted.record in self._found
            if self._bind(wanted, given):
                return True
            if known:
                return False
        if given.name == "param":
            return self._bind(given, wanted)
        if given.name in ("dyn", "error") or wanted.name in ("dyn", "error"):
            return True
        if given.name == "null_type":
            return wanted.name not in _VALUES
        if wanted.name == "null_type":
            return given.name not in _VALUES
        if given.name != wanted.name or given.unit != wanted.unit or given.record != wanted.record:
            return False
        if given.name == "type":
            return True  # a type's own type says nothing about the parameters of either
        return len(given.params) == len(wanted.params) and all(
            self._assignable(one, other) for one, other in zip(given.params, wanted.params, strict=True)
        )

    def _bind(self, parameter: Type, type: Type) -> bool:
        if type == parameter:
            return True
        name = parameter.record or ""
        known = self._found.get(name)
        if known is None:
            if self._occurs(name, type):
                return False
            self._found[name] = type
            return True
        if known == type:
            return True
        if not self._assignable(type, known):
            return False
        wider = self._wider(self.resolved(type), self.resolved(known))
        if wider != parameter and not self._occurs(name, wider):
            self._found[name] = wider
        return True

    def _occurs(self, name: str, type: Type) -> bool:
        if type.name == "param":
            if type.record == name:
                return True
            known = self._found.get(type.record or "")
            return known is not None and self._occurs(name, known)
        return any(self._occurs(name, each) for each in type.params)

    def _wider(self, one: Type, other: Type) -> Type:
        if "null_type" in (one.name, other.name):
            wider = other if one.name == "null_type" else one
            # Programs know the values of these types by their class, and null is none of them.
            return wider if wider.name in _NULLABLE else DYN
        return one if _covers(one, other) else other


def _covers(one: Type, other: Type) -> bool:
    """Whether `one` is the same as `other`, or leaves open what `other` says."""
    if one.name in ("dyn", "param"):
        return True
    if other.name in ("dyn", "param") or one.name != other.name or len(one.params) != len(other.params):
        return False
    return all(map(_covers, one.params, other.params))
