"""What a row of the table of nodes says of a node and of what the pods on it request."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from koordpolicy.algorithms.node_capacity import trimmed_allocatable
from koordpolicy.algorithms.scarce import kinds_of
from koordpolicy.cluster.demand import Demand
from koordpolicy.cluster.nodes import KINDS, TAINTS, kinds_text, taint_text
from koordpolicy.language.facts import TIMES
from koordpolicy.model.amounts import within
from koordpolicy.model.facts import Record
from koordpolicy.model.facts.load import threshold_facts
from koordpolicy.model.facts.node import node_facts, offer_facts
from koordpolicy.model.node import Node, node_reservation
from koordpolicy.model.protocol import BATCH_CPU, BATCH_MEMORY
from koordpolicy.model.reading import ObjectError

_KEPT: Final = frozenset({BATCH_CPU, BATCH_MEMORY})
"""Resources that are published with the node's reservation already taken off."""


def row_of_node(node: Node, demand: Demand) -> Record:
    """The facts that follow from a node and the demand of the pods on it."""
    shown = _trimmed(node)
    facts = node_facts(shown, demand.whole)
    facts.update(threshold_facts(node, TIMES))
    facts[TAINTS] = taint_text(node.taints)
    facts[KINDS] = kinds_text(shown.allocatable)
    facts["ownedCPU"] = within(demand.owned)
    return facts


def row_of_offers(before: Node, node: Node, demand: Demand) -> Record | None:
    """The facts of a row that may be others where a node only offers other amounts than before; None where more may be."""
    facts = None if before.taints != node.taints else offer_facts(before, node, demand.whole)
    if facts is not None and kinds_of(before.allocatable) != kinds_of(node.allocatable):
        facts[KINDS] = kinds_text(node.allocatable)
    return facts


def changed_facts(before: Mapping[str, object], after: Mapping[str, object]) -> frozenset[str]:
    """The facts of a row that are others now."""
    if not before:
        return frozenset(after)
    return frozenset([path for path in before.keys() | after.keys() if before.get(path) != after.get(path)])


def _trimmed(node: Node) -> Node:
    """The node less what its annotation keeps for work outside Kubernetes; as it is when unreadable."""
    try:
        reservation = node_reservation(node.annotations)
    except ObjectError:
        return node
    allocatable = trimmed_allocatable(node.allocatable, reservation, _KEPT)
    return node if allocatable is node.allocatable else replace(node, allocatable=allocatable)
