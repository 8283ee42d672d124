"""What is written to a node and its zones so that they offer what was calculated."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from koordpolicy.algorithms.publish import any_differs, normalized, published
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.bands import band_resources
from koordpolicy.manager.controllers.overcommit import Calculation, PublishAction
from koordpolicy.manager.controllers.publishing import PublishPolicy
from koordpolicy.manager.controllers.zone_plan import with_offers
from koordpolicy.model.facts import Record
from koordpolicy.model.node import Node
from koordpolicy.model.protocol import CPU, MEMORY, ORIGIN_EXTENDED_ALLOCATABLE
from koordpolicy.model.quantity import amount_text
from koordpolicy.model.reading import Amounts, Json, ObjectError, objects
from koordpolicy.model.third_party import third_party_allocations


@dataclass(frozen=True, slots=True)
class NodePlan:
    """What differs from what should be: resources by name (None: take them away), annotations, zones.

    `zones` is the whole list of the topology object, None when it stays. `settles` says that the node offers
    all that was calculated once this is written; without it, small differences wait. `problems` are phrases
    about what could not be read or decided.
    """

    resources: Mapping[str, int | None]
    annotations: Mapping[str, str]
    zones: Sequence[Json] | None = None
    settles: bool = False
    problems: tuple[str, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether nothing is to be written."""
        return not self.resources and not self.annotations and self.zones is None


def plan_node(  # noqa: PLR0913, PLR0917 - a node with all that is known of it
    graph: RuleGraph,
    node: Node,
    record: Record,
    calculations: Sequence[Calculation],
    topology: Json | None,
    written: int | None,
    now: int,
    cluster: Record | None = None,
    policies: Mapping[str, PublishPolicy] = MappingProxyType({}),
) -> NodePlan:
    """The plan for a node.

    `record` holds the node's facts, `cluster` those of the whole, `topology` is its NodeResourceTopology. `written` is when the node was
    last settled, None for never; times in nanoseconds since 1970. Small changes wait until one resource
    changed enough or that time is long ago; then all are written. `policies` are answers by resource that are known already.
    """
    resources: dict[str, int | None] = {}
    annotations: dict[str, str] = {}
    problems: list[str] = [f"{one.resource}: {one.reason}" for one in calculations if one.reason]
    zones = topology
    worth = written is None
    for one in calculations:
        if one.outcome is PublishAction.KEEP:
            continue
        rules = policies.get(one.resource) or PublishPolicy.of(
            graph, one.resource, record, now, cluster or {}
        )
        names = band_resources(graph, one.resource)
        if not names:
            problems.append(f"{one.resource}: there is no band with resources of that name")
            continue
        wanted, origin, problem = _wanted(graph, node, one, names, rules)
        if problem:
            problems.append(problem)
        resources.update(wanted)
        if origin is not None:
            annotations[ORIGIN_EXTENDED_ALLOCATABLE] = origin
        due = rules.due(written, now)
        worth = worth or due or any_differs(node.allocatable, wanted, rules.share)
        if zones is not None:
            zones = with_offers(zones, one.zones, names, rules, force=due)
    return NodePlan(
        {name: number for name, number in resources.items() if worth and _stands(node, name) != number},
        {key: said for key, said in annotations.items() if worth and node.annotations.get(key) != said},
        None if zones is None or zones is topology else list(objects(zones, "zones")),
        worth,
        tuple(problems),
    )


def _wanted(
    graph: RuleGraph, node: Node, one: Calculation, names: Mapping[str, str], rules: PublishPolicy
) -> tuple[dict[str, int | None], str | None, str]:
    """The amounts to offer, the annotation on what they would be without deductions, and what went wrong."""
    if one.outcome is PublishAction.RESET:
        zero = dict.fromkeys(names.values(), 0)
        return dict.fromkeys(names.values()), origin_text(zero) if rules.deducts else None, ""
    amounts = {CPU: normalized(one.whole.cpu, rules.ratio), MEMORY: one.whole.memory}
    renamed = {names[native]: number for native, number in amounts.items() if native in names}
    if not rules.deducts:
        return dict(renamed), None, ""
    try:
        allocated = third_party_allocations(node.annotations)
    except ObjectError as error:
        return dict(renamed), origin_text(renamed), str(error)
    band = graph.catalogue.class_name(one.resource)
    found = published(renamed, [other.resources for other in allocated if other.priority == band])
    return dict(found.offered), origin_text(found.origin), ""


def origin_text(amounts: Amounts) -> str:
    """What an annotation says that a node would offer without deductions."""
    resources = {name: amount_text(name, number) for name, number in sorted(amounts.items())}
    return _written({"resources": resources})


_written: Final = json.JSONEncoder(separators=(",", ":")).encode


def _stands(node: Node, name: str) -> int | None:
    """What the node offers now; a difference between capacity and allocatable counts as another amount."""
    offered = node.allocatable.get(name)
    return offered if node.capacity.get(name) == offered else -1
