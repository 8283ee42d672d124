"""What is everyday about an input: amounts as clusters have them, and nodes that use no more than there is."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from koordpolicy.graph.analysis.facts import fact_at
from koordpolicy.graph.proof.pools import value_type_of
from koordpolicy.graph.proof.reads import Reads, type_of_element
from koordpolicy.graph.proof.verdict import Records
from koordpolicy.language.cel.types import Type, Unit

MOST_OF: Final[Mapping[Unit | None, int]] = {
    Unit.CPU: 10_000_000,
    Unit.BYTES: 1 << 50,
    Unit.BANDWIDTH: 10**13,
    Unit.AMOUNT: 1 << 50,
}
"""The most of a unit that examples have if they can: 10,000 cores, a pebibyte, 10 terabits a second."""

_WITHIN: Final = ("usage.", "load.", "requested.", "reserved.")
_RESOURCES: Final = ("cpu", "memory")


def is_ordinary(records: Records, reads: Reads) -> bool:
    """Whether no amount that is read is beyond `MOST_OF`, or below nothing."""
    return next(beyond(records, reads), None) is None


def beyond(records: Records, reads: Reads) -> Iterator[tuple[Type, int]]:
    """Amounts that are read and that no cluster has, with their types."""
    for root, path in reads.facts:
        kind = value_type_of(root, path)
        value = records.get(root)
        if path:
            value = value.get(path) if isinstance(value, Mapping) else None
        if kind is not None:
            yield from _beyond(kind, value, reads)


def _beyond(kind: Type, value: Any, reads: Reads) -> Iterator[tuple[Type, int]]:
    inner = type_of_element(kind)
    if inner is not None and isinstance(value, list):
        for held in value:
            yield from _beyond(inner, held, reads)
    elif kind.record is not None and isinstance(value, Mapping):
        for record, path in reads.elements:
            fact = fact_at(record, path) if record == kind.record and path in value else None
            if fact is not None:
                yield from _beyond(fact.type, value[path], reads)
    elif kind.name == "map" and isinstance(value, Mapping):
        for held in value.values():
            yield from _beyond(kind.params[1], held, reads)
    elif kind.unit in MOST_OF and isinstance(value, int) and not 0 <= value <= MOST_OF[kind.unit]:
        yield kind, value


def fits_its_node(records: Records) -> bool:
    """Whether the node uses, is asked for and keeps back no more than it has."""
    node = records.get("node")
    if not isinstance(node, Mapping):
        return True
    for resource in _RESOURCES:
        most = node.get(f"capacity.{resource}")
        for path, value in node.items() if isinstance(most, int) else ():
            if path.startswith(_WITHIN) and path.rpartition(".")[2] == resource and value > most:
                return False
    return True
