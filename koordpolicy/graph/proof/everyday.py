"""What is everyday about an input: amounts as clusters have them, and nodes that use no more than there is."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from koordpolicy.graph.analysis.facts import fact_at
from koordpolicy.graph.proof.pools import is_missable, value_type_of
from koordpolicy.graph.proof.reads import Reads, type_of_element
from koordpolicy.graph.proof.verdict import Records
from koordpolicy.language.cel import ir
from koordpolicy.language.cel.constants import constant
from koordpolicy.language.cel.ir_walk import walk
from koordpolicy.language.cel.types import BOOL, Type, Unit

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


def within_reason(*expressions: ir.Node) -> ir.Node:
    """That no amount that the expressions read of a record is beyond `MOST_OF`, or below nothing."""
    parts: dict[tuple[str, str], ir.Node] = {}
    for node in walk(*expressions):
        if not (isinstance(node, ir.Field) and isinstance(node.base, ir.Var) and not node.base.local):
            continue
        most = MOST_OF.get(node.type.unit)
        if most is None or node.type.name != "int":
            continue
        edges = (
            ir.Call(BOOL, "_<=_(int,int)", (node, constant(node.type, most))),
            ir.Call(BOOL, "_>=_(int,int)", (node, constant(node.type, 0))),
        )
        held: ir.Node = ir.And(BOOL, edges)
        if is_missable(node.base.name, node.path):
            absent = ir.Call(BOOL, "!_(bool)", (ir.HasField(BOOL, node.base, (node.path,)),))
            held = ir.Or(BOOL, (absent, held))
        parts[node.base.name, node.path] = held
    return ir.And(BOOL, tuple(parts.values())) if parts else constant(BOOL, True)


def fits_its_node(records: Records) -> bool:
    """Whether the node has something, and uses, is asked for and keeps back no more than that."""
    node = records.get("node")
    if not isinstance(node, Mapping):
        return True
    for resource in _RESOURCES:
        most = node.get(f"capacity.{resource}")
        if not isinstance(most, int):
            continue
        if most <= 0:
            return False
        for path, value in node.items():
            if path.startswith(_WITHIN) and path.rpartition(".")[2] == resource and value > most:
                return False
    return True
