"""The root quota that follows from an ElasticQuotaProfile and the nodes that it selects."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.algorithms.node_record import NodeSight, node_record
from koordpolicy.algorithms.quota_profile import TreeTotals, fnv64a, tree_totals
from koordpolicy.graph import RuleGraph
from koordpolicy.language.facts import TIMES
from koordpolicy.model.facts import Record
from koordpolicy.model.node import Node
from koordpolicy.model.quota_profile import QuotaProfile
from koordpolicy.model.reading import Amounts

KIND: Final = "QuotaProfile"


@dataclass(frozen=True, slots=True)
class TreeQuota:
    """The root quota of a tree, as policy wants it."""

    tree: str
    min: Amounts
    max: Amounts
    totals: TreeTotals


def is_followed(graph: RuleGraph, profile: QuotaProfile, now: int) -> bool:
    """Whether policy follows a profile; `now` in nanoseconds since 1970. Raises `CelError`."""
    roots = {"quotaProfile": _record(profile), "now": TIMES.timestamp(now)}
    return bool(graph.about(KIND, "", roots).value("enabled"))


def counted(graph: RuleGraph, node: Node, now: int) -> tuple[Amounts, bool]:
    """What a node offers, and whether policy counts it as unschedulable. Raises `CelError`."""
    roots = {"node": node_record(NodeSight(node), graph.catalogue, TIMES, now), "now": TIMES.timestamp(now)}
    return node.allocatable, bool(graph.about(KIND, "", roots).value("unschedulable"))


def tree_quota(
    graph: RuleGraph, profile: QuotaProfile, nodes: Iterable[tuple[Amounts, bool]], now: int
) -> TreeQuota:
    """The quota for the nodes of a profile, each as `counted`. Raises `CelError`."""
    time = TIMES.timestamp(now)
    record = _record(profile)
    about = graph.about(KIND, "", {"quotaProfile": record, "now": time})
    totals = tree_totals(nodes, about.value("ratio"))
    roots: Mapping[str, Any] = {
        "quotaProfile": {**record, "total": totals.total, "unschedulable": totals.unschedulable},
        "now": time,
    }
    about = graph.about(KIND, "", roots)
    keys = about.value("keys") or ()
    return TreeQuota(
        str(about.value("tree") or record["hash"]),
        {key: about.value("min", resource=key) or 0 for key in keys},
        {key: about.value("max", resource=key) or 0 for key in keys},
        totals,
    )


def _record(profile: QuotaProfile) -> Record:
    record: Record = {
        "name": profile.name,
        "namespace": profile.namespace,
        "labels": profile.labels,
        "annotations": profile.annotations,
        "tree": profile.tree,
        "hash": str(fnv64a(f"{profile.namespace}/{profile.name}")),
    }
    if profile.ratio is not None:
        record["ratio"] = profile.ratio
    if profile.resource_keys:
        record["resourceKeys"] = list(profile.resource_keys)
    return record
