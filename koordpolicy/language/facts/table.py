"""What a fact is, and how records of facts are looked up."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from koordpolicy.language.cel.types import AMOUNT, CPU, MEMORY, STRING, Type, map_of


class Component(StrEnum):
    """A process that asks the rule graph, and so supplies facts."""

    WEBHOOK = "webhook"
    MANAGER = "manager"
    SCHEDULER = "scheduler"
    AGENT = "agent"
    DESCHEDULER = "descheduler"
    RUNTIME_PROXY = "runtime_proxy"
    YARN_OPERATOR = "yarn_operator"


Components = frozenset[Component]

USUAL_TIME = "2026-01-01T00:00:00Z"
"""The moment at which PolicyTests take place that do not say one."""

EVERYWHERE: Components = frozenset(Component)
CENTRAL: Components = frozenset(
    {Component.WEBHOOK, Component.MANAGER, Component.SCHEDULER, Component.DESCHEDULER}
)


@dataclass(frozen=True, slots=True)
class Fact:
    """One input: `path` within its record, such as `usage.prod.cpu`.

    A fact that `may_be_missing` can be absent on a healthy system (no metric yet, a field that is
    optional in Kubernetes); rules guard it with `has()` or `.?`. `usual` is what a PolicyTest that does not
    say the fact has, as policies write it; `None` stands for zero, no text, an empty list.
    """

    path: str
    type: Type
    meaning: str
    suppliers: Components
    may_be_missing: bool = False
    usual: bool | int | str | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """An inner step of paths, such as `usage` or `usage.prod`: it has children, but no value."""

    record: str
    path: str


@dataclass(frozen=True, slots=True)
class Record:
    """A structure of facts, the type of a root or of the elements of a list."""

    name: str
    meaning: str
    facts: tuple[Fact, ...]


class FactTable:
    """All records, looked up by name and dotted path. Nothing of it changes after construction.

    Raises `ValueError` when a path is declared twice or stands both for a value and for a group.
    """

    __slots__ = ("_children", "_facts", "_leaves", "records")

    def __init__(self, records: Iterable[Record]) -> None:
        by_name = {record.name: record for record in records}
        self.records: Mapping[str, Record] = MappingProxyType(by_name)
        self._facts: dict[tuple[str, str], Fact] = {}
        self._children: dict[tuple[str, str], dict[str, None]] = {}
        self._leaves: dict[tuple[str, str], tuple[Fact, ...]] = {}
        for record in by_name.values():
            self._declare(record)

    def _declare(self, record: Record) -> None:
        self._children[record.name, ""] = {}
        for fact in record.facts:
            if (record.name, fact.path) in self._facts:
                raise ValueError(f"`{record.name}.{fact.path}` is declared twice")
            self._facts[record.name, fact.path] = fact
            steps = fact.path.split(".")
            for depth, step in enumerate(steps):
                prefix = ".".join(steps[:depth])
                self._children.setdefault((record.name, prefix), {})[step] = None
        for name, prefix in self._children:
            if (name, prefix) in self._facts:
                raise ValueError(f"`{name}.{prefix}` is both a fact and a group")

    def record(self, name: str) -> Record | None:
        """The record of that name."""
        return self.records.get(name)

    def resolve(self, record: str, path: str) -> Fact | Group | None:
        """What a dotted path within a record stands for; `None` when it stands for nothing."""
        fact = self._facts.get((record, path))
        if fact is not None:
            return fact
        return Group(record, path) if (record, path) in self._children else None

    def children(self, record: str, prefix: str = "") -> tuple[str, ...]:
        """The names that may follow a prefix (`""` for the record itself), in order of declaration."""
        return tuple(self._children.get((record, prefix), ()))

    def leaves(self, record: str, prefix: str = "") -> tuple[Fact, ...]:
        """All facts below a prefix (the fact itself when the prefix is one)."""
        declared = self.records.get(record)
        if declared is None:
            return ()
        known = self._leaves.get((record, prefix))
        if known is None:
            inside = prefix + "." if prefix else ""
            known = tuple(f for f in declared.facts if f.path == prefix or f.path.startswith(inside))
            if known:  # of what is a fact or group, of which there are not many
                self._leaves[record, prefix] = known
        return known


# --- how records are written down -----------------------------------------------------------------

BASIC: Mapping[str, Type] = MappingProxyType({"cpu": CPU, "memory": MEMORY})
"""The two resources that are measured."""

NATIVE: Mapping[str, Type] = MappingProxyType({**BASIC, "ephemeralStorage": MEMORY})

TIERS: Mapping[str, Type] = MappingProxyType(
    {"batch.cpu": CPU, "batch.memory": MEMORY, "mid.cpu": CPU, "mid.memory": MEMORY}
)
"""The overcommitted resources; their CPU counts in millicores like all CPU."""

_SPOKEN = {
    "cpu": "CPU",
    "memory": "memory",
    "ephemeralStorage": "ephemeral storage",
    "pods": "pods",
    "batch.cpu": "batch CPU",
    "batch.memory": "batch memory",
    "mid.cpu": "mid CPU",
    "mid.memory": "mid memory",
}


def each(
    prefix: str,
    resources: Mapping[str, Type],
    meaning: str,
    suppliers: Components,
    may_be_missing: bool = False,
) -> Iterator[Fact]:
    """One fact a resource under a prefix; `{resource}` in the meaning is the resource's name."""
    for name, type in resources.items():
        words = meaning.format(resource=_SPOKEN[name])
        yield Fact(f"{prefix}.{name}", type, words[0].upper() + words[1:], suppliers, may_be_missing)


def by_name(path: str, meaning: str, suppliers: Components, may_be_missing: bool = False) -> Fact:
    """A map from the resource's name on the wire (`kubernetes.io/batch-cpu`) to its amount."""
    return Fact(path, map_of(STRING, AMOUNT), meaning, suppliers, may_be_missing)
